package raise

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// maxHelper is how many ops an inlined function may have. JAX prints a private
// function for each of its library's functions, most of them with one op left.
const maxHelper = 16

// maxBody is how many ops the body of a loop may have that JAX prints as a function of the
// counter, as of jax.lax.fori_loop: what it takes by the counter can be told in the loop alone.
const maxBody = 256

// takesCounter reports whether o, a call in the body of a loop, is given a number that may count there.
func takesCounter(o *ir.Op) bool {
	if o.Parent == nil || o.Parent.Region == nil || o.Parent.Region.Op.Name != op.While || o.Parent.Region.Op.Body(1) != o.Parent {
		return false
	}
	return slices.ContainsFunc(o.Operands, func(v *ir.Value) bool {
		return v.Block == o.Parent && v.Tensor() != nil && v.Tensor().Rank() == 0 && v.Elem().IsInt() && v.Elem() != types.I1
	})
}

// inlineHelpers inlines the private functions of a few ops, without regions and
// calls, and returns the functions that called one. Functions that call one that was
// inlined may have become such themselves.
func inlineHelpers(m *ir.Module) map[*ir.Func]bool {
	changed := map[*ir.Func]bool{}
	for range 4 { // how deep helpers call helpers
		calls := map[*ir.Func][]*ir.Op{}
		within := map[*ir.Op]*ir.Func{}
		needed := map[string]bool{} // by other ops than calls
		unknown := false
		for _, f := range m.Funcs {
			if f.Body == nil {
				continue
			}
			ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
				if o.Name == op.Call {
					name, _ := types.ParseSymbol(o.Attr("callee").String()).Name()
					if g := m.Func(name); g != nil {
						calls[g] = append(calls[g], o)
						within[o] = f
					}
					return true
				}
				unknown = unknown || o.Verbatim
				for _, a := range o.Attrs {
					if s, is := a.Value.(types.Symbol); is {
						name, _ := s.Name()
						needed[name] = true
					}
				}
				return true
			})
		}
		any := false
		for _, f := range append([]*ir.Func(nil), m.Funcs...) {
			limit := maxHelper
			if len(calls[f]) == 1 && takesCounter(calls[f][0]) {
				limit = maxBody
			}
			if !isHelper(f, limit) || len(calls[f]) == 0 {
				continue
			}
			left := 0
			for _, o := range calls[f] {
				if o.Parent == nil || len(o.Operands) != len(f.Args) || len(o.Results) != len(f.Results) {
					left++
					continue
				}
				b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
				from := b.Index
				vs := ir.CloneBlock(b, f.Body, o.Operands)
				ir.Relocate(o.Parent.Ops[from:b.Index], loc.From(o.Loc))
				for _, p := range o.Parent.Ops[from:b.Index] { // what the call costs is shown at the call
					p.Span, p.Head, p.Origin = o.Span, o.Head, nil
					for _, r := range p.Results {
						r.Span = o.Head
					}
				}
				for i, r := range o.Results {
					if vs[i].Op != nil && vs[i].Op.Parent == o.Parent && len(vs[i].Uses) == 0 {
						vs[i].Name = r.Name
					}
					ir.ReplaceUses(r, vs[i])
				}
				ir.Erase(o)
				changed[within[o]] = true
				any = true
			}
			if left == 0 && !unknown && !needed[f.Name] {
				m.RemoveFunc(f.Name)
				delete(changed, f)
			}
		}
		if !any {
			break
		}
	}
	return changed
}

func isHelper(f *ir.Func, limit int) bool {
	if !f.Private || f.Body == nil || len(f.Body.Ops) > limit+1 || len(f.Op.Regions[0].Blocks) != 1 {
		return false
	}
	for _, a := range f.Op.Attrs {
		if strings.HasPrefix(a.Name, op.Prefix) { // it has a budget, or an order of its own
			return false
		}
	}
	for i, o := range f.Body.Ops {
		if len(o.Regions) > 0 || o.Name == op.Call || i < len(f.Body.Ops)-1 && (op.Of(o) == nil || op.HasEffect(o)) {
			return false
		}
	}
	return true
}
