package interp

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Every op that the registry knows can run.
func TestEveryOpHasAnExecutor(t *testing.T) {
	for _, d := range op.All() {
		if d.Family == op.Groups || d.Family == op.SparseTensors || d.FullName() == op.Mesh { // there are none when tuples and sparse tensors are flat; a mesh stands outside of functions
			continue
		}
		if _, ok := executors[d.FullName()]; !ok && !d.Is(op.Terminator) {
			t.Errorf("%s has no executor", d.FullName())
		}
	}
	for name := range executors {
		if strings.HasPrefix(name, op.Prefix) && op.Lookup(name) == nil {
			t.Errorf("there is an executor for %s, but no such op", name)
		}
	}
}

// elemsOf is the element types that an op's example can be written in: those of
// its first operand or, where it has none, of its first result.
func elemsOf(d *op.Def) []types.Elem {
	if d.Name == "grad" || d.Family == op.Groups { // it takes anything, but its example computes with floats
		return op.Lookup("dm.exp").Operands[0].Elems
	}
	params := append(append([]op.Param{}, d.Operands...), d.Results...)
	for _, p := range params {
		if p.Elems != nil && !(len(p.Elems) == 1 && p.Elems[0] == types.I1) {
			return p.Elems
		}
	}
	return []types.Elem{types.F32}
}

// inElem rewrites an example from f32, or from i32 where it is one of integers,
// to another element type: the types, and the constants of those types.
func inElem(example string, elem types.Elem) string {
	if !elem.IsFloat() { // what examples do with floats in regions, for all
		example = strings.NewReplacer("dm.exp %x :", "dm.reverse %x, dims = [0] :", "dm.abs %a", "dm.max %a, %a", "dm.abs %b", "dm.max %b, %b").Replace(example)
	}
	if elem == types.I1 {
		example = strings.NewReplacer("dm.reduce add", "dm.reduce max", "dm.max %", "dm.or %", "dm.relu", "dm.not", "0.5", "1").Replace(example)
	}
	from := "f32"
	if !strings.Contains(example, from) {
		from = "i32"
	}
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		if elem.IsInt() && strings.Contains(line, "dm.constant") && strings.Contains(line, from) {
			line = strings.NewReplacer(".0", "", "-1", "1", "0.5", "2").Replace(line)
		}
		if elem == types.I1 && strings.Contains(line, "dense<[[") && strings.Contains(line, from) {
			line = "  %c = dm.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>"
		}
		lines[i] = strings.NewReplacer("x"+from, "x"+elem.String(), "<"+from, "<"+elem.String(), ": "+from, ": "+elem.String()).Replace(line)
	}
	text := strings.Join(lines, "\n")
	if strings.Contains(text, "dm.bitcast") { // to the integers of that size
		text = strings.ReplaceAll(text, "xi32", fmt.Sprintf("xi%d", elem.Bits()))
	}
	if elem.IsFloat() && elem.Bytes() < 4 { // an attention's log-sum-exp is wide
		text = strings.ReplaceAll(text, "tensor<1x4x3x"+elem.String()+">", "tensor<1x4x3xf32>")
	}
	return text
}

// sized are the ops whose results on integers depend on how many bits these have.
var sized = map[string]bool{"popcnt": true, "count_leading_zeros": true, "shift_right_logical": true}

// Every example runs in every element type that the op allows. From the same
// inputs floating-point results agree with those in f64 as far as the type
// goes, and integer results are those in i64 wrapped to the type.
func TestExamples(t *testing.T) {
	runs := 0
	for _, d := range op.All() {
		exact, whole := map[int]*tensor.Tensor{}, map[int]*tensor.Tensor{}
		for _, elem := range elemsOf(d) {
			if elem.Packed() && len(d.Regions) > 0 { // examples compute in regions
				continue
			}
			t.Run(d.Name+"/"+elem.String(), func(t *testing.T) {
				runs++
				m := read(t, inElem(d.Example, elem))
				args, err := Inputs(t.Context(), m.Funcs[0], nil, 1, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i, a := range args {
					args[i] = tame(d, i, a)
				}
				out, err := try(t, m, Options{}, args...)
				if err != nil {
					t.Fatalf("%v\n%s", err, inElem(d.Example, elem))
				}
				for i, y := range out {
					switch {
					case elem == types.F64:
						exact[i] = y
					case y.Elem == types.I1:
					case sized[d.Name]:
					case elem == types.I64 && y.Elem == elem:
						whole[i] = y
					case whole[i] != nil && y.Elem == elem && d.Name != "rng":
						for k := range y.Len() {
							if want := tensor.Wrap(elem, whole[i].Integer(k)); y.Integer(k) != want {
								t.Fatalf("result %d, element %d is %d, want %d", i, k, y.Integer(k), want)
							}
						}
					case exact[i] != nil && y.Elem == elem && elem.IsFloat() && d.Name != "rng":
						if diff := tensor.MaxDiff(y, exact[i]); diff > tolerance(elem) {
							t.Errorf("result %d is off by %g:\n got %v\nwant %v", i, diff, y, exact[i])
						}
					}
				}
			})
		}
	}
	t.Logf("%d ops, %d runs", len(op.All()), runs)
}

// tame makes inputs of few bits, which every floating-point type holds, so that
// all compute from the same numbers, and keeps them where the op is defined.
func tame(d *op.Def, i int, x *tensor.Tensor) *tensor.Tensor {
	if !x.Elem.IsFloat() {
		return x
	}
	y := tensor.New(x.Elem, x.Shape...)
	for k := range x.Len() {
		v := tensor.Normal(1, uint64(i), uint64(k))
		v = float64(tensor.Round64(types.F8E5M2, float64(tensor.Round64(types.F8E4M3FN, v))))
		if d.Scalar != nil && d.Scalar.Tame != (op.Interval{}) {
			v = tamed(v, d.Scalar.Tame)
		}
		switch d.Name {
		case "pow":
			v = max(v, -v) + 0.25*float64(1-i)
		case "rem", "div":
			if i == 1 && v == 0 {
				v = 1
			}
		}
		y.SetFloat(k, v)
	}
	return y
}

// tamed is v, or another number of few bits, where a function is tame.
func tamed(v float64, where op.Interval) float64 {
	if math.IsInf(where.Hi, 1) {
		return where.Lo + max(v, -v) + 0.25
	}
	for v < where.Lo || v > where.Hi {
		v /= 2
	}
	return v
}

func tolerance(elem types.Elem) float64 {
	switch elem {
	case types.F32:
		return 1e-5
	case types.F16:
		return 4e-3
	case types.BF16:
		return 3e-2
	}
	return 0.3
}

// An expansion computes the same function as the op's own executor.
func TestExpansions(t *testing.T) {
	n := 0
	for _, d := range op.All() {
		if d.Expand == nil {
			continue
		}
		for _, elem := range elemsOf(d) {
			t.Run(d.Name+"/"+elem.String(), func(t *testing.T) {
				text := inElem(d.Example, elem)
				own := run(t, text)
				m := read(t, text)
				if expandAll(t, m.Funcs[0].Body) == 0 {
					t.Fatalf("%s does not expand", d.Name)
				}
				expanded, err := try(t, m, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range own {
					if diff := tensor.MaxDiff(expanded[i], own[i]); diff > tolerance(elem)/2 {
						t.Errorf("result %d: off by %g\n     own %v\nexpanded %v", i, diff, own[i], expanded[i])
					}
				}
				n++
			})
		}
	}
	t.Logf("%d expansions", n)
}

// Attention drops the probabilities that dm.dropout of the same seed drops.
func TestAttentionDropoutExpands(t *testing.T) {
	text := `func.func @f(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %m: tensor<4x1x5xf32>) -> tensor<2x4x3x6xf32> {
  %y = dm.attention %q, %k, %v, %m, scale = 0.3, causal = true, dropout = 0.4, seed = 9 : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<4x1x5xf32>) -> tensor<2x4x3x6xf32>
  return %y : tensor<2x4x3x6xf32>
}`
	own, m := run(t, text), read(t, text)
	if expandAll(t, m.Funcs[0].Body) == 0 {
		t.Fatal("attention does not expand")
	}
	expanded, err := try(t, m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := tensor.MaxDiff(expanded[0], own[0]); diff > 1e-5 {
		t.Errorf("off by %g", diff)
	}
}

// expandAll expands the composites of b until none is left that can be.
func expandAll(t *testing.T, b *ir.Block) (n int) {
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		d := op.Of(o)
		if d == nil || d.Expand == nil {
			continue
		}
		vs := d.Expand(&ir.Builder{Block: b, Index: i, At: o}, o)
		if vs == nil {
			continue
		}
		for k, v := range vs {
			if k < len(o.Results) {
				ir.ReplaceUses(o.Results[k], v)
			}
		}
		ir.Erase(o)
		n++
		i--
		if n > 1000 {
			t.Fatal("expansions do not end")
		}
	}
	return n
}
