package ir

import "slices"

// Clone is a deep copy of m. Values, blocks and ops are new; types, attribute
// values, the source and the origins are shared, as they never change.
func (m *Module) Clone() *Module { return m.CloneOf(m.Funcs) }

// CloneOf is Clone without the functions that are not among funcs, so that the copy of a
// function for a compiler costs what the function and its callees do, not what the module does.
func (m *Module) CloneOf(funcs []*Func) *Module {
	c := &Module{Src: m.Src, Aliases: m.Aliases, Diags: slices.Clone(m.Diags), Resources: m.Resources, Origin: m.Origin}
	if m.Outer != nil {
		outer := *m.Outer
		outer.Attrs = slices.Clone(m.Outer.Attrs)
		c.Outer = &outer
	}
	k := newCloner()
	wanted := make(map[*Op]bool, len(funcs))
	for _, f := range funcs {
		wanted[f.Op] = true
	}
	copies := make(map[*Op]*Op, len(funcs))
	for _, o := range m.Ops {
		if f := m.byName[o.Str("sym_name")]; f != nil && f.Op == o && !wanted[o] {
			continue
		}
		n := k.op(o)
		copies[o] = n
		c.Ops = append(c.Ops, n)
	}
	k.finish()
	for _, f := range m.Funcs {
		if wanted[f.Op] {
			c.AddFunc(k.fn(f, copies[f.Op]))
		}
	}
	return c
}

// Clone is a deep copy of f that belongs to no module yet.
func (f *Func) Clone() *Func {
	k := newCloner()
	o := k.op(f.Op)
	k.finish()
	return k.fn(f, o)
}

// CloneOps inserts copies of ops, with everything inside them, at b. Operands
// are replaced as in values, to which the copies' results are added; others stay.
func CloneOps(b *Builder, ops []*Op, values map[*Value]*Value) []*Op {
	k := &cloner{values: values, blocks: map[*Block]*Block{}}
	copies := make([]*Op, len(ops))
	for i, o := range ops {
		copies[i] = k.op(o)
		copies[i].Parent = b.Block
	}
	k.finish()
	b.Block.Ops = slices.Insert(b.Block.Ops, b.Index, copies...)
	b.Index += len(copies)
	return copies
}

// CloneBlock inserts at b copies of the ops of block, but for its terminator, with
// args in place of its arguments, and returns the operands of the terminator.
func CloneBlock(b *Builder, block *Block, args []*Value) []*Value {
	values := make(map[*Value]*Value, len(block.Ops))
	for i, a := range block.Args {
		values[a] = args[i]
	}
	last := len(block.Ops) - 1
	CloneOps(b, block.Ops[:last], values)
	out := slices.Clone(block.Ops[last].Operands)
	for i, v := range out {
		if c := values[v]; c != nil {
			out[i] = c
		}
	}
	return out
}

func (k *cloner) fn(f *Func, o *Op) *Func {
	c := *f
	c.Op, c.Body, c.Results = o, o.Body(0), slices.Clone(f.Results)
	c.Args = make([]*Value, len(f.Args))
	for i, v := range f.Args {
		if c.Args[i] = k.values[v]; c.Args[i] == nil { // a declaration's arguments are in no block
			n := *v
			n.Uses = nil
			c.Args[i] = &n
		}
	}
	return &c
}

// cloner copies ops. Operands and successors that are copied too are replaced,
// others are used as they are.
type cloner struct {
	values map[*Value]*Value
	blocks map[*Block]*Block
	copied []*Op
}

func newCloner() *cloner {
	return &cloner{values: map[*Value]*Value{}, blocks: map[*Block]*Block{}}
}

// op copies o with everything inside. The copy is in no block. Call finish once
// after the last op.
func (k *cloner) op(o *Op) *Op {
	c := *o
	c.Parent = nil
	c.Operands, c.Succs = slices.Clone(o.Operands), slices.Clone(o.Succs)
	c.Attrs = slices.Clone(o.Attrs)
	c.Results = make([]*Value, len(o.Results))
	for i, v := range o.Results {
		n := *v
		n.Op, n.Uses = &c, nil
		c.Results[i] = &n
		k.values[v] = &n
	}
	c.Regions = make([]*Region, len(o.Regions))
	for i, r := range o.Regions {
		c.Regions[i] = k.region(r, &c)
	}
	k.copied = append(k.copied, &c)
	return &c
}

func (k *cloner) region(r *Region, owner *Op) *Region {
	c := &Region{Op: owner, Blocks: make([]*Block, len(r.Blocks))}
	for i, b := range r.Blocks {
		n := &Block{Label: b.Label, Region: c, Args: make([]*Value, len(b.Args)), Ops: make([]*Op, len(b.Ops))}
		for j, v := range b.Args {
			a := *v
			a.Block, a.Uses = n, nil
			n.Args[j] = &a
			k.values[v] = &a
		}
		for j, o := range b.Ops {
			n.Ops[j] = k.op(o)
			n.Ops[j].Parent = n
		}
		c.Blocks[i] = n
		k.blocks[b] = n
	}
	return c
}

// finish links the copies: operands and successors that were copied too are
// replaced, and every use is recorded.
func (k *cloner) finish() {
	for _, o := range k.copied {
		for i, v := range o.Operands {
			if n := k.values[v]; n != nil {
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
}
