// Package microbatch cuts the batch of a training step into micro-batches that run one after the
// other, and accumulates their gradients. The step computes what it computed of the whole batch, up to
// the rounding of sums: each mean, and each statistic of the batch, is that of the whole.
//
// A micro-batch is a device of a mesh in time. Package partition divides the step over a mesh of
// one axis, along which there are as many devices as micro-batches; its collectives stand where micro-batches
// meet. The program of such a device is then written out once for each of them, and a reduction over devices
// becomes a running one over micro-batches. What depends on a reduction comes after all micro-batches have
// added their parts, in a second phase if it is computed for each micro-batch again.
package microbatch

import (
	"fmt"
	"slices"

	"dmir/dialect/budget"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// Count is how many micro-batches f states (op.MicrobatchesAttr) and is still to be cut into; 0 where it
// states none or is cut already.
func Count(f *ir.Func) int {
	n := f.Op.Int(op.MicrobatchesAttr, 0)
	cut := func(o *ir.Op) bool { return o.Attr(op.MicroAttr) != nil }
	if n < 1 || n > mostMicrobatches || f.Body == nil || slices.ContainsFunc(f.Body.Ops, cut) {
		return 0
	}
	return int(n)
}

// mostMicrobatches bounds the text that a function grows to.
const mostMicrobatches = 4096

// Split is f, a function of m without tuples, calls and gradients whose sizes are numbers, cut into the
// micro-batches that it states. It has f's name and signature and belongs to no module; f stays as it is. It is
// nil where there is nothing to do: see Count; one micro-batch is the function itself, marked where it is a
// pipeline.
//
// Each op of a micro-batch has op.MicroAttr, and all ops have the other marks (ir.Marks) of the op they are made of. Where
// the text divides the batch over the devices of a mesh, a micro-batch is rows that each device has already.
func Split(m *ir.Module, f *ir.Func) (*ir.Func, *shard.Problem) {
	n := Count(f)
	if n == 0 || n == 1 && f.Op.Attr(op.PipelineAttr) == nil {
		return nil, nil
	}
	if op.PerDevice(f.Op) {
		return nil, &shard.Problem{At: f.Op, Msg: "it is what one device runs, whose batch is not cut", Help: "state " + op.MicrobatchesAttr + " in a function of whole tensors"}
	}
	if n == 1 {
		return marked(f)
	}
	// Values and results state their shardings in one way, so that a result has the type of what is returned.
	f = f.Clone()
	op.ShardingsInTypes(f)
	b, problem := divide(f, n, Known{})
	if problem != nil {
		return nil, problem
	}
	if grown := n * len(b.Func.Body.Ops); grown > budget.Most(m) {
		return nil, &shard.Problem{At: f.Op, Msg: fmt.Sprintf("in %d micro-batches it has %d ops, more than %d", n, grown, budget.Most(m)), Help: "use fewer micro-batches"}
	}
	w := newWriter(f, b, n)
	w.shortcut()
	// Rows of a micro-batch that each device has are not next to each other, so that numbers which count
	// positions in the batch would be those of other rows.
	for _, groups := range slices.Compact([]int64{groups(m, f, b), 1}) {
		w.groups = groups
		g, whole := w.function()
		if err := w.b.Err(); err != nil {
			return nil, &shard.Problem{At: f.Op, Msg: fmt.Sprintf("it cannot be cut into micro-batches: %s", err)}
		}
		if groups == 1 || whole {
			if f.Op.Attr(op.PipelineAttr) == nil {
				g.Op.Attrs = slices.Clone(g.Op.Attrs)
				g.Op.RemoveAttr(op.MicrobatchesAttr) // it is cut, whatever later passes leave of the marks
			}
			return g, nil
		}
	}
	return nil, nil // not reached: one group is always tried
}

// Batch finds the arguments of f that have the samples of a step, by number, and the dimension of each along which
// they lie. f is as for Split. Where no argument is a batch, the problem is the first that was met.
func Batch(f *ir.Func, k Known) (map[int]int, *shard.Problem) {
	b, problem := divide(f, 1, k)
	if problem != nil {
		return nil, problem
	}
	dims := map[int]int{}
	for a, d := range b.divide {
		dims[a.Index] = d
	}
	return dims, nil
}

// Cut is why f, which is as for Split, cannot be cut into n micro-batches; nil where it can.
func Cut(f *ir.Func, n int, k Known) *shard.Problem {
	_, problem := divide(f, n, k)
	return problem
}

// marked is f as its only micro-batch: the ops that would be computed for each of several are of micro-batch 0.
func marked(f *ir.Func) (*ir.Func, *shard.Problem) {
	b, problem := divide(f, 1, Known{})
	if problem != nil {
		return nil, problem
	}
	w := newWriter(f, b, 1)
	inside := map[int]bool{}
	for o := range w.micro {
		if at, ok := b.place[b.root(o)]; ok {
			inside[at] = true
		}
	}
	g := f.Clone()
	for i, o := range g.Body.Ops[:len(g.Body.Ops)-1] {
		if inside[i] {
			o.SetAttr(op.MicroAttr, types.Int{Elem: types.I64})
		}
	}
	return g, nil
}
