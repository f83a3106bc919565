package gemm_test

import (
	"math/rand/v2"
	"testing"

	"dmir/analysis/blocks"
	"dmir/compile/llvm/gemm"
)

// TestChoose plans random products, and checks what the emitted code relies on.
func TestChoose(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	size := func() int64 {
		n := int64(1) << r.IntN(15)
		return n + r.Int64N(n)*r.Int64N(2)
	}
	for range 20000 {
		s := blocks.Shape{
			Batch: size(), Rows: size(), Cols: size(), Depth: size(), Products: 1 + r.IntN(2),
			Acc: blocks.Acc(r.IntN(4)), A: blocks.Axis(r.IntN(2)), B: blocks.Axis(r.IntN(2)),
		}
		s.Half = s.Acc == blocks.F32 && r.IntN(4) == 0
		if !s.Half && s.Products == 1 && r.IntN(4) == 0 {
			s.Depth = min(s.Depth, 4096)
			window(1+r.Int64N(s.Cols), 1+r.Int64N(5), 2+r.Int64N(4), 1+r.Int64N(3))(&s)
		}
		p := gemm.Choose(s, arches[r.IntN(len(arches))].name)
		lanes := p.Machine.Bytes / s.Acc.Size()
		wrong := func(what string) { t.Fatalf("%s: %+v", what, p) }
		if p.Tasks < 1 || p.Scratch < 1 || p.Scratch > 64<<20 {
			wrong("numbers of tasks or bytes")
		}
		if up := (s.Rows + p.MC - 1) / p.MC * ((s.Cols + p.NC - 1) / p.NC) * s.Batch; up != p.Tasks {
			wrong("tasks are not the blocks of C")
		}
		if p.Few {
			continue
		}
		switch {
		case p.MR*p.NR/lanes+p.NR/lanes+2 > p.Machine.Registers:
			wrong("the tile does not fit registers")
		case p.NR%lanes != 0 || p.NC%p.NR != 0 || p.MC%p.MR != 0:
			wrong("blocks are not whole tiles")
		case s.Window != nil && p.KC%int64(len(s.Window.Taps)) != 0:
			wrong("a pass is not whole channels")
		case s.Window == nil && p.KC%4 != 0:
			wrong("a pass is not a whole number of the micro-kernel's steps")
		case s.Window == nil && !p.Resident && p.Tasks > s.Batch*((s.Cols+p.NC-1)/p.NC) && p.KC*p.NC*s.Acc.Size() > p.Machine.L2:
			wrong("a block of B is packed for each task and does not fit the cache")
		}
	}
}
