package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/sparse"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// countPatterns states in p what there is to count of the matrices that arguments of its function called name are, by which costs are those
// of their patterns.
func countPatterns(p *program.Program, name string, matrices []matrix) error {
	counted, rooms := map[string]types.Attr{}, map[string]types.Attr{} // by the name of the argument
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
				if rooms[x.arg], err = driver.PieceRoom(m, fn, i, packed); err != nil {
					return err
				}
			}
			op.SetArgAttr(fn, i, op.CountedAttr, counted[x.arg])
			if rooms[x.arg] != nil {
				op.SetArgAttr(fn, i, op.PieceRoomAttr, rooms[x.arg])
			}
		}
		return nil
	})
}

// counted is p, which is src, with the matrices that inputs name for sparse arguments of its function called name: sizes that it leaves
// open are theirs, and costs those of their patterns.
func (a *app) counted(src *source.File, opts program.Options, p *program.Program, name string, inputs []string) (*program.Program, []matrix, error) {
	_, fn, err := driver.Pick(p, name)
	if err != nil {
		return nil, nil, noFunction(p, err, "--func")
	}
	p, matrices, err := a.sized(src, opts, p, fn, inputs)
	if err != nil {
		return nil, nil, err
	}
	for _, in := range inputs {
		arg, _, _ := strings.Cut(in, "=")
		if arg = strings.TrimPrefix(arg, "%"); slices.ContainsFunc(matrices, func(m matrix) bool { return m.arg == arg }) {
			continue
		}
		var sparse []string
		for _, s := range sparseArguments(fn, nil) {
			sparse = append(sparse, s.name)
		}
		help := "give sizes with --bind n=512"
		if sparse != nil {
			help = "its sparse arguments are " + strings.Join(sparse, ", ") + ", as a=FILE.mtx; " + help
		}
		return nil, nil, &failure{"DM607", "--input " + in, fmt.Sprintf("@%s has no sparse argument %%%s that takes it", fn.Name, arg), help}
	}
	if err := countPatterns(p, fn.Name, matrices); err != nil {
		return nil, nil, err
	}
	return p, matrices, nil
}
