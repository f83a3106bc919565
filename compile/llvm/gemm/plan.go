package gemm

import (
	"dmir/analysis/blocks"

	"github.com/llir/llvm/ir/types"
)

// Plan is how a product is computed, and where.
type Plan struct {
	blocks.Plan

	// Scratch is the bytes of memory that a thread needs.
	Scratch int64
}

// Choose plans a product for an architecture.
func Choose(s blocks.Shape, arch string) Plan {
	p := Plan{Plan: blocks.Choose(s, arch)}
	if size := s.Acc.Size(); p.Few {
		p.Scratch = up(s.Rows*s.Depth*size, 64) + s.Rows*p.NC*size*int64(s.Products)
	} else {
		p.Scratch = p.layout().total
	}
	return p
}

// TypeOf is the type of sums as LLVM has it.
func TypeOf(a blocks.Acc) types.Type {
	return [...]types.Type{blocks.F32: types.Float, blocks.F64: types.Double, blocks.I32: types.I32, blocks.I64: types.I64}[a]
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func up(n, unit int64) int64 { return ceil(n, unit) * unit }

// layout is where things lie in the scratch memory, in bytes.
type layout struct {
	a, b, stage, sums int64
	packed, tile      int64 // bytes of B, and of the sums, of one product
	total             int64
}

func (p Plan) layout() layout {
	size := p.Shape.Acc.Size()
	var at int64
	take := func(elems int64) int64 {
		from := at
		at += up(elems*size, 64)
		return from
	}
	passes := int64(1)
	if p.Resident {
		passes = p.Passes()
	}
	rows := p.MR
	if p.Passes() > 1 {
		rows = p.MC
	}
	products := int64(p.Shape.Products)
	var l layout
	l.a = take(p.sliver().size * p.sliver().count)
	stage := max(p.NR*p.stage(), stageRows*p.stageRow())
	if w := p.Shape.Window; w != nil && w.Step > 1 {
		stage = max(stage, p.lines()*p.staged())
	}
	l.stage = take(stage)
	l.packed, l.tile = p.Packed()*passes*size, rows*p.NC*size
	l.b = take(l.packed / size * products)
	l.sums = take(l.tile / size * products)
	l.total = at
	return l
}

// stage is the depth of B that is evaluated before it is transposed.
func (p Plan) stage() int64 { return min(up(p.KC, p.Lanes()), 64) }
