package print_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// load lowers a text of one section that has no errors.
func load(t *testing.T, name, text string) *ir.Module {
	t.Helper()
	f := parse.File(source.New(name, text))
	m := lower.File(f)[0]
	bad := false
	for _, list := range [][]diag.Diagnostic{f.Diags, m.Diags, verify.Module(m)} {
		for _, d := range list {
			if d.Severity == diag.Error {
				line, col := m.Src.Human(d.Span.Start)
				t.Errorf("%s:%d:%d: [%s] %s (%s)", name, line, col, d.Code, d.Message, d.Help)
				bad = true
			}
		}
	}
	if bad {
		t.Fatalf("text:\n%s", text)
	}
	return m
}

type program struct{ name, text string }

// programs are the examples of the registry, those in testdata and those of
// the project.
func programs(t testing.TB) []program {
	var out []program
	for _, d := range op.All() {
		out = append(out, program{d.Name, d.Example})
	}
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range archives {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			out = append(out, program{f.Name, string(f.Data)})
		}
	}
	examples, err := filepath.Glob("../../examples/*.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, program{filepath.Base(path), string(text)})
	}
	return out
}

// TestRoundTrip prints every program in both forms and reads it back; printing
// what was read gives the same text again.
func TestRoundTrip(t *testing.T) {
	for _, p := range programs(t) {
		t.Run(p.name, func(t *testing.T) {
			roundTrip(t, p)
		})
	}
}

func roundTrip(t *testing.T, p program) {
	t.Helper()
	m := load(t, p.name, p.text)
	for form, printed := range map[string]func(*ir.Module, ...print.Option) (string, error){"generic": print.Generic, "pretty": print.Pretty, "source": print.Source} {
		text, err := printed(m, print.Locations)
		if err != nil {
			t.Fatal(err)
		}
		back := load(t, form, text)
		if d := print.Diff(m, back); d != "" {
			t.Errorf("%s: %s\n%s", form, d, text)
		}
		again, err := printed(back, print.Locations)
		if err != nil {
			t.Fatal(err)
		}
		if again != text {
			t.Errorf("%s is not stable:\n%s\n%s", form, text, again)
		}
	}
}

// What a location holds cannot turn or hide the text around it; read again, it is the same.
func TestHostileLocation(t *testing.T) {
	m := load(t, "hostile", "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n"+
		"  %0 = dm.add %x, %x : tensor<2xf32> loc(fused<\"m\u2066\">[\"e\u202evil\u0007é \\\"\"(\"a\u200b.py\":1:2)])\n  return %0 : tensor<2xf32>\n}\n")
	text, err := print.Source(m, print.Locations)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && escape.Control(r) }) {
		t.Errorf("%q", text)
	}
	for _, part := range []string{`"m\E2\81\A6"`, `"e\E2\80\AEvil\07é \22"`, `"a\E2\80\8B.py":1:2`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in\n%s", part, text)
		}
	}
	if again, err := print.Source(load(t, "again", text), print.Locations); err != nil || again != text {
		t.Errorf("%v\n%s\nbecame\n%s", err, text, again)
	}
}

// TestDecorated is TestRoundTrip with what may stand around any op: a dictionary
// of attributes, a location, and foreign ops with several results, regions,
// blocks and successors.
func TestDecorated(t *testing.T) {
	const dict = ` {a.b = 1 : i8, "c d" = [#x.y<1 2>, @q::@"r s", 1.5e-3 : f32, unit, {k}, dense<[1, 2]> : tensor<2xi8>, affine_map<(d0) -> (d0 + 1)>, "\22\\"], z}`
	const loc = ` loc(fused<"m">["a.py":1:2, callsite("f" at unknown)])`
	const foreign = `
  %foreign:3 = "x.y"() ({
  ^bb0(%a: f32, %b: tensor<?xf32>):
    "x.br"(%a)[^bb1] : (f32) -> ()
  ^bb1:
    %w:2 = "x.z"() : () -> (f32, !x.t<"a>">)
    "x.w"(%w#1, %w) : (!x.t<"a>">, f32) -> ()
  }, {
  }) {n} : () -> (f32, (f32) -> f32, tuple<f32, i3>) loc("n")
  "x.u"(%foreign#2) : (tuple<f32, i3>) -> ()
`
	decorated := 0
	for _, d := range op.All() {
		lines := strings.Split(d.Example, "\n")
		for i, l := range lines {
			head, types, ok := strings.Cut(l, " : ")
			if strings.Contains(head, "= dm.") && ok && !strings.HasSuffix(l, "{") {
				lines[i] = head + dict + " : " + types + loc
				decorated++
			}
		}
		text := strings.Join(lines, "\n")
		end := strings.LastIndex(text, "\n  return")
		t.Run(d.Name, func(t *testing.T) { roundTrip(t, program{d.Name, text[:end] + foreign + text[end:]}) })
	}
	if decorated < len(op.All()) {
		t.Errorf("only %d ops were decorated", decorated)
	}
}

// TestClone holds that a copy is equal and shares no ops, values or blocks.
func TestClone(t *testing.T) {
	for _, p := range programs(t) {
		t.Run(p.name, func(t *testing.T) {
			m := load(t, p.name, p.text)
			before, err := print.Generic(m)
			if err != nil {
				t.Fatal(err)
			}
			c := m.Clone()
			if d := print.Diff(m, c); d != "" {
				t.Fatal(d)
			}
			mine := map[any]bool{}
			ir.Walk(m.Ops, func(o *ir.Op) bool {
				mine[o] = true
				for _, v := range o.Results {
					mine[v] = true
				}
				return true
			})
			ir.Walk(c.Ops, func(o *ir.Op) bool {
				if mine[o] {
					t.Errorf("%s is shared", o.Name)
				}
				for i, v := range o.Operands {
					if mine[v] {
						t.Errorf("operand %s of %s is shared", v.Name, o.Name)
					}
					if !uses(v, o, i) {
						t.Errorf("operand %s of %s does not know its use", v.Name, o.Name)
					}
				}
				o.SetAttr("test.touched", nil)
				return true
			})
			if after, _ := print.Generic(m); after != before {
				t.Error("changing the copy changed the original")
			}
		})
	}
}

func uses(v *ir.Value, o *ir.Op, i int) bool {
	for _, u := range v.Uses {
		if u.Op == o && u.Index == i {
			return true
		}
	}
	return false
}

// TestMLIR gives the generic form to mlir-opt and reads what that prints, in
// generic form and in its own.
func TestMLIR(t *testing.T) {
	const tool = "mlir-opt-22"
	need.Tool(t, tool, "apt-get install mlir-22-tools")
	var modules []*ir.Module
	var texts []string
	all := programs(t)
	for _, p := range all {
		m := load(t, p.name, p.text)
		text, err := print.Generic(m)
		if err != nil {
			t.Fatal(err)
		}
		modules, texts = append(modules, m), append(texts, text)
	}
	for _, flags := range [][]string{{"--mlir-print-op-generic"}, nil} {
		cmd := exec.Command(tool, append(flags, "--split-input-file", "--allow-unregistered-dialect")...)
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = strings.NewReader(strings.Join(texts, "// -----\n")), &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		sections := strings.Split(string(out), "// -----\n")
		if len(sections) != len(all) {
			t.Fatalf("%d sections in, %d out", len(all), len(sections))
		}
		for i, p := range all {
			t.Run(p.name, func(t *testing.T) {
				if d := print.Diff(modules[i], load(t, tool, sections[i])); d != "" {
					t.Errorf("%s\n%s", d, sections[i])
				}
			})
		}
	}
}
