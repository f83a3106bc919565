package schedule

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// sinkState moves the steps whose results are state, and only returned, to the end
// of fn: after every reader of the arguments whose next values they are, they
// may write these in place. The order that is chosen afterwards keeps them there.
func sinkState(fn *ir.Func) {
	state := op.State(fn.Op)
	last := fn.Body.Terminator()
	if state == nil || last == nil || !op.Ends(last) {
		return
	}
	next := map[*ir.Value]bool{}
	for i, v := range last.Operands {
		if i < len(state) && state[i] >= 0 {
			next[v] = true
		}
	}
	sinks := func(o *ir.Op) bool {
		any := false
		for _, v := range o.Results {
			any = any || next[v]
			for _, u := range v.Uses {
				if u.Op != last {
					return false
				}
			}
		}
		return any
	}
	var stay, sink []*ir.Op
	for _, o := range fn.Body.Ops[:len(fn.Body.Ops)-1] {
		if sinks(o) {
			sink = append(sink, o)
		} else {
			stay = append(stay, o)
		}
	}
	fn.Body.Ops = slices.Concat(stay, sink, []*ir.Op{last})
}
