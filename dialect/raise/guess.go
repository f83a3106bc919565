package raise

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// guess is a composite that a value may be.
type guess struct {
	name     string
	operands []*ir.Value // those behind the first one may have further dimensions of size 1
	shapes   [][]dim.Dim // of these
	attrs    []types.Named
	implied  []types.Named                              // more of them for the proof, that mean here what their defaults do
	result   types.Type                                 // where the operands do not tell
	wide     bool                                       // it sums what f16 may not hold, and does not where f16 does
	finite   bool                                       // maxima are taken as finite
	also     []*ir.Value                                // leaves of what then builds
	then     func(b *op.Builder, v *ir.Value) *ir.Value // what is computed from the composite; nil for nothing
}

// roots are the ops in which a composite ends.
var roots = map[string]bool{
	"dm.add": true, "dm.sub": true, "dm.mul": true, "dm.div": true, "dm.convert": true, "dm.max": true,
	"dm.gather": true, "dm.select": true, "dm.neg": true, "dm.mean": true, "dm.reduce": true,
}

// build makes the op at b; nil where the registry knows none such.
func (g *guess) build(b *op.Builder) *ir.Op {
	operands := slices.Clone(g.operands)
	for i, shape := range g.shapes {
		operands[i+1] = b.Reshape(base(operands[i+1]), shape...)
	}
	all := slices.Concat(g.attrs, g.implied)
	if g.result != nil {
		return b.Make(g.name, operands, all, g.result)
	}
	return b.Make(g.name, operands, all)
}

// end is what is computed from v, the composite.
func (g *guess) end(b *op.Builder, v *ir.Value) *ir.Value {
	if g.then == nil {
		return v
	}
	return g.then(b, v)
}

// maxNear bounds the ops near a root, maxCandidates the values that are tried in
// one place of a composite.
const (
	maxNear       = 40
	maxCandidates = 8
)

// near is what stands before an op, by what guesses are made of.
type near struct {
	root               *ir.Op // before it was converted
	exps, sums, maxima []*ir.Op
	bells, subs        []*ir.Op // erf, erfc and tanh; differences
	factors            []*ir.Value
	epsilons           []float64
	given              []*ir.Value // variances that an epsilon is added to
}

// rootOf is o before it was converted.
func rootOf(o *ir.Op) *ir.Op {
	for o.Name == "dm.convert" && o.Operands[0].Op != nil {
		o = o.Operands[0].Op
	}
	return o
}

func look(o, root *ir.Op) *near {
	n := &near{root: root}
	seen := map[*ir.Op]bool{o: true}
	queue := []*ir.Op{o}
	for i := 0; i < len(queue); i++ {
		p := queue[i]
		switch p.Name {
		case "dm.exp", "dm.logistic":
			n.exps = append(n.exps, p)
		case "dm.erf", "dm.erfc", "dm.tanh":
			n.bells = append(n.bells, p)
		case "dm.sub":
			n.subs = append(n.subs, p)
		case "dm.mul", "dm.div":
			n.factors = append(n.factors, p.Operands...)
		case "dm.reduce", "dm.mean", "dm.variance":
			if p.Name == "dm.reduce" && op.Str(p, "kind") == "max" {
				n.maxima = append(n.maxima, p)
			} else {
				n.sums = append(n.sums, p)
			}
		case "dm.rsqrt", "dm.sqrt", "dm.pow":
			if s := base(p.Operands[0]).Op; s != nil && s.Name == "dm.add" {
				for j := range 2 {
					if v, ok := numberOf(s.Operands[j]); ok {
						n.epsilons = append(n.epsilons, v)
						n.given = append(n.given, s.Operands[1-j])
					}
				}
			} else if p.Name != "dm.pow" {
				n.epsilons = append(n.epsilons, 0)
			}
		}
		for _, v := range p.Operands {
			q := v.Op
			if q == nil || seen[q] || len(queue) == maxNear || len(q.Results) != 1 || len(q.Regions) > 0 {
				continue
			}
			d := op.Of(q)
			if _, isView := view(q, whole(&types.Tensor{Shape: shapeOf(v)})); !isView && !d.Is(op.Pointwise) && q.Name != "dm.reduce" && q.Name != "dm.mean" && q.Name != "dm.variance" {
				continue
			}
			seen[q] = true
			queue = append(queue, q)
		}
	}
	return n
}

func shapeOf(v *ir.Value) []dim.Dim {
	if t := v.Tensor(); t != nil {
		return t.Shape
	}
	return nil
}

// unconverted is v before it was converted or arranged.
func unconverted(v *ir.Value) *ir.Value {
	for range 8 {
		v = base(v)
		if v.Op == nil || v.Op.Name != "dm.convert" || !v.Op.Operands[0].Elem().IsFloat() {
			break
		}
		v = v.Op.Operands[0]
	}
	return v
}

// numberOf is the number that all elements of v are, if that is written.
func numberOf(v *ir.Value) (float64, bool) {
	v = unconverted(v)
	if v.Op != nil && v.Op.Name == "dm.convert" { // of an integer
		v = base(v.Op.Operands[0])
	}
	if v.Op == nil || v.Op.Name != op.Constant {
		return 0, false
	}
	n, ok := splat(v.Op)
	if ok && v.Elem().IsFloat() { // the decimal that was meant
		n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'g', -1, bitsOf(v.Elem())), 64)
	}
	return n, ok
}

func bitsOf(e types.Elem) int {
	if e == types.F64 {
		return 64
	}
	return 32
}

// like are the values among vs, and those that they are converted from, of type t;
// each once.
func like(t types.Type, vs ...*ir.Value) (out []*ir.Value) {
	for _, v := range vs {
		for range 4 {
			if types.Equal(v.Type, t) && !slices.Contains(out, v) && len(out) < maxCandidates {
				out = append(out, v)
			}
			if v.Op == nil || len(v.Op.Operands) != 1 || v.Op.Name != "dm.convert" && base(v) == v {
				break
			}
			v = v.Op.Operands[0]
		}
	}
	return out
}

// guesses are the composites that o may end.
func guesses(o *ir.Op) (out []*guess) {
	if o.Name == "dm.convert" && o.Operands[0].Elem() == types.I1 {
		return oneHot(o)
	}
	t, root := o.Results[0].Type, rootOf(o)
	last := strings.TrimPrefix(root.Name, op.Prefix)
	if last == "neg" || last == "mean" || last == "reduce" {
		return losses(o)
	}
	n := look(o, root)
	if last == "max" || last == "select" {
		return n.statistics(t)
	}
	out = losses(o)
	switch last {
	case "sub":
		return append(out, n.softmaxes(t, "log_softmax")...)
	case "add":
		out = append(out, n.logsumexps(t)...)
	default:
		out = append(out, n.softmaxes(t, "softmax")...)
	}
	if len(n.epsilons) > 0 {
		out = append(out, n.norms(t)...)
	}
	out = append(out, n.functions(t)...)
	return append(out, n.statistics(t)...)
}

func (n *near) softmaxes(t types.Type, name string) (out []*guess) {
	if len(n.exps) > 0 && len(n.maxima) > 0 {
		var xs []*ir.Value
		for _, m := range n.maxima {
			xs = append(xs, m.Operands[0])
		}
		for _, s := range n.subs {
			xs = append(xs, s.Operands[0])
		}
		for _, x := range like(t, xs...) {
			for d := range x.Tensor().Rank() {
				out = append(out, &guess{name: name, operands: []*ir.Value{x}, attrs: attrs("dim", types.Int{V: int64(d)})})
			}
		}
	}
	return out
}

func (n *near) logsumexps(t types.Type) (out []*guess) {
	if len(n.exps) > 0 {
		for _, m := range n.maxima {
			out = append(out, statistic("logsumexp", m, t)...)
		}
	}
	return out
}

// functions are those of one element.
func (n *near) functions(t types.Type) (out []*guess) {
	if len(n.exps)+len(n.bells) > 0 {
		var xs []*ir.Value
		for _, p := range slices.Concat(n.exps, n.bells) {
			xs = arguments(p.Operands[0], xs, 6)
		}
		for _, x := range like(t, xs...) {
			for _, name := range []string{"silu", "gelu", "logistic"} {
				g := &guess{name: name, operands: []*ir.Value{x}}
				out = append(out, g)
				if name == "gelu" {
					tanh := *g
					tanh.attrs = attrs("approximate", types.Keyword("tanh"))
					out = append(out, &tanh)
				}
			}
		}
	}
	return out
}

func (n *near) statistics(t types.Type) (out []*guess) {
	for i, s := range n.sums {
		if i < maxCandidates && s.Name == "dm.reduce" {
			out = append(out, statistic("variance", s, t)...)
			out = append(out, statistic("mean", s, t)...)
		}
	}
	return out
}

// oneHot is where an index is compared with every class.
func oneHot(o *ir.Op) (out []*guess) {
	c := o.Operands[0].Op
	if c == nil || c.Name != "dm.compare" {
		return nil
	}
	t := o.Results[0].Tensor()
	for i, v := range c.Operands {
		if iota := base(c.Operands[1-i]).Op; iota == nil || iota.Name != "dm.iota" {
			continue
		}
		for d := range t.Rank() {
			if n, known := t.Shape[d].Int(); known {
				out = append(out, &guess{
					name: "one_hot", operands: []*ir.Value{base(v)}, result: t,
					attrs: append(attrs("classes", types.Int{V: n}), types.Named{Name: "dim", Value: types.Int{V: int64(d)}}),
				})
			}
		}
	}
	return out
}

func attrs(name string, v types.Attr) []types.Named { return []types.Named{{Name: name, Value: v}} }

// arguments are the values that v, an argument of a function, is computed from by a
// few sums and products, and v.
func arguments(v *ir.Value, out []*ir.Value, depth int) []*ir.Value {
	if _, is := numberOf(v); is || depth == 0 || len(out) > 3*maxCandidates {
		return out
	}
	if !slices.Contains(out, v) {
		out = append(out, v)
	}
	if v.Op != nil {
		switch v.Op.Name {
		case "dm.neg", "dm.mul", "dm.div", "dm.add", "dm.pow", "dm.convert":
			for _, a := range v.Op.Operands {
				out = arguments(a, out, depth-1)
			}
		}
	}
	return out
}

// summed are what the reduction s sums, or sums the squares of, or of the differences
// from their mean.
func summed(s *ir.Op) []*ir.Value {
	x := s.Operands[0]
	out := []*ir.Value{x}
	for range 4 {
		p := base(x).Op
		if p == nil || p.Name != "dm.mul" && p.Name != "dm.pow" && p.Name != "dm.sub" && p.Name != "dm.convert" {
			break
		}
		x = p.Operands[0]
		out = append(out, x)
	}
	return out
}

// statistic is a value for each row that s reduces, if one of type t can be.
func statistic(name string, s *ir.Op, t types.Type) (out []*guess) {
	y := types.ElemOf(t)
	rank := len(shapeOf(&ir.Value{Type: t}))
	for _, x := range summed(s) {
		for ; ; x = x.Op.Operands[0] {
			xt := x.Tensor()
			if xt == nil || xt.Rank() != s.In(0).Rank() {
				break
			}
			dims, ok := op.Dims(s, "dims", xt.Rank())
			if op.Attr(s, "dims") == nil {
				dims, ok = nil, true
				for d := range xt.Rank() {
					dims = append(dims, d)
				}
			}
			if ok && xt.Elem == y && (rank == xt.Rank() || rank == xt.Rank()-len(dims)) {
				as := append(attrs("dims", op.IntList(dims...)), types.Named{Name: "keep_dims", Value: types.Bool(rank == xt.Rank() && len(dims) > 0)})
				if rank != xt.Rank() {
					as = as[:1]
				}
				corrections := []int64{0}
				if name == "variance" {
					corrections = append(corrections, 1)
				}
				for _, c := range corrections {
					now := as
					if name == "variance" {
						now = append(slices.Clone(as), types.Named{Name: "correction", Value: types.Int{V: c}})
					}
					out = append(out, &guess{name: name, operands: []*ir.Value{x}, attrs: now, wide: name != "logsumexp"})
				}
			}
			if x.Op == nil || x.Op.Name != "dm.convert" {
				break
			}
		}
	}
	return out
}

// norms are the normalizations of type t.
func (n *near) norms(t types.Type) (out []*guess) {
	var xs []*ir.Value
	for _, s := range n.sums {
		xs = append(xs, summed(s)...)
	}
	for _, s := range n.subs {
		xs = append(xs, s.Operands[0])
	}
	xs = like(t, xs...)
	eps := slices.Compact(slices.Clone(n.epsilons))
	for _, x := range xs[:min(4, len(xs))] {
		shape := shapeOf(x)
		for _, s := range n.sums[:min(3, len(n.sums))] {
			dims, ok := op.Dims(s, "dims", len(shape))
			if !ok || s.In(0).Rank() != len(shape) || op.Attr(s, "dims") == nil {
				continue
			}
			slices.Sort(dims)
			want := make([]dim.Dim, len(dims))
			for i, d := range dims {
				want[i] = shape[d]
			}
			biases, scales := n.parameters(want, n.root.Operands), n.parameters(want, n.factors)
			for _, e := range eps[:min(2, len(eps))] {
				as := append(attrs("dims", op.IntList(dims...)), types.Named{Name: "epsilon", Value: types.Float{V: e}})
				make := func(name string, params ...*ir.Value) {
					g := &guess{name: name, operands: append([]*ir.Value{x}, params...), attrs: as, wide: true}
					for range params {
						g.shapes = append(g.shapes, want)
					}
					out = append(out, g)
				}
				for _, scale := range scales {
					for _, bias := range biases {
						make("layer_norm", scale, bias)
					}
					make("layer_norm", scale)
					make("rms_norm", scale)
				}
				make("layer_norm")
				make("rms_norm")
			}
		}
		out = append(out, n.given5(x, eps)...)
	}
	return out
}

// given5 are the normalizations of x by channel with given mean and variance.
func (n *near) given5(x *ir.Value, eps []float64) (out []*guess) {
	for d, size := range shapeOf(x) {
		want := []dim.Dim{size}
		var means []*ir.Value
		for _, s := range n.subs {
			means = append(means, s.Operands[1])
		}
		means, variances := n.parameters(want, means), n.parameters(want, n.given)
		biases, scales := n.parameters(want, n.root.Operands), n.parameters(want, n.factors)
		for _, mean := range means {
			for _, variance := range variances {
				for _, bias := range biases {
					for _, scale := range scales {
						if len(out) == 4*maxCandidates {
							return out
						}
						out = append(out, &guess{
							name: "batch_norm", operands: []*ir.Value{x, scale, bias, mean, variance}, shapes: [][]dim.Dim{want, want, want, want},
							attrs: append(attrs("dim", types.Int{V: int64(d)}), types.Named{Name: "epsilon", Value: types.Float{V: eps[0]}}),
						})
					}
				}
			}
		}
	}
	return out
}

// parameters are the values among vs, before they are converted, that have the
// sizes want beside dimensions of size 1; at most three.
func (n *near) parameters(want []dim.Dim, vs []*ir.Value) (out []*ir.Value) {
	for _, v := range vs {
		v = unconverted(v)
		if v.Tensor() == nil || slices.Contains(out, v) || len(out) == 3 {
			continue
		}
		if _, is := numberOf(v); is {
			continue
		}
		var sizes, long []dim.Dim
		for i, s := range shapeOf(v) {
			if !isOne(v.Tensor(), i) {
				sizes = append(sizes, s)
			}
		}
		for _, s := range want {
			if k, known := s.Int(); !known || k != 1 {
				long = append(long, s)
			}
		}
		if slices.EqualFunc(sizes, long, dim.Dim.Equal) {
			out = append(out, v)
		}
	}
	return out
}
