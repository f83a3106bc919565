package scan

import (
	"context"
	"sync"

	"dmir/base/regular"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Symbol is an entry of a file's outline with its place in the unit of columns
// that the editor counts in.
type Symbol struct {
	Item       scope.Item // without its children
	Start, End source.Pos
}

// maxOutline is the largest file, in bytes, that is read for its outline, and
// maxKept how many symbols are remembered of all files together.
const (
	maxOutline = 48_000_000
	maxKept    = 200_000
)

// Outlines remembers the outlines of files until these change.
type Outlines struct {
	mu    sync.Mutex
	files map[string]outline
	kept  int // symbols in files
}

type outline struct {
	stamp   Stamp
	symbols []Symbol
}

// Of are the symbols of a file in textual order, its children behind each
// parent; none where it cannot be read.
func (o *Outlines) Of(f File, enc source.Encoding) []Symbol {
	o.mu.Lock()
	was, ok := o.files[f.Path]
	o.mu.Unlock()
	if ok && was.stamp == f.Stamp {
		return was.symbols
	}
	found := outline{f.Stamp, read(f, enc)}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.files == nil || o.kept+len(found.symbols) > maxKept {
		o.files, o.kept = map[string]outline{}, 0
	}
	o.kept += len(found.symbols) - len(o.files[f.Path].symbols)
	o.files[f.Path] = found
	return found.symbols
}

// Keep forgets all files but these.
func (o *Outlines) Keep(files []File) {
	there := make(map[string]bool, len(files))
	for _, f := range files {
		there[f.Path] = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for path, was := range o.files {
		if !there[path] {
			o.kept -= len(was.symbols)
			delete(o.files, path)
		}
	}
}

func read(f File, enc source.Encoding) []Symbol {
	if f.Stamp.Size > maxOutline {
		return nil
	}
	text, err := regular.ReadFile(f.Path, maxOutline)
	if err != nil {
		return nil
	}
	return Symbols(parse.File(source.New(f.Path, string(text))), enc)
}

// Symbols are the entries of the outline of a tree, children behind their
// parents.
func Symbols(f *ast.File, enc source.Encoding) []Symbol {
	var out []Symbol
	var add func([]scope.Item)
	add = func(items []scope.Item) {
		for _, it := range items {
			inner := it.Children
			it.Children = nil
			out = append(out, Symbol{it, f.Src.Encode(it.Span.Start, enc), f.Src.Encode(it.Span.End, enc)})
			add(inner)
		}
	}
	add(scope.Outline(f))
	return out
}

// All calls visit with the outline of each file, in order, until it returns
// false or ctx ends.
func (o *Outlines) All(ctx context.Context, files []File, enc source.Encoding, visit func(File, []Symbol) bool) {
	o.Keep(files)
	for _, f := range files {
		if ctx.Err() != nil || !visit(f, o.Of(f, enc)) {
			return
		}
	}
}
