package scope

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"dmir/syntax/parse"
	"dmir/syntax/source"

	"github.com/google/go-cmp/cmp"
)

// calls are the ops whose callee has to exist.
func calls(op string) bool { return op == "func.call" || op == "call" }

const spliced = `#l = loc("x")
dm.mesh @m {x = 2, y = 4}
func.func @d(%a: tensor<4xf32, #dm.at<split = @m[{x}]>>) -> tensor<4xf32> attributes {dm.mesh = @m} {
  %0 = dm.reshard %a : (tensor<4xf32, #dm.at<split = @m[{x}]>>) -> tensor<4xf32, #dm.at<split = @n[{x}], partial = {y, z}>>
  %1 = dm.all_reduce add %0, axes = ["x", "y"] : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @f(%a: f32, %b: !t) -> f32 {
  %0 = dm.exp %a : f32
  %1:2 = "t.two"(%0) {x = #l} : (f32) -> (f32, f32)
  %2 = dm.kernel -> f32 {
    %3 = dm.add %1#0, %1#1 : f32
    %z = dm.exp %3 : f32
    dm.yield %z : f32
  }
  %4 = scf.for %i = %2 to %b { scf.yield %i : f32 }
  "t.branch"(%4) ({
  ^bb0(%q: f32):
    %5 = dm.exp %q : f32
    "t.br"()[^bb1] : () -> ()
  ^bb1:
    "t.end"(%5, %4) : (f32, f32) -> ()
  }) : (f32) -> ()
  %6 = func.call @g(%4) : (f32) -> f32
  call @gg() : () -> ()
  %7 = dm.add %6, %nowhere : f32
  return %7 : f32
} loc(#l)
func.func private @g(%x: f32) -> f32
`

// TestSpliceEqualsBuild edits programs at random: where the index can follow a
// change, it is the one of the text after it.
func TestSpliceEqualsBuild(t *testing.T) {
	files := []*source.File{source.New("names", spliced), source.New("names", spliced), source.New("names", spliced)}
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, source.New(path, string(text)))
	}
	pieces := []string{
		"", "", "0", "1", "2", "%0", "%1", "%4", "%z", "%q", "%nowhere", "#1", ":2", " ", "\n", "#l", "!t", "(", ")", ",", "dm.", "t.",
		"%1 = dm.exp %0 : f32\n", "%nowhere = dm.exp %9 : f32\n", "\n  %5 = dm.exp %7 : f32\n", "%4, %4 = t.two\n", "%i = dm.exp %z : f32\n",
		"\n  %2 = dm.kernel -> f32 {\n    %1 = dm.exp %0 : f32\n    dm.yield %1 : f32\n  }\n", "call @q() : () -> ()\n", "// ", "^bb1", "^bb2:",
		"@m", "{x}", "x", "[", "{", "}", "axes = [\"x\"]", "split = @m[{z}]", "  %0 = dm.partition_id axes = [y, w] : tensor<i64>\n",
	}
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		for _, file := range files {
			src := file
			tree := parse.File(src)
			x := Build(tree, calls)
			var done []string
			for range 120 {
				text := src.Text()
				at := rnd.IntN(len(text) + 1)
				cut := min(len(text), at+rnd.IntN(3))
				if rnd.IntN(5) == 0 { // a line
					at = strings.LastIndexByte(text[:at], '\n') + 1
					cut = at + len(text[at:][:strings.IndexByte(text[at:]+"\n", '\n')])
					cut = min(cut+1, len(text))
				}
				for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
					at--
				}
				for cut < len(text) && !utf8.RuneStart(text[cut]) {
					cut++
				}
				in := pieces[rnd.IntN(len(pieces))]
				next := src.Edit(at, cut, in)
				done = append(done, fmt.Sprintf("[%d,%d) %q by %q", at, cut, text[at:cut], in))
				p, ok := parse.Replan(tree, next, parse.Change{Start: at, End: cut, Length: len(in)})
				if ok {
					p.Apply(tree)
					ok = x.Splice(p, next)
				}
				if !ok {
					if rnd.IntN(3) > 0 {
						next = src
						done = done[:len(done)-1]
					}
					tree = parse.File(next)
					x, src = Build(tree, calls), next
					continue
				}
				src = next
				if diff := cmp.Diff(describe(Build(parse.File(src), calls)), describe(x)); diff != "" {
					t.Fatalf("seed %d, %s (-want +got):\n%s\nchanges:\n%s\n--- after\n%s", seed, file.Path, diff, strings.Join(done, "\n"), src.Text())
				}
				if len(done)%30 == 0 {
					src, done = file, nil
					tree = parse.File(src)
					x = Build(tree, calls)
				}
			}
		}
	}
}

// describe prints all that an index holds.
func describe(x *Index) []string {
	var out []string
	for _, n := range x.Names() {
		out = append(out, fmt.Sprintf("%s %s defs %v uses %v", n.Kind, n.Text, n.Defs(), n.Uses()))
	}
	for _, o := range x.occs {
		n, span, ok := x.At(o.start())
		if n == nil {
			n = &Name{}
		}
		out = append(out, fmt.Sprint(o.span(), n.Text, span, ok))
	}
	for _, d := range x.Diags {
		out = append(out, fmt.Sprint(d))
	}
	return out
}
