package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// Sizes that a model leaves open become symbols: the model is imported with several
// numbers for each, and what the programs have in common is the program for all sizes.
// A size that differs between them is what the rules of the dialect's ops make of the
// symbols or, where an op has its type written, a formula in the sizes before it; it must
// give the number of every one of the programs. What differs in another way cannot stay
// open. The verifier has the last word.

// samples is the number of programs that are compared. A formula has two numbers that
// are solved for, so that the others check it.
const samples = 4

// primes are the sizes of samples: without common factors, and larger than windows, so
// that no two formulas agree by chance.
var primes = []int64{101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269}

// openSize is a size of an input that neither the model nor the options give.
type openSize struct {
	name   string // in the model and the options
	symbol string // in the program
	input  string
	dim    int
}

// openSizes are those of a model, each once.
func openSizes(p *modelProto, opts Options) []openSize {
	given := map[string]bool{}
	for _, c := range p.graph.constants {
		given[c.name] = true
	}
	var out []openSize
	taken := map[string]bool{}
	for _, in := range p.graph.inputs {
		if _, shaped := opts.Shapes[in.name]; shaped || given[in.name] || opts.Values[in.name] != nil {
			continue
		}
		for i, s := range in.shape {
			name := in.size(i)
			_, bound := opts.size(name)
			if s.known || bound || slices.ContainsFunc(out, func(o openSize) bool { return o.name == name }) {
				continue
			}
			symbol := symbolOf(name)
			for n := 1; taken[symbol]; n++ {
				symbol = fmt.Sprintf("%s_%d", symbolOf(name), n)
			}
			taken[symbol] = true
			out = append(out, openSize{name, symbol, in.name, i})
		}
	}
	return out
}

// size is the number that the options give a size, by its name or its symbol.
func (o Options) size(name string) (n int64, ok bool) {
	if n, ok = o.Bind[name]; !ok {
		n, ok = o.Bind[symbolOf(name)]
	}
	return n, ok
}

// symbolOf is the name of a size as the dialect spells symbols.
func symbolOf(name string) string {
	s := strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if s == "" || s[0] <= '9' {
		s = "n" + s
	}
	return s
}

// importOpen is the program of a model for all sizes that are open.
func importOpen(name string, p *modelProto, opts Options, open []openSize) (m *ir.Module, err error) {
	defer caught(&err)
	first := open[0]
	if len(open)*samples > len(primes) {
		first.refuse(fmt.Sprintf("more than %d sizes are open", len(primes)/samples))
	}
	g := &generalizer{values: make([]map[*ir.Value]*ir.Value, samples), formulas: map[[samples]int64]dim.Dim{}}
	g.learn(dim.Const(1), slices.Repeat([]int64{1}, samples))
	bind := make([]map[string]int64, samples)
	for i := range samples {
		bind[i], g.values[i] = map[string]int64{}, map[*ir.Value]*ir.Value{}
		for n, v := range opts.Bind {
			bind[i][n] = v
		}
	}
	for k, o := range open {
		at := primes[k*samples:][:samples]
		for i := range samples {
			bind[i][o.name] = at[i]
		}
		g.learn(dim.Sym(o.symbol), at)
		g.symbols = append(g.symbols, o.symbol)
	}
	var blocks []*ir.Block
	for i := range samples {
		each := opts
		each.Bind = bind[i]
		one, err := importFixed(name, p, each)
		if e := As(err); e != nil {
			e.Msg += fmt.Sprintf(" (imported with %d for the size that is open: --bind %s=1 gives another)", bind[i][first.name], first.name)
			return nil, e
		}
		if i == 0 {
			m = one
		}
		blocks = append(blocks, one.Funcs[0].Body)
	}
	defer func() {
		r := recover()
		if e, ok := r.(*Error); ok {
			first.refuse(e.Msg)
		} else if r != nil {
			panic(r)
		}
	}()
	g.block(blocks)
	m.Funcs[0].Retype()
	for _, d := range verify.Module(m) {
		if d.Severity == diag.Error {
			fail("%s", d.Message)
		}
	}
	return m, nil
}

// refuse ends the import: the size must be given.
func (o openSize) refuse(why string) {
	panic(&Error{Code: unsupportedCode, Msg: fmt.Sprintf("input %q: the size of dimension %d cannot stay open (%s): --bind %s=1 gives it", o.input, o.dim, why, o.name)})
}

// generalizer makes the first of several programs one for all sizes.
type generalizer struct {
	symbols  []string
	known    []size
	values   []map[*ir.Value]*ir.Value // of the other programs: the first one's
	formulas map[[samples]int64]dim.Dim
}

// size is a formula and its number in every program.
type size struct {
	d  dim.Dim
	at []int64
}

// maxKnown is how many formulas are kept to explain others with.
const maxKnown = 48

func (g *generalizer) learn(d dim.Dim, at []int64) {
	if len(g.known) < maxKnown && !slices.ContainsFunc(g.known, func(s size) bool { return slices.Equal(s.at, at) }) {
		g.known = append(g.known, size{d, at})
	}
}

// block makes the first block general.
func (g *generalizer) block(bs []*ir.Block) {
	same(bs, func(b *ir.Block) [2]int { return [2]int{len(b.Args), len(b.Ops)} })
	for i := range bs[0].Args {
		g.types(mapped(bs, func(b *ir.Block) *ir.Value { return b.Args[i] }), nil)
	}
	ops := mapped(bs, func(b *ir.Block) []*ir.Op { return slices.Clone(b.Ops) })
	for i := range ops[0] {
		g.op(mapped(ops, func(list []*ir.Op) *ir.Op { return list[i] }))
	}
}

// op makes the first op general.
func (g *generalizer) op(os []*ir.Op) {
	o := os[0]
	same(os, func(o *ir.Op) [4]int { return [4]int{len(o.Operands), len(o.Results), len(o.Regions), len(o.Attrs)} })
	same(os, func(o *ir.Op) string { return o.Name })
	for i, v := range o.Operands {
		for k, p := range os {
			if k > 0 && g.values[k][p.Operands[i]] != v {
				differ(o)
			}
		}
	}
	for i, a := range o.Attrs {
		as := mapped(os, func(o *ir.Op) types.Named { return o.Attrs[i] })
		switch {
		case slices.ContainsFunc(as, func(b types.Named) bool { return b.Name != a.Name }):
			differ(o)
		case !slices.ContainsFunc(as, func(b types.Named) bool { return !types.EqualAttr(a.Value, b.Value) }):
		case o.Name == op.Constant || o.Name == "dm.slice": // as a whole, below
		default:
			differ(o)
		}
	}
	for i, r := range o.Regions {
		for j := range r.Blocks {
			g.block(mapped(os, func(o *ir.Op) *ir.Block { return o.Regions[i].Blocks[j] }))
		}
	}
	whole := mapped(os, func(o *ir.Op) []*ir.Value { return o.Results })
	switch o.Name {
	case op.Constant:
		g.constant(os)
	case "dm.slice":
		g.slice(os)
	}
	inferred, ok := verify.Infer(o)
	for i := range whole[0] {
		var t types.Type
		if ok && i < len(inferred) {
			t = inferred[i]
		}
		g.types(mapped(whole, func(vs []*ir.Value) *ir.Value { return vs[i] }), t)
	}
}

// types gives the first value a type for all sizes: the inferred one where that has the
// numbers of all programs.
func (g *generalizer) types(vs []*ir.Value, inferred types.Type) {
	for k, v := range vs {
		g.values[k][v] = vs[0]
	}
	ts := mapped(vs, func(v *ir.Value) *types.Tensor { return v.Tensor() })
	if slices.Contains(ts, nil) {
		for _, v := range vs {
			if v.Tensor() != nil || !types.Equal(v.Type, vs[0].Type) {
				differ(vs[0].Op)
			}
		}
		return
	}
	same(ts, func(t *types.Tensor) [2]int { return [2]int{t.Rank(), int(t.Elem)} })
	r := *ts[0]
	r.Shape = slices.Clone(r.Shape)
	for i := range r.Shape {
		at := mapped(ts, func(t *types.Tensor) int64 { n, _ := t.Shape[i].Int(); return n })
		if !varies(at) {
			continue
		}
		if t, ok := inferred.(*types.Tensor); ok && t.Rank() == len(r.Shape) && slices.Equal(g.numbers(t.Shape[i]), at) {
			r.Shape[i] = t.Shape[i]
		} else {
			r.Shape[i] = g.explained(at)
		}
		g.learn(r.Shape[i], at)
	}
	vs[0].Type = &r
}

// numbers are those of a formula in all programs.
func (g *generalizer) numbers(d dim.Dim) []int64 {
	out := make([]int64, samples)
	for i := range out {
		bind := map[string]int64{}
		for k, s := range g.symbols {
			bind[s] = primes[k*samples+i]
		}
		n, ok := d.Eval(bind).Int()
		if !ok {
			return nil
		}
		out[i] = n
	}
	return out
}

// explained is explain, once for each size.
func (g *generalizer) explained(at []int64) dim.Dim {
	key := [samples]int64(at)
	d, ok := g.formulas[key]
	if !ok {
		d = g.explain(at)
		g.formulas[key] = d
	}
	return d
}

// explain is the formula for a size: a known one times a number, or two or three of
// them, plus a number; or a part of one.
func (g *generalizer) explain(at []int64) dim.Dim {
	try := func(s size) (dim.Dim, bool) {
		if s.at[1] == s.at[0] {
			return dim.Dim{}, false
		}
		factor := (at[1] - at[0]) / (s.at[1] - s.at[0])
		rest := at[0] - factor*s.at[0]
		for i, n := range s.at {
			if factor == 0 || factor*n+rest != at[i] {
				return dim.Dim{}, false
			}
		}
		return s.d.Scale(factor).Add(dim.Const(rest)), true
	}
	product := func(a, b size) size {
		p := size{a.d.Mul(b.d), make([]int64, samples)}
		for i := range p.at {
			p.at[i] = a.at[i] * b.at[i]
		}
		return p
	}
	for _, a := range g.known {
		if d, ok := try(a); ok {
			return d
		}
	}
	for _, a := range g.known {
		if d, ok := g.part(a, at); ok {
			return d
		}
	}
	for i, a := range g.known {
		for _, b := range g.known[i:] {
			if d, ok := try(product(a, b)); ok {
				return d
			}
		}
	}
	for i, a := range g.known {
		for j, b := range g.known[i:] {
			for _, c := range g.known[i+j:] {
				if d, ok := try(product(product(a, b), c)); ok {
					return d
				}
			}
		}
	}
	unsupported("a size of %d, %d, %d and %d", at[0], at[1], at[2], at[3])
	panic("unreachable")
}

// maxStride and maxPadding bound the parts that sizes are explained by.
const (
	maxStride  = 64
	maxPadding = 16
)

// part is the formula for a part of a, rounded down, with padding or without, such as what
// windows with strides leave.
func (g *generalizer) part(a size, at []int64) (d dim.Dim, ok bool) {
	for n := int64(2); n <= maxStride; n++ {
		for k := range int64(2*maxPadding + 1) {
			pad := (k+1)/2 - k%2*(k+1) // 0, -1, 1, -2, 2 and so on
			if !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return (a.at[i]+pad)/n != at[i] }) {
				return dim.Quotient(a.d.Add(dim.Const(pad)), n), true
			}
		}
	}
	return dim.Dim{}, false
}

// constant makes the first constant general: elements that are all the same are repeated
// to the size.
func (g *generalizer) constant(os []*ir.Op) {
	o := os[0]
	ds := mapped(os, func(o *ir.Op) *types.Dense { d, _ := o.Attr("value").(*types.Dense); return d })
	if ds[0] == nil || !slices.ContainsFunc(ds, func(d *types.Dense) bool { return d == nil || !types.EqualAttr(d, ds[0]) }) {
		return
	}
	for _, d := range ds {
		if d == nil || !d.Splat || d.Elem != ds[0].Elem || !bytes.Equal(d.Bytes(), ds[0].Bytes()) {
			fail("the constant %s depends on it", o.Results[0].Name)
		}
	}
	b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	scalar := &types.Tensor{Elem: ds[0].Elem}
	c := b.Op(op.Constant, nil, named("value", types.Attr(ds[0].Of(scalar))), scalar).Results[0]
	o.Name = "dm.broadcast"
	o.RemoveAttr("value")
	o.SetOperands(c)
}

// interval is what a slice takes in one dimension.
type interval struct{ start, limit, stride, size int64 }

// count is the number of elements that are taken.
func (b interval) count() int64 { return (b.limit - b.start + b.stride - 1) / b.stride }

// boundsOf are those of the slices in each of their dimensions. The operand of the first
// has symbols.
func (g *generalizer) boundsOf(os []*ir.Op) [][]interval {
	out := make([][]interval, os[0].In(0).Rank())
	for d, s := range os[0].In(0).Shape {
		out[d] = make([]interval, samples)
		for k, n := range g.numbers(s) {
			out[d][k] = interval{0, n, 1, n}
		}
	}
	for k, o := range os {
		start, limit, strides, dims := o.Ints("start_indices"), o.Ints("limit_indices"), o.Ints("strides"), o.Ints("dims")
		for i := range start {
			d := i
			if len(dims) > 0 {
				d = int(dims[i])
			}
			b := &out[d][k]
			b.start, b.limit = start[i], limit[i]
			if len(strides) > 0 {
				b.stride = strides[i]
			}
		}
	}
	return out
}

// slice makes the first slice general: dimensions that are taken whole are not named, and
// those of which an open number of elements is taken are gathered.
func (g *generalizer) slice(os []*ir.Op) {
	o := os[0]
	if !slices.ContainsFunc(os, func(p *ir.Op) bool { return !slices.Equal(p.Ints("limit_indices"), o.Ints("limit_indices")) }) {
		return
	}
	var start, limit, strides, dims, gathered []int
	all := g.boundsOf(os)
	for d, bs := range all {
		b := bs[0]
		switch {
		case !slices.ContainsFunc(bs, func(b interval) bool { return b.start != 0 || b.limit != b.size || b.stride != 1 }):
		case !slices.ContainsFunc(bs, func(c interval) bool { return c.start != b.start || c.limit != b.limit || c.stride != b.stride }):
			start, limit, strides, dims = append(start, int(b.start)), append(limit, int(b.limit)), append(strides, int(b.stride)), append(dims, d)
		case slices.ContainsFunc(bs, func(c interval) bool { return c.start != b.start || c.stride != b.stride }):
			differ(o)
		default:
			gathered = append(gathered, d)
		}
	}
	at := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	for i, d := range gathered {
		counts := make([]int64, samples)
		for k, b := range all[d] {
			counts[k] = b.count()
		}
		indices := &types.Tensor{Elem: types.I64, Shape: []dim.Dim{g.explained(counts)}}
		at.Index = o.Position()
		steps := at.Op("dm.iota", nil, named("dim", 0, "start", float64(all[d][0].start), "step", float64(all[d][0].stride)), indices).Results[0]
		attrs := named("dim", d)
		if i == len(gathered)-1 && len(dims) == 0 { // the slice becomes the gather
			o.Name, o.Attrs = "dm.gather", attrs
			o.SetOperands(o.Operands[0], steps)
			return
		}
		part := *o.In(0)
		part.Shape = slices.Clone(part.Shape)
		part.Shape[d] = indices.Shape[0]
		x := at.Op("dm.gather", []*ir.Value{o.Operands[0], steps}, attrs, &part).Results[0]
		o.SetOperand(0, x)
	}
	for name, list := range map[string][]int{"start_indices": start, "limit_indices": limit, "strides": strides, "dims": dims} {
		o.SetAttr(name, op.IntList(list...))
	}
}

// same ends the import where the programs differ in f.
func same[T any, V comparable](of []T, f func(T) V) {
	for _, x := range of[1:] {
		if f(x) != f(of[0]) {
			fail("the program depends on it")
		}
	}
}

// differ ends the import: the programs differ at o in what is no size.
func differ(o *ir.Op) {
	if o == nil {
		fail("the program depends on it")
	}
	fail("%s depends on it", o.Name)
}

// mapped is f of each.
func mapped[T, V any](of []T, f func(T) V) []V {
	out := make([]V, len(of))
	for i, x := range of {
		out[i] = f(x)
	}
	return out
}

func varies(at []int64) bool {
	return slices.ContainsFunc(at, func(n int64) bool { return n != at[0] })
}
