package op

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// A sparse tensor that devices divide is in pieces (types.Format.Pieces): each has some of the coordinates along the
// outermost level. An op on it is written out for one piece, whose dense operands have the same rows of theirs, and these
// ops then get the pieces as their first dimension, which is what a mesh divides. What a piece gives that has no rows is
// a part of a sum.

// cutOf is along which dimensions each operand and each result of an op is in pieces. A result that is whole along one is the
// sum of those of the pieces.
type cutOf struct{ operands, results []cutDims }

// cutDims are the dimensions of a dense tensor along which pieces of a sparse one cut it, -1 where it is whole: that of the sparse
// one's outermost level, and the other one of a matrix.
type cutDims struct{ outer, inner int }

var notCut = cutDims{-1, -1}

func (c cutDims) isCut() bool { return c != notCut }

// pieced is the first operand of o that is in pieces, nil where none is.
func pieced(o *ir.Op) *ir.Value {
	for _, v := range o.Operands {
		if t := asTensor(v.Type); t != nil && t.Format != nil && t.Format.Pieces.Count() > 0 {
			return v
		}
	}
	return nil
}

// cuts is the cut of o, which has an operand in pieces.
func cuts(o *ir.Op) (*cutOf, *Problem) {
	first := pieced(o)
	t := asTensor(first.Type)
	dims := cutDims{t.Format.Outermost(), -1}
	if t.Format.Pieces.Inner > 0 {
		dims.inner = t.Format.Innermost(t.Rank())
	}
	for i, v := range o.Operands {
		s := asTensor(v.Type)
		if s != nil && s.Format != nil && (s.Format.Pieces != t.Format.Pieces || s.Format.ByEntries != t.Format.ByEntries || s.Format.Outermost() != dims.outer || !s.Shape[dims.outer].Equal(t.Shape[dims.outer])) {
			return nil, problem("DM134", i, "%s is not divided as %s is", valueName(v), valueName(first)).help("state the same sharding of both")
		}
	}
	c := &cutOf{slices.Repeat([]cutDims{notCut}, len(o.Operands)), slices.Repeat([]cutDims{notCut}, len(o.Results))}
	if t.Format.ByEntries {
		return c, needsRows(o, first)
	}
	letters := func(ops []string, from int, output, of string) *Problem {
		at := func(s string) cutDims {
			d := cutDims{strings.IndexByte(s, of[dims.outer]), -1}
			if dims.inner >= 0 {
				d.inner = strings.IndexByte(s, of[dims.inner])
			}
			return d
		}
		for i, s := range ops {
			for _, d := range []int{dims.outer, dims.inner} {
				if d >= 0 && strings.Count(s, of[d:d+1]) > 1 {
					return problem("DM134", from+i, "%s takes the diagonal of what is divided", o.Name).help("take it before, or do not divide it")
				}
			}
			c.operands[from+i] = at(s)
		}
		c.results[0] = at(output)
		return nil
	}
	d := Of(o)
	sparse := 0
	for _, v := range o.Operands {
		if asTensor(v.Type).Format != nil {
			sparse++
		}
	}
	switch name := strings.TrimPrefix(o.Name, Prefix); {
	case (name == "einsum" || name == "matmul") && sparse == 1 && asTensor(o.Results[0].Type).Format == nil:
		eq, err := EquationOf(o)
		if err != nil {
			return nil, problem("DM120", -1, "%s", err)
		}
		return c, letters(eq.Inputs, 0, eq.Output, eq.Inputs[slices.Index(o.Operands, first)])
	case name == "sample" && sparse == 1:
		eq, p := SampleEquation(o)
		if p != nil {
			return nil, p
		}
		c.operands[0] = dims
		return c, letters(eq.Inputs, 1, eq.Output, eq.Output)
	case name == "softmax":
		if along, _ := Dim(o, "dim", t.Rank()); along == dims.outer || along == dims.inner {
			return nil, problem("DM134", 0, "a softmax along the dimension that devices divide needs all of its pieces").help("divide the other dimension, or none")
		}
		c.operands[0], c.results[0] = dims, dims
		return c, nil
	case name == "reduce" || name == "mean":
		reduced, _ := reducedDims(o)
		whole := dims
		for _, d := range []*int{&whole.outer, &whole.inner} {
			if *d >= 0 && slices.Contains(reduced, *d) {
				if name != "reduce" || Str(o, "kind") != "add" {
					return nil, problem("DM134", 0, "of the dimension that devices divide only a sum is taken, not %s", o.Name).help("divide the other dimension, or none")
				}
				*d = -1
			}
		}
		c.operands[0], c.results[0] = dims, whole
		if !Bool(o, "keep_dims") {
			for _, d := range []*int{&c.results[0].outer, &c.results[0].inner} {
				from := *d
				for _, k := range reduced {
					if k < from {
						*d--
					}
				}
			}
		}
		return c, nil
	case name == "convert_format" && asTensor(o.Results[0].Type).Format == nil:
		c.operands[0], c.results[0] = dims, dims
		return c, nil
	case d.Is(Pointwise) && (sparse == 1 || d.Sparse.Keeps != nil && d.Sparse.Keeps(o, SamePattern)):
		for i, v := range o.Operands {
			s := asTensor(v.Type)
			for _, d := range []struct {
				of int
				to *int
			}{{dims.outer, &c.operands[i].outer}, {dims.inner, &c.operands[i].inner}} {
				if k := d.of - (t.Rank() - s.Rank()); d.of >= 0 && k >= 0 && (s.Format != nil || !isOne(s.Shape[k])) {
					*d.to = k
				}
			}
		}
		for i := range c.results {
			c.results[i] = dims
		}
		return c, nil
	}
	return nil, problem("DM134", slices.Index(o.Operands, first), "%s has no form for sparse tensors that devices divide", o.Name).
		help("divide products with dense operands, dm.sample, dm.softmax in rows, sums and ops of elements; or take the sharding away")
}

// needsRows is why o has no form for pieces with equally many entries of first, of which two may have entries of one row: what it gives
// is neither a sum of what it gives for pieces, nor an element for each entry.
func needsRows(o *ir.Op, first *ir.Value) *Problem {
	sparse := 0
	for _, v := range o.Operands {
		if asTensor(v.Type).Format != nil {
			sparse++
		}
	}
	d, dense := Of(o), asTensor(o.Results[0].Type).Format == nil
	switch name := strings.TrimPrefix(o.Name, Prefix); {
	case (name == "einsum" || name == "matmul") && sparse == 1 && dense,
		name == "sample" && sparse == 1,
		name == "reduce" && Str(o, "kind") == "add", name == "mean",
		name == "convert_format" && dense,
		d.Is(Pointwise) && (sparse == 1 || d.Sparse.Keeps != nil && d.Sparse.Keeps(o, SamePattern)):
		return nil
	}
	return problem("DM134", slices.Index(o.Operands, first), "%s has no form for entries that devices divide: two may have some of one row", o.Name).
		help("divide rows, without " + DivideByAttr)
}

// lowerPieces is LowerSparse of o, of which an operand is in pieces.
func lowerPieces(b *ir.Builder, o *ir.Op, in [][]*ir.Value) ([][]*ir.Value, *Problem) {
	c, p := cuts(o)
	if p != nil {
		return nil, p
	}
	t := asTensor(pieced(o).Type)
	each, ok := t.Format.Cut(t.Shape)
	if !ok {
		return nil, problem("DM134", -1, "a size of %s that devices divide is no number", t).help("bind the symbol")
	}
	// The op of one piece.
	one := *o
	one.Operands, one.Results = nil, nil
	size := cutDims{t.Format.Outermost(), t.Format.Innermost(t.Rank())}
	own := func(v *ir.Value, d cutDims) *ir.Value {
		s := *asTensor(v.Type)
		if s.Format != nil {
			s = *s.Piece()
		} else if d.isCut() {
			s.Shape = slices.Clone(s.Shape)
			if d.outer >= 0 {
				s.Shape[d.outer] = each[size.outer]
			}
			if d.inner >= 0 {
				s.Shape[d.inner] = each[size.inner]
			}
		}
		s.At.Shard = nil
		return &ir.Value{Name: v.Name, Type: &s, Span: v.Span}
	}
	pieces := make([][]*ir.Value, len(o.Operands))
	w := &inPieces{NewBuilder(b, nil), t.Format.Pieces, dim.Const(t.Format.Pieces.Count()), map[*ir.Value]*ir.Value{}, map[*ir.Value]bool{}}
	for i, v := range o.Operands {
		x := own(v, c.operands[i])
		one.Operands = append(one.Operands, x)
		pieces[i] = Parts(x)
		for k, part := range pieces[i] {
			from := in[i][k]
			if s := asTensor(v.Type); s.Format == nil && c.operands[i].isCut() {
				from = w.inFront(from, c.operands[i], asTensor(part.Type).Shape)
			}
			w.of[part] = from
			w.batched[from] = asTensor(v.Type).Format != nil || c.operands[i].isCut()
		}
	}
	for i, v := range o.Results {
		r := own(v, c.results[i])
		r.Op, r.Index = &one, i
		one.Results = append(one.Results, r)
	}
	block := &ir.Builder{Block: &ir.Block{}, At: o, Loose: true}
	outs, p := lowerWhole(block, &one, pieces, o, false)
	if p == nil {
		p = w.all(block.Block.Ops)
	}
	if p != nil {
		w.Undo()
		return nil, p
	}
	results := make([][]*ir.Value, len(o.Results))
	for i, vs := range outs {
		s := asTensor(o.Results[i].Type)
		for _, v := range vs {
			x := w.value(v)
			switch {
			case s.Format != nil:
				x = w.repeated(x)
			case c.results[i].isCut() || w.batched[x]:
				x = w.joined(w.repeated(x), c.results[i], s.Shape)
			}
			results[i] = append(results[i], x)
		}
	}
	if err := w.Err(); err != nil {
		w.Undo()
		return nil, problem("DM134", -1, "%s cannot be written out for these formats in pieces: %s", o.Name, err).help("take the sharding away")
	}
	return results, nil
}

// inPieces writes ops of one piece as those of all of them.
type inPieces struct {
	*Builder
	grid    types.Pieces
	pieces  dim.Dim                 // how many
	of      map[*ir.Value]*ir.Value // of a value of one piece that of all, or one that all share
	batched map[*ir.Value]bool      // which of the latter have the pieces as their first dimension
}

// along is the dimensions of d that are cut, those of the outermost level first, and in how many parts.
func (w *inPieces) along(d cutDims) (dims []int, parts []dim.Dim) {
	if d.outer >= 0 {
		dims, parts = append(dims, d.outer), append(parts, dim.Const(w.grid.Outer))
	}
	if d.inner >= 0 {
		dims, parts = append(dims, d.inner), append(parts, dim.Const(w.grid.Inner))
	}
	return dims, parts
}

// inFront is x, which d cuts into pieces of shape each, with the pieces as the first dimension.
func (w *inPieces) inFront(x *ir.Value, d cutDims, each []dim.Dim) *ir.Value {
	t := asTensor(x.Type)
	dims, parts := w.along(d)
	high, padded := make([]int, t.Rank()), false
	for i, k := range dims {
		have, ok := t.Shape[k].Int()
		n, _ := parts[i].Int()
		size, _ := each[k].Int()
		if !ok {
			w.failed, w.reason = true, "the size "+t.Shape[k].String()+" is no number"
			return x
		}
		high[k] = int(n*size - have)
		padded = padded || high[k] > 0
	}
	if padded {
		x = w.Value("pad", []*ir.Value{x, w.Splat(&types.Tensor{Elem: t.Elem}, 0)}, []types.Named{{Name: "low", Value: IntList(make([]int, t.Rank())...)}, {Name: "high", Value: IntList(high...)}})
	}
	var split []dim.Dim
	first := make([]int, len(dims)) // where the parts stand in split
	var rest []int
	for k := range t.Rank() {
		if i := slices.Index(dims, k); i >= 0 {
			first[i] = len(split)
			split = append(split, parts[i])
		}
		rest = append(rest, len(split))
		split = append(split, each[k])
	}
	x = w.Transpose(w.Reshape(x, split...), append(first, rest...)...)
	if w.grid.Inner == 0 {
		return x
	}
	if len(dims) == 1 { // pieces beside each other along the other dimension have the same
		one, both := []dim.Dim{parts[0], dim.Const(1)}, []dim.Dim{dim.Const(w.grid.Outer), dim.Const(w.grid.Inner)}
		if d.outer < 0 {
			slices.Reverse(one)
		}
		x = w.Reshape(x, append(one, each...)...)
		x = w.Value("broadcast", []*ir.Value{x}, nil, t.With(append(both, each...)...))
	}
	return w.Reshape(x, append([]dim.Dim{w.pieces}, each...)...)
}

// joined is the inverse of inFront, without padding, and with the sum along what d does not cut.
func (w *inPieces) joined(x *ir.Value, d cutDims, shape []dim.Dim) *ir.Value {
	each := asTensor(x.Type).Shape[1:]
	dims, parts := w.along(d)
	var sums []int
	if w.grid.Inner > 0 {
		x = w.Reshape(x, append([]dim.Dim{dim.Const(w.grid.Outer), dim.Const(w.grid.Inner)}, each...)...)
		if d.inner < 0 {
			sums = append(sums, 1)
		}
	}
	if d.outer < 0 {
		sums = append([]int{0}, sums...)
	}
	if len(sums) > 0 {
		x = w.Value("reduce", []*ir.Value{x}, append(named("kind", types.Keyword("add")), named("dims", IntList(sums...))...))
	}
	if len(dims) == 0 {
		return x
	}
	var order []int
	whole, padded := slices.Clone(shape), false
	for k := range each {
		if i := slices.Index(dims, k); i >= 0 {
			order = append(order, i)
			whole[k] = parts[i].Mul(each[k])
			padded = padded || !whole[k].Equal(shape[k])
		}
		order = append(order, len(dims)+k)
	}
	x = w.Reshape(w.Transpose(x, order...), whole...)
	if padded {
		var high, low, strides []int
		for _, k := range dims {
			n, _ := shape[k].Int()
			high, low, strides = append(high, int(n)), append(low, 0), append(strides, 1)
		}
		x = w.part(x, dims, low, high, strides)
	}
	return x
}

func (w *inPieces) value(v *ir.Value) *ir.Value {
	if x := w.of[v]; x != nil {
		return x
	}
	return v
}

// repeated is x with the pieces as its first dimension.
func (w *inPieces) repeated(x *ir.Value) *ir.Value {
	if w.batched[x] {
		return x
	}
	t := asTensor(x.Type)
	y := w.Reshape(x, append([]dim.Dim{dim.Const(1)}, t.Shape...)...)
	y = w.Value("broadcast", []*ir.Value{y}, nil, t.With(append([]dim.Dim{w.pieces}, t.Shape...)...))
	w.batched[y] = true
	return y
}

// all writes ops.
func (w *inPieces) all(ops []*ir.Op) *Problem {
	for _, p := range ops {
		if err := w.op(p); err != nil || w.failed {
			if err == nil {
				err = problem("DM134", -1, "%s, of which the op consists, cannot be written out in pieces: %s", p.Name, w.reason).help("take the sharding away")
			}
			return err
		}
	}
	return nil
}

// op writes p.
func (w *inPieces) op(p *ir.Op) *Problem {
	operands, any := make([]*ir.Value, len(p.Operands)), false
	for i, v := range p.Operands {
		operands[i] = w.value(v)
		any = any || w.batched[operands[i]]
	}
	attrs := slices.Clone(p.Attrs)
	ts := ir.Types(p.Results)
	if any {
		for i, t := range ts {
			ts[i] = asTensor(t).With(append([]dim.Dim{w.pieces}, asTensor(t).Shape...)...)
		}
		var bad *Problem
		if operands, attrs, bad = w.form(p, operands, attrs); bad != nil {
			return bad
		}
		if along, batched := w.behind(p); batched { // the pieces stand behind the dimensions before the one that is indexed
			x := w.Value(p.Name, operands, attrs)
			order := []int{along}
			for i := range asTensor(x.Type).Rank() {
				if i != along {
					order = append(order, i)
				}
			}
			x = w.Transpose(x, order...)
			w.of[p.Results[0]], w.batched[x] = x, true
			return nil
		}
	}
	made := w.Make(p.Name, operands, attrs, ts...)
	if made == nil {
		return nil
	}
	for i, r := range p.Results {
		w.of[r] = made.Results[i]
		w.batched[made.Results[i]] = any
	}
	return nil
}

// behind reports whether p is a dm.gather from a table that all pieces share along a dimension behind others, and which.
func (w *inPieces) behind(p *ir.Op) (along int, is bool) {
	if p.Name != Prefix+"gather" || w.batched[w.value(p.Operands[0])] {
		return 0, false
	}
	d, _ := Dim(p, "dim", in(p, 0).Rank())
	return d, d > 0 && Int(p, "batch_dims") == 0
}

// form is the operands and attributes of p where some operands have the pieces in front.
func (w *inPieces) form(p *ir.Op, operands []*ir.Value, attrs []types.Named) ([]*ir.Value, []types.Named, *Problem) {
	set := func(name string, value types.Attr) {
		attrs = slices.DeleteFunc(attrs, func(a types.Named) bool { return a.Name == name })
		attrs = append(attrs, types.Named{Name: name, Value: value})
	}
	rank := func(i int) int { return asTensor(p.Operands[i].Type).Rank() }
	moved := func(name string) { // the dimension that an attribute names
		d, _ := Dim(p, name, rank(0))
		set(name, intAttr(d+1))
	}
	every := func() {
		for i := range operands {
			operands[i] = w.repeated(operands[i])
		}
	}
	listed := func(name string, of []int, front ...int) {
		set(name, IntList(append(front, of...)...))
	}
	behind := func(dims []int) []int {
		out := slices.Clone(dims)
		for i := range out {
			out[i]++
		}
		return out
	}
	aligned := func(most int) { // trailing dimensions are those that are aligned
		for i, v := range operands {
			if t := asTensor(v.Type); w.batched[v] && t.Rank()-1 < most {
				shape := append([]dim.Dim{t.Shape[0]}, slices.Repeat([]dim.Dim{dim.Const(1)}, most-t.Rank()+1)...)
				operands[i] = w.Reshape(v, append(shape, t.Shape[1:]...)...)
			}
		}
	}
	d := Of(p)
	switch name := strings.TrimPrefix(p.Name, Prefix); {
	case name == "reshape":
	case name == "broadcast" && Attr(p, "dims") == nil:
		aligned(out(p, 0).Rank())
	case name == "transpose":
		dims, _ := Dims(p, "dims", rank(0))
		listed("dims", behind(dims), 0)
	case name == "reduce" && len(operands) == 1 && len(p.Regions) == 0:
		dims, _ := reducedDims(p)
		listed("dims", behind(dims))
	case name == "slice" && Attr(p, "dims") != nil:
		dims, _ := Dims(p, "dims", rank(0))
		listed("dims", behind(dims))
	case name == "pad":
		for _, list := range []string{"low", "high", "interior"} {
			if a, ok := Attr(p, list).(types.Array); ok {
				set(list, append(types.Array{intAttr(0)}, a...))
			}
		}
	case name == "concatenate":
		every()
		moved("dim")
	case name == "dynamic_slice" && !slices.ContainsFunc(operands[1:], func(v *ir.Value) bool { return w.batched[v] }):
		start := w.Splat(asTensor(operands[1].Type), 0)
		operands = slices.Insert(operands, 1, start)
		sizes, _ := Attr(p, "slice_sizes").(types.Array)
		set("slice_sizes", append(types.Array{intAttr(-1)}, sizes...))
	case name == "einsum":
		text := strings.ReplaceAll(Str(p, "equation"), " ", "")
		left, output, _ := strings.Cut(text, "->")
		letter := "Z"
		for c := 'A'; c <= 'Z'; c++ {
			if !strings.ContainsRune(text, c) {
				letter = string(c)
				break
			}
		}
		terms := strings.Split(left, ",")
		for i := range terms {
			if w.batched[operands[i]] {
				terms[i] = letter + terms[i]
			}
		}
		set("equation", types.Str(strings.Join(terms, ",")+"->"+letter+output))
	case name == "gather":
		table, at := w.batched[operands[0]], w.batched[operands[1]]
		batch := Int(p, "batch_dims")
		switch {
		case table && at || batch > 0:
			every()
			moved("dim")
			set("batch_dims", types.Int{V: batch + 1})
		case table:
			moved("dim")
		}
	case name == "scatter":
		every()
		moved("dim")
		set("batch_dims", types.Int{V: Int(p, "batch_dims") + 1})
	case name == "segment_reduce" || name == "segment_ids":
		if w.batched[last(operands)] {
			every()
			set("batch_dims", types.Int{V: Int(p, "batch_dims") + 1})
		}
		if name == "segment_reduce" {
			moved("dim")
		}
	case d != nil && d.Is(Pointwise) && len(p.Regions) == 0:
		most := 0
		for i := range operands {
			most = max(most, rank(i))
		}
		aligned(most)
	default:
		return nil, nil, problem("DM134", -1, "%s, of which the op consists, has no form in pieces", p.Name).help("take the sharding away")
	}
	return operands, attrs, nil
}
