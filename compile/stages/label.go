package stages

import (
	"slices"

	"dmir/analysis/pipelining"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// mostNumber is more than any stage or micro-batch.
const mostNumber = 1 << 20

// label gives every op its stage and micro-batch, and says which are of the backward pass.
func (s *splitter) label() error {
	s.of = make(map[*ir.Op]*node, len(s.body.Ops))
	s.micro = int(s.fn.Op.Int(op.MicrobatchesAttr, 1))
	for i, o := range s.body.Ops[:len(s.body.Ops)-1] {
		n := &node{op: o, index: i, stage: -1, micro: -1}
		for _, a := range []struct {
			name string
			to   *int
		}{{op.StageAttr, &n.stage}, {op.MicroAttr, &n.micro}} {
			if o.Attr(a.name) == nil {
				continue
			}
			k := o.Int(a.name, -1)
			if k < 0 || k >= mostNumber {
				return pass.Errorf(o, "DM835", "%s = %s is no number of a stage or micro-batch", a.name, o.Attr(a.name))
			}
			*a.to = int(k)
		}
		if n.micro >= s.micro {
			return pass.Errorf(o, "DM835", "%s is of micro-batch %d, and dm.microbatches of @%s is %d", o.Name, n.micro, s.fn.Name, s.micro)
		}
		if err := s.inside(n); err != nil {
			return err
		}
		s.ops = append(s.ops, n)
		s.of[o] = n
		s.forward(n)
	}
	for _, n := range s.ops {
		s.stages = max(s.stages, n.stage+1)
	}
	s.backward()
	return s.full()
}

// inside checks that the ops in the regions of an op are of its stage and micro-batch.
func (s *splitter) inside(n *node) error {
	var found error
	for _, r := range n.op.Regions {
		for _, b := range r.Blocks {
			ir.Walk(b.Ops, func(o *ir.Op) bool {
				if k := o.Int(op.StageAttr, int64(n.stage)); found == nil && k != int64(n.stage) {
					if n.stage < 0 {
						n.stage = int(k) // that of the first op that states one
						return true
					}
					found = pass.Errorf(o, "DM836", "%s is of stage %d and stands in %s of stage %d", o.Name, k, n.op.Name, n.stage)
				}
				return found == nil
			})
		}
	}
	return found
}

// forward gives n what follows from the ops before it.
func (s *splitter) forward(n *node) {
	stage, of := -1, -1 // of what it uses; of numbers alone
	constant := true    // it needs no arguments
	n.free = cheap(n.op)
	for _, v := range ir.UsedValues(n.op) {
		d := s.of[v.Op]
		if d == nil {
			constant = false
			continue
		}
		n.uses = append(n.uses, d)
		n.back = n.back || d.back
		if !d.free {
			n.free, constant = false, false
			if n.micro < 0 && single([]*ir.Value{v}) { // as the norm of all gradients, which every update needs
				of = max(of, d.stage)
			} else {
				stage = max(stage, d.stage)
			}
		}
		constant = constant && d.constant
	}
	n.back = n.back || n.op.Attr(op.BackwardAttr) != nil
	if n.constant = constant && op.Of(n.op).Is(op.Pure); n.constant {
		n.free = true
	}
	if n.stage < 0 && !n.free {
		if n.stage = stage; stage < 0 {
			n.stage = of
		}
	}
}

// cheap reports whether o is repeated rather than sent where all that it needs is: it moves data, or makes
// it from nothing, or is about single elements.
func cheap(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Is(op.Pure) && len(o.Regions) == 0 && (len(o.Operands) == 0 || d.Class == op.ClassMovement || single(o.Operands) && single(o.Results))
}

// single reports whether all values are tensors of one element without dimensions.
func single(vs []*ir.Value) bool {
	return !slices.ContainsFunc(vs, func(v *ir.Value) bool { return v.Tensor() == nil || v.Tensor().Rank() > 0 })
}

// backward gives ops that need arguments alone the first stage of those that use them.
func (s *splitter) backward() {
	want := make([]int, len(s.ops))
	for i := len(s.ops) - 1; i >= 0; i-- {
		n := s.ops[i]
		if n.stage < 0 && !n.free {
			n.stage = max(0, want[i]-1)
		}
		at := n.stage + 1
		if n.free {
			at = want[i]
		}
		for _, d := range n.uses {
			if at > 0 && (want[d.index] == 0 || at < want[d.index]) {
				want[d.index] = at
			}
		}
	}
}

// full checks that every stage has ops.
func (s *splitter) full() error {
	has := make([]bool, s.stages)
	for _, n := range s.ops {
		if !n.free {
			has[n.stage] = true
		}
	}
	for i, ok := range has {
		if !ok {
			return pass.Errorf(s.fn.Op, "DM835", "stage %d of @%s has no ops, and stage %d has", i, s.fn.Name, s.stages-1)
		}
	}
	if s.stages == 0 {
		return pass.Errorf(s.fn.Op, "DM835", "no op of @%s states its stage", s.fn.Name)
	}
	return nil
}

// kinds finds the task of each op.
func (s *splitter) kinds() error {
	lowest := make([]int, len(s.ops)) // the earliest stage of the backward pass that an op needs
	for i, n := range s.ops {
		lowest[i] = s.stages
		for _, d := range n.uses {
			switch {
			case d.free:
			case n.micro >= 0 && d.micro == n.micro && !n.back && d.stage > n.stage:
				return pass.Errorf(n.op, "DM836", "%s of stage %d needs a value of stage %d, which runs after it", n.op.Name, n.stage, d.stage)
			case d.back:
				lowest[i] = min(lowest[i], d.stage, lowest[d.index])
			}
			n.late = n.late || d.late
		}
		n.late = n.micro >= 0 && n.back && (n.late || lowest[i] < n.stage)
		if n.back {
			n.kind = pipelining.Backward
		}
	}
	if s.schedule.Split() {
		s.split()
	}
	return nil
}

// split finds the ops of the backward pass that no other stage waits for. The first stage sends no gradients on:
// there it is the last contractions, and what follows from them.
func (s *splitter) split() {
	waited := make([]bool, len(s.ops)) // a task of an earlier stage needs it; in the first stage, a contraction
	own := func(n *node) bool { return n.back && !n.late && n.micro >= 0 && !n.free }
	for i := len(s.ops) - 1; i >= 0; i-- {
		n := s.ops[i]
		if !own(n) {
			continue
		}
		if !waited[i] {
			n.kind = pipelining.Weight
		}
		for _, d := range n.uses {
			if own(d) && d.micro == n.micro {
				ends := n.stage == 0 && contracts(n.op)
				waited[d.index] = waited[d.index] || waited[i] || ends || d.stage != n.stage
			}
		}
	}
}

func contracts(o *ir.Op) bool {
	d := op.Of(o)
	return d != nil && d.Class == op.ClassContraction
}
