package program

import (
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/shard"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// The shardings that follow an edit are those of the new text, whatever was known before.
func TestShardingsFollowEdits(t *testing.T) {
	text := layers(60)
	src := source.New("x.dmir", text)
	p := Load(src, Options{})
	const sharded = ", #dm.at<split = @pod[{}, {model}]>"
	edit := func(at, end int, in string) {
		t.Helper()
		next := p.Src.Edit(at, end, in)
		if !p.Splice(next, parse.Change{Start: at, End: end, Length: len(in)}) {
			p = Load(next, Options{})
		}
		fresh, problem := shard.Propagate(p.Modules[0], p.Funcs[0].Func)
		kept, again := p.Funcs[0].Shardings()
		if (problem == nil) != (again == nil) || (fresh == nil) != (kept == nil) {
			t.Fatalf("%v and %v", problem, again)
		}
		if fresh == nil {
			return
		}
		ir.WalkValues(p.Funcs[0].Func.Body.Ops, func(v *ir.Value) {
			a, s := fresh.Of(v)
			b, r := kept.Of(v)
			if !a.Equal(b) || s != r {
				t.Fatalf("%s is %v, stated %v; after the edit %v, %v", v.Name, a, s, b, r)
			}
		})
	}
	place := func(of string) int {
		text := p.Src.Text()
		at := strings.Index(text, of)
		return at + strings.Index(text[at:], "-> tensor<64x512xf16") + len("-> tensor<64x512xf16")
	}
	for _, of := range []string{"%u = ", "%h5 = ", "%y9 = ", "%h5 = "} {
		at := place(of)
		edit(at, at, sharded)
		edit(at, at+len(sharded), "")
	}
	const attribute = " {dm.sharding = #dm.at<split = @pod[{}, {model}]>}"
	for _, of := range []string{"%u = ", "%h5 = ", "%y9 = ", "%h5 = "} {
		text := p.Src.Text()
		at := strings.Index(text, of)
		at += strings.Index(text[at:], " : ")
		edit(at, at, attribute)
		edit(at, at+len(attribute), "")
	}
	line := strings.Index(p.Src.Text(), "  %u = ")
	end := line + strings.Index(p.Src.Text()[line:], "\n") + 1
	gone := p.Src.Text()[line:end]
	edit(line, end, "")
	edit(line, line, gone)
	at := strings.Index(p.Src.Text(), "{model}, {}")
	edit(at, at+len("{model}, {}"), "{}, {model}")
	edit(strings.Index(p.Src.Text(), "data = 4"), strings.Index(p.Src.Text(), "data = 4")+8, "data = 2")
}
