package linalg

import (
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// loops is the iteration space of an op of linalg: for each dimension of each operand,
// results included, the loop that it follows, and which loops reduce.
type loops struct {
	maps    [][]int
	reduces []bool
	sizes   []dim.Dim // of the loops
}

// named are the ops of linalg that are sums of products, as equations.
var named = map[string]string{
	"linalg.matmul": "ik,kj,ij", "linalg.matmul_transpose_a": "ki,kj,ij", "linalg.matmul_transpose_b": "ik,jk,ij",
	"linalg.batch_matmul": "bik,bkj,bij", "linalg.matvec": "ij,j,i", "linalg.vecmat": "i,ij,j", "linalg.dot": "i,i,", "linalg.batch_matvec": "bij,bj,bi",
}

// loopsOf is the iteration space of o.
func (c *importer) loopsOf(o *ast.Op) (*loops, error) {
	if eq, ok := named[o.Name]; ok {
		l, letters := &loops{}, ""
		terms := strings.Split(eq, ",")
		for _, t := range terms {
			m := make([]int, len(t))
			for i := range t {
				if strings.IndexByte(letters, t[i]) < 0 {
					letters += t[i : i+1]
					l.reduces = append(l.reduces, strings.IndexByte(terms[len(terms)-1], t[i]) < 0)
				}
				m[i] = strings.IndexByte(letters, t[i])
			}
			l.maps = append(l.maps, m)
		}
		if c.attrs(o)["indexing_maps"] == nil {
			return l, nil
		}
	}
	attrs := c.attrs(o)
	l := &loops{}
	maps := attrs["indexing_maps"]
	if maps == nil || len(maps.Elems) == 0 {
		return nil, unsupported(o, "%s without indexing_maps", o.Name)
	}
	if eq, ok := named[o.Name]; ok { // with maps of its own
		n := len(strings.Split(eq, ",")[0])
		l.reduces = make([]bool, n+1)
	}
	for _, x := range maps.Elems {
		m, n, ok := affine(c.resolved(x).Text)
		if !ok {
			return nil, unsupported(o, "%s with the map %s, whose results are not single dimensions, is not imported", o.Name, x.Text)
		}
		if l.reduces == nil {
			l.reduces = make([]bool, n)
		}
		if n != len(l.reduces) {
			return nil, unsupported(o, "the maps of %s have different numbers of dimensions", o.Name)
		}
		l.maps = append(l.maps, m)
	}
	if kinds := attrs["iterator_types"]; kinds != nil && len(kinds.Elems) == len(l.reduces) {
		for i, x := range kinds.Elems {
			l.reduces[i] = strings.Contains(x.Text, "reduction")
		}
		return l, nil
	}
	for i := range l.reduces {
		l.reduces[i] = true
	}
	for _, i := range l.maps[len(l.maps)-1] {
		if i >= 0 {
			l.reduces[i] = false
		}
	}
	return l, nil
}

// affine reads affine_map<(i, j) -> (i, 0)>: the number of the dimension of each result, -1
// for 0; n is how many dimensions there are.
func affine(text string) (m []int, n int, ok bool) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), "affine_map<")
	body, closed := strings.CutSuffix(body, ">")
	from, to, arrow := strings.Cut(body, "->")
	list := func(s string) ([]string, bool) {
		inner, ok := strings.CutPrefix(strings.TrimSpace(s), "(")
		inner, closed := strings.CutSuffix(inner, ")")
		var out []string
		for x := range strings.SplitSeq(inner, ",") {
			if x = strings.TrimSpace(x); x != "" {
				out = append(out, x)
			}
		}
		return out, ok && closed
	}
	dims, ok1 := list(from)
	results, ok2 := list(to)
	if !ok || !closed || !arrow || !ok1 || !ok2 {
		return nil, 0, false
	}
	at := map[string]int{"0": -1}
	for i, d := range dims {
		at[d] = i
	}
	for _, r := range results {
		i, known := at[r]
		if !known {
			return nil, 0, false
		}
		m = append(m, i)
	}
	return m, len(dims), true
}

// sizes are the shapes of the values of a function; sizes left open are symbols, of which
// those that must be the same are one.
type sizes struct {
	of    map[string][]dim.Dim
	same  map[string]dim.Dim
	count int
}

// fresh is t's shape with a symbol for each size left open.
func (s *sizes) fresh(t *types.Tensor) []dim.Dim {
	out := make([]dim.Dim, len(t.Shape))
	for i, d := range t.Shape {
		if out[i] = d; !d.IsConst() {
			out[i] = dim.Sym("n" + strconv.Itoa(s.count))
			s.count++
		}
	}
	return out
}

func (s *sizes) find(d dim.Dim) dim.Dim {
	for !d.IsConst() {
		next, ok := s.same[d.String()]
		if !ok {
			break
		}
		d = next
	}
	return d
}

// unify makes d and e one size; the earlier symbol stays. It reports false for two numbers.
func (s *sizes) unify(d, e dim.Dim) bool {
	d, e = s.find(d), s.find(e)
	number := func(d dim.Dim) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(d.String(), "n"))
		return n
	}
	switch {
	case d.Equal(e):
	case !d.IsConst() && (e.IsConst() || number(d) > number(e)):
		s.same[d.String()] = e
	case !e.IsConst():
		s.same[e.String()] = d
	default:
		return false
	}
	return true
}

// learn takes what o, an op of a function, says about sizes.
func (c *importer) learn(s *sizes, o *ast.Op) error {
	result := ""
	if len(o.Results) > 0 {
		result = o.Results[0].Name
	}
	pair := func(a, b []dim.Dim) error {
		for i := range min(len(a), len(b)) {
			if !s.unify(a[i], b[i]) {
				return unsupported(o, "the sizes of %s do not fit together", o.Name)
			}
		}
		return nil
	}
	switch {
	case named[o.Name] != "" || o.Name == "linalg.generic":
		l, err := c.loopsOf(o)
		if err != nil {
			return err
		}
		size := make([]dim.Dim, len(l.reduces))
		known := make([]bool, len(l.reduces))
		for i, u := range o.Operands {
			if i >= len(l.maps) {
				return unsupported(o, "%s has more operands than maps", o.Name)
			}
			for k, d := range s.of[u.Name] {
				switch at := l.maps[i]; {
				case k >= len(at) || at[k] < 0:
				case !known[at[k]]:
					size[at[k]], known[at[k]] = d, true
				case !s.unify(size[at[k]], d):
					return unsupported(o, "the sizes of %s do not fit together", o.Name)
				}
			}
		}
		if n := len(o.Operands); result != "" && n > 0 {
			s.of[result] = s.of[o.Operands[n-1].Name]
		}
	case o.Name == "linalg.fill" && len(o.Operands) == 2:
		s.of[result] = s.of[o.Operands[1].Name]
	case o.Name == "linalg.transpose" && len(o.Operands) == 2:
		to, from := s.of[o.Operands[1].Name], s.of[o.Operands[0].Name]
		s.of[result] = to
		for i, d := range integers(c.attrs(o)["permutation"]) {
			if i < len(to) && d < len(from) && !s.unify(from[d], to[i]) {
				return unsupported(o, "the sizes of %s do not fit together", o.Name)
			}
		}
	default:
		t := c.resultType(o)
		if t == nil || result == "" {
			return nil
		}
		s.of[result] = s.fresh(t)
		if (o.Name == "sparse_tensor.convert" || o.Name == "tensor.cast") && len(o.Operands) == 1 {
			return pair(s.of[o.Operands[0].Name], s.of[result])
		}
	}
	return nil
}

// resultType is the type of the one result of o that its text states; nil where it states none.
func (c *importer) resultType(o *ast.Op) *types.Tensor {
	text := o.Text(c.src, o.Sig)
	for _, sep := range []string{"->", " to "} {
		if i := strings.LastIndex(text, sep); i >= 0 && !(sep == "->" && strings.Contains(text[i:], "}>")) {
			text = text[i+len(sep):]
			break
		}
	}
	t, err := c.typed(text)
	if err != nil {
		return nil
	}
	tensor, _ := t.(*types.Tensor)
	return tensor
}

func integers(x *ast.AttrExpr) (out []int) {
	if x == nil {
		return nil
	}
	for _, e := range x.Elems {
		word, _, _ := strings.Cut(e.Text, " ")
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	return out
}
