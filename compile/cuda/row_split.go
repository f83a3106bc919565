package cuda

import (
	"fmt"
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// splitsOf is how many blocks share a row of f, 1 where each row has one: with
// fewer rows than multiprocessors, such as where all of a tensor is added up,
// most of the machine would look on. Only results of whole rows, of folds that
// need no other fold of the row, are put together from parts.
func (g *generator) splitsOf(f *kernel.Form, p rowPlan) int64 {
	sms := g.multiprocessors()
	if 2*f.Rows.Rows > sms || p.loop {
		return 1
	}
	for _, o := range f.Outs {
		if o.Level != kernel.PerRow {
			return 1
		}
	}
	if len(f.Nest.Passes) != 1 {
		return 1
	}
	return max(1, min(4*sms/f.Rows.Rows, p.chunks/(4*blockThreads)))
}

// splitRows is a kernel whose blocks each fold a part of a row, and one that
// joins the parts and stores what is computed from them.
func (g *generator) splitRows(plain *kernel.Form, name string, v, splits int64) ([]launch, error) {
	f := plain
	if v > 1 {
		w, err := f.Widen(v, 0)
		if err != nil {
			return nil, err
		}
		f = w
	}
	ns := newNames()
	for _, x := range f.Inputs {
		ns.add(x, artifact.In)
	}
	k := g.newSplit(f, ns)
	k.p.v = v
	k.line("const dm::i32 row = dm::block_y();")
	k.bind(f.Rows.Row, "row")
	level := f.Nest.Passes[0]
	accs := k.startFolds(level)
	chunks := f.Rows.Cols / v
	k.open("for (%s col = %s + dm::thread(); col < %d; col += %d)", counter(chunks), scaled("dm::block()", blockThreads, chunks), chunks, splits*blockThreads)
	k.bind(f.Rows.Col, "col")
	k.joinFolds(level, accs)
	k.close()
	temps := make([]*temp, len(level))
	for i, x := range level {
		temps[i] = &temp{elem: foldElem(x.Elem), n: f.Rows.Rows * splits}
		to := ns.addTemp("partial", temps[i], artifact.Out)
		k.lineOf(x.From, "%s = %s;", accs[i], k.together(x, accs[i]))
		k.line("if (dm::thread() == 0) %s.store(row * %d + dm::block(), %s);", to, splits, accs[i])
	}
	first := launch{
		name: name, class: string(f.Class), threads: blockThreads, grid: [3]int{int(splits), int(f.Rows.Rows), 1}, params: ns.params, body: k.b.String(),
		differs: "partial sums of blocks are written and read once more",
	}
	return []launch{first, g.finishRows(plain, name+"_rows", temps, splits, first.differs)}, nil
}

// newSplit begins a kernel in which a block folds along a row.
func (g *generator) newSplit(f *kernel.Form, ns *names) *rowKernel {
	k := &rowKernel{emitter: g.emitter(ns.of), f: f, cache: map[*kernel.Expr]string{}, acc: map[*kernel.Expr]string{}}
	seen := map[types.Elem]bool{}
	for _, x := range slices.Concat(f.Nest.Passes...) {
		if elem := scratchElem(x.Elem); !seen[elem] {
			seen[elem] = true
			k.line("DM_SHARED(%s, %s, 32);", storage(elem), scratchName(elem))
		}
	}
	return k
}

// finishRows joins the parts of every row and stores what is computed from them.
func (g *generator) finishRows(f *kernel.Form, name string, temps []*temp, splits int64, differs string) launch {
	ns := newNames()
	k := g.newSplit(f, ns)
	k.line("const dm::i32 row = dm::block();")
	k.bind(f.Rows.Row, "row")
	for i, x := range f.Nest.Passes[0] {
		from := ns.addTemp("partial", temps[i], artifact.In)
		acc := k.name("f")
		k.lineOf(x.From, "%s %s = %s;", register(x.Elem), acc, start(x.Kind, x.Elem))
		k.line("for (dm::i32 p = dm::thread(); p < %d; p += %d) %s = %s;", splits, blockThreads, acc,
			joined(x.Kind, x.Elem, acc, fmt.Sprintf("%s[row * %d + p]", from, splits)))
		k.line("%s = %s;", acc, k.together(x, acc))
		k.given[x] = acc
	}
	k.line("if (dm::thread() > 0) return;")
	g.finish(k.emitter, ns, levelOuts(f, kernel.PerRow))
	return launch{
		name: name, class: string(f.Class), threads: blockThreads, grid: [3]int{int(f.Rows.Rows), 1, 1}, params: ns.params, body: k.b.String(), differs: differs,
	}
}
