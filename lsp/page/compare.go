package page

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/uri"

	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/revision"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/lsp/workspace"
)

// diff compares two versions of a document.
func (ps *Pages) diff(ctx context.Context, args PanelArgs) (int32, report.Data, error) {
	base, version := versionOf(args.Base, versionSaved), versionOf(args.Version, versionText)
	at, err := ps.placeOf(ctx, args.URI, args.Function, isPass(base) || isPass(version))
	if err != nil {
		return 0, report.Data{}, failed(err)
	}
	read := func(which string) (p *program.Program, name string, err error) {
		text, name, err := ps.text(ctx, at, which)
		if err != nil {
			return nil, "", err
		}
		return ps.versions.program(text, name, at.opts), name, nil
	}
	old, oldName, err := read(base)
	var new *program.Program
	newName := ps.s.Folders.Relative(at.Path)
	if err == nil && version != versionText {
		new, newName, err = read(version)
	}
	var reason refusal
	if err != nil && !errors.As(err, &reason) {
		return 0, report.Data{}, err
	}
	var data report.Data
	var number int32
	_, err = ps.s.OnPlace(args.URI, func(_ context.Context, p session.Place) (_ any, err error) {
		number = p.Version
		switch {
		case reason != "":
			data = report.NoDiff(p.Program(), at.fn, string(reason))
		case new != nil:
			functions := report.Functions(p.Program())
			p.Release()
			data, err = report.Build(new, report.KindDiff, at.fn, report.Options{Old: old, OldName: oldName})
			data.Functions = functions
		default:
			data, err = report.Build(p.Program(), report.KindDiff, at.fn, report.Options{Old: old, OldName: oldName})
		}
		return nil, err
	})(ctx)
	if err != nil {
		return 0, report.Data{}, failed(err)
	}
	d := data.Diff
	d.New, d.Base, d.Version = newName, base, version
	data.File = ps.s.Folders.Relative(at.Path)
	passes := passChoices()
	text := report.Choice{Value: versionText, Label: "the text", Group: "this document"}
	d.Versions = append([]report.Choice{text}, passes...)
	d.Bases = slices.Concat([]report.Choice{{Value: versionSaved, Label: "the saved file", Group: text.Group}, text}, ps.revisionChoices(ctx, at, base), passes, ps.fileChoices(at, base))
	return number, data, nil
}

// failed returns an error as one of the protocol.
func failed(err error) error {
	if err == nil || isProtocolError(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return jsonrpc2.NewError(connection.RequestFailed, err.Error())
}

func passChoices() []report.Choice {
	var out []report.Choice
	for _, name := range worker.Passes() {
		out = append(out, report.Choice{Value: passPrefix + name, Label: "after " + name, Group: "the function, compiled"})
	}
	return out
}

// logs remembers the commits that changed a file, until HEAD moves.
type logs struct {
	mu    sync.Mutex
	files map[string]fileLog
}

type fileLog struct {
	head    string
	commits []revision.Entry
}

// The bounds of the list of commits: how many, and how long git may look for them.
const (
	listedCommits = 20
	logTime       = 3 * time.Second
)

// revisionChoices are the last commits of a file; none where git has none.
func (ps *Pages) revisionChoices(ctx context.Context, at place, base string) []report.Choice {
	var out []report.Choice
	add := func(rev, label string) {
		out = append(out, report.Choice{Value: gitPrefix + rev, Label: label, Group: "a revision"})
	}
	if at.Path != at.Key && ps.jobs.Trusted() {
		if head, err := revision.Commit(ctx, at.Path, "HEAD"); err == nil {
			add("HEAD", "HEAD")
			for _, c := range ps.logs.of(ctx, at.Path, head) {
				add(c.Hash, c.Hash+" "+c.Date+" "+c.Subject)
			}
		}
	}
	if rev, ok := strings.CutPrefix(base, gitPrefix); ok && !slices.ContainsFunc(out, func(c report.Choice) bool { return c.Value == base }) {
		add(rev, rev)
	}
	return out
}

func (l *logs) of(ctx context.Context, path, head string) []revision.Entry {
	l.mu.Lock()
	known, ok := l.files[path]
	l.mu.Unlock()
	if ok && known.head == head {
		return known.commits
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	list, err := revision.Log(ctx, path, listedCommits)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]fileLog{}
	}
	l.files[path] = fileLog{head, list}
	return list
}

// listedFiles bounds the list of other files.
const listedFiles = 20

// fileChoices are the other programs that are open, and those in the folder of the
// document.
func (ps *Pages) fileChoices(at place, base string) []report.Choice {
	var out []report.Choice
	add := func(a workspace.Address) {
		value := ps.s.Folders.Relative(a.Path)
		there := slices.ContainsFunc(out, func(c report.Choice) bool { return c.Value == value })
		if a.Path != a.Key && a.Key != at.Key && !there && len(out) < listedFiles {
			out = append(out, report.Choice{Value: value, Label: value, Group: "another file"})
		}
	}
	for _, s := range ps.s.Docs.Snapshots() {
		add(s.Address)
	}
	if at.Path != at.Key {
		entries, _ := os.ReadDir(filepath.Dir(at.Path))
		for _, e := range entries {
			if e.Type().IsRegular() && filepath.Ext(e.Name()) == ".dmir" {
				add(session.AddressOf(uri.File(filepath.Join(filepath.Dir(at.Path), e.Name()))))
			}
		}
	}
	isOther := base != versionSaved && base != versionText && !isPass(base) && !strings.HasPrefix(base, gitPrefix)
	if isOther && !slices.ContainsFunc(out, func(c report.Choice) bool { return c.Value == base }) {
		out = append(out, report.Choice{Value: base, Label: base, Group: "another file"})
	}
	return out
}
