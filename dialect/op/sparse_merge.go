package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// merging is how element-wise ops of two operands take sparse ones. Where one operand hands on
// the pattern of the other, their values are combined; else their sorted keys are merged:
// the result stores the union of what they store or, where both says so, the intersection,
// because the function is 0 wherever one of them is.
func merging(both bool) *Sparse {
	doc := "Two sparse operands of one shape: computed where one of them stores an element. The result is stored as the first one; where the second need not store the same elements, " +
		"the written `nnz` is how many it has room for, and it is an error if there are more."
	if both {
		doc = "A sparse operand and a dense one: computed for the elements that are stored; the result stores the same. Two sparse operands of one shape: computed where both store an element. " +
			"The result is stored as the first one; where the second need not store the same elements, the written `nnz` is how many it has room for, and it is an error if there are more."
	}
	return &Sparse{
		Doc: doc,
		Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
			ts, p := keptFormat(o, dense)
			if p != nil || len(o.Operands) < 2 || in(o, 0).Format == nil || in(o, 1).Format == nil || SamePattern(o.Operands[0], o.Operands[1]) {
				return ts, p
			}
			r := ts[0].(*types.Tensor)
			f := *r.Format
			if w := out(o, 0).Format; w.Alike(&f) { // the bound is the writer's
				f.Stored = w.Stored
			} else {
				f.Stored = room(f.Stored, in(o, 1).Format, both)
			}
			r.Format = &f
			return ts, nil
		},
		Keeps: func(o *ir.Op, alike func(a, b *ir.Value) bool) bool {
			return len(o.Operands) < 2 || in(o, 0).Format == nil || in(o, 1).Format == nil || alike(o.Operands[0], o.Operands[1])
		},
		lower: func(l *lowering) {
			switch a, b := l.sparse(0), l.sparse(1); {
			case a && b && l.samePattern(0, 1):
				l.give(l.apply(last(l.in[0]), last(l.in[1])), 0)
			case a && b && both:
				l.assemble(l.out[0], l.common(l.out[0]))
			case a && b:
				l.assemble(l.out[0], l.union(l.out[0]))
			case both && a:
				l.give(l.apply(last(l.in[0]), l.atStored(0, 1, 0)), 0)
			case both:
				l.give(l.apply(l.atStored(1, 0, 0), last(l.in[1])), 1)
			default:
				sparse, dense := 0, 1
				if b {
					sparse, dense = 1, 0
				}
				equation := ""
				if !sameShape(in(l.o, sparse).Shape, in(l.o, dense).Shape) {
					equation = ` with an equation such as "j->ij"`
				}
				l.refuse(problem("DM134", 0, "%s takes either sparse or dense operands, not both", l.o.Name).
					help("take what is where %[1]s stores: dm.sample %[1]s, %[2]s%[3]s; or make %[1]s dense: dm.convert_format", valueName(l.o.Operands[sparse]), valueName(l.o.Operands[dense]), equation))
			}
		},
	}
}

// room is what levels with room for a have at most in the result of a merge with b.
func room(a []dim.Dim, b *types.Format, both bool) []dim.Dim {
	out := slices.Clone(a)
	for i := range out {
		if !both && i < len(b.Stored) {
			out[i] = out[i].Add(b.Stored[i])
		}
	}
	return out
}

// quotients is how div takes sparse operands.
var quotients = &Sparse{
	Doc:   "A sparse dividend and a dense divisor, or two tensors that store the same elements: computed for the elements that are stored; the result stores the same.",
	Infer: keptFormat, Keeps: keptAlways,
	lower: func(l *lowering) {
		switch a, b := l.sparse(0), l.sparse(1); {
		case a && b && l.samePattern(0, 1):
			e := l.entries(1)
			l.give(l.apply(last(l.in[0]), e.flat(e.unpadded(e.values(), e.core, 1))), 0)
		case b:
			l.refuse(problem("DM134", 1, "%s divides by 0 wherever %s stores nothing", l.o.Name, valueName(l.o.Operands[1])).help("make it dense: dm.convert_format"))
		default:
			l.give(l.apply(last(l.in[0]), l.atStored(0, 1, 1)), 0)
		}
	},
}

// keysOf are the keys of operand i in the order in which to stores them.
func (l *lowering) keysOf(i int, to *types.Tensor) keys {
	from, e := l.elementsOf(i), l.entriesOf(to, nil)
	same := from.core == e.core && slices.EqualFunc(from.levels(), e.levels(), func(a, b types.Level) bool {
		return a.Dim == b.Dim && a.Div == b.Div && a.Mod == b.Mod
	})
	if !same || from.loose() || len(from.inner()) != len(e.inner()) {
		return l.storedAs(i, roomy(to, from.t.Values()))
	}
	end := dim.Prod(e.order()...)
	elem := l.keyElem(end)
	all := make([]int, from.core+1)
	for k := range all {
		all[k] = k
	}
	key := from.ended(l.Convert(from.linear(all, from.core), elem), end)
	return keys{key: key, values: from.values(), end: end}
}

// compared is x compared with y.
func (l *lowering) compared(direction string, x, y *ir.Value) *ir.Value {
	return l.Value("compare", []*ir.Value{x, y}, named("direction", types.Keyword(direction)))
}

// find is, for each key of x, how many keys of y are less, and whether y has it.
func (l *lowering) find(x, y keys) (before, is *ir.Value) {
	n := l.vector(types.I32, asTensor(x.key.Type).Shape[0])
	before = l.Value("searchsorted", []*ir.Value{y.key, x.key}, nil, n)
	upTo := l.Value("searchsorted", []*ir.Value{y.key, x.key}, named("side", types.Keyword("right")), n)
	inside := l.compared("lt", x.key, l.constant(x.key.Elem(), x.end))
	return before, l.Binary("and", l.compared("lt", before, upTo), inside)
}

// counted is, for each of is, how many before it are true.
func (l *lowering) counted(is *ir.Value) *ir.Value {
	return l.Value("cumsum", []*ir.Value{l.Convert(is, types.I32)}, append(named("dim", intAttr(0)), named("exclusive", types.Bool(true))...))
}

// moved is x at the places of a tensor of n entries, all others of which are none.
func (l *lowering) moved(x, at *ir.Value, n dim.Dim, none *ir.Value) *ir.Value {
	shape := append([]dim.Dim{n}, asTensor(x.Type).Shape[1:]...)
	base := l.Value("broadcast", []*ir.Value{none}, nil, &types.Tensor{Shape: shape, Elem: x.Elem()})
	return l.Value("scatter", []*ir.Value{base, at, x}, append(named("kind", types.Keyword("set")), named("dim", intAttr(0))...))
}

// union is o of the operands where one of them stores an element.
func (l *lowering) union(to *types.Tensor) keys {
	a, b := l.keysOf(0, to), l.keysOf(1, to)
	e := l.entriesOf(to, nil)
	n := e.count(e.core)
	nowhere := l.Splat(&types.Tensor{Elem: types.I32}, -1)
	// An entry comes after those of its own operand before it and those of the other, less
	// those that both have.
	place := func(x, y keys) *ir.Value {
		before, is := l.find(x, y)
		at := l.Binary("sub", l.Binary("add", l.numbers(asTensor(x.key.Type).Shape[0]), before), l.counted(is))
		return l.Value("select", []*ir.Value{l.compared("lt", x.key, l.constant(x.key.Elem(), x.end)), at, nowhere}, nil)
	}
	atA, atB := place(a, b), place(b, a)
	zero := l.Splat(&types.Tensor{Elem: a.values.Elem()}, 0)
	end := l.constant(a.key.Elem(), a.end)
	nA, nB := asTensor(a.key.Type).Shape[0], asTensor(b.key.Type).Shape[0]
	if !n.AtLeast(nA.Add(nB)) {
		l.fit(l.Value("concatenate", []*ir.Value{atA, atB}, named("dim", intAttr(0))), nA.Add(nB), n)
	}
	k := keys{end: a.end, key: l.moved(a.key, atA, n, end)}
	k.key = l.Value("scatter", []*ir.Value{k.key, atB, b.key}, append(named("kind", types.Keyword("set")), named("dim", intAttr(0))...))
	k.values = l.apply(l.moved(a.values, atA, n, zero), l.moved(b.values, atB, n, zero))[0]
	return k
}

// common is o of the operands where both store an element.
func (l *lowering) common(to *types.Tensor) keys {
	a, b := l.keysOf(0, to), l.keysOf(1, to)
	e := l.entriesOf(to, nil)
	n := e.count(e.core)
	before, is := l.find(a, b)
	at := l.Value("select", []*ir.Value{is, l.counted(is), l.Splat(&types.Tensor{Elem: types.I32}, -1)}, nil)
	l.fit(at, asTensor(a.key.Type).Shape[0], n)
	values := l.apply(a.values, l.take(b.values, before))[0]
	return keys{
		end: a.end, key: l.moved(a.key, at, n, l.constant(a.key.Elem(), a.end)),
		values: l.moved(values, at, n, l.Splat(&types.Tensor{Elem: values.Elem()}, 0)),
	}
}
