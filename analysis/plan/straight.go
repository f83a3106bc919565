package plan

import (
	"errors"
	"fmt"
	"slices"

	"dmir/dialect/autodiff"
	"dmir/dialect/budget"
	"dmir/dialect/dim"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/stacks"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// straight is fn as one block of ops on tensors: calls and gradients written out, sizes as numbers.
// Equal layers in a row, of the function or of one that it differentiates, are left out but for
// kept of them.
type straight struct {
	m      *ir.Module
	fn     *ir.Func
	from   flatten.From
	layers *layers                 // nil: no layers in a row
	left   *budget.Left            // what may still be written out
	site   map[*ir.Op]*ir.Op       // the op of the function that calls led from to an op
	like   map[*ir.Value]*ir.Value // arguments of layers that were left out: those of the layer that stands for them
	grads  map[*ir.Value]*ir.Value // gradients, by what they are taken with respect to
	next   map[*ir.Value]*ir.Value // of arguments that are state: their next value
	wrt    map[*ir.Value]bool      // what gradients are taken with respect to
	params int64                   // elements of these, of all layers
	none   []*ir.Value             // gradients with respect to what layers that were left out use

	// loop is where the loop stands whose iterations are the layers; empty: layers are equal ops in a row. Where they are, arguments
	// that have an element for each layer are as many; see package stacks.
	loop source.Span

	updated []bool // by argument; see update
	named   int    // values that gradients are taken through

	calls []*ir.Op // see numberCalls
}

// newStraight is fn with sparse arguments in pieces, as the text and of state it; see flatten.Cut. If unrolled is true its loop over layers
// is written out; it is nil where it has none.
func newStraight(m *ir.Module, fn *ir.Func, bind map[string]int64, of map[int]int64, unrolled bool) (*straight, error) {
	sizes := op.Bindings(fn, bind)
	m, fn, problem := flatten.Cut(m, fn, bind, of)
	if problem != nil {
		return nil, &Error{Code: CodeStep, At: problem.At, Msg: problem.Msg, Help: problem.Help}
	}
	flat, g, from := flatten.In(m, fn)
	var loop source.Span
	if unrolled {
		l := stacks.Over(flat, g, updates(g))
		if l == nil {
			return nil, nil
		}
		loop = l.Op.Span
		if flat, g, problem = stacks.Layers(flat, g, l); problem != nil {
			return nil, &Error{Code: CodeStep, At: problem.At, Msg: problem.Msg, Help: problem.Help}
		}
	}
	s := &straight{
		loop: loop, fn: g.Clone(), from: from, site: map[*ir.Op]*ir.Op{}, wrt: map[*ir.Value]bool{},
		like: map[*ir.Value]*ir.Value{}, grads: map[*ir.Value]*ir.Value{}, next: map[*ir.Value]*ir.Value{},
	}
	// A module of its own, in which the function that is differentiated has fewer layers.
	s.m = &ir.Module{Src: flat.Src, Aliases: flat.Aliases, Resources: flat.Resources, Outer: flat.Outer, Origin: flat.Origin, Ops: slices.Clone(flat.Ops)}
	for _, f := range flat.Funcs {
		s.m.AddFunc(f)
	}
	s.left = budget.New(s.m, 0)
	if budget.SizesOf(s.m).Exceeds(fn) {
		return nil, &Error{Code: budget.Code, At: fn.Op, Msg: budget.Message(s.m, fn.Name), Help: diag.Find(budget.Code).Help}
	}
	size(s.fn, sizes)
	if err := s.gradients(sizes); err != nil {
		return nil, err
	}
	if err := s.inline(s.fn); err != nil {
		return nil, err
	}
	size(s.fn, sizes)
	if s.layers == nil && len(s.grads) == 0 { // equal ops of a backward pass or of updates are no layers
		s.layers = reduce(s.fn)
	}
	s.update()
	s.forget()
	s.writeOut()
	for _, o := range s.fn.Body.Ops {
		if d := op.Of(o); d != nil && d.Family == op.Contraction && len(o.Operands) > mostFactors {
			return nil, &Error{Code: budget.Code, At: o, Msg: fmt.Sprintf("a product of %d operands is more than is planned, which is %d", len(o.Operands), mostFactors), Help: "write it as products of two"}
		}
	}
	return s, nil
}

// updates reports which arguments of f are parameters or states: those whose next value a result is, and those of which
// gradients are taken.
func updates(f *ir.Func) func(arg int) bool {
	is := map[int]bool{}
	for _, a := range op.State(f.Op) {
		is[a] = true
	}
	for _, o := range f.Body.Ops {
		if o.Name == op.Grad {
			wrt, _ := op.Gradients(o)
			for _, i := range wrt {
				if v := o.Operands[i]; v.Op == nil {
					is[v.Index] = true
				}
			}
		}
	}
	return func(arg int) bool { return is[arg] }
}

// mostFactors bounds the operands of a product, all of whose placements are compared with each way to divide it.
const mostFactors = 32

// writeOut replaces composite ops that cannot be divided, as a mean over samples, by what they expand to, as
// the partitioner does.
func (s *straight) writeOut() {
	for again := true; again; {
		again = false
		for _, o := range slices.Clone(s.fn.Body.Ops) {
			d := op.Of(o)
			if d == nil || d.Expand == nil || !op.Valid(o) {
				continue
			}
			if f := op.DivisionOf(o); f != nil && len(f.Sizes) > 0 {
				continue
			}
			b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
			start := b.Index
			vs := d.Expand(b, o)
			if vs == nil {
				continue
			}
			for _, p := range o.Parent.Ops[start:b.Index] {
				s.site[p] = s.siteOf(o)
				p.Span, p.Head = source.Span{}, source.Span{} // it stands nowhere in the text
				if o.Attr(forwardAttr) != nil {
					p.SetAttr(forwardAttr, types.Unit{})
				}
				for _, name := range []string{layerAttr, callAttr} {
					if a := o.Attr(name); a != nil {
						p.SetAttr(name, a)
					}
				}
			}
			for i, r := range o.Results {
				for a, v := range s.next {
					if v == r {
						s.next[a] = vs[i]
					}
				}
				if vs[i].Op != nil && vs[i].Name == "" {
					vs[i].Name = r.Name
				}
				ir.ReplaceUses(r, vs[i])
			}
			ir.EraseAll(o)
			again = true
		}
	}
}

// size gives the values of f numbers for symbols.
func size(f *ir.Func, bind map[string]int64) {
	if len(bind) == 0 {
		return
	}
	op.Resize(f, dim.Consts(bind))
	f.Retype()
}

// gradients replaces each function that is differentiated by one without calls and with fewer equal
// layers.
func (s *straight) gradients(sizes map[string]int64) error {
	for _, o := range s.fn.Body.Ops {
		if o.Name != op.Grad {
			continue
		}
		wrt, _ := op.Gradients(o)
		for _, i := range wrt {
			if t := o.In(i); t != nil && !s.wrt[o.Operands[i]] {
				s.wrt[o.Operands[i]] = true
				n, _ := t.Elements().Int()
				s.params += n
			}
		}
		name := o.Str("callee")
		f := s.m.Func(name)
		if f == nil || f.Body == nil || f.Body.Terminator() == nil {
			continue // Inline reports it
		}
		f = f.Clone()
		size(f, sizes)
		if err := s.inline(f); err != nil {
			return err
		}
		if l := reduce(f); l != nil && (s.layers == nil || l.saved() > s.layers.saved()) {
			s.layers = l
			for i, k := range l.like {
				s.like[o.Operands[i]] = o.Operands[k]
			}
			s.numberCalls(f)
		}
		for _, p := range f.Body.Ops {
			if p.Name != op.Return {
				p.SetAttr(forwardAttr, types.Unit{})
			}
			for _, r := range p.Results { // by which its gradient is found
				s.named++
				r.Name = fmt.Sprintf("%%v%d", s.named)
			}
		}
		s.m.RemoveFunc(name)
		s.m.AddFunc(f)
	}
	return nil
}

// numberCalls marks what those calls of f compute that are no equal layers in a row and whose function f calls several times, as the
// layers of an encoder beside those of a decoder: full recomputation keeps what each begins with.
func (s *straight) numberCalls(f *ir.Func) {
	s.calls = nil
	number := map[*ir.Op]int{}
	times := map[string]int{}
	each := func(do func(o, call *ir.Op)) {
		for _, o := range f.Body.Ops {
			if call := s.siteOf(o); call.Name == op.Call && !s.layers.has(int(o.Int(layerAttr, 0))) {
				do(o, call)
			}
		}
	}
	each(func(_, call *ir.Op) {
		if _, ok := number[call]; !ok {
			number[call] = len(s.calls)
			s.calls = append(s.calls, call)
			times[call.Str("callee")]++
		}
	})
	each(func(o, call *ir.Op) {
		if times[call.Str("callee")] > 1 {
			o.SetAttr(callAttr, types.Int{V: int64(number[call]), Elem: types.I64})
		}
	})
	s.calls = slices.DeleteFunc(s.calls, func(call *ir.Op) bool { return times[call.Str("callee")] == 1 })
}

// inline puts what calls and gradients compute in their place.
func (s *straight) inline(f *ir.Func) error {
	for {
		var calls, checks []*ir.Op
		for _, o := range f.Body.Ops {
			switch {
			case o.Name == op.Call, o.Name == op.Grad:
				calls = append(calls, o)
			case op.IsCheck(o):
				checks = append(checks, o)
			}
		}
		for _, o := range slices.Backward(checks) {
			ir.Erase(o)
		}
		if len(calls) == 0 {
			return nil
		}
		for _, o := range slices.Backward(calls) { // positions in front of a call stay as they are
			if err := s.expand(o); err != nil {
				return err
			}
		}
	}
}

// expand puts what o, a call or a gradient, computes in its place.
func (s *straight) expand(o *ir.Op) error {
	b := &ir.Builder{Block: o.Parent, Index: o.Position(), At: o}
	start := b.Index
	vs, err := autodiff.Inline(s.m, b, o, s.left)
	if err != nil {
		e := &Error{Code: CodeStep, At: o, Msg: err.Error()}
		var a *autodiff.Error
		if errors.As(err, &a) {
			e.Msg, e.Help = a.Msg, a.Help
		}
		return e
	}
	for _, p := range o.Parent.Ops[start:b.Index] {
		s.site[p] = s.siteOf(o)
	}
	for k, r := range o.Results {
		if of := respect(s.m, o, k); of >= 0 {
			s.grads[o.Operands[of]] = vs[k]
			if len(s.m.Func(o.Str("callee")).Args[of].Uses) == 0 {
				s.none = append(s.none, vs[k])
			}
		}
		ir.ReplaceUses(r, vs[k])
	}
	ir.Erase(o)
	return nil
}

// siteOf is the op of the step, or of the function that it differentiates, that led to o.
func (s *straight) siteOf(o *ir.Op) *ir.Op {
	if at := s.site[o]; at != nil {
		return at
	}
	return o
}

// respect is the operand with respect to which result k of o is the gradient, negative if it is none.
func respect(m *ir.Module, o *ir.Op, k int) int {
	if o.Name != op.Grad {
		return -1
	}
	f := m.Func(o.Str("callee"))
	if k -= len(f.Results); k < 0 {
		return -1
	}
	wrt, _ := op.Gradients(o)
	if k < len(wrt) && wrt[k] < len(f.Args) {
		return wrt[k]
	}
	return -1
}

// liken finds the arguments that stand for those of layers that were left out, from the gradients on:
// what updates one parameter corresponds to what updates another one.
func (s *straight) liken() {
	type pair struct{ gone, kept *ir.Value }
	var queue []pair
	for a, k := range s.like {
		if s.grads[a] != nil && s.grads[k] != nil {
			queue = append(queue, pair{s.grads[a], s.grads[k]})
		}
	}
	seen := map[*ir.Value]bool{}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if seen[p.gone] {
			continue
		}
		seen[p.gone] = true
		for i, u := range p.gone.Uses {
			if i >= len(p.kept.Uses) || p.kept.Uses[i].Op.Name != u.Op.Name || u.Op.Name == op.Return {
				continue
			}
			k := p.kept.Uses[i].Op
			for j, v := range u.Op.Operands {
				if w := k.Operands[min(j, len(k.Operands)-1)]; v.Op == nil && w != v && s.like[v] == nil {
					s.like[v] = w
				}
			}
			for j, r := range u.Op.Results {
				queue = append(queue, pair{r, k.Results[j]})
			}
		}
	}
}

// update finds the arguments whose gradients something is computed of, and those that go into that, as master weights and the states of
// optimizers do. Where gradients are returned alone, it is all that they are taken of. The gradient of an input that a
// step returns beside its updates makes the input no parameter.
func (s *straight) update() {
	s.updated = make([]bool, len(s.fn.Args))
	mark := func(v *ir.Value) {
		if v.Op == nil && v.Block == s.fn.Body {
			s.updated[v.Index] = true
		}
	}
	var queue []*ir.Value
	for of, v := range s.grads {
		if slices.ContainsFunc(v.Uses, func(u ir.Use) bool { return u.Op.Name != op.Return }) {
			mark(of)
			queue = append(queue, v)
		}
	}
	if len(queue) == 0 {
		for of := range s.grads {
			mark(of)
		}
	}
	seen := map[*ir.Value]bool{}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		if seen[v] {
			continue
		}
		seen[v] = true
		for _, u := range v.Uses {
			if u.Op.Name == op.Return {
				continue
			}
			for _, x := range u.Op.Operands {
				mark(x)
			}
			queue = append(queue, u.Op.Results...)
		}
	}
}

// forget takes out what updates the arguments of layers that were left out: what is computed of
// gradients that are zero for that reason, and the results that are such updates.
func (s *straight) forget() {
	s.liken()
	gone := map[*ir.Value]bool{}
	for _, v := range s.none {
		gone[v] = true
	}
	for _, o := range s.fn.Body.Ops {
		if o.Name == op.Return || !slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return gone[v] }) {
			continue
		}
		for _, r := range o.Results {
			if t := r.Tensor(); t != nil && t.Rank() > 0 {
				gone[r] = true
			}
		}
	}
	ret := s.fn.Body.Terminator()
	state := op.State(s.fn.Op)
	attrs, _ := s.fn.Op.Attr("res_attrs").(types.Array)
	var keep []*ir.Value
	var own types.Array
	for i, v := range ret.Operands {
		if gone[v] {
			continue
		}
		keep = append(keep, v)
		if i < len(attrs) {
			own = append(own, attrs[i])
		}
		if i < len(state) && state[i] >= 0 {
			s.next[s.fn.Args[state[i]]] = v
		}
	}
	ret.SetOperands(keep...)
	s.fn.Retype()
	if attrs != nil {
		s.fn.Op.SetAttr("res_attrs", own)
	}
	op.RemoveDead(s.fn.Body)
}
