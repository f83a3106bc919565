package lower_test

import (
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// TestExamples lowers and verifies the example of every op of the registry.
func TestExamples(t *testing.T) {
	for _, d := range op.All() {
		t.Run(d.Name, func(t *testing.T) {
			f := parse.File(source.New(d.Name+".dmir", d.Example))
			for _, m := range lower.File(f) {
				for _, list := range [][]diag.Diagnostic{f.Diags, m.Diags, verify.Module(m)} {
					for _, d := range list {
						line, col := m.Src.Human(d.Span.Start)
						t.Errorf("%d:%d: %s[%s]: %s (%s)", line, col, d.Severity, d.Code, d.Message, d.Help)
					}
				}
			}
		})
	}
}

// load lowers a text whose modules have no errors.
func load(t *testing.T, text string) []*ir.Module {
	t.Helper()
	ms := lower.File(parse.File(source.New("test.dmir", text)))
	for _, m := range ms {
		for _, d := range append(m.Diags, verify.Module(m)...) {
			if d.Severity == diag.Error {
				t.Fatalf("[%s] %s\n%s", d.Code, d.Message, text)
			}
		}
	}
	return ms
}

// TestSections holds that names and aliases end with their section.
func TestSections(t *testing.T) {
	ms := load(t, "!t = f32\nfunc.func private @f(!t)\n// -----\n!t = f16\nfunc.func private @f(!t)\n// -----\n")
	if len(ms) != 3 {
		t.Fatalf("%d modules, want 3", len(ms))
	}
	for i, want := range []string{"f32", "f16"} {
		f := ms[i].Func("f")
		if f == nil || !f.Private || f.Body != nil || len(f.Args) != 1 || f.Args[0].Type.String() != want {
			t.Errorf("section %d: %+v", i, f)
		}
	}
	if len(ms[2].Ops) != 0 || len(ms[2].Diags) != 0 {
		t.Error("the empty section is not empty")
	}
}

// TestUnnamedSizes holds that the result of an element-wise op is as long as
// its operand, though neither length has a name.
func TestUnnamedSizes(t *testing.T) {
	m := load(t, "func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {\n  %a = dm.exp %x : tensor<?xf32>\n  return %a : tensor<?xf32>\n}")[0]
	f := m.Func("f")
	x, y, a := f.Args[0], f.Args[1], f.Body.Ops[0].Results[0]
	if !types.Equal(a.Type, x.Type) {
		t.Errorf("%%a is %s bytes, its operand %s", a.Tensor().Bytes(), x.Tensor().Bytes())
	}
	if types.Equal(x.Type, y.Type) {
		t.Error("two arguments share a size that has no name")
	}
	if a.Type.String() != "tensor<?xf32>" {
		t.Errorf("%%a prints as %s", a.Type)
	}
}

// TestForms holds that pretty and generic form are one op, with attributes in
// the form that the registry promises.
func TestForms(t *testing.T) {
	m := load(t, `func.func @f(%x: tensor<4x8xf32>) {
  %a = dm.reduce add %x, dims = [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %b = "dm.reduce"(%x) <{kind = "add", dims = array<i64: 1>}> : (tensor<4x8xf32>) -> tensor<4xf32>
  %c = "dm.reduce"(%x) <{kind = "add", dims = dense<1> : tensor<1xi64>, keep_dims = false}> : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}`)[0]
	for _, o := range m.Func("f").Body.Ops[:3] {
		if k, ok := o.Attr("kind").(types.Keyword); !ok || k != "add" {
			t.Errorf("%s: kind is %v", o.Results[0].Name, o.Attr("kind"))
		}
		if d := o.Ints("dims"); len(d) != 1 || d[0] != 1 {
			t.Errorf("%s: dims is %v", o.Results[0].Name, d)
		}
		if _, ok := o.Attr("dims").(types.Array); !ok {
			t.Errorf("%s: dims is a %T", o.Results[0].Name, o.Attr("dims"))
		}
	}
}

// TestQuotedSymbols holds that a call finds its function, however either is
// spelled.
func TestQuotedSymbols(t *testing.T) {
	m := load(t, `func.func private @"a b::c"()
func.func private @"plain"()
func.func @f() {
  call @"a b::c"() : () -> ()
  "func.call"() <{callee = @"a\20b::c"}> : () -> ()
  call @plain() : () -> ()
  "func.call"() <{callee = @"plain"}> : () -> ()
  return
}`)[0]
	for _, o := range m.Func("f").Body.Ops[:4] {
		if m.Func(o.Str("callee")) == nil {
			t.Errorf("%s calls no function", m.Src.Slice(o.Span))
		}
	}
}

// TestManyResults holds that results which are only counted are bounded in all,
// and that those after a refused op are refused, too.
func TestManyResults(t *testing.T) {
	for _, text := range []string{
		"%x:65538 = a.b\n",
		"%x:2147483647, %y:2147483647 = a.b\n",
		strings.Repeat("%x:65537 = \"a.b\"() : () -> ()\n", 1000),
		strings.Repeat("func.func @f() {\n  %x:300 = a.b\n}\n", 1000),
	} {
		values, refused := 0, 0
		for _, m := range lower.File(parse.File(source.New("test.dmir", text))) {
			ir.Walk(m.Ops, func(o *ir.Op) bool {
				values += len(o.Results)
				return true
			})
			for _, d := range m.Diags {
				if d.Code == "DM163" {
					refused++
				}
			}
		}
		if values > 1<<17 || refused == 0 {
			t.Errorf("%.30q…: %d values, %d ops refused", text, values, refused)
		}
	}
}

// TestPlaces holds that operands and attributes are found in the text.
func TestPlaces(t *testing.T) {
	m := load(t, `func.func @f(%x: tensor<4x8xf32>) {
  %a = dm.reduce add %x, dims = [1] {keep_dims = true, other.flag} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %b = "dm.add"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = "dm.softmax"(%b) <{dim = 1}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}`)[0]
	ops := m.Func("f").Body.Ops
	for _, c := range []struct {
		got  source.Span
		want string
	}{
		{origin.AttrSpan(ops[0], m.Src, "kind"), "add"},
		{origin.AttrSpan(ops[0], m.Src, "dims"), "[1]"},
		{origin.AttrSpan(ops[0], m.Src, "keep_dims"), "true"},
		{origin.AttrSpan(ops[0], m.Src, "other.flag"), "other.flag"},
		{origin.AttrSpan(ops[0], m.Src, "absent"), "%a = dm.reduce"},
		{origin.OperandSpan(ops[1], 1), "%x"},
		{origin.OperandSpan(ops[1], 7), `%b = "dm.add"`},
		{origin.AttrSpan(ops[2], m.Src, "dim"), "1"},
		{ops[2].Results[0].Span, "%c"},
	} {
		if got := m.Src.Slice(c.got); got != c.want {
			t.Errorf("underlined %q, want %q", got, c.want)
		}
	}
}

// TestTypesFromUse gives the results of ops that dmir does not know the types
// with which they are used.
func TestTypesFromUse(t *testing.T) {
	m := load(t, "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %a = tosa.thing %x\n  %b = dm.exp %a : tensor<4xf32>\n  return %b : tensor<4xf32>\n}")[0]
	if a := m.Func("f").Body.Ops[0].Results[0]; a.Type.String() != "tensor<4xf32>" || len(a.Uses) != 1 {
		t.Errorf("%%a is %s with %d uses", a.Type, len(a.Uses))
	}
}
