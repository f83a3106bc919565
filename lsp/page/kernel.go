package page

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/job"
	"dmir/lsp/session"
	"dmir/lsp/worker"
)

// builtViews are the function behind each pass, its kernels as CUDA C++, and
// their machine code before it is assembled.
func builtViews() map[string]view {
	all := map[string]view{
		session.CUDAView: {built: func(b *worker.Build) string { return b.CUDA }},
		"ptx": {code: true, built: func(b *worker.Build) string {
			if b.NoCode != "" {
				return comment(b.NoCode)
			}
			return b.PTX
		}},
	}
	for _, name := range worker.Passes() {
		all["after-"+name] = view{built: func(b *worker.Build) string {
			if i := slices.IndexFunc(b.Stages, func(s worker.Stage) bool { return s.Pass == name }); i >= 0 {
				return b.Stages[i].Text
			}
			return ""
		}}
	}
	return all
}

// builtText is the text of a view of a compiled function. What keeps it from
// being compiled is a comment in its place: it goes when the text is mended.
func (ps *Pages) builtText(ctx context.Context, of session.View, v view) (string, error) {
	if !ps.jobs.Trusted() {
		return "// Functions are compiled only in a workspace that is trusted.\n", nil
	}
	got, err := ps.jobs.BuildOf(ctx, of.Document, of.Func, v.code, nil)
	if err != nil {
		if ctx.Err() != nil || isProtocolError(err) {
			return "", err
		}
		_, msg, err := ps.jobs.Failure(ctx, worker.KindCompile, of.Func, err)
		return comment(msg), err
	}
	if !got.OK || got.Build == nil {
		return comment("This function cannot be compiled: " + got.Message), nil
	}
	if of.Name == session.CUDAView {
		ps.shown.keepKernels(of, kernelTexts{got.Build.CUDA, got.Kernels})
	}
	return v.built(got.Build), nil
}

func isProtocolError(err error) bool {
	_, ok := err.(*jsonrpc2.Error)
	return ok
}

// comment is a message as a text of MLIR or C++.
func comment(msg string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(msg, "\n") {
		b.WriteString("// " + escape.Comment(line) + "\n")
	}
	return b.String()
}

// showBuilt compiles a function, with progress, and shows a view of it; with a
// line, the kernel that the line became.
func (ps *Pages) showBuilt(ctx context.Context, args ViewArgs, token protocol.ProgressToken) (any, error) {
	if args.Line != nil && args.Func == "" {
		_, err := ps.s.OnPlace(args.URI, func(_ context.Context, p session.Place) (any, error) {
			args.Func = funcAt(p, *args.Line)
			return nil, nil
		})(ctx)
		if err != nil {
			return nil, err
		}
	}
	at := session.ViewAddress(args.View, args.URI, args.Func)
	if !ps.jobs.Trusted() {
		return ps.showView(ctx, at, nil) // its text is the refusal
	}
	ctx, done := ps.jobs.Start(ctx, token)
	if done == nil {
		return nil, jsonrpc2.Errorf(connection.RequestFailed, "%d functions are running already", job.MaxJobs)
	}
	defer done()
	title := "Compiling"
	if args.Func != "" {
		title += " @" + args.Func
	}
	bar := ps.jobs.Begin(ctx, token, title)
	got, err := ps.jobs.BuildOf(ctx, args.URI, args.Func, views[args.View].code, func(w worker.Progress) { bar.Report(w) })
	bar.End()
	ps.s.Flush(ctx)
	var selected *protocol.Range
	switch {
	case ctx.Err() != nil:
		return nil, protocol.ErrRequestCancelled
	case err != nil && isProtocolError(err):
		return nil, err
	case err == nil && got.OK && args.Line != nil && args.View == session.CUDAView:
		selected = kernelOf(got.Kernels, *args.Line+1)
	}
	return ps.showView(ctx, at, selected)
}

// funcAt is the function that a line, from 0, lies in; "" where it lies in none.
func funcAt(p session.Place, line int) string {
	for _, f := range p.Program().Funcs {
		span := f.Func.Op.Span
		if p.Src.Pos(span.Start).Line <= line && line <= p.Src.Pos(span.End).Line {
			return f.Func.Name
		}
	}
	return ""
}

// kernelOf is the place in the CUDA text of the kernel that a line, from 1, became;
// nil where it became none.
func kernelOf(kernels []worker.Kernel, line int) *protocol.Range {
	for _, k := range kernels {
		if k.First > 0 && slices.Contains(k.Lines, line) {
			return &protocol.Range{Start: protocol.Position{Line: uint32(k.First - 1)}, End: protocol.Position{Line: uint32(k.Last)}}
		}
	}
	return nil
}

// keptKernels bounds how many views have their kernels remembered.
const keptKernels = 8

// kernelTexts is what a view of CUDA text shows.
type kernelTexts struct {
	text    string
	kernels []worker.Kernel
}

// keepKernels remembers what a view shows, for its lenses and links.
func (l *followers) keepKernels(v session.View, k kernelTexts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kernels == nil || len(l.kernels) >= keptKernels {
		l.kernels = map[session.View]kernelTexts{}
	}
	v.File = ""
	l.kernels[v] = k
}

func (l *followers) kernelsOf(v session.View) kernelTexts {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.File = ""
	return l.kernels[v]
}

// KernelLenses returns a lens for each kernel of a view of CUDA text, which leads to the lines that it
// came from.
func (ps *Pages) KernelLenses(v session.View) ([]protocol.CodeLens, error) {
	out := []protocol.CodeLens{}
	for _, k := range ps.shown.kernelsOf(v).kernels {
		if k.First == 0 || len(k.Lines) == 0 {
			continue
		}
		arg, err := json.Marshal(RevealArgs{URI: v.Document, First: k.Lines[0] - 1, Last: k.Lines[len(k.Lines)-1] - 1})
		if err != nil {
			return nil, err
		}
		title := fmt.Sprintf("%s of the program · %s predicted · %s moved", feature.LineList(k.Lines), units.Time(k.PredictedNs), units.Bytes(k.ReadBytes+k.WrittenBytes))
		at := protocol.Position{Line: uint32(k.First - 1)}
		out = append(out, protocol.CodeLens{
			Range:   protocol.Range{Start: at, End: at},
			Command: protocol.Command{Title: title, Command: CommandReveal, Arguments: []protocol.LSPAny{arg}},
		})
	}
	return out, nil
}

var lineDirective = regexp.MustCompile(`^#line ([0-9]{1,9}) `)

// KernelLinks makes each #line of a view of CUDA text a link to that line.
func (ps *Pages) KernelLinks(v session.View) []protocol.DocumentLink {
	out := []protocol.DocumentLink{}
	row := uint32(0)
	for line := range strings.Lines(ps.shown.kernelsOf(v).text) {
		if m := lineDirective.FindStringSubmatch(line); m != nil {
			target := uri.URI(v.Document + "#L" + m[1])
			tip := "line " + m[1] + " of the program"
			out = append(out, protocol.DocumentLink{
				Range:   protocol.Range{Start: protocol.Position{Line: row}, End: protocol.Position{Line: row, Character: uint32(len("#line " + m[1]))}},
				Target:  &target,
				Tooltip: &tip,
			})
		}
		row++
	}
	return out
}

// CommandReveal is the command of lenses that lead to lines of a document.
const CommandReveal = "dmir.reveal"

// RevealArgs are the arguments of dmir.reveal: a document and lines of it, from 0.
// With a version the lines are those of that version, as a comparison names it.
type RevealArgs struct {
	URI      string `json:"uri"`
	First    int    `json:"first"`
	Last     int    `json:"last"`
	Version  string `json:"version,omitempty"`
	Function string `json:"function,omitempty"` // of versions of one function
}

// Reveal has the editor show lines of a document.
func (ps *Pages) Reveal(args RevealArgs) (connection.Work, error) {
	const most = 1<<31 - 2
	if args.URI == "" || args.First < 0 || args.Last < args.First || args.Last > most {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%s takes a document and lines, not %s to %s", CommandReveal, strconv.Itoa(args.First), strconv.Itoa(args.Last))
	}
	return func(ctx context.Context) (any, error) {
		if !ps.s.Features.ShowDocument {
			return nil, jsonrpc2.NewError(connection.RequestFailed, "the editor does not support window/showDocument")
		}
		lines := &protocol.Range{Start: protocol.Position{Line: uint32(args.First)}, End: protocol.Position{Line: uint32(args.Last + 1)}}
		if args.Version != "" {
			if err := ps.showVersion(ctx, args.URI, versionOf(args.Version, ""), args.Function, lines); err != nil {
				return nil, err
			}
			return session.Answer(args)
		}
		if err := ps.s.ShowDocument(ctx, args.URI, lines); err != nil {
			return nil, err
		}
		return session.Answer(args)
	}, nil
}
