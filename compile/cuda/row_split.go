package cuda

import (
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// rowSplits is the number of blocks that share a row: more than 1 where there
// are fewer rows than multiprocessors, as in the sum of a whole tensor, and
// only for per-row results of reductions that read no other reduction of the
// row.
func (p *rows) rowSplits(sms int64) int64 {
	f := p.f
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

// split is a kernel whose blocks each reduce a part of a row, and one that
// combines the parts and stores the results computed from them.
func (p *rows) split() []*launch {
	f := p.f
	ns := namesOf(f.Inputs, nil)
	ns.readers(reduced(f.Nest.Passes[0])...)
	var to []ident
	for _, t := range p.passes {
		to = append(to, ns.addTemp("partial", t, artifact.Out))
	}
	parts := &launch{
		Launch: assemble.Launch{
			Class: string(f.Class), Block: artifact.Block{Threads: blockThreads}, Grid: [3]int{int(p.splits), int(f.Rows.Rows), 1}, Params: ns.params,
		},
		named: ns.of,
		write: func(t *text) error { return p.writeParts(t, to) },
	}
	outs := levelOuts(f, kernel.PerRow)
	finish, from := finishLaunch(f, "_rows", p.passes, outs)
	finish.Block.Threads, finish.Grid = blockThreads, [3]int{int(f.Rows.Rows), 1, 1}
	finish.write = func(t *text) error {
		e := t.emitter(t.body)
		e.scratch(f.Nest.Passes[0])
		e.line("const dm::i32 %s = dm::block()", def(row))
		e.bind(f.Rows.Row, cpp("%s", row))
		for i, x := range f.Nest.Passes[0] {
			e.of(x.From)
			e.joinParts(x, p.splits, cpp("%s[%s * %d + %s]", from[i], row, p.splits, part))
		}
		e.oneLine(cpp("return"), "if (dm::thread() > 0)")
		e.finish(outs)
		return nil
	}
	return []*launch{parts, finish}
}

// writeParts reduces a part of a row.
func (p *rows) writeParts(t *text, to []ident) error {
	k, err := p.kernel(t)
	if err != nil {
		return err
	}
	r := k.f.Rows
	k.scratch(k.f.Nest.Passes[0])
	k.line("const dm::i32 %s = dm::block_y()", def(row))
	k.bind(r.Row, cpp("%s", row))
	level := k.f.Nest.Passes[0]
	accs := k.initAccumulators(level)
	k.open("for (%s %s = %s + dm::thread(); %s < %d; %s += %d)", counter(p.chunks), def(col), scaled(cpp("dm::block()"), blockThreads, p.chunks), col, p.chunks, col, p.splits*blockThreads)
	k.bind(r.Col, cpp("%s", col))
	k.accumulate(level, accs)
	k.close()
	for i, x := range level {
		k.assign(x.From, accs[i], reduceThreads(x, accs[i], false))
		k.oneLine(cpp("%s.store(%s * %d + dm::block(), %s)", to[i], row, p.splits, accs[i]), "if (dm::thread() == 0)")
	}
	return nil
}
