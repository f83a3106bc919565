package code

import (
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Splat is a vector of n elements equal to x.
func (f *Func) Splat(x value.Value, n int64) value.Value {
	t := types.NewVector(uint64(n), x.Type())
	one := f.NewInsertElement(constant.NewUndef(t), x, constant.NewInt(types.I32, 0))
	return f.NewShuffleVector(one, constant.NewUndef(t), constant.NewZeroInitializer(types.NewVector(t.Len, types.I32)))
}

// Shuffle selects lanes of the vectors x and y, whose lanes count on from those of x.
func (f *Func) Shuffle(x, y value.Value, lane func(i int64) int64) value.Value {
	n := x.Type().(*types.VectorType).Len
	var mask []constant.Constant
	for i := range int64(n) {
		mask = append(mask, constant.NewInt(types.I32, lane(i)))
	}
	return f.NewShuffleVector(x, y, constant.NewVector(types.NewVector(n, types.I32), mask...))
}

// Transpose exchanges rows and columns of as many vectors as each has lanes, of elements
// of size bytes.
func (f *Func) Transpose(rows []value.Value, size int64) []value.Value {
	n := int64(len(rows))
	// First inside 16 bytes, where unpack and zip instructions move lanes in one cycle:
	// after log2(q) perfect shuffles each group of q rows holds its transposed squares.
	q := min(16/size, n)
	for h := int64(1); h < q; h *= 2 {
		next := make([]value.Value, n)
		for g := int64(0); g < n; g += q {
			for i := range q / 2 {
				a, b := rows[g+i], rows[g+i+q/2]
				for high := range int64(2) {
					next[g+2*i+high] = f.Shuffle(a, b, func(j int64) int64 {
						return j/q*q + high*q/2 + j%q/2 + j%2*n
					})
				}
			}
		}
		rows = next
	}
	// Then the squares change places, by exchanging halves, quarters and so on.
	for h := q; h < n; h *= 2 {
		next := make([]value.Value, n)
		for i := range n {
			if i&h != 0 {
				continue
			}
			a, b := rows[i], rows[i+h]
			next[i] = f.Shuffle(a, b, func(j int64) int64 {
				if j&h == 0 {
					return j
				}
				return n + j - h
			})
			next[i+h] = f.Shuffle(a, b, func(j int64) int64 {
				if j&h == 0 {
					return j + h
				}
				return n + j
			})
		}
		rows = next
	}
	return rows
}

// CacheLine is the bytes of a line of the caches.
const CacheLine = 64

// The caches that memory is asked for into.
const (
	L1 = 3
	L2 = 2
)

// Prefetch asks for the lines of a cache that hold bytes from byte at of the memory at p on,
// which may be any address.
func (f *Func) Prefetch(p, at value.Value, bytes, cache int64) {
	i32 := func(n int64) value.Value { return constant.NewInt(types.I32, n) }
	fn := f.M.Declare("llvm.prefetch.p0i8", types.Void, Bytes, types.I32, types.I32, types.I32)
	if !p.Type().Equal(Bytes) {
		p = f.NewBitCast(p, Bytes)
	}
	p = f.NewGetElementPtr(types.I8, p, at)
	const read, data = 0, 1
	for j := int64(0); j < bytes; j += CacheLine {
		line := p
		if j > 0 {
			line = f.NewGetElementPtr(types.I8, p, Int(j))
		}
		f.Call(fn, line, i32(read), i32(cache), i32(data))
	}
}
