package partition

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// running is the reduction that a cumsum, cumprod or cummax runs.
func running(o *ir.Op) types.Reduction {
	return map[string]types.Reduction{"dm.cumsum": types.Add, "dm.cumprod": types.Mul, "dm.cummax": types.Max}[o.Name]
}

// wide is the type in which o computes elements of type e, rounding once.
func wide(e types.Elem) types.Elem {
	if e.IsFloat() && e.Bits() < 32 {
		return types.F32
	}
	return e
}

// totals is how many elements a device has that stand for its piece of dimension d of the first
// operand, and the devices that exchange them.
func (p *partitioner) totals(x factored, d int, a assignment) (elements int64, atoms []int) {
	shape := p.grid.Piece(p.shape(x.o.Operands[0].Tensor()), p.required(x, 0, a))
	shape[d] = 1
	return product(shape), over(x.operand(0), d, a)
}

func along(o *ir.Op) int {
	d, _ := op.Dim(o, "dim", o.In(0).Rank())
	return d
}

func (p *partitioner) runSent(x factored, a assignment) int64 {
	n, atoms := p.totals(x, along(x.o), a)
	k := int64(p.grid.Count(atoms))
	return n * wide(x.o.Operands[0].Elem()).Bits() / 8 * (k - 1) * k * p.groups(atoms)
}

// run is a running sum, product or maximum along a divided dimension: the devices run along their
// pieces and exchange the totals, and each joins its own with the totals of those before it.
func (p *partitioner) run(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	d, kind := along(x.o), running(x.o)
	l := p.required(x, 0, a)
	atoms := l.Dims[d]
	v := p.mask(x.o.Operands[0].Tensor(), pieces[0], l, d, kind)
	elem := v.Elem()
	v = p.b.Convert(v, wide(elem))
	y := p.b.Value(x.o.Name, []*ir.Value{v}, x.o.Attrs)
	all := p.gather(p.reduce(kind, v, d), d, atoms)
	// Those that do not stand before the device are neutral.
	count := int64(p.grid.Count(atoms))
	place := p.b.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, index.With(column(all, d)...))
	direction := "lt"
	if op.Bool(x.o, "reverse") {
		direction = "gt"
	}
	before := p.b.Value("compare", []*ir.Value{place, p.position(atoms)}, []types.Named{{Name: "direction", Value: types.Keyword(direction)}})
	if count > 1 {
		all = p.b.Value("select", []*ir.Value{before, all, p.neutral(kind, all)}, nil)
	}
	name := map[types.Reduction]string{types.Add: "add", types.Mul: "mul", types.Max: "max"}[kind]
	y = p.b.Binary(name, y, p.reduce(kind, all, d))
	p.add(x.o.Results[0], p.produced(x, 0, a), p.b.Convert(y, elem))
}

func (p *partitioner) searchSent(x factored, a assignment) int64 {
	d := along(x.o)
	n, atoms := p.totals(x, d, a)
	k := int64(p.grid.Count(atoms))
	bytes := x.o.Operands[0].Elem().Bits() / 8
	if last := x.o.Results[len(x.o.Results)-1]; x.o.Name == "dm.argmax" || len(x.o.Results) > 1 {
		bytes += last.Elem().Bits() / 8
	}
	if x.o.Name == "dm.top_k" {
		n *= min(op.Int(x.o, "k"), p.grid.Piece(p.shape(x.o.Operands[0].Tensor()), p.required(x, 0, a))[d])
	}
	return n * bytes * (k - 1) * k * p.groups(atoms)
}

// search is an argmax or a top_k along a divided dimension: the devices search their pieces,
// exchange what they found with its places in the whole, and search among that. Of equal elements the
// first comes first in each step.
func (p *partitioner) search(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	d := along(x.o)
	t := x.o.Operands[0].Tensor()
	l := p.required(x, 0, a)
	v := pieces[0]
	if n, _ := t.Shape[d].Int(); !p.grid.Even(l, d, n) {
		v = p.b.Value("select", []*ir.Value{p.within(v.Tensor(), n, l, d), v, p.least(x.o, v)}, nil)
	}
	if x.o.Name == "dm.argmax" {
		p.argmax(x, a, v, d, l.Dims[d])
	} else {
		p.topK(x, a, v, d, l.Dims[d])
	}
}

// least is an element that o, a search, finds last: of equal ones those of the whole come
// before padding.
func (p *partitioner) least(o *ir.Op, v *ir.Value) *ir.Value {
	if o.Name == "dm.argmax" || op.Bool(o, "largest") {
		return p.neutral(types.Max, v)
	}
	if v.Elem().IsFloat() { // NaN is above all numbers
		zero := p.b.Splat(scalar(v), 0)
		return p.b.Binary("div", zero, zero)
	}
	return p.neutral(types.Min, v)
}

func (p *partitioner) argmax(x factored, a assignment, v *ir.Value, d int, atoms []int) {
	elem := x.o.Results[0].Elem()
	at := p.b.Make("argmax", []*ir.Value{v}, []types.Named{{Name: "dim", Value: types.Int{V: int64(d)}}, {Name: "keep_dims", Value: types.Bool(true)}},
		&types.Tensor{Elem: elem, Shape: replaced(v.Tensor().Shape, d, 1), At: v.Tensor().At})
	if at == nil {
		return
	}
	values := p.gather(p.reduce(types.Max, v, d), d, atoms)
	places := p.gather(p.placed(at.Results[0], v, d, atoms), d, atoms)
	best := p.b.Value("argmax", []*ir.Value{values}, []types.Named{{Name: "dim", Value: types.Int{V: int64(d)}}, {Name: "keep_dims", Value: types.Bool(true)}})
	count := p.b.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, index.With(column(places, d)...))
	here := p.b.Value("compare", []*ir.Value{count, best}, []types.Named{{Name: "direction", Value: types.Keyword("eq")}})
	y := p.reduce(types.Add, p.b.Value("select", []*ir.Value{here, places, p.b.Splat(scalar(places), 0)}, nil), d)
	own := p.produced(x, 0, a)
	p.add(x.o.Results[0], own, p.b.Reshape(y, p.local(x.o.Results[0].Tensor(), own).Shape...))
}

// placed are places in the piece v along dimension d as places in the whole.
func (p *partitioner) placed(at, v *ir.Value, d int, atoms []int) *ir.Value {
	size, _ := v.Tensor().Shape[d].Int()
	return p.b.Binary("add", at, p.b.Convert(p.times(p.position(atoms), size), at.Elem()))
}

func (p *partitioner) topK(x factored, a assignment, v *ir.Value, d int, atoms []int) {
	last := v.Tensor().Rank() - 1
	order := make([]int, 0, last+1)
	for i := range last + 1 {
		if i != d {
			order = append(order, i)
		}
	}
	order = append(order, d)
	v = p.b.Transpose(v, order...)
	k := op.Int(x.o, "k")
	indices := types.I64
	if len(x.o.Results) > 1 {
		indices = x.o.Results[1].Elem()
	}
	top := func(v *ir.Value, k int64) (values, places *ir.Value) {
		t := *v.Tensor()
		t.Shape = replaced(t.Shape, last, k)
		i := t
		i.Elem = indices
		o := p.b.Make("top_k", []*ir.Value{v}, []types.Named{
			{Name: "k", Value: types.Int{V: k}}, {Name: "dim", Value: types.Int{V: int64(last)}}, {Name: "largest", Value: types.Bool(op.Bool(x.o, "largest"))},
		}, &t, &i)
		if o == nil {
			return v, v
		}
		return o.Results[0], o.Results[1]
	}
	size, _ := v.Tensor().Shape[last].Int()
	values, places := top(v, min(k, size))
	found, which := top(p.gather(values, last, atoms), k)
	results := []*ir.Value{found}
	if len(x.o.Results) > 1 {
		places = p.gather(p.placed(places, v, last, atoms), last, atoms)
		results = append(results, p.b.Value("gather", []*ir.Value{places, which}, []types.Named{{Name: "dim", Value: types.Int{V: int64(last)}}, {Name: "batch_dims", Value: types.Int{V: int64(last)}}}))
	}
	for i, y := range results {
		p.add(x.o.Results[i], p.produced(x, i, a), p.b.Transpose(y, op.Inverse(order)...))
	}
}
