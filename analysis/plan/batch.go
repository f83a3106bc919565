package plan

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/microbatch"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// divideBatch finds the arguments with the samples of a step, among those that are named if any are, and follows them.
// Gradients and sums over samples end it: what depends on them is done once.
func (g *graph) divideBatch(named []string) error {
	args := make([]string, len(g.fn.Args))
	for i, a := range g.fn.Args {
		args[i] = strings.TrimPrefix(a.Name, "%")
	}
	known := microbatch.Known{Updated: g.updated}
	for _, name := range named {
		name = strings.TrimPrefix(name, "%")
		i := slices.Index(args, name)
		if i < 0 {
			e := &Error{Code: CodeStep, Msg: fmt.Sprintf("@%s has no argument %%%s", g.fn.Name, diag.Name(name)), Help: "name arguments with samples: --batch x,labels"}
			if near := diag.Suggest(name, args); near != "" {
				e.Help = "did you mean %" + near + "?"
			}
			return e
		}
		if known.Data == nil {
			known.Data = make([]bool, len(args))
		}
		known.Data[i] = true
	}
	g.known = known
	dims, problem := microbatch.Batch(g.fn, known)
	if problem != nil && len(named) > 0 {
		return &Error{
			Code: CodeStep, At: g.siteOf(problem.At), Msg: problem.Msg,
			Help: "name other arguments with --batch, or leave it out: devices then divide what can be divided",
		}
	}
	stated := microbatch.Carried(g.fn)
	for i, a := range g.fn.Args {
		x, ok := g.of[a]
		if !ok || g.values[x].v.Tensor().Rank() == 0 {
			continue
		}
		d, divided := dims[i]
		if !divided {
			if known.Data != nil && known.Data[i] {
				return &Error{Code: CodeStep, Msg: fmt.Sprintf("a batch along the other arguments that --batch names does not go through %%%s", args[i]), Help: "name arguments of the same samples"}
			}
			if !stated[i] && !g.updated[i] && len(named) == 0 {
				g.whole = append(g.whole, "%"+args[i])
			}
			continue
		}
		v := g.values[x]
		v.micro, v.batch = true, d
		g.data = append(g.data, x)
		g.batch = v.shape[d]
		name := "%" + args[i]
		if d > 0 {
			name += fmt.Sprintf(" (dimension %d)", d)
		}
		g.samples = append(g.samples, name)
	}
	for _, n := range g.nodes {
		if n.o != nil {
			g.follow(n)
		}
	}
	return nil
}

// cuttable is why the batch cannot be cut into n micro-batches that do not divide it, nil where it can.
func (g *graph) cuttable(n int) error {
	if n < 2 || g.batch%int64(n) == 0 {
		return nil
	}
	if problem := microbatch.Cut(g.fn, n, g.known); problem != nil {
		return &Error{Code: CodeDevices, At: g.siteOf(problem.At), Msg: problem.Msg, Help: fmt.Sprintf("give --microbatches a number that divides %s, or one that leaves each some", diag.Count(int(g.batch), "sample"))}
	}
	return nil
}

// follow finds the factor of n that samples are along, and whether each result has them.
func (g *graph) follow(n *node) {
	for k := range n.o.Operands {
		v := g.operand(n, k)
		if v == nil || !v.micro {
			continue
		}
		n.micro = true
		if v.batch < 0 || k >= len(n.f.Operands) || v.batch >= len(n.f.Operands[k]) || len(n.f.Operands[k][v.batch]) == 0 {
			continue
		}
		if n.batch < 0 {
			n.batch = n.f.Operands[k][v.batch][0]
		}
	}
	for k := range n.o.Results {
		v := g.result(n, k)
		if v == nil || !n.micro {
			continue
		}
		v.batch = -1
		if n.batch >= 0 && k < len(n.f.Results) {
			v.batch = slices.IndexFunc(n.f.Results[k], func(list []int) bool { return len(list) > 0 && list[0] == n.batch })
		}
		// A sum over samples is complete when all micro-batches have run.
		v.micro = v.batch >= 0 || n.batch < 0 || n.f.Kinds[n.batch] != op.Reduced
	}
}
