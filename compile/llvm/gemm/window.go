package gemm

import (
	"fmt"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Window states that B is the channels of an image over which a window moves. The depth is
// numbered channel by channel, and in each tap by tap. Row k of B is a run of a plane of its
// channel: B[n, k] is element n + Shift of the tap's plane.
//
// So B is not packed. The elements that a block of columns needs are copied once, and not
// once for each tap, and the micro-kernel reads each row of B where it is, as the direct
// convolutions of Georganas et al. do ("Anatomy of High-Performance Deep Learning
// Convolutions on SIMD Architectures", SC 2018). Theirs need images in a layout of their own.
type Window struct {
	Line   int64 // elements of a line of a plane
	Step   int64 // elements of an image's line for one of a plane's
	Planes int64 // of a channel; Shared ones, one after the other, are made of the same lines
	Shared int64
	Taps   []Tap
}

// Tap is where a tap of the window reads the element of column 0.
type Tap struct{ Plane, Shift int64 }

// Image emits the elements first to last-1 of a line of an image: for each it calls put with
// its place in the line and its value, in the type of the sums. Of these the planes from plane
// on have every Step-th, that at 0, 1 and so on first.
type Image func(f *code.Func, z, channel, line value.Value, plane int64, first, last value.Value, put func(at, x value.Value))

// halo is how many elements beyond a column the taps reach.
func (w *Window) halo() int64 {
	halo := int64(0)
	for _, t := range w.Taps {
		halo = max(halo, t.Shift)
	}
	return halo
}

// windowRows is the rows of a task whose sums take longer than to copy its part of the image.
const windowRows = 16

// chooseWindow sets the sizes of blocks of a product whose B is an image.
func (p *Plan) chooseWindow() {
	s, m, size := p.Shape, p.Machine, p.Shape.Acc.Size()
	w, taps := s.Window, int64(len(s.Window.Taps))
	kc := min(m.L1*3/4/(p.MR*size), maxKC)
	p.KC = even(s.Depth/taps, max(kc/taps, 1), 1) * taps
	tasks := max(min(wantTasks, s.Batch*s.Rows*s.Cols*s.Depth/taskSteps), 1)
	// The planes of a pass take up to half of the L2 cache.
	nc := max(m.L2/2/(p.KC/taps*w.Planes*size)-w.halo(), p.NR)
	p.MC = even(s.Rows, mostRows, p.MR)
	p.NC = even(s.Cols, min(nc, max(s.Cols*s.Batch*ceil(s.Rows, p.MC)/tasks, 4*tileColumns)), p.NR)
	if rows := s.Rows * s.Batch * ceil(s.Cols, p.NC) / tasks; rows < p.MC {
		p.MC = even(s.Rows, max(rows, windowRows), p.MR)
	}
	p.Resident = s.Rows > p.MC && p.packed()*p.passes()*size <= mostPacked
}

// span is the elements of a plane that a block of columns needs, and what whole vectors
// store beyond them.
func (p Plan) span() int64 { return up(p.NC+p.Shape.Window.halo(), p.lanes()) + p.lanes() }

// lines is the most lines that a block of columns reads, and staged the elements of one in
// the stage.
func (p Plan) lines() int64  { return ceil(p.NC+p.Shape.Window.halo(), p.Shape.Window.Line) + 1 }
func (p Plan) staged() int64 { return (p.Shape.Window.Line + p.lanes()) * p.Shape.Window.Step }

// stageImage copies what the columns need of the image's channels that ks has. Lines whose
// elements belong to several planes are staged and then taken apart, all of them at once: a
// load of what was stored a moment ago, by stores that it is not aligned with, takes long.
func (e *emitter) stageImage(pass, z value.Value, cols, ks span) {
	w, to := e.p.Shape.Window, e.packed(0, pass)
	taps, line, step := int64(len(w.Taps)), code.Int(w.Line), code.Int(w.Step)
	channel := e.NewUDiv(ks.from, code.Int(taps))
	end := e.NewAdd(cols.n, code.Int(w.halo()))
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
			copyTo := e.Element(e.elem, to, e.NewMul(e.NewAdd(e.NewMul(c, code.Int(w.Planes)), code.Int(plane)), code.Int(e.p.span())))
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
				e.For(from, below, code.Loop{Step: e.p.lanes(), Unroll: 1}, func(x value.Value) {
					for i, v := range e.apart(stage(y), e.NewMul(x, step)) {
						e.store(v, copyTo, e.NewAdd(code.Int(int64(i)*e.p.span()), e.NewAdd(base, x)))
					}
				})
			})
		}
	})
}

// apart are vectors of every Step-th element of a line, from element first, the one behind it,
// and so on.
func (e *emitter) apart(line, first value.Value) (out []value.Value) {
	w, lanes := e.p.Shape.Window, e.p.lanes()
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
		image := f.Element(f.elem, b, f.NewMul(c, code.Int(w.Planes*p.span())))
		for u, t := range w.Taps {
			sums = step(from, int64(u), f.Element(f.elem, image, code.Int(t.Plane*p.span()+t.Shift)), sums)
		}
		return sums
	})
}

// windowName tells the micro-kernels of windows apart.
func (p Plan) windowName() string {
	name := fmt.Sprintf(".planes%dx%d", p.Shape.Window.Planes, p.span())
	for _, t := range p.Shape.Window.Taps {
		name += fmt.Sprintf(".%d+%d", t.Plane, t.Shift)
	}
	return name
}
