// Package memory says how much device memory a function needs: the largest sum
// of the bytes that are live at one op, under the order of the ops in the text.
// Arguments are live throughout; a result is live from the op that makes it,
// while that op runs, to the last op that uses it, ops in regions included. A
// reshape shares the storage of its operand, and so does an update in place of
// a value that nothing uses any more. The inside of a dm.kernel takes none.
package memory

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Sizes are what Peak asks its caller.
type Sizes struct {
	Value func(*ir.Value) dim.Dim // bytes that a value takes; 0 where it lies elsewhere
	View  func(*ir.Op) bool       // the op's result is its first operand in another shape
	Reuse func(*ir.Op) bool       // the op may write its result over its first operand
	Extra func(*ir.Op) []dim.Dim  // candidates for what an op holds beyond operands and results; may be nil
}

// maxWork bounds the terms of formulas that are added before Peak gives up.
const maxWork = 2_000_000

// Peak is the largest number of bytes live at any op of fn. Where that depends
// on unbound symbols it is the list of the candidates that no other exceeds for
// all their values, and nil where there are too many to say.
func Peak(fn *ir.Func, sizes Sizes) []dim.Dim {
	if fn.Body == nil {
		return nil
	}
	p := &peak{
		sizes: sizes,
		root:  map[*ir.Value]*ir.Value{},
		last:  map[*ir.Value]*ir.Op{},
		ends:  map[*ir.Op][]*ir.Value{},
		dying: map[*ir.Block][]*ir.Value{},
		held:  map[*ir.Value]bool{},
	}
	p.scan(fn.Body.Region, nil)
	for v, o := range p.last {
		p.ends[o] = append(p.ends[o], v)
	}
	for _, v := range fn.Args {
		p.add(sizes.Value(v))
	}
	p.record(p.live)
	p.region(fn.Body.Region)
	if p.work > maxWork {
		return nil
	}
	return p.most
}

type peak struct {
	sizes Sizes
	root  map[*ir.Value]*ir.Value   // of values that share another's storage
	last  map[*ir.Value]*ir.Op      // last op that uses the storage
	ends  map[*ir.Op][]*ir.Value    // storage that the op uses last
	dying map[*ir.Block][]*ir.Value // storage of the block that its current op uses last
	held  map[*ir.Value]bool        // storage that is taken and can be given back
	live  dim.Dim
	most  []dim.Dim
	work  int
}

func (p *peak) storage(v *ir.Value) *ir.Value {
	if r, ok := p.root[v]; ok {
		return r
	}
	return v
}

// scan finds the last use of every storage. Uses in regions that run as part of
// their op (owner) are uses by that op.
func (p *peak) scan(r *ir.Region, owner *ir.Op) {
	if r == nil {
		return
	}
	for _, b := range r.Blocks {
		for _, o := range b.Ops {
			user := o
			if owner != nil {
				user = owner
			}
			for _, v := range o.Operands {
				p.last[p.storage(v)] = user
			}
			if len(o.Results) == 1 && len(o.Operands) > 0 && p.sizes.View(o) {
				p.root[o.Results[0]] = p.storage(o.Operands[0])
			}
			inner := owner
			if inner == nil && !runsRegions(o) {
				inner = o
			}
			for _, r := range o.Regions {
				p.scan(r, inner)
			}
		}
	}
}

// runsRegions reports whether the ops in o's regions run one by one, each with
// results of its own in memory: those of an if, a while and an unknown op do,
// those of a kernel and of a map do not.
func runsRegions(o *ir.Op) bool {
	return o.Name == "dm.if" || o.Name == "dm.while" || op.Of(o) == nil
}

// region runs the blocks; what is still held at the end is given back.
func (p *peak) region(r *ir.Region) {
	if r == nil {
		return
	}
	before := p.live
	for _, b := range r.Blocks {
		for _, o := range b.Ops {
			if p.op(b, o); p.work > maxWork {
				return
			}
		}
	}
	p.live = before
}

// op takes memory for the results of o, runs it and gives back what it was the
// last to use.
func (p *peak) op(b *ir.Block, o *ir.Op) {
	var unused []*ir.Value
	for _, v := range o.Results {
		if p.storage(v) != v {
			continue
		}
		if s := p.overwritten(b, o); s != nil {
			delete(p.held, s)
		} else {
			p.add(p.sizes.Value(v))
		}
		p.held[v] = true
		if p.last[v] == nil {
			unused = append(unused, v)
		}
	}
	p.record(p.live)
	if p.sizes.Extra != nil {
		for _, e := range p.sizes.Extra(o) {
			p.record(p.live.Add(e))
		}
	}
	for _, v := range p.ends[o] {
		home := b
		if v.Op != nil && v.Op.Parent != nil && v.Op.Parent.Region != b.Region {
			home = v.Op.Parent
		}
		p.dying[home] = append(p.dying[home], v)
	}
	if runsRegions(o) {
		for _, r := range o.Regions {
			p.region(r)
		}
	}
	for _, v := range append(unused, p.dying[b]...) {
		if p.held[v] {
			delete(p.held, v)
			p.add(p.sizes.Value(v).Scale(-1))
		}
	}
	delete(p.dying, b)
}

// overwritten is the storage that o's result takes over: its first operand's,
// where o updates in place and is the last to use it.
func (p *peak) overwritten(b *ir.Block, o *ir.Op) *ir.Value {
	if len(o.Operands) == 0 || len(o.Results) != 1 || p.sizes.Reuse == nil || !p.sizes.Reuse(o) {
		return nil
	}
	s := p.storage(o.Operands[0])
	if p.last[s] != o || !p.held[s] || s.Op == nil || s.Op.Parent != b {
		return nil
	}
	return s
}

func (p *peak) add(d dim.Dim) {
	p.live = p.live.Add(d)
	p.work += p.live.Terms()
}

// record keeps d unless another candidate is at least as large for all sizes.
func (p *peak) record(d dim.Dim) {
	switch {
	case len(p.most) > 0 && p.most[0].Overflow():
		return
	case d.Overflow():
		p.most = []dim.Dim{d}
		return
	}
	kept := p.most[:0]
	for _, m := range p.most {
		p.work += m.Terms() + d.Terms()
		if m.AtLeast(d) {
			return
		}
		if !d.AtLeast(m) {
			kept = append(kept, m)
		}
	}
	p.most = append(kept, d)
}
