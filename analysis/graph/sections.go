package graph

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// A section is a group that the text does not have: a phase of a training step, a module, or
// equal layers, one after another.
type section struct {
	kind  Kind // "" for ops that stand between others
	name  string
	ops   []*ir.Op   // in the order of the text; those in parts too
	parts []*section // that hold the ops, in their order; nil where the ops are right inside
	rules rules      // of the backward pass of a gradient
	value *ir.Value  // of a rule: the value that it is the derivative of
}

// The names of the phases.
const (
	forward            = "forward"
	forwardAndBackward = "forward and backward"
	backward           = "backward"
	update             = "update"
	backwardAndUpdate  = "backward and update"
)

// sectionsOf divides the ops of a function's body: the phases of a training step,
// each into modules and stacks of equal layers. None where there are none of them.
//
// called: it is what a call runs, which may be the gradient of a function.
func sectionsOf(fn *ir.Func, entry map[*ir.Op]*cost.Entry, called bool) []*section {
	if fn.Body == nil || fn.Op == nil || len(fn.Op.Regions) != 1 || len(fn.Op.Regions[0].Blocks) != 1 {
		return nil
	}
	var ops []*ir.Op
	for _, o := range fn.Body.Ops {
		if entry[o] != nil {
			ops = append(ops, o)
		}
	}
	all := phases(fn, ops)
	if all == nil && called {
		all = passes(ops)
	}
	if all == nil {
		all = []*section{{ops: ops}}
	}
	found := len(all) > 1 || all[0].kind == Phase
	for _, s := range all {
		s.parts = scopes(s.ops)
		if s.rules != nil {
			s.parts = s.rules.divide(s)
		}
		found = found || slices.ContainsFunc(s.parts, func(p *section) bool { return p.kind != "" })
	}
	if !found {
		return nil
	}
	return all
}

// phases are the forward pass, the backward pass and the update of a training step,
// nil for a function without an optimizer. The update is what needs the result of an
// optimizer, the forward pass what the first of the other results needs (the loss, or
// the output), and the backward pass the rest that an optimizer needs. A kernel that
// computes a gradient and updates with it belongs to the backward pass.
func phases(fn *ir.Func, ops []*ir.Op) []*section {
	updated := map[*ir.Value]bool{} // results of optimizers, and what needs them
	updates := map[*ir.Op]bool{}    // ops of which all results are such
	both := map[*ir.Op]bool{}       // kernels that also compute a gradient
	for _, o := range ops {
		switch {
		case slices.ContainsFunc(ir.UsedValues(o), func(v *ir.Value) bool { return updated[v] }):
			updates[o] = true
		case optimizes(o):
			results, other := optimized(o)
			for i, r := range o.Results {
				updated[r] = results[i]
			}
			both[o], updates[o] = other, !other
		}
		if updates[o] {
			for _, r := range o.Results {
				updated[r] = true
			}
		}
	}
	last := fn.Body.Terminator()
	if last == nil || len(updated) == 0 {
		return nil
	}
	// needed marks ops and what they need, from the last one to the first.
	needed := func(marked map[*ir.Op]bool) map[*ir.Op]bool {
		for _, o := range slices.Backward(ops) {
			if marked[o] {
				eachOperand(o, func(v *ir.Value) {
					if v.Op != nil {
						marked[v.Op] = true
					}
				})
			}
		}
		return marked
	}
	output := map[*ir.Op]bool{}
	for _, v := range last.Operands {
		if v.Op != nil && !updated[v] {
			output[v.Op] = true
			break
		}
	}
	needed(output)
	trained := map[*ir.Op]bool{}
	for _, o := range ops {
		if updates[o] || both[o] {
			trained[o] = true
		}
	}
	needed(trained)
	in := [3]*section{{kind: Phase, name: forward}, {kind: Phase, name: backward}, {kind: Phase, name: update}}
	derived := map[*ir.Op]bool{} // ops of the backward pass, and what else needs them
	for _, o := range ops {
		if updates[o] {
			in[2].ops = append(in[2].ops, o)
			continue
		}
		derived[o] = both[o] || trained[o] && !output[o]
		eachOperand(o, func(v *ir.Value) { derived[o] = derived[o] || v.Op != nil && derived[v.Op] })
		if both[o] {
			in[1].name = backwardAndUpdate
		}
		switch {
		case derived[o]:
			in[1].ops = append(in[1].ops, o)
		case o.Name == op.Grad:
			in[0].name = forwardAndBackward
			fallthrough
		default:
			in[0].ops = append(in[0].ops, o)
		}
	}
	in[1].rules = rulesOf(in[0].ops)
	var out []*section
	for _, s := range in {
		if len(s.ops) == 1 && s.ops[0].Name == op.Grad {
			s.kind = "" // it shows its passes itself
		}
		if len(s.ops) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// optimizes reports whether an op, or what runs in its kernel, is the step of an
// optimizer.
func optimizes(o *ir.Op) bool {
	found := false
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		d := op.Of(p)
		found = found || d != nil && d.Family == op.Training && p.Name != op.Grad
		return !found && (p == o || o.Name == op.Kernel)
	})
	return found
}

// optimized tells which results of o, an optimizer or a kernel with one, need the step
// of the optimizer, and whether o computes something else too: a contraction, or a
// result that does not need it.
func optimized(o *ir.Op) (results []bool, other bool) {
	results = make([]bool, len(o.Results))
	body := o.Body(0)
	if o.Name != op.Kernel || body == nil {
		for i := range results {
			results[i] = true
		}
		return results, false
	}
	needs := map[*ir.Value]bool{}
	for _, p := range body.Ops {
		d := op.Of(p)
		other = other || d != nil && d.Class == op.ClassContraction
		if optimizes(p) || slices.ContainsFunc(ir.UsedValues(p), func(v *ir.Value) bool { return needs[v] }) {
			for _, r := range p.Results {
				needs[r] = true
			}
		}
	}
	if last := body.Terminator(); last != nil {
		for i, v := range last.Operands {
			if i < len(results) {
				results[i] = needs[v]
				other = other || !needs[v] && len(o.Results[i].Uses) > 0
			}
		}
	}
	return results, other
}

// eachOperand calls use with what o and the ops inside it use.
func eachOperand(o *ir.Op, use func(*ir.Value)) {
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		for _, v := range p.Operands {
			use(v)
		}
		return true
	})
}

// leastLayer is how many ops a layer has at least, unless it is a call: fewer that
// repeat say nothing.
const leastLayer = 3

// layers divides ops into stacks of equal layers and what stands between, nil
// where nothing repeats. Layers are equal if their ops are, in the order of the text:
// names and types, also inside; attributes may differ, as the seed of a dropout.
func layers(ops []*ir.Op) []*section {
	shape := make([]uint64, len(ops))
	last := map[uint64]int{}
	distance := map[int]int{} // how often an op has an equal one at that distance
	for i, o := range ops {
		shape[i] = shapeOf(o)
		if j, seen := last[shape[i]]; seen {
			distance[i-j]++
		}
		last[shape[i]] = i
	}
	var periods []int
	for p, n := range distance {
		if n >= p {
			periods = append(periods, p)
		}
	}
	// The most ops in layers first, then the shortest layers.
	slices.SortFunc(periods, func(a, b int) int {
		if distance[a] != distance[b] {
			return distance[b] - distance[a]
		}
		return a - b
	})
	const most = 4 // periods that are tried
	periods = periods[:min(len(periods), most)]
	runs := make([][]int, len(periods)) // from each op, how many have an equal one a period later
	for k, p := range periods {
		runs[k] = make([]int, len(ops)+1)
		for i := len(ops) - p - 1; i >= 0; i-- {
			if shape[i] == shape[i+p] {
				runs[k][i] = runs[k][i+1] + 1
			}
		}
	}
	var out []*section
	from := 0
	for i := 0; i < len(ops); {
		period, end := 0, i
		for k, p := range periods {
			if n := runs[k][i]; n >= p && (p >= leastLayer || ops[i].Name == op.Call) && i+n/p*p+p > end {
				period, end = p, i+n/p*p+p
			}
		}
		if period == 0 {
			i++
			continue
		}
		if from < i {
			out = append(out, &section{ops: ops[from:i]})
		}
		times := (end - i) / period
		stack := &section{kind: Stack, name: fmt.Sprintf("%d equal layers", times), ops: ops[i:end]}
		for n := range times {
			stack.parts = append(stack.parts, &section{kind: Layer, name: fmt.Sprintf("layer %d", n+1), ops: ops[i+n*period : i+(n+1)*period]})
		}
		out = append(out, stack)
		i, from = end, end
	}
	if len(out) == 0 {
		return nil
	}
	if from < len(ops) {
		out = append(out, &section{ops: ops[from:]})
	}
	return out
}

// shapeOf is a hash of what o is: its name and types, and those of what is in it.
func shapeOf(o *ir.Op) uint64 {
	h := fnv.New64a()
	ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
		var b strings.Builder
		b.WriteString(p.Name)
		for _, v := range p.Operands {
			b.WriteString(" " + v.Type.String())
		}
		b.WriteString(" ->")
		for _, v := range p.Results {
			b.WriteString(" " + v.Type.String())
		}
		_, _ = h.Write([]byte(b.String()))
		return true
	})
	return h.Sum64()
}
