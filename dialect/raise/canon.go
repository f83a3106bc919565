package raise

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// reader turns values into terms. Its work is bounded: it gives up behind maxVisits
// values.
type reader struct {
	leaves  []*ir.Value
	ids     map[*ir.Value]int
	memo    map[string]*term
	seen    map[*ir.Op]bool // ops of the program that the term is made of
	elem    types.Elem      // every value on the way has at least its precision
	finite  bool            // maxima are finite: infinite ones are not replaced
	softmax bool            // terms are made of softmax as well
	narrow  bool            // a sum or a square is rounded to f16, whose range it may leave
	visits  int
	// indices are the axes that stand for the elements of a value.
	indices map[string]int
}

const maxVisits = 96

func newReader(elem types.Elem, leaves []*ir.Value) *reader {
	return &reader{leaves: leaves, ids: map[*ir.Value]int{}, memo: map[string]*term{}, seen: map[*ir.Op]bool{}, elem: elem, indices: map[string]int{}}
}

// leavesOf are the values that a composite of operands vs is computed from.
func leavesOf(vs []*ir.Value) []*ir.Value {
	leaves := make([]*ir.Value, len(vs))
	for i, v := range vs {
		leaves[i] = base(v)
	}
	return leaves
}

// axes are the index of each dimension of a value: an axis of the result or of a
// reduction, -1 where the size is 1.
type axes []int

// whole are the axes of a result.
func whole(t *types.Tensor) axes {
	at := make(axes, t.Rank())
	for i := range at {
		if at[i] = i; isOne(t, i) {
			at[i] = -1
		}
	}
	return at
}

func isOne(t *types.Tensor, d int) bool {
	n, ok := t.Shape[d].Int()
	return ok && n == 1
}

// view gives the axes of the operand of an op that only arranges elements.
func view(o *ir.Op, at axes) (axes, bool) {
	x, y := o.In(0), o.Out(0)
	if x == nil || y == nil || len(at) != y.Rank() {
		return nil, false
	}
	in := make(axes, x.Rank())
	switch o.Name {
	case "dm.copy", "dm.stop_gradient":
		return at, true
	case "dm.transpose":
		dims, ok := op.Dims(o, "dims", x.Rank())
		if !ok || len(dims) != x.Rank() {
			return nil, false
		}
		for i, d := range dims {
			in[d] = at[i]
		}
		return in, true
	case "dm.broadcast":
		dims, p := op.BroadcastDims(o)
		if p != nil {
			return nil, false
		}
		for i, d := range dims {
			if in[i] = at[d]; isOne(x, i) {
				in[i] = -1
			}
		}
		return in, true
	case "dm.reshape":
		j := 0
		for i := range in {
			if in[i] = -1; isOne(x, i) {
				continue
			}
			for j < y.Rank() && isOne(y, j) {
				j++
			}
			if j == y.Rank() || !x.Shape[i].Equal(y.Shape[j]) {
				return nil, false
			}
			in[i] = at[j]
			j++
		}
		for ; j < y.Rank(); j++ {
			if !isOne(y, j) {
				return nil, false
			}
		}
		return in, true
	}
	return nil, false
}

// base is the value that v arranges.
func base(v *ir.Value) *ir.Value {
	for range 16 {
		if v.Op == nil || v.Tensor() == nil || !op.Valid(v.Op) || len(v.Op.Operands) != 1 || len(v.Op.Regions) > 0 {
			break
		}
		if _, ok := view(v.Op, whole(v.Tensor())); !ok {
			break
		}
		v = v.Op.Operands[0]
	}
	return v
}

func plain(v *ir.Value) bool {
	t := v.Tensor()
	return t != nil && t.At.Default() && t.Enc == ""
}

// term is v at an index; nil where it cannot be told.
func (r *reader) term(v *ir.Value, at axes) *term {
	if r.visits++; r.visits > maxVisits || !plain(v) || len(at) != v.Tensor().Rank() {
		return nil
	}
	if slices.Contains(r.leaves, v) {
		return r.leaf(v, at)
	}
	o := v.Op
	if o == nil || len(o.Results) != 1 || !op.Valid(o) {
		return r.leaf(v, at)
	}
	var key strings.Builder
	key.WriteString(strconv.Itoa(r.id(v)))
	writeAxes(&key, at)
	if t, known := r.memo[key.String()]; known {
		return t
	}
	t := r.of(o, v, at)
	if t != nil && len(t.key) > maxKey {
		t = nil
	}
	r.memo[key.String()] = t
	return t
}

func (r *reader) id(v *ir.Value) int {
	n, ok := r.ids[v]
	if !ok {
		n = len(r.ids)
		r.ids[v] = n
	}
	return n
}

// closed reports whether o is computed from the leaves and numbers alone, by at most
// most ops that compute: a check without terms, which most wrong guesses fail.
func closed(o *ir.Op, leaves []*ir.Value, most int) bool {
	seen := map[*ir.Op]bool{o: true}
	queue := []*ir.Op{o}
	for i := 0; i < len(queue); i++ {
		if op.Of(queue[i]).Class != op.ClassMovement {
			most--
		}
		if most < 0 || i > maxVisits {
			return false
		}
		for _, v := range queue[i].Operands {
			p := v.Op
			switch {
			case slices.Contains(leaves, v) || p != nil && seen[p]:
			case p == nil || len(p.Results) != 1 || len(p.Regions) > 0 || op.Of(p) == nil:
				return false
			default:
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return true
}

func writeAxes(b *strings.Builder, at axes) {
	for _, a := range at {
		b.WriteByte(',')
		b.WriteString(strconv.Itoa(a))
	}
}

func (r *reader) leaf(v *ir.Value, at axes) *term {
	var b strings.Builder
	b.WriteString(strconv.Itoa(r.id(v)))
	writeAxes(&b, at)
	return newTerm(leaf, b.String(), 0, nil, nil)
}

func (r *reader) of(o *ir.Op, v *ir.Value, at axes) *term {
	d := op.Of(o)
	if d == nil || len(o.Regions) > 0 || op.HasEffect(o) {
		return r.leaf(v, at)
	}
	if o.Name == op.Constant {
		n, ok := splat(o)
		if !ok {
			return r.leaf(v, at)
		}
		return number(n)
	}
	if v.Elem().IsFloat() && !within(r.elem, v.Elem()) {
		return r.leaf(v, at)
	}
	if in, ok := view(o, at); ok {
		r.seen[o] = true
		return r.term(o.Operands[0], in)
	}
	name := strings.TrimPrefix(o.Name, op.Prefix)
	switch {
	case name == "iota" && op.Float(o, "start") == 0 && op.Float(o, "step") == 1:
		d, ok := op.Dim(o, "dim", len(at))
		if !ok {
			return r.leaf(v, at)
		}
		return newTerm(leaf, "iota,"+strconv.Itoa(at[d]), 0, nil, nil)
	case name == "convert" && o.Operands[0].Elem() == types.I1 && v.Elem().IsFloat():
		t := r.term(o.Operands[0], at)
		if t == nil {
			return nil
		}
		r.seen[o] = true
		return newTerm(function, "convert", 0, []*term{t}, nil)
	case name == "convert":
		if !o.Operands[0].Elem().IsFloat() || !v.Elem().IsFloat() {
			if n, is := numberOf(v); is {
				return number(n)
			}
			return r.leaf(v, at)
		}
		r.seen[o] = true
		return r.term(o.Operands[0], at)
	case name == "reduce":
		return r.reduce(o, v, at)
	case name == "gather":
		return r.gather(o, v, at)
	case d.Expand != nil && len(o.Operands) == 1 && (d.Is(op.Pointwise) || statistics[name] || r.softmax && name == "softmax"):
		b := &ir.Builder{Block: &ir.Block{}, At: o, Loose: true}
		vs := d.Expand(b, o)
		if len(vs) != 1 {
			return r.leaf(v, at)
		}
		r.seen[o] = true
		return r.term(vs[0], at)
	case d.Is(op.Pointwise) && !d.Is(op.Random) && len(o.Operands) > 0:
		return r.pointwise(o, v, name, at)
	}
	return r.leaf(v, at)
}

// statistics are the composites of rows that terms are made of, beside those of elements.
var statistics = map[string]bool{"mean": true, "variance": true, "logsumexp": true, "log_softmax": true}

// gather is the term of o's operand with the index in place of the axis it takes from. So
// a gather of a formula is the formula of gathers.
func (r *reader) gather(o *ir.Op, v *ir.Value, at axes) *term {
	x, idx := o.In(0), o.Operands[1]
	d, ok := op.Dim(o, "dim", x.Rank())
	batch := int(op.Int(o, "batch_dims"))
	if !ok || !v.Elem().IsFloat() {
		return r.leaf(v, at)
	}
	more := idx.Tensor().Rank() - batch // dimensions of the indices in place of d
	of := slices.Concat(at[:batch], at[d:d+more])
	for idx.Op != nil && !slices.Contains(r.leaves, idx) && op.Valid(idx.Op) && len(idx.Op.Operands) == 1 {
		in, ok := view(idx.Op, of)
		if !ok {
			break
		}
		idx, of = idx.Op.Operands[0], in
	}
	index := -1
	if !isOne(x, d) {
		index = r.index(idx, of)
	}
	r.seen[o] = true
	return r.term(o.Operands[0], slices.Concat(at[:d], axes{index}, at[d+more:]))
}

// index is the axis that stands for the elements of v.
func (r *reader) index(v *ir.Value, at axes) int {
	key := r.leaf(v, at).key
	n, known := r.indices[key]
	if !known {
		n = firstIndex + len(r.indices)
		r.indices[key] = n
	}
	return n
}

// Axes from firstReduced on are of reductions, those from firstIndex on of indices.
const (
	firstReduced = 1000
	firstIndex   = 2000
)

// within reports whether every value of a is one of b.
func within(a, b types.Elem) bool {
	switch b {
	case a, types.F64:
		return true
	case types.F32:
		return a == types.F16 || a == types.BF16
	}
	return false
}

// splat is the one number of a constant, as it is written.
func splat(o *ir.Op) (float64, bool) {
	d, ok := op.Attr(o, "value").(*types.Dense)
	if !ok || d.Len() != 1 {
		return 0, false
	}
	if !d.Elem.IsFloat() {
		return float64(d.Int(0)), d.Elem != types.I1
	}
	return d.Float(0), true
}

func (r *reader) reduce(o *ir.Op, v *ir.Value, at axes) *term {
	x := o.In(0)
	kind := op.Str(o, "kind")
	dims, ok := op.Dims(o, "dims", x.Rank())
	if op.Attr(o, "dims") == nil {
		dims, ok = nil, true
		for d := range x.Rank() {
			dims = append(dims, d)
		}
	}
	if !ok || len(o.Operands) != 1 || op.Str(o, "accumulate") == "f16" || !x.Elem.IsFloat() || kind != "add" && kind != "max" {
		return r.leaf(v, at)
	}
	used := slices.Clone(at)
	fresh := func() int {
		n := firstReduced
		for slices.Contains(used, n) {
			n++
		}
		used = append(used, n)
		return n
	}
	in := make(axes, 0, x.Rank())
	var over strings.Builder
	size, rest := 1.0, 0
	for d := range x.Rank() {
		if slices.Contains(dims, d) {
			if op.Bool(o, "keep_dims") {
				rest++
			}
			if isOne(x, d) {
				in = append(in, -1)
				continue
			}
			n, known := x.Shape[d].Int()
			if !known {
				n = 0
			}
			size *= float64(n)
			a := fresh()
			over.WriteString(" " + strconv.Itoa(a) + ":" + x.Shape[d].String())
			in = append(in, a)
			continue
		}
		in = append(in, at[rest])
		rest++
	}
	if v.Elem() == types.F16 && kind == "add" {
		r.narrow = true
	}
	r.seen[o] = true
	t := r.term(o.Operands[0], in)
	if t == nil || over.Len() == 0 {
		return t
	}
	return reduced(kind, over.String(), size, t)
}

func (r *reader) pointwise(o *ir.Op, v *ir.Value, name string, at axes) *term {
	y := v.Tensor()
	args := make([]*term, len(o.Operands))
	for i, x := range o.Operands {
		t := x.Tensor()
		if t == nil {
			return r.leaf(v, at)
		}
		in := slices.Clone(at[len(at)-t.Rank():])
		for d := range in {
			if isOne(t, d) {
				in[d] = -1
			}
		}
		if args[i] = r.term(x, in); args[i] == nil {
			return nil
		}
	}
	if !y.Elem.IsFloat() && y.Elem != types.I1 {
		return r.leaf(v, at)
	}
	r.seen[o] = true
	if v.Elem() == types.F16 && (name == "mul" && o.Operands[0] == o.Operands[1] || name == "pow") {
		r.narrow = true
	}
	switch name {
	case "add":
		if y.Elem.IsFloat() {
			return add(args...)
		}
	case "sub":
		return add(args[0], times(-1, args[1]))
	case "neg":
		return times(-1, args[0])
	case "mul":
		if y.Elem.IsFloat() {
			return mul(args...)
		}
	case "div":
		return mul(args[0], power(args[1], -2))
	case "sqrt":
		return power(args[0], 1)
	case "rsqrt":
		return power(power(args[0], 1), -2)
	case "pow":
		if n, is := args[1].isNumber(); is && n != 0 && 2*n == math.Trunc(2*n) && math.Abs(n) <= 4 {
			if n < 0 {
				return power(power(args[0], int(-2*n)), -2)
			}
			return power(args[0], int(2*n))
		}
	case "select":
		t := choose(args[0], args[1], args[2])
		if r.finite && t.kind == function && t.name == "finite" && t.args[0].kind == reduction {
			return t.args[0]
		}
		return t
	case "compare":
		if d := op.Str(o, "direction"); (d == "eq" || d == "ne") && compareTerms(args[0], args[1]) > 0 {
			args[0], args[1] = args[1], args[0]
		}
		return newTerm(function, "compare "+op.Str(o, "direction"), 0, args, nil)
	}
	if len(o.Attrs) > 0 {
		for _, a := range o.Attrs {
			name += " " + a.Name + "=" + a.Value.String()
		}
	}
	if len(args) == 1 || name == "max" && len(args) == 2 {
		return apply(name, args...)
	}
	return newTerm(function, name, 0, args, nil)
}
