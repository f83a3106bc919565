// Package layout chooses the order of dimensions in memory of every value, over
// a whole body, so that the predicted time of data movement is least. A value is
// written in one order and may be copied to others; each op constrains
// the orders of its operands and results (model.go). A transpose whose result
// has the memory order of its operand moves nothing. The inputs and
// results of the body keep their order.
package layout

import (
	"math"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// Pass is the pass.
func Pass() pass.Pass {
	return pass.Pass{Name: "layout", Summary: "the order in which each value's dimensions lie in memory, by the least predicted time", Run: func(u *pass.Unit) error {
		_, err := Run(u)
		return err
	}}
}

// Figures are statistics of a run.
type Figures struct {
	Before, After float64 // predicted time of movement that depends on layout, ns
	Values        int     // whose order there was to choose
	Exact         bool    // no choice among the orders considered costs less
}

// mostOrders bounds the orders of one value that are considered. Where the
// problem is too dense for an exact solution, fewer are.
const mostOrders = 3

// Run chooses layouts for u's body in place. It changes nothing if none is
// better than the present ones.
func Run(u *pass.Unit) (*Figures, error) {
	if !u.Body().OneBlock() || u.Machine == nil {
		return &Figures{Exact: true}, nil
	}
	for most := mostOrders; most > 1; most-- {
		m := newModel(u, most)
		if len(m.open) == 0 {
			return &Figures{Exact: true}, nil
		}
		f := &Figures{Values: len(m.open), Exact: most == mostOrders}
		now := m.problem(true)
		before, ok := now.solve()
		if !ok {
			continue
		}
		f.Before = now.cost(before)
		f.After = f.Before
		best := m.problem(false)
		states, ok := best.solve()
		if !ok {
			continue
		}
		// Times are floating-point sums: a gain must exceed rounding.
		if after := best.cost(states); after < f.Before*(1-1e-9)-1e-6 {
			f.After = after
			return f, m.apply(states)
		}
		return f, nil
	}
	return &Figures{}, nil
}

// apply writes the orders of a solution into the types, and inserts the copies.
func (m *model) apply(states []int) error {
	type copied struct {
		v     *ir.Value
		order int
	}
	copies := map[copied]*ir.Value{}
	for _, v := range m.values {
		if base := m.orders[v][m.state(v, states[m.number[v]]).base]; !slices.Equal(base, m.current[v]) {
			v.Type = ordered(v.Tensor(), base)
		}
	}
	// The copy that each use reads, by the available orders.
	for _, n := range m.needs {
		at := states[m.number[n.v]]
		s := m.state(n.v, at)
		want := n.order(states)
		if want < 0 || want == s.base {
			continue
		}
		key := copied{n.v, want}
		if copies[key] == nil {
			c, err := m.copy(n.v, m.orders[n.v][want], n.op)
			if err != nil {
				return err
			}
			copies[key] = c
		}
		n.op.SetOperand(n.index, copies[key])
	}
	m.u.Func.Retype()
	return nil
}

// ordered is t in that order.
func ordered(t *types.Tensor, order []int) *types.Tensor {
	r := *t
	if r.At.Order = slices.Clone(order); slices.IsSorted(order) {
		r.At.Order = nil
	}
	return &r
}

// copy inserts a copy of v in another order, right after its definition or, of
// an input, at the start; user reads it first.
func (m *model) copy(v *ir.Value, order []int, user *ir.Op) (*ir.Value, error) {
	at := &ir.Builder{Block: m.body.Block, At: user}
	if m.body.Defines(v) {
		at = &ir.Builder{Block: m.body.Block, Index: v.Op.Position() + 1, At: v.Op}
	}
	b := op.NewBuilder(at, verify.Op)
	c := b.Value("copy", []*ir.Value{v}, nil, ordered(v.Tensor(), order))
	if err := b.Err(); err != nil {
		return nil, pass.Errorf(v.Op, "DM820", "%v", err)
	}
	return c, nil
}

// nanoseconds is the time of a kernel that moves so many bytes.
func (m *model) moving(bytes int64) float64 {
	return float64(bytes)/m.u.Machine.Reach()*1e9 + m.u.Machine.Start()*1e9
}

// size is the bytes of v, 0 where they are no number.
func size(v *ir.Value) int64 {
	n, ok := v.Tensor().Bytes().Int()
	if !ok {
		return 0
	}
	return n
}

// rank is v's number of dimensions, 0 where it is no tensor.
func rank(v *ir.Value) int {
	if t := v.Tensor(); t != nil {
		return t.Rank()
	}
	return 0
}

var forbidden = math.Inf(1)
