package onnx

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Sequences whose members are known at import, as those that a tensor is split into: a value that no op has stands for
// one, and the importer knows its members.

func init() {
	register(map[string]conversion{
		"ConcatFromSequence": convertConcatFromSequence, "SequenceAt": convertSequenceAt, "SequenceConstruct": convertSequenceConstruct,
		"SequenceEmpty": func(n *node) []*ir.Value { n.attr("dtype"); return n.sequence(nil) },
		"SequenceErase": convertSequenceErase, "SequenceInsert": convertSequenceInsert,
		"SequenceLength": func(n *node) []*ir.Value {
			return one(n.reshape(n.numbers(len(n.members(0)))))
		},
		"SplitToSequence": convertSplitToSequence,
	})
}

// sequence is a sequence of vs.
func (n *node) sequence(vs []*ir.Value) []*ir.Value {
	v := &ir.Value{Type: types.Unknown}
	n.sequences[v] = vs
	return one(v)
}

// members are those of the sequence in input i.
func (n *node) members(i int) []*ir.Value {
	n.opt(i)
	if i < len(n.ins) {
		if vs, ok := n.sequences[n.ins[i]]; ok {
			return vs
		}
	}
	unsupported("input %d, a sequence that is not known at import", i)
	return nil
}

// place is the position in input i among count members, which must be known; otherwise where it is left out.
func (n *node) place(i, count, otherwise int) int {
	d := n.value(i)
	if d == nil {
		return otherwise
	}
	at := integers(d)
	if len(at) != 1 {
		fail("position %v", at)
	}
	if at[0] < 0 {
		at[0] += count
	}
	if at[0] < 0 || at[0] >= count {
		fail("position %d of %d", at[0], count)
	}
	return at[0]
}

func convertSequenceConstruct(n *node) []*ir.Value {
	for i := range n.ins {
		n.in(i)
	}
	return n.sequence(slices.Clone(n.ins))
}

func convertSequenceAt(n *node) []*ir.Value {
	vs := n.members(0)
	return one(vs[n.place(1, len(vs), 0)])
}

func convertSequenceErase(n *node) []*ir.Value {
	vs := slices.Clone(n.members(0))
	at := n.place(1, len(vs), len(vs)-1)
	if at < 0 {
		fail("the sequence is empty")
	}
	return n.sequence(slices.Delete(vs, at, at+1))
}

// convertSequenceInsert counts positions from the back in the longer sequence.
func convertSequenceInsert(n *node) []*ir.Value {
	vs := slices.Clone(n.members(0))
	return n.sequence(slices.Insert(vs, n.place(2, len(vs)+1, len(vs)), n.in(1)))
}

func convertConcatFromSequence(n *node) []*ir.Value {
	vs := slices.Clone(n.members(0))
	if len(vs) == 0 {
		fail("the sequence is empty")
	}
	rank := n.rank(vs[0])
	if n.int("new_axis", 0) == 0 {
		return one(n.concatenate(axis(n.int("axis", 0), rank), vs...))
	}
	d := axis(n.int("axis", 0), rank+1)
	for i, v := range vs {
		vs[i] = n.reshape(v, slices.Insert(n.shape(v), d, 1)...)
	}
	return one(n.concatenate(d, vs...))
}

// convertSplitToSequence cuts into parts of one size, the last one smaller, or of given sizes; without either into
// single elements, whose dimension stays or goes.
func convertSplitToSequence(n *node) []*ir.Value {
	x := n.in(0)
	d := axis(n.int("axis", 0), n.rank(x))
	size := n.shape(x)[d]
	keep := n.int("keepdims", 1) != 0
	var parts []int
	switch sizes := n.value(1); {
	case sizes == nil:
		parts = slices.Repeat([]int{1}, size)
	case sizes.Type.Rank() > 0:
		parts, keep = integers(sizes), true
	default:
		each := integers(sizes)[0]
		if each < 1 {
			fail("parts of %d elements", each)
		}
		for at := 0; at < size; at += each {
			parts = append(parts, min(each, size-at))
		}
		keep = true
	}
	var vs []*ir.Value
	at := 0
	for _, p := range parts {
		if p < 0 || at+p > size {
			fail("parts %v of size %d", parts, size)
		}
		v := n.part(x, d, at, at+p)
		n.note(at)
		if at += p; !keep {
			v = n.reshape(v, slices.Delete(n.shape(v), d, d+1)...)
		}
		vs = append(vs, v)
	}
	if at != size {
		fail("parts %v of size %d", parts, size)
	}
	return n.sequence(vs)
}
