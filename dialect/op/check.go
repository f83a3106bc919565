package op

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The ops of StableHLO's check dialect, with which a program states what it expects
// of its values, are no entries of the registry: they compute nothing.

// IsCheck reports whether o compares its operand with a second one or, if its name
// ends in _const, with its attribute value.
func IsCheck(o *ir.Op) bool {
	switch strings.TrimSuffix(o.Name, "_const") {
	case "check.expect_eq", "check.expect_almost_eq", "check.expect_close":
		return len(o.Results) == 0
	}
	return false
}

// almost is the tolerance of check.expect_almost_eq, relative for values above
// 1 and absolute below, as in StableHLO's check dialect.
const almost = 1e-3

// ToleranceAttr is the attribute of check.expect_almost_eq with another tolerance.
const ToleranceAttr = "tolerance"

// Tolerance is the difference that o, a check, permits; see also ULPs.
func Tolerance(o *ir.Op) float64 {
	if !strings.HasPrefix(o.Name, "check.expect_almost_eq") {
		return 0
	}
	if t, ok := types.NumberOf(o.Attr(ToleranceAttr)); ok {
		return t
	}
	return almost
}

// MaxULP is the attribute of check.expect_close with the difference that it permits.
const MaxULP = "max_ulp_difference"

// ULPs is the difference in units in the last place that o, a check, permits.
func ULPs(o *ir.Op) int64 {
	if strings.HasPrefix(o.Name, "check.expect_close") {
		return o.Int(MaxULP, 3)
	}
	return 0
}

// MemberAttr is the place in a tuple of what a check made of one on tuples compares.
const MemberAttr = "member"

// RoomAttr names, of a check made of an op that assembles a sparse tensor, the tensor:
// compared are how many elements it would store, and as many of them as it has room for.
// or, behind RoomForProducts, how many products it sums and as many as its attribute states.
const (
	RoomAttr        = "room"
	RoomForProducts = "products of "
)

// callsAttr are the calls through which the body with a check was inlined.
const callsAttr = "calls"

// Caller is a call that was replaced by the body that it called.
type Caller struct {
	Name  string // of the function, without "@"
	At    int    // offset of the call in the text
	Loops int    // how many of the loops around the check are inside the body
}

// Called notes at the checks among ops, the body that stands for call, that they
// were called by it.
func Called(ops []*ir.Op, call *ir.Op) {
	var note func(ops []*ir.Op, loops int)
	note = func(ops []*ir.Op, loops int) {
		for _, o := range ops {
			if IsCheck(o) {
				o.Verbatim = false
				calls, _ := o.Attr(callsAttr).(types.Array)
				at := types.Array{types.Str(call.Str("callee")), types.Int{V: int64(call.Span.Start), Elem: types.I64}, types.Int{V: int64(loops), Elem: types.I64}}
				o.SetAttr(callsAttr, append(calls[:len(calls):len(calls)], at))
			}
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					if b == LoopBody(o) {
						note(b.Ops, loops+1)
					} else {
						note(b.Ops, loops)
					}
				}
			}
		}
	}
	note(ops, 0)
}

// Callers are the calls that Called noted at o, the innermost first.
func Callers(o *ir.Op) []Caller {
	calls, _ := o.Attr(callsAttr).(types.Array)
	var out []Caller
	for _, a := range calls {
		if a, ok := a.(types.Array); ok && len(a) == 3 {
			at, _ := a[1].(types.Int)
			loops, _ := a[2].(types.Int)
			out = append(out, Caller{types.TextOf(a[0]), int(at.V), int(loops.V)})
		}
	}
	return out
}

// RemoveChecks erases the checks in b and in the regions of its ops.
func RemoveChecks(b *ir.Block) {
	var checks []*ir.Op
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		if IsCheck(o) {
			checks = append(checks, o)
		}
		return true
	})
	for _, o := range checks {
		ir.Erase(o)
	}
}
