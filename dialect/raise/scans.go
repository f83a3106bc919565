package raise

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// scans makes a dm.scan of each loop in b that counts and takes an element of a tensor in
// each iteration, or stores one, as JAX writes jax.lax.scan: the derivative then stacks
// elements and not whole tensors. It is one only where that is exact: element i, or the one
// as far from the end, lies inside of the tensor in all iterations, and a tensor that is
// filled is read by nothing else in the body. What other ops take or store by the counter
// is carried as before, and a loop without elements stays.
func scans(b *ir.Block, found map[string]int) {
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		if o.Name == op.Kernel {
			continue
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				scans(inner, found)
			}
		}
		if l := loopOf(o); l != nil {
			before := len(b.Ops)
			l.scan(i)
			i += len(b.Ops) - before
			found["scan"]++
		}
	}
}

// loop is a dm.while that can be a scan.
type loop struct {
	o       *ir.Op
	body    *ir.Block
	trips   int64
	counts  map[int]int64 // the carried values that grow by one in each iteration, and what they start at
	reverse bool
	taken   []element // slices of tensors from outside
	stored  []element // updates of carried tensors
	filled  map[int]bool
}

// element is what an op, a dm.dynamic_slice or a dm.dynamic_update_slice in the body, takes
// from tensor x or stores there: in iteration t element first + t, or in reverse
// first + trips - 1 - t.
type element struct {
	op      *ir.Op
	x       *ir.Value // from outside of the loop
	carried int       // of what is stored: which carried value it is
	first   int64
	reverse bool
}

// maxTrips bounds the counters that indices are computed from, so that no sum of a few
// leaves 32 bits.
const maxTrips = 1 << 28

// loopOf is o as a scan; nil where it is none.
func loopOf(o *ir.Op) *loop {
	trips, ok := op.TripCount(o)
	if !ok || trips < 2 || trips > maxTrips {
		return nil
	}
	l := &loop{o: o, body: o.Body(1), trips: trips, counts: map[int]int64{}, filled: map[int]bool{}}
	for i, v := range o.Operands {
		start, step, ok := op.Induction(o, i)
		if ok && step == 1 && start >= 0 && start <= maxTrips && v.Elem().Bits() >= 32 && v.Tensor().Rank() == 0 {
			l.counts[i] = start
		}
	}
	reversed := 0
	for _, p := range l.body.Ops {
		if e := l.takes(p); e != nil {
			l.taken = append(l.taken, *e)
		}
	}
	for i := range o.Operands {
		if e := l.stores(i); e != nil {
			l.stored = append(l.stored, *e)
		}
	}
	for _, e := range slices.Concat(l.taken, l.stored) {
		if e.reverse {
			reversed++
		}
	}
	l.reverse = 2*reversed > len(l.taken)+len(l.stored)
	other := func(e element) bool { return e.reverse != l.reverse }
	l.taken, l.stored = slices.DeleteFunc(l.taken, other), slices.DeleteFunc(l.stored, other)
	if len(l.taken)+len(l.stored) == 0 {
		return nil
	}
	for _, e := range l.stored {
		l.filled[e.carried] = true
	}
	return l
}

// outside is the value from outside of the loop that v is in each iteration, nil for others.
func (l *loop) outside(v *ir.Value) *ir.Value {
	if v.Block == l.body {
		if l.body.Terminator().Operands[v.Index] == v {
			return l.o.Operands[v.Index]
		}
		return nil
	}
	if v.Inside(l.o) {
		return nil
	}
	return v
}

// takes is the element that p takes, nil where it is no such op.
func (l *loop) takes(p *ir.Op) *element {
	if p.Name != "dm.dynamic_slice" || !op.Valid(p) || !plain(p.Results[0]) || !plain(p.Operands[0]) {
		return nil
	}
	x := l.outside(p.Operands[0])
	if x == nil || !oneRow(p.Out(0), x.Tensor()) {
		return nil
	}
	first, reverse, ok := l.at(p.Operands[1], x.Tensor())
	if !ok {
		return nil
	}
	return &element{op: p, x: x, first: first, reverse: reverse}
}

// stores is the element that each iteration stores in carried value i, nil where there is none.
func (l *loop) stores(i int) *element {
	next, arg := l.body.Terminator().Operands[i], l.body.Args[i]
	p := next.Op
	if p == nil || p.Name != "dm.dynamic_update_slice" || p.Parent != l.body || !op.Valid(p) || p.Operands[0] != arg ||
		len(arg.Uses) != 1 || len(next.Uses) != 1 || !plain(next) || !plain(arg) || !oneRow(p.In(1), arg.Tensor()) {
		return nil
	}
	first, reverse, ok := l.at(p.Operands[2], arg.Tensor())
	if !ok {
		return nil
	}
	return &element{op: p, x: l.o.Operands[i], carried: i, first: first, reverse: reverse}
}

// counting reports whether carried value k grows by one in each iteration.
func (l *loop) counting(k int) bool {
	_, is := l.counts[k]
	return is
}

// oneRow reports whether part has one element of the first dimension of x, and all of the others.
func oneRow(part, x *types.Tensor) bool {
	return x.Rank() > 0 && part.Rank() == x.Rank() && isOne(part, 0) && slices.EqualFunc(part.Shape[1:], x.Shape[1:], dim.Dim.Equal)
}

// at is where the index v runs along the first dimension of x, if it stays inside.
func (l *loop) at(v *ir.Value, x *types.Tensor) (first int64, reverse, ok bool) {
	sign, offset, ok := l.linear(v, maxRange)
	rows, known := x.Shape[0].Int()
	if !ok || !known || sign == 0 {
		return 0, false, false
	}
	if sign < 0 {
		offset -= l.trips - 1
	}
	return offset, sign < 0, offset >= 0 && offset+l.trips <= rows
}

// linear is sign times the number of the iteration plus an offset, for an index that is computed so.
func (l *loop) linear(v *ir.Value, depth int) (sign, offset int64, ok bool) {
	if v.Block == l.body {
		start, ok := l.counts[v.Index]
		return 1, start, ok
	}
	o := v.Op
	if o == nil || depth == 0 || v.Tensor() == nil || !op.Valid(o) {
		return 0, 0, false
	}
	if r := rangeOf(v, 1); r.known && r.low == r.high && o.Name == op.Constant {
		return 0, r.low, max(r.low, -r.low) <= maxTrips
	}
	switch o.Name {
	case "dm.reshape":
		return l.linear(o.Operands[0], depth-1)
	case "dm.convert":
		sign, offset, ok = l.linear(o.Operands[0], depth-1)
		return sign, offset, ok && v.Elem().IsInt() && v.Elem().Bits() >= 32
	case "dm.add", "dm.sub":
		s, a, is := l.linear(o.Operands[0], depth-1)
		t, b, are := l.linear(o.Operands[1], depth-1)
		if o.Name == "dm.sub" {
			t, b = -t, -b
		}
		sign, offset = s+t, a+b
		low := offset + min(0, sign*l.trips)
		return sign, offset, is && are && max(sign, -sign) <= 1 && offset <= maxTrips && (low >= 0 || !v.Elem().IsUnsigned() && low >= -maxTrips)
	}
	return 0, 0, false
}

// scan puts the scan in the place of the loop, which is op i of its block.
func (l *loop) scan(i int) {
	o, body, end := l.o, l.body, l.body.Terminator()
	b := op.NewBuilder(&ir.Builder{Block: o.Parent, Index: i, At: o}, nil)
	stacks := l.take(b)
	rows := l.rows()
	var carried []int // values that the scan carries
	var next []*ir.Value
	for k, v := range end.Operands {
		switch {
		case v == body.Args[k]:
			ir.ReplaceUses(v, o.Operands[k]) // the use in the terminator, too
		case !l.counting(k) && !l.filled[k]:
			carried, next = append(carried, k), append(next, v)
		}
	}
	end.SetOperands(slices.Concat(next, rows)...)
	op.RemoveDead(body)
	for k, count := range body.Args[:len(o.Operands)] {
		if l.counting(k) && len(count.Uses) > 0 { // as a number, too
			at := op.NewBuilder(&ir.Builder{Block: body, Index: end.Position(), At: o}, nil)
			carried = append(carried, k)
			next = append(next, at.Binary("add", count, at.Splat(count.Tensor(), 1)))
		}
	}
	end.SetOperands(slices.Concat(next, rows)...)
	var in, likes []*ir.Value
	var out []types.Type
	for _, k := range carried {
		in, likes, out = append(in, o.Operands[k]), append(likes, body.Args[k]), append(out, o.Results[k].Type)
	}
	likes = append(likes, body.Args[len(o.Operands):]...)
	n := dim.Const(l.trips)
	for _, v := range rows {
		out = append(out, op.StackOf(n, v.Tensor()))
	}
	attrs := attrs("carries", types.Int{V: int64(len(carried))})
	if len(stacks) == 0 {
		attrs = append(attrs, types.Named{Name: "length", Value: types.Int{V: l.trips}})
	}
	if l.reverse {
		attrs = append(attrs, types.Named{Name: "reverse", Value: types.Bool(true)})
	}
	s := b.Builder.Op(op.Scan, append(in, stacks...), attrs, out...)
	s.Origin = o.Origin
	region := s.AddRegion(likes...)
	args := slices.Clone(o.Operands) // of those that the scan does not carry nothing reads the argument any more
	args = append(args, region.Args[len(carried):]...)
	for k, c := range carried {
		args[c] = region.Args[k]
	}
	at := &ir.Builder{Block: region, At: o}
	at.Op(op.Yield, ir.CloneBlock(at, body, args), nil)
	l.hand(b, s, carried)
	ir.EraseAll(o)
}

// take gives the body an argument for each element that it takes, in place of the op that
// takes it, and returns the stacks.
func (l *loop) take(b *op.Builder) (stacks []*ir.Value) {
	type place struct {
		x     *ir.Value
		first int64
	}
	args := map[place]*ir.Value{}
	for _, e := range l.taken {
		arg := args[place{e.x, e.first}]
		if arg == nil {
			stack := e.x
			t := stack.Tensor()
			if rows, _ := t.Shape[0].Int(); rows != l.trips {
				starts, limits := make([]int, t.Rank()), make([]int, t.Rank())
				for d, size := range t.Shape {
					n, _ := size.Int()
					limits[d] = int(n)
				}
				starts[0], limits[0] = int(e.first), int(e.first+l.trips)
				stack = b.Value("slice", []*ir.Value{stack}, append(attrs("start_indices", op.IntList(starts...)), attrs("limit_indices", op.IntList(limits...))...))
			}
			arg = l.body.AddArg("", op.SliceOf(t))
			args[place{e.x, e.first}], stacks = arg, append(stacks, stack)
		}
		slice := e.op.Results[0]
		at := op.NewBuilder(&ir.Builder{Block: l.body, Index: e.op.Position() + 1, At: e.op}, nil)
		for _, u := range slices.Clone(slice.Uses) {
			if u.Op.Name == "dm.reshape" && types.Equal(u.Op.Results[0].Type, arg.Type) {
				arg.Name = u.Op.Results[0].Name
				ir.ReplaceUses(u.Op.Results[0], arg)
			}
		}
		ir.ReplaceUses(slice, at.Reshape(arg, slice.Tensor().Shape...))
	}
	return stacks
}

// rows are the elements that an iteration stores.
func (l *loop) rows() []*ir.Value {
	var rows []*ir.Value
	for _, e := range l.stored {
		v := e.op.Operands[1]
		t := op.SliceOf(v.Tensor())
		if from := v.Op; from != nil && from.Name == "dm.reshape" && types.Equal(from.Operands[0].Type, t) {
			rows = append(rows, from.Operands[0])
			continue
		}
		at := op.NewBuilder(&ir.Builder{Block: l.body, Index: l.body.Terminator().Position(), At: e.op}, nil)
		rows = append(rows, at.Reshape(v, t.Shape...))
	}
	return rows
}

// hand puts the results of s, a scan that carries those values, in place of the loop's.
func (l *loop) hand(b *op.Builder, s *ir.Op, carried []int) {
	for k, c := range carried {
		s.Results[k].Name = l.o.Results[c].Name
	}
	for k, e := range l.stored {
		y, old := s.Results[len(carried)+k], l.o.Results[e.carried]
		y.Name = old.Name
		if !types.Equal(y.Type, old.Type) { // the other elements stay
			t := types.Tensor{Elem: types.I64, At: y.Tensor().At}
			operands := []*ir.Value{e.x, y, b.Splat(&t, float64(e.first))}
			for range e.x.Tensor().Shape[1:] {
				operands = append(operands, b.Splat(&t, 0))
			}
			y.Name = ""
			y = b.Value("dynamic_update_slice", operands, nil)
			y.Name = old.Name
		}
		ir.ReplaceUses(old, y)
	}
	for k, v := range l.o.Results {
		if c := slices.Index(carried, k); c >= 0 {
			ir.ReplaceUses(v, s.Results[c])
		} else if l.counting(k) && len(v.Uses) > 0 {
			ir.ReplaceUses(v, b.Value("constant", nil, attrs("value", types.IntOf(v.Tensor(), l.counts[k]+l.trips)), v.Type))
		} else if len(v.Uses) > 0 { // the same in all iterations
			ir.ReplaceUses(v, l.o.Operands[k])
		}
	}
}
