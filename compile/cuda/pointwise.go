package cuda

import (
	"fmt"

	"dmir/compile/kernel"
)

const blockThreads = 256

// vectorOf is how many neighbours a thread takes of results of those types, so
// that each access is of 16 bytes where all sizes are multiples of it.
func vectorOf(f *kernel.Form, n func(kernel.Out) int64) int64 {
	least := int64(8)
	for _, v := range f.Outputs {
		least = min(least, kernel.ElemOf(v).Bytes())
	}
	v := min(8, 16/least)
	for _, o := range f.Outs {
		for v > 1 && n(o)%v != 0 {
			v /= 2
		}
	}
	return v
}

func elements(o kernel.Out) int64 {
	shape, _ := kernel.ShapeOf(o.Value)
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// pointwise is one thread for each V elements of the results.
func (g *generator) pointwise(f *kernel.Form, name string) ([]launch, error) {
	if f.Class == kernel.ClassPointwise {
		if v := vectorOf(f, elements); v > 1 {
			w, err := f.Widen(v, 0)
			if err != nil {
				return nil, err
			}
			f = w
		}
	}
	ns := newNames()
	ns.elementwise(f, g.over)
	e := g.emitter(ns.of)
	e.coarse = coarse(f.Outs)
	var most int64
	for _, o := range f.Outs {
		most = max(most, elements(o)/f.V)
	}
	count := "dm::i32"
	if most > 1<<31-blockThreads {
		count = "dm::i64"
	}
	e.line("const %s i = %s(dm::block()) * %d + dm::thread();", count, count, blockThreads)
	done := make([]bool, len(f.Outs))
	for i, o := range f.Outs {
		if done[i] {
			continue
		}
		var same []kernel.Out
		for j, p := range f.Outs {
			if p.Loops[0] == o.Loops[0] && elements(p) == elements(o) {
				done[j] = true
				same = append(same, p)
			}
		}
		e.open("if (i < %d)", elements(o)/f.V)
		e.bind(o.Loops[0], "i")
		l := e.lanes(f.Lane, f.V)
		l.store(same)
		l.end()
		e.close()
	}
	blocks := (most + blockThreads - 1) / blockThreads
	if blocks > 1<<31-1 {
		return nil, fmt.Errorf("%d blocks are more than a launch takes", blocks)
	}
	return []launch{{name: name, class: string(f.Class), threads: blockThreads, grid: [3]int{int(blocks), 1, 1}, params: ns.params, body: e.b.String()}}, nil
}
