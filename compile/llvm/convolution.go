package llvm

import (
	"dmir/analysis/blocks"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/gemm"

	"github.com/llir/llvm/ir/value"
)

// Convolutions whose image is read where it is are products, too, with columns between the
// lines of outputs that are computed for nothing. See kernel.Image.

// mostTaps bounds the taps of a window whose image is read where it is: each is code.
const mostTaps = 64

// image is B of t as an image, nil where it is packed instead: where the columns between the
// lines of small images take longer than packing.
func image(t *kernel.Tiled) *kernel.Image {
	m, ok := t.Image()
	if !ok || t.Reduces || len(m.Taps) < 2 || len(m.Taps) > mostTaps {
		return nil
	}
	if !blocks.ReadsImage(t.Rows, m.Images, m.Columns(), m.Lines*m.Outputs) {
		return nil
	}
	x, flat := m.Element(0)
	if from := kernel.LargestLoad(x); from != nil {
		const near = 8 // elements
		if step, _ := from.At.Along(flat.At); step < 0 || step > near {
			return nil
		}
	}
	return m
}

// windowed is s for a product that reads the image m.
func windowed(s blocks.Shape, m *kernel.Image) blocks.Shape {
	s.Batch *= m.Images
	s.Cols = m.Columns()
	s.Window = &blocks.Window{Line: m.Line, Step: m.Step, Planes: m.Planes, Shared: m.Shared}
	for _, t := range m.Taps {
		s.Window.Taps = append(s.Window.Taps, blocks.Tap(t))
	}
	return s
}

// elementsOf emits the elements of an image.
func (p *contraction) elementsOf(b *body) gemm.Image {
	m := p.image
	return func(f *code.Func, z, channel, line value.Value, plane int64, first, last value.Value, put func(at, x value.Value)) {
		e := b.at(f)
		x, flat := m.Element(plane)
		batch, image := p.split(e, z)
		e.bind(flat.Z, batch)
		e.bind(flat.Image, image)
		e.bind(flat.Channel, channel)
		e.bind(flat.Line, line)
		e.hoist(x)
		segs := segments([]*kernel.Expr{x}, flat.At, m.Line*m.Step)
		e.along(flat.At, segs, first, last, code.Loop{Vectorize: true, Short: true}, nil, func(at value.Value, _ []value.Value) []value.Value {
			put(at, e.summand(x, p.p.Shape.Acc))
			return nil
		})
	}
}

// lines visits the outputs in the columns of a tile.
func (p *contraction) lines(e *emitter, tile gemm.Tile, flat kernel.Flat, begin []value.Value, each func(n value.Value, acc []value.Value) []value.Value) []value.Value {
	m := p.image
	line := code.Int(m.Line)
	_, image := p.split(e, tile.Z)
	first, last := e.NewUDiv(tile.N0, line), e.NewUDiv(e.NewAdd(tile.N1, code.Int(m.Line-1)), line)
	return e.fold(nil, first, last, code.Loop{Unroll: 1}, begin, func(y value.Value, acc []value.Value) []value.Value {
		e.bind(flat.N, e.NewAdd(e.NewMul(image, code.Int(m.Lines)), y))
		base := e.NewMul(y, line)
		left := e.most(e.NewSub(tile.N0, base), code.Int(0))
		right := e.least(e.NewSub(tile.N1, base), code.Int(m.Outputs))
		return e.fold(flat.Lane, left, right, code.Loop{Vectorize: true, Short: true}, acc, func(x value.Value, acc []value.Value) []value.Value {
			return each(e.NewAdd(base, x), acc)
		})
	})
}

// split divides the batch of the plan into that of the product and the image.
func (p *contraction) split(e *emitter, z value.Value) (batch, image value.Value) {
	if p.image == nil || p.image.Images == 1 {
		return z, code.Int(0)
	}
	n := code.Int(p.image.Images)
	return e.NewUDiv(z, n), e.NewURem(z, n)
}
