package ir

import (
	"slices"

	"dmir/dialect/types"
)

// Inside reports whether v is defined in one of the regions of o, at any depth.
func (v *Value) Inside(o *Op) bool {
	if v.Op != nil {
		return v.Op.Inside(o)
	}
	if v.Block == nil || v.Block.Region == nil {
		return false
	}
	owner := v.Block.Region.Op
	return owner == o || owner != nil && owner.Inside(o)
}

// CapturedValues are the values from outside that the ops in some regions of one
// op use, each once, in the order of their first uses. A value that nothing
// defines (of an unknown name) is none of them.
func CapturedValues(rs ...*Region) []*Value {
	var c collector
	c.regions(rs)
	return c.list
}

// UsedValues are the operands of o, each once, and then the captured values that
// are not among them.
func UsedValues(o *Op) []*Value {
	var c collector
	c.add(o.Operands, o)
	c.regions(o.Regions)
	return c.list
}

// WalkValues visits the values that ops, and the ops in their regions, define:
// of each op the arguments of its blocks, its results, then what its regions hold.
func WalkValues(ops []*Op, visit func(*Value)) {
	Walk(ops, func(o *Op) bool {
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, v := range b.Args {
					visit(v)
				}
			}
		}
		for _, v := range o.Results {
			visit(v)
		}
		return true
	})
}

// collector lists values in the order in which they come.
type collector struct {
	list []*Value
	seen map[*Value]bool // of a long list
}

// long is the length from which a list of values is searched through a map.
const long = 16

// add takes the values that are defined outside o.
func (c *collector) add(vs []*Value, o *Op) {
	for _, v := range vs {
		if c.has(v) || v.Op == nil && v.Block == nil || v.Inside(o) {
			continue
		}
		c.list = append(c.list, v)
		if c.seen != nil {
			c.seen[v] = true
		}
	}
}

func (c *collector) has(v *Value) bool {
	if len(c.list) < long {
		return slices.Contains(c.list, v)
	}
	if c.seen == nil {
		c.seen = make(map[*Value]bool, 2*long)
		for _, w := range c.list {
			c.seen[w] = true
		}
	}
	return c.seen[v]
}

func (c *collector) regions(rs []*Region) {
	for _, r := range rs {
		for _, b := range r.Blocks {
			Walk(b.Ops, func(p *Op) bool {
				c.add(p.Operands, r.Op)
				return true
			})
		}
	}
}

// Types are the types of values.
func Types(vs []*Value) []types.Type {
	ts := make([]types.Type, len(vs))
	for i, v := range vs {
		ts[i] = v.Type
	}
	return ts
}
