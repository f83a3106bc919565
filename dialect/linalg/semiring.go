package linalg

import (
	"regexp"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// A region of sparse_tensor.unary, binary or select computes with scalars at the places that tensors store. Here these are the vectors of
// their values: dm.merge brings two tensors to one pattern, dm.unpack gives their values, and dm.pack makes a tensor of what is computed.

// ofValues is the letter of a vector of values.
const ofValues = -1

// regions are those of o that say something, by what they are of, and which operands are their own result.
type regions struct {
	blocks   map[string]*ast.Block
	identity map[string]bool
}

// has reports whether elements that name is of are in the result.
func (r *regions) has(name string) bool { return r.blocks[name] != nil || r.identity[name] }

// kept are the regions of o, whose names are those given, in order.
func (x *function) kept(o *ast.Op, names ...string) *regions {
	r := &regions{blocks: map[string]*ast.Block{}, identity: map[string]bool{}}
	text := x.text(o)
	rest := text // what is outside of regions
	for i, g := range slices.Backward(o.Regions) {
		name := ""
		if o.Form == ast.Custom && len(names) > 1 {
			before := strings.TrimRight(strings.TrimSuffix(strings.TrimSpace(text[:g.Open]), "="), " \t\n")
			name = before[strings.LastIndexAny(before, " \t\n}")+1:]
		} else if i < len(names) {
			name = names[i]
		}
		if len(g.Blocks) > 0 && len(g.Blocks[0].Ops) > 0 && slices.Contains(names, name) {
			r.blocks[name] = g.Blocks[0]
		}
		if int(g.Open) < len(rest) {
			rest = rest[:g.Open]
		}
	}
	outside := regexp.MustCompile(`(left|right)\s*(=\s*|_)identity`)
	for _, m := range outside.FindAllStringSubmatch(rest+x.behind(o), -1) {
		r.identity[m[1]] = true
	}
	return r
}

// behind is the text of o between and behind its regions.
func (x *function) behind(o *ast.Op) (s string) {
	text := x.text(o)
	for _, g := range slices.Backward(o.Regions) {
		end := int(g.Close) + 1
		s = text[min(end, len(text)):] + s
		text = text[:g.Open]
	}
	return s
}

// semiring imports an op of sparse_tensor in a region.
func (x *function) semiring(o *ast.Op, in []*scalar, l *loops, former *value, env map[string]*scalar) (*scalar, error) {
	if len(o.Results) != 1 || x.b.Err() != nil {
		return nil, unsupported(o, "%s of %d results is not imported", o.Name, len(o.Results))
	}
	s := &semiring{function: x, o: o, l: l, former: former, env: env}
	if o.Name == "sparse_tensor.reduce" {
		return s.reduce(in)
	}
	for _, v := range in {
		if v.former || v.into != "" || len(v.factors) == 0 {
			return nil, unsupported(o, "%s of a partial sum or a number is not imported", o.Name)
		}
	}
	switch {
	case o.Name == "sparse_tensor.unary" && len(in) == 1:
		return s.unary(x.one(in[0]))
	case o.Name == "sparse_tensor.binary" && len(in) == 2:
		return s.binary(x.one(in[0]), x.one(in[1]))
	case o.Name == "sparse_tensor.select" && len(in) == 1:
		return s.choose(x.one(in[0]))
	}
	return nil, unsupported(o, "%s in a region is not imported", o.Name)
}

// semiring is the import of one op.
type semiring struct {
	*function
	o      *ast.Op
	l      *loops
	former *value
	env    map[string]*scalar
}

func sparse(t term) bool { return t.v.Tensor() != nil && t.v.Tensor().Format != nil }

// elem is the element type of the result.
func (s *semiring) elem(otherwise types.Elem) types.Elem {
	text := s.text(s.o)
	if len(s.o.Regions) > 0 && s.o.Form == ast.Custom {
		text = text[:s.o.Regions[0].Open]
	}
	if i := strings.LastIndex(text, " to "); i >= 0 {
		if words := strings.Fields(text[i+4:]); len(words) > 0 {
			if t, err := s.typed(words[0]); err == nil && types.ElemOf(t) != types.InvalidElem {
				return types.ElemOf(t)
			}
		}
	}
	return otherwise
}

// components are those of t, a sparse tensor; the last ones are its values.
func (x *function) components(t *ir.Value) []*ir.Value {
	if vs := x.parts[t]; vs != nil {
		return vs
	}
	var ts []types.Type
	for _, c := range t.Tensor().Components() {
		ts = append(ts, c.Tensor)
	}
	u := x.b.Make("unpack", []*ir.Value{t}, nil, ts...)
	if u == nil {
		return []*ir.Value{t}
	}
	x.parts[t] = u.Results
	return u.Results
}

func vector(v *ir.Value) *scalar {
	return &scalar{factors: []term{{v, []int{ofValues}}}, elem: v.Elem()}
}

// at is what region b yields for args, vectors of the values of the pattern p.
func (s *semiring) at(p term, b *ast.Block, e types.Elem, args ...*ir.Value) (*ir.Value, error) {
	var in []*scalar
	for _, a := range args {
		in = append(in, vector(a))
	}
	outer := s.pattern
	s.pattern = &p
	y, err := s.region(b, in, s.l, s.former, s.env)
	s.pattern = outer
	if err != nil {
		return nil, err
	}
	if y.former || y.into != "" {
		return nil, unsupported(s.o, "%s of a partial sum is not imported", s.o.Name)
	}
	return s.whole(p, y, e)
}

// whole is y as a vector of values of p.
func (s *semiring) whole(p term, y *scalar, e types.Elem) (*ir.Value, error) {
	if len(y.factors) == 0 {
		y.elem = e
	}
	t := s.one(y)
	if len(t.letters) > 0 && t.letters[0] != ofValues {
		own, err := s.atPattern(s.o, p, y)
		if err != nil {
			return nil, err
		}
		t = s.one(own)
	}
	v := s.b.Convert(t.v, e)
	if len(t.letters) == 0 {
		v = s.b.Value("broadcast", []*ir.Value{v}, nil, &types.Tensor{Elem: e, Shape: []dim.Dim{p.v.Tensor().Values()}})
	}
	return v, nil
}

// atPattern is y, which varies along loops, as the vector of its elements that p stores.
func (x *function) atPattern(o *ast.Op, p term, y *scalar) (*scalar, error) {
	t := x.one(y)
	if len(t.letters) == 0 || t.letters[0] == ofValues {
		return y, nil
	}
	if x.b.Err() != nil {
		return y, nil
	}
	if sparse(t) {
		return nil, unsupported(o, "a region of %s that reads another sparse tensor is not imported", o.Name)
	}
	name := func(m []int) string {
		b := make([]byte, len(m))
		for i, c := range m {
			b[i] = byte('a' + c%26)
		}
		return string(b)
	}
	in, eq := []*ir.Value{p.v, t.v}, name(t.letters)
	for i, c := range p.letters {
		if !slices.Contains(t.letters, c) {
			one := x.b.Splat(&types.Tensor{Elem: t.v.Elem()}, 1)
			in = append(in, x.b.Value("broadcast", []*ir.Value{one}, nil, &types.Tensor{Elem: t.v.Elem(), Shape: p.v.Tensor().Shape[i : i+1]}))
			eq += "," + name([]int{c})
		}
	}
	if slices.ContainsFunc(t.letters, func(c int) bool { return !slices.Contains(p.letters, c) }) {
		return nil, unsupported(o, "a region of %s that varies along another loop is not imported", o.Name)
	}
	v := x.b.Value("sample", in, []types.Named{{Name: "equation", Value: types.Str(eq + "->" + name(p.letters))}})
	if x.b.Err() != nil {
		return y, nil
	}
	r := vector(last(x.components(v)))
	r.index = y.index
	return r, nil
}

// packed is p with other values.
func (s *semiring) packed(p term, v *ir.Value) term {
	if s.b.Err() != nil {
		return p
	}
	parts := slices.Clone(s.components(p.v))
	parts[len(parts)-1] = v
	t := p.v.Tensor()
	return term{s.b.Value("pack", parts, nil, &types.Tensor{Elem: v.Elem(), Shape: t.Shape, Format: t.Format}), p.letters}
}

func of(t term) *scalar { return &scalar{factors: []term{t}, elem: t.v.Elem()} }

// dense is t as a dense tensor, 0 where it stores nothing.
func (s *semiring) dense(t term) term { return term{s.stored(t.v, nil), t.letters} }

// elsewhere is t where p stores an element, and what region b yields for args elsewhere: every element is one of the result.
func (s *semiring) elsewhere(p term, t *term, b *ast.Block, e types.Elem, args ...*scalar) (*scalar, error) {
	y, err := s.region(b, args, s.l, s.former, s.env)
	if err != nil {
		return nil, err
	}
	if y.former || y.into != "" {
		return nil, unsupported(s.o, "%s of a partial sum is not imported", s.o.Name)
	}
	if len(y.factors) == 0 {
		y.elem = e
	}
	ones, err := s.whole(p, &scalar{number: 1}, types.I8)
	if err != nil {
		return nil, err
	}
	is := s.dense(s.packed(p, ones))
	zero := s.b.Splat(&types.Tensor{Elem: types.I8}, 0)
	is.v = s.b.Value("compare", []*ir.Value{is.v, zero}, []types.Named{{Name: "direction", Value: types.Keyword("ne")}})
	own := term{v: s.b.Splat(&types.Tensor{Elem: e}, 0)}
	if t != nil {
		own = s.dense(*t)
	}
	other := s.one(y)
	if s.b.Err() != nil {
		return of(p), nil
	}
	return of(s.three(is, own, term{s.b.Convert(other.v, e), other.letters})), nil
}

// three is dm.select of terms whose dimensions are brought into the order of the first one.
func (x *function) three(c, a, b term) term {
	order := slices.Clone(c.letters)
	for _, l := range slices.Concat(a.letters, b.letters) {
		if !slices.Contains(order, l) {
			order = append(order, l)
		}
	}
	return term{x.b.Value("select", []*ir.Value{x.along(c, order), x.along(a, order), x.along(b, order)}, nil), order}
}

func (s *semiring) unary(a term) (*scalar, error) {
	r := s.kept(s.o, "present", "absent")
	e := s.elem(a.v.Elem())
	present, absent := r.blocks["present"], r.blocks["absent"]
	switch {
	case present != nil && (!sparse(a) || absent == nil && ofZeroZero(present)):
		return s.region(present, []*scalar{of(a)}, s.l, s.former, s.env)
	case !sparse(a) || present == nil && absent == nil:
		return nil, unsupported(s.o, "%s of a dense tensor without what it is where that stores elements is not imported", s.o.Name)
	}
	var own *term
	if present != nil {
		v, err := s.at(a, present, e, last(s.components(a.v)))
		if err != nil {
			return nil, err
		}
		t := s.packed(a, v)
		own = &t
	}
	if absent == nil {
		return of(*own), nil
	}
	return s.elsewhere(a, own, absent, e)
}

// zeroOfZero are functions that are 0 at 0, which ops compute of sparse tensors as they are.
var zeroOfZero = []string{"neg", "abs", "sqrt", "tanh", "sin", "erf", "floor", "ceil", "expm1", "log1p"}

// ofZeroZero reports whether a block has no ops but such functions.
func ofZeroZero(b *ast.Block) bool {
	return !slices.ContainsFunc(b.Ops, func(o *ast.Op) bool {
		return o.Name != "sparse_tensor.yield" && !slices.Contains(zeroOfZero, functions[o.Name])
	})
}

func (s *semiring) binary(a, b term) (*scalar, error) {
	r := s.kept(s.o, "overlap", "left", "right")
	e := s.elem(a.v.Elem())
	both, left, right := "overlap", "left", "right"
	switch {
	case !sparse(a) && !sparse(b):
		if r.blocks[both] == nil {
			return nil, unsupported(s.o, "%s of dense tensors without what it is of both is not imported", s.o.Name)
		}
		return s.region(r.blocks[both], []*scalar{of(a), of(b)}, s.l, s.former, s.env)
	case !sparse(a):
		a, b, left, right = b, a, right, left
	}
	swapped := left == "right"
	function := func(p term, name string, x, y *ir.Value) (*ir.Value, error) {
		switch {
		case r.identity[name] && name == left:
			return s.b.Convert(x, e), nil
		case r.identity[name]:
			return s.b.Convert(y, e), nil
		case name == left:
			return s.at(p, r.blocks[name], e, x)
		case name == right:
			return s.at(p, r.blocks[name], e, y)
		case swapped:
			return s.at(p, r.blocks[name], e, y, x)
		}
		return s.at(p, r.blocks[name], e, x, y)
	}
	if !sparse(b) { // every element of b is one
		var own *term
		if r.has(both) {
			y, err := s.atPattern(s.o, a, of(b))
			if err != nil {
				return nil, err
			}
			v, err := function(a, both, last(s.components(a.v)), s.one(y).v)
			if err != nil {
				return nil, err
			}
			t := s.packed(a, v)
			own = &t
		}
		switch {
		case r.identity[right]:
			return nil, unsupported(s.o, "%s that keeps a dense operand is not imported", s.o.Name)
		case r.blocks[right] != nil:
			return s.elsewhere(a, own, r.blocks[right], e, of(b))
		case own == nil:
			return nil, unsupported(s.o, "%s without a region is not imported", s.o.Name)
		}
		return of(*own), nil
	}
	if len(a.letters) != len(b.letters) || slices.ContainsFunc(a.letters, func(c int) bool { return !slices.Contains(b.letters, c) }) {
		return nil, unsupported(s.o, "%s of sparse tensors that vary along different loops is not imported", s.o.Name)
	}
	b = term{s.along(b, a.letters), a.letters}
	if !r.has(left) && r.has(right) { // what the second one stores
		a, b, left, right, swapped = b, a, right, left, !swapped
	}
	kind := op.MergeKind([3]bool{r.has(both), r.has(left), r.has(right)})
	if kind == "" || s.b.Err() != nil {
		return nil, unsupported(s.o, "%s without a region is not imported", s.o.Name)
	}
	x, y, codes := s.merge(kind, a, b)
	if s.b.Err() != nil {
		return of(a), nil
	}
	p := term{x, a.letters}
	xs, ys, which := last(s.components(x)), last(s.components(y)), last(s.components(codes))
	var v *ir.Value
	for _, c := range []struct {
		name string
		code float64
	}{{right, op.MergeCodes[2]}, {left, op.MergeCodes[1]}, {both, op.MergeCodes[0]}} {
		if !r.has(c.name) {
			continue
		}
		own, err := function(p, c.name, xs, ys)
		if err != nil {
			return nil, err
		}
		if v == nil {
			v = own
			continue
		}
		is := s.b.Value("compare", []*ir.Value{which, s.b.Splat(&types.Tensor{Elem: types.I8}, c.code)}, []types.Named{{Name: "direction", Value: types.Keyword("eq")}})
		v = s.b.Value("select", []*ir.Value{is, own, v}, nil)
	}
	return of(s.packed(p, v)), nil
}

func last(vs []*ir.Value) *ir.Value { return vs[len(vs)-1] }

// merge brings a and b to one pattern.
func (s *semiring) merge(kind string, a, b term) (x, y, codes *ir.Value) {
	t, u := a.v.Tensor(), b.v.Tensor()
	f := *t.Format
	f.Stored = slices.Clone(f.Stored)
	if kind == "union" || kind == "symmetric_difference" {
		for i := range f.Stored {
			more := u.Values()
			if t.Format.Alike(u.Format) {
				more = u.Format.Stored[i]
			}
			f.Stored[i] = f.Stored[i].Add(more)
		}
	}
	r := &types.Tensor{Elem: t.Elem, Shape: t.Shape, Format: &f}
	m := s.b.Make("merge", []*ir.Value{a.v, b.v}, []types.Named{{Name: "kind", Value: types.Keyword(kind)}}, r, r, &types.Tensor{Elem: types.I8, Shape: t.Shape, Format: &f})
	if m == nil {
		return a.v, b.v, a.v
	}
	return m.Results[0], m.Results[1], m.Results[2]
}

// choose keeps the elements for which the region holds.
func (s *semiring) choose(a term) (*scalar, error) {
	r := s.kept(s.o, "keep")
	if !sparse(a) || r.blocks["keep"] == nil {
		return nil, unsupported(s.o, "%s of a dense tensor is not imported", s.o.Name)
	}
	is, err := s.at(a, r.blocks["keep"], types.I1, last(s.components(a.v)))
	if err != nil || s.b.Err() != nil {
		return of(a), err
	}
	t := a.v.Tensor()
	return of(term{s.b.Value("filter", []*ir.Value{a.v, is}, nil, &types.Tensor{Elem: t.Elem, Shape: t.Shape, Format: t.Format}), a.letters}), nil
}

// reduce is a reduction of what is stored, whose region is a sum, a product, a maximum or a minimum.
func (s *semiring) reduce(in []*scalar) (*scalar, error) {
	r := s.kept(s.o, "by")
	kind := ""
	if b := r.blocks["by"]; b != nil && len(b.Args) == 2 {
		kind = s.reduction(b)
	}
	if len(in) != 3 || kind == "" || in[0].former == in[1].former {
		return nil, unsupported(s.o, "%s that is no sum, product, maximum or minimum of a partial one is not imported", s.o.Name)
	}
	y := in[0]
	if y.former {
		y = in[1]
	}
	if y.into != "" || len(y.factors) == 0 {
		return nil, unsupported(s.o, "%s of a partial sum or a number is not imported", s.o.Name)
	}
	reduced := *y
	reduced.into, reduced.ofStored = kind, slices.ContainsFunc(y.factors, sparse)
	return &reduced, nil
}

var comparison = regexp.MustCompile(`arith\.cmp[if]\s+"?(\w+)"?`)

// reduction is which of reductions a block of two scalars is, "" if none: by its op, or as the choice between both.
func (x *function) reduction(b *ast.Block) string {
	args := []string{b.Args[0].Name, b.Args[1].Name}
	is := func(o *ast.Op, names ...string) bool {
		return len(o.Operands) == len(names) && slices.EqualFunc(o.Operands, names, func(u ast.Use, name string) bool { return u.Name == name })
	}
	yields := func(o, y *ast.Op) bool {
		return y.Name == "sparse_tensor.yield" && len(y.Operands) == 1 && len(o.Results) == 1 && y.Operands[0].Name == o.Results[0].Name
	}
	switch {
	case len(b.Ops) == 2 && yields(b.Ops[0], b.Ops[1]) && (is(b.Ops[0], args...) || is(b.Ops[0], args[1], args[0])):
		if name := functions[b.Ops[0].Name]; slices.Contains(reductions, name) {
			return name
		}
	case len(b.Ops) == 3 && b.Ops[1].Name == "arith.select" && yields(b.Ops[1], b.Ops[2]) && is(b.Ops[0], args...) && len(b.Ops[0].Results) == 1:
		m := comparison.FindStringSubmatch(x.text(b.Ops[0]))
		if m == nil {
			return ""
		}
		less, known := map[string]bool{"olt": true, "ole": true, "slt": true, "sle": true, "ogt": false, "oge": false, "sgt": false, "sge": false}[m[1]]
		c := b.Ops[0].Results[0].Name
		switch {
		case known && is(b.Ops[1], append([]string{c}, args...)...):
			return map[bool]string{true: "min", false: "max"}[less]
		case known && is(b.Ops[1], c, args[1], args[0]):
			return map[bool]string{true: "max", false: "min"}[less]
		}
	}
	return ""
}
