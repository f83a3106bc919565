package cuda

import (
	"fmt"
	"strings"

	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// fold is a result that folds what is computed of a contraction's elements: the
// tiles keep parts of it in memory, which a kernel of its own joins in order, so
// that the result does not depend on which tile is ready first.
type fold struct {
	kernel.Folded
	parts int64  // of each value
	param string // the parts
}

// parts gives each fold the memory for its parts.
func (p *product) parts(folds []kernel.Folded) []param {
	var out []param
	for _, f := range folds {
		n, values := p.partsOf(f.Rows), p.t.Cols
		if !f.Rows {
			values = p.t.Rows
		}
		name := p.ns.addTemp(p.ns.of[f.Value]+"_parts", &temp{elem: types.F32, n: n * values * p.t.Batch}, artifact.Out)
		p.folds = append(p.folds, fold{f, n, name})
		out = append(out, p.ns.params[len(p.ns.params)-1])
	}
	return out
}

// partsOf is how many parts the tiles make of a fold's value, as the main loops
// number them.
func (p *product) partsOf(rows bool) int64 {
	c := p.c
	if rows {
		tiles := ceil(p.t.Rows, int64(c.BM))
		switch c.Path {
		case Wgmma:
			return tiles * 8
		case Mma:
			return tiles * int64(c.BM/c.WM)
		}
		return tiles * int64(c.threads()/32)
	}
	window := c.BN
	switch c.Path {
	case Wgmma:
		window = 32
	case Mma:
		window = c.WN
	}
	return ceil(p.t.Cols, int64(window/p.t.Products))
}

// joins writes what the main loops ask of an epilogue that folds.
func (p *product) joins(folds []kernel.Folded) {
	if len(folds) == 0 {
		return
	}
	var rows, first, join, keep []string
	for i, f := range p.folds {
		rows = append(rows, fmt.Sprint(f.Rows))
		first = append(first, start(f.Kind, types.F32))
		join = append(join, joined(f.Kind, types.F32, "a", "b"))
		keep = append(keep, fmt.Sprintf("if (f == %d) %s.store(i, v);", i, f.param))
	}
	choose := func(xs []string) string {
		s := xs[len(xs)-1]
		for i := len(xs) - 2; i >= 0; i-- {
			s = fmt.Sprintf("f == %d ? %s : %s", i, xs[i], s)
		}
		return s
	}
	b := &p.after
	fmt.Fprintf(b, "  DM_FN static constexpr bool over_rows(int f) { return %s; }\n", choose(rows))
	fmt.Fprintf(b, "  DM_FN static float first(int f) { return %s; }\n", choose(first))
	fmt.Fprintf(b, "  DM_FN static float join(int f, float a, float b) { return %s; }\n", choose(join))
	fmt.Fprintf(b, "  DM_FN void part(int f, dm::i64 i, float v) const { %s }\n", strings.Join(keep, " "))
}

// folded adds to the launch of the tiles those that join the parts of folds.
func (p *product) folded(l launch) ([]launch, error) {
	if len(p.folds) > 0 {
		l.differs = "parts of its folds pass through memory"
	}
	all := []launch{p.trim(l)}
	for _, f := range p.folds {
		elem := kernel.ElemOf(f.Value)
		values, parts := p.t.Rows*p.t.Batch, f.parts
		of, step := "i", values
		if f.Rows {
			step = p.t.Cols
			if f.Batch {
				values, parts = p.t.Cols, parts*p.t.Batch
			} else if values = p.t.Cols * p.t.Batch; p.t.Batch > 1 {
				of = fmt.Sprintf("dm::i64(i / %d) * %d + i %% %d", p.t.Cols, f.parts*p.t.Cols, p.t.Cols)
			}
		}
		e := p.emitter(p.ns.of)
		e.lineOf(f.Value.Op, "const dm::i32 i = dm::block() * %d + dm::thread();", blockThreads)
		e.line("if (i >= %d) return;", values)
		e.line("const dm::i64 from = %s;", of)
		e.line("float sum = %s;", start(f.Kind, types.F32))
		e.line("for (dm::i32 p = 0; p < %d; p++) sum = %s;", parts, joined(f.Kind, types.F32, "sum", fmt.Sprintf("%s[from + dm::i64(p) * %d]", f.param, step)))
		inner := p.t.Cols
		e.bind(f.Kept.N, fmt.Sprintf("(i %% %d)", inner))
		if !f.Rows {
			inner = p.t.Rows
			e.bind(f.Kept.M, fmt.Sprintf("(i %% %d)", inner))
		}
		e.bind(f.Kept.Z, fmt.Sprintf("(i / %d)", inner))
		e.line("%s.store(%s, dm::narrow<%s>(sum));", p.ns.of[f.Value], e.index(f.At), storage(elem))
		name := l.name + "_" + p.ns.of[f.Value]
		finish := launch{
			name: name, class: l.class, of: f.Value.Op, threads: blockThreads, grid: [3]int{int(ceil(values, blockThreads)), 1, 1},
			body: e.b.String(), differs: l.differs,
		}
		for _, q := range p.ns.params {
			if q.temp != nil {
				q.mode = artifact.In
			}
			finish.params = append(finish.params, q)
		}
		all = append(all, p.trim(finish))
	}
	return all, nil
}
