package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM407", Name: "worth-a-checkpoint", Severity: diag.Info,
	Summary: "a traced training step exceeds its memory, and holds what a function of it could compute again",
	Python: "compute the function again for its gradient: jax.checkpoint(block)(x, …), nn.remat(Block) of Flax; " +
		"in PyTorch torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
	Doc: `## What it does
Finds, in a training step that was traced and whose peak of memory exceeds ` + "`dm.max_peak`" + `, or the memory of the machine, the function
of the source whose calls hold the most at the peak for the gradient in relation to the time in which they can be computed again, of those that
bring the step below the limit alone where there are such. What other functions read, such as the results of a layer, stays held.

## Why it matters
The backward pass needs the values of the forward pass in reverse order, so that at its beginning all layers' are held. A layer that
is computed again holds what it begins with alone, for one more forward pass of it.

## Example
With 12 layers of 1.2 GB and ` + "`dm.max_peak = \"8 GB\"`" + ` the finding names the function ` + "`block`" + `, 13 GB that need not be held, and the time of its 12 calls.

## Fix
None: the gradient is a part of the text already. In the dialect ` + "`dm.recompute`" + ` on a call of a function that ` + "`dm.grad`" + ` differentiates does that, and
` + "`dmir plan`" + ` chooses where.
`,
	Check: func(c *Context) {
		limit, source := c.memoryLimit()
		if limit <= 0 || len(c.Fn.Body.Ops) == 0 {
			return
		}
		if peak, ok := c.shown().Peak().Int(); !ok || peak <= limit {
			return
		}
		calls, bound := c.calls()
		var best *calledFunction
		for _, f := range calls {
			if best == nil || f.before(best, bound-limit) {
				best = f
			}
		}
		if best == nil || best.held < bound/100 {
			return
		}
		c.Report(Finding{
			Op: best.first,
			Message: fmt.Sprintf("the step holds %s, %s more than %s; computed again for the gradient, %s would not hold %s",
				units.Bytes(bound), units.Bytes(bound-limit), source, best.name, units.Bytes(best.held)),
			Label: fmt.Sprintf("%s more on %s, and up to %s less held", units.Time(best.ns), c.Machine.Name, units.Bytes(best.held)),
			Help:  "mark the calls with dm.recompute before the gradient is written out",
		})
	},
})

// memoryLimit is how many bytes the function may hold, and what says so.
func (c *Context) memoryLimit() (n int64, source string) {
	limits, _ := cost.ParseBudget(c.Fn)
	for _, l := range limits {
		if n, ok := l.At.Int(); ok && l.Attr == op.MaxPeakAttr {
			return n, l.Attr + " allows"
		}
	}
	if c.Machine == nil {
		return 0, ""
	}
	return c.Machine.Memory, c.Machine.Name + " has"
}

// calledFunction is a function of the source, with all its calls from one line.
type calledFunction struct {
	name  string
	first *ir.Op
	held  int64   // bytes at the peak, of values that its own ops alone read in the forward pass
	ns    float64 // of its ops in the forward pass
}

// before reports whether computing f again is better than g where the step holds excess bytes too much.
func (f *calledFunction) before(g *calledFunction, excess int64) bool {
	switch a, b := f.held >= excess, g.held >= excess; {
	case a != b:
		return a
	case a:
		return f.ns < g.ns
	}
	return float64(f.held)*(g.ns+1) > float64(g.held)*(f.ns+1)
}

// calls are the functions of the source that the forward pass of a training step calls, in the order of the text, and how much the
// step holds at its peak.
func (c *Context) calls() (all []*calledFunction, bound int64) {
	plan, from, err := c.shown().Lay()
	if err != nil {
		return nil, 0
	}
	known := map[string]*calledFunction{}
	paths := map[loc.Loc][]string{}
	in := func(o *ir.Op) []string { // the functions around o, if it is one of the forward pass of a step that has a backward one
		if _, seen := paths[o.Loc]; !seen {
			paths[o.Loc] = functions(o.Loc)
		}
		return paths[o.Loc]
	}
	for _, e := range c.Cost.Entries {
		for _, key := range in(e.Op) {
			f := known[key]
			if f == nil {
				name, _, _ := strings.Cut(key, "\x00")
				f = &calledFunction{name: name, first: e.Op}
				known[key] = f
				all = append(all, f)
			}
			f.ns += e.Time(c.Machine).Ns
		}
	}
	for _, b := range plan.Buffers {
		o := from.Of(b.Op)
		if b.Arg || o == nil || len(o.Results) == 0 || b.First > plan.PeakStep || b.Last < plan.PeakStep {
			continue
		}
		for _, key := range in(o) {
			inside := true
			for _, r := range o.Results {
				for _, u := range r.Uses {
					keys := in(u.Op)
					inside = inside && !op.Ends(u.Op) && (len(keys) == 0 || slices.Contains(keys, key))
				}
			}
			if f := known[key]; inside && f != nil {
				f.held += b.Bytes
			}
		}
	}
	return all, plan.Bound
}

// functions are those of the source that l lies in, with the lines that they are called from; none for a place in the backward pass or outside
// of a differentiated function. The step, which is compiled, the function that it differentiates and what is around them are left out.
func functions(l loc.Loc) (keys []string) {
	parts := loc.Parts(l)
	if len(parts) == 0 {
		return nil
	}
	t := loc.TraceOf(parts[0].Loc)
	if !t.Forward() || t.Backward() {
		return nil
	}
	step := len(t.Frames) - 1
	if _, scope, ok := strings.Cut(t.Scopes[0], "jit("); ok {
		name, _, _ := strings.Cut(scope, ")")
		if i := slices.IndexFunc(t.Frames, func(f loc.Frame) bool { return f.Function == name }); i >= 0 {
			step = i
		}
	}
	for i := 0; i+1 < step; i++ {
		f := t.Frames[i]
		if f.Function == "" {
			continue
		}
		var around strings.Builder
		for _, g := range t.Frames[i+1:] {
			fmt.Fprintf(&around, "\x00%s:%d", g.File, g.Line)
		}
		at := t.Frames[i+1]
		keys = append(keys, fmt.Sprintf("%s (called at %s:%d)", f.Function, path.Base(at.File), at.Line)+around.String())
	}
	return keys
}
