package feature_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/program"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

// unfinished are texts as they are while someone types.
var unfinished = []string{
	"", "%", "%y = ", "#", "!", "\"", "\"dm.", "d", "dm.", "@", "^", ":", "// dm.", "}", "{", ")", "\xff\xfe",
	"func.func @f(%x: tensor<4x", "func.func @", "func.func @f(", "func.func @f(%a: ", "func.func @f() -> ", "module {", "module @m {\n  d",
	"func.func @f(%x: tensor<4xf32>) {\n  %y = dm.add %x, \n  return\n}\n",
	"func.func @f(%x: tensor<4xf32>) {\n  %y = dm.softmax %x {\n  return\n}\n",
	"func.func @f(%x: tensor<4xf32>) {\n  %y = dm.softmax %x {dim = \n}\n",
	"func.func @f(%x: tensor<4xf32>) {\n  %y = dm.copy %x : (tensor<4xf32>) -> tensor<4xf32, #dm.at<host, order = [\n}\n",
	"func.func @f(%x: tensor<4xf32>) {\n  %y = dm.kernel -> \n  return\n}\n",
	"func.func @f(%x: tensor<4xf32>) {\n^bb1(%q: \n  cf.br ^\n^\n}\n",
	"func.func @f(%x: tensor<4xf32>) {\n  %y:2 = \"dm.top_k\"(%x) <{\n  %z = dm.reduce add %, dims = [\n}\n// -----\n!t = \n#a = #dm.at<\nfunc.func @g(%é: !t) { dm.\n",
	"%a = dm.if %c : (tensor<i1>) -> tensor<4xf32> {\n  dm.yield %\n} else {\n  dm.yield \n}\n",
	"dm.dm.dm. : : -> -> = = , , ( [ { < \" ' @ ^ # ! % > } ] )",
	"!p = tuple<tensor<4xf32>, tuple<tensor<2x2xf32>>>\nfunc.func @f(%p: !p {dm.init = 1.0}, %x: tensor<4xf32>) -> (!p, tensor<4xf32>) {\n  %q = dm.add %p, %p : !p\n  %a, %b = dm.unpack %q : (!p) -> (tensor<4xf32>, tuple<tensor<2x2xf32>>)\n  %y = dm.matmul %p, %x : (!p, tensor<4xf32>) -> tensor<4xf32>\n  %z = dm.pack %x, %b : (tensor<4xf32>, tuple<tensor<2x2xf32>>) -> !p\n  return %z, %x : !p, tensor<4xf32>\n}\n",
	"func.func @g() -> () {\r\n\t%0 = dm.iota \r\n}\r\n",
	"dm.mesh @m {x = 2, y\nfunc.func @f(%x: tensor<4xf32, #dm.at<split = @m[{x:(1)2, ?}], partial = {\n  %y = dm.all_reduce add %x, axes = [\"x\n}\n",
	"dm.mesh @m {x = 99999999999999999999}\ndm.mesh @\n\"dm.mesh\"() <{axes = [\"x\", sizes = [}> : () -> ()\nfunc.func @f(%x: tensor<0x?x9223372036854775807xf32, #dm.at<dims = [n], split = @m[{x}, {x}, {y:(2)4}]>>) attributes {dm.mesh = @m",
}

// However broken a text is, every question can be asked at every place of it,
// and what is answered lies inside the text.
func TestEveryOffset(t *testing.T) {
	texts := append([]string{}, unfinished...)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(data).Files {
			if strings.HasSuffix(f.Name, "ir") && len(f.Data) < 4000 {
				texts = append(texts, string(f.Data))
			}
		}
	}
	for _, text := range texts {
		p := program.Load(source.New("in.dmir", text), program.Options{})
		for off := 0; off <= len(text); off++ {
			everything(t, p, off)
		}
		// And of what is there when typing has come this far.
		for off := 0; off < len(text); off += 7 {
			everything(t, program.Load(source.New("in.dmir", text[:off]), program.Options{}), off)
		}
	}
}

func FuzzEverything(f *testing.F) {
	for i, text := range unfinished {
		f.Add(text, i*5)
	}
	f.Fuzz(func(t *testing.T, text string, off int) {
		if off >= 0 && off <= len(text) {
			everything(t, program.Load(source.New("in.dmir", text), program.Options{}), off)
		}
	})
}

func everything(t *testing.T, p *program.Program, off int) {
	t.Helper()
	text := p.Src.Text()
	inside := func(what string, s source.Span) {
		if s.Start < 0 || s.End < s.Start || s.End > len(text) {
			t.Errorf("%s at %d of %q: %v", what, off, text, s)
		}
	}
	c := feature.Complete(p, off)
	inside("completion", c.Span)
	if c.Span.End != off && len(c.Items) > 0 {
		t.Errorf("completion at %d of %q replaces %v", off, text, c.Span)
	}
	if s := feature.SignatureAt(p, off); s != nil {
		for _, q := range s.Params {
			if q.Start < 0 || q.End < q.Start || q.End > len(s.Label) {
				t.Errorf("parameter %v of %q", q, s.Label)
			}
		}
		if s.Active >= len(s.Params) {
			t.Errorf("%d of %q is active", s.Active, s.Label)
		}
	}
	spans := feature.Selections(p, off)
	for i, s := range spans {
		inside("selection", s)
		if i > 0 && (s.Start > spans[i-1].Start || s.End < spans[i-1].End || s == spans[i-1]) {
			t.Errorf("selections at %d of %q: %v", off, text, spans)
		}
	}
	for _, s := range feature.TypeDefinition(p, off) {
		inside("type definition", s)
	}
	end := 0
	for k := range feature.Tokens(p, source.Span{Start: off, End: min(off+20, len(text))}) {
		inside("token", k.Span)
		if k.Span.Start < end || strings.Contains(p.Src.Slice(k.Span), "\n") {
			t.Errorf("tokens at %d of %q: %v after %d", off, text, k, end)
		}
		end = k.Span.End
	}
	for _, e := range feature.FormatRange(p.Tree, source.Span{Start: off, End: off}) {
		inside("edit", e.Span)
	}
}
