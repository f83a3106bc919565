package program_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dmir/analysis/config"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/ir/irtest"
	"dmir/dialect/lower"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const good = `
func.func @f(%x: tensor<?x4xf32, #dm.at<dims = [n]>>) -> tensor<?x4xf32, #dm.at<dims = [n]>> {
  %0 = dm.exp %x : tensor<?x4xf32, #dm.at<dims = [n]>>
  return %0 : tensor<?x4xf32, #dm.at<dims = [n]>>
}
`

// Whatever the text, Load gives a program, and one error at least where
// something is wrong.
func TestLoadBadInput(t *testing.T) {
	cases := []struct{ name, text, want string }{ // want: the code of the first error
		{"not text", "\x7fELF\x00\x00\x01", "DM001"},
		{"half an op", "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = dm.exp %x :", ""},
		{"no such value", "func.func @f() {\n  %0 = dm.exp %y : tensor<4xf32>\n  return\n}\n", ""},
		{"shapes that do not fit", "func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {\n  %0 = dm.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>\n  return\n}\n", "DM110"},
		{"no such op", "func.func @f(%x: tensor<4xf32>) {\n  %0 = dm.expp %x : tensor<4xf32>\n  return\n}\n", "DM166"},
		{"a product of sizes that overflows", "func.func @f(%x: tensor<9223372036854775807x9xf32>) {\n  %0 = dm.exp %x : tensor<9223372036854775807x9xf32>\n  return\n}\n", ""},
		{"empty", "", "none"},
		{"only a comment", "// nothing\n", "none"},
		{"good", good, "none"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := program.Load(source.New("in.dmir", c.text), program.Options{})
			first := "none"
			for _, d := range p.Diags {
				if d.Severity == diag.Error {
					first = d.Code
					break
				}
			}
			if (first == "none") != (c.want == "none") || c.want != "" && first != c.want {
				t.Errorf("first error is %s, want %s: %+v", first, c.want, p.Diags)
			}
			if p.HasErrors() != (first != "none") {
				t.Error("HasErrors disagrees")
			}
			for i, d := range p.Diags {
				if i > 0 && d.Span.Start < p.Diags[i-1].Span.Start {
					t.Errorf("diagnostic %d is out of order", i)
				}
			}
			if p.Target == nil || p.Config == nil || p.Bind == nil || p.Names() == nil {
				t.Error("something that is always there is missing")
			}
		})
	}
}

// An op that breaks a rule has no cost; those around it keep theirs.
func TestBrokenOpHidesNothing(t *testing.T) {
	p := program.Load(source.New("in.dmir", `
func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) -> tensor<4xf32> {
  %0 = dm.exp %x : tensor<4xf32>
  %1 = dm.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  %2 = dm.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dm.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}`), program.Options{})
	if len(p.Funcs) != 2 || len(p.Funcs[0].Entries) != 3 {
		t.Fatalf("%d functions", len(p.Funcs))
	}
	var known []string
	for _, e := range p.Funcs[0].Entries {
		known = append(known, fmt.Sprint(e.Known, e.Moved()))
	}
	if got := strings.Join(known, ", "); got != "true 32, false 0, true 48" {
		t.Errorf("got %s", got)
	}
	if f := p.Func("g"); f == nil || !f.Time(p.Target).Known {
		t.Error("the other function has no cost")
	}
}

// The machine and the sizes of the caller win over the configuration's.
func TestOptions(t *testing.T) {
	conf, diags := config.Parse(source.New("dmir.toml", "target = \"box\"\n[bind]\nn = 2\nm = 3\n[machines.box]\nbase = \"a100-80\"\n"))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	p := program.Load(source.New("in.dmir", good), program.Options{Config: conf})
	if p.Target.Name != "box" || p.Funcs[0].Moved().String() != "64" {
		t.Errorf("configured: %s, %s", p.Target.Name, p.Funcs[0].Moved())
	}
	h100, _ := machine.Lookup("h100")
	p = program.Load(source.New("in.dmir", good), program.Options{Config: conf, Target: h100, Bind: map[string]int64{"n": 10}})
	if p.Target != h100 || p.Funcs[0].Moved().String() != "320" || p.Bind["m"] != 3 {
		t.Errorf("chosen: %s, %s, %v", p.Target.Name, p.Funcs[0].Moved(), p.Bind)
	}
	if conf.Bind["n"] != 2 {
		t.Error("the configuration was changed")
	}
}

// Sections cut by "// -----" are modules of their own, and lines count through.
func TestSections(t *testing.T) {
	p := program.Load(source.New("in.dmir", good+"// -----"+good), program.Options{})
	if p.HasErrors() || len(p.Modules) != 2 || len(p.Funcs) != 2 {
		t.Fatalf("%d modules, %d functions, %v", len(p.Modules), len(p.Funcs), p.Diags)
	}
	if a, b := p.Funcs[0].Entries[0].Line(), p.Funcs[1].Entries[0].Line(); a != 3 || b != 8 {
		t.Errorf("lines %d and %d, want 3 and 8", a, b)
	}
}

// A program is safe for concurrent readers.
func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := program.Load(source.New("in.dmir", good+strings.Repeat("// x\n", i)), program.Options{})
			var inner sync.WaitGroup
			for range 4 {
				inner.Go(func() {
					f := p.Funcs[0]
					f.Time(p.Target)
					if f.Find(f.Entries[0].Op) != f.Entries[0] || p.Names() == nil {
						t.Error("not found")
					}
				})
			}
			inner.Wait()
		})
	}
	wg.Wait()
}

func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	const functions, ops = 200, 50
	for i := range functions {
		fmt.Fprintf(&text, "func.func @f%d(%%0: tensor<8x512x1024xf16>) -> tensor<8x512x1024xf16> {\n", i)
		for j := range ops {
			fmt.Fprintf(&text, "  %%%d = dm.add %%%d, %%0 : tensor<8x512x1024xf16>\n", j+1, j)
		}
		fmt.Fprintf(&text, "  return %%%d : tensor<8x512x1024xf16>\n}\n", ops)
	}
	src := text.String()
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if p := program.Load(source.New("in.dmir", src), program.Options{}); p.HasErrors() {
			b.Fatal(p.Diags[0])
		}
	}
}

// Every file of other projects loads, whatever its dialects: its cost can be asked
// for, and its names resolve to the same definitions everywhere.
func TestConformanceFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "conformance")
	_, missing := os.Stat(root)
	need.OK(t, missing)
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".mlir" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		p := program.Load(source.New(path, string(text)), program.Options{})
		for _, f := range p.Funcs {
			f.Time(p.Target)
		}
		agree(t, p)
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files, %v", files, err)
	}
}

// agree holds that lowering and the index of names find the same definition for
// each use.
func agree(t *testing.T, p *program.Program) {
	t.Helper()
	modules := p.Modules
	if p.Imported {
		for _, m := range modules {
			irtest.InOrder(t, m)
		}
		modules = lower.File(p.Tree)
	}
	for _, m := range modules {
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			for i, v := range o.Operands {
				span := origin.OperandSpan(o, i)
				name, _, ok := p.Names().At(span.Start)
				switch known := v.Op != nil || v.Block != nil; {
				case !ok:
					t.Errorf("%s: %s is not in the index", p.Src.Path, p.Src.Slice(span))
				case known && !name.DefinedAt(v.Span.Start):
					t.Errorf("%s: %s at %v is defined at %v, in the index at %v", p.Src.Path, p.Src.Slice(span), span, v.Span, name.Defs())
				case !known && name.Defined() && !o.Verbatim:
					t.Errorf("%s: %s at %v has a definition in the index only", p.Src.Path, p.Src.Slice(span), span)
				}
			}
			return true
		})
	}
}

func TestDefinitionsAgree(t *testing.T) {
	paths, _ := filepath.Glob("../../examples/*.dmir")
	more, _ := filepath.Glob("../../testdata/programs/*.dmir")
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, program.Load(source.New(path, string(text)), program.Options{}))
	}
}
