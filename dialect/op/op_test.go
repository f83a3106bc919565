package op_test

import (
	"strings"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// tensorOf reads the tests' short form of a type: "8xnx4xf16" is a tensor with
// a symbol, "?" an unnamed size, "f32" a tensor of rank 0, "=f32" a bare scalar, "=tuple<…>" and
// "=tensor<…>" a type in full.
func tensorOf(t *testing.T, text string) types.Type {
	t.Helper()
	if s, ok := strings.CutPrefix(text, "="); ok && (strings.HasPrefix(s, "tuple") || strings.HasPrefix(s, "tensor")) {
		x, err := parse.Type(s)
		if err != nil {
			t.Fatal(err)
		}
		ty, err := types.FromExpr(x, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ty
	} else if ok {
		e, _ := types.ElemByName(s)
		return types.Scalar{Elem: e}
	}
	text, space, _ := strings.Cut(text, "@")
	parts := strings.Split(text, "x")
	e, ok := types.ElemByName(parts[len(parts)-1])
	if !ok {
		t.Fatalf("no element type in %q", text)
	}
	r := &types.Tensor{Elem: e, At: types.Placement{Space: types.HBM}}
	if space == "columns" {
		r.At.Order = []int{1, 0}
	} else if space != "" {
		r.At.Space = types.Space(space)
	}
	for i, p := range parts[:len(parts)-1] {
		if p == "?" {
			r.Shape = append(r.Shape, dim.Unnamed(text+string(rune('0'+i))))
			continue
		}
		d, err := dim.Parse(p)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		r.Shape = append(r.Shape, d)
	}
	return r
}

func shortText(ty types.Type) string {
	r, ok := ty.(*types.Tensor)
	if !ok || r.Format != nil {
		return "=" + strings.ReplaceAll(ty.String(), " ", "")
	}
	var b strings.Builder
	for _, d := range r.Shape {
		b.WriteString(op.DimText(d))
		b.WriteString("x")
	}
	b.WriteString(r.Elem.String())
	if r.At.Order != nil {
		b.WriteString("@columns")
	} else if r.At.Space != types.HBM {
		b.WriteString("@" + string(r.At.Space))
	}
	return b.String()
}

func listOf(t *testing.T, text string) []types.Type {
	t.Helper()
	var ts []types.Type
	for _, s := range strings.Fields(text) {
		ts = append(ts, tensorOf(t, s))
	}
	return ts
}

// build makes an op without a text: operand and result types in the short
// form, attributes as a dictionary.
func build(t *testing.T, name, operands, attrs, results string) *ir.Op {
	t.Helper()
	o := &ir.Op{Name: "dm." + name}
	for i, ty := range listOf(t, operands) {
		o.Operands = append(o.Operands, &ir.Value{Name: "%" + string(rune('a'+i)), Type: ty, Index: i})
	}
	for i, ty := range listOf(t, results) {
		o.Results = append(o.Results, &ir.Value{Type: ty, Op: o, Index: i})
	}
	if attrs == "" {
		return o
	}
	x, err := parse.Attr("{" + attrs + "}")
	if err != nil {
		t.Fatalf("%s: %v", attrs, err)
	}
	for _, e := range x.Entries {
		a, err := types.AttrFromExpr(e.Value, &types.Env{})
		if err != nil {
			t.Fatalf("%s: %v", attrs, err)
		}
		if d := op.Of(o).Attr(e.Key); d == nil {
			t.Fatalf("dm.%s has no attribute %s", name, e.Key)
		} else if s, ok := a.(types.Str); ok && d.Kind == op.KindKeyword {
			a = types.Keyword(s)
		}
		o.SetAttr(e.Key, a)
	}
	return o
}

// infer runs Infer and then Verify, as the verifier does.
func infer(o *ir.Op) ([]types.Type, *op.Problem) {
	d := op.Of(o)
	ts, p := op.Infer(o)
	if p == nil && d.Verify != nil && !op.Grouped(o) {
		p = d.Verify(o)
	}
	return ts, p
}

func TestLookup(t *testing.T) {
	if d := op.Lookup("dm.add"); d == nil || d.FullName() != "dm.add" {
		t.Errorf("Lookup(dm.add) = %v", d)
	}
	for _, name := range []string{"add", "dm.", "dm.nothing", "func.add", ""} {
		if d := op.Lookup(name); d != nil {
			t.Errorf("Lookup(%q) = %s", name, d.Name)
		}
	}
	if op.Of(nil) != nil || op.Of(&ir.Op{Name: "func.return"}) != nil {
		t.Error("Of finds an entry for an op of another dialect")
	}
}

func TestDefaults(t *testing.T) {
	o := build(t, "layer_norm", "2x4xf32 4xf32", "", "2x4xf32")
	if got := op.Ints(o, "dims"); len(got) != 1 || got[0] != -1 {
		t.Errorf("dims = %v, want [-1]", got)
	}
	if got := op.Float(o, "epsilon"); got != 1e-5 {
		t.Errorf("epsilon = %g", got)
	}
	c := build(t, "convolution", "1x2x5x5xf32 3x2x3x3xf32", "padding = [[1, 2], [0, 0]]", "1x3x6x3xf32")
	if got := op.Pairs(c, "padding"); len(got) != 2 || got[0] != [2]int64{1, 2} {
		t.Errorf("padding = %v", got)
	}
	if op.Int(c, "feature_group_count") != 1 || op.Str(c, "accumulate") != "f32" || op.Ints(c, "window_strides") != nil {
		t.Error("defaults of convolution")
	}
	m := build(t, "matmul", "2x2xf32 2x2xf32", "transpose_b = true", "2x2xf32")
	if op.Bool(m, "transpose_a") || !op.Bool(m, "transpose_b") {
		t.Error("transposes of matmul")
	}
	s := build(t, "softmax", "2x3x4xf32", "dim = -2", "2x3x4xf32")
	if d, ok := op.Dim(s, "dim", 3); d != 1 || !ok {
		t.Errorf("dim = %d, %t", d, ok)
	}
}

// The level-1 table of the design, the gradients that have ops of their own, the two
// ops of level 2, and those of training and of distribution.
const table = `
einsum matmul grouped_matmul structured_einsum convolution
abs neg exp log log1p expm1 sqrt rsqrt cbrt tanh erf erfc erfinv logistic relu gelu silu sign floor ceil round round_half_away cos sin tan sinh cosh asinh acosh atanh popcnt count_leading_zeros not
add sub mul div max min pow rem atan2 and or xor shift_left shift_right_logical shift_right_arithmetic
compare select clamp convert bitcast dropout rope
reduce softmax log_softmax layer_norm rms_norm batch_norm group_norm cross_entropy argmax cumsum reduce_window select_and_scatter top_k sort cumprod cummax segment_reduce mean variance logsumexp
attention attention_grad segment_attention
transpose reshape broadcast slice dynamic_slice dynamic_update_slice concatenate pad reverse gather scatter copy embedding roll one_hot stop_gradient segment_ids searchsorted
constant empty iota rng
while scan if map
kernel yield
grad sgd momentum adam
pack unpack
sample convert_format prune merge filter segment_product segment_dense_product segment_sample
mesh reshard all_reduce reduce_scatter all_gather all_to_all collective_permute send recv partition_id`

func TestTable(t *testing.T) {
	want := strings.Fields(table)
	for i, d := range op.All() {
		if i >= len(want) || d.Name != want[i] {
			t.Fatalf("op %d is %s; want the table's order", i, d.Name)
		}
	}
	if len(op.All()) != len(want) {
		t.Errorf("%d ops, want %d", len(op.All()), len(want))
	}
}

// TestEntries holds every entry to what the reference page, hover and the
// verifier rely on.
func TestEntries(t *testing.T) {
	families := map[op.Family]bool{}
	var last op.Family
	for _, d := range op.All() {
		if d.Family != last && families[d.Family] {
			t.Errorf("%s: family %s is not contiguous", d.Name, d.Family)
		}
		last, families[d.Family] = d.Family, true
		switch {
		case d.Summary == "" || strings.HasSuffix(d.Summary, "."):
			t.Errorf("%s: summary %q", d.Name, d.Summary)
		case len(d.Doc) < 40:
			t.Errorf("%s: doc %q", d.Name, d.Doc)
		case !strings.Contains(d.Example, "func.func @example(") || d.ExampleLine() == "":
			t.Errorf("%s: example does not show it", d.Name)
		case d.Infer == nil:
			t.Errorf("%s: no inference", d.Name)
		case d.Class == "":
			t.Errorf("%s: no class", d.Name)
		case len(d.Regions) == 0 && !d.Is(op.Pure) && !d.Is(op.Terminator) && !d.Is(op.Collective):
			t.Errorf("%s: neither pure nor a terminator nor a collective", d.Name)
		}
		for kind, ps := range map[string][]op.Param{"operand": d.Operands, "result": d.Results} {
			for i, p := range ps {
				if p.Name == "" || p.Doc == "" {
					t.Errorf("%s: %s %d has no name or doc", d.Name, kind, i)
				}
				if p.Variadic && i != len(ps)-1 || p.Optional && i+1 < len(ps) && !ps[i+1].Optional {
					t.Errorf("%s: %s %s is not last", d.Name, kind, p.Name)
				}
			}
		}
		leads := 0
		for _, a := range d.Attrs {
			if a.Lead {
				leads++
			}
			if a.Name == "" || a.Doc == "" || (a.Kind == op.KindKeyword) != (a.Enum != nil) {
				t.Errorf("%s: attribute %q", d.Name, a.Name)
			}
			if a.Optional && a.Default != nil {
				t.Errorf("%s: attribute %s is optional and has a default", d.Name, a.Name)
			}
			if !strings.Contains(d.Doc+a.Doc, " ") {
				t.Errorf("%s: attribute %s is not documented", d.Name, a.Name)
			}
		}
		if leads > 1 {
			t.Errorf("%s: %d leading attributes", d.Name, leads)
		}
		for _, r := range d.Regions {
			if r.Name == "" || r.Doc == "" {
				t.Errorf("%s: region %q", d.Name, r.Name)
			}
		}
	}
}

func TestCodesSorted(t *testing.T) {
	for i, c := range op.Codes {
		if i > 0 && op.Codes[i-1].Code >= c.Code {
			t.Errorf("%s stands after %s", c.Code, op.Codes[i-1].Code)
		}
		if c.Name == "" || c.Doc == "" || c.Help == "" || strings.HasSuffix(c.Help, ".") {
			t.Errorf("%s is incomplete", c.Code)
		}
	}
}
