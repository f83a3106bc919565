package op

import (
	"math/big"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// TripCount is how often the body of o, a dm.while, runs, where that follows from
// its text: a carried integer starts at a number, changes by a number in each
// iteration, and the condition compares it with a number. Kernels around these
// ops do not matter. max_trips bounds the count.
func TripCount(o *ir.Op) (n int64, ok bool) {
	if o.Name != While || !Valid(o) {
		return 0, false
	}
	cond, body := o.Body(0), o.Body(1)
	if cond.Terminator() == nil || body.Terminator() == nil || len(cond.Terminator().Operands) != 1 {
		return 0, false
	}
	test := computed(cond.Terminator().Operands[0])
	if test.Op == nil || test.Op.Name != compare || !Valid(test.Op) {
		return 0, false
	}
	l := &countedLoop{o, cond, body}
	direction, x, y := Str(test.Op, "direction"), computed(test.Op.Operands[0]), computed(test.Op.Operands[1])
	if l.carried(x) < 0 || l.step(l.carried(x)) == nil {
		x, y, direction = y, x, mirrored[direction]
	}
	i := l.carried(x)
	if i < 0 {
		return 0, false
	}
	start, step, bound := number(computed(o.Operands[i])), l.step(i), l.number(y)
	if start == nil || step == nil || bound == nil {
		return 0, false
	}
	count := trips(direction, start, step, bound, o.Operands[i].Elem())
	if count == nil {
		return 0, false
	}
	n = count.Int64()
	if most := Int(o, "max_trips"); Attr(o, "max_trips") != nil {
		n = min(n, most)
	}
	return n, true
}

// Induction is what carried value i of o, a dm.while, starts at and what each iteration adds
// to it, where both are numbers.
func Induction(o *ir.Op, i int) (start, step int64, ok bool) {
	if o.Name != While || !Valid(o) || o.Body(1).Terminator() == nil || i >= len(o.Operands) {
		return 0, 0, false
	}
	first, by := number(computed(o.Operands[i])), (&countedLoop{o: o, body: o.Body(1)}).step(i)
	if first == nil || by == nil || !first.IsInt64() || !by.IsInt64() {
		return 0, 0, false
	}
	return first.Int64(), by.Int64(), true
}

const compare = Prefix + "compare"

// mirrored is the direction of a comparison with its operands swapped.
var mirrored = map[string]string{"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}

// countedLoop is a loop whose counter is looked for.
type countedLoop struct {
	o          *ir.Op
	cond, body *ir.Block
}

// carried is the number of the carried value that v, an argument of the condition,
// is; -1 for other values.
func (l *countedLoop) carried(v *ir.Value) int {
	if v.Block == l.cond && v.Index < len(l.o.Operands) && v.Tensor() != nil && v.Tensor().Rank() == 0 {
		return v.Index
	}
	return -1
}

// step is what an iteration adds to carried value i, nil where that is no number.
func (l *countedLoop) step(i int) *big.Int {
	if i < 0 || i >= len(l.body.Args) || i >= len(l.body.Terminator().Operands) {
		return nil
	}
	a := computed(l.body.Terminator().Operands[i]).Op
	if a == nil || len(a.Operands) != 2 {
		return nil
	}
	x, y := computed(a.Operands[0]), computed(a.Operands[1])
	switch arg := l.body.Args[i]; {
	case a.Name == Prefix+"add" && x == arg:
		return number(y)
	case a.Name == Prefix+"add" && y == arg:
		return number(x)
	case a.Name == Prefix+"sub" && x == arg:
		if n := number(y); n != nil {
			return n.Neg(n)
		}
	}
	return nil
}

// number is the value of v in every evaluation of the condition: a constant, or a
// carried value that stays what it was.
func (l *countedLoop) number(v *ir.Value) *big.Int {
	if i := l.carried(v); i >= 0 && i < len(l.body.Args) && i < len(l.body.Terminator().Operands) &&
		computed(l.body.Terminator().Operands[i]) == l.body.Args[i] {
		v = computed(l.o.Operands[i])
	}
	return number(v)
}

// computed is v without the views and kernels that hand it on.
func computed(v *ir.Value) *ir.Value {
	for range maxChain {
		v = Source(v)
		w := kernelYield(v)
		if w == nil {
			break
		}
		v = w
	}
	return v
}

// number is the one integer that v, a constant, holds; nil where it is none.
func number(v *ir.Value) *big.Int {
	if v.Op == nil || v.Op.Name != Constant {
		return nil
	}
	d, ok := v.Op.Attr("value").(*types.Dense)
	if !ok || d.Len() != 1 || d.Elem.IsFloat() {
		return nil
	}
	if n := d.Int(0); d.Elem == types.UI64 && n < 0 {
		return new(big.Int).SetUint64(uint64(n))
	}
	return big.NewInt(d.Int(0))
}

// trips is how often a loop runs whose counter of type e begins at start, while it
// compares so with bound, if each iteration adds step; nil where it has no end
// before the counter leaves its type, or more than 2^53 iterations.
func trips(direction string, start, step, bound *big.Int, e types.Elem) *big.Int {
	left := new(big.Int).Sub(bound, start)
	switch direction {
	case "le":
		left.Add(left, big.NewInt(1))
		direction = "lt"
	case "ge":
		left.Sub(left, big.NewInt(1))
		direction = "gt"
	}
	n := new(big.Int)
	switch sign := left.Sign(); {
	case direction == "lt" && sign <= 0, direction == "gt" && sign >= 0, direction == "ne" && sign == 0, direction == "eq" && sign != 0:
		return n
	case step.Sign() == 0:
		return nil
	case direction == "eq":
		n.SetInt64(1)
	case direction == "lt" && step.Sign() < 0, direction == "gt" && step.Sign() > 0:
		return nil
	default:
		rest := new(big.Int)
		n.QuoRem(left, step, rest)
		switch {
		case rest.Sign() == 0 && n.Sign() > 0:
		case direction == "ne":
			return nil
		default:
			n.Add(n, big.NewInt(1))
		}
	}
	last := new(big.Int).Mul(n, step)
	last.Add(last, start)
	bits := int(e.Bits())
	if e.IsUnsigned() && (last.Sign() < 0 || last.BitLen() > bits) || !e.IsUnsigned() && last.BitLen() >= bits || n.BitLen() > 53 {
		return nil
	}
	return n
}
