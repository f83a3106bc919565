package gemm

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Image emits the elements first to last-1 of a line of an image: for each it calls put with
// its place in the line and its value, in the type of the sums. Of these the planes from plane
// on have every Step-th, that at 0, 1 and so on first.
type Image func(f *code.Func, z, channel, line value.Value, plane int64, first, last value.Value, put func(at, x value.Value))

// lines is the most lines that a block of columns reads, and staged the elements of one in
// the stage.
func (p Plan) lines() int64  { return ceil(p.NC+p.Shape.Window.Halo(), p.Shape.Window.Line) + 1 }
func (p Plan) staged() int64 { return (p.Shape.Window.Line + p.Lanes()) * p.Shape.Window.Step }

// stageImage copies what the columns need of the image's channels that ks has. Lines whose
// elements belong to several planes are staged and then taken apart, all of them at once: a
// load of what was stored a moment ago, by stores that it is not aligned with, takes long.
func (e *emitter) stageImage(pass, z value.Value, cols, ks span) {
	w, to := e.p.Shape.Window, e.packed(0, pass)
	taps, line, step := int64(len(w.Taps)), code.Int(w.Line), code.Int(w.Step)
	channel := e.NewUDiv(ks.from, code.Int(taps))
	end := e.NewAdd(cols.n, code.Int(w.Halo()))
	top := e.NewUDiv(cols.from, line)
	bottom := e.NewUDiv(e.NewAdd(e.NewAdd(cols.from, end), code.Int(w.Line-1)), line)
	// each runs body for the elements from to below-1 of each line, which are behind
	// element base of the copy.
	each := func(body func(y, base, from, below value.Value)) {
		e.For(top, bottom, code.Loop{Unroll: 1}, func(y value.Value) {
			base := e.NewSub(e.NewMul(y, line), cols.from)
			ahead := e.NewSub(code.Int(0), base)
			from := e.NewSub(ahead, least(e.Func, ahead, code.Int(0))) // 0 or more
			body(y, base, from, least(e.Func, e.NewSub(end, base), line))
		})
	}
	e.For(code.Int(0), e.parts(ks.n, taps), code.Loop{Unroll: 1}, func(c value.Value) {
		for plane := int64(0); plane < w.Planes; plane += w.Shared {
			copyTo := e.Element(e.elem, to, e.NewMul(e.NewAdd(e.NewMul(c, code.Int(w.Planes)), code.Int(plane)), code.Int(e.p.Span())))
			stage := func(y value.Value) value.Value {
				return e.Element(e.elem, e.stage, e.NewMul(e.NewSub(y, top), code.Int(e.p.staged())))
			}
			each(func(y, base, from, below value.Value) {
				array := copyTo
				if w.Step > 1 {
					array, base = stage(y), code.Int(0)
				}
				e.mark(func() {
					e.kernel.Image(e.Func, z, e.NewAdd(channel, c), y, plane, e.NewMul(from, step), e.NewMul(below, step), func(x, v value.Value) {
						e.NewStore(v, e.Element(e.elem, array, e.NewAdd(base, x)))
					})
				}, array)
			})
			if w.Step == 1 {
				continue
			}
			each(func(y, base, from, below value.Value) {
				e.For(from, below, code.Loop{Step: e.p.Lanes(), Unroll: 1}, func(x value.Value) {
					for i, v := range e.apart(stage(y), e.NewMul(x, step)) {
						e.store(v, copyTo, e.NewAdd(code.Int(int64(i)*e.p.Span()), e.NewAdd(base, x)))
					}
				})
			})
		}
	})
}

// apart are vectors of every Step-th element of a line, from element first, the one behind it,
// and so on.
func (e *emitter) apart(line, first value.Value) (out []value.Value) {
	w, lanes := e.p.Shape.Window, e.p.Lanes()
	for i := range w.Shared {
		var v value.Value = constant.NewUndef(e.vec)
		if w.Step == 2 {
			v = e.Shuffle(e.load(line, first), e.load(line, e.NewAdd(first, code.Int(lanes))), func(j int64) int64 { return 2*j + i })
		} else {
			for j := range lanes {
				x := e.NewLoad(e.elem, e.Element(e.elem, line, e.NewAdd(first, code.Int(j*w.Step+i))))
				v = e.NewInsertElement(v, x, constant.NewInt(types.I32, j))
			}
		}
		out = append(out, v)
	}
	return out
}

// windowSums emits the loop of the micro-kernel over channels, in which each tap is a step.
func (p Plan) windowSums(f vectors, a, b, channels value.Value, sums []value.Value, step func(a value.Value, u int64, b value.Value, sums []value.Value) []value.Value) []value.Value {
	w, l := p.Shape.Window, p.sliver()
	taps := int64(len(w.Taps))
	return f.Fold(code.Int(0), channels, code.Loop{Unroll: 1}, sums, func(c value.Value, sums []value.Value) []value.Value {
		from := f.Element(f.elem, a, f.NewMul(c, code.Int(taps*l.step)))
		image := f.Element(f.elem, b, f.NewMul(c, code.Int(w.Planes*p.Span())))
		for u, t := range w.Taps {
			sums = step(from, int64(u), f.Element(f.elem, image, code.Int(t.Plane*p.Span()+t.Shift)), sums)
		}
		return sums
	})
}

// windowName tells the micro-kernels of windows apart.
func (p Plan) windowName() string {
	name := fmt.Sprintf(".planes%dx%d", p.Shape.Window.Planes, p.Span())
	for _, t := range p.Shape.Window.Taps {
		name += fmt.Sprintf(".%d+%d", t.Plane, t.Shift)
	}
	return name
}
