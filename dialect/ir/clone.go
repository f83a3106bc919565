package ir

import "slices"

// Clone is a deep copy of m. Values, blocks and ops are new; types, attribute
// values, the source and the tree are shared, as they never change.
func (m *Module) Clone() *Module {
	c := &Module{Src: m.Src, Tree: m.Tree, Aliases: m.Aliases, Diags: slices.Clone(m.Diags)}
	if m.Outer != nil {
		outer := *m.Outer
		outer.Attrs = slices.Clone(m.Outer.Attrs)
		c.Outer = &outer
	}
	k := NewCloner()
	copies := make(map[*Op]*Op, len(m.Ops))
	for _, o := range m.Ops {
		n := k.Op(o)
		copies[o] = n
		c.Ops = append(c.Ops, n)
	}
	k.Finish()
	for _, f := range m.Funcs {
		c.AddFunc(k.fn(f, copies[f.Op]))
	}
	return c
}

// Clone is a deep copy of f that belongs to no module yet.
func (f *Func) Clone() *Func {
	k := NewCloner()
	o := k.Op(f.Op)
	k.Finish()
	return k.fn(f, o)
}

func (k *Cloner) fn(f *Func, o *Op) *Func {
	c := *f
	c.Op, c.Body, c.Results = o, o.Body(0), slices.Clone(f.Results)
	c.Args = make([]*Value, len(f.Args))
	for i, v := range f.Args {
		if c.Args[i] = k.Values[v]; c.Args[i] == nil { // a declaration's arguments are in no block
			n := *v
			n.Uses = nil
			c.Args[i] = &n
		}
	}
	return &c
}

// Cloner copies ops. Operands found in Values are replaced, others are used as
// they are; results and block arguments of copied ops are added to Values. Put
// values into Values beforehand to substitute them, as inlining does.
type Cloner struct {
	Values map[*Value]*Value
	blocks map[*Block]*Block
	copied []*Op
}

// NewCloner returns a Cloner without substitutions.
func NewCloner() *Cloner {
	return &Cloner{Values: map[*Value]*Value{}, blocks: map[*Block]*Block{}}
}

// Op copies o with everything inside. The copy is in no block. Call Finish
// once after the last op, which links operands and successors.
func (k *Cloner) Op(o *Op) *Op {
	c := *o
	c.Parent = nil
	c.Operands, c.Succs = slices.Clone(o.Operands), slices.Clone(o.Succs)
	c.Attrs = slices.Clone(o.Attrs)
	c.Results = make([]*Value, len(o.Results))
	for i, v := range o.Results {
		n := *v
		n.Op, n.Uses = &c, nil
		c.Results[i] = &n
		k.Values[v] = &n
	}
	c.Regions = make([]*Region, len(o.Regions))
	for i, r := range o.Regions {
		c.Regions[i] = k.region(r, &c)
	}
	k.copied = append(k.copied, &c)
	return &c
}

func (k *Cloner) region(r *Region, owner *Op) *Region {
	c := &Region{Op: owner, Blocks: make([]*Block, len(r.Blocks))}
	for i, b := range r.Blocks {
		n := &Block{Label: b.Label, Region: c, Args: make([]*Value, len(b.Args)), Ops: make([]*Op, len(b.Ops))}
		for j, v := range b.Args {
			a := *v
			a.Block, a.Uses = n, nil
			n.Args[j] = &a
			k.Values[v] = &a
		}
		for j, o := range b.Ops {
			n.Ops[j] = k.Op(o)
			n.Ops[j].Parent = n
		}
		c.Blocks[i] = n
		k.blocks[b] = n
	}
	return c
}

// Finish links the copies made since the last Finish: operands and successors
// that were copied too are replaced, and every use is recorded.
func (k *Cloner) Finish() {
	for _, o := range k.copied {
		for i, v := range o.Operands {
			if n := k.Values[v]; n != nil {
				o.Operands[i], v = n, n
			}
			v.Uses = append(v.Uses, Use{o, i})
		}
		for i, b := range o.Succs {
			if n := k.blocks[b]; n != nil {
				o.Succs[i] = n
			}
		}
	}
	k.copied = k.copied[:0]
}
