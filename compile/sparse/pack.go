package sparse

import (
	"fmt"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// Pack stores c as t, a sparse type of its shape and element type. Where t says how many
// entries a level has room for, what is left is padding; where it does not, there is room
// for what is stored. It is an error if there is more than room, or an element is there twice.
func Pack(t *types.Tensor, c *COO) (*Tensor, error) {
	x, err := pack(t, c)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func pack(t *types.Tensor, c *COO) (*Tensor, *Error) {
	l, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	if err := c.inside(); err != nil {
		return nil, err
	}
	at := make([][]int64, len(l.levels))
	for i, level := range l.levels {
		if at[i] = c.At[level.Dim]; level.Div == 0 && level.Mod == 0 {
			continue
		}
		at[i] = make([]int64, c.Len())
		for k, x := range c.At[level.Dim] {
			at[i][k] = along(level, x)
		}
	}
	b := &builder{layout: l, at: at, order: ordered(at, l.size), count: 1, node: make([]int64, c.Len())}
	for k := 1; k < c.Len(); k++ {
		if i, j := b.element(k-1), b.element(k); compare(at, i, j) == 0 {
			return nil, c.twice(i, j)
		}
	}
	for i := range l.levels {
		if err := b.level(i); err != nil {
			if err.Element >= 0 {
				err.Msg = c.Place(err.Element) + " " + err.Msg
			}
			return nil, err
		}
	}
	x, err := b.components()
	if err != nil {
		return nil, err
	}
	values := x.Values()
	for k, n := range b.node {
		move(values, int(n), c.Values, b.element(k))
	}
	return x, nil
}

// builder stores elements level by level.
type builder struct {
	*layout
	at    [][]int64 // by level, the coordinate of each element
	order []int     // of the elements; nil: as they are
	node  []int64   // by element in order, its entry at the level before
	count int64     // how many entries that level has

	stored             []int64 // how many each compressed level has
	positions, indices [][]int64
}

func (b *builder) element(k int) int {
	if b.order == nil {
		return k
	}
	return b.order[k]
}

// level stores level i, of the elements that the levels before store.
func (b *builder) level(i int) *Error {
	l, x := b.levels[i], b.at[i]
	switch l.Kind {
	case types.DenseLevel:
		for k := range b.node {
			b.node[k] = b.node[k]*b.size[i] + x[b.element(k)]
		}
		if b.count *= b.size[i]; b.count > tensor.MaxElements {
			return problem("store it compressed", "level %d has %d entries, more than fit into memory", i, b.count)
		}
		b.positions, b.indices = append(b.positions, nil), append(b.indices, nil)
	case types.SingletonLevel:
		crd := make([]int64, b.count)
		for k, n := range b.node {
			if e := b.element(k); k > 0 && n == b.node[k-1] && x[e] != crd[n] {
				err := problem("store it with a level before that is compressed(nonunique)", "is the second element where level %d, singleton, stores one", i)
				err.Element = e
				return err
			}
			crd[n] = x[b.element(k)]
		}
		b.positions, b.indices = append(b.positions, nil), append(b.indices, crd)
	case types.CompressedLevel, types.LooseCompressedLevel:
		b.compress(i)
	case types.StructuredLevel:
		return b.structure(i)
	}
	return nil
}

// compress stores the coordinates of a compressed level.
func (b *builder) compress(i int) {
	last := i
	if b.levels[i].NonUnique { // an entry for each element of the levels that follow
		last = b.chain(i)
	}
	pos := make([]int64, b.count+1)
	var crd []int64
	var before int64 // the entry of the element before at the level before
	for k, n := range b.node {
		e := b.element(k)
		if k == 0 || n != before || compare(b.at[i:last+1], b.element(k-1), e) != 0 {
			crd = append(crd, b.at[i][e])
			pos[n+1]++
		}
		before, b.node[k] = n, int64(len(crd)-1)
	}
	for n := range b.count {
		pos[n+1] += pos[n]
	}
	if b.levels[i].Kind == types.LooseCompressedLevel {
		pos = loose(pos)
	}
	b.count = int64(len(crd))
	b.stored = append(b.stored, b.count)
	b.positions, b.indices = append(b.positions, pos), append(b.indices, crd)
}

// loose are positions with the end of each parent behind its start.
func loose(pos []int64) []int64 {
	out := make([]int64, 0, 2*len(pos))
	for n := range len(pos) - 1 {
		out = append(out, pos[n], pos[n+1])
	}
	return out
}

// structure stores a level of which each M neighbours have N entries. Those that no element
// takes have the first free coordinates, and the value 0.
func (b *builder) structure(i int) *Error {
	l, x := b.levels[i], b.at[i]
	groups := b.size[i] / l.M
	crd := make([]int64, 0, b.count*groups*l.N)
	k := 0
	for n := range b.count {
		for g := range groups {
			first := k // of the elements in the group
			var taken []int64
			for ; k < len(b.node) && b.node[k] == n && x[b.element(k)]/l.M == g; k++ {
				c := x[b.element(k)]
				if len(taken) > 0 && taken[len(taken)-1] == c {
					continue
				}
				if taken = append(taken, c); int64(len(taken)) > l.N {
					err := problem(fmt.Sprintf("keep the %d largest of each %d", l.N, l.M), "is one more than the %d of %d neighbours that level %d stores", l.N, l.M, i)
					err.Element = b.element(k)
					return err
				}
			}
			at := int64(len(crd))
			crd = fill(crd, taken, g*l.M, l.N)
			for j := first; j < k; j++ {
				slot, _ := slices.BinarySearch(crd[at:], x[b.element(j)])
				b.node[j] = at + int64(slot)
			}
		}
	}
	b.count = int64(len(crd))
	b.positions, b.indices = append(b.positions, nil), append(b.indices, crd)
	return nil
}

// fill appends n coordinates from first on, rising: those taken, and the first of the others.
func fill(crd, taken []int64, first, n int64) []int64 {
	free := n - int64(len(taken))
	for c := first; free > 0 || len(taken) > 0; c++ {
		switch {
		case len(taken) > 0 && taken[0] == c:
			crd, taken = append(crd, c), taken[1:]
		case free > 0:
			crd, free = append(crd, c), free-1
		}
	}
	return crd
}

// components are those of the levels, with padding, and values that are 0.
func (b *builder) components() (*Tensor, *Error) {
	t := b.t
	room, stored := make([]int64, len(t.Format.Stored)), 0
	for i := range room {
		room[i] = b.stored[i]
		if n, ok := t.Format.Stored[i].Int(); ok {
			room[i] = n
		}
	}
	for i, l := range b.levels {
		if !l.HasPositions() {
			continue
		}
		if has, fits := b.stored[stored], room[stored]; has > fits {
			err := problem(fmt.Sprintf("bind nnz to %d or more", has), "level %d stores %d entries, and %s has room for %d", i, has, t, fits)
			err.Capacity = true
			return nil, err
		}
		stored++
	}
	shape, _ := Numbers(t.Shape)
	sizes := make([]int, len(shape))
	for i, n := range shape {
		sizes[i] = int(n)
	}
	x := &Tensor{Type: Shaped(t, sizes, room)}
	for _, c := range x.Type.Components() {
		n, _ := c.Tensor.Shape[0].Int()
		if _, ok := tensor.Count([]int{int(n)}); !ok {
			return nil, problem("store it with fewer dense levels", "%s of %s does not fit into memory", c.Name, t)
		}
		switch {
		case c.Kind == types.Values:
			x.Parts = append(x.Parts, tensor.New(c.Tensor.Elem, int(n)))
			continue
		case c.Kind == types.Positions:
			pos := b.positions[c.Level]
			end := pos[len(pos)-1]
			for int64(len(pos)) < n {
				pos = append(pos, end)
			}
			if end > largest(c.Tensor.Elem) {
				return nil, problem("store positions with more bits: posWidth = 64", "positions of level %d go to %d, which %s does not hold", c.Level, end, c.Tensor.Elem)
			}
			x.Parts = append(x.Parts, vector(c.Tensor.Elem, pos))
		default:
			crd := b.indices[c.Level]
			if b.size[c.Level]-1 > largest(c.Tensor.Elem) {
				return nil, problem("store coordinates with more bits: crdWidth = 64", "coordinates of level %d go to %d, which %s does not hold", c.Level, b.size[c.Level]-1, c.Tensor.Elem)
			}
			x.Parts = append(x.Parts, vector(c.Tensor.Elem, append(crd, make([]int64, n-int64(len(crd)))...)))
		}
	}
	return x, nil
}

// Fit is t, of which only the padding changes, as the type to.
func (t *Tensor) Fit(to *types.Tensor) (*Tensor, error) {
	c, err := t.Unpack()
	if err != nil {
		return nil, err
	}
	return Pack(to, c)
}
