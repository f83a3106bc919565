package artifact

import (
	"slices"
)

// Distribution is that several devices run a program together, each on its pieces of the
// arguments.
type Distribution struct {
	Mesh string // its name
	Axes []MeshAxis
	// Pipeline is the axis along which the stages of a program in stages lie; "": it has none.
	Pipeline string `json:",omitempty"`
	// Inputs and Outputs are, for each input before the Positions and for each output, the
	// whole that its buffer has a piece of; nil: the same on all devices.
	Inputs, Outputs []*Whole
	// Positions are the last inputs, which callers do not give: where the device stands.
	Positions []Position `json:",omitempty"`
}

// MeshAxis is an axis of a mesh. Devices are numbered row-major.
type MeshAxis struct {
	Name string
	Size int
}

// Whole is a tensor of which each device has a piece.
type Whole struct {
	Shape []int64
	Dims  [][]string // for each dimension the axes that it is divided over, as in the dialect
	// Partial are the axes along which devices have parts, to be combined by Reduction.
	Partial   []string `json:",omitempty"`
	Reduction string   `json:",omitempty"`
}

// Position is an i64: the place of the device along axes, the last one fastest.
type Position struct{ Axes []Span }

// Span is devices with equal distances between their numbers.
type Span struct{ Size, Stride int }

// Devices is how many devices run the program together.
func (p *Program) Devices() int {
	if p.Divided == nil {
		return 1
	}
	n := 1
	for _, a := range p.Divided.Axes {
		n *= a.Size
	}
	return n
}

// Given is how many of the inputs callers give; the others are positions.
func (p *Program) Given() int {
	if p.Divided == nil {
		return len(p.Inputs)
	}
	return len(p.Inputs) - len(p.Divided.Positions)
}

// Of is the position of a device.
func (p *Position) Of(rank int) int64 {
	at := 0
	for _, a := range p.Axes {
		at = at*a.Size + rank/a.Stride%a.Size
	}
	return int64(at)
}

// Collective is a step that the devices of a group run together: those that differ in their
// position along Axes alone, ascending. Parts are equal and contiguous. Floating-point types
// below f32 are reduced in f32.
type Collective struct {
	Op        CollectiveOp
	Reduction string `json:",omitempty"` // "add", "mul", "max", "min", "and", "or"
	From, To  int    // buffers; of an all-reduce they may be one, of a send or a receive they are
	// More are further values, each the buffers From and To, that are exchanged as one with the first: of an all-reduce, a
	// reduce-scatter or an all-gather.
	More []Move `json:",omitempty"`
	Axes []Span // the outermost first
	// Pairs are, of a permute, the places in the group that give and get; a device that gets
	// nothing gets zeros. Of a send and of a receive there is one pair.
	Pairs [][2]int `json:",omitempty"`
	Tag   int      `json:",omitempty"` // by which a receive finds what was sent
}

// CollectiveOp is what a collective does.
type CollectiveOp string

// The collectives.
const (
	AllReduce     CollectiveOp = "all_reduce"
	ReduceScatter CollectiveOp = "reduce_scatter"
	AllGather     CollectiveOp = "all_gather"
	AllToAll      CollectiveOp = "all_to_all"
	Permute       CollectiveOp = "collective_permute"
	Send          CollectiveOp = "send" // hands the buffer on and waits for no one
	Recv          CollectiveOp = "recv" // waits for what was sent
)

// Point reports whether one device gives to another, each by a step of its own.
func (op CollectiveOp) Point() bool { return op == Send || op == Recv }

// Values are the buffers of all that is exchanged.
func (c *Collective) Values() []Move {
	return append([]Move{{From: c.From, To: c.To}}, c.More...)
}

// exchangesSeveral reports whether a collective of p, or of its stages and variants, has more than one value.
func (p *Program) exchangesSeveral() bool {
	has := func(q *Program) bool {
		return slices.ContainsFunc(q.Steps, func(s Step) bool { return s.Collective.More != nil })
	}
	return has(p) || slices.ContainsFunc(p.Parts(), has)
}

func (c *Collective) empty() bool {
	return c.Op == "" && c.Reduction == "" && c.From == 0 && c.To == 0 && c.More == nil && len(c.Axes) == 0 && len(c.Pairs) == 0 && c.Tag == 0
}

// Len is the number of devices of a group.
func (c *Collective) Len() int {
	n := 1
	for _, a := range c.Axes {
		n *= a.Size
	}
	return n
}

// Group is the devices that run the collective together with one of them, ascending.
func (c *Collective) Group(rank int) []int {
	first := rank
	for _, a := range c.Axes {
		first -= rank / a.Stride % a.Size * a.Stride
	}
	group := []int{first}
	for _, a := range c.Axes {
		next := make([]int, 0, len(group)*a.Size)
		for _, d := range group {
			for k := range a.Size {
				next = append(next, d+k*a.Stride)
			}
		}
		group = next
	}
	return group
}

// Peers are, of a permute, a send or a receive, the devices that this one gives to and gets from; -1: none.
func (c *Collective) Peers(rank int) (to, from int) {
	group := c.Group(rank)
	own := slices.Index(group, rank)
	to, from = -1, -1
	for _, p := range c.Pairs {
		if p[0] == own {
			to = group[p[1]]
		}
		if p[1] == own {
			from = group[p[0]]
		}
	}
	return to, from
}

// Sent is the bytes that leave a device, of the devices that send most, where a ring or
// direct exchange moves as little as can be.
func (p *Program) Sent(c *Collective) int64 {
	n, bytes := int64(c.Len()), int64(0)
	for _, v := range c.Values() {
		bytes += p.Buffers[v.From].Size()
	}
	switch c.Op {
	case AllReduce:
		return 2 * (bytes / n * (n - 1))
	case AllGather:
		return bytes * (n - 1)
	case Recv: // counts where it is sent
		return 0
	case Send:
		return bytes
	case Permute:
		if !slices.ContainsFunc(c.Pairs, func(p [2]int) bool { return p[0] != p[1] }) {
			return 0
		}
		return bytes
	}
	return bytes / n * (n - 1)
}

// The limits of programs for several devices.
const (
	maxDevices  = 1 << 16
	maxMeshAxes = 64
)

// divided checks how the devices of a program are arranged.
func (c *checker) divided() {
	p := c.p
	d := p.Divided
	if d == nil {
		return
	}
	devices := 1
	for _, a := range d.Axes {
		if a.Size < 1 || a.Size > maxDevices || devices*a.Size > maxDevices || len(d.Axes) > maxMeshAxes {
			c.errorf("a mesh of %d axes, one of %d devices; %d devices are the most", len(d.Axes), a.Size, maxDevices)
			return
		}
		devices *= a.Size
	}
	if len(d.Positions) > len(p.Inputs) {
		c.errorf("%d inputs are positions, and there are %d", len(d.Positions), len(p.Inputs))
		return
	}
	given := len(p.Inputs) - len(d.Positions)
	if len(d.Inputs) != given || len(d.Outputs) != len(p.Outputs) {
		c.errorf("wholes of %d inputs and %d outputs, and there are %d and %d", len(d.Inputs), len(d.Outputs), given, len(p.Outputs))
		return
	}
	if (d.Pipeline != "") != (p.Stages != nil) {
		c.errorf("a pipeline along %q of %d stages", d.Pipeline, len(p.Stages))
		return
	}
	for i := range d.Positions {
		b := &p.Buffers[p.Inputs[given+i]]
		if n, _ := b.Len(); b.Elem != "i64" || n != 1 {
			c.errorf("input %s is a position, and no i64", b.Name)
		}
		if !c.spans(d.Positions[i].Axes, devices, false) {
			c.errorf("input %s is a position along axes that the mesh does not have", b.Name)
		}
	}
	for i, w := range d.Inputs {
		c.whole("input", i, w, &p.Buffers[p.Inputs[i]])
	}
	for i, w := range d.Outputs {
		view := p.ResultView(i)
		b := p.Buffers[p.Outputs[i]]
		b.Shape = view.Shape
		c.whole("output", i, w, &b)
	}
	for _, in := range p.State {
		if in >= given {
			c.errorf("an output is the state of a position")
		}
	}
}

// whole checks the shape of a whole; what its axes divide is compared with the mesh where it
// is cut.
func (c *checker) whole(what string, i int, w *Whole, b *Buffer) {
	if w == nil {
		return
	}
	whole := Buffer{Shape: w.Shape}
	if _, ok := whole.Len(); !ok || len(w.Shape) != len(b.Shape) || len(w.Dims) != len(w.Shape) {
		c.errorf("%s %d: %v is not the whole of %v", what, i, w.Shape, b.Shape)
	}
	if len(w.Partial) > 0 && !reductions[w.Reduction] {
		c.errorf("%s %d: no reduction is %q", what, i, w.Reduction)
	}
}

var reductions = map[string]bool{"add": true, "mul": true, "max": true, "min": true, "and": true, "or": true}

// spans reports whether the axes are parts of the numbers of so many devices, each apart from
// the others, and, where that is asked for, the outermost first.
func (c *checker) spans(axes []Span, devices int, sorted bool) bool {
	if len(axes) > maxMeshAxes {
		return false
	}
	for _, a := range axes {
		if a.Size < 1 || a.Stride < 1 || a.Size > devices || a.Stride > devices {
			return false
		}
	}
	list := slices.Clone(axes)
	slices.SortStableFunc(list, func(a, b Span) int {
		if a.Stride != b.Stride {
			return b.Stride - a.Stride
		}
		return b.Size - a.Size // one of a single device stands behind
	})
	if sorted && !slices.Equal(list, axes) {
		return false
	}
	outer := devices
	for _, a := range list {
		if outer%(a.Stride*a.Size) != 0 {
			return false
		}
		outer = a.Stride
	}
	return true
}

// collective checks the fields of a collective.
func (c *checker) collective(bad func(string, ...any), s *Step) {
	k := &s.Collective
	if c.p.Divided == nil {
		bad("a collective of a program for one device")
		return
	}
	if k.More != nil && k.Op != AllReduce && k.Op != ReduceScatter && k.Op != AllGather {
		bad("%s of %d values", k.Op, len(k.More)+1)
		return
	}
	values := k.Values()
	for _, v := range values {
		one := *k
		one.From, one.To = v.From, v.To
		c.exchanged(bad, &one)
	}
	if k.More != nil {
		c.apart(bad, values)
	}
}

// apart checks that what a collective writes is none of its other buffers, and that all are of one type.
func (c *checker) apart(bad func(string, ...any), values []Move) {
	uses := map[int]int{}
	for _, v := range values {
		if !c.has(bad, v.From) || !c.has(bad, v.To) {
			return
		}
		if uses[v.To]++; v.From != v.To {
			uses[v.From]++
		}
	}
	elem := c.p.Buffers[values[0].From].Elem
	for _, v := range values {
		if from, to := &c.p.Buffers[v.From], &c.p.Buffers[v.To]; uses[v.To] > 1 {
			bad("writes %s, and exchanges it with another value", to.Name)
		} else if from.Elem != elem {
			bad("exchanges %s and %s as one", elem, from.Elem)
		}
	}
}

// exchanged checks one value of a collective.
func (c *checker) exchanged(bad func(string, ...any), k *Collective) {
	p := c.p
	if !c.has(bad, k.From) || !c.has(bad, k.To) {
		return
	}
	if !c.spans(k.Axes, p.Devices(), true) {
		bad("axes that the mesh does not have")
		return
	}
	from, to, n := &p.Buffers[k.From], &p.Buffers[k.To], int64(k.Len())
	in, out := from.Size(), to.Size()
	reduces, fits := false, false
	switch k.Op {
	case AllReduce:
		reduces, fits = true, in == out
	case ReduceScatter:
		reduces, fits = true, in%n == 0 && in/n == out
	case AllGather:
		fits = out%n == 0 && out/n == in
	case AllToAll:
		fits = in == out && in%n == 0
	case Permute:
		fits = in == out
		c.pairs(bad, k)
	case Send, Recv:
		fits = k.From == k.To
		if c.pairs(bad, k); len(k.Pairs) != 1 || k.Pairs[0][0] == k.Pairs[0][1] || k.Tag < 0 {
			bad("%s between %v with the tag %d", k.Op, k.Pairs, k.Tag)
		}
	default:
		bad("no collective is %q", k.Op)
		return
	}
	elem := elemBytes[from.Elem]
	switch {
	case from.Elem != to.Elem || packed[from.Elem] || elem == 0 || !fits || min(in, out)%elem != 0 || in/n%elem != 0 && k.Op == AllToAll:
		bad("%s of the %d bytes of %s on %d devices does not fill the %d of %s", k.Op, in, from.Name, n, out, to.Name)
	case to.Kind == Constant && k.Op != Send:
		bad("writes the constant %s", to.Name)
	case k.From == k.To && k.Op != AllReduce && !k.Op.Point():
		bad("has one buffer, and needs two")
	case reduces != (k.Reduction != "") || reduces && !reductions[k.Reduction]:
		bad("no reduction of %s is %q", k.Op, k.Reduction)
	case reduces && (k.Reduction == "and" || k.Reduction == "or") && isFloat(from.Elem):
		bad("%s is a reduction of integers", k.Reduction)
	}
}

func isFloat(elem string) bool { return elem[0] == 'f' || elem[0] == 'b' }

// pairs checks that each device gives to one and gets from one at most.
func (c *checker) pairs(bad func(string, ...any), k *Collective) {
	n := k.Len()
	gives, gets := map[int]bool{}, map[int]bool{}
	for _, q := range k.Pairs {
		if q[0] < 0 || q[1] < 0 || q[0] >= n || q[1] >= n || gives[q[0]] || gets[q[1]] {
			bad("the pair %v of %d devices", q, n)
			return
		}
		gives[q[0]], gets[q[1]] = true, true
	}
}
