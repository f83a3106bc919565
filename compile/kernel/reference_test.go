package kernel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// given are programs whose ops have attributes that random programs rarely have.
var given = []string{
	`func.func @f(%x: tensor<2x9x8xf32>, %s: tensor<2x3x3xf32>) -> tensor<2x9x8xf32> {
  %y = dm.select_and_scatter max %x, %s, window_dimensions = [1, 2, 3], window_strides = [1, 3, 1], window_dilations = [1, 2, 3], padding = [[0, 0], [0, 0], [1, 0]] : (tensor<2x9x8xf32>, tensor<2x3x3xf32>) -> tensor<2x9x8xf32>
  return %y : tensor<2x9x8xf32>
}`,
	`func.func @f(%x: tensor<6x8xf32>, %w: tensor<8x10xf32>) -> (tensor<6x10xf32>, tensor<10xf32>) {
  %y = dm.matmul %x, %w : (tensor<6x8xf32>, tensor<8x10xf32>) -> tensor<6x10xf32>
  %s = dm.reduce add %y, dims = [0] : (tensor<6x10xf32>) -> tensor<10xf32>
  return %y, %s : tensor<6x10xf32>, tensor<10xf32>
}`,
	`func.func @f(%x: tensor<6x8xf32>, %w: tensor<8x10xf32>) -> (tensor<6x10xf32>, tensor<6xf32>) {
  %y = dm.matmul %x, %w : (tensor<6x8xf32>, tensor<8x10xf32>) -> tensor<6x10xf32>
  %s = dm.reduce max %y, dims = [1] : (tensor<6x10xf32>) -> tensor<6xf32>
  return %y, %s : tensor<6x10xf32>, tensor<6xf32>
}`,
}

// Groups of ops of programs store, in each form that they have, what the reference executor computes.
func TestFormsCompute(t *testing.T) {
	texts := slices.Clone(given)
	for seed := range uint64(300) {
		texts = append(texts, randprog.Program(seed, randprog.Options{Ops: 12}))
	}
	forms, not := map[string]int{}, map[string]int{}
	for seed, text := range texts {
		values, fn := reference(t, text)
		for from := 0; from < len(fn.Body.Ops)-1; from++ {
			var ops []*ir.Op
			var form *Form
			for _, o := range fn.Body.Ops[from : len(fn.Body.Ops)-1] { // as many as make a kernel
				more := append(slices.Clone(ops), o)
				f, err := Of(more, used(more, fn.Body))
				if err != nil || len(ops) == 4 {
					break
				}
				ops, form = more, f
			}
			if form == nil {
				continue
			}
			for name, f := range variants(form) {
				what, ok := compare(f, values)
				if what != "" {
					t.Errorf("seed %d, op %d, %d ops, %s %s: %s\n%s", seed, from, len(ops), f.Class, name, what, text)
					return
				}
				if ok {
					forms[string(f.Class)+" "+name]++
				} else {
					not[string(f.Class)+" "+name]++
				}
			}
		}
	}
	t.Log(forms, not, lacking)
}

// used are the results of ops that other ops of the block read.
func used(ops []*ir.Op, block *ir.Block) []*ir.Value {
	var out []*ir.Value
	for _, o := range ops {
		for _, v := range o.Results {
			if slices.ContainsFunc(block.Ops, func(p *ir.Op) bool { return !slices.Contains(ops, p) && slices.Contains(p.Operands, v) }) {
				out = append(out, v)
			}
		}
	}
	return out
}

// reference is the values of a function's ops by the reference executor.
func reference(t *testing.T, text string) (map[*ir.Value][]float64, *ir.Func) {
	t.Helper()
	p := program.Load(source.New("t.dmir", text), program.Options{})
	mod, fn, _ := flatten.In(p.Modules[0], p.Modules[0].Funcs[0])
	args, err := interp.Inputs(context.Background(), fn, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[*ir.Value][]float64{}
	for i, a := range fn.Body.Args {
		values[a] = inMemoryOf(a, args[i])
	}
	_, err = interp.Run(context.Background(), mod, fn, args, interp.Options{Results: func(o *ir.Op, results []*tensor.Tensor) {
		for i, v := range o.Results {
			values[v] = inMemoryOf(v, results[i])
		}
	}})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return values, fn
}

// inMemoryOf is the elements of v in the order in which they lie in memory.
func inMemoryOf(v *ir.Value, x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	shape := shapeOf(v)
	for i := range out {
		idx := make([]Index, len(shape))
		for d, rest := len(shape)-1, int64(i); d >= 0; d-- {
			idx[d], rest = Const(rest%shape[d]), rest/shape[d]
		}
		at, _ := Place(v, idx).IsConst()
		if x.Elem.IsFloat() {
			out[at] = x.Float(i)
		} else {
			out[at] = float64(x.Integer(i))
		}
	}
	return out
}

// variants are the forms that a form can be brought to.
func variants(f *Form) map[string]*Form {
	forms := map[string]*Form{"": f}
	add := func(name string, g *Form, err error) {
		if err == nil {
			forms[name] = g
		}
	}
	even := !slices.ContainsFunc(f.Outputs, func(v *ir.Value) bool { return Product(shapeOf(v))%4 != 0 })
	switch f.Class {
	case ClassPointwise, ClassLoop:
		if !even {
			break
		}
		wide, err := f.Widen(2, 0)
		if add("wide", wide, err); err == nil {
			turned, err := wide.Turn(1, 2)
			add("turned", turned, err)
		}
		planes, err := f.Planes(2, 2, 2)
		add("planes", planes, err)
		if cells := f.Fit(1, [2]int64{1, 1}); cells != nil {
			divided, err := f.Divided(cells)
			add("cells", divided, err)
		}
	case ClassRow, ClassColumns:
		if f.Rows.Cols%2 == 0 {
			wide, err := f.Widen(2, 0)
			add("wide", wide, err)
		}
	}
	if f.Class == ClassLoop {
		grouped, err := f.Grouped()
		if add("grouped", grouped, err); err == nil && len(grouped.Groups) == 0 {
			delete(forms, "grouped")
		}
	}
	return forms
}

var lacking = map[string]int{}

// compare computes f and says where it differs from values; ok is false where it has functions that the machine lacks.
func compare(f *Form, values map[*ir.Value][]float64) (what string, ok bool) {
	m := &executor{values: values, vars: map[*Atom]int64{}, parts: map[*Expr]float64{}, memo: map[*Expr]float64{}, left: 1 << 15}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unknown:
			lacking[string(r)]++
			what, ok = "", false
		default:
			what = fmt.Sprint(r)
		}
	}()
	if f.Class == ClassLibrary || !slices.ContainsFunc(f.Ops, func(o *ir.Op) bool { return o.Name != op.Constant }) {
		return "", false
	}
	short := func(v *ir.Value) bool { return v.Elem().IsFloat() && v.Elem().Bytes() < 4 }
	rounded := slices.ContainsFunc(f.Ops, func(o *ir.Op) bool { return slices.ContainsFunc(o.Results, short) })
	for v, got := range m.results(f) {
		want := values[v]
		tolerance := 1e-4
		switch {
		case short(v):
			tolerance = 0.05
		case rounded: // the reference rounds what the kernel hands on as it is
			tolerance = 0.01
		}
		for i, x := range got {
			if w := want[i]; math.Abs(x-w) > tolerance*(1+math.Abs(w)) || math.IsNaN(x) != math.IsNaN(w) {
				return fmt.Sprintf("element %d of %s is %v, want %v", i, v.Name, x, w), true
			}
		}
	}
	return "", true
}
