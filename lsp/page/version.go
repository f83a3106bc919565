package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/revision"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// The versions of a document that a comparison takes, beside "git:" with a revision,
// "after-" with a pass, and paths of other files.
const (
	versionText  = "text"  // the document as it is in the editor
	versionSaved = "saved" // its file on disk
	gitPrefix    = "git:"
	passPrefix   = "after-"
)

// versionOf returns the version that a user names: a name that is no other version
// and no file is a revision.
func versionOf(name, otherwise string) string {
	name = strings.TrimSpace(name)
	ext := filepath.Ext(name)
	switch {
	case name == "":
		return otherwise
	case name == versionText, name == versionSaved, strings.HasPrefix(name, gitPrefix), isPass(name), strings.HasPrefix(name, "file:"), ext == ".dmir", ext == ".mlir":
		return name
	}
	return gitPrefix + name
}

func isPass(version string) bool {
	pass, ok := strings.CutPrefix(version, passPrefix)
	return ok && slices.Contains(worker.Passes(), pass)
}

// refusal is why a version cannot be read: a sentence for the panel.
type refusal string

func (r refusal) Error() string { return string(r) }

// place is what is known of a document without holding its analysis.
type place struct {
	workspace.Address
	snap *workspace.Snapshot
	opts program.Options // under which other versions are read
	fn   string          // the function that is compared, "" for all
}

// placeOf returns the place of a document, open or on disk. needed chooses a function
// if none is named.
func (ps *Pages) placeOf(ctx context.Context, document, fn string, needed bool) (place, error) {
	var at place
	_, err := ps.s.OnPlace(document, func(_ context.Context, p session.Place) (any, error) {
		prog := p.Program()
		at = place{p.Address, p.Snapshot, program.Options{Target: prog.Target, F32Products: prog.F32Products, Bind: prog.Bind, Config: prog.Config, Arrays: prog.Arrays}, strings.TrimPrefix(fn, "@")}
		if at.fn == "" && needed {
			var err error
			at.fn, err = report.Choose(prog, "")
			return nil, err
		}
		return nil, nil
	})(ctx)
	return at, err
}

// text returns the text of a version, and what to call it.
func (ps *Pages) text(ctx context.Context, at place, version string) (text, name string, err error) {
	rev, isRevision := strings.CutPrefix(version, gitPrefix)
	switch {
	case version == versionText:
		return at.snap.Src.Text(), ps.s.Folders.Relative(at.Path), nil
	case isPass(version):
		text, err := ps.passText(ctx, at, strings.TrimPrefix(version, passPrefix))
		return text, "@" + at.fn + " " + strings.Replace(version, "-", " ", 1), err
	case at.Path == at.Key:
		return "", "", refusal("the document was never saved, so there is no version to compare it with")
	case version == versionSaved:
		text, err := ps.fileText(at.Address)
		return text, versionSaved, err
	case isRevision:
		return ps.revisionText(ctx, at, rev)
	}
	file, err := ps.fileOf(at, version)
	if err != nil {
		return "", "", err
	}
	if snap := ps.s.Docs.Snapshot(file.Key); snap != nil {
		text = snap.Src.Text()
	} else if text, err = ps.fileText(file); err != nil {
		return "", "", err
	}
	return text, ps.s.Folders.Relative(file.Path), nil
}

func (ps *Pages) fileText(a workspace.Address) (string, error) {
	snap, err := ps.s.Docs.Read(a)
	if err != nil {
		return "", refusal(err.Error())
	}
	return snap.Src.Text(), nil
}

// fileOf returns the address of a file that is named in full, or relative to the
// folder of the document or to one of the workspace.
func (ps *Pages) fileOf(at place, name string) (workspace.Address, error) {
	if strings.HasPrefix(name, "file:") {
		return session.AddressOf(uri.URI(name)), nil
	}
	dirs := []string{filepath.Dir(at.Path)}
	for _, f := range ps.s.Folders.All() {
		dirs = append(dirs, f.Path)
	}
	for _, dir := range dirs {
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return session.AddressOf(uri.File(path)), nil
		}
	}
	return workspace.Address{}, refusal(fmt.Sprintf("there is no file %s beside %s or in the workspace", name, filepath.Base(at.Path)))
}

func (ps *Pages) revisionText(ctx context.Context, at place, rev string) (text, name string, err error) {
	if !ps.jobs.Trusted() {
		return "", "", refusal("git is started only in a workspace that is trusted")
	}
	commit, err := revision.Commit(ctx, at.Path, rev)
	if err == nil {
		text, err = revision.Text(ctx, at.Path, commit)
	}
	var no *revision.Error
	switch {
	case errors.As(err, &no):
		return "", "", refusal(strings.Replace(no.Message, "in the revision", "in the revision "+rev, 1))
	case err != nil:
		return "", "", err
	}
	name = rev
	if short := commit[:min(len(commit), 8)]; !strings.HasPrefix(commit, rev) {
		name += " (" + short + ")"
	}
	return text, name, nil
}

// passText returns the text of the function after a pass.
func (ps *Pages) passText(ctx context.Context, at place, pass string) (string, error) {
	if !ps.jobs.Trusted() {
		return "", refusal("functions are compiled only in a workspace that is trusted")
	}
	got, err := ps.jobs.BuildOf(ctx, at.URI, at.fn, false, nil)
	switch {
	case err != nil && (ctx.Err() != nil || isProtocolError(err)):
		return "", err
	case err != nil:
		_, msg, err := ps.jobs.Failure(ctx, worker.KindCompile, at.fn, err)
		return "", cmp.Or(err, error(refusal(msg)))
	case !got.OK || got.Build == nil:
		return "", refusal(fmt.Sprintf("@%s cannot be compiled: %s", at.fn, got.Message))
	}
	for _, s := range got.Build.Stages {
		if s.Pass == pass {
			return s.Text, nil
		}
	}
	return "", refusal(fmt.Sprintf("@%s was not taken through the pass %s", at.fn, pass))
}

// loaded remembers the programs of versions read last, so that those that stay the
// same are not analysed again after each edit.
type loaded struct {
	mu   sync.Mutex
	list []loadedVersion
}

type loadedVersion struct {
	text string
	opts program.Options
	prog *program.Program
}

const keptVersions = 4

func (l *loaded) program(text, name string, opts program.Options) *program.Program {
	l.mu.Lock()
	for _, v := range l.list {
		if v.text == text && v.opts.Target == opts.Target && v.opts.Config == opts.Config && v.prog.Src.Path == name && reflect.DeepEqual(v.opts.Bind, opts.Bind) {
			l.mu.Unlock()
			return v.prog
		}
	}
	l.mu.Unlock()
	v := loadedVersion{text, opts, program.Load(source.New(name, text), opts)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list = append(l.list, v); len(l.list) > keptVersions {
		l.list = slices.Delete(l.list, 0, 1)
	}
	return v.prog
}

// versionContent returns the text of a version for a virtual document, or a comment
// that explains why there is none.
func (ps *Pages) versionContent(ctx context.Context, document, version string) (string, error) {
	at, err := ps.placeOf(ctx, document, "", false)
	if err != nil {
		return "", err
	}
	text, _, err := ps.text(ctx, at, version)
	var reason refusal
	if errors.As(err, &reason) {
		return comment(string(reason)), nil
	}
	return text, err
}

// showVersion has the editor show lines of a version of a document.
func (ps *Pages) showVersion(ctx context.Context, document, version, fn string, lines *protocol.Range) error {
	if !ps.s.Features.ShowDocument {
		return jsonrpc2.NewError(connection.RequestFailed, "the editor does not support window/showDocument")
	}
	at, err := ps.placeOf(ctx, document, fn, isPass(version))
	if err != nil {
		return failed(err)
	}
	address := at.URI
	switch {
	case version == versionText:
	case isPass(version):
		address = session.ViewAddress(version, at.URI, at.fn)
	case version == versionSaved, strings.HasPrefix(version, gitPrefix):
		address = session.ViewAddress(session.VersionView, at.URI, version)
	default:
		file, err := ps.fileOf(at, version)
		if err != nil {
			return failed(err)
		}
		address = file.URI
	}
	if address != at.URI && !ps.s.Features.VirtualDocuments && strings.HasPrefix(address, session.ViewScheme+":") {
		return jsonrpc2.NewError(connection.RequestFailed, "the editor does not support workspace/textDocumentContent")
	}
	return ps.s.ShowDocument(ctx, address, lines)
}
