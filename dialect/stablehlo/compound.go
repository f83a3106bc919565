package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// A compound is the type of a value that no tensor of the dialect holds and that is made
// of such tensors: complex numbers of two, quantized ones of one. In the importer it is
// one value, without a place in the program, whose parts are in importer.parts. Arguments,
// results and what loops and branches carry are the parts, one after the other.
type compound interface {
	types.Type
	// parts are the types of the tensors.
	parts() []types.Type
	// suffixes are what the names of the parts have behind that of the value.
	suffixes() []string
	// with is the type whose parts have other types.
	with(parts []types.Type) compound
	// elem is the text of the element type.
	elem() string
}

// single is what a compound of one tensor has.
type single struct{ part types.Type }

func (t single) parts() []types.Type { return []types.Type{t.part} }

func (single) suffixes() []string { return []string{""} }

// compoundType is the compound type that x, of an element type that the dialect lacks, is;
// nil where it is none.
func (c *importer) compoundType(x *ast.TypeExpr) (types.Type, error) {
	if x.Kind == ast.TAlias || x.Kind != ast.TTensor || x.Elem == nil {
		return nil, nil
	}
	part := func(elem types.Elem) (*types.Tensor, error) {
		y := *x
		y.Elem = &ast.TypeExpr{Kind: ast.TScalar, Text: elem.String(), Name: elem.String()}
		y.Text = strings.Replace(x.Text, x.Elem.Text, elem.String(), 1)
		t, err := c.typeOf(&y)
		tensor, _ := t.(*types.Tensor)
		return tensor, err
	}
	switch {
	case x.Elem.Kind == ast.TComplex && x.Elem.Elem != nil:
		elem, _ := types.ElemByName(x.Elem.Elem.Name)
		if elem != types.F32 && elem != types.F64 {
			return nil, nil
		}
		t, err := part(elem)
		if t == nil || err != nil {
			return nil, err
		}
		return complexType{t}, nil
	case x.Elem.Kind == ast.TDialect && x.Elem.Name == "quant.uniform":
		q := quantizationOf(x.Elem)
		if q == nil {
			return nil, nil
		}
		t, err := part(q.stored)
		if t == nil || err != nil {
			return nil, err
		}
		return quantizedType{single{t}, q}, nil
	case x.Elem.Kind == ast.TScalar && narrowByName(x.Elem.Name) != nil:
		f := narrowByName(x.Elem.Name)
		t, err := part(f.wide)
		if t == nil || err != nil {
			return nil, err
		}
		return narrowType{single{t}, f}, nil
	}
	return nil, nil
}

func isCompound(t types.Type) bool {
	_, ok := t.(compound)
	return ok
}

// hasCompounds reports whether an operand or a result of the op is compound.
func (n *node) hasCompounds() bool {
	return slices.ContainsFunc(n.out, isCompound) || slices.ContainsFunc(n.in, func(v *ir.Value) bool { return isCompound(v.Type) })
}

// compounded is the value of type t with the parts vs.
func (c *importer) compounded(t compound, vs ...*ir.Value) *ir.Value {
	ts := make([]types.Type, len(vs))
	for i, v := range vs {
		ts[i] = v.Type
	}
	v := &ir.Value{Type: t.with(ts)}
	c.parts[v] = vs
	return v
}

// split are vs with the parts of compound ones in their place.
func (c *importer) split(vs []*ir.Value) []*ir.Value {
	if len(c.parts) == 0 {
		return vs
	}
	var out []*ir.Value
	for _, v := range vs {
		if ps := c.parts[v]; ps != nil {
			out = append(out, ps...)
		} else {
			out = append(out, v)
		}
	}
	return out
}

// splitTypes are ts with the types of the parts of compound ones in their place.
func splitTypes(ts []types.Type) []types.Type {
	if !slices.ContainsFunc(ts, isCompound) {
		return ts
	}
	var out []types.Type
	for _, t := range ts {
		if x, ok := t.(compound); ok {
			out = append(out, x.parts()...)
		} else {
			out = append(out, t)
		}
	}
	return out
}

// joined is the inverse of split for values of the types ts.
func (c *importer) joined(vs []*ir.Value, ts []types.Type) []*ir.Value {
	if !slices.ContainsFunc(ts, isCompound) {
		return vs
	}
	var out []*ir.Value
	for _, t := range ts {
		if x, ok := t.(compound); ok && len(x.parts()) <= len(vs) {
			k := len(x.parts())
			out, vs = append(out, c.compounded(x, vs[:k]...)), vs[k:]
		} else if len(vs) > 0 {
			out, vs = append(out, vs[0]), vs[1:]
		}
	}
	return append(out, vs...)
}

// splitNames are names, of values of the types ts, with those of the parts of compound
// ones in their place.
func splitNames(names []string, ts []types.Type) []string {
	var out []string
	for i, name := range names {
		x, ok := ts[i].(compound)
		if !ok {
			out = append(out, name)
			continue
		}
		for _, s := range x.suffixes() {
			if name == "" {
				s = ""
			}
			out = append(out, name+s)
		}
	}
	return out
}

// inParts is f of the parts of operands, for the parts of results.
func inParts(f conversion) conversion {
	return func(n *node) []*ir.Value {
		m := *n
		m.kinds = kinds(n.in)
		m.in, m.out = n.split(n.in), splitTypes(n.out)
		return n.joined(f(&m), n.out)
	}
}

// pairwise are the two elements of each part of each operand, as a sort compares them, in
// the order of the arguments of its region: all parts of the first element, then those of
// the second.
func (n *node) pairwise(vs []*ir.Value) []*ir.Value {
	if !slices.ContainsFunc(n.kinds, isCompound) {
		return vs
	}
	var out []*ir.Value
	for i := range n.kinds {
		k := 2 * len(splitTypes(n.kinds[i:i+1]))
		for at := range 2 {
			for p := at; p < k; p += 2 {
				out = append(out, vs[p])
			}
		}
		vs = vs[k:]
	}
	return out
}

func kinds(vs []*ir.Value) []types.Type {
	out := make([]types.Type, len(vs))
	for i, v := range vs {
		out[i] = v.Type
	}
	return out
}

// eachPart is f of the first parts of operands, of the second ones, and so on: what
// moves elements, or does the same to each part. Other operands take part in each.
func eachPart(f conversion) conversion {
	return func(n *node) []*ir.Value {
		count := 1
		for _, t := range slices.Concat(kinds(n.in), n.out) {
			if x, ok := t.(compound); ok {
				count = len(x.parts())
			}
		}
		var rows [][]*ir.Value
		for p := range count {
			m := *n
			m.side, m.in, m.out = p+1, slices.Clone(n.in), slices.Clone(n.out)
			for i, v := range n.in {
				if ps := n.parts[v]; ps != nil {
					n.must(len(ps) == count, "DM142", "%s takes operands of different element types", n.name)
					m.in[i] = ps[p]
				}
			}
			for i, t := range n.out {
				if x, ok := t.(compound); ok {
					m.out[i] = x.parts()[p]
				}
			}
			rows = append(rows, f(&m))
		}
		out := slices.Clone(rows[0])
		for i, t := range n.out {
			x, ok := t.(compound)
			if !ok || i >= len(out) {
				continue
			}
			var ps []*ir.Value
			for _, row := range rows {
				ps = append(ps, row[i])
			}
			out[i] = n.compounded(x, ps...)
		}
		return out
	}
}

// moving are the ops that move elements: each part of a number goes the same way.
var moving = map[string]bool{
	"broadcast": true, "broadcast_in_dim": true, "dynamic_broadcast_in_dim": true, "reshape": true, "dynamic_reshape": true,
	"transpose": true, "reverse": true, "slice": true, "concatenate": true, "pad": true,
	"dynamic_slice": true, "dynamic_update_slice": true, "gather": true, "dynamic_gather": true, "torch_index_select": true,
	"select": true, "chlo.broadcast_select": true, "copy": true, "optimization_barrier": true, "get_dimension_size": true,
	"all_gather": true, "all_to_all": true, "collective_permute": true, "collective_broadcast": true, "sdy.sharding_constraint": true, "sdy.reshard": true,
	"check.expect_eq": true, "check.expect_almost_eq": true, "check.expect_close": true,
}

// structural are the ops with regions, and calls, whose conversions take any number of
// operands and results.
var structural = map[string]bool{
	"func.call": true, "composite": true, "while": true, "if": true, "case": true, "map": true, "sort": true, "sdy.named_computation": true,
}

// movingCalls are the targets of custom_call that move elements or leave them.
var movingCalls = map[string]bool{
	"Sharding": true, "annotate_device_placement": true, "LayoutConstraint": true,
	"check.expect_eq": true, "check.expect_almost_eq": true, "check.expect_close": true,
}

// compoundConversion is the conversion of an op with compound operands or results, where
// f is that of others.
func (n *node) compoundConversion(short string, f conversion) conversion {
	inRegion := n.batch != nil || n.bare
	switch {
	case f == nil && complexOps[short] == nil && short != "uniform_quantize" && short != "uniform_dequantize":
		return nil
	case inRegion && (short == "func.call" || short == "optimization_barrier"):
		return f
	case structural[short]:
		return inParts(f)
	case moving[short], short == "custom_call" && movingCalls[n.callee()]:
		return eachPart(f)
	case n.isCoded():
		return n.codedConversion(short, f)
	}
	if g := complexOps[short]; g != nil {
		return g
	}
	if all, ok := complexRegions[short]; ok {
		return n.complexRegion(f, all)
	}
	return func(n *node) []*ir.Value {
		n.unsupported("%s of complex numbers is not supported", n.name)
		return nil
	}
}

// applied is the op that the pretty form of a reduction applies, "" where it has a region.
func (n *node) applied() string {
	at := slices.Index(n.words, "applies")
	if at < 0 || at+1 >= len(n.words) {
		return ""
	}
	_, name, _ := strings.Cut(n.words[at+1], ".")
	return name
}

// foldApplied is the reduction of one compound operand by the op that its pretty form
// names.
func (n *node) foldApplied(name string) []*ir.Value {
	n.takes(2)
	t, ok := n.in[1].Type.(compound)
	n.must(ok && pointwise[name] != nil, Unsupported, "%s applies %s, which is not supported for %s", n.name, name, n.in[0].Type)
	m := *n
	m.name, m.words, m.attrs, m.out = "stablehlo."+name, nil, nil, []types.Type{t}
	f := m.compoundConversion(name, pointwise[name])
	xs, inits := n.split(n.in[:1]), n.split(n.in[1:])
	shape := n.shape(xs[0])
	dims := n.dims("dimensions", len(shape))
	outer := n.importer.batch
	n.importer.batch = pick(shape, others(len(shape), dims))
	defer func() { n.importer.batch = outer }()
	ys := n.foldBy(xs, inits, dims, func(now, next []*ir.Value) []*ir.Value {
		m.in = []*ir.Value{n.compounded(t, now...), n.compounded(t, next...)}
		return n.split(f(&m))
	})
	return n.joined(ys, n.out)
}
