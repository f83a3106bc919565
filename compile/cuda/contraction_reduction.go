package cuda

import (
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// reducedResult is a result that reduces values computed from a contraction's
// elements: the tiles store partial results, which another kernel combines in
// order, so that the result does not depend on the order of the tiles.
type reducedResult struct {
	kernel.ReducedResult
	parts int64 // of each value
	param ident // the partial results
}

// partsOf is the number of partial results of a value, as the main loops number
// them.
func (p *contraction) partsOf(rows bool) int64 {
	c := p.c
	if rows {
		tiles := ceil(p.t.Rows, int64(c.BM))
		switch c.Path {
		case Wgmma, Gather:
			return tiles * 8
		case Pingpong:
			return tiles * 4
		case Mma:
			return tiles * int64(c.BM/c.WM)
		}
		return tiles * int64(c.threads()/32)
	}
	window := c.BN
	switch c.Path {
	case Wgmma, Pingpong, Gather:
		window = 32
	case Mma:
		window = c.WN
	}
	return ceil(p.t.Cols, int64(window/p.t.Products))
}

// valuesOf is the number of values of a reduced result in each batch.
func (p *contraction) valuesOf(rows bool) int64 {
	if rows {
		return p.t.Cols
	}
	return p.t.Rows
}

// writeJoins writes the functions of an epilogue with reductions that the main
// loops call.
func (r *results) writeJoins(u *unit) {
	if len(r.reductions) == 0 {
		return
	}
	const n, a, b, i, v ident = "f", "a", "b", "i", "v"
	choose := func(of func(f reducedResult) code) code {
		last := len(r.reductions) - 1
		c := of(r.reductions[last])
		for k := last - 1; k >= 0; k-- {
			c = cpp("%s == %d ? %s : %s", n, k, of(r.reductions[k]), c)
		}
		return c
	}
	u.function(choose(func(f reducedResult) code { return cpp("%t", f.Rows) }), "DM_FN static constexpr bool over_rows(int %s)", def(n))
	u.function(choose(func(f reducedResult) code { return cpp("%s", identity(f.Kind, types.F32)) }), "DM_FN static float first(int %s)", def(n))
	u.function(choose(func(f reducedResult) code { return combined(f.Kind, types.F32, a, b) }), "DM_FN static float join(int %s, float %s, float %s)", def(n), def(a), def(b))
	var keep []*stmt
	for k, f := range r.reductions {
		store := &stmt{head: cpp("%s.store(%s, %s)", f.param, i, v)}
		keep = append(keep, &stmt{head: cpp("if (%s == %d)", n, k), style: inLine, body: []*stmt{store}})
	}
	u.add(&stmt{head: cpp("DM_FN void part(int %s, dm::i64 %s, float %s) const", def(n), def(i), def(v)), style: inBrace, body: keep})
}

// combineLaunches are the launches after l that combine the partial results.
func (p *contraction) combineLaunches(l *launch, ns *names, r *results) (all []*launch) {
	ns.written()
	for _, f := range r.reductions {
		values, parts := p.t.Rows*p.t.Batch, f.parts
		const i, from, sum, n ident = "i", "from", "sum", "p"
		of, step := cpp("%s", i), values
		if f.Rows {
			step = p.t.Cols
			if f.Batch {
				values, parts = p.t.Cols, parts*p.t.Batch
			} else if values = p.t.Cols * p.t.Batch; p.t.Batch > 1 {
				of = cpp("dm::i64(%s / %d) * %d + %s %% %d", i, p.t.Cols, f.parts*p.t.Cols, i, p.t.Cols)
			}
		} else if f.Batch { // those of the batch follow each other
			values, parts, step = p.t.Rows, parts*p.t.Batch, p.t.Rows
		}
		out := ns.of[f.Value]
		join := &launch{
			Launch: assemble.Launch{
				Suffix: l.Suffix + "_" + string(out), Class: l.Class, Of: f.Value.Op, Block: artifact.Block{Threads: blockThreads}, Grid: [3]int{int(ceil(values, blockThreads)), 1, 1},
			},
			named: ns.of,
		}
		join.Params = ns.only(func(q assemble.Param) bool { return q.Name == string(f.param) || q.Name == string(out) })
		join.write = func(t *text) error {
			e := t.emitter(t.body)
			e.lineOf(f.Value.Op, "const dm::i32 %s = dm::block() * %d + dm::thread()", def(i), blockThreads)
			e.oneLine(cpp("return"), "if (%s >= %d)", i, values)
			e.line("const dm::i64 %s = %s", def(from), of)
			e.line("float %s = %s", def(sum), identity(f.Kind, types.F32))
			e.oneLine(cpp("%s = %s", sum, combined(f.Kind, types.F32, sum, cpp("%s[%s + dm::i64(%s) * %d]", f.param, from, n, step))),
				"for (dm::i32 %s = 0; %s < %d; %s++)", def(n), n, parts, n)
			inner := p.t.Cols
			e.bind(f.Kept.N, cpp("(%s %% %d)", i, inner))
			if !f.Rows {
				inner = p.t.Rows
				e.bind(f.Kept.M, cpp("(%s %% %d)", i, inner))
			}
			e.bind(f.Kept.Z, cpp("(%s / %d)", i, inner))
			e.line("%s.store(%s, dm::narrow<%s>(%s))", out, e.index(f.At), storage(f.Value.Elem()), sum)
			return nil
		}
		all = append(all, join)
	}
	return all
}
