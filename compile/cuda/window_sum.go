package cuda

import (
	"fmt"
	"strings"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
)

// windowSum is the scheme of a convolution of few products for each element as sums over windows: a thread
// computes a cell of outputs, whose window it reads line by line.
type windowSum struct {
	*elementwise
	slots int64 // of the issue of instructions by a thread
}

// windowSums are f, a contraction of the given product, as sums over windows, with each of the cells that a thread may compute; none
// where f is no such sum.
func (t Target) windowSums(f *kernel.Form, product productShape, o assemble.Options) (all []*windowSum) {
	s := f.Sums()
	if s == nil {
		return nil
	}
	for _, cells := range s.SumCells(width(f.Outputs[0].Elem(), 16)) {
		g, err := s.Divided([]*kernel.Cells{cells})
		if err != nil {
			continue
		}
		if n := expressions(g); n[kernel.Reduce] > 0 || n["mul"]+n["add"] > mostWritten {
			continue
		}
		n, live := threadSlots(g)
		if live > mostRead {
			continue
		}
		// Cells at edges are computed whole.
		n = ceil(n*cells.Count()*cells.Of(), product.batch*product.rows*product.cols)
		all = append(all, &windowSum{elementwise: &elementwise{f: g, over: o.Over, v: 1}, slots: n})
	}
	return all
}

// windowSum is f, a contraction, as sums over windows where these take less time than the tile of c, or where that was the
// choice before; nil otherwise.
func (t Target) windowSum(f *kernel.Form, c *contraction, o assemble.Options) (best *windowSum) {
	if t.Rank > 0 || o.Tile != "" && !strings.HasPrefix(o.Tile, machine.WindowPath) {
		return nil
	}
	product := shapeOf(c.t)
	memory := product.bytes() / t.Machine.Reach()
	least := product.time(c.c, t.Machine)
	for _, p := range t.windowSums(f, product, o) {
		if p.String() == o.Tile {
			return p
		}
		// Without enough warps nothing hides the latency of what a thread reads.
		if best != nil && p.f.Cells[0].Count() < waves*blockThreads*t.multiprocessors() {
			continue
		}
		compute := t.Machine.ProductTime(product.product(), p.tile()).Total()
		if time := max(memory, compute) + compute/1000; time < least {
			best, least = p, time
		}
	}
	return best
}

// tile is p as the model of costs has it: lines and outputs of a cell, and the slots of a thread.
func (p *windowSum) tile() machine.Tile {
	c := p.f.Cells[0]
	last := c.Axes[len(c.Axes)-1].N
	return machine.Tile{Path: machine.WindowPath, Rows: int(c.Of() / last), Cols: int(last), Step: int(p.slots), Splits: 1}
}

func (p *windowSum) String() string {
	t := p.tile()
	return fmt.Sprintf("%s %dx%dx%d", t.Path, t.Rows, t.Cols, t.Step)
}

// Slots of the issue of instructions: of a thread besides its cell, whose place it computes from its number; of a condition; of a
// wavefront of the level-1 cache, of which a multiprocessor has one in a clock for the four instructions that it issues.
const (
	placeSlots     = 60
	conditionSlots = 2
	wavefrontSlots = 4
)

// threadSlots counts the slots that a thread of g takes, and the registers that hold what it reads at the same time.
func threadSlots(g *kernel.Form) (n int64, live int) {
	var instructions, wavefronts int64
	apart := int64(1)
	if c := g.Cells[0]; len(c.Axes) > 0 {
		apart = c.Axes[len(c.Axes)-1].N // elements between those of neighbouring threads
	}
	seen := map[*kernel.Expr]bool{}
	counts := map[string]int64{}
	var visit func(x *kernel.Expr, under string)
	loads := map[string][]*kernel.Expr{}
	visit = func(x *kernel.Expr, under string) {
		if seen[x] {
			return
		}
		seen[x] = true
		switch x.Op {
		case kernel.Guard:
			under = conditionsKey(x.If)
		case kernel.Load:
			loads[under] = append(loads[under], x)
		case kernel.Number:
		default:
			counts[x.Op]++
		}
		for _, a := range x.Args {
			visit(a, under)
		}
	}
	for _, o := range g.Outs {
		visit(o.X, "")
	}
	for op, k := range counts {
		if op != "add" { // which is one instruction with a product
			instructions += k
		}
	}
	instructions += max(0, counts["add"]-counts["mul"])
	for key, xs := range loads {
		places := make([]kernel.Index, len(xs))
		for i, x := range xs {
			places[i] = x.At
		}
		for _, r := range runs(places, func(i int) any { return xs[i].Buf }, func(i int) int64 { return width(xs[i].Elem, 16) }) {
			x := xs[r[0]]
			instructions++
			if x.Buf == g.Main.Operands[1] { // the same of most lanes
				wavefronts++
			} else {
				wavefronts += max(1, ceil(32*apart*x.Elem.Bytes(), 128))
			}
		}
		if key != "" {
			instructions += conditionSlots + int64(len(xs)) // which are zero elsewhere
		}
	}
	return max(instructions+int64(len(g.Outs))+placeSlots, wavefrontSlots*wavefronts), liveLoads(g) + len(g.Outs)
}

// stages are what a thread of g computes one after the other: the sums of its outputs up to each line of the window.
func stages(g *kernel.Form) (all [][]*kernel.Expr) {
	for _, o := range g.Outs {
		for k, x := range g.Partial(o.X) {
			if k == len(all) {
				all = append(all, nil)
			}
			all[k] = append(all[k], x)
		}
	}
	return all
}

// liveLoads is how many elements that g reads are needed by a stage and by one before it, or by it alone, at most.
func liveLoads(g *kernel.Form) (most int) {
	last := map[*kernel.Expr]int{}
	first := map[*kernel.Expr]int{}
	done := map[*kernel.Expr]bool{}
	all := append(stages(g), nil)
	for _, o := range g.Outs {
		all[len(all)-1] = append(all[len(all)-1], o.X)
	}
	for k, xs := range all {
		var visit func(x *kernel.Expr)
		seen := map[*kernel.Expr]bool{}
		visit = func(x *kernel.Expr) {
			if done[x] || seen[x] {
				return
			}
			seen[x] = true
			if x.Op == kernel.Load {
				if _, ok := first[x]; !ok {
					first[x] = k
				}
				last[x] = k
			}
			for _, a := range x.Args {
				visit(a)
			}
		}
		for _, x := range xs {
			visit(x)
		}
		for _, x := range xs {
			done[x] = true
		}
	}
	for k := range all {
		n := 0
		for x, from := range first {
			if from <= k && last[x] >= k {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
