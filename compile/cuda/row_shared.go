package cuda

import (
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// sharing are the launches of rows that blocks share: one for each pass, whose
// blocks reduce a part of a row each, and the last one, which stores the results.
// A block begins by combining the parts of earlier passes that it reads, all
// blocks in the same order.
func (p *rows) sharing() []*launch {
	var all []*launch
	outs := levelOuts(p.f, kernel.PerElement, kernel.PerRow)
	for i := range p.sweeps {
		s := &p.sweeps[i]
		ns := newNames()
		reads := s.reads
		groups := p.f.Rows.Rows
		last := i == len(p.passes)
		if last {
			groups = p.blocks
			reads = reduced(p.f.Nest.Columns, p.f.Nest.Totals)
			for _, o := range outs {
				reads = append(reads, o.Exprs()...)
			}
		}
		ns.rowLoads(reads, p.f.Rows)
		from := p.joined(ns, i, reads)
		var to, columns, totals []ident
		suffix := fmt.Sprintf("_pass%d", i+1)
		switch {
		case last:
			ns.stores(outs)
			columns, totals = p.sums(ns, artifact.Out)
			suffix = "_rows"
		default:
			for _, t := range p.parts[i] {
				to = append(to, ns.addTemp("partial", t, artifact.Out))
			}
		}
		if i == 0 {
			suffix = ""
		}
		all = append(all, &launch{
			Launch: assemble.Launch{
				Suffix: suffix, Class: string(p.f.Class), Block: artifact.Block{Threads: p.threads}, Grid: [3]int{int(s.splits), int(groups), 1}, Params: ns.params,
			},
			blocks: 2, // else ptxas aims at a higher occupancy, and spills
			named:  ns.of,
			write: func(t *text) error {
				if last {
					return p.writeLast(t, from, columns, totals)
				}
				return p.writePart(t, i, from, to)
			},
		})
	}
	return all
}

// rowLoads adds the parameters that xs, which are computed for rows of r, read where
// the reductions in them are complete.
func (n *names) rowLoads(xs []*kernel.Expr, r *kernel.Rows) {
	seen := map[*kernel.Expr]bool{}
	once := map[*ir.Value]int64{} // bytes of loads for each row, of values that are read in no other way
	for _, x := range xs {
		kernel.WalkOutside(x, func(x *kernel.Expr) {
			if x.Op != kernel.Load || seen[x] {
				return
			}
			seen[x] = true
			_, known := n.of[x.Buf]
			n.add(x.Buf, artifact.In)
			if row := r != nil && (r.Col == nil || !x.DependsOn(r.Col)); row && (!known || once[x.Buf] > 0) {
				once[x.Buf] += r.Rows * x.Elem.Bytes()
			} else {
				delete(once, x.Buf)
			}
		})
	}
	for i := range n.params {
		n.params[i].Most = once[n.params[i].Value]
	}
}

// joined adds the parameters for the parts of earlier passes that sweep i, which
// computes xs, reads: for each pass its reductions, "" for those that it does not
// read.
func (p *rows) joined(ns *names, i int, xs []*kernel.Expr) (from [][]ident) {
	need := map[*kernel.Expr]bool{}
	base := p.nest(p.f).Base
	for _, x := range xs {
		for _, y := range x.RowReductions() {
			need[y] = true
			if b := base[y]; b != nil {
				need[b] = true
			}
		}
	}
	for k, pass := range p.passes[:i] {
		from = append(from, make([]ident, len(pass)))
		for j, x := range pass {
			if need[x] {
				from[k][j] = ns.addTemp("partial", p.parts[k][j], artifact.In)
			}
		}
	}
	return from
}

// begin declares what all launches begin with.
func (k *rowKernel) begin(sweep int, from [][]ident, own []*kernel.Expr) {
	k.approximate, k.block, k.sweep = approximate(k.f.Outs), cpp("dm::block_y()"), &k.p.sweeps[sweep]
	scratch := slices.Clone(own)
	for i, ids := range from {
		for j, id := range ids {
			if id != "" {
				scratch = append(scratch, k.Passes[i][j])
			}
		}
	}
	k.scratch(scratch)
	if s, cols := k.sweep, k.f.Rows.Cols; s.splits > 1 {
		k.line("const %s %s = %s + dm::thread()", counter(cols), def(first), scaled(cpp("dm::block()"), s.steps*k.p.share, cols))
	} else {
		k.line("const dm::i32 %s = dm::thread()", def(first))
	}
}

// join combines the parts of earlier passes of the row.
func (k *rowKernel) join(from [][]ident) {
	for i, ids := range from {
		var read []*kernel.Expr
		s := &k.p.sweeps[i]
		for j, id := range ids {
			if id == "" {
				continue
			}
			x := k.Passes[i][j]
			read = append(read, x)
			at := func(id ident) code { return cpp("%s[%s * %d + %s]", id, row, s.splits, part) }
			value := at(id)
			if b := k.Base[x]; b != nil {
				value = k.relative(b, value, at(ids[slices.Index(k.Passes[i], b)]), k.elements(s, cpp("%s", part)))
			}
			k.of(x.From)
			k.joinParts(x, s.splits, value)
		}
		k.settle(read)
	}
}

// elements is the number of elements of a row in the part of a block.
func (k *rowKernel) elements(s *sweep, block code) code {
	n := s.steps * k.p.share * k.p.v
	if n*s.splits == k.f.Rows.Cols {
		return cpp("%d", n)
	}
	return cpp("dm::min(dm::i64(%d), %d - dm::i64(%s) * %d)", n, k.f.Rows.Cols, block, n)
}

// writePart reduces a part of a row in pass i.
func (p *rows) writePart(t *text, i int, from [][]ident, to []ident) error {
	k, err := p.kernel(t)
	if err != nil {
		return err
	}
	level := k.Passes[i]
	k.begin(i, from, level)
	k.line("const dm::i32 %s = dm::block_y()", def(row))
	k.bind(k.f.Rows.Row, cpp("%s", row))
	if i > 0 {
		k.fetchAhead(reduced(level))
	}
	k.join(from)
	k.reduceAlong(level, k.elements(k.sweep, cpp("dm::block()")))
	for j, x := range level {
		k.of(x.From)
		k.oneLine(cpp("%s.store(%s * %d + dm::block(), %s)", to[j], row, k.sweep.splits, k.given[x]), "if (dm::thread() == 0)")
	}
	return nil
}

// writeLast stores the results of a part of a row, or of some rows.
func (p *rows) writeLast(t *text, from [][]ident, columns, totals []ident) error {
	k, err := p.kernel(t)
	if err != nil {
		return err
	}
	k.colParts, k.allParts = columns, totals
	k.begin(len(p.passes), from, nil)
	k.beginSums()
	if p.loop {
		k.open("for (dm::i32 %s = dm::block_y(); %s < %d; %s += %d)", def(row), row, k.f.Rows.Rows, row, p.blocks)
	} else {
		k.line("const dm::i32 %s = dm::block_y()", def(row))
	}
	k.bind(k.f.Rows.Row, cpp("%s", row))
	k.fetchAhead(lastOf(k.f))
	k.join(from)
	k.outputs()
	if p.loop {
		k.close()
	}
	k.partials()
	return nil
}
