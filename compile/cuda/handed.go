package cuda

import (
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/dialect/types"
)

// Handed gives for the machine of u how many bytes a kernel writes to memory of
// its own and reads from it: the sums that its blocks hand on. It makes no text,
// so that a planner can ask of every group of ops.
func (c codegen) Handed(u *pass.Unit) (func(*kernel.Form) int64, error) {
	g, err := c.generator(u)
	if err != nil {
		return nil, err
	}
	return g.handed, nil
}

func (g *generator) handed(f *kernel.Form) int64 {
	// sums is n parts of each fold, written and read times times in all.
	sums := func(folds []*kernel.Expr, n, times int64) int64 {
		var bytes int64
		for _, x := range folds {
			bytes += times * n * foldElem(x.Elem).Bytes()
		}
		return bytes
	}
	switch f.Class {
	case kernel.ClassRow:
		n := f.Nest
		p := g.planRows(f, len(n.Columns), len(n.Totals))
		if splits := g.splitsOf(f, p); splits > 1 {
			return sums(n.Passes[0], f.Rows.Rows*splits, 2)
		}
		times := int64(2)
		if p.memory && p.loop {
			times = 3 // each row adds to what the rows before left
		}
		return sums(n.Columns, p.blocks*f.Rows.Cols, times) + sums(n.Totals, p.blocks, 2)
	case kernel.ClassColumns:
		if p := g.planColumns(f); p.splits > 1 {
			return sums(f.Nest.Columns, p.splits*f.Rows.Cols, 2) + sums(f.Nest.Totals, p.splits, 2)
		}
	case kernel.ClassContraction:
		return g.handedParts(f)
	}
	return 0
}

// handedParts is handed for the folds behind a contraction. What the split of a
// sum hands on is left out: it is the contraction's, whatever else its kernel does.
func (g *generator) handedParts(f *kernel.Form) int64 {
	if len(f.Outs) == len(f.Outputs) {
		return 0
	}
	t, err := f.Tiled()
	if err != nil {
		return 0
	}
	_, folds, _, err := t.Results(1)
	configs := Candidates(t, g.target)
	if err != nil || len(configs) == 0 {
		return 0
	}
	p := &product{generator: g, t: t, c: g.tileOf(t, configs)}
	var bytes int64
	for _, x := range folds {
		values := t.Rows
		if x.Rows {
			values = t.Cols
		}
		bytes += 2 * p.partsOf(x.Rows) * values * t.Batch * types.F32.Bytes()
	}
	return bytes
}
