package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// last are the expressions of the last pass, which stores and sums columns.
func (k *rowKernel) last() []*kernel.Expr {
	var xs []*kernel.Expr
	for _, o := range k.f.Outs {
		if o.Level == kernel.PerElement {
			xs = append(xs, o.X)
		}
	}
	for _, x := range k.cols {
		xs = append(xs, x.Args[0])
	}
	return xs
}

// passLoads are the loads that a pass which computes x does at each column, as
// vectors: folds computed before are known by then.
func (k *rowKernel) passLoads(x *kernel.Expr, into map[*kernel.Expr]bool) {
	if x.Op == kernel.Fold || x.Op == kernel.Guard {
		return
	}
	if x.Op == kernel.Load {
		if len(x.RowFolds()) > 0 {
			return // its address is known behind a pass alone
		}
		r := k.f.Rows
		if k.p.v > 1 {
			if _, ok := k.beside(x.At, k.f.Lane, k.p.v); ok {
				into[x] = true
			}
		} else if r.Col != nil && x.DependsOn(r.Col) {
			into[x] = true
		}
		return
	}
	for _, a := range x.Args {
		k.passLoads(a, into)
	}
}

// order is all loads in the order in which they first occur.
func (k *rowKernel) order() []*kernel.Expr {
	var out []*kernel.Expr
	seen := map[*kernel.Expr]bool{}
	for _, o := range k.f.Outs {
		kernel.Walk(o.X, func(x *kernel.Expr) {
			if x.Op == kernel.Load && !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		})
	}
	return out
}

// outputs is the last pass: it stores the row and adds to the sums of columns.
func (k *rowKernel) outputs() {
	var elements []kernel.Out
	for _, o := range k.f.Outs {
		switch o.Level {
		case kernel.PerElement:
			elements = append(elements, o)
		case kernel.PerRow:
			k.of(o.Value.Op)
			k.open("if (first == 0)")
			elem := kernel.ElemOf(o.Value)
			l := k.lanes(nil, 1)
			k.lineOf(o.Value.Op, "%s.store(%s, %s);", k.param(o.Value), k.index(o.At), l.stored(o.X, elem))
			l.end()
			k.close()
		}
	}
	for _, x := range k.alls {
		v := k.value(x.Args[0])
		k.lineOf(x.From, "%s = %s;", k.acc[x], joined(x.Kind, x.Elem, k.acc[x], v))
	}
	if len(elements)+len(k.cols) == 0 {
		return
	}
	for _, x := range k.last() {
		k.hoist(x)
	}
	k.along(func() {
		l := k.lanesOfRow()
		l.store(elements)
		for _, x := range k.cols {
			l.ready(x.Args[0])
		}
		if k.p.memory {
			k.addInMemory(l)
		} else if len(k.cols) > 0 {
			l.each(func() {
				j := "0"
				if l.lane != nil {
					j = l.atoms[l.lane]
				}
				for _, x := range k.cols {
					at := fmt.Sprintf("%s[s][%s]", k.acc[x], j)
					k.lineOf(x.From, "%s = %s;", at, joined(x.Kind, x.Elem, at, k.value(x.Args[0])))
				}
			})
		}
		l.end()
	})
}

// temps are the parameters for the sums of the block's rows: block b's of column
// c lies at b · columns + c, and that of one value at b.
func (k *rowKernel) temps(ns *names) {
	mode := artifact.Out
	if k.p.memory && k.p.loop {
		mode = artifact.InOut
	}
	for _, x := range k.cols {
		t := &temp{elem: foldElem(x.Elem), n: k.p.blocks * k.f.Rows.Cols}
		k.colTemps = append(k.colTemps, t)
		k.colNames = append(k.colNames, ns.addTemp("partial", t, mode))
	}
	for _, x := range k.alls {
		t := &temp{elem: foldElem(x.Elem), n: k.p.blocks}
		k.allTemps = append(k.allTemps, t)
		k.allNames = append(k.allNames, ns.addTemp("partial", t, artifact.Out))
	}
}

// addInMemory adds a step's neighbours to the sums of the block's rows, which lie
// in memory.
func (k *rowKernel) addInMemory(l *lanes) {
	p := k.p
	parts := make([]string, len(k.cols))
	for i, x := range k.cols {
		parts[i] = k.name("sum")
		k.lineOf(x.From, "%s %s[%d];", register(x.Elem), parts[i], p.v)
	}
	l.each(func() {
		j := "0"
		if l.lane != nil {
			j = l.atoms[l.lane]
		}
		for i, x := range k.cols {
			k.lineOf(x.From, "%s[%s] = %s;", parts[i], j, k.value(x.Args[0]))
		}
	})
	for i, x := range k.cols {
		n := k.colNames[i]
		at := fmt.Sprintf("dm::i64(dm::block()) * %d + col * %d + j", k.f.Rows.Cols, p.v)
		k.lineOf(x.From, "DM_UNROLL")
		k.open("for (int j = 0; j < %d; j++)", p.v)
		if p.loop {
			k.line("if (row != dm::block()) %s[j] = %s;", parts[i], joined(x.Kind, x.Elem, n+"["+at+"]", parts[i]+"[j]"))
		}
		k.line("%s.store(%s, %s[j]);", n, at, parts[i])
		k.close()
	}
}

// partials stores the sums of the block's rows that are kept in registers.
func (k *rowKernel) partials() {
	p := k.p
	for i, x := range k.cols {
		if p.memory {
			break
		}
		k.of(x.From)
		k.along(func() {
			k.line("DM_UNROLL")
			k.line("for (int j = 0; j < %d; j++) %s.store(dm::i64(dm::block()) * %d + col * %d + j, %s[s][j]);", p.v, k.colNames[i], k.f.Rows.Cols, p.v, k.acc[x])
		})
	}
	for i, x := range k.alls {
		k.lineOf(x.From, "if (first == 0) %s.store(dm::block(), %s);", k.allNames[i], k.acc[x])
	}
}

// foldElem is the element type in which a fold accumulates.
func foldElem(elem types.Elem) types.Elem {
	if small(elem) {
		return types.F32
	}
	return elem
}

const (
	finishWide = 32 // columns of a block that adds up partial sums
	finishDeep = 16 // threads that share a column
)

// finishColumns adds up the blocks' sums of every column and stores what is
// computed from them.
func (g *generator) finishColumns(f *kernel.Form, name string, temps []*temp, parts int64) launch {
	folds := f.Nest.Columns
	ns := newNames()
	outs := levelOuts(f, kernel.PerColumn)
	e := g.emitter(ns.of)
	cols := f.Rows.Cols
	e.line("const %s col = %s + dm::thread() %% %d;", counter(cols), scaled("dm::block()", finishWide, cols), finishWide)
	e.line("const dm::i32 part = dm::thread() / %d;", finishWide)
	accs := make([]string, len(folds))
	for i, x := range folds {
		p := ns.addTemp("partial", temps[i], artifact.In)
		s := "sums_" + fmt.Sprint(i+1)
		accs[i] = e.name("f")
		e.lineOf(x.From, "DM_SHARED(%s, %s, %d);", register(x.Elem), s, finishWide*finishDeep)
		e.line("%s %s = %s;", register(x.Elem), accs[i], start(x.Kind, x.Elem))
		e.line("if (col < %d) for (dm::i32 p = part; p < %d; p += %d) %s = %s;", cols, parts, finishDeep, accs[i],
			joined(x.Kind, x.Elem, accs[i], fmt.Sprintf("%s[dm::i64(p) * %d + col]", p, cols)))
		e.line("%s[dm::thread()] = %s;", s, accs[i])
		e.given[x] = accs[i]
	}
	e.line("dm::sync();")
	e.line("if (part > 0 || col >= %d) return;", cols)
	for i, x := range folds {
		e.lineOf(x.From, "for (int p = 1; p < %d; p++) %s = %s;", finishDeep, accs[i], joined(x.Kind, x.Elem, accs[i], fmt.Sprintf("sums_%d[p * %d + dm::thread()]", i+1, finishWide)))
	}
	e.bind(f.Rows.Col, "col")
	g.finish(e, ns, outs)
	return launch{
		name: name, class: string(f.Class), threads: finishWide * finishDeep,
		grid: [3]int{int((cols + finishWide - 1) / finishWide), 1, 1}, params: ns.params, body: e.b.String(),
	}
}

// finishAll adds up the blocks' sums of one value and stores what is computed from it.
func (g *generator) finishAll(f *kernel.Form, name string, temps []*temp, parts int64) launch {
	folds := f.Nest.Totals
	ns := newNames()
	outs := levelOuts(f, kernel.PerKernel)
	e := g.emitter(ns.of)
	k := &rowKernel{emitter: e, f: f}
	shared := map[types.Elem]bool{}
	for i, x := range folds {
		p := ns.addTemp("partial", temps[i], artifact.In)
		e.of(x.From)
		elem := scratchElem(x.Elem)
		if !shared[elem] {
			shared[elem] = true
			e.line("DM_SHARED(%s, %s, 32);", storage(elem), scratchName(elem))
		}
		acc := e.name("f")
		e.line("%s %s = %s;", register(x.Elem), acc, start(x.Kind, x.Elem))
		e.line("for (dm::i32 p = dm::thread(); p < %d; p += %d) %s = %s;", parts, blockThreads, acc, joined(x.Kind, x.Elem, acc, p+"[p]"))
		e.line("%s = %s;", acc, k.together(x, acc))
		e.given[x] = acc
	}
	e.line("if (dm::thread() > 0) return;")
	g.finish(e, ns, outs)
	text := e.b.String()
	return launch{name: name, class: string(f.Class), threads: blockThreads, grid: [3]int{1, 1, 1}, params: ns.params, body: text}
}

func levelOuts(f *kernel.Form, level kernel.Level) []kernel.Out {
	var outs []kernel.Out
	for _, o := range f.Outs {
		if o.Level == level {
			outs = append(outs, o)
		}
	}
	return outs
}

// finish stores outs, whose folds are given, one element to a thread.
func (g *generator) finish(e *emitter, ns *names, outs []kernel.Out) {
	for _, o := range outs {
		kernel.WalkOutside(o.X, func(x *kernel.Expr) {
			if x.Op == kernel.Load {
				ns.add(x.Buf, artifact.In)
			}
		})
	}
	for _, o := range outs {
		ns.add(o.Value, artifact.Out)
	}
	l := e.lanes(nil, 1)
	l.store(outs)
	l.end()
}
