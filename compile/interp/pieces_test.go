package interp

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// A division is how many devices each factor of an op is divided over.
type division map[int]int

// seen is an op of a program that ran, with the values of its operands and results.
type seen struct {
	op      *ir.Op
	in, out []*tensor.Tensor
}

// watch runs the first function of m and returns what the ops of its body computed.
func watch(t *testing.T, m *ir.Module, args []*tensor.Tensor) []seen {
	t.Helper()
	fn := m.Funcs[0]
	values := map[*ir.Value]*tensor.Tensor{}
	for i, a := range fn.Args {
		values[a] = args[i]
	}
	var ops []seen
	_, err := try(t, m, Options{Results: func(o *ir.Op, results []*tensor.Tensor) {
		if o.Parent != fn.Body {
			return
		}
		s := seen{op: o, out: results}
		for _, v := range o.Operands {
			s.in = append(s.in, values[v])
		}
		for i, v := range o.Results {
			values[v] = results[i]
		}
		ops = append(ops, s)
	}}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// alone is a copy of o on operands of the types given, in a function of its own.
func alone(o *ir.Op, operands []*types.Tensor) (*ir.Module, *ir.Op) {
	body := &ir.Block{}
	fn := &ir.Func{Name: "piece", Body: body, Op: &ir.Op{Name: op.Func}}
	values := map[*ir.Value]*ir.Value{}
	args := make([]*ir.Value, len(operands))
	for i, v := range operands {
		args[i] = body.AddArg(fmt.Sprintf("%%%d", i), v)
	}
	region := &ir.Region{Op: fn.Op, Blocks: []*ir.Block{body}}
	fn.Op.Regions, body.Region, fn.Args = []*ir.Region{region}, region, body.Args
	b := &ir.Builder{Block: body}
	c := ir.CloneOps(b, []*ir.Op{o}, values)[0]
	c.SetOperands(args...)
	b.Op(op.Return, c.Results, nil)
	m := &ir.Module{Ops: []*ir.Op{fn.Op}}
	m.AddFunc(fn)
	return m, c
}

// typed is t with the shape of x.
func typed(t types.Type, x *tensor.Tensor) *types.Tensor {
	shape := make([]dim.Dim, len(x.Shape))
	for i, n := range x.Shape {
		shape[i] = dim.Const(int64(n))
	}
	r := *t.(*types.Tensor)
	r.Shape = shape
	return &r
}

// place is where a piece lies in a whole tensor: for each element of the piece its number.
func (by division) place(f *op.Factors, dims [][]int, shape []int, at map[int]int) (piece, numbers []int) {
	numbers = []int{0}
	for d, n := range shape {
		sizes, factors := []int{n}, []int{-1}
		if len(dims[d]) > 0 {
			sizes, factors = nil, dims[d]
			for _, k := range factors {
				size, _ := f.Sizes[k].Int()
				sizes = append(sizes, int(size))
			}
		}
		along := []int{0} // of the places along the dimension
		for i, size := range sizes {
			lo, hi := 0, size
			if p := by[factors[i]]; p > 0 {
				lo, hi = at[factors[i]]*size/p, (at[factors[i]]+1)*size/p
			}
			var next []int
			for _, a := range along {
				for v := lo; v < hi; v++ {
					next = append(next, a*size+v)
				}
			}
			along = next
		}
		piece = append(piece, len(along))
		var next []int
		for _, a := range numbers {
			for _, b := range along {
				next = append(next, a*n+b)
			}
		}
		numbers = next
	}
	return piece, numbers
}

func copyElement(to *tensor.Tensor, i int, from *tensor.Tensor, k int) {
	switch to.Kind() {
	case tensor.KindF32:
		to.F32[i] = from.F32[k]
	case tensor.KindF64:
		to.F64[i] = from.F64[k]
	case tensor.KindInt:
		to.Int[i] = from.Int[k]
	case tensor.KindBool:
		to.Bool[i] = from.Bool[k]
	}
}

// cut is the piece of x.
func (by division) cut(f *op.Factors, dims [][]int, x *tensor.Tensor, at map[int]int) *tensor.Tensor {
	shape, numbers := by.place(f, dims, x.Shape, at)
	y := tensor.New(x.Elem, shape...)
	for i, n := range numbers {
		copyElement(y, i, x, n)
	}
	return y
}

// combined is the reduction of the parts a and b.
func combined(r types.Reduction, a, b *tensor.Tensor) *tensor.Tensor {
	y := tensor.New(a.Elem, a.Shape...)
	for i := range y.Len() {
		u, v := a.Float(i), b.Float(i)
		m, n := a.Integer(i), b.Integer(i)
		less := m < n
		if a.Elem == types.UI64 {
			less = uint64(m) < uint64(n)
		}
		switch {
		case r == types.And:
			y.SetInt(i, m&n)
		case r == types.Or:
			y.SetInt(i, m|n)
		case r == types.Max && a.Elem.IsFloat():
			y.SetFloat(i, max(u, v))
		case r == types.Min && a.Elem.IsFloat():
			y.SetFloat(i, min(u, v))
		case r == types.Max && less, r == types.Min && !less:
			y.SetInt(i, n)
		case r == types.Max, r == types.Min:
			y.SetInt(i, m)
		case r == types.Mul && a.Elem.IsFloat():
			y.SetFloat(i, u*v)
		case r == types.Mul:
			y.SetInt(i, m*n)
		case a.Elem.IsFloat():
			y.SetFloat(i, u+v)
		default:
			y.SetInt(i, m+n)
		}
	}
	return y
}

// pieces computes s on pieces: the results that its rule promises, and the largest magnitude of
// each among the devices.
func (by division) pieces(t *testing.T, f *op.Factors, s seen) ([]*tensor.Tensor, []float64, error) {
	t.Helper()
	var factors []int
	for k := range by {
		factors = append(factors, k)
	}
	slices.Sort(factors)
	out, largest := make([]*tensor.Tensor, len(s.out)), make([]float64, len(s.out))
	written := make([][]bool, len(s.out))
	for i, y := range s.out {
		out[i], written[i] = tensor.New(y.Elem, y.Shape...), make([]bool, y.Len())
	}
	parts := make([]map[string]*tensor.Tensor, len(s.out)) // by the place of the piece, what is combined there
	for i := range parts {
		parts[i] = map[string]*tensor.Tensor{}
	}
	at := map[int]int{}
	devices := 1
	for _, k := range factors {
		devices *= by[k]
	}
	for device := range devices {
		rest := device
		for _, k := range factors {
			at[k], rest = rest%by[k], rest/by[k]
		}
		results, err := by.device(t, f, s, at)
		if err != nil {
			return nil, nil, fmt.Errorf("device %d: %w", device, err)
		}
		for i, y := range results {
			largest[i] = max(largest[i], magnitude(y))
			partial, place := false, ""
			for _, k := range factors {
				switch {
				case op.Divided(f.Results[i], k):
					place += fmt.Sprint(at[k], " ")
				case f.Kinds[k] == op.Reduced:
					partial = true
				}
			}
			if before := parts[i][place]; before != nil {
				if !partial {
					return nil, nil, fmt.Errorf("device %d computes a piece of result %d that another has", device, i)
				}
				y = combined(f.Combine, before, y)
			}
			parts[i][place] = y
			shape, numbers := by.place(f, f.Results[i], s.out[i].Shape, at)
			if !slices.Equal(shape, y.Shape) {
				return nil, nil, fmt.Errorf("the piece of result %d has shape %v, not %v", i, y.Shape, shape)
			}
			for e, n := range numbers {
				copyElement(out[i], n, y, e)
				written[i][n] = true
			}
		}
	}
	for i := range written {
		if slices.Contains(written[i], false) {
			return nil, nil, fmt.Errorf("no device has all of result %d", i)
		}
	}
	return out, largest, nil
}

// device is what the device at the places at computes.
func (by division) device(t *testing.T, f *op.Factors, s seen, at map[int]int) ([]*tensor.Tensor, error) {
	t.Helper()
	in := make([]*tensor.Tensor, len(s.in))
	operands := make([]*types.Tensor, len(s.in))
	for i, x := range s.in {
		in[i] = by.cut(f, f.Operands[i], x, at)
		operands[i] = typed(s.op.Operands[i].Type, in[i])
	}
	m, piece := alone(s.op, operands)
	for i, y := range s.out {
		shape, _ := by.place(f, f.Results[i], y.Shape, at)
		piece.Results[i].Type = typed(s.op.Results[i].Type, &tensor.Tensor{Shape: shape})
	}
	if d := op.Of(s.op); d.Piece != nil {
		d.Piece(piece, s.op)
	}
	if p := verify.Op(piece); p != nil {
		return nil, fmt.Errorf("the op on pieces is not valid: %s", p.Msg)
	}
	return try(t, m, Options{}, in...)
}

// sameResults compares results from pieces, the largest parts of which are as given, with those
// of the whole: exactly, or as far as the order of sums matters.
func sameResults(s seen, got []*tensor.Tensor, largest []float64) error {
	for i, want := range s.out {
		limit := 0.0
		if want.Elem.IsFloat() && op.Of(s.op).Class != op.ClassMovement {
			limit = tolerance(want.Elem)
		}
		d := tensor.MaxDiff(got[i], want)
		if d > limit && limit > 0 && !math.IsInf(d, 1) { // cancellation
			d = 0
			for k := range want.Len() {
				if u, v := got[i].Float(k), want.Float(k); u != v && u == u {
					d = max(d, math.Abs(u-v)/(1+largest[i]))
				}
			}
		}
		if d > limit {
			return fmt.Errorf("result %d is off by %g:\n got %v\nwant %v", i, d, got[i], want)
		}
	}
	return nil
}

// magnitude is the largest absolute value of x's elements.
func magnitude(x *tensor.Tensor) float64 {
	var most float64
	for k := range x.Len() {
		most = max(most, math.Abs(x.Float(k)))
	}
	return most
}

// consistent checks the rule itself against the shapes.
func consistent(f *op.Factors, o *ir.Op) error {
	if len(f.Operands) != len(o.Operands) || len(f.Results) != len(o.Results) || len(f.Kinds) != len(f.Sizes) {
		return fmt.Errorf("it has %d operands, %d results, %d kinds of %d factors", len(f.Operands), len(f.Results), len(f.Kinds), len(f.Sizes))
	}
	check := func(what string, tensors [][][]int, vs []*ir.Value) error {
		for i, dims := range tensors {
			shape := vs[i].Tensor().Shape
			if len(dims) != len(shape) {
				return fmt.Errorf("%s %d has %d dimensions, not %d", what, i, len(shape), len(dims))
			}
			used := map[int]bool{}
			for d, list := range dims {
				product, divides := dim.Const(1), false
				for _, k := range list {
					if used[k] || f.Sizes[k].Equal(dim.Const(1)) {
						return fmt.Errorf("%s %d, dimension %d: factor %d is there twice, or has size 1", what, i, d, k)
					}
					used[k], product, divides = true, product.Mul(f.Sizes[k]), divides || f.Kinds[k] != op.Fixed
				}
				if len(list) > 0 && (!divides || !product.Equal(shape[d])) {
					return fmt.Errorf("%s %d, dimension %d of size %s is the product of factors %v: %s", what, i, d, shape[d], list, product)
				}
			}
		}
		return nil
	}
	for k, kind := range f.Kinds {
		for i, dims := range f.Results {
			others := slices.ContainsFunc(slices.Concat(f.Operands, f.Results), func(t [][]int) bool { return op.Divided(t, k) })
			if kind == op.Parallel && others && !op.Divided(dims, k) {
				return fmt.Errorf("result %d lacks factor %d", i, k)
			}
		}
	}
	if err := check("operand", f.Operands, o.Operands); err != nil {
		return err
	}
	return check("result", f.Results, o.Results)
}

// factorsIn are those of f that can be divided, and into how many pieces.
func factorsIn(f *op.Factors) map[int][]int {
	all := map[int][]int{}
	for _, tensors := range [][][][]int{f.Operands, f.Results} {
		for _, dims := range tensors {
			for _, list := range dims {
				for _, k := range list {
					if f.Kinds[k] == op.Fixed || all[k] != nil {
						continue
					}
					n, _ := f.Sizes[k].Int()
					for _, p := range []int{2, 3, 4} {
						if n%int64(p) == 0 && n > 0 {
							all[k] = append(all[k], p)
						}
					}
				}
			}
		}
	}
	return all
}
