package partition

import (
	"slices"

	"dmir/dialect/op"
)

// exchange is how an op is computed where an Exchanged factor is divided.
type exchange struct {
	// possible reports whether the sizes allow it; nil: always.
	possible func(p *partitioner, x factored, a assignment) bool
	// sent is the bytes that all devices send beside what it takes to have the operands and to
	// want the results in other layouts.
	sent func(p *partitioner, x factored, a assignment) int64
	emit func(p *partitioner, x factored, a assignment)
}

func sendsNothing(*partitioner, factored, assignment) int64 { return 0 }

// exchangeNamed is the algorithm of an op.
func exchangeNamed(name string) *exchange {
	switch name {
	case "dm.gather", "dm.embedding":
		return &exchange{nil, sendsNothing, (*partitioner).indexedGather}
	case "dm.scatter":
		return &exchange{nil, sendsNothing, (*partitioner).indexedScatter}
	case "dm.one_hot":
		return &exchange{nil, sendsNothing, (*partitioner).classes}
	case "dm.cumsum", "dm.cumprod", "dm.cummax":
		return &exchange{nil, (*partitioner).runSent, (*partitioner).run}
	case "dm.argmax", "dm.top_k":
		return &exchange{nil, (*partitioner).searchSent, (*partitioner).search}
	case "dm.reverse":
		return &exchange{(*partitioner).evenly, (*partitioner).reverseSent, (*partitioner).reverse}
	case "dm.roll":
		return &exchange{(*partitioner).evenly, (*partitioner).rollSent, (*partitioner).roll}
	case "dm.concatenate":
		return &exchange{nil, (*partitioner).jointSent, (*partitioner).joint}
	case "dm.dynamic_slice":
		return &exchange{nil, sendsNothing, (*partitioner).takePart}
	case "dm.dynamic_update_slice":
		return &exchange{nil, sendsNothing, (*partitioner).updatePart}
	case "dm.attention", "dm.attention_grad":
		return &exchange{(*partitioner).ringFits, (*partitioner).attendSent, (*partitioner).attend}
	}
	return &exchange{(*partitioner).spansFit, (*partitioner).spansSent, (*partitioner).windows}
}

// exchangeOf is the algorithm that an assignment needs, nil where the op computes pieces of its
// results from pieces of its operands.
func exchangeOf(x factored, a assignment) *exchange {
	for n, atoms := range a.factors {
		if len(atoms) > 0 && x.f.Kinds[n] == op.Exchanged {
			return exchangeNamed(x.o.Name)
		}
	}
	return nil
}

// possible reports whether the algorithm that a needs can be had.
func (p *partitioner) possible(x factored, a assignment) bool {
	e := exchangeOf(x, a)
	return e == nil || e.possible == nil || e.possible(p, x, a)
}

// alone is a without Exchanged factors.
func (a assignment) alone(f *op.Factors) assignment {
	b := assignment{factors: map[int][]int{}}
	for n, atoms := range a.factors {
		if f.Kinds[n] != op.Exchanged {
			b.factors[n] = atoms
		}
	}
	return b
}

// agree takes back the second factor of together where it shares some of the first one's atoms, but
// is not divided alike.
func (a assignment) agree(together [2]int) {
	first, second := a.factors[together[0]], a.factors[together[1]]
	shares := slices.ContainsFunc(second, func(atom int) bool { return slices.Contains(first, atom) })
	if together[0] != together[1] && shares && !slices.Equal(first, second) {
		delete(a.factors, together[1])
	}
}

// bytes is the size of an operand's piece.
func (p *partitioner) bytes(x factored, i int, a assignment) int64 {
	t := x.o.Operands[i].Tensor()
	return product(p.grid.Piece(p.shape(t), p.required(x, i, a))) * t.Elem.Bits() / 8
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// groups is how many groups of devices along atoms there are.
func (p *partitioner) groups(atoms []int) int64 {
	return int64(p.grid.Mesh.Devices() / p.grid.Count(atoms))
}

// over is the atoms that divide dimension d of a tensor with the factors dims.
func over(dims [][]int, d int, a assignment) []int {
	if len(dims[d]) != 1 {
		return nil
	}
	return a.factors[dims[d][0]]
}
