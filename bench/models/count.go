package models

import (
	"errors"
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Parameters is how many parameters the step in m, which this package has written, learns.
func Parameters(m *ir.Module) (int64, error) {
	fn := m.Func("train")
	if fn == nil {
		return 0, errors.New("the module has no function @train")
	}
	var n int64
	for _, a := range fn.Args {
		if a.Name != "%weights" && a.Name != "%scales" {
			continue
		}
		e, ok := elements(a.Type)
		if !ok {
			return 0, fmt.Errorf("%s has symbolic sizes", a.Name)
		}
		n += e
	}
	return n, nil
}

func elements(t types.Type) (n int64, ok bool) {
	switch t := t.(type) {
	case *types.Tensor:
		return t.Elements().Int()
	case *types.Tuple:
		for _, m := range t.Of {
			e, ok := elements(m)
			if !ok {
				return 0, false
			}
			n += e
		}
		return n, true
	}
	return 0, false
}
