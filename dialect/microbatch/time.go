package microbatch

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/raise"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// part is rows of dimension d of a value, for the ops of a stage: of micro-batch i, or seen in groups.
type part struct {
	v     *ir.Value
	d, i  int
	stage string
}

var index = &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}

// function is the step in time. whole is false where rows of groups cannot be those of a micro-batch: it counts
// positions in the batch, or has a dimension that the groups do not divide evenly.
func (w *writer) function() (g *ir.Func, whole bool) {
	f := w.f
	o := &ir.Op{Name: op.Func, Attrs: slices.Clone(f.Op.Attrs), Span: f.Op.Span, Head: f.Op.Head, Origin: f.Op.Origin}
	block := o.AddRegion()
	w.b = op.NewBuilder(&ir.Builder{Block: block}, verify.Op)
	w.once, w.each = map[*ir.Value]*ir.Value{}, make([]map[*ir.Value]*ir.Value, w.n)
	for i := range w.each {
		w.each[i] = map[*ir.Value]*ir.Value{}
	}
	w.rowsOf = map[*ir.Value]*ir.Value{}
	w.parts, w.wide, w.acc = map[part]*ir.Value{}, map[part]*ir.Value{}, map[*ir.Op]*ir.Value{}
	w.apart, w.uneven = false, false
	for i, a := range f.Args {
		v := block.AddArg(a.Name, a.Type)
		v.Span = a.Span
		w.once[w.Func.Args[i]] = v
	}
	var positions []*ir.Value
	of := w.byPhase()
	for k, p := range of {
		for i := range w.n {
			for _, c := range p.sums {
				w.accumulate(c, i)
			}
			for _, o := range p.micro {
				if o.Name == op.PartitionID {
					v := w.position(o, i)
					positions = append(positions, v)
					continue
				}
				w.compute(o, i)
			}
			if k == 0 {
				break // nothing runs for each micro-batch before the first phase
			}
		}
		for _, o := range p.once {
			w.finish(o)
		}
	}
	last := w.Func.Body.Terminator()
	w.b.At = f.Body.Terminator()
	outs := make([]*ir.Value, len(last.Operands))
	for i, v := range last.Operands {
		outs[i] = w.returned(v)
		if r := outs[i].Tensor(); r != nil && !types.Equal(r, f.Results[i]) {
			w.made(nil, -1, func() { outs[i] = w.b.Value(op.Reshard, []*ir.Value{outs[i]}, nil, f.Results[i]) })
			outs[i].Name = v.Name
		}
	}
	if w.b.Err() != nil {
		return nil, false
	}
	ret := w.b.Builder.Op(op.Return, outs, nil)
	ret.Origin = w.b.At.Origin
	g = &ir.Func{Op: o, Name: f.Name, Private: f.Private, Args: block.Args, Results: slices.Clone(f.Results), Body: block}
	if w.uneven {
		raise.Indices(block) // of rows that all are there
	}
	op.RemoveDead(block)
	return g, !w.apart && !slices.ContainsFunc(positions, func(v *ir.Value) bool { return len(v.Uses) > 0 })
}

// phase is what runs in a phase, and once behind it.
type phase struct {
	micro, sums, once []*ir.Op
}

// byPhase are the phases, from the one before the first micro-batch on. The sums listed are those of values that no op
// of a micro-batch computes; others are accumulated where such an op is.
func (w *writer) byPhase() []phase {
	out := make([]phase, w.last+1)
	for _, o := range w.ops {
		p := &out[w.phase[o]]
		switch {
		case w.micro[o]:
			p.micro = append(p.micro, o)
		case w.direct[o]:
			out[0].once = append(out[0].once, o)
		case !w.sums[o]:
			p.once = append(p.once, o)
		case !w.micro[o.Operands[0].Op]:
			p.sums = append(p.sums, o)
		}
	}
	return out
}

// made marks the ops that build makes as made for from: of micro-batch i, or of none where i is less than 0.
func (w *writer) made(from *ir.Op, i int, build func()) {
	if from != nil {
		w.b.At = from
	}
	start := w.b.Index
	build()
	for _, o := range w.b.Block.Ops[start:w.b.Index] {
		w.mark(o, from, i)
	}
}

func (w *writer) mark(o, from *ir.Op, i int) {
	if from != nil {
		o.Origin, o.Loc = from.Origin, from.Loc
		o.CopyMarks(from)
	}
	if i >= 0 {
		o.SetAttr(op.MicroAttr, types.Int{V: int64(i), Elem: types.I64})
	}
}

func (w *writer) position(o *ir.Op, i int) (v *ir.Value) {
	w.made(nil, i, func() {
		v = w.b.Value("constant", nil, []types.Named{{Name: "value", Value: types.IntOf(index, int64(i))}}, index)
	})
	w.each[i][o.Results[0]] = v
	return v
}

// value is v of the divided function in micro-batch i, for an op made for from.
func (w *writer) value(v *ir.Value, i int, from *ir.Op) *ir.Value {
	if !w.varies[v] {
		return w.once[v]
	}
	if x := w.once[v]; x != nil { // an argument
		whole := w.Of[v]
		r := w.rows(x, w.divide[whole], i, from)
		if s := w.shardingOf(whole); s != nil {
			r.Type = sharded(r.Tensor(), s)
		}
		return r
	}
	return w.each[i][v]
}

func sharded(t *types.Tensor, s *types.Sharding) *types.Tensor {
	r := *t
	r.At.Shard = s
	return &r
}

// rows are those of dimension d of x that are micro-batch i's. Where the devices of a mesh have groups of rows, they are
// as many of each group, so that each device has its own already.
func (w *writer) rows(x *ir.Value, d, i int, from *ir.Op) *ir.Value {
	stage := ""
	if from != nil && from.Attr(op.StageAttr) != nil {
		stage = from.Attr(op.StageAttr).String()
	}
	key := part{x, d, i, stage}
	if v := w.parts[key]; v != nil {
		return v
	}
	shape := x.Tensor().Shape
	size, _ := shape[d].Int()
	n := int64(w.n)
	if w.groups > 1 && size%(w.groups*n) != 0 {
		w.apart = true
	}
	var v *ir.Value
	if w.groups == 1 || w.apart {
		k := Each(size, n)
		w.uneven = w.uneven || k*n > size
		w.made(from, i, func() { v = w.padded(w.cut(x, d, int64(i)*k, min(int64(i+1)*k, size)), d, k) })
	} else {
		all := part{x, d, -1, stage}
		if w.wide[all] == nil {
			w.made(from, -1, func() {
				w.wide[all] = w.b.Reshape(x, replaced(shape, d, w.groups, n, size/w.groups/n)...)
			})
		}
		w.made(from, i, func() {
			v = w.b.Reshape(w.cut(w.wide[all], d+1, int64(i), int64(i+1)), replaced(shape, d, size/n)...)
		})
	}
	v.Name = suffixed(x.Name, i)
	w.parts[key] = v
	return v
}

// cut is elements start to limit of dimension d of x.
func (w *writer) cut(x *ir.Value, d int, start, limit int64) *ir.Value {
	return w.b.Value("slice", []*ir.Value{x}, []types.Named{
		{Name: "start_indices", Value: op.IntList(int(start))},
		{Name: "limit_indices", Value: op.IntList(int(limit))},
		{Name: "dims", Value: op.IntList(d)},
	})
}

// padded is x with size elements along dimension d, those behind its own zeros.
func (w *writer) padded(x *ir.Value, d int, size int64) *ir.Value {
	n, _ := x.Tensor().Shape[d].Int()
	if n == size {
		return x
	}
	low, high := make([]int, x.Tensor().Rank()), make([]int, x.Tensor().Rank())
	high[d] = int(size - n)
	zero := w.b.Splat(&types.Tensor{Elem: x.Elem(), At: index.At}, 0)
	return w.b.Value("pad", []*ir.Value{x, zero}, []types.Named{{Name: "low", Value: op.IntList(low...)}, {Name: "high", Value: op.IntList(high...)}})
}

// replaced is shape with other sizes in place of dimension d.
func replaced(shape []dim.Dim, d int, sizes ...int64) []dim.Dim {
	out := slices.Clone(shape[:d])
	for _, n := range sizes {
		out = append(out, dim.Const(n))
	}
	return append(out, shape[d+1:]...)
}

// suffixed is the name of a value in micro-batch i.
func suffixed(name string, i int) string {
	if name == "" {
		return ""
	}
	base, rest, several := strings.Cut(name, "#")
	if several {
		rest = "#" + rest
	}
	return fmt.Sprintf("%s_micro%d%s", base, i, rest)
}

// compute writes o for micro-batch i, and adds what it computes of sums.
func (w *writer) compute(o *ir.Op, i int) {
	from := w.root(o)
	if d, own := w.Own[o]; own {
		w.each[i][o.Results[0]] = w.rows(w.value(o.Operands[0], i, from), d, i, from)
	} else {
		values := map[*ir.Value]*ir.Value{}
		for _, v := range ir.UsedValues(o) {
			values[v] = w.value(v, i, from)
		}
		c := w.copied(o, values, from, i)
		for k, r := range o.Results {
			c.Results[k].Name = suffixed(r.Name, i)
			w.each[i][r] = c.Results[k]
			if whole := w.Of[r]; whole != nil && r.Tensor() != nil && divided(r.Tensor(), whole.Tensor()) >= 0 {
				w.state(c, k, whole)
			}
		}
	}
	for _, r := range o.Results {
		for _, u := range r.Uses {
			if w.sums[u.Op] && !w.direct[u.Op] {
				w.accumulate(u.Op, i)
			}
		}
	}
}

func (w *writer) copied(o *ir.Op, values map[*ir.Value]*ir.Value, from *ir.Op, i int) (c *ir.Op) {
	w.made(from, i, func() { c = ir.CloneOps(w.b.Builder, []*ir.Op{o}, values)[0] })
	return c
}

// divided is the dimension of which a piece has less than the whole, -1 where there is none.
func divided(piece, whole *types.Tensor) int {
	for d := range whole.Shape {
		if !piece.Shape[d].Equal(whole.Shape[d]) {
			return d
		}
	}
	return -1
}

// state gives result k of o what the text states of the whole value. The values that regions hand on have one
// type, which is left to propagation.
func (w *writer) state(o *ir.Op, k int, whole *ir.Value) {
	if s := w.shardingOf(whole); s != nil && len(o.Regions) == 0 {
		o.Results[k].Type = sharded(o.Results[k].Tensor(), s)
	}
}

// accumulate adds the part of micro-batch i to the sum c. Sums of half-precision numbers are rounded once.
func (w *writer) accumulate(c *ir.Op, i int) {
	v, result := c.Operands[0], c.Results[0]
	from := w.root(c)
	if v.Op != nil && w.root(v.Op) != nil {
		from = w.root(v.Op)
	}
	part := w.value(v, i, from)
	reduction := op.Str(c, "reduction")
	elem := part.Elem()
	adds := reduction == types.Add.Word() || reduction == types.Mul.Word()
	w.made(from, i, func() {
		if adds && elem.IsFloat() && elem.Bits() < 32 {
			part = w.b.Convert(part, types.F32)
		}
		if w.acc[c] != nil {
			part = w.b.Binary(reduction, w.acc[c], part)
			if v.Name != "" {
				part.Name = fmt.Sprintf("%s_sum%d", v.Name, i)
			}
		}
	})
	w.acc[c] = part
	if i < w.n-1 {
		return
	}
	w.made(from, -1, func() { part = w.b.Convert(part, elem) })
	part.Name = result.Name
	if whole := w.Of[result]; whole != nil {
		if part.Name == "" {
			part.Name = whole.Name
		}
		w.state(part.Op, part.Index, whole)
	}
	w.once[result] = part
}

// finish writes o, which all micro-batches share.
func (w *writer) finish(o *ir.Op) {
	if w.direct[o] {
		w.once[o.Results[0]] = w.ofWhole(w.Of[o.Results[0]])
		return
	}
	values := map[*ir.Value]*ir.Value{}
	for _, v := range ir.UsedValues(o) {
		values[v] = w.once[v]
	}
	c := w.copied(o, values, w.root(o), -1)
	for k, r := range o.Results {
		w.once[r] = c.Results[k]
		if whole := w.Of[r]; whole != nil && r.Tensor() != nil {
			w.state(c, k, whole)
		}
	}
}

// ofWhole computes v, a value of the whole step, from the arguments.
func (w *writer) ofWhole(v *ir.Value) *ir.Value {
	if x := w.once[v]; x != nil {
		return x
	}
	if v.Op == nil {
		w.once[v] = w.once[w.Func.Args[slices.Index(w.whole.Args, v)]]
		return w.once[v]
	}
	values := map[*ir.Value]*ir.Value{}
	for _, x := range v.Op.Operands {
		values[x] = w.ofWhole(x)
	}
	from := v.Op
	for w.Expanded[from] != nil {
		from = w.Expanded[from]
	}
	c := w.copied(v.Op, values, from, -1)
	ir.WalkValues([]*ir.Op{c}, func(x *ir.Value) { // what an op expands to may have the type of the divided argument
		if t := x.Tensor(); t != nil && t.At.Shard != nil {
			x.Type = sharded(t, nil)
		}
	})
	for k, r := range v.Op.Results {
		w.once[r] = c.Results[k]
		w.state(c, k, r)
	}
	return w.once[v]
}

// returned is a result of the step: rows of all micro-batches where it has such, which may be the same for all.
func (w *writer) returned(v *ir.Value) *ir.Value {
	whole := w.Of[v]
	d := divided(v.Tensor(), whole.Tensor())
	if w.rowsOf[v] != nil {
		return w.rowsOf[v]
	}
	_, arg := w.divide[whole]
	switch {
	case arg, d < 0 && !w.varies[v]:
		return w.once[v]
	case d < 0: // of an op with other results, of which rows differ
		return w.each[0][v]
	}
	shape := whole.Tensor().Shape
	size, _ := shape[d].Int()
	n := int64(w.n)
	along, apart := d, w.groups > 1 && size%(w.groups*n) == 0
	if apart {
		along++
	}
	var r *ir.Value
	w.made(nil, -1, func() {
		pieces := make([]*ir.Value, w.n)
		for i := range pieces {
			if pieces[i] = w.once[v]; w.varies[v] {
				pieces[i] = w.each[i][v]
			}
			if apart {
				pieces[i] = w.b.Reshape(pieces[i], replaced(shape, d, w.groups, 1, size/w.groups/n)...)
			}
		}
		r = w.b.Value("concatenate", pieces, []types.Named{{Name: "dim", Value: types.Int{V: int64(along)}}})
		if !apart && Each(size, n)*n > size {
			r = w.cut(r, d, 0, size)
		}
		r = w.b.Reshape(r, shape...)
	})
	r.Name = whole.Name
	if s := w.shardingOf(whole); s != nil {
		r.Type = sharded(r.Tensor(), s)
	}
	w.rowsOf[v] = r
	return r
}
