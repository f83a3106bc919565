package stablehlo

import (
	"strings"

	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// has reports whether the op has the attribute.
func (n *node) has(name string) bool { return n.attrs[name].x != nil }

// value is the meaning of an attribute, nil where it is absent.
func (n *node) value(name string) types.Attr {
	a, ok := n.attrs[name]
	if !ok {
		return nil
	}
	v, err := types.AttrFromExpr(a.x, &n.env)
	if err != nil {
		n.failError(a.at, err)
	}
	return v
}

// integers are an attribute's, whatever list they are written as; ok is false where it
// is absent.
func (n *node) integers(name string) (list []int, ok bool) {
	switch v := n.value(name).(type) {
	case nil:
		return nil, false
	case types.Int:
		return []int{n.small(name, v.V)}, true
	default:
		all := types.IntegersOf(v)
		if b := bools(v); b != nil {
			all = b
		}
		if all == nil {
			n.failAt("DM141", n.attrs[name].at, "%s of %s is no list of integers", name, n.name)
		}
		for _, x := range all {
			list = append(list, n.small(name, x))
		}
		return list, true
	}
}

// bools is a list of booleans as zeros and ones, nil for other attributes.
func bools(a types.Attr) []int64 {
	list, ok := a.(types.Array)
	if !ok {
		return nil
	}
	out := []int64{}
	for _, e := range list {
		b, ok := e.(types.Bool)
		if !ok {
			return nil
		}
		out = append(out, 0)
		if b {
			out[len(out)-1] = 1
		}
	}
	return out
}

// maxSize bounds the numbers in lists, so that sums and products of a few are exact.
const maxSize = 1 << 40

func (n *node) small(name string, v int64) int {
	if v > maxSize || v < -maxSize {
		n.failAt("DM141", n.attrs[name].at, "%s of %s contains %d, which is out of range", name, n.name, v)
	}
	return int(v)
}

// ints is a list that the op must have.
func (n *node) ints(name string) []int {
	list, ok := n.integers(name)
	n.must(ok, "DM141", "%s needs the attribute %s", n.name, name)
	return list
}

// intsOr is a list with count entries, all of them otherwise where it is absent.
func (n *node) intsOr(name string, count, otherwise int) []int {
	list, ok := n.integers(name)
	if !ok {
		list = make([]int, count)
		for i := range list {
			list[i] = otherwise
		}
	}
	n.mustAttr(name, len(list) == count, "%s of %s has %d entries; expected %d", name, n.name, len(list), count)
	return list
}

// dims is a list of different dimensions of a tensor of the rank; empty where it is
// absent.
func (n *node) dims(name string, rank int) []int {
	list, _ := n.integers(name)
	seen := map[int]bool{}
	for _, d := range list {
		n.mustAttr(name, d >= 0 && d < rank, "%s of %s contains %d, which is no dimension of a tensor with %d", name, n.name, d, rank)
		n.mustAttr(name, !seen[d], "%s of %s contains %d twice", name, n.name, d)
		seen[d] = true
	}
	return list
}

// pairs is a list of count pairs, zeros where it is absent.
func (n *node) pairs(name string, count int) [][2]int {
	out := make([][2]int, count)
	var flat []int
	switch v := n.value(name).(type) {
	case nil:
		return out
	case types.Array: // [[1, 1], [0, 0]]
		if list := types.IntegersOf(v); len(list) > 0 { // without brackets around the pairs
			flat, _ = n.integers(name)
			break
		}
		for _, e := range v {
			p := types.IntegersOf(e)
			n.mustAttr(name, len(p) == 2, "%s of %s contains %s, which is no pair", name, n.name, e)
			flat = append(flat, n.small(name, p[0]), n.small(name, p[1]))
		}
	default:
		flat, _ = n.integers(name)
	}
	n.mustAttr(name, len(flat) == 2*count, "%s of %s has %d numbers for %d dimensions", name, n.name, len(flat), count)
	for i := range out {
		out[i] = [2]int{flat[2*i], flat[2*i+1]}
	}
	return out
}

// intOr is an integer, otherwise where it is absent.
func (n *node) intOr(name string, otherwise int) int {
	list, ok := n.integers(name)
	if !ok {
		return otherwise
	}
	n.mustAttr(name, len(list) == 1, "%s of %s is no integer", name, n.name)
	return list[0]
}

// flag is whether an attribute is true; one that is absent is not.
func (n *node) flag(name string) bool {
	v, _ := n.value(name).(types.Bool)
	return bool(v)
}

func (n *node) int(name string) int {
	n.must(n.has(name), "DM141", "%s needs the attribute %s", n.name, name)
	return n.intOr(name, 0)
}

// floatOr is a number, otherwise where it is absent.
func (n *node) floatOr(name string, otherwise float64) float64 {
	if v, ok := types.NumberOf(n.value(name)); ok {
		return v
	}
	return otherwise
}

// keyword is the word that an attribute such as #stablehlo<comparison_direction EQ>,
// "EQ" or EQ stands for; "" where it is absent.
func (n *node) keyword(name string) string {
	a, ok := n.attrs[name]
	if !ok {
		return ""
	}
	switch a.x.Kind {
	case ast.AString, ast.AKeyword, ast.ASymbol:
		return strings.TrimPrefix(a.x.Str, "@")
	case ast.ADialect:
		words := strings.Fields(a.x.Body)
		if len(words) > 0 {
			return words[len(words)-1]
		}
	case ast.AType: // a word such as none is a type elsewhere
		return a.x.Text
	}
	n.failAt("DM141", a.at, "%s of %s is no keyword", name, n.name)
	return ""
}

// dense is the literal of an attribute as type t.
func (n *node) dense(name string, t *types.Tensor) *types.Dense {
	a, ok := n.attrs[name]
	n.must(ok, "DM141", "%s needs the attribute %s", n.name, name)
	x := a.x
	resource := x.Kind == ast.ADenseResource
	if x.Kind != ast.ADense && !resource {
		if x.Kind != ast.AInt && x.Kind != ast.AFloat && x.Kind != ast.ABool {
			n.failAt("DM141", a.at, "%s of %s is no dense<…> literal", name, n.name)
		}
		number := *x
		number.Text, _, _ = strings.Cut(x.Text, ":")
		number.Text = strings.TrimSpace(number.Text)
		x = &ast.AttrExpr{Kind: ast.ADense, Text: "dense<" + number.Text + ">", Elems: []*ast.AttrExpr{&number}}
	}
	if x.Type != nil {
		written, err := n.importer.typeOf(x.Type)
		if err != nil {
			n.failError(a.at, err)
		}
		if q, ok := written.(quantizedType); ok { // the integers are written
			written = q.part
		}
		n.must(t == nil || types.Equal(written, t), "DM143", "the literal is a %s, but the result is a %s", written, t)
		if t == nil {
			t, _ = written.(*types.Tensor)
			if why := unsupportedType(written); why != "" {
				n.failAt(Unsupported, a.at, "%s", why)
			}
		}
	}
	n.must(t != nil, "DM141", "%s of %s has no type", name, n.name)
	var d *types.Dense
	var err error
	if resource {
		d, err = n.importer.resource(x, t)
	} else {
		d, err = types.DenseFromExpr(x, t)
	}
	if err != nil {
		n.failError(a.at, err)
	}
	return d
}
