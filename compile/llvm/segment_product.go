package llvm

import (
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	dm "dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

const (
	// productWork is the products of a task, so many that clearing a workspace takes little of its time.
	productWork = 128 << 10
	// A group is as many columns as a vector has flags of, and the flags of as many groups are such a vector again.
	groupBits = 6
	groupSize = 1 << groupBits
)

// segmentProduct is the kernels of a dm.segment_product. The products of each row are counted, and rows divided among tasks that
// have about equally many. A task sums its rows one after the other in a workspace as wide as a row, in which flags say which
// columns have a sum, and which groups of neighbours have such a column: so they are found in their order without a sort. Rows are
// written one behind the other where the products of the task's first row begin, and once it is known how many elements each one
// has, moved to where they belong.
type segmentProduct struct {
	f                       *kernel.Form
	o                       *dm.Op
	rows, others, columns   int64
	inFirst, inSecond       int64 // elements of the matrices
	products, room          int64
	sum                     types.Elem     // of the computation
	kind, combine           string         // what joins products, and two elements
	dense                   bool           // the result is, and stored as rows are summed
	offsets                 *assemble.Temp // where the products of a row begin; later, where its elements do in the result
	starts, counts          *assemble.Temp // of a row: where its elements are, and how many these are
	places, sums            *assemble.Temp // of elements: columns and values
	tasks, rowTasks, inTask int64
}

func newSegmentProduct(f *kernel.Form) (scheme, error) {
	o := f.Main
	p := &segmentProduct{f: f, o: o, sum: kept(o.Operands[2].Elem()), kind: op.Str(o, op.ReductionAttr), combine: op.Str(o, op.CombineAttr)}
	size := func(name string) int64 {
		d, _ := op.Size(o, name)
		n, _ := d.Int()
		return n
	}
	length := func(v *dm.Value) int64 {
		shape, _ := kernel.ShapeOf(v)
		return kernel.Product(shape)
	}
	p.rows, p.others = length(o.Operands[0])-1, length(o.Operands[3])-1
	p.inFirst, p.inSecond = length(o.Operands[1]), length(o.Operands[4])
	p.columns, p.products = size(op.ColumnsAttr), max(size(op.ProductsAttr), 1)
	if p.dense = len(o.Results) == 1; !p.dense {
		p.room = length(o.Results[1])
	}
	for _, n := range []int64{p.rows, p.columns, p.inFirst, p.inSecond} {
		if n < 1 || n > 1<<31 {
			return nil, fmt.Errorf("segment_product with a dimension of %d", n)
		}
	}
	temp := func(elem types.Elem, n int64) *assemble.Temp { return &assemble.Temp{Elem: elem, N: n, Own: true} }
	p.offsets, p.starts, p.counts = temp(types.I64, p.rows+1), temp(types.I64, p.rows), temp(types.I64, p.rows)
	work := p.products
	if p.dense {
		work = max(p.rows*p.columns, p.products)
	} else {
		p.places, p.sums = temp(types.I32, p.products), temp(p.sum, p.products)
	}
	p.tasks = max(1, min(p.rows, ceil(work, max(productWork, 4*p.columns))))
	p.inTask = max(1, task*p.rows/max(p.inFirst+p.rows, 1))
	p.rowTasks = ceil(p.rows, p.inTask)
	return p, nil
}

func (p *segmentProduct) temps() []*assemble.Temp {
	if p.dense {
		return []*assemble.Temp{p.offsets}
	}
	return []*assemble.Temp{p.offsets, p.starts, p.counts, p.places, p.sums}
}

// productBody is a kernel of p that is being written.
type productBody struct {
	*body
	*segmentProduct
	reg lltypes.Type
}

func (p *segmentProduct) launches() ([]*launch, error) {
	step := func(suffix string, tasks int64, reads, writes []*dm.Value, in, out, over []*assemble.Temp, write func(b *productBody)) *launch {
		ps := newParams()
		ps.reads(reads)
		ps.writes(slices.DeleteFunc(slices.Clone(writes), func(v *dm.Value) bool { return !slices.Contains(p.f.Outputs, v) }), nil)
		names := map[*assemble.Temp]string{p.offsets: "offsets", p.starts: "starts", p.counts: "counts", p.places: "places", p.sums: "sums"}
		for i, ts := range [3][]*assemble.Temp{in, out, over} {
			for _, t := range ts {
				ps.temp(names[t], t, [3]artifact.Mode{artifact.In, artifact.Out, artifact.InOut}[i])
			}
		}
		return newLaunch(suffix, p.f.Class, tasks, ps.list, func(b *body) error {
			write(&productBody{b, p, scalar.Register(p.sum)})
			return nil
		})
	}
	all, y := p.o.Operands, p.o.Results
	offsets, rows := []*assemble.Temp{p.offsets}, []*assemble.Temp{p.starts, p.counts, p.places, p.sums}
	if p.dense {
		main := step("", p.tasks, all, y, offsets, nil, nil, (*productBody).fill)
		main.Scratch = scratchBytes(p.sum, p.columns)
		return []*launch{
			step("_products", p.rowTasks, []*dm.Value{all[0], all[1], all[3]}, nil, nil, offsets, nil, (*productBody).count),
			step("_offsets", 1, nil, nil, nil, nil, offsets, (*productBody).add),
			main,
		}, nil
	}
	main := step("", p.tasks, all, nil, offsets, rows, nil, (*productBody).multiply)
	main.Scratch = scratchBytes(p.sum, p.width()) + scratchBytes(types.I8, p.width()) + scratchBytes(types.I8, p.width()>>groupBits)
	return []*launch{
		step("_products", p.rowTasks, []*dm.Value{all[0], all[1], all[3]}, nil, nil, offsets, nil, (*productBody).count),
		step("_offsets", 1, nil, nil, nil, nil, offsets, (*productBody).add),
		main,
		step("_positions", 1, nil, y[:1], []*assemble.Temp{p.counts}, nil, offsets, (*productBody).locate),
		step("_elements", p.rowTasks, nil, y[1:], append(offsets, rows...), nil, nil, (*productBody).move),
	}, nil
}

// width is the columns of a workspace: whole vectors of flags of groups.
func (p *segmentProduct) width() int64 {
	return ceil(p.columns, groupSize*groupSize) * groupSize * groupSize
}

// entry is element i of a temporary, a number.
func (b *productBody) entry(t *assemble.Temp, i value.Value) value.Value {
	return b.Element(code.Index, b.memory[t], i)
}

func (b *productBody) number(t *assemble.Temp, i value.Value) value.Value {
	return b.NewLoad(code.Index, b.entry(t, i))
}

// position is element i of positions, moved into [0, most].
func (b *body) position(of *dm.Value, i value.Value, most int64) value.Value {
	v := b.wholeNumber(b.lib.Load(b.Func, of.Elem(), b.buffer(of), i))
	return b.most(b.least(v, code.Int(most)), code.Int(0))
}

// segment is where segment i of positions of so many elements begins and ends.
func (b *body) segment(positions *dm.Value, i value.Value, elements int64) (from, to value.Value) {
	from = b.position(positions, i, elements)
	return from, b.position(positions, b.NewAdd(i, code.Int(1)), elements)
}

// rowOf calls f with where row k of a matrix begins and ends, one of rows with so many elements, if there is one.
func (b *body) rowOf(positions *dm.Value, k value.Value, rows, elements int64, acc []value.Value, f func(from, to value.Value) []value.Value) []value.Value {
	return b.Choose(b.NewICmp(enum.IPredULT, k, code.Int(rows)), func() []value.Value {
		return f(b.segment(positions, k, elements))
	}, func() []value.Value { return acc })
}

// coordinate is element i of coordinates.
func (b *body) coordinate(of *dm.Value, i value.Value) value.Value {
	return b.extended(b.lib.Load(b.Func, of.Elem(), b.buffer(of), i), of.Elem().IsUnsigned())
}

// columnOf is element i of coordinates, the last column where there are fewer.
func (b *body) columnOf(of *dm.Value, i value.Value, columns int64) value.Value {
	c := b.extended(b.lib.Load(b.Func, of.Elem(), b.buffer(of), i), true)
	return b.NewSelect(b.NewICmp(enum.IPredULT, c, code.Int(columns)), c, code.Int(columns-1))
}

// applied is a function of numbers of elem.
func (b *body) applied(elem types.Elem, name string, xs ...value.Value) value.Value {
	args := make([]*kernel.Expr, len(xs))
	for i := range args {
		args[i] = &kernel.Expr{Elem: elem}
	}
	return b.lib.Apply(b.Func, &kernel.Expr{Op: name, Elem: elem, Args: args}, xs)
}

// eachOther calls f with where the row of the second matrix begins and ends that element x of the first one meets, if there is one.
func (b *productBody) eachOther(x value.Value, acc []value.Value, f func(from, to value.Value) []value.Value) []value.Value {
	return b.rowOf(b.o.Operands[3], b.coordinate(b.o.Operands[1], x), b.others, b.inSecond, acc, f)
}

// count notes how many products each row has, one place behind its own.
func (b *productBody) count() {
	from, to := b.span(b.first, b.last, b.inTask, b.rows)
	positions := b.o.Operands[0]
	b.For(from, to, code.Loop{}, func(row value.Value) {
		from, to := b.segment(positions, row, b.inFirst)
		n := b.Fold(from, to, code.Loop{}, []value.Value{code.Int(0)},
			func(x value.Value, acc []value.Value) []value.Value {
				return b.eachOther(x, acc, func(from, to value.Value) []value.Value {
					return []value.Value{b.NewAdd(acc[0], b.most(b.NewSub(to, from), code.Int(0)))}
				})
			})
		b.NewStore(n[0], b.entry(b.offsets, b.NewAdd(row, code.Int(1))))
	})
}

// add makes offsets of the numbers of products.
func (b *productBody) add() {
	b.NewStore(code.Int(0), b.entry(b.offsets, code.Int(0)))
	b.Fold(code.Int(1), code.Int(b.rows+1), code.Loop{}, []value.Value{code.Int(0)}, func(row value.Value, acc []value.Value) []value.Value {
		sum := b.NewAdd(acc[0], b.number(b.offsets, row))
		b.NewStore(sum, b.entry(b.offsets, row))
		return []value.Value{sum}
	})
}

// workspace is the sums of a row, a flag for each, and one for each group of them.
type workspace struct{ sums, flags, groups value.Value }

// multiply computes the rows of tasks.
func (b *productBody) multiply() {
	w := workspace{b.take(b.sum, b.width()), b.take(types.I8, b.width()), b.take(types.I8, b.width()>>groupBits)}
	b.For(code.Int(0), code.Int(b.used/8), code.Loop{Vectorize: true}, func(i value.Value) {
		b.NewStore(code.Int(0), b.Element(code.Index, b.scratch, i))
	})
	if b.kind != "add" {
		b.clear(w.sums, b.width())
	}
	before := func(row value.Value) value.Value { return b.NewAdd(b.number(b.offsets, row), row) }
	from, to := b.divided(b.rows, b.tasks, before(code.Int(b.rows)), b.first, b.last, before)
	b.Fold(from, to, code.Loop{}, []value.Value{b.number(b.offsets, from)}, func(row value.Value, acc []value.Value) []value.Value {
		b.NewStore(acc[0], b.entry(b.starts, row))
		b.ask(b.least(b.NewAdd(row, code.Int(1)), code.Int(b.rows-1)))
		low, high := b.row(&w, row)
		end := b.collect(&w, low, high, acc[0])
		b.NewStore(b.NewSub(end, acc[0]), b.entry(b.counts, row))
		return []value.Value{end}
	})
}

// clear makes the first n sums of a workspace those of no product.
func (b *productBody) clear(sums value.Value, n int64) {
	none := b.lib.Identity(b.kind, b.sum)
	b.For(code.Int(0), code.Int(n), code.Loop{Vectorize: true}, func(i value.Value) {
		b.NewStore(none, b.Element(b.reg, sums, i))
	})
}

// fill computes the rows of tasks in full: what they have no product for as well.
func (b *productBody) fill() {
	w := workspace{sums: b.take(b.sum, b.columns)}
	y, none := b.o.Results[0], b.lib.Identity(b.kind, b.sum)
	b.clear(w.sums, b.columns)
	before := func(row value.Value) value.Value {
		return b.NewAdd(b.number(b.offsets, row), b.NewMul(row, code.Int(b.columns)))
	}
	from, to := b.divided(b.rows, b.tasks, before(code.Int(b.rows)), b.first, b.last, before)
	b.For(from, to, code.Loop{}, func(row value.Value) {
		b.ask(b.least(b.NewAdd(row, code.Int(1)), code.Int(b.rows-1)))
		b.row(&w, row)
		start := b.NewMul(row, code.Int(b.columns))
		b.For(code.Int(0), code.Int(b.columns), code.Loop{Vectorize: true}, func(i value.Value) {
			sum := b.Element(b.reg, w.sums, i)
			b.lib.Store(b.Func, y.Elem(), b.params[y], b.NewAdd(start, i), b.NewLoad(b.reg, sum))
			b.NewStore(none, sum)
		})
	})
}

// ask asks for where the rows of the second matrix begin that a row meets: in no order that the hardware foresees.
func (b *productBody) ask(row value.Value) {
	positions, columns, values := b.o.Operands[0], b.o.Operands[4], b.o.Operands[5]
	from, to := b.segment(positions, row, b.inFirst)
	b.For(from, to, code.Loop{}, func(x value.Value) {
		b.eachOther(x, nil, func(from, _ value.Value) []value.Value {
			for _, v := range []*dm.Value{columns, values} {
				b.Prefetch(b.buffer(v), b.NewMul(from, code.Int(v.Elem().Bytes())), 1, code.L1)
			}
			return nil
		})
	})
}

// row joins the products of a row, which lie between two columns.
func (b *productBody) row(w *workspace, row value.Value) (low, high value.Value) {
	positions, values, columns, others := b.o.Operands[0], b.o.Operands[2], b.o.Operands[4], b.o.Operands[5]
	column := func(z value.Value) value.Value { return b.columnOf(columns, z, b.columns) }
	flag := constant.NewInt(lltypes.I8, 1)
	from, to := b.segment(positions, row, b.inFirst)
	ends := b.Fold(from, to, code.Loop{},
		[]value.Value{code.Int(b.columns), code.Int(-1)}, func(x value.Value, acc []value.Value) []value.Value {
			return b.eachOther(x, acc, func(from, to value.Value) []value.Value {
				return b.Choose(b.NewICmp(less, from, to), func() []value.Value {
					v := b.lib.Load(b.Func, values.Elem(), b.buffer(values), x)
					b.For(from, to, code.Loop{}, func(z value.Value) {
						c := column(z)
						sum := b.Element(b.reg, w.sums, c)
						y := b.applied(b.sum, b.combine, v, b.lib.Load(b.Func, others.Elem(), b.buffer(others), z))
						b.NewStore(b.applied(b.sum, b.kind, b.NewLoad(b.reg, sum), y), sum)
						if b.dense {
							return
						}
						b.NewStore(flag, b.Element(lltypes.I8, w.flags, c))
						b.NewStore(flag, b.Element(lltypes.I8, w.groups, b.NewLShr(c, code.Int(groupBits))))
					})
					return []value.Value{b.least(acc[0], column(from)), b.most(acc[1], column(b.NewSub(to, code.Int(1))))}
				}, func() []value.Value { return acc })
			})
		})
	return ends[0], ends[1]
}

// bits calls f for each bit of x that is 1, from the lowest on, with its number.
func (b *productBody) bits(x value.Value, acc []value.Value, f func(i value.Value, acc []value.Value) []value.Value) []value.Value {
	zeros := b.M.Declare("llvm.cttz.i64", lltypes.I64, lltypes.I64, lltypes.I1)
	done := b.While(append([]value.Value{x}, acc...), func(acc []value.Value) value.Value {
		return b.NewICmp(enum.IPredNE, acc[0], code.Int(0))
	}, func(acc []value.Value) []value.Value {
		i := b.Call(zeros, acc[0], constant.True)
		return append([]value.Value{b.NewAnd(acc[0], b.NewSub(acc[0], code.Int(1)))}, f(i, acc[1:])...)
	})
	return done[1:]
}

// collect writes the sums of the columns from low to high that have a flag, from number at on, and returns the number behind them.
// The workspace is zeros then.
func (b *productBody) collect(w *workspace, low, high, at value.Value) value.Value {
	vector := lltypes.NewVector(groupSize, lltypes.I8)
	empty := constant.NewZeroInitializer(vector)
	// taken are which of a vector of flags are set, as bits; the flags are not set then.
	taken := func(all, number value.Value) value.Value {
		of := b.NewBitCast(b.Element(lltypes.I8, all, b.NewShl(number, code.Int(groupBits))), lltypes.NewPointer(vector))
		load := b.NewLoad(vector, of)
		load.Align = groupSize
		is := b.NewBitCast(b.NewICmp(enum.IPredNE, load, empty), lltypes.I64)
		b.NewStore(empty, of).Align = groupSize
		return is
	}
	last, none := code.Int(b.products-1), b.lib.Identity(b.kind, b.sum)
	first, end := b.NewLShr(low, code.Int(2*groupBits)), b.NewAdd(b.NewAShr(high, code.Int(2*groupBits)), code.Int(1))
	return b.Fold(first, end, code.Loop{Unroll: 1}, []value.Value{at}, func(word value.Value, acc []value.Value) []value.Value {
		return b.bits(taken(w.groups, word), acc, func(bit value.Value, acc []value.Value) []value.Value {
			group := b.NewAdd(b.NewShl(word, code.Int(groupBits)), bit)
			return b.bits(taken(w.flags, group), acc, func(i value.Value, acc []value.Value) []value.Value {
				c := b.NewAdd(b.NewShl(group, code.Int(groupBits)), i)
				to := b.least(acc[0], last)
				sum := b.Element(b.reg, w.sums, c)
				b.NewStore(b.NewTrunc(c, lltypes.I32), b.Element(lltypes.I32, b.memory[b.places], to))
				b.NewStore(b.NewLoad(b.reg, sum), b.Element(b.reg, b.memory[b.sums], to))
				b.NewStore(none, sum)
				return []value.Value{b.NewAdd(acc[0], code.Int(1))}
			})
		})
	})[0]
}

// locate makes positions of the numbers of elements.
func (b *productBody) locate() {
	v := b.o.Results[0]
	store := func(row, sum value.Value) {
		b.NewStore(sum, b.entry(b.offsets, row))
		if b.params[v] != nil {
			b.lib.Store(b.Func, v.Elem(), b.params[v], row, b.counted(v.Elem(), sum))
		}
	}
	store(code.Int(0), code.Int(0))
	b.Fold(code.Int(0), code.Int(b.rows), code.Loop{}, []value.Value{code.Int(0)}, func(row value.Value, acc []value.Value) []value.Value {
		sum := b.NewAdd(acc[0], b.number(b.counts, row))
		store(b.NewAdd(row, code.Int(1)), sum)
		return []value.Value{sum}
	})
}

// move writes the elements of rows, as far as there is room, and with the last ones what is behind all.
func (b *productBody) move() {
	from, to := b.span(b.first, b.last, b.inTask, b.rows)
	how := code.Loop{Vectorize: true, Short: b.products/b.rows < 64}
	room := code.Int(b.room)
	b.For(from, to, code.Loop{}, func(row value.Value) {
		out, start := b.least(b.number(b.offsets, row), room), b.number(b.starts, row)
		n := b.least(b.number(b.counts, row), b.least(b.NewSub(room, out), b.NewSub(code.Int(b.products), b.least(start, code.Int(b.products)))))
		b.give(code.Int(0), n, how, out, func(i value.Value) (column, sum value.Value) {
			at := b.NewAdd(start, i)
			return b.NewZExt(b.NewLoad(lltypes.I32, b.Element(lltypes.I32, b.memory[b.places], at)), code.Index), b.NewLoad(b.reg, b.Element(b.reg, b.memory[b.sums], at))
		})
	})
	b.If(b.NewICmp(enum.IPredEQ, to, code.Int(b.rows)), func() {
		b.give(b.least(b.number(b.offsets, code.Int(b.rows)), room), room, code.Loop{Vectorize: true}, code.Int(0), func(value.Value) (column, sum value.Value) {
			return code.Int(0), constant.NewZeroInitializer(b.reg)
		})
	})
}

// give stores elements, from number out on, as far as they are asked for.
func (b *productBody) give(from, to value.Value, how code.Loop, out value.Value, of func(i value.Value) (column, sum value.Value)) {
	columns, values := b.o.Results[1], b.o.Results[2]
	if p := b.params[columns]; p != nil {
		b.For(from, to, how, func(i value.Value) {
			column, _ := of(i)
			b.lib.Store(b.Func, columns.Elem(), p, b.NewAdd(out, i), b.counted(columns.Elem(), column))
		})
	}
	if p := b.params[values]; p != nil {
		b.For(from, to, how, func(i value.Value) {
			_, sum := of(i)
			b.lib.Store(b.Func, values.Elem(), p, b.NewAdd(out, i), sum)
		})
	}
}
