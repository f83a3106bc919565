package lint

import (
	"fmt"
	"slices"
	"strconv"

	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// donateLeast is how many bytes of arguments are worth the word.
const donateLeast = 1 << 20

var _ = register(&Rule{
	Code: "DM223", Name: "not-donated", Severity: diag.Info, Fix: Unsafe,
	Summary: "a traced step makes the next values of its arguments beside the old ones",
	Python: "donate what the step replaces: jax.jit(step, donate_argnames=(\"params\", \"opt_state\")), and use the returned values alone " +
		"afterwards. In PyTorch update in place: optimizers do, with torch.no_grad(): p.sub_(lr * p.grad)",
	Doc: `## What it does
Finds, in a function that was traced from another program, two or more results that element-wise ops make of an argument of the same
type each, as an optimizer makes parameters and moments, where the arguments are neither donated nor marked as state, and have 1 MiB
or more together.

## Why it matters
The caller keeps the arguments, so that the old and the new values of all parameters and moments lie in memory together. Donated, a new
value takes the place of the old one.

## Example
` + "```mlir" + `
func.func @step(%w: tensor<4096x4096xf32>, %m: tensor<4096x4096xf32>, …) -> (tensor<4096x4096xf32>, tensor<4096x4096xf32>) {
` + "```" + `
becomes
` + "```mlir" + `
func.func @step(%w: tensor<4096x4096xf32>, %m: tensor<4096x4096xf32>, …)
    -> (tensor<4096x4096xf32> {dm.state = "w"}, tensor<4096x4096xf32> {dm.state = "m"}) {
` + "```" + `

## Fix
Unsafe: the results are marked as the next values of the arguments (` + "`dm.state`" + `), whose old values a caller must not use afterwards.
`,
	Check: func(c *Context) {
		pairs := updated(c.Fn)
		if len(pairs) < 2 || c.Fn.Private || op.State(c.Fn.Op) != nil {
			return
		}
		var bytes int64
		largest := pairs[0]
		for _, p := range pairs {
			n, _ := p.arg.Tensor().Bytes().Int()
			bytes += n
			if m, _ := largest.arg.Tensor().Bytes().Int(); n > m {
				largest = p
			}
		}
		if bytes < donateLeast {
			return
		}
		f := Finding{
			Op:      largest.made,
			Message: fmt.Sprintf("%s of @%s are replaced by results, and both lie in memory: %s could be donated", diag.Count(len(pairs), "argument"), c.Fn.Name, units.Bytes(bytes)),
			Label:   "the next value of " + spelling(largest.arg),
			Help:    "mark the results as the next values of the arguments: dm.state",
		}
		if edits := stateEdits(c.Fn, pairs); edits != nil && c.trials < maxTrials {
			c.trials++
			if q := c.changed(edits); q != nil {
				for i, g := range c.program.Funcs {
					if g == c.Cost {
						after := q.Funcs[i].PerDevice()
						if s := difference(c, c.shown(), after); !s.Bytes.IsZero() {
							f.Saving = s
						}
						f.Tried = true
						f.Notes = held(c.shown(), after)
					}
				}
				f.Fix = &diag.Fix{Title: "Mark " + diag.Count(len(pairs), "result") + " as state", Edits: edits}
			}
		}
		c.Report(f)
	},
})

// update is a result of a function that is the next value of an argument.
type update struct {
	arg    *ir.Value
	result int
	made   *ir.Op // which makes the result
}

// updated are the results of a traced function that element-wise ops make of an argument of the same type: for each argument the one
// that is the fewest ops away.
func updated(fn *ir.Func) (pairs []update) {
	t := fn.Body.Terminator()
	if t == nil {
		return nil
	}
	taken := map[*ir.Value]bool{}
	for i, v := range t.Operands {
		if v.Op == nil || v.Op.Loc == nil || v.Tensor() == nil || v.Tensor().Rank() == 0 {
			continue
		}
		if a := updates(fn, v, taken); a != nil {
			taken[a] = true
			pairs = append(pairs, update{a, i, v.Op})
		}
	}
	return pairs
}

// updateDepth is how many element-wise ops lie between an argument and its next value at most: those of an optimizer.
const updateDepth = 12

// updates is the argument of fn that is the fewest element-wise ops before v, has v's type and is not taken, nil where there is none.
func updates(fn *ir.Func, v *ir.Value, taken map[*ir.Value]bool) *ir.Value {
	seen := map[*ir.Value]bool{v: true}
	level := []*ir.Value{v}
	for range updateDepth {
		var next []*ir.Value
		for _, w := range level {
			if w.Op == nil {
				if w.Block == fn.Body && !taken[w] && !op.Donated(fn.Op, w.Index) && types.Equal(w.Type, v.Type) {
					return w
				}
				continue
			}
			if !pattern.Elementwise(w.Op) {
				continue
			}
			for _, x := range w.Op.Operands {
				if !seen[x] && types.Equal(x.Type, v.Type) {
					seen[x] = true
					next = append(next, x)
				}
			}
		}
		level = next
	}
	return nil
}

// stateEdits mark results of fn as the next values of arguments, nil where the text has no place for that.
func stateEdits(fn *ir.Func, pairs []update) (edits []diag.Edit) {
	t := origin.Tree(fn.Op)
	if t == nil || t.Func == nil {
		return nil
	}
	for _, p := range pairs {
		if p.result >= len(t.Func.Results) {
			return nil
		}
		r := t.Func.Results[p.result]
		state := op.StateAttr + " = " + strconv.Quote(p.arg.Name[1:])
		if !r.Attrs.Empty() {
			at := t.Abs(r.Attrs).Start + 1
			edits = append(edits, diag.Edit{Span: source.Span{Start: at, End: at}, Text: state + ", "})
			continue
		}
		at := t.Abs(r.Type).End
		edits = append(edits, diag.Edit{Span: source.Span{Start: at, End: at}, Text: " {" + state + "}"})
	}
	slices.SortFunc(edits, func(a, b diag.Edit) int { return a.Span.Start - b.Span.Start })
	return edits
}
