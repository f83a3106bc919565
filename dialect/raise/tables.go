package raise

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// tableKey is a table and how its rows are paired.
type tableKey struct {
	table *ir.Value
	pairs string
}

// tables are what is known of the tables of a function, which many rows share.
type tables struct {
	values map[tableKey]*ir.Value      // their halves, in the program
	dense  map[literalKey]*types.Dense // halves of literals
	sums   map[literalPlace]string     // checksums of the elements of literals at places
}

type literalKey struct {
	d     *types.Dense
	pairs string
}

type literalPlace struct {
	d     *types.Dense
	place string
}

func newTables() *tables {
	return &tables{map[tableKey]*ir.Value{}, map[literalKey]*types.Dense{}, map[literalPlace]string{}}
}

// half is a table of one number for each pair of rows of type t: v itself where it is one, what it repeats, or every
// first number of a pair. Proof that the others are the same is the caller's. nil: v is no table of t.
func (k *tables) half(b *op.Builder, v *ir.Value, t *types.Tensor, pairs string) *ir.Value {
	n, _ := lastOf(t)
	m, known := lastOf(v.Tensor())
	switch {
	case v.Tensor() == nil || v.Tensor().Rank() > t.Rank():
		return nil
	case v.Tensor().Rank() == 0 || known && (m == n/2 || m == 1):
		return v
	case !known || m != n:
		return nil
	}
	return k.halved(b, v, pairs, 8)
}

// halved is the first numbers of the pairs of v's rows.
func (k *tables) halved(b *op.Builder, v *ir.Value, pairs string, depth int) *ir.Value {
	t := v.Tensor()
	n, _ := lastOf(t)
	shape := slices.Clone(t.Shape)
	shape[t.Rank()-1] = dim.Const(n / 2)
	if o := v.Op; o != nil && depth > 0 && op.Valid(o) && len(o.Results) == 1 && len(o.Regions) == 0 {
		switch {
		case o.Name == op.Constant:
			if d := k.literal(o, pairs); d != nil {
				return b.Value("constant", nil, []types.Named{{Name: "value", Value: d}}, d.Type)
			}
		case o.Name == "dm.concatenate" && pairs == "halves" && len(o.Operands) == 2 && o.In(0).Rank() == t.Rank():
			if m, _ := lastOf(o.In(0)); m == n/2 {
				return o.Operands[0]
			}
		case o.Name == "dm.reshape" && pairs == "interleaved":
			if r := o.Operands[0].Op; r != nil && r.Name == "dm.broadcast" && r.Out(0).Rank() == t.Rank()+1 && repeatsLast(r) {
				return b.Reshape(r.Operands[0], shape...)
			}
		}
		var x *types.Tensor
		if len(o.Operands) > 0 {
			x = o.In(0)
		}
		m, _ := lastOf(x)
		switch {
		case o.Name == "dm.reshape" && m == n:
			return b.Reshape(k.halved(b, o.Operands[0], pairs, depth-1), shape...)
		case op.Of(o).Is(op.Pointwise) && m == n && (len(o.Operands) == 1 || len(o.Operands) == 2 && o.In(1).Rank() == 0):
			return b.Value(o.Name[len(op.Prefix):], append([]*ir.Value{k.halved(b, o.Operands[0], pairs, depth-1)}, o.Operands[1:]...), o.Attrs, t.With(shape...))
		}
	}
	limit, stride := n/2, 1
	if pairs == "interleaved" {
		limit, stride = n, 2
	}
	return b.Value("slice", []*ir.Value{v}, []types.Named{
		{Name: "start_indices", Value: op.IntList(0)}, {Name: "limit_indices", Value: op.IntList(int(limit))},
		{Name: "strides", Value: op.IntList(stride)}, {Name: "dims", Value: op.IntList(t.Rank() - 1)},
	})
}

// repeatsLast reports whether o, a broadcast, repeats each element of its operand twice, along a new last dimension.
func repeatsLast(o *ir.Op) bool {
	dims, p := op.BroadcastDims(o)
	x, y := o.In(0), o.Out(0)
	if n, _ := lastOf(y); p != nil || n != 2 || x.Rank() == 0 {
		return false
	}
	for i, d := range dims {
		if d != i || !x.Shape[i].Equal(y.Shape[i]) && (i != y.Rank()-1 || !isOne(x, i)) {
			return false
		}
	}
	return x.Rank() == y.Rank()-1 || isOne(x, x.Rank()-1)
}

// literal is the first elements of the pairs of rows of the constant o; nil where its elements are not at hand.
func (k *tables) literal(o *ir.Op, pairs string) *types.Dense {
	d, ok := op.Attr(o, "value").(*types.Dense)
	if !ok || d.Elem.Packed() {
		return nil
	}
	key := literalKey{d, pairs}
	if half, known := k.dense[key]; known {
		return half
	}
	k.dense[key] = nil
	data, err := d.All()
	n, _ := lastOf(d.Type)
	size := int(d.Elem.Bytes())
	if err != nil || n < 2 || len(data)%(int(n)*size) != 0 {
		return nil
	}
	half := make([]byte, 0, len(data)/2)
	for row := range slices.Chunk(data, int(n)*size) {
		if pairs == "halves" {
			half = append(half, row[:len(row)/2]...)
			continue
		}
		for i := 0; i < len(row); i += 2 * size {
			half = append(half, row[i:i+size]...)
		}
	}
	shape := slices.Clone(d.Type.Shape)
	shape[len(shape)-1] = dim.Const(n / 2)
	k.dense[key] = types.DenseOf(d.Type.With(shape...), half)
	return k.dense[key]
}

// maxLiteral is how many elements of a literal are looked at.
const maxLiteral = 1 << 26

// elements is the constant o at a place, told by its elements there: those of two literals may be the same. nil where
// they are not at hand.
func (r *lanes) elements(o *ir.Op, at []place) *term {
	d, ok := op.Attr(o, "value").(*types.Dense)
	if !ok || d.Elem.Packed() || d.Splat {
		return nil
	}
	index, axes, total := r.at(0), []int{}, int64(1)
	for i, p := range at {
		n, known := d.Type.Shape[i].Int()
		if span, ok := r.span(p); !known || !ok || p.offset < 0 || p.offset+span >= n {
			return nil
		}
		index = r.scaled(index, n)
		index.offset += p.offset
		for a, s := range p.steps {
			index.steps[a] += s
		}
	}
	for a, s := range index.steps {
		if s != 0 {
			axes = append(axes, a)
			if total *= r.sizes[a]; total > maxLiteral {
				return nil
			}
		}
	}
	key := literalPlace{d, index.String() + fmt.Sprint(r.sizes)}
	name, known := r.known.sums[key]
	if !known {
		data, err := d.All()
		if err != nil {
			return nil
		}
		name = checksum(data, int64(d.Elem.Bytes()), index, axes, r.sizes)
		r.known.sums[key] = name
	}
	var b strings.Builder
	b.WriteString(name)
	for _, a := range axes {
		fmt.Fprintf(&b, " %d", a)
	}
	return newTerm(leaf, b.String(), 0, nil, nil)
}

// checksum tells the elements of data, of size bytes, at an index for all values of the axes.
func checksum(data []byte, size int64, index place, axes []int, sizes []int64) string {
	sum := sha256.New()
	var visit func(k int, at int64)
	visit = func(k int, at int64) {
		if k == len(axes) {
			sum.Write(data[at*size : (at+1)*size])
			return
		}
		for range sizes[axes[k]] {
			visit(k+1, at)
			at += index.steps[axes[k]]
		}
	}
	visit(0, index.offset)
	return fmt.Sprintf("%x", sum.Sum(nil)[:16])
}
