package op_test

import (
	"strings"
	"testing"

	"dmir/dialect/op"
	"dmir/dialect/types"
)

// What the attributes of any op hold.
func TestDiscardable(t *testing.T) {
	dict := func(kind, name string, v types.Attr) types.Dict {
		return types.Dict{{Name: "kind", Value: types.Str(kind)}, {Name: name, Value: v}}
	}
	for _, c := range []struct {
		name  string
		value types.Attr
		is    bool
	}{
		{op.DonatedAttr, types.Unit{}, true},
		{op.DonatedAttr, types.Bool(false), true},
		{op.DonatedAttr, types.Int{V: 1}, false},
		{op.RelaxedAttr, types.Unit{}, true},
		{op.RelaxedAttr, types.Bool(true), false},
		{op.RecomputeAttr, types.Int{V: 1}, true},
		{op.RecomputeAttr, types.Int{V: 0}, false},
		{op.DivideByAttr, types.Str("entries"), true},
		{op.DivideByAttr, types.Str("columns"), false},
		{op.PatternAttr, types.Str("band"), true},
		{op.PatternAttr, types.Str("bands"), false},
		{op.PatternAttr, types.Unit{}, false},
		{op.PatternAttr, dict("band", "width", types.Int{V: 0}), true},
		{op.PatternAttr, dict("band", "width", types.Int{V: -1}), false},
		{op.PatternAttr, dict("blocks", "width", types.Int{V: 3}), false},
		{op.PatternAttr, dict("blocks", "size", types.Int{V: 1}), true},
		{op.PatternAttr, dict("blocks", "size", types.Int{V: 0}), false},
		{op.PatternAttr, dict("power_law", "exponent", types.Float{V: 1.5}), true},
		{op.PatternAttr, dict("power_law", "exponent", types.Float{V: 1}), false},
	} {
		if is := op.LookupAttr(c.name).Is(c.value); is != c.is {
			t.Errorf("%s = %v: %t, want %t", c.name, c.value, is, c.is)
		}
	}
}

// What a pattern leaves out has defaults.
func TestStatedPattern(t *testing.T) {
	for _, c := range []struct {
		value types.Attr
		want  op.Pattern
	}{
		{nil, op.Pattern{Kind: "uniform", Exponent: 2.1, Width: -1, Size: 32}},
		{types.Str("blocks"), op.Pattern{Kind: "blocks", Exponent: 2.1, Width: -1, Size: 32}},
		{types.Dict{{Name: "kind", Value: types.Str("band")}, {Name: "width", Value: types.Int{V: 4}}}, op.Pattern{Kind: "band", Exponent: 2.1, Width: 4, Size: 32}},
	} {
		if got, ok := op.StatedPattern(c.value); !ok || got != c.want {
			t.Errorf("%v is %+v, want %+v", c.value, got, c.want)
		}
	}
}

// Ops that only name elements otherwise.
func TestIsView(t *testing.T) {
	const csr = "=tensor<8x6xf32,#dm.csr<nnz=e>>"
	for _, c := range []struct {
		name, in, attrs, out string
		view                 bool
	}{
		{"reshape", "2x6xf32", "", "3x4xf32", true},
		{"reshape", "2x6xf32@columns", "", "3x4xf32", false},
		{"reshape", "2x6xf32", "", "3x4xf32@columns", false},
		{"transpose", "2x6xf32", "dims = [1, 0]", "6x2xf32@columns", true},
		{"transpose", "2x6xf32", "dims = [1, 0]", "6x2xf32", false},
		{"transpose", "2x6xf32@columns", "dims = [1, 0]", "6x2xf32", true},
		{"transpose", "2x6xf32", "dims = [0, 1]", "2x6xf32", true},
		{"transpose", csr, "dims = [1, 0]", "=tensor<6x8xf32,#dm.csc<nnz=e>>", true},
		{"tanh", csr, "", csr, false},
		{"tanh", "2x6xf32", "", "2x6xf32", false},
		{"add", "2x6xf32 2x6xf32", "", "2x6xf32", false},
	} {
		if view := op.IsView(build(t, c.name, c.in, c.attrs, c.out)); view != c.view {
			t.Errorf("%s %s %s -> %s: %t, want %t", c.name, c.in, c.attrs, c.out, view, c.view)
		}
	}
}

// The operands that a kernel reads only where it writes.
func TestPointwiseOperands(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"element-wise":      {"%y = dm.add %x, %w : !x", "%x %w"},
		"another transpose": {"%t = dm.transpose %w, dims = [1, 0] : (!x) -> !x\n%y = dm.add %x, %t : !x", "%x"},
		"its own too":       {"%t = dm.transpose %x, dims = [1, 0] : (!x) -> !x\n%y = dm.add %x, %t : !x", ""},
		"a product's":       {"%t = dm.matmul %w, %w : (!x, !x) -> !x\n%y = dm.add %x, %t : !x", "%x"},
		"a sum of rows":     {"%t = dm.softmax %w : !x\n%y = dm.add %x, %t : !x", ""},
	} {
		_, o := first(t, "!x = tensor<4x4xf32>\nfunc.func @f(%x: !x, %w: !x) -> !x {\n%k = dm.kernel -> !x {\n"+c.body+"\ndm.yield %y : !x\n}\nreturn %k : !x\n}\n", "dm.kernel")
		var names []string
		for _, v := range op.PointwiseOperands(o, o.Results[0]) {
			names = append(names, v.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
