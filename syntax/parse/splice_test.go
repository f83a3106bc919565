package parse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/syntax/source"
)

// TestSpliceEqualsFile edits programs at random: where a change can be put into
// the tree of the text before it, the tree is the one that reading the text
// afresh gives; and the changes that people make in functions can.
func TestSpliceEqualsFile(t *testing.T) {
	var files []*source.File
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, source.New(path, string(text)))
	}
	files = append(files, source.New("wrapped", spliceWrapped), source.New("generic", spliceGeneric))
	if inputs, err := readCorpus(); err == nil { // the examples are there in any case
		files = append(files, inputs...)
	}

	pieces := []string{
		"", "", "x", "1", " ", "\n", "\n  ", "}", "{", "(", ")", "<", ">", "\"", "%0", "%", "=", ":", "->", "// ", "// c\n", "é", "\r\n",
		"%z = dm.add %x, %y : f32\n", "\n    %z = dm.exp %z : f32\n", "dm.", "func.func @a() {\n", "^bb1:\n", ",", "loc(\"q\")", "return",
		"%k = dm.kernel -> f32 {\n dm.yield %k : f32\n}\n", "{a = 1}", "#a = 1\n", "// -----\n", "[", "]",
	}
	rnd := newRand(7)
	spliced, all := 0, 0
	for i, file := range files {
		if file.Len() > 40_000 || i > len(paths)+2 && i%5 != 0 {
			continue
		}
		src := file
		tree := File(src)
		for range 60 {
			text := src.Text()
			at := rnd.IntN(len(text) + 1)
			cut := min(len(text), at+rnd.IntN(4))
			if rnd.IntN(6) == 0 {
				cut = min(len(text), at+rnd.IntN(300))
			}
			for at > 0 && !startsRune(text, at) {
				at--
			}
			for cut < len(text) && !startsRune(text, cut) {
				cut++
			}
			in := pieces[rnd.IntN(len(pieces))]
			c := Change{at, cut, len(in)}
			next := src.Edit(at, cut, in)
			fresh := File(next)
			all++
			p, ok := Replan(tree, next, c)
			if !ok {
				if rnd.IntN(12) == 0 {
					src, tree = next, fresh
				}
				continue
			}
			spliced++
			p.Apply(tree)
			if diff := compare(fresh, tree); diff != "" {
				t.Fatalf("%s: replacing [%d,%d) by %q:\n%s\n--- before\n%s\n--- after\n%s", file.Path, at, cut, in, diff, around(text, at), around(next.Text(), at))
			}
			src = next
		}
	}
	t.Logf("%d of %d changes were spliced", spliced, all)
	if spliced*5 < all {
		t.Error("fewer than one change in five could be put into the tree")
	}
}

// What a change defines besides values.
func TestSplicePlain(t *testing.T) {
	src := source.New("f.dmir", "func.func @f(%a: f32) {\n  %0 = dm.exp %a : f32\n  return\n}\n")
	at := strings.Index(src.Text(), "  %0")
	for in, plain := range map[string]bool{"  %1 = dm.exp %a : f32\n": true, "  \"a.b\"() : () -> ()\n": true, "  \"func.func\"() <{sym_name = \"g\"}> : () -> ()\n": false} {
		p, ok := Replan(File(src), src.Edit(at, at, in), Change{at, at, len(in)})
		if !ok || p.Plain() != plain {
			t.Errorf("%q: spliced %t, want plain %t", in, ok, plain)
		}
	}
}

func around(text string, at int) string {
	lo, hi := max(0, at-300), min(len(text), at+300)
	return strings.ToValidUTF8(text[lo:hi], "?")
}

const (
	spliceWrapped = "module @m {\n  func.func @f(%a: f32) -> f32 {\n    %0 = dm.exp %a : f32\n    %1 = dm.kernel -> f32 {\n      %2 = dm.exp %0 : f32\n      dm.yield %2 : f32\n    }\n    return %1 : f32\n  } loc(\"x\")\n  func.func @g() {\n    return\n  }\n} loc(#l)\n#l = loc(\"y\")\n"
	spliceGeneric = "\"func.func\"() <{function_type = (f32) -> f32, sym_name = \"f\"}> ({\n^bb0(%a: f32):\n  %0 = \"dm.exp\"(%a) : (f32) -> f32\n  %1 = \"dm.exp\"(%0) : (f32) -> f32\n  \"func.return\"(%1) : (f32) -> ()\n}) {dm.x = @f} : () -> ()\nfunc.func @h() {\n  return\n}\n"
)
