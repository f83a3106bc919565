package onnx

import (
	"encoding/binary"
	"slices"
	"strconv"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// sparseProto is a sparse constant: values, and where each of them is, as its number in the whole or by its coordinates.
type sparseProto struct {
	values, indices *tensorProto
	dims            []int64
}

func readSparse(b []byte) *sparseProto {
	p := &sparseProto{}
	each(b, "sparse tensor", func(x field) {
		switch x.num {
		case 1:
			p.values = readTensor(x.data)
		case 2:
			p.indices = readTensor(x.data)
		case 3:
			p.dims = x.int64s(p.dims)
		}
	})
	return p
}

// sparse is the value of p: dense, as ONNX's operators take it. Products that read it later take what it is made of (products).
func (s *scope) sparse(p *sparseProto) *ir.Value {
	if p.values == nil {
		fail("a sparse tensor has no values")
	}
	what := "sparse tensor " + strconv.Quote(p.values.name)
	shape := shapeOf(what, p.dims)
	values := p.values.dense(s.opts)
	n := 0
	if len(values.Type.Shape) == 1 {
		count, _ := values.Type.Shape[0].Int()
		n = int(count)
	} else {
		fail("%s: its values have %d dimensions, and not one", what, len(values.Type.Shape))
	}
	if len(shape) == 0 {
		fail("%s has no dimensions", what)
	}
	at := p.places(what, shape, n, s.opts)
	if n == 0 {
		return s.b.Splat(tensorOf(values.Type.Elem, shape), 0)
	}
	t := &types.Tensor{Elem: values.Type.Elem, Shape: sizes(shape), Format: formatOf(len(shape), int64(n))}
	var parts []*ir.Value
	for _, c := range t.Components() {
		switch c.Kind {
		case types.Values:
			parts = append(parts, s.literal(values))
		case types.Coordinates:
			parts = append(parts, s.indices(at[t.Format.Levels[c.Level].Dim]))
		case types.Positions:
			ends := []int{0, n} // of the one vector of entries
			if c.Level > 0 {    // of rows
				ends = make([]int, shape[0]+1)
				for _, row := range at[0] {
					ends[row+1]++
				}
				for i := range shape[0] {
					ends[i+1] += ends[i]
				}
			}
			parts = append(parts, s.indices(ends))
		}
	}
	v := s.b.Value("pack", parts, nil, t)
	return s.b.Value("convert_format", []*ir.Value{v}, nil, tensorOf(values.Type.Elem, shape))
}

// formatOf is how a constant of that rank is stored: a vector, rows, or coordinates.
func formatOf(rank int, n int64) *types.Format {
	f := &types.Format{PosWidth: 32, CrdWidth: 32, Stored: []dim.Dim{dim.Const(n)}}
	for d := range rank {
		l := types.Level{Kind: types.SingletonLevel, Dim: d, NonUnique: d < rank-1}
		switch {
		case rank == 2 && d == 0:
			l = types.Level{Kind: types.DenseLevel, Dim: d}
		case d == 0, rank == 2:
			l = types.Level{Kind: types.CompressedLevel, Dim: d, NonUnique: rank > 2}
		}
		f.Levels = append(f.Levels, l)
	}
	return f
}

// indices is a vector of integers as a constant.
func (s *scope) indices(x []int) *ir.Value {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return s.literal(types.DenseOf(tensorOf(types.I32, []int{len(x)}), data))
}

// places are the coordinates of the n entries of p, which rise, by dimension.
func (p *sparseProto) places(what string, shape []int, n int, opts Options) [][]int {
	at := make([][]int, len(shape))
	for d := range at {
		at[d] = make([]int, n)
	}
	if p.indices == nil {
		if n > 0 {
			fail("%s has %d values and no indices", what, n)
		}
		return at
	}
	x := p.indices.dense(opts)
	rows := slices.ContainsFunc([][]int{{n}, {n, len(shape)}}, func(want []int) bool {
		return slices.EqualFunc(x.Type.Shape, sizes(want), dim.Dim.Equal)
	})
	if x.Type.Elem != types.I64 || !rows {
		fail("%s: its indices are %s, and neither %s nor %s", what, x.Type, tensorOf(types.I64, []int{n}), tensorOf(types.I64, []int{n, len(shape)}))
	}
	flat, each := integers(x), len(x.Type.Shape) == 2
	before := -1
	for k := range n {
		number := 0
		if each {
			for d, size := range shape {
				c := flat[k*len(shape)+d]
				if c < 0 || c >= size {
					fail("%s: index %d of entry %d is %d, outside of %d", what, d, k, c, size)
				}
				number = number*size + c
			}
		} else if number = flat[k]; number < 0 || number >= product(shape) {
			fail("%s: entry %d is number %d of %d elements", what, k, number, product(shape))
		}
		if number <= before {
			fail("%s: entry %d is element %d, behind element %d: entries are sorted, and each is stored once", what, k, number, before)
		}
		before = number
		for d := len(shape) - 1; d >= 0; d-- {
			at[d][k], number = number%shape[d], number/shape[d]
		}
	}
	return at
}

// products lets products of m that read a sparse constant as a dense tensor read what it stores.
func products(m *ir.Module) {
	for _, f := range m.Funcs {
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			if o.Name != op.Prefix+"matmul" && o.Name != op.Prefix+"einsum" {
				return true
			}
			for i, v := range o.Operands {
				c := v.Op
				if op.IsSparse(o) || c == nil || c.Name != op.Prefix+"convert_format" || c.Operands[0].Tensor().Format == nil {
					continue
				}
				if o.SetOperand(i, c.Operands[0]); verify.Op(o) != nil {
					o.SetOperand(i, v)
				}
			}
			return true
		})
		op.RemoveDead(f.Body)
	}
}
