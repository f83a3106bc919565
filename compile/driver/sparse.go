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
	"dmir/dialect/types"
)

// sparseResult is a result that is a sparse tensor: the names of its components among the
// results, and its own.
type sparseResult struct {
	name  string
	parts []string
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
			r := sparseResult{t: sparse.Bound(m.Tensor, sizes)}
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

// Together are results of steps with sparse tensors in place of their components.
func (s *Steps) Together(outs []Output) []Output { return together(outs, s.sparse) }

// sizes are those that the job's program and inputs give to symbols.
func (j Job) sizes() map[string]int64 {
	flat, _ := flatten.Func(j.Fn)
	return interp.Sizes(flat, j.Program.Bind, j.Inputs)
}
