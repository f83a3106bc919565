package driver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/compile/interp"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// sparseResult is a result that is a sparse tensor: the names of its components among the
// results, and its own.
type sparseResult struct {
	name  string
	parts []string
	first int // the number of the first component among the results
	t     *types.Tensor
}

// sparseResults are those of fn, under sizes.
func sparseResults(fn *ir.Func, sizes map[string]int64) []sparseResult {
	if !slices.ContainsFunc(fn.Results, func(t types.Type) bool {
		return slices.ContainsFunc(types.Members(t), func(m types.Member) bool { return m.Tensor.Format != nil })
	}) {
		return nil
	}
	outs, k := resultsOf(fn), 0
	var all []sparseResult
	for _, t := range fn.Results {
		members := types.Members(t)
		if len(members) == 0 {
			k++
		}
		for _, m := range members {
			if m.Tensor.Format == nil {
				k++
				continue
			}
			r := sparseResult{first: k, t: m.Tensor.Bound(sizes)}
			for _, c := range m.Tensor.Components() {
				r.parts = append(r.parts, outs[k].Name)
				if r.name == "" {
					r.name = strings.TrimSuffix(outs[k].Name, "."+c.Name)
				}
				k++
			}
			all = append(all, r)
		}
	}
	return all
}

// together are outs with sparse tensors in place of their components, where all of these are there.
func together(outs []Output, of []sparseResult) []Output {
	for _, r := range of {
		first := slices.IndexFunc(outs, func(o Output) bool { return o.Name == r.parts[0] })
		if first < 0 || first+len(r.parts) > len(outs) {
			continue
		}
		x := &sparse.Tensor{Type: r.t}
		for i, name := range r.parts {
			if o := outs[first+i]; o.Name == name && o.Tensor != nil && o.Pieces == nil {
				x.Parts = append(x.Parts, o.Tensor)
			}
		}
		if x.Type = x.Held(); x.Type == nil {
			continue
		}
		o := Output{Name: r.name, Type: x.Type.String(), Sparse: x, Tensor: x.Values()}
		if x.Check() == nil {
			n := int(x.Stored())
			o.Tensor = prefix(x.Values(), n)
		}
		outs = slices.Replace(outs, first, first+len(r.parts), o)
	}
	return outs
}

// prefix is the first n elements of x.
func prefix(x *tensor.Tensor, n int) *tensor.Tensor {
	y := tensor.Tensor{Elem: x.Elem, Shape: []int{n}}
	switch x.Kind() {
	case tensor.KindF32:
		y.F32 = x.F32[:n]
	case tensor.KindF64:
		y.F64 = x.F64[:n]
	case tensor.KindInt:
		y.Int = x.Int[:n]
	case tensor.KindBool:
		y.Bool = x.Bool[:n]
	}
	return &y
}

// shownEntries is how many elements of a sparse result are listed.
const shownEntries = 3

// stored says how many elements a sparse output stores, their range, and the first ones.
func (o Output) stored() string {
	if err := o.Sparse.Check(); err != nil {
		return "is no tensor of its type: " + err.Error()
	}
	n := o.Tensor.Len()
	text := thousands(n) + " stored"
	if n == 0 {
		return text
	}
	text += ": " + o.values() + "; "
	at, values := o.Sparse.First(shownEntries)
	for k, p := range at {
		text += fmt.Sprintf("%s %.4g, ", sparse.Place(p), values.Float(k))
	}
	if n > len(at) {
		return text + "…"
	}
	return strings.TrimSuffix(text, ", ")
}

// thousands is n with a comma before each three digits, as in 1,234.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Together are results of p with sparse tensors in place of their components.
func Together(p *artifact.Program, outs []Output) []Output { return together(outs, sparseOf(p)) }

// sparseOf are the results of p that are sparse tensors. What a file says of them and is wrong is left out.
func sparseOf(p *artifact.Program) (out []sparseResult) {
	for _, s := range p.Sparse {
		t, err := sparse.ParseType(s.Type)
		if err != nil || !s.Result || s.First < 0 {
			continue
		}
		r := sparseResult{name: s.Name, first: s.First, t: t}
		for i := range t.Components() {
			if s.First+i < len(p.Outputs) {
				r.parts = append(r.parts, p.Result(s.First+i))
			}
		}
		if len(r.parts) == len(t.Components()) {
			out = append(out, r)
		}
	}
	return out
}

// describeSparse adds to p the sparse tensors among the arguments and the results of fn, for runs without its text.
func describeSparse(p *artifact.Program, fn *ir.Func, bind map[string]int64) {
	if p.Divided != nil {
		return // their pieces are stored otherwise
	}
	add := func(s artifact.Sparse, t *types.Tensor, size func(part int) int64) {
		x := &sparse.Tensor{Type: t}
		for k, c := range t.Components() {
			x.Parts = append(x.Parts, &tensor.Tensor{Elem: c.Tensor.Elem, Shape: []int{int(size(k))}})
		}
		if t = x.Held(); t != nil {
			s.Type = t.String()
			p.Sparse = append(p.Sparse, s)
		}
	}
	sizes := op.Bindings(fn, bind)
	flat, _ := flatten.Func(fn)
	for _, g := range interp.SparseArgs(flat) {
		if g.First+len(g.Type.Components()) > len(p.Inputs) {
			continue
		}
		s := artifact.Sparse{First: g.First, Name: strings.TrimPrefix(g.Name, "%")}
		if a := op.ArgAttr(flat, g.First, op.PatternAttr); a != nil {
			of, _ := op.StatedPattern(a)
			s.Pattern = &artifact.Pattern{Kind: of.Kind, Exponent: of.Exponent, Width: of.Width, Size: of.Size}
		}
		add(s, g.Type.Bound(sizes), func(part int) int64 { return p.Buffers[p.Inputs[g.First+part]].Shape[0] })
	}
	for _, r := range sparseResults(fn, sizes) {
		if r.first+len(r.parts) <= len(p.Outputs) {
			add(artifact.Sparse{Result: true, First: r.first, Name: r.name}, r.t, func(part int) int64 { return p.ResultView(r.first + part).Shape[0] })
		}
	}
}

// Together are results of steps with sparse tensors in place of their components.
func (s *Steps) Together(outs []Output) []Output { return together(outs, s.sparse) }

// sizes are those that the job's program and inputs give to symbols.
func (j Job) sizes() map[string]int64 {
	flat, _ := flatten.Func(j.Fn)
	return interp.Sizes(flat, j.Program.Bind, j.Inputs)
}
