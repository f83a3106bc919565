package raise

import (
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Indices removes what the range of an integer decides. Printers write checks of indices that always hold: JAX counts a negative index from
// the end and tests each for being inside, those that it numbers itself as well. It
// removes from b what the range of an integer decides, and reports whether it did: the
// checks, the selects that they decide, clamps within their limits, slices of one operand
// of a concatenation and gathers along a dimension of size 1. A gather of element
// i·n + j of a matrix as one row, with i counting its rows, becomes one of column j in
// each row.
func Indices(b *ir.Block) bool {
	changed := false
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				changed = Indices(inner) || changed
			}
		}
		if len(o.Results) != 1 || len(o.Results[0].Uses) == 0 || !plain(o.Results[0]) || !op.Valid(o) || o.Verbatim {
			continue
		}
		build := op.NewBuilder(&ir.Builder{Block: b, Index: i, At: o}, nil)
		v := simpler(build, o)
		if v == nil || build.Err() != nil || !types.Equal(v.Type, o.Results[0].Type) {
			build.Undo()
			continue
		}
		if len(v.Uses) == 0 { // it is new
			v.Name = o.Results[0].Name
		}
		ir.ReplaceUses(o.Results[0], v)
		i = build.Index // where o stands now
		changed = true
	}
	return changed
}

// simpler is what o computes, built at b; nil for o itself.
func simpler(b *op.Builder, o *ir.Op) *ir.Value {
	y := o.Out(0)
	whole := func(n int64) *ir.Value {
		t := y.With(y.Shape...)
		return b.Value("constant", nil, attrs("value", types.IntOf(t, n)), t)
	}
	switch o.Name {
	case "dm.compare":
		if holds, known := decided(op.Str(o, "direction"), rangeOf(o.Operands[0], maxRange), rangeOf(o.Operands[1], maxRange)); known {
			return whole(holds)
		}
	case "dm.and", "dm.or":
		if y.Elem != types.I1 {
			return nil
		}
		keeps := int64(0)
		if o.Name == "dm.and" {
			keeps = 1
		}
		for i, v := range o.Operands {
			r := rangeOf(v, maxRange)
			switch {
			case !r.known || r.low != r.high:
			case r.low != keeps:
				return whole(r.low)
			default:
				return o.Operands[1-i]
			}
		}
	case "dm.select":
		if c := rangeOf(o.Operands[0], maxRange); c.known && c.low == c.high {
			return o.Operands[2-c.low]
		}
	case "dm.clamp":
		low, x, high := rangeOf(o.Operands[0], maxRange), rangeOf(o.Operands[1], maxRange), rangeOf(o.Operands[2], maxRange)
		if low.known && x.known && high.known && low.high <= x.low && x.high <= high.low {
			return o.Operands[1]
		}
	case "dm.reshape":
		if x := o.Operands[0]; x.Op != nil && x.Op.Name == "dm.reshape" {
			return b.Reshape(x.Op.Operands[0], y.Shape...)
		}
	case "dm.slice":
		return sliced(o)
	case "dm.gather":
		return gathered(b, o)
	}
	return nil
}

// sliced is the operand of a concatenation that o takes; nil where it takes others.
func sliced(o *ir.Op) *ir.Value {
	c := o.Operands[0].Op
	if c == nil || c.Name != "dm.concatenate" || len(c.Operands) > maxListed || len(c.Results) != 1 || !op.Valid(c) || op.Attr(o, "dims") != nil {
		return nil
	}
	d, ok := op.Dim(c, "dim", c.Out(0).Rank())
	start, stop, strides := op.Ints(o, "start_indices"), op.Ints(o, "limit_indices"), op.Ints(o, "strides")
	if !ok || len(start) <= d || len(stop) != len(start) || slices.ContainsFunc(strides, func(n int64) bool { return n != 1 }) {
		return nil
	}
	at := int64(0)
	for i, v := range c.Operands {
		n, known := c.In(i).Shape[d].Int()
		if !known {
			return nil
		}
		if start[d] == at && stop[d] == at+n && types.Equal(v.Type, o.Results[0].Type) {
			return v
		}
		at += n
	}
	return nil
}

// gathered is what o takes from a dimension of size 1, or of a matrix as one row.
func gathered(b *op.Builder, o *ir.Op) *ir.Value {
	x, idx, y := o.In(0), o.In(1), o.Out(0)
	d, ok := op.Dim(o, "dim", x.Rank())
	if !ok {
		return nil
	}
	if isOne(x, d) && isScalar(idx) { // an index outside is the nearest one inside
		return b.Reshape(o.Operands[0], y.Shape...)
	}
	if v := unclamped(o.Operands[1], x, d); v != o.Operands[1] {
		return b.Value("gather", []*ir.Value{o.Operands[0], b.Reshape(v, idx.Shape...)}, o.Attrs)
	}
	flat := o.Operands[0].Op
	if x.Rank() != 1 || idx.Rank() != 1 || flat == nil || flat.Name != "dm.reshape" || flat.In(0).Rank() != 2 {
		return nil
	}
	rows, _ := flat.In(0).Shape[0].Int()
	columns, known := flat.In(0).Shape[1].Int()
	n, _ := idx.Shape[0].Int()
	sum := o.Operands[1].Op
	if !known || rows == 0 || n != rows || sum == nil || sum.Name != "dm.add" {
		return nil
	}
	for i, v := range sum.Operands {
		column := sum.Operands[1-i]
		if r := rangeOf(column, maxRange); !r.known || r.low < 0 || r.high >= columns || shapeOf(column) == nil || len(shapeOf(column)) != 1 || !multiple(v, rows, columns) {
			continue
		}
		return b.Value("gather", []*ir.Value{flat.Operands[0], column}, slices.Concat(attrs("dim", types.Int{V: 1}), attrs("batch_dims", types.Int{V: 1})))
	}
	return nil
}

// unclamped is the index v of dimension d of x before it is clamped, as a gather does
// itself.
func unclamped(v *ir.Value, x *types.Tensor, d int) *ir.Value {
	c := unshaped(v).Op
	if c == nil || c.Name != "dm.clamp" || !types.Equal(c.Operands[1].Type, c.Results[0].Type) {
		return v
	}
	low, high := rangeOf(c.Operands[0], maxRange), rangeOf(c.Operands[2], maxRange)
	n, known := x.Shape[d].Int()
	if !known || low != (span{0, 0, true}) || high != (span{n - 1, n - 1, true}) {
		return v
	}
	return c.Operands[1]
}

// unshaped is v before it was reshaped.
func unshaped(v *ir.Value) *ir.Value {
	for v.Op != nil && v.Op.Name == "dm.reshape" && op.Valid(v.Op) {
		v = v.Op.Operands[0]
	}
	return v
}

// multiple reports whether v is 0, n, 2n, … as many as rows.
func multiple(v *ir.Value, rows, n int64) bool {
	if v.Op == nil || v.Op.Name != "dm.mul" || len(shapeOf(v)) != 1 {
		return false
	}
	for i, count := range v.Op.Operands {
		if by, is := numberOf(v.Op.Operands[1-i]); !is || by != float64(n) {
			continue
		}
		count = base(count)
		for count.Op != nil && count.Op.Name == "dm.convert" {
			count = base(count.Op.Operands[0])
		}
		k, known := int64(0), false
		if s := shapeOf(count); len(s) == 1 {
			k, known = s[0].Int()
		}
		if known && k == rows && count.Op != nil && count.Op.Name == "dm.iota" && op.Float(count.Op, "start") == 0 && op.Float(count.Op, "step") == 1 {
			return true
		}
	}
	return false
}

// span is where the elements of an integer value lie, both ends inside.
type span struct {
	low, high int64
	known     bool
}

// maxRange bounds how far a range is traced, maxListed the elements that are read of a constant.
const (
	maxRange  = 8
	maxListed = 64
)

// ofType are the numbers of a type; not known where 64 bits do not hold them.
func ofType(e types.Elem) span {
	switch bits := e.Bits(); {
	case e == types.I1:
		return span{0, 1, true}
	case e.IsFloat() || bits > 64 || bits == 64 && e.IsUnsigned():
		return span{}
	case e.IsUnsigned():
		return span{0, 1<<bits - 1, true}
	default:
		return span{-1 << (bits - 1), 1<<(bits-1) - 1, true}
	}
}

// within is r where a type e holds all of it, the numbers of e otherwise: arithmetic wraps.
func (r span) within(e types.Elem) span {
	if all := ofType(e); !r.known || !all.known || r.low < all.low || r.high > all.high {
		return all
	}
	return r
}

func rangeOf(v *ir.Value, depth int) span {
	t := v.Tensor()
	if t == nil || t.Elem.IsFloat() {
		return span{}
	}
	all := ofType(t.Elem)
	o := v.Op
	if o == nil && depth > 0 {
		return counted(v, all)
	}
	if o == nil || depth == 0 || len(o.Results) != 1 || len(o.Regions) > 0 || !op.Valid(o) {
		return all
	}
	in := func(i int) span { return rangeOf(o.Operands[i], depth-1) }
	switch o.Name {
	case op.Constant:
		return listed(o, all)
	case "dm.iota":
		d, ok := op.Dim(o, "dim", t.Rank())
		if !ok {
			return all
		}
		n, known := t.Shape[d].Int()
		start, step := op.Float(o, "start"), op.Float(o, "step")
		last := start + step*float64(n-1)
		if !known || n == 0 || math.Abs(start) > 1<<53 || math.Abs(last) > 1<<53 {
			return all
		}
		return span{int64(min(start, last)), int64(max(start, last)), true}.within(t.Elem)
	case "dm.reshape", "dm.transpose", "dm.broadcast", "dm.copy", "dm.slice", "dm.gather":
		return in(0)
	case "dm.convert":
		if r := in(0); !o.Operands[0].Elem().IsFloat() && r.known && t.Elem != types.I1 {
			return r.within(t.Elem)
		}
	case "dm.concatenate":
		out := in(0)
		for i := 1; i < len(o.Operands) && i < maxListed; i++ {
			out = out.or(in(i))
		}
		if len(o.Operands) <= maxListed {
			return out
		}
	case "dm.select":
		return in(1).or(in(2))
	case "dm.add", "dm.sub", "dm.mul", "dm.min", "dm.max":
		if t.Elem != types.I1 {
			return combine(o.Name, in(0), in(1)).within(t.Elem)
		}
	case "dm.clamp":
		return combine("dm.min", combine("dm.max", in(0), in(1)), in(2))
	}
	return all
}

// counted is the range of v, an argument of the body of a loop that counts, if it grows by a number in each iteration.
func counted(v *ir.Value, all span) span {
	if v.Block == nil || v.Block.Region == nil || v.Tensor().Rank() > 0 {
		return all
	}
	o := v.Block.Region.Op
	if o == nil || o.Name != op.While || o.Body(1) != v.Block {
		return all
	}
	start, step, ok := op.Induction(o, v.Index)
	trips, known := op.TripCount(o)
	const limit = 1 << 31
	if !ok || !known || trips == 0 || max(start, -start, step, -step, trips) > limit {
		return all
	}
	last := start + (trips-1)*step
	return span{min(start, last), max(start, last), true}.within(v.Elem())
}

// listed is the range of a constant of few elements.
func listed(o *ir.Op, all span) span {
	d, ok := op.Attr(o, "value").(*types.Dense)
	if !ok || d.Len() == 0 || d.Len() > maxListed || !all.known {
		return all
	}
	out := span{d.Int(0), d.Int(0), true}
	for i := range d.Len() {
		out.low, out.high = min(out.low, d.Int(i)), max(out.high, d.Int(i))
	}
	if all.high == 1 && out.low < 0 { // true is stored as -1
		return all
	}
	return out
}

func (r span) or(s span) span {
	return span{min(r.low, s.low), max(r.high, s.high), r.known && s.known}
}

// combine is the range of an op on two ranges; not known where 64 bits do not hold it.
func combine(name string, a, b span) span {
	const limit = 1 << 31
	switch {
	case !a.known || !b.known:
		return span{}
	case name == "dm.min":
		return span{min(a.low, b.low), min(a.high, b.high), true}
	case name == "dm.max":
		return span{max(a.low, b.low), max(a.high, b.high), true}
	case a.low < -limit || a.high > limit || b.low < -limit || b.high > limit:
		return span{}
	case name == "dm.add":
		return span{a.low + b.low, a.high + b.high, true}
	case name == "dm.sub":
		return span{a.low - b.high, a.high - b.low, true}
	}
	ends := []int64{a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high}
	return span{slices.Min(ends), slices.Max(ends), true}
}

// decided is what a comparison of all elements of two ranges gives, if it is one number.
func decided(direction string, a, b span) (holds int64, known bool) {
	if !a.known || !b.known {
		return 0, false
	}
	switch direction {
	case "lt":
		return either(a.high < b.low, a.low >= b.high)
	case "le":
		return either(a.high <= b.low, a.low > b.high)
	case "gt":
		return decided("lt", b, a)
	case "ge":
		return decided("le", b, a)
	case "eq":
		return either(a.low == a.high && a.low == b.low && b.low == b.high, a.high < b.low || b.high < a.low)
	case "ne":
		holds, known = decided("eq", a, b)
		return 1 - holds, known
	}
	return 0, false
}

func either(always, never bool) (holds int64, known bool) {
	if always {
		return 1, true
	}
	return 0, never
}
