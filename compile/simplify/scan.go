package simplify

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

func scanRules() []Rule {
	return []Rule{
		{
			Name: "scan-unused", Doc: "A scan stacks and carries only what is used after it or in another iteration, and slices only stacks that its body reads.",
			Ops: []string{"scan"}, apply: scanUnused,
		},
		{
			Name: "scan-invariant", Doc: "A carried value that each iteration yields as it was is the initial one, from outside.",
			Ops: []string{"scan"}, apply: scanInvariant,
		},
		{
			Name: "scan-hoist", Doc: "A contraction of values from outside is computed once; one of slices with values from outside, once for whole stacks, where that moves less: the values from outside are then read once, against writing and reading the product.",
			Ops: []string{"scan"}, apply: scanHoist,
		},
		{
			Name: "scan-sum", Doc: "A contraction or a sum that iterations only add up in a carried value, as the gradient of a weight, is one over the stacks of its operands, where that moves less: the carried value is then neither read nor written in each iteration, against writing and reading the operands.",
			Ops: []string{"scan"}, apply: scanSum,
		},
		{
			Name: "scan-sink", Doc: "A contraction with values from outside whose results are only stacked is one of the stacked operands, where that moves less.",
			Ops: []string{"scan"}, apply: scanSink,
		},
	}
}

// scanParts reports whether o is a whole dm.scan, and gives its body.
func scanParts(o *ir.Op) (b *ir.Block, carries int, ok bool) {
	b, carries = o.Body(0), op.Carries(o)
	t := b.Terminator()
	_, known := op.Trips(o)
	ok = known && op.Valid(o) && t != nil && len(b.Args) == len(o.Operands) && len(t.Operands) == len(o.Results) && carries <= len(o.Results)
	return b, carries, ok
}

func scanUnused(_ *rewriter, o *ir.Op) bool {
	b, carries, ok := scanParts(o)
	if !ok {
		return false
	}
	changed := false
	for i := len(o.Results) - 1; i >= carries; i-- {
		if len(o.Results[i].Uses) == 0 {
			op.DropStacked(o, i)
			changed = true
		}
	}
	needed := carriesNeeded(o, b, carries)
	if slices.Contains(needed, false) {
		for i, a := range b.Args[:carries] {
			if !needed[i] {
				b.Terminator().SetOperand(i, a)
			}
		}
		op.RemoveDead(b) // what computed their next values
		for i := carries - 1; i >= 0; i-- {
			if !needed[i] {
				op.DropCarried(o, i)
			}
		}
		changed = true
	}
	for i := len(o.Operands) - 1; i >= op.Carries(o); i-- {
		if len(b.Args[i].Uses) == 0 && op.DropStack(o, i) {
			changed = true
		}
	}
	return changed
}

// carriesNeeded reports for each carried value of o whether its result is used, or
// whether a later iteration needs it for something that is.
func carriesNeeded(o *ir.Op, b *ir.Block, carries int) []bool {
	yields := b.Terminator().Operands
	needed := make([]bool, carries)
	seen := map[*ir.Value]bool{}
	var work []*ir.Value
	need := func(v *ir.Value) {
		if !seen[v] {
			seen[v] = true
			work = append(work, v)
		}
	}
	for i, v := range yields {
		if i >= carries || len(o.Results[i].Uses) > 0 {
			need(v)
			if i < carries {
				needed[i] = true
			}
		}
	}
	for _, p := range b.Ops {
		if op.HasEffect(p) && p != b.Terminator() {
			for _, v := range ir.UsedValues(p) {
				need(v)
			}
		}
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		switch {
		case v.Op == nil && v.Block == b && v.Index < carries:
			if !needed[v.Index] {
				needed[v.Index] = true
				need(yields[v.Index])
			}
		case v.Op != nil && v.Op.Parent == b:
			for _, w := range ir.UsedValues(v.Op) {
				need(w)
			}
		}
	}
	return needed
}

func scanInvariant(_ *rewriter, o *ir.Op) bool {
	b, carries, ok := scanParts(o)
	if !ok {
		return false
	}
	changed := false
	for i := carries - 1; i >= 0; i-- {
		a, first := b.Args[i], o.Operands[i]
		if b.Terminator().Operands[i] != a || !types.Equal(a.Type, first.Type) || !types.Equal(o.Results[i].Type, first.Type) {
			continue
		}
		ir.ReplaceUses(o.Results[i], first)
		ir.ReplaceUses(a, first)
		op.DropCarried(o, i)
		changed = true
	}
	return changed
}

// stacking builds contractions of stacks in place of those of a scan's body.
type stacking struct {
	o       *ir.Op
	body    *ir.Block
	carries int
}

// source is where v comes from: from outside of the scan, as it is; from a stack;
// else, where made is true, from the body, which has to stack it.
func (s *stacking) source(v *ir.Value) (stack *ir.Value, outside, made bool) {
	switch {
	case !v.Inside(s.o):
		return v, true, false
	case v.Op == nil && v.Block == s.body && v.Index >= s.carries:
		return s.o.Operands[v.Index], false, false
	}
	return nil, false, true
}

// bytes are those of the operands of p from outside, and of those that the scan
// would have to stack and does not yet; ok is false where there is no other operand
// than those from outside, or where a size is no number.
func (s *stacking) bytes(p *ir.Op) (outside, made int64, ok bool) {
	for i, v := range p.Operands {
		n, known := v.Tensor().Bytes().Int()
		if !known || v.Op != nil && v.Op.Parent != s.body && v.Inside(s.o) {
			return 0, 0, false
		}
		_, out, mine := s.source(v)
		switch {
		case slices.Contains(p.Operands[:i], v):
		case out:
			outside += n
		case mine && !slices.Contains(s.body.Terminator().Operands[s.carries:], v):
			made += n
		}
		ok = ok || !out
	}
	return outside, made, ok
}

// of is p, an einsum, with stacks in place of operands that change from iteration
// to iteration, built at b. With sum the product is summed over iterations, else
// stacked.
func (s *stacking) of(b *op.Builder, p *ir.Op, sum bool) *ir.Value {
	e := pattern.Equation(p)
	letters, _ := unused(e.String(), 1)
	inputs, output := slices.Clone(e.Inputs), e.Output
	var operands []*ir.Value
	var trips dim.Dim
	for i, v := range p.Operands {
		x, out, made := s.source(v)
		if made {
			x = op.StackResult(s.o, v)
		}
		if !out {
			inputs[i] = letters[0] + inputs[i]
			trips = x.Tensor().Shape[0]
		}
		operands = append(operands, x)
	}
	t := &types.Tensor{Elem: p.Out(0).Elem, Shape: slices.Clone(p.Out(0).Shape)} // the element type need not be the operands'
	if !sum {
		output = letters[0] + output
		t.Shape = slices.Insert(t.Shape, 0, trips)
	}
	return b.Value("einsum", operands, append(kept(p, "equation"), types.Named{Name: "equation", Value: equationText(inputs, output)}), t)
}

// contraction reports whether p is an einsum of the body that may become one of stacks.
func (s *stacking) contraction(p *ir.Op) bool {
	if p == nil || p.Parent != s.body || p.Name != "dm.einsum" || !plain(p) || !op.Valid(p) {
		return false
	}
	e := pattern.Equation(p)
	if e == nil {
		return false
	}
	_, free := unused(e.String(), 1)
	return free
}

func after(o *ir.Op) *op.Builder {
	return op.NewBuilder(&ir.Builder{Block: o.Parent, Index: o.Position() + 1, At: o}, verify.Op)
}

func scanHoist(_ *rewriter, o *ir.Op) bool {
	b, carries, ok := scanParts(o)
	if !ok {
		return false
	}
	s := &stacking{o, b, carries}
	for _, p := range b.Ops {
		if !s.contraction(p) || slices.ContainsFunc(p.Operands, func(v *ir.Value) bool { _, _, made := s.source(v); return made }) {
			continue
		}
		outside, _, sliced := s.bytes(p)
		if invariant(s, p) {
			at := ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
			pass.Replace(p, ir.CloneOps(&at, []*ir.Op{p}, map[*ir.Value]*ir.Value{})[0].Results...)
			return true
		}
		if n, known := p.Out(0).Bytes().Int(); !known || !sliced || 2*n > outside {
			continue
		}
		all := s.of(pass.Before(o), p, false)
		ir.ReplaceUses(p.Results[0], op.StackOperand(o, all))
		b.Args[len(b.Args)-1].Name = p.Results[0].Name
		ir.EraseAll(p)
		return true
	}
	return false
}

// invariant reports whether all operands of p come from outside.
func invariant(s *stacking, p *ir.Op) bool {
	return !slices.ContainsFunc(p.Operands, func(v *ir.Value) bool { return v.Inside(s.o) })
}

func scanSum(_ *rewriter, o *ir.Op) bool {
	b, carries, ok := scanParts(o)
	if !ok {
		return false
	}
	s := &stacking{o, b, carries}
	for i := range carries {
		a, next := b.Args[i], b.Terminator().Operands[i]
		if next.Op == nil || next.Op.Parent != b || next.Op.Name != "dm.add" || len(a.Uses) != 1 || a.Uses[0].Op != next.Op || len(next.Uses) != 1 {
			continue
		}
		term := next.Op.Operands[1-a.Uses[0].Index]
		whole, known := a.Tensor().Bytes().Int()
		if !known || term.Tensor() == nil || !slices.EqualFunc(term.Tensor().Shape, a.Tensor().Shape, dim.Dim.Equal) {
			continue
		}
		from := term
		if from.Op != nil && from.Op.Name == "dm.convert" && from.Op.Parent == b {
			from = from.Op.Operands[0]
		}
		if from.Op == nil || !from.Elem().IsFloat() {
			continue
		}
		p := from.Op
		sum := p.Name == "dm.reduce" && p.Parent == b && plain(p) && op.Str(p, "kind") == "add" && !op.Bool(p, "keep_dims")
		if !sum && !s.contraction(p) {
			continue
		}
		if _, made, some := s.bytes(p); !some || made > whole {
			continue
		}
		at := after(o)
		var total *ir.Value
		if sum {
			total = s.reduced(at, p)
		} else {
			total = s.of(at, p, true)
		}
		total = at.Convert(total, a.Elem())
		total = at.Binary("add", o.Operands[i], total)
		if at.Err() != nil {
			at.Undo()
			return false
		}
		total.Name = o.Results[i].Name
		ir.ReplaceUses(o.Results[i], total)
		b.Terminator().SetOperand(i, a) // as it was; next is dead
		op.RemoveDead(b)
		op.DropCarried(o, i)
		return true
	}
	return false
}

// reduced is p, a sum over dimensions of a slice, over iterations as well.
func (s *stacking) reduced(b *op.Builder, p *ir.Op) *ir.Value {
	x, _, made := s.source(p.Operands[0])
	if made {
		x = op.StackResult(s.o, p.Operands[0])
	}
	dims := []int{0}
	own, _ := op.Dims(p, "dims", p.In(0).Rank())
	for _, d := range own {
		dims = append(dims, d+1)
	}
	return b.Value("reduce", []*ir.Value{x}, append(kept(p, "dims"), types.Named{Name: "dims", Value: op.IntList(dims...)}))
}

func scanSink(_ *rewriter, o *ir.Op) bool {
	b, carries, ok := scanParts(o)
	if !ok {
		return false
	}
	s := &stacking{o, b, carries}
	for i := carries; i < len(o.Results); i++ {
		v := b.Terminator().Operands[i]
		if len(v.Uses) != 1 || !s.contraction(v.Op) || len(o.Results[i].Uses) == 0 {
			continue
		}
		if outside, made, some := s.bytes(v.Op); !some || 2*made > outside {
			continue
		}
		at := after(o)
		all := s.of(at, v.Op, false)
		if at.Err() != nil {
			at.Undo()
			return false
		}
		all.Name = o.Results[i].Name
		ir.ReplaceUses(o.Results[i], all)
		op.DropStacked(o, i)
		ir.EraseAll(v.Op)
		return true
	}
	return false
}
