package cli

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"dmir/analysis/program"
	git "dmir/lsp/revision"
	"dmir/syntax/source"
)

// version reads an older version of the program new, which was read from path,
// under the same configuration: a file, "git:REV" for path as it was in a
// revision, or "git:REV:PATH" for another file. name is its display name.
func (t targeting) version(a *app, old, path string, new *program.Program) (p *program.Program, name string, err error) {
	arrays := new.Arrays
	var src *source.File
	if _, _, isGit := revision(old, path); isGit {
		src, err = a.readVersion(old, path)
	} else {
		var opts program.Options
		src, opts, err = t.program(a, old)
		arrays = opts.Arrays
	}
	if err != nil {
		return nil, "", err
	}
	p, err = a.analyse(src, program.Options{Target: new.Target, F32Products: new.F32Products, Bind: new.Bind, Config: new.Config, Arrays: arrays, Compiled: new.Compiled})
	if err != nil {
		return nil, "", err
	}
	if p.HasErrors() {
		printErrors(a.stderr, src, p.Diags)
		return nil, "", exitStatus(exitFailed)
	}
	return p, src.Path, nil
}

// sensibleVersions returns an error for an older version that cannot be one, before
// any file is read.
func sensibleVersions(old, path string) error {
	rev, file, isGit := revision(old, path)
	switch {
	case old == "-" && path == "-":
		return &failure{"DM612", "-", "both versions are stdin", "name one of them"}
	case !isGit:
		return nil
	case !git.Valid(rev):
		return &failure{"DM612", old, "does not name a revision", "write git:HEAD, git:HEAD~3, git:main"}
	case file == "-":
		return &failure{"DM612", old, "stdin has no older version", "name the file too: git:" + rev + ":PATH"}
	}
	return nil
}

// revision splits "git:REV" and "git:REV:PATH"; file is path if none is named.
func revision(old, path string) (rev, file string, ok bool) {
	rev, ok = strings.CutPrefix(old, "git:")
	if !ok {
		return "", "", false
	}
	rev, file, _ = strings.Cut(rev, ":")
	return rev, cmp.Or(file, path), true
}

func (a *app) readVersion(old, path string) (*source.File, error) {
	rev, file, ok := revision(old, path)
	if !ok {
		return a.read(old)
	}
	text, err := older(a.ctx, rev, file)
	var no *git.Error
	switch {
	case errors.As(err, &no):
		return nil, &failure{"DM601", old, no.Message, "name a revision that has " + filepath.Base(file)}
	case err != nil:
		return nil, err
	case len(text) > maxBytes:
		return nil, tooLarge(old, maxBytes)
	}
	return source.New(filepath.Base(file)+" at "+rev, text), nil
}

func older(ctx context.Context, rev, file string) (string, error) {
	commit, err := git.Commit(ctx, file, rev)
	if err != nil {
		return "", err
	}
	return git.Text(ctx, file, commit)
}
