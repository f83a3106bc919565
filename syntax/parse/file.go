package parse

import (
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// maxDiags is how many diagnostics of a file are shown; all are on the ops.
const maxDiags = 1000

// maxFile is where positions relative to an op stop fitting in 32 bits.
const maxFile = 1<<31 - 1

// File reads a whole text. It never fails: what cannot be read is in the tree
// as Bad ops, and File.Diags has the reasons, in the order of the text.
func File(src *source.File) *ast.File {
	f := &ast.File{Src: src}
	if d, bad := unreadable(src.Text()); bad {
		f.Diags, f.Unreadable = []diag.Diagnostic{d}, true
		return f
	}
	s := read(f, src.Text(), false)
	if s.crooked { // a "}" is missing: the indentation tells which
		f.Crooked = true
		s = read(f, src.Text(), true)
	}
	f.Diags = collect(s.ops)
	return f
}

// read makes the items of f from its text.
func read(f *ast.File, text string, byIndent bool) *scanner {
	s := newScanner(text)
	s.byIndent = byIndent
	details := pool{work: func(d *detailer, op *ast.Op) { d.op(op, text[op.Off:op.Off+int(op.Len)]) }}
	s.done = details.add
	f.Items = s.items()
	details.wait()
	return s
}

// unreadable reports why a text is not one.
func unreadable(text string) (diag.Diagnostic, bool) {
	if len(text) >= maxFile {
		return newDiag("DM003", 0, 1, "the file is larger than 2 GiB"), true
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return newDiag("DM001", i, i+1, "the file is not text: it holds a NUL byte at offset %d", i), true
	}
	if !utf8.ValidString(text) {
		i := 0
		for i < len(text) {
			r, n := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return newDiag("DM001", i, i+1, "the file is not text: it is not valid UTF-8 at offset %d", i), true
	}
	return diag.Diagnostic{}, false
}

// pool runs the second stage on all cores, while the first goes on. A panic there
// is raised in wait, where the caller can keep it from ending the process.
type pool struct {
	work    func(*detailer, *ast.Op)
	batch   []*ast.Op
	batches chan []*ast.Op // nil while there are no workers
	workers sync.WaitGroup
	crash   atomic.Pointer[any]
}

const (
	batchSize = 512 // ops; fewer are not worth another goroutine
	queued    = 64  // batches that the first stage may be ahead
)

// add has op worked on, now or in wait.
func (p *pool) add(op *ast.Op) {
	p.batch = append(p.batch, op)
	if len(p.batch) == batchSize {
		if p.batches == nil {
			p.start()
		}
		p.batches <- p.batch
		p.batch = make([]*ast.Op, 0, batchSize)
	}
}

func (p *pool) start() {
	p.batches = make(chan []*ast.Op, queued)
	for range runtime.GOMAXPROCS(0) {
		p.workers.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					p.crash.Store(&r)
					for range p.batches { // so that add never blocks
					}
				}
			}()
			d := new(detailer)
			for b := range p.batches {
				for _, op := range b {
					p.work(d, op)
				}
			}
		})
	}
}

// wait returns when all ops that were added are done.
func (p *pool) wait() {
	if p.batches != nil {
		close(p.batches)
	}
	d := new(detailer)
	for _, op := range p.batch {
		p.work(d, op)
	}
	p.workers.Wait()
	if r := p.crash.Load(); r != nil {
		panic(*r)
	}
}

// shift moves a diagnostic by so many bytes.
func shift(d diag.Diagnostic, by int) diag.Diagnostic {
	d.Span.Start += by
	d.Span.End += by
	if len(d.Related) > 0 {
		d.Related = slices.Clone(d.Related)
		for i := range d.Related {
			d.Related[i].Span.Start += by
			d.Related[i].Span.End += by
		}
	}
	return d
}

// collect gathers the diagnostics of all ops, made absolute.
func collect(ops []*ast.Op) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, op := range ops {
		for _, d := range op.Diags {
			out = append(out, shift(d, op.Off))
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Span.Start < out[j].Span.Start })
	if len(out) > maxDiags {
		rest := out[maxDiags]
		out = append(out[:maxDiags:maxDiags], newDiag("DM004", rest.Span.Start, rest.Span.End, "%d more syntax errors from here on are not shown", len(out)-maxDiags))
	}
	return out
}
