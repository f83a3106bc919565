package cost

import (
	"fmt"

	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The attributes by which a function limits what it may move and hold.
const (
	MaxMoved = "dm.max_moved"
	MaxPeak  = "dm.max_peak"
)

// Budget is a function's own limit on its cost: {dm.max_moved = "1.2 GB",
// dm.max_peak = "3 GB"}; -1 where none is written.
type Budget struct{ MaxMoved, MaxPeak int64 }

// ParseBudget reads fn's budget. Errors name the attribute and say how to
// write it; the other limit is still read.
func ParseBudget(fn *ir.Func) (b Budget, errs []error) {
	b = Budget{-1, -1}
	if fn.Op == nil {
		return b, nil
	}
	for _, limit := range []struct {
		attr string
		to   *int64
	}{{MaxMoved, &b.MaxMoved}, {MaxPeak, &b.MaxPeak}} {
		var n int64
		var err error
		switch a := fn.Op.Attr(limit.attr).(type) {
		case nil:
			continue
		case types.Int:
			if n = a.V; n < 0 {
				err = fmt.Errorf("%d is negative; a size in bytes is 0 or more", n)
			}
		case types.Str:
			n, err = units.ParseBytes(string(a))
		default:
			err = fmt.Errorf("%s is not a size; write for example %q", a, "1.2 GB")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", limit.attr, err))
			continue
		}
		*limit.to = n
	}
	return b, errs
}
