package llvm

import (
	"fmt"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	dm "dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// sampleParts is into how many parts the elements of b are divided at most, each of which is summed by one task that walks all rows.
const sampleParts = 8

// segmentSample is the kernel of a dm.segment_sample. Each row of c is brought into a workspace as wide as it, with flags that say which columns it has, and
// the products of the row are those of elements of a with rows of b where a flag is set. Elements of a and of c belong to a row, and tasks have rows with about equally
// many elements; those of b get sums of many rows, and each task has a part of them.
type segmentSample struct {
	f                   *kernel.Form
	o                   *dm.Op
	of                  int // the matrix whose elements are computed
	rows, others, width int64
	columns             int64
	elements            [3]int64
	sum                 types.Elem // of the computation
	tasks               int64
}

func (*segmentSample) temps() []*assemble.Temp { return nil }

func newSegmentSample(f *kernel.Form) (scheme, error) {
	o := f.Main
	p := &segmentSample{f: f, o: o, of: op.SampledMatrix(o), sum: kept(o.Operands[6].Elem())}
	size := func(name string) int64 {
		d, _ := op.Size(o, name)
		n, _ := d.Int()
		return n
	}
	length := func(i int) int64 {
		shape, _ := kernel.ShapeOf(o.Operands[i])
		return kernel.Product(shape)
	}
	p.rows, p.others, p.columns = length(0)-1, length(2)-1, size(op.ColumnsAttr)
	for i := range p.elements {
		p.elements[i] = length(2*i + 1)
	}
	for _, n := range []int64{p.rows, p.others, p.columns, p.elements[0], p.elements[1], p.elements[2]} {
		if n < 1 || n > 1<<31 {
			return nil, fmt.Errorf("segment_sample with a dimension of %d", n)
		}
	}
	p.width = ceil(p.columns, 64) * 64
	products := max(size(op.ProductsAttr), 1)
	p.tasks = max(1, min(p.rows, ceil(products, max(productWork, 4*p.columns))))
	if p.of == 1 { // each task reads all of a and c
		p.tasks = max(1, min(p.tasks, sampleParts, p.others, products/(2*(p.elements[0]+p.elements[2]))))
	}
	return p, nil
}

// sampleBody is the kernel of p that is being written.
type sampleBody struct {
	*body
	*segmentSample
	reg         lltypes.Type
	sums, flags value.Value // the workspace
}

func (p *segmentSample) launches() ([]*launch, error) {
	ps := newParams()
	ps.reads(p.o.Operands)
	ps.writes(p.o.Results, nil)
	l := newLaunch("", p.f.Class, p.tasks, ps.list, func(b *body) error {
		(&sampleBody{body: b, segmentSample: p, reg: scalar.Register(p.sum)}).write()
		return nil
	})
	l.Scratch = scratchBytes(p.sum, p.width) + scratchBytes(types.I8, p.width)
	return []*launch{l}, nil
}

func (b *sampleBody) positions(of int) *dm.Value   { return b.o.Operands[2*of] }
func (b *sampleBody) coordinates(of int) *dm.Value { return b.o.Operands[2*of+1] }

// bounds are where row i of a matrix begins and ends.
func (b *sampleBody) bounds(of int, i value.Value) (from, to value.Value) {
	return b.segment(b.positions(of), i, b.elements[of])
}

// given is element i of a matrix whose values are an operand.
func (b *sampleBody) given(of int, i value.Value) value.Value {
	v := b.o.Operands[6]
	if first, _ := op.SampledValues(b.o); of != first {
		v = b.o.Operands[7]
	}
	return b.lib.Load(b.Func, v.Elem(), b.buffer(v), i)
}

func (b *sampleBody) zero() value.Value { return constant.NewZeroInitializer(b.reg) }

func (b *sampleBody) store(i, v value.Value) {
	y := b.o.Results[0]
	b.lib.Store(b.Func, y.Elem(), b.params[y], i, v)
}

// zeros are elements of the result from number from to number to.
func (b *sampleBody) zeros(from, to value.Value) {
	b.For(from, to, code.Loop{Vectorize: true}, func(i value.Value) { b.store(i, b.zero()) })
}

// product is that of x and y where a flag is set, else 0.
func (b *sampleBody) product(column, x, y value.Value) value.Value {
	return b.NewSelect(b.flagged(column), b.applied(b.sum, "mul", x, y), b.zero())
}

func (b *sampleBody) flagged(column value.Value) value.Value {
	return b.NewTrunc(b.NewLoad(lltypes.I8, b.Element(lltypes.I8, b.flags, column)), lltypes.I1)
}

func (b *sampleBody) write() {
	b.sums, b.flags = b.take(b.sum, b.width), b.take(types.I8, b.width)
	b.For(code.Int(0), code.Int(b.used/8), code.Loop{Vectorize: true}, func(i value.Value) {
		b.NewStore(code.Int(0), b.Element(code.Index, b.scratch, i))
	})
	if b.of == 1 {
		b.writeParts()
		return
	}
	at := func(of int, i value.Value) value.Value { return b.position(b.positions(of), i, b.elements[of]) }
	before := func(row value.Value) value.Value { return b.NewAdd(b.NewAdd(at(0, row), at(2, row)), row) }
	from, to := b.divided(b.rows, b.tasks, before(code.Int(b.rows)), b.first, b.last, before)
	b.If(b.NewICmp(enum.IPredEQ, from, code.Int(0)), func() { b.zeros(code.Int(0), at(b.of, code.Int(0))) })
	b.For(from, to, code.Loop{}, func(row value.Value) {
		b.load(row)
		if b.of == 0 {
			b.eachOf(row, func(x, begin, end value.Value) value.Value {
				return b.Fold(begin, end, code.Loop{}, []value.Value{b.zero()}, func(z value.Value, acc []value.Value) []value.Value {
					c := b.columnOf(b.coordinates(1), z, b.columns)
					own := b.NewLoad(b.reg, b.Element(b.reg, b.sums, c))
					return []value.Value{b.applied(b.sum, "add", acc[0], b.product(c, b.given(1, z), own))}
				})[0]
			})
		} else {
			b.eachOf(row, func(x, begin, end value.Value) value.Value {
				v := b.given(0, x)
				b.For(begin, end, code.Loop{}, func(z value.Value) {
					c := b.columnOf(b.coordinates(1), z, b.columns)
					sum := b.Element(b.reg, b.sums, c)
					b.NewStore(b.applied(b.sum, "add", b.NewLoad(b.reg, sum), b.product(c, v, b.given(1, z))), sum)
				})
				return b.zero()
			})
			b.ofRow(row, func(m, c value.Value) { b.store(m, b.NewLoad(b.reg, b.Element(b.reg, b.sums, c))) })
		}
		b.clear(row)
	})
	b.If(b.NewICmp(enum.IPredEQ, to, code.Int(b.rows)), func() { b.zeros(at(b.of, code.Int(b.rows)), code.Int(b.elements[b.of])) })
}

// writeParts sums the elements of b from rows that the task has, of which there are about as many in each.
func (b *sampleBody) writeParts() {
	at := func(k value.Value) value.Value { return b.position(b.positions(1), k, b.elements[1]) }
	before := func(k value.Value) value.Value { return b.NewAdd(at(k), k) }
	from, to := b.divided(b.others, b.tasks, before(code.Int(b.others)), b.first, b.last, before)
	low := b.NewSelect(b.NewICmp(enum.IPredEQ, from, code.Int(0)), code.Int(0), at(from))
	high := b.NewSelect(b.NewICmp(enum.IPredEQ, to, code.Int(b.others)), code.Int(b.elements[1]), at(to))
	b.zeros(low, high)
	b.For(code.Int(0), code.Int(b.rows), code.Loop{}, func(row value.Value) {
		b.load(row)
		y := b.o.Results[0]
		b.eachIn(row, from, to, func(x, begin, end value.Value) {
			v := b.given(0, x)
			b.For(begin, end, code.Loop{}, func(z value.Value) {
				c := b.columnOf(b.coordinates(1), z, b.columns)
				own := b.NewLoad(b.reg, b.Element(b.reg, b.sums, c))
				b.store(z, b.applied(b.sum, "add", b.lib.Load(b.Func, y.Elem(), b.params[y], z), b.product(c, v, own)))
			})
		})
		b.clear(row)
	})
}

// ofRow calls f for each element of a row of c, with its column.
func (b *sampleBody) ofRow(row value.Value, f func(m, c value.Value)) {
	from, to := b.bounds(2, row)
	b.For(from, to, code.Loop{}, func(m value.Value) { f(m, b.columnOf(b.coordinates(2), m, b.columns)) })
}

// load sets the flags of a row of c and, where they are given, brings its elements into the workspace.
func (b *sampleBody) load(row value.Value) {
	b.ofRow(row, func(m, c value.Value) {
		b.NewStore(constant.NewInt(lltypes.I8, 1), b.Element(lltypes.I8, b.flags, c))
		if b.of != 2 {
			b.NewStore(b.given(2, m), b.Element(b.reg, b.sums, c))
		}
	})
}

// clear makes the workspace zeros again.
func (b *sampleBody) clear(row value.Value) {
	b.ofRow(row, func(_, c value.Value) {
		b.NewStore(constant.NewInt(lltypes.I8, 0), b.Element(lltypes.I8, b.flags, c))
		b.NewStore(b.zero(), b.Element(b.reg, b.sums, c))
	})
}

// eachIn calls f for each element of a row of a whose row of b is one from number low to number high, with where that begins and ends.
func (b *sampleBody) eachIn(row, low, high value.Value, f func(x, begin, end value.Value)) {
	from, to := b.bounds(0, row)
	b.For(from, to, code.Loop{}, func(x value.Value) {
		k := b.coordinate(b.coordinates(0), x)
		inside := b.NewAnd(b.NewICmp(enum.IPredUGE, k, low), b.NewICmp(enum.IPredULT, k, high))
		b.If(inside, func() {
			begin, end := b.bounds(1, k)
			f(x, begin, end)
		})
	})
}

// eachOf calls f for each element of a row of a that has a row of b, with where that begins and ends; of a's own elements, where these are computed, it
// gives the element, and others are 0.
func (b *sampleBody) eachOf(row value.Value, f func(x, begin, end value.Value) value.Value) {
	from, to := b.bounds(0, row)
	b.For(from, to, code.Loop{}, func(x value.Value) {
		v := b.rowOf(b.positions(1), b.coordinate(b.coordinates(0), x), b.others, b.elements[1], []value.Value{b.zero()}, func(begin, end value.Value) []value.Value {
			return []value.Value{f(x, begin, end)}
		})[0]
		if b.of == 0 {
			b.store(x, v)
		}
	})
}
