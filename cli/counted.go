package cli

import (
	"path/filepath"
	"slices"

	"dmir/analysis/program"
	"dmir/compile/sparse"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// countPatterns states in p what there is to count of the matrices that arguments of its function called name are, by which costs are those
// of their patterns.
func countPatterns(p *program.Program, name string, matrices []matrix) error {
	counted := map[string]types.Attr{} // by the name of the argument
	return p.Change(func(m *ir.Module) error {
		fn := m.Func(name)
		if fn == nil || fn.Op == nil {
			return nil
		}
		for _, x := range matrices {
			i := slices.IndexFunc(fn.Args, func(v *ir.Value) bool { return v.Name == "%"+x.arg })
			if i < 0 {
				continue // a member of a tuple
			}
			t, _ := fn.Args[i].Type.(*types.Tensor)
			if t == nil || t.Format == nil {
				continue
			}
			if counted[x.arg] == nil {
				bound := t.Bound(op.Bindings(fn, p.Bind))
				if _, ok := sparse.Numbers(bound.Shape); !ok {
					continue // the table says what it lacks
				}
				packed, err := x.pack(sparse.Open(bound))
				if err != nil {
					return err
				}
				c := packed.Count(filepath.Base(x.path))
				if c == nil {
					continue
				}
				x.elements.CountRows(c)
				counted[x.arg] = c.Attr()
			}
			op.SetArgAttr(fn, i, op.CountedAttr, counted[x.arg])
		}
		return nil
	})
}
