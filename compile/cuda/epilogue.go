package cuda

import (
	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
)

// slots are how many instructions an op of an epilogue takes for one element, as counted in machine code for sm_90a; others
// take one. An IEEE division or root is an approximation with steps that correct it, and a branch around what they do not reach.
var slots = map[string]float64{
	"div": 10, "rsqrt": 8, "sqrt": 10, "exp": 5, "log": 8, "pow": 30, "tanh": 14, "logistic": 14, "silu": 16, "erf": 20, "gelu": 24,
	"sin": 20, "cos": 20, kernel.Keep: 24, kernel.Random: 40, kernel.Guard: 3,
}

// The instructions for an element that round and store it: by slabs of sums, and by the copy engine.
const (
	slabSlots = 8.5
	bulkSlots = 4
)

// counted calls f for each expression of xs that is computed for each element, with its instructions.
func counted(xs []*kernel.Expr, flat kernel.Flat, f func(x *kernel.Expr, n float64)) {
	seen := map[*kernel.Expr]bool{}
	for _, x := range xs {
		kernel.Walk(x, func(x *kernel.Expr) {
			if seen[x] {
				return
			}
			seen[x] = true
			n, listed := slots[x.Op]
			switch {
			case x.Op == kernel.Acc || x.Op == kernel.Number || x.Op == "convert" && x.Elem.IsFloat() && x.Args[0].Op == kernel.Acc:
			case !x.ReadsSums() && (flat.N == nil || !x.DependsOn(flat.N)):
			case x.Op == kernel.Load: // the access, and the conversion
				f(x, 2)
			case listed:
				f(x, n)
			default:
				f(x, 1)
			}
		})
	}
}

// slotsOf is the instructions for one element of all results, besides those that store it.
func slotsOf(outs []kernel.Out, flat kernel.Flat) (all float64) {
	var xs []*kernel.Expr
	for _, o := range outs {
		xs = append(xs, o.X)
	}
	counted(xs, flat, func(_ *kernel.Expr, n float64) { all += n })
	return all
}

// epilogueOf is what a kernel of t does with each sum. Of two products, an element of the result stands for two sums.
func epilogueOf(t *kernel.Tiled) (e machine.Epilogue) {
	outs, reduced, flat, err := t.Results(1)
	if err != nil {
		return e // the plan says why
	}
	e.Width, e.Slots = int(widthOf(t, outs, flat, 8)), slabSlots
	if bulkBoxes(t, outs, flat) != nil {
		e.Width, e.Slots = 2, bulkSlots
	}
	var xs []*kernel.Expr
	for i, o := range outs {
		xs = append(xs, o.X)
		if n := o.Value.Elem().Bytes(); i > 0 {
			e.Slots += 2
			e.Written += float64(n)
		} else {
			e.Written += float64(max(0, n-t.Elems[0].Bytes()))
		}
	}
	for _, f := range reduced {
		xs = append(xs, f.X)
		e.Slots += 2
	}
	counted(xs, flat, func(x *kernel.Expr, n float64) {
		e.Slots += n
		if x.Op == kernel.Load && (flat.M == nil || x.DependsOn(flat.M)) {
			e.Read += float64(x.Elem.Bytes())
		}
	})
	e.Slots /= float64(t.Products)
	e.Read /= float64(t.Products)
	e.Written /= float64(t.Products)
	return e
}

// pace is what the epilogues add to p's products, for the cost model.
func (p *contraction) pace() assemble.Pace {
	if !p.c.Path.warpgroups() {
		return assemble.Pace{}
	}
	x := shapeOf(p.t)
	x.epilogue = epilogueOf(p.t)
	return assemble.Pace{Epilogue: p.target.Machine.Exposed(x.product(), p.c.tile())}
}
