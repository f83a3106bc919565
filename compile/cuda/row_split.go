package cuda

import (
	"fmt"

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
	if 2*f.Rows.Rows > sms || p.loop || p.chunks > 1<<30 {
		return 1
	}
	for _, o := range f.Outs {
		if o.Level != kernel.PerRow {
			return 1
		}
	}
	if k := (&rowKernel{f: f}); len(k.levels()) != 1 {
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
	k := newSplit(f, ns)
	k.p.v = v
	if f.Rows.Col != nil {
		k.atoms[f.Rows.Col] = "col"
	}
	k.line("const dm::i32 row = dm::block_y();")
	level := k.levels()[0]
	accs := k.startFolds(level)
	k.open("for (dm::i32 col = dm::block() * %d + dm::thread(); col < %d; col += %d)", blockThreads, f.Rows.Cols/v, splits*blockThreads)
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
func newSplit(f *kernel.Form, ns *names) *rowKernel {
	k := &rowKernel{emitter: newEmitter(ns.of), f: f, cache: map[*kernel.Expr]string{}, acc: map[*kernel.Expr]string{}}
	if f.Rows.Row != nil {
		k.atoms[f.Rows.Row] = "row"
	}
	seen := map[types.Elem]bool{}
	for _, x := range k.rowFolds() {
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
	k := newSplit(f, ns)
	k.line("const dm::i32 row = dm::block();")
	for i, x := range k.levels()[0] {
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
