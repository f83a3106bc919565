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
// as Bad ops, and File.Diags says why, in the order of the text.
func File(src *source.File) *ast.File {
	f := &ast.File{Src: src}
	if d, bad := unreadable(src.Text()); bad {
		f.Diags = []diag.Diagnostic{d}
		return f
	}
	s := newScanner(src.Text())
	f.Items = s.items()
	spread(s.ops, func(d *detailer, ops []*ast.Op) {
		for _, op := range ops {
			d.op(op, src.Text()[op.Off:op.Off+int(op.Len)])
		}
	})
	f.Diags = collect(s.ops)
	return f
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

// spread runs work over the ops on all cores; few ops stay on this one. A panic
// of work is raised here, where the caller can keep it from ending the process.
func spread(ops []*ast.Op, work func(*detailer, []*ast.Op)) {
	const batch = 512
	workers := min(runtime.GOMAXPROCS(0), len(ops)/batch)
	if workers <= 1 {
		work(new(detailer), ops)
		return
	}
	batches := make(chan []*ast.Op)
	var wg sync.WaitGroup
	var crash atomic.Pointer[any]
	for range workers {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					crash.Store(&r)
					for range batches { // nobody is to wait for this goroutine
					}
				}
			}()
			d := new(detailer)
			for b := range batches {
				work(d, b)
			}
		})
	}
	for len(ops) > 0 {
		n := min(batch, len(ops))
		batches <- ops[:n]
		ops = ops[n:]
	}
	close(batches)
	wg.Wait()
	if r := crash.Load(); r != nil {
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
