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

// epilogueOf is what a kernel of t does with each sum besides storing it. Of two products, an element of the result stands for
// two sums.
func epilogueOf(t *kernel.Tiled) (e machine.Epilogue) {
	outs, reduced, flat, err := t.Results(1)
	if err != nil {
		return e // the plan says why
	}
	seen := map[*kernel.Expr]bool{}
	each := func(x *kernel.Expr) bool { return flat.N != nil && x.DependsOn(flat.N) }
	count := func(x *kernel.Expr) {
		kernel.Walk(x, func(x *kernel.Expr) {
			if seen[x] {
				return
			}
			seen[x] = true
			n, listed := slots[x.Op]
			switch {
			case x.Op == kernel.Acc || x.Op == kernel.Number || !each(x) && !x.ReadsSums():
			case x.Op == kernel.Load:
				e.Slots += 2 // the access, and the conversion
				if flat.M == nil || x.DependsOn(flat.M) {
					e.Read += float64(x.Elem.Bytes())
				}
			case listed:
				e.Slots += n
			default:
				e.Slots++
			}
		})
	}
	for i, o := range outs {
		count(o.X)
		if n := o.Value.Elem().Bytes(); i > 0 {
			e.Slots += 2
			e.Written += float64(n)
		} else {
			e.Written += float64(max(0, n-t.Elems[0].Bytes()))
		}
	}
	for _, f := range reduced {
		count(f.X)
		e.Slots += 2
	}
	e.Slots /= float64(t.Products)
	e.Read /= float64(t.Products)
	e.Written /= float64(t.Products)
	if e != (machine.Epilogue{}) {
		e.Width = int(widthOf(t, outs, flat, 8))
	}
	return e
}

// pace is what the epilogues add to p's products, for the cost model.
func (p *contraction) pace() assemble.Pace {
	if !p.c.Path.bulk() {
		return assemble.Pace{}
	}
	x := shapeOf(p.t)
	x.epilogue = epilogueOf(p.t)
	return assemble.Pace{Epilogue: p.target.Machine.Exposed(x.product(), p.c.tile())}
}
