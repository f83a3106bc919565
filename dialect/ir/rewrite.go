package ir

import (
	"slices"

	"dmir/dialect/loc"
	"dmir/dialect/types"
)

// SetOperand makes v operand i of o and keeps the lists of uses right.
func (o *Op) SetOperand(i int, v *Value) {
	if o.Operands[i] == v {
		return
	}
	o.Operands[i].forget(Use{o, i})
	o.Operands[i] = v
	v.Uses = append(v.Uses, Use{o, i})
}

// SetOperands replaces all operands of o.
func (o *Op) SetOperands(vs ...*Value) {
	for i, v := range o.Operands {
		v.forget(Use{o, i})
	}
	o.Operands = slices.Clone(vs)
	for i, v := range o.Operands {
		v.Uses = append(v.Uses, Use{o, i})
	}
}

// forget removes u from the uses of v. Passes leave the list in any order; the
// search starts at the end, where new uses are.
func (v *Value) forget(u Use) {
	for j := len(v.Uses) - 1; j >= 0; j-- {
		if v.Uses[j] == u {
			v.Uses = slices.Delete(v.Uses, j, j+1)
			return
		}
	}
}

// EraseAll is Erase for o with everything in its regions. Its results must be unused.
func EraseAll(o *Op) {
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			Walk(b.Ops, func(inner *Op) bool {
				for i, v := range inner.Operands {
					v.forget(Use{inner, i})
				}
				return true
			})
		}
	}
	Erase(o)
}

// EraseSet removes the ops of a set, whose results only they use, from b and the
// regions in it. It takes as long as b and the uses of what they use, however many they are.
func EraseSet(b *Block, erased map[*Op]bool) {
	done := map[*Value]bool{}
	for o := range erased {
		for _, v := range o.Operands {
			if !done[v] {
				done[v] = true
				v.Uses = slices.DeleteFunc(v.Uses, func(u Use) bool { return erased[u.Op] })
			}
		}
		o.Parent = nil
	}
	removeSet(b, erased)
}

func removeSet(b *Block, erased map[*Op]bool) {
	b.Ops = slices.DeleteFunc(b.Ops, func(o *Op) bool { return erased[o] })
	for _, o := range b.Ops {
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				removeSet(inner, erased)
			}
		}
	}
}

// Position is where o stands in its block, -1 for an op that is in none.
func (o *Op) Position() int {
	if o.Parent == nil {
		return -1
	}
	return slices.Index(o.Parent.Ops, o)
}

// InlineBlock moves the ops of b right before o, with args in place of b's
// arguments, and returns what b's terminator hands on, which is erased. b is empty
// afterwards; o stays, and the caller replaces its results.
func InlineBlock(b *Block, o *Op, args []*Value) []*Value {
	for i, a := range b.Args {
		ReplaceUses(a, args[i])
	}
	last := b.Terminator()
	values := slices.Clone(last.Operands)
	Erase(last)
	for _, p := range b.Ops {
		p.Parent = o.Parent
	}
	o.Parent.Ops = slices.Insert(o.Parent.Ops, o.Position(), b.Ops...)
	b.Ops = nil
	return values
}

// RemoveAttr takes an attribute away, if there is one of that name.
func (o *Op) RemoveAttr(name string) {
	if o.Attr(name) != nil {
		o.Attrs = slices.DeleteFunc(slices.Clone(o.Attrs), func(a types.Named) bool { return a.Name == name })
	}
}

// RemoveFunc takes the function called name out of the module, if it is there.
func (m *Module) RemoveFunc(name string) {
	f := m.byName[name]
	if f == nil {
		return
	}
	delete(m.byName, name)
	m.Funcs = slices.DeleteFunc(m.Funcs, func(g *Func) bool { return g == f })
	m.Ops = slices.DeleteFunc(m.Ops, func(o *Op) bool { return o == f.Op })
}

// Relocate gives ops, and those inside them, the locations that m makes of theirs.
func Relocate(ops []*Op, m *loc.Mapper) {
	Walk(ops, func(o *Op) bool {
		o.Loc = m.Of(o.Loc)
		return true
	})
}

// Retype makes the signature of f, as text and calls see it, that of its body:
// the types of the entry block's arguments and of what is returned.
func (f *Func) Retype() {
	sig := &types.Func{}
	for _, a := range f.Args {
		sig.In = append(sig.In, a.Type)
	}
	f.Results = nil
	if t := f.Body.Terminator(); t != nil {
		for _, v := range t.Operands {
			f.Results = append(f.Results, v.Type)
		}
	}
	sig.Out = f.Results
	f.Op.SetAttr("function_type", types.TypeAttr{T: sig})
}
