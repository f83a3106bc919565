package ptx

import (
	"strconv"
	"strings"
)

func (w *warp) pendingProducts() bool { return w.open || w.groups[0] != w.groups[1] }

// touched checks that an instruction does not use registers of wgmma in flight.
func (w *warp) touched(o *op, at int) {
	if o.kind == opProduct {
		return
	}
	for _, r := range o.dst {
		w.busy(o, at, r, "written")
	}
	for _, a := range o.src {
		w.busy(o, at, a.reg, "read")
	}
}

func (w *warp) busy(o *op, at, r int, how string) {
	if r < 0 || !w.b.c.sums[r] || w.regs[r].group <= w.groups[1] {
		return
	}
	w.b.find(o, at, InFlight, "a register of wgmma is %s before wgmma.wait_group", how)
	w.regs[r].group = 0
}

// matrix is what a descriptor says of an operand in shared memory.
type matrix struct {
	at, lead, stride uint64
	offset, swizzle  uint64 // bytes
}

// descriptor reads a matrix descriptor (PTX ISA, "Matrix descriptor format").
func descriptor(v uint64) matrix {
	m := matrix{at: v & 0x3fff << 4, lead: v >> 16 & 0x3fff << 4, stride: v >> 32 & 0x3fff << 4, offset: v >> 49 & 7}
	switch v >> 62 {
	case 1:
		m.swizzle = 128
	case 2:
		m.swizzle = 64
	case 3:
		m.swizzle = 32
	}
	return m
}

// product is wgmma.mma_async.
func (w *warp) product(o *op, at int, mask uint32) {
	w.b.report.Checked[ProductFence]++
	if !w.whole(o, at, mask) {
		return
	}
	w.products++
	w.open = true
	event := w.groups[0] + 1
	first := w.fences == 0
	stale := false
	inputs := o.src
	dense := o.in.Args[1].Kind != Vec
	if !dense {
		inputs = o.src[:len(o.in.Args[1].Sub)]
		for _, a := range inputs {
			stale = stale || a.reg >= 0 && w.regs[a.reg].fence == w.fences+1
			if a.reg >= 0 {
				w.regs[a.reg].group = event
			}
		}
	}
	for _, r := range o.dst {
		if r >= 0 {
			stale = stale || w.regs[r].fence == w.fences+1
			w.regs[r].group = event
			w.regs[r].kind = varying
		}
	}
	switch {
	case first:
		w.b.find(o, at, ProductFence, "no wgmma.fence stands before the first wgmma")
	case stale:
		w.b.find(o, at, ProductFence, "a register was written behind the last wgmma.fence")
	}
	if w.maybe > 0 {
		w.b.undecided(reasonBranch)
		return
	}
	elem := o.words[len(o.words)-1]
	n := typeBytes(elem)
	_, wide, _ := strings.Cut(o.words[4], "n") // m64n128k16
	wide, _, _ = strings.Cut(wide, "k")
	cols, _ := strconv.Atoi(wide)
	if n == 0 {
		n = 1 // e4m3, s8
	}
	if cols < 8 || cols > 256 || o.has("sp") {
		w.b.undecided(reasonOperation)
		return
	}
	rest := o.src
	var left *panel
	if dense {
		left = w.operand(o, at, rest[0], w.index%4*16, 16, n, w.flag(o, -2, n))
		rest = rest[1:]
	} else {
		rest = rest[len(inputs):]
	}
	right := w.operand(o, at, rest[0], 0, cols, n, w.flag(o, -1, n))
	if left != nil && right != nil && left.ok && right.ok {
		key := [2]int{left.param, right.param}
		d, seen := w.b.deltas[key]
		if !seen {
			w.b.deltas[key] = left.k - right.k
		} else if d != left.k-right.k {
			w.b.find(o, at, Descriptor, "k is %d of one operand and %d of the other, which was %d further before", left.k, right.k, -d)
		}
		w.b.report.Checked[Descriptor]++
	}
}

// flag is whether an operand is contiguous along m or n: the last operands of
// wgmma of two-byte elements say so.
func (w *warp) flag(o *op, from, elem int) bool {
	if elem != 2 {
		return false
	}
	args := o.in.Args
	if from == -2 && args[1].Kind == Vec {
		return false
	}
	a := args[len(args)+from]
	return a.Kind == Num && a.Text != "0"
}

// panel is a part of an operand: where it lies in its tensor along k.
type panel struct {
	param int
	k     int64
	ok    bool // k is known
}

// line is up to 128 bytes of an operand, in the order before swizzling.
type line struct {
	at, bytes uint64
	first     int // row, of k or of m or n
	block     int
}

// operand checks the rows from `row` on that a warp reads by a descriptor.
func (w *warp) operand(o *op, at int, a arg, row, rows, elem int, across bool) *panel {
	v, ok := w.value(a)
	if !ok {
		w.b.undecided(reasonAddress)
		return nil
	}
	d := descriptor(v)
	if d.swizzle != 128 || d.offset != 0 {
		if d.swizzle == 0 && w.swizzled(d.at) {
			w.b.find(o, at, Descriptor, "the descriptor has no swizzle, its tensor map has")
			return nil
		}
		if d.swizzle != 0 && w.swizzled(d.at) {
			w.b.find(o, at, Descriptor, "the descriptor's swizzle of %d bytes is not that of the tensor map", d.swizzle)
			return nil
		}
		w.b.undecided(reasonLayout)
		return nil
	}
	lines := w.lines[:0]
	if across {
		for r := row / 64; r < (row+rows+63)/64; r++ {
			from, to := max(row, r*64)-r*64, min(row+rows, r*64+64)-r*64
			for k := range 16 {
				lines = append(lines, line{d.at + uint64(r)*d.lead + uint64(k/8)*d.stride + uint64(k%8)*128 + uint64(from*elem), uint64((to - from) * elem), k, r})
			}
		}
	} else {
		for r := row; r < row+rows; r++ {
			lines = append(lines, line{d.at + uint64(r/8)*d.stride + uint64(r%8)*128, 32, r, 0})
		}
	}
	by := &access{o: o, at: at, by: stamp{int32(w.agent(agentProduct)), w.groups[0] + 1}, async: true, whole: true}
	w.lines = lines // for the next operand
	for _, l := range lines {
		for at, n := l.at, uint64(0); at < l.at+l.bytes; at += n {
			for n = max(16, min(128, at&-at)); n > l.at+l.bytes-at; n /= 2 {
			}
			w.reads(by, swizzle(at)&^(n-1), int(n)) // a swizzle moves no 16 bytes out of what is aligned
		}
	}
	return w.layout(o, at, lines, across)
}

// swizzle is where 16 bytes lie whose place would be p in a layout without swizzle.
func swizzle(p uint64) uint64 { return p ^ p>>7&7<<4 }

// swizzled reports whether a bulk copy with a swizzle wrote there.
func (w *warp) swizzled(at uint64) bool {
	id := w.b.shared.copyAt(at)
	return id > 0 && w.b.shared.copies[id-1].m.Swizzle > 0
}

// layout checks that lines which follow each other in the operand do so in the
// tensor. Where they lie in several boxes, each is checked by itself, and that all begin in one column.
func (w *warp) layout(o *op, at int, lines []line, across bool) *panel {
	out := &panel{ok: true, param: -1}
	var before coordinates
	var last int32
	var along int // the dimension in which the lines of the box follow
	for i, l := range lines {
		id := w.b.shared.copyAt(swizzle(l.at))
		if id == 0 {
			return nil
		}
		c := &w.b.shared.copies[id-1]
		follows := i > 0 && l.first == lines[i-1].first+1 && l.block == lines[i-1].block
		if follows && id == last && l.at == lines[i-1].at+128 { // the next line of the box
			before[along]++
			continue
		}
		if c.m.Swizzle != 128 {
			w.b.find(o, at, Descriptor, "the descriptor's swizzle of 128 bytes is not the %d of the tensor map", c.m.Swizzle)
			return nil
		}
		if uint64(c.m.Box[0])*c.elem != 128 || c.at == nil || len(c.m.Box) > len(coordinates{}) {
			w.b.undecided(reasonLayout)
			return nil
		}
		place, dim := c.place(l.at)
		if dim < 0 {
			w.b.undecided(reasonLayout)
			return nil
		}
		if follows && id != last && c.param == w.b.shared.copies[last-1].param && place[0] != before[0] {
			w.b.find(o, at, Descriptor, "row %d of the operand begins in column %d of the tensor, row %d in %d", l.first, place[0], lines[i-1].first, before[0])
			return nil
		}
		if follows && id == last {
			for k := range c.at {
				want := before[k]
				if k == dim {
					want++
				}
				if place[k] != want {
					w.b.find(o, at, Descriptor, "row %d of the operand is not behind row %d in the tensor: its strides are not those of the box", l.first, lines[i-1].first)
					return nil
				}
			}
		}
		k := place[0]
		if across {
			k = place[dim] - int64(l.first)
		}
		if i == 0 {
			out.k, out.param = k, c.param
		}
		if len(c.at) != 2 || c.param != out.param {
			out.ok = false
		} else if k != out.k {
			w.b.find(o, at, Descriptor, "rows of one operand are of k = %d and %d", out.k, k)
			return nil
		}
		before, last, along = place, id, dim
	}
	return out
}

// coordinates are those of an element of a tensor map, which has five dimensions at most.
type coordinates [5]int64

// place are the coordinates of the elements at an address of a box, and the one
// dimension but the first that the box has several of; -1: there are several.
func (c *copied) place(at uint64) (out coordinates, dim int) {
	row := int64(at-c.to) / 128
	dim = -1
	for i, n := range c.m.Box[1:] {
		if n > 1 {
			if dim >= 0 {
				return out, -1
			}
			dim = i + 1
		}
	}
	if dim < 0 {
		return out, -1
	}
	copy(out[:], c.at)
	out[0] += int64((at - c.to) % 128 / c.elem)
	out[dim] += row
	return out, dim
}
