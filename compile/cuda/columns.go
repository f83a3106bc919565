package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// columnPlan is how the threads share columns and rows.
type columnPlan struct {
	v      int64 // neighbours of a thread
	chunks int64 // of v columns in a row
	wide   int64 // threads of a block side by side
	deep   int64 // threads of a block that share the rows
	tiles  int64 // blocks side by side
	splits int64 // blocks that share the rows; from 2 on their sums pass through memory
}

func (g *generator) planColumns(f *kernel.Form) columnPlan {
	r := f.Rows
	p := columnPlan{v: 4, wide: 32}
	if widestOf(f) <= 2 {
		p.v = 8 // 16 bytes to an access
	}
	// The sums of a block's threads meet in shared memory.
	const most = 48 << 10
	for p.v > 1 && (r.Cols%p.v != 0 || r.Cols/p.v < 32 || int64(len(f.Nest.Columns)+len(f.Nest.Totals))*blockThreads*p.v*8 > most) {
		p.v /= 2
	}
	p.chunks = r.Cols / p.v
	for p.wide > 1 && p.wide/2 >= p.chunks {
		p.wide /= 2
	}
	p.deep = blockThreads / p.wide
	p.tiles = (p.chunks + p.wide - 1) / p.wide
	// Each thread adds up some rows, else there is more to finish than to do.
	p.splits = max(1, min(4*g.multiprocessors()/p.tiles, r.Rows/(p.deep*8)))
	return p
}

// columns is a kernel that folds over rows alone: a block takes some columns,
// side by side in memory, and a part of the rows; its threads share the rows.
func (g *generator) columns(f *kernel.Form, name string) ([]launch, error) {
	plain := f
	r, p := f.Rows, g.planColumns(f)
	v, chunks, wide, deep, tiles, splits := p.v, p.chunks, p.wide, p.deep, p.tiles, p.splits
	if v > 1 {
		w, err := f.Widen(v, 0)
		if err != nil {
			return nil, err
		}
		f = w
	}
	cols, alls := f.Nest.Columns, f.Nest.Totals
	if len(alls) > 0 && tiles > 1 {
		return nil, fmt.Errorf("a sum of all rows beside %d columns", r.Cols)
	}

	ns := newNames()
	for _, x := range f.Inputs {
		ns.add(x, artifact.In)
	}
	var elements, rows []kernel.Out
	for _, o := range f.Outs {
		switch o.Level {
		case kernel.PerElement:
			elements = append(elements, o)
			ns.add(o.Value, artifact.Out)
		case kernel.PerRow:
			rows = append(rows, o)
			ns.add(o.Value, artifact.Out)
		}
	}
	e := g.emitter(ns.of)
	e.coarse = coarse(f.Outs)
	e.line("const %s col = %s + dm::thread() %% %d;", counter(chunks), scaled("dm::block()", wide, chunks), wide)
	e.bind(f.Rows.Col, "col")
	e.line("const dm::i32 lane_row = dm::thread() / %d;", wide)
	acc := map[*kernel.Expr]string{}
	all := append(append([]*kernel.Expr{}, cols...), alls...)
	for i, x := range all {
		e.lineOf(x.From, "DM_SHARED(%s, sums_%d, %d);", register(x.Elem), i+1, blockThreads*v)
		acc[x] = e.name("sum")
		e.line("%s %s[%d];", register(x.Elem), acc[x], v)
		e.line("DM_UNROLL")
		e.line("for (int j = 0; j < %d; j++) %s[j] = %s;", v, acc[x], start(x.Kind, x.Elem))
	}
	if chunks%wide != 0 {
		e.open("if (col < %d)", chunks)
	}
	e.open("for (dm::i32 row = dm::block_y() * %d + lane_row; row < %d; row += %d)", deep, r.Rows, deep*splits)
	e.bind(f.Rows.Row, "row")
	if len(rows) > 0 {
		e.open("if (col == 0)")
		l := e.lanes(nil, 1)
		l.store(rows)
		l.end()
		e.close()
	}
	l := e.lanes(f.Lane, v)
	if len(elements) > 0 {
		l.store(elements)
	}
	for _, x := range all {
		l.ready(x.Args[0])
	}
	l.each(func() {
		j := "0"
		if l.lane != nil {
			j = l.atoms[l.lane]
		}
		for _, x := range all {
			at := fmt.Sprintf("%s[%s]", acc[x], j)
			e.lineOf(x.From, "%s = %s;", at, joined(x.Kind, x.Elem, at, e.value(x.Args[0])))
		}
	})
	l.end()
	e.close()
	if chunks%wide != 0 {
		e.close()
	}
	// The threads of a column join what they have; the first ones go on.
	for i, x := range all {
		e.lineOf(x.From, "DM_UNROLL")
		e.line("for (int j = 0; j < %d; j++) sums_%d[j * %d + dm::thread()] = %s[j];", v, i+1, blockThreads, acc[x])
	}
	e.line("dm::sync();")
	e.line("if (lane_row > 0 || col >= %d) return;", chunks)
	for i, x := range all {
		e.lineOf(x.From, "DM_UNROLL")
		e.open("for (int j = 0; j < %d; j++)", v)
		e.line("for (int p = 1; p < %d; p++) %s[j] = %s;", deep, acc[x],
			joined(x.Kind, x.Elem, acc[x]+"[j]", fmt.Sprintf("sums_%d[j * %d + p * %d + dm::thread()]", i+1, blockThreads, wide)))
		e.close()
	}
	first := launch{name: name, class: string(f.Class), threads: blockThreads, grid: [3]int{int(tiles), int(splits), 1}}
	if splits == 1 {
		outs := append(levelOuts(f, kernel.PerColumn), levelOuts(f, kernel.PerKernel)...)
		for _, o := range outs {
			ns.add(o.Value, artifact.Out)
		}
		l := e.lanes(f.Lane, v)
		for _, x := range all {
			if f.Lane == nil {
				e.given[x] = acc[x] + "[0]"
			} else {
				e.lane[x] = acc[x]
			}
		}
		l.store(outs)
		l.end()
		first.params, first.body = ns.params, e.b.String()
		return []launch{first}, nil
	}
	var colTemps, allTemps []*temp
	for i, x := range all {
		t := &temp{elem: foldElem(x.Elem), n: splits * r.Cols}
		if i < len(cols) {
			colTemps = append(colTemps, t)
		} else {
			allTemps = append(allTemps, t)
		}
		n := ns.addTemp("partial", t, artifact.Out)
		e.lineOf(x.From, "DM_UNROLL")
		e.line("for (int j = 0; j < %d; j++) %s.store(dm::i64(dm::block_y()) * %d + col * %d + j, %s[j]);", v, n, r.Cols, v, acc[x])
	}
	first.params, first.body = ns.params, e.b.String()
	out := []launch{first}
	if len(cols) > 0 {
		out = append(out, g.finishColumns(plain, name+"_columns", colTemps, splits))
	}
	if len(alls) > 0 {
		out = append(out, g.finishAll(plain, name+"_total", allTemps, splits))
	}
	return out, nil
}
