package cuda

import (
	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// streamK is how the blocks share the steps of the last tiles; ok is false where they do not.
func (p *contraction) streamK() (s machine.StreamK, ok bool) {
	if !p.c.StreamK {
		return s, false
	}
	return p.target.Machine.StreamK(shapeOf(p.t).product(), p.c.tile())
}

// warps are those that share a block's tile.
func (c Config) warps() int64 {
	if c.Path.warpgroups() {
		return 8
	}
	return int64(c.threads() / 32)
}

// leftBehind is the memory for the sums that blocks leave for the one that finishes a tile, and for the flags by which it waits for
// them. The last worker leaves none.
func (p *contraction) leftBehind() []*assemble.Temp {
	s, ok := p.streamK()
	if !ok {
		return nil
	}
	blocks := (s.Workers - 1) * s.Blocks
	return []*assemble.Temp{
		{Elem: types.F32, N: blocks * int64(p.c.BM*p.c.BN), Own: true},
		{Elem: types.UI32, N: blocks * p.c.warps(), Own: true},
	}
}

// shareSteps makes l a launch of blocks that share steps, if they do, and puts one before it that clears their flags. left are the parameters for what
// they leave for each other.
func (p *contraction) shareSteps(l *launch, ns *names) (ls []*launch, left []assemble.Param) {
	s, ok := p.streamK()
	if !ok {
		return []*launch{l}, nil
	}
	l.Grid[0] = int(s.Workers * s.Blocks)
	for i, name := range []string{"left", "flags"} {
		ns.addTemp(name, p.left[i], artifact.InOut)
		q := &ns.params[len(ns.params)-1]
		q.Fresh = true
		q.Most = s.Parts() * p.left[i].Bytes() / ((s.Workers - 1) * s.Blocks)
		left = append(left, *q)
	}
	flags := left[1]
	flags.Mode, flags.Most = artifact.Out, 0
	n := p.left[1].N
	clear := &launch{
		Launch: assemble.Launch{
			Suffix: "_clear", Class: l.Class, Of: l.Of, Block: artifact.Block{Threads: blockThreads}, Grid: [3]int{int(ceil(n, blockThreads)), 1, 1},
			Params: []assemble.Param{flags},
		},
		include: p.include(), named: ns.of,
	}
	clear.write = func(t *text) error {
		t.body.line("dm::clear(%s, %d)", ident(flags.Name), n)
		return nil
	}
	return []*launch{clear, l}, left
}
