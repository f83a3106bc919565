package sparse

import (
	"fmt"
	"slices"
	"strings"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Check returns what is wrong with the components of t, nil where they store a tensor of
// its type.
func (t *Tensor) Check() error {
	if err := t.check(); err != nil {
		return err
	}
	return nil
}

// CheckPattern is Check of what says which elements are stored: all components but the values.
func (t *Tensor) CheckPattern() error {
	if _, err := t.pattern(); err != nil {
		return err
	}
	return nil
}

// Complete draws which elements t stores, by the pattern p from s, where none of the components that
// say so is there, and otherwise checks them. Those that are missing are nil.
func (t *Tensor) Complete(p op.Pattern, s tensor.Stream) error {
	cs := t.Type.Components()
	var given, missing []string
	for i, c := range cs[:len(cs)-1] {
		if t.Parts[i] != nil {
			given = append(given, c.Name)
		} else {
			missing = append(missing, c.Name)
		}
	}
	switch {
	case missing == nil:
		return t.CheckPattern()
	case given != nil:
		return problem("give all of them, or one file of the whole matrix", "%s given, and %s not: together they say which elements are stored", strings.Join(given, ", "), strings.Join(missing, ", "))
	}
	x, err := Draw(t.Type, p, s)
	if err != nil {
		return err
	}
	copy(t.Parts, x.Parts[:len(cs)-1])
	return nil
}

// Pad makes the values behind those that are stored 0; the other components must be right.
func (t *Tensor) Pad() {
	for k := int(t.Stored()); k < t.Values().Len(); k++ {
		t.Values().SetFloat(k, 0)
	}
}

func (t *Tensor) check() *Error {
	stored, err := t.pattern()
	if err != nil {
		return err
	}
	cs := t.Type.Components()
	if err := t.typed(len(cs)-1, cs[len(cs)-1]); err != nil {
		return err
	}
	for i := int(stored); i < t.Values().Len(); i++ {
		if t.Values().Float(i) != 0 {
			return at("values", i, "write 0 behind the last position", "is %v, but %d values are stored: what is behind is padding, and 0", t.Values().Float(i), stored)
		}
	}
	return nil
}

// typed is an error where component i is none of its type.
func (t *Tensor) typed(i int, c types.Component) *Error {
	n, _ := c.Tensor.Shape[0].Int()
	if x := t.Parts[i]; x == nil || x.Elem != c.Tensor.Elem || len(x.Shape) != 1 || int64(x.Shape[0]) != n {
		return problem("", "%s is no %s", c.Name, c.Tensor)
	}
	return nil
}

// pattern checks all components but the values, and returns how many values are stored.
func (t *Tensor) pattern() (stored int64, err *Error) {
	l, err := layoutOf(t.Type)
	if err != nil {
		return 0, err
	}
	cs := t.Type.Components()
	if len(t.Parts) != len(cs) {
		return 0, problem("", "%s has %d components, not %d", t.Type, len(cs), len(t.Parts))
	}
	for i, c := range cs[:len(cs)-1] {
		if err := t.typed(i, c); err != nil {
			return 0, err
		}
	}
	k := checker{t, l, 1}
	for i := range l.levels {
		if err := k.level(i); err != nil {
			return 0, err
		}
	}
	return k.count, nil
}

// checker goes through the levels of t.
type checker struct {
	t *Tensor
	*layout
	count int64 // how many entries the level before has
}

// at is a problem at an entry of a component.
func at(part string, entry int, help, format string, args ...any) *Error {
	e := problem(help, format, args...)
	e.Part = fmt.Sprintf("%s[%d]", part, entry)
	return e
}

func (k *checker) level(i int) *Error {
	switch l := k.levels[i]; l.Kind {
	case types.DenseLevel:
		k.count *= k.size[i]
		return nil
	case types.SingletonLevel:
		return k.coordinates(i, k.count)
	case types.StructuredLevel:
		return k.structured(i)
	default:
		return k.compressed(i)
	}
}

// coordinates checks that those of level i are within its size, and 0 behind the first
// count.
func (k *checker) coordinates(i int, count int64) *Error {
	n, name := k.part(i, types.Coordinates)
	for j, x := range k.t.Parts[n].Int {
		switch {
		case int64(j) >= count && x != 0:
			return at(name, j, "write 0 behind the last position", "is %d, but level %d ends at %d: what is behind is padding, and 0", x, i, count)
		case int64(j) < count && (x < 0 || x >= k.size[i]):
			return at(name, j, "coordinates count from 0", "is %d, outside of level %d (%s), whose size is %d", x, i, k.levels[i], k.size[i])
		}
	}
	return nil
}

func (k *checker) compressed(i int) *Error {
	l := k.levels[i]
	n, name := k.part(i, types.Positions)
	pos := k.t.Parts[n].Int
	crd, coords := k.part(i, types.Coordinates)
	room := int64(k.t.Parts[crd].Len())
	for j, p := range pos {
		switch {
		case j == 0 && p != 0:
			return at(name, j, "begin with 0, and subtract the first position from all", "is %d: positions of level %d (%s) begin with 0", p, i, l)
		case j > 0 && p < pos[j-1]:
			return at(name, j, "give running sums of how many entries each parent has", "is %d, behind %d: positions of level %d (%s) never fall", p, pos[j-1], i, l)
		case p > room:
			return at(name, j, fmt.Sprintf("give %d coordinates and values, or bind nnz to %d or more", p, p), "is %d, but level %d (%s) has room for %d entries", p, i, l, room)
		}
	}
	k.count = pos[len(pos)-1]
	if err := k.coordinates(i, k.count); err != nil {
		return err
	}
	last := i
	if l.NonUnique {
		last = k.chain(i)
	}
	chain := make([][]int64, 0, last-i+1)
	for j := i; j <= last; j++ {
		n, _ := k.part(j, types.Coordinates)
		chain = append(chain, k.t.Parts[n].Int)
	}
	step := 1
	if l.Kind == types.LooseCompressedLevel {
		step = 2
	}
	for p := 0; p+1 < len(pos); p += step {
		if err := k.segment(i, coords, chain, int(pos[p]), int(pos[p+1])); err != nil {
			return err
		}
	}
	return nil
}

// segment checks that the entries of one parent rise, those that are in order, and are
// all different. chain are the coordinates by which entries of level i differ.
func (k *checker) segment(i int, name string, chain [][]int64, from, to int) *Error {
	tuple := func(j int) string {
		if len(chain) == 1 {
			return fmt.Sprint(chain[0][j])
		}
		at := make([]int64, len(chain))
		for d := range at {
			at[d] = chain[d][j]
		}
		return Place(at)
	}
	ordered := !slices.ContainsFunc(k.levels[i:i+len(chain)], func(l types.Level) bool { return l.NonOrdered })
	order := make([]int, 0)
	if !ordered {
		for j := from; j < to; j++ {
			order = append(order, j)
		}
		slices.SortStableFunc(order, func(a, b int) int { return compare(chain, a, b) })
	}
	for j := from + 1; j < to; j++ {
		a, b := j-1, j
		if !ordered {
			a, b = order[j-1-from], order[j-from]
		}
		switch c := compare(chain, a, b); {
		case c == 0:
			return at(name, b, "add them up, and store one", "is %s, as is entry %d: level %d (%s) has it twice in one segment", tuple(b), a, i, k.levels[i])
		case c > 0:
			return at(name, b, "sort the entries of each segment, and values with them", "is %s, behind %s: coordinates of level %d (%s) rise in each segment", tuple(b), tuple(a), i, k.levels[i])
		}
	}
	return nil
}

// structured checks that the entries of each group are in it, and rise.
func (k *checker) structured(i int) *Error {
	l := k.levels[i]
	n, name := k.part(i, types.Coordinates)
	crd := k.t.Parts[n].Int
	groups := k.size[i] / l.M
	k.count *= groups * l.N
	for j := range int(k.count) {
		group := int64(j) / l.N % groups
		switch {
		case crd[j] < group*l.M || crd[j] >= (group+1)*l.M:
			return at(name, j, fmt.Sprintf("give %d coordinates for each %d neighbours", l.N, l.M), "is %d, outside of %d … %d, the neighbours of which it is one of %d (level %d)", crd[j], group*l.M, (group+1)*l.M-1, l.N, i)
		case int64(j)%l.N > 0 && crd[j] <= crd[j-1]:
			return at(name, j, "sort them, and store each once", "is %d, behind %d: coordinates of level %d rise in each group of %d", crd[j], crd[j-1], i, l.N)
		}
	}
	return k.coordinates(i, k.count)
}

// Unpack are the elements that t stores, those that are 0 among them, in the order of t;
// an error says what is wrong with its components.
func (t *Tensor) Unpack() (*COO, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	l, _ := layoutOf(t.Type)
	w := &walk{node: []int64{0}}
	for i := range l.levels {
		w.expand(t.below(l, i))
	}
	shape, _ := Numbers(t.Type.Shape)
	c := &COO{Shape: make([]int, len(shape)), At: make([][]int64, len(shape)), Values: tensor.New(t.Type.Elem, len(w.node))}
	for d, n := range shape {
		c.Shape[d] = int(n)
	}
	for i, level := range l.levels {
		switch at := c.At[level.Dim]; {
		case at == nil:
			c.At[level.Dim] = w.at[i]
			if level.Div > 0 {
				for k := range w.at[i] {
					w.at[i][k] *= level.Div
				}
			}
		default: // blocks, and then what is in them
			for k, x := range w.at[i] {
				at[k] += x
			}
		}
	}
	for k, n := range w.node {
		move(c.Values, k, t.Values(), int(n))
	}
	return c, nil
}

// walk goes down the levels of a tensor.
type walk struct {
	node []int64   // by entry, its number at the level
	at   [][]int64 // by level before, the coordinate of each entry
}

// below are the entries of level i: from one number to another of each entry of the level before, and
// their coordinates.
func (t *Tensor) below(l *layout, i int) (children func(int64) (from, to int64), coordinate func(int64) int64) {
	level := l.levels[i]
	coordinate = func(n int64) int64 { return n % l.size[i] }
	if n, _ := l.part(i, types.Coordinates); n >= 0 {
		crd := t.Parts[n].Int
		coordinate = func(n int64) int64 { return crd[n] }
	}
	each := int64(1)
	switch level.Kind {
	case types.DenseLevel:
		each = l.size[i]
	case types.StructuredLevel:
		each = l.size[i] / level.M * level.N
	case types.CompressedLevel, types.LooseCompressedLevel:
		p, _ := l.part(i, types.Positions)
		pos, step := t.Parts[p].Int, int64(1)
		if level.Kind == types.LooseCompressedLevel {
			step = 2
		}
		return func(n int64) (from, to int64) { return pos[n*step], pos[n*step+1] }, coordinate
	}
	return func(n int64) (from, to int64) { return n * each, (n + 1) * each }, coordinate
}

// First are the first elements that t stores, at most n; its components must be right (Check).
func (t *Tensor) First(n int) (at [][]int64, values *tensor.Tensor) {
	l, err := layoutOf(t.Type)
	if err != nil {
		return nil, tensor.New(t.Type.Elem, 0)
	}
	var kept []int
	here := make([]int64, len(t.Type.Shape))
	var down func(i int, node int64)
	down = func(i int, node int64) {
		if i == len(l.levels) {
			at, kept = append(at, slices.Clone(here)), append(kept, int(node))
			return
		}
		children, coordinate := t.below(l, i)
		level := l.levels[i]
		before := here[level.Dim]
		for from, to := children(node); from < to && len(kept) < n; from++ {
			here[level.Dim] = before + coordinate(from)*max(level.Div, 1)
			down(i+1, from)
		}
		here[level.Dim] = before
	}
	down(0, 0)
	return at, Take(t.Values(), kept)
}

// expand replaces each entry by those of the next level, from one number to another, with
// their coordinates.
func (w *walk) expand(children func(int64) (from, to int64), coordinate func(int64) int64) {
	total := 0
	for _, n := range w.node {
		from, to := children(n)
		total += int(to - from)
	}
	node, crd := make([]int64, 0, total), make([]int64, 0, total)
	at := make([][]int64, len(w.at))
	for i := range at {
		at[i] = make([]int64, 0, total)
	}
	for k, n := range w.node {
		from, to := children(n)
		for c := from; c < to; c++ {
			node, crd = append(node, c), append(crd, coordinate(c))
			for i := range at {
				at[i] = append(at[i], w.at[i][k])
			}
		}
	}
	w.node, w.at = node, append(at, crd)
}
