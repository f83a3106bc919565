package plan

import (
	"math"
	"slices"

	"dmir/analysis/network"
	"dmir/dialect/microbatch"
)

// maxAxes is how many axes divide values; the pipeline has one of its own.
const maxAxes = 3

// A layout is how a value lies on the axes of a mesh: for each axis the dimension that is divided over
// it, or whole, or partial, a sum that is not yet reduced.
type layout [maxAxes]int8

const (
	whole   int8 = -1
	partial int8 = -2
)

var allWhole = layout{whole, whole, whole}

// A grid is a mesh for which a step is planned, and how long communication takes on it.
type grid struct {
	axes  []Axis // that divide values
	pipe  int
	micro int64 // micro-batches of a step
	fix   Setting
	roles bool // see setting
	named bool // axes are those of the text
	net   *network.Mesh
	all   []string // names of axes
	times map[transfer]float64
	moves map[int]*moves // by the class of a value

	topHeavy *bool // see graph.topHeavy; nil: not known yet
}

// single reports whether a step is one pass over the batch: neither in micro-batches nor in stages.
func (g *grid) single() bool { return g.micro == 1 && g.pipe == 1 }

// A transfer is a collective among the devices along axes, a set of bits.
type transfer struct {
	kind  network.Kind
	axes  uint8
	bytes int64
}

// moves are the conversions between the layouts of values of one class, as far as they were asked for.
type moves struct {
	base  int // of the numbers of layouts: places on one axis
	count int
	known []bool
	made  []conversion
}

func newMoves(rank, axes int) *moves {
	m := &moves{base: rank + 2, count: 1}
	for range axes {
		m.count *= m.base
	}
	m.known, m.made = make([]bool, m.count*m.count), make([]conversion, m.count*m.count)
	return m
}

// number is l as a number below count.
func (m *moves) number(l layout, axes int) int {
	n := 0
	for _, place := range l[:axes] {
		n = n*m.base + int(place) + 2
	}
	return n
}

// A conversion is what a move takes.
type conversion struct {
	time float64          // s
	sent [maxAxes]float64 // bytes that a device sends along each axis

	steps int // collectives; of the first one:
	kind  network.Kind
	axes  uint8
	bytes float64
}

// collective is how long one takes along axes.
func (g *grid) collective(kind network.Kind, axes uint8, bytes float64) float64 {
	if axes == 0 || bytes <= 0 {
		return 0
	}
	t := transfer{kind, axes, int64(math.Ceil(bytes))}
	if s, ok := g.times[t]; ok {
		return s
	}
	var names []string
	for a, name := range g.all {
		if axes&(1<<a) != 0 {
			names = append(names, name)
		}
	}
	e, err := g.net.Estimate(kind, t.bytes, names...)
	s := e.Time
	if err != nil {
		s = math.Inf(1)
	}
	g.times[t] = s
	return s
}

// along are the devices along a set of axes.
func (g *grid) along(axes uint8) float64 {
	n := 1
	for a := range g.axes {
		if axes&(1<<a) != 0 {
			n *= g.axes[a].Size
		}
	}
	return float64(n)
}

// parts is among how many devices l divides dimension d.
func (g *grid) parts(l layout, d int) int64 {
	parts := int64(1)
	for a := range g.axes {
		if l[a] == int8(d) {
			parts *= int64(g.axes[a].Size)
		}
	}
	return parts
}

// eachHas reports whether each device has one of the pieces of v in layout l.
func (g *grid) eachHas(v *value, l layout) bool {
	for d := range v.shape {
		if n := g.parts(l, d); d == 0 && n != v.pieces || d > 0 && n > 1 {
			return false
		}
	}
	return true
}

// rows are those of a micro-batch, of so many samples.
func (g *grid) rows(samples int64) int64 { return microbatch.Each(samples, g.micro) }

// even is rows where all micro-batches have as many, else 1, which devices cannot have equal pieces of.
func (g *grid) even(samples int64) int64 {
	if samples%g.micro != 0 {
		return 1
	}
	return samples / g.micro
}

// piece is the bytes that a device has of v in layout l, of one micro-batch.
func (g *grid) piece(v *value, l layout) float64 {
	if len(v.shape) == 0 {
		return v.bytes
	}
	n := v.elem
	for d, size := range v.shape {
		parts := g.parts(l, d)
		if d == v.batch {
			size = g.rows(size)
		}
		n *= float64((size + parts - 1) / parts)
	}
	return n
}

func (g *grid) movesOf(v *value) *moves {
	known := g.moves[v.class]
	if known == nil {
		known = newMoves(len(v.shape), len(g.axes))
		g.moves[v.class] = known
	}
	return known
}

// converting is how long it takes to bring v from each of some layouts to each of others.
func (g *grid) converting(v *value, from, to []layout) []float64 {
	known, axes := g.movesOf(v), len(g.axes)
	numbers := make([]int, len(to))
	for i, l := range to {
		numbers[i] = known.number(l, axes)
	}
	out := make([]float64, 0, len(from)*len(to))
	for _, f := range from {
		row := known.number(f, axes) * known.count
		for i, l := range to {
			if key := row + numbers[i]; f == l || known.known[key] {
				out = append(out, known.made[key].time)
			} else {
				out = append(out, g.convert(v, f, l).time)
			}
		}
	}
	return out
}

// convert is what it takes to bring v from one layout to another: slices first, which make the value
// smaller, then reduce-scatter and all-to-all, then all-reduce, and all-gather last, which makes it larger.
func (g *grid) convert(v *value, from, to layout) conversion {
	if from == to {
		return conversion{}
	}
	known := g.movesOf(v)
	key := known.number(from, len(g.axes))*known.count + known.number(to, len(g.axes))
	if known.known[key] {
		return known.made[key]
	}
	if mid := g.uneven(v, from, to); mid != from && mid != to {
		c := g.convert(v, from, mid)
		c.then(g.convert(v, mid, to))
		known.known[key], known.made[key] = true, c
		return c
	}
	var c conversion
	at := from
	for a := range g.axes {
		if at[a] == whole && to[a] >= 0 {
			at[a] = to[a]
		}
	}
	add := func(kind network.Kind, axes uint8, bytes float64) {
		c.time += g.collective(kind, axes, bytes)
		if c.steps++; c.steps == 1 {
			c.kind, c.axes, c.bytes = kind, axes, bytes
		}
		p := g.along(axes)
		sent := bytes * (p - 1) / p
		if kind == network.AllReduce {
			sent *= 2
		}
		for a := range g.axes {
			if axes&(1<<a) != 0 { // the first of several axes stands for all
				c.sent[a] += sent
				break
			}
		}
	}
	for a := range g.axes {
		if at[a] == partial && to[a] >= 0 {
			add(network.ReduceScatter, 1<<a, g.piece(v, at))
			at[a] = to[a]
		}
	}
	for a := range g.axes {
		if at[a] >= 0 && to[a] >= 0 && at[a] != to[a] {
			add(network.AllToAll, 1<<a, g.piece(v, at))
			at[a] = to[a]
		}
	}
	var reduced uint8
	for a := range g.axes {
		if at[a] == partial && to[a] == whole {
			reduced |= 1 << a
		}
	}
	if reduced != 0 {
		add(network.AllReduce, reduced, g.piece(v, at))
		for a := range g.axes {
			if reduced&(1<<a) != 0 {
				at[a] = whole
			}
		}
	}
	for a := len(g.axes) - 1; a >= 0; a-- {
		if at[a] >= 0 && to[a] < 0 {
			at[a] = whole
			add(network.AllGather, 1<<a, g.piece(v, at))
		}
	}
	known.known[key], known.made[key] = true, c
	return c
}

// uneven is from without what has to be gathered, or added up, before v is cut into the pieces of to: along a dimension whose
// elements are not the same number in each piece, those of one layout lie across the ends of those of another.
func (g *grid) uneven(v *value, from, to layout) layout {
	mid := from
	for d, size := range v.shape {
		have, want := g.parts(from, d), g.parts(to, d)
		if d == v.batch || want == 1 || have == want || size%max(have, want) == 0 {
			continue
		}
		for a := range g.axes {
			if from[a] == int8(d) || from[a] == partial && to[a] == int8(d) {
				mid[a] = whole
			}
		}
	}
	return mid
}

// then adds what another conversion takes.
func (c *conversion) then(d conversion) {
	c.time += d.time
	for a := range c.sent {
		c.sent[a] += d.sent[a]
	}
	if c.steps == 0 {
		c.kind, c.axes, c.bytes = d.kind, d.axes, d.bytes
	}
	c.steps += d.steps
}

// fits reports whether n elements can be divided over the axes that l gives dimension d, in pieces of equal
// size, or nearly so where there are many elements in each.
func (g *grid) fits(v *value, l layout) bool {
	for d, size := range v.shape {
		parts := g.parts(l, d)
		if d == v.batch {
			if g.rows(size)%parts != 0 || !microbatch.Fits(size, g.micro) {
				return false
			}
			continue
		}
		if !divides(size, parts) {
			return false
		}
	}
	return true
}

// divides reports whether parts devices can have size elements together: padding is at most
// a few per cent of a piece.
func divides(size, parts int64) bool {
	return parts == 1 || size%parts == 0 || size >= 32*parts
}

// layouts are the ways to divide v without partial sums, over dimensions that allowed lists; nil: all.
func (g *grid) layouts(v *value, allowed []int8) []layout {
	out := []layout{allWhole}
	for a := range g.axes {
		if g.axes[a].Size == 1 {
			continue
		}
		for _, l := range slices.Clone(out) {
			for d := range v.shape {
				if allowed != nil && !slices.Contains(allowed, int8(d)) {
					continue
				}
				next := l
				next[a] = int8(d)
				if g.fits(v, next) {
					out = append(out, next)
				}
			}
		}
	}
	return out
}
