package attribution

import (
	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
)

// phasing tells the phases of a function's ops apart. Names of scopes say which ops differentiation has made.
type phasing struct {
	known   map[loc.Loc]scopes
	derived map[*ir.Value]bool // values that follow from gradients
	trains  bool               // there are gradients
}

// scopes are what the names around a location say: that differentiation has made some of what has a part of the cost, all of it, or
// kept some.
type scopes struct{ backward, made, forward bool }

func phasesOf(f *cost.Func) *phasing {
	p := &phasing{known: map[loc.Loc]scopes{}, derived: map[*ir.Value]bool{}}
	if f.Func.Body != nil {
		p.block(f.Func.Body)
	}
	return p
}

func (p *phasing) scopes(l loc.Loc) scopes {
	x, known := p.known[l]
	if !known {
		x.made = Backwards(l)
		for _, part := range loc.Parts(l) {
			if part.Costs {
				t := loc.TraceOf(part.Loc)
				x.backward, x.forward = x.backward || t.Backward(), x.forward || t.Forward()
			}
		}
		p.known[l] = x
	}
	return x
}

// Backwards reports whether differentiation has made all of what has a part of the cost of l.
func Backwards(l loc.Loc) bool {
	for _, c := range Costs(l) {
		if !loc.TraceOf(c).Backward() {
			return false
		}
	}
	return true
}

// block notes what of b follows from gradients.
func (p *phasing) block(b *ir.Block) {
	for _, o := range b.Ops {
		x := p.scopes(o.Loc)
		p.trains = p.trains || x.backward || o.Name == op.Grad
		from := x.made || o.Name == op.Grad // one op for a value of the forward pass and the same in the backward pass follows from no gradient
		for _, v := range o.Operands {
			from = from || p.derived[v]
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				for i, a := range inner.Args {
					if i < len(o.Operands) && p.derived[o.Operands[i]] {
						p.derived[a] = true
					}
				}
				p.block(inner)
				if t := inner.Terminator(); t != nil {
					for i, v := range t.Operands {
						if p.derived[v] && i < len(o.Results) {
							p.derived[o.Results[i]] = true
						}
					}
				}
			}
		}
		if from && len(o.Regions) == 0 {
			for _, r := range o.Results {
				p.derived[r] = true
			}
		}
	}
}

// of is the phase of o as far as it is due to l.
func (p *phasing) of(o *ir.Op, l loc.Loc) Phase {
	x := p.scopes(l)
	switch {
	case x.backward:
		return Backward
	case !p.trains || x.forward:
		return Forward
	}
	for _, v := range o.Operands {
		if p.derived[v] {
			return Update
		}
	}
	return Forward
}
