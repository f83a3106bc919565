package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

const inPlaceDoc = "It is done in place where nothing needs x afterwards: x is no constant, no argument but one with `{dm.donated}`, and no later op, return or iteration of a loop reads it."

// DonatedAttr marks an argument of a function whose memory its caller gives
// away: the function may write its results there. (JAX and XLA call it buffer
// donation.) What the argument held is lost to the caller.
const DonatedAttr = "dm.donated"

// Copy is why an update makes a copy of its operand, in place of writing over it.
type Copy struct {
	Why Reason
	// Of is the value whose bytes must stay: the operand, or what it is a view of.
	Of *ir.Value
	// By is the op that needs them: a later one, the one itself, the kernel that
	// it is in; nil where Why is about Of alone.
	By *ir.Op
}

// Reason is why an update is not done in place.
type Reason string

// The reasons.
const (
	NotDonated Reason = "argument" // Of is an argument that is not donated
	Literal    Reason = "constant" // Of is a constant
	ReadLater  Reason = "read"     // By reads Of afterwards, or gives it away
	ReadTwice  Reason = "twice"    // By, the update or its kernel, reads Of in another way too
	MadeInside Reason = "kernel"   // By, the kernel, computes what is updated, or reads the result
	Outside    Reason = "outside"  // Of comes from outside of the region, which may run again
	Carried    Reason = "carried"  // the loop By hands on another value in its place
	OtherOrder Reason = "order"    // the result lies in memory in another order
)

// InPlace decides which updates are done in place: those whose operand dies at
// them. It is the one place where that is decided, for costs, for fusing, for
// the memory plan and for code. The zero value is ready; it must not be used
// after a change of the ops that it was asked about, nor concurrently.
type InPlace struct {
	place map[*ir.Block]map[*ir.Op]int
	state map[*ir.Block]*carried
	// Groups are kernels that stand in no block, with the ops that they would take
	// the place of.
	Groups map[*ir.Op]Group
	// Given is an argument that counts as donated; nil: those that the text marks.
	Given *ir.Value
}

// Group is a kernel that there might be.
type Group struct {
	At      *ir.Op // the op at whose place it would stand
	Members map[*ir.Op]bool
}

// Updates reports whether o writes a part of its first operand and hands on the rest.
func Updates(o *ir.Op) bool {
	return o != nil && Of(o).Is(Update) && Valid(o) && len(o.Operands) > 1 && len(o.Results) == 1
}

// Copied is why o, an op that Updates, copies its operand; nil if it is done in
// place.
func (p *InPlace) Copied(o *ir.Op) *Copy {
	x, y := o.Operands[0], o.Results[0]
	root := Source(x)
	if !sameStorage(x, y) {
		return &Copy{OtherOrder, root, o}
	}
	home := o
	if k := kernelAround(o); k != nil {
		home = k
		updates, base, tip := chain(o)
		root = Source(base.Operands[0])
		if root.Op != nil && root.Op.Parent == o.Parent {
			return &Copy{MadeInside, root, k}
		}
		reads, given := 0, 0
		for _, u := range o.Parent.Ops {
			if IsView(u) {
				continue
			}
			for i, v := range u.Operands {
				switch v = Source(v); {
				case v == root:
					reads++
				case v == tip.Results[0] && Of(u).Is(Terminator):
					given++
				case updates[v.Op] && v.Op != nil && !(i == 0 && updates[u]):
					return &Copy{MadeInside, v, k}
				}
			}
		}
		if reads != 1 {
			return &Copy{ReadTwice, root, k}
		}
		if given != 1 {
			return &Copy{MadeInside, tip.Results[0], k}
		}
	} else {
		for _, v := range o.Operands[1:] {
			if Source(v) == root {
				return &Copy{ReadTwice, root, o}
			}
		}
	}
	return p.dies(root, home, o)
}

// chain is the updates in the block of o of which each is the only one to read
// what the one before made, and replaces another part of it: o and those before
// and behind it. base is the first, tip the last.
func chain(o *ir.Op) (updates map[*ir.Op]bool, base, tip *ir.Op) {
	updates, base, tip = map[*ir.Op]bool{o: true}, o, o
	parts := []*ir.Op{o}
	joins := func(u *ir.Op) bool {
		if u == nil || u.Parent != o.Parent || len(parts) >= MaxParts || !sameStorage(u.Results[0], o.Results[0]) ||
			slices.ContainsFunc(parts, func(p *ir.Op) bool { return !Disjoint(p, u) }) {
			return false
		}
		updates[u] = true
		parts = append(parts, u)
		return true
	}
	for {
		u := updated(Source(base.Operands[0]))
		if u == nil || behind(u) != base || !joins(u) {
			break
		}
		base = u
	}
	for {
		u := behind(tip)
		if u == nil || !joins(u) {
			break
		}
		tip = u
	}
	return updates, base, tip
}

// MaxParts bounds the updates in place of one value in a kernel.
const MaxParts = 64

// behind is the update of what o, an update, makes, if nothing else reads it.
func behind(o *ir.Op) *ir.Op {
	v := o.Results[0]
	for range maxChain {
		if len(v.Uses) != 1 {
			return nil
		}
		u := v.Uses[0]
		if !IsView(u.Op) {
			if u.Index != 0 || !Updates(u.Op) {
				return nil
			}
			return u.Op
		}
		v = u.Op.Results[0]
	}
	return nil
}

// UpdatesIn are the updates among ops that make v, each of what the one before
// made.
func UpdatesIn(ops []*ir.Op, v *ir.Value) []*ir.Op {
	var out []*ir.Op
	for o := updated(Source(v)); o != nil && slices.Contains(ops, o); o = updated(Source(o.Operands[0])) {
		out = append(out, o)
	}
	slices.Reverse(out)
	return out
}

// Disjoint reports whether a and b, updates of one value, replace parts that are
// known to have no element in common.
func Disjoint(a, b *ir.Op) bool {
	for d := range a.In(0).Rank() {
		at, n, ok := updatedRange(a, d)
		from, m, ok2 := updatedRange(b, d)
		if ok && ok2 && (at+n <= from || from+m <= at) {
			return true
		}
	}
	return false
}

// updatedRange is the range of dimension d that o, an update, replaces; ok is false
// where it is not known.
func updatedRange(o *ir.Op, d int) (start, n int64, ok bool) {
	if Of(o).Move == nil || len(o.Operands) != 2+o.In(0).Rank() {
		return 0, 0, false
	}
	n, known := o.In(1).Shape[d].Int()
	size, sized := o.In(0).Shape[d].Int()
	at := number(o.Operands[2+d])
	if at == nil || !at.IsInt64() || !known || !sized {
		return 0, 0, false
	}
	return min(max(at.Int64(), 0), size-n), n, true
}

// Kept is why carried value i of o, a dm.while or a dm.scan, is a copy of its
// initial value; nil if it takes that operand's place.
func (p *InPlace) Kept(o *ir.Op, i int) *Copy {
	x, y := o.Operands[i], o.Results[i]
	root := Source(x)
	if !sameStorage(x, y) {
		return &Copy{OtherOrder, root, o}
	}
	reads := 0
	ir.Walk([]*ir.Op{o}, func(u *ir.Op) bool {
		for _, v := range u.Operands {
			if Source(v) == root {
				reads++
			}
		}
		return true
	})
	if reads != 1 {
		return &Copy{ReadTwice, root, o}
	}
	return p.dies(root, o, nil)
}

// Over is the value that result i of o is written over: what an update in place
// updates, in a kernel or by itself, what a loop begins with, and the argument
// whose next value it is (StateOver); nil for a result with bytes of its own.
func (p *InPlace) Over(o *ir.Op, i int) *ir.Value {
	if v := p.Updated(o, i); v != nil {
		return v
	}
	return p.StateOver(o, i)
}

// Updated is Over for updates of a part and for loops.
func (p *InPlace) Updated(o *ir.Op, i int) *ir.Value {
	u := o
	switch {
	case LoopBody(o) != nil && Valid(o):
		if i >= Carries(o) {
			return nil
		}
		if p.Kept(o, i) != nil {
			return nil
		}
		return Source(o.Operands[i])
	case o.Name == Kernel && i < len(o.Results):
		v := kernelYield(o.Results[i])
		if v == nil {
			return nil
		}
		if u = updated(Source(v)); u != nil {
			_, u, _ = chain(u)
		}
	}
	if u == nil || !Updates(u) || p.Copied(u) != nil {
		return nil
	}
	return Source(u.Operands[0])
}

// Storage is the value whose bytes v lies in: what it is a view of or an update
// in place of, and what that is in turn.
func (p *InPlace) Storage(v *ir.Value) *ir.Value {
	for range maxChain {
		v = Source(v)
		if w := kernelYield(v); w != nil && updated(Source(w)) != nil {
			v = Source(w)
		}
		o := updated(v)
		if o == nil || p.Copied(o) != nil {
			return outer(v)
		}
		v = o.Operands[0]
	}
	return v
}

// Base is the value that v is a view or an update of, and what that is of in
// turn, in place or not.
func Base(v *ir.Value) *ir.Value {
	for range maxChain {
		v = Source(v)
		if w := kernelYield(v); w != nil && updated(Source(w)) != nil {
			v = Source(w)
		}
		o := updated(v)
		if o == nil {
			break
		}
		v = o.Operands[0]
	}
	return v
}

// outer is the result of a kernel that v, a value in it, is yielded as; v itself
// where it is none.
func outer(v *ir.Value) *ir.Value {
	k := (*ir.Op)(nil)
	if v.Op != nil {
		k = kernelAround(v.Op)
	}
	if k == nil || k.Body(0).Terminator() == nil {
		return v
	}
	for i, w := range k.Body(0).Terminator().Operands {
		if Source(w) == v && i < len(k.Results) {
			return k.Results[i]
		}
	}
	return v
}

// dies is why root's bytes must not be overwritten at home, which reads them in one
// way only; nil if they may be. by is the update, nil for a loop.
func (p *InPlace) dies(root *ir.Value, home, by *ir.Op) *Copy {
	var block *ir.Block
	var owned *Copy // what is wrong with an argument, if nothing reads it later
	at := home
	g, grouped := p.Groups[home]
	if grouped {
		at = g.At
	}
	switch {
	case root.Op == nil:
		block = root.Block
		owned = p.argument(root, by)
	case root.Op.Name == Constant:
		return &Copy{Literal, root, nil}
	default:
		block = root.Op.Parent
	}
	if at.Parent != block {
		return &Copy{Outside, root, nil}
	}
	seen := map[*ir.Op]bool{}
	for work := []*ir.Value{root}; len(work) > 0; {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, u := range v.Uses {
			if u.Op == home || seen[u.Op] || u.Op.Inside(home) {
				continue
			}
			seen[u.Op] = true
			if IsView(u.Op) {
				work = append(work, u.Op.Results[0])
				continue
			}
			a := block.Ancestor(u.Op)
			if g.Members[u.Op] || a != nil && g.Members[a] {
				continue
			}
			if a == nil || Ends(a) || !p.before(a, at) {
				return &Copy{ReadLater, root, u.Op}
			}
		}
	}
	return owned
}

// argument is why a block must not overwrite the bytes of v, its argument; nil if
// it may.
func (p *InPlace) argument(v *ir.Value, by *ir.Op) *Copy {
	f := v.Block.Region.Op
	switch {
	case f.Name == Func:
		if v != p.Given && !Donated(f, v.Index) && !p.carried(v.Block).args[v] { // of state, the next value takes the place
			return &Copy{NotDonated, v, nil}
		}
		return nil
	case LoopBody(f) != v.Block || v.Index >= Carries(f): // only the body of a loop may write over what it carries
		return &Copy{Outside, v, nil}
	case by == nil: // a loop in a loop, which may give other values back
		return &Copy{Carried, v, f}
	case slices.ContainsFunc(by.Results, func(r *ir.Value) bool { return p.carried(v.Block).next[r] == v }):
		return nil
	}
	// What the body hands on in v's place must be what was made of it there: then
	// nothing else is written to its bytes before the next round.
	t := v.Block.Terminator()
	if t == nil || v.Index >= len(t.Operands) {
		return &Copy{Carried, v, f}
	}
	through := false
	next := t.Operands[v.Index]
	for range maxChain {
		next = Source(next)
		if w := kernelYield(next); w != nil {
			next = Source(w)
		}
		o := updated(next)
		if o == nil {
			break
		}
		through = through || o == by
		next = o.Operands[0]
	}
	if !through || next != v {
		return &Copy{Carried, v, f}
	}
	return nil
}

// Donated reports whether argument i of the function f is.
func Donated(f *ir.Op, i int) bool {
	all, _ := f.Attr("arg_attrs").(types.Array)
	if i >= len(all) {
		return false
	}
	own, _ := all[i].(types.Dict)
	for _, a := range own {
		if a.Name == DonatedAttr {
			on, isBool := a.Value.(types.Bool)
			return !isBool || bool(on)
		}
	}
	return false
}

// maxChain ends walks along values in a broken text, where one may lead to itself.
const maxChain = 1 << 10

// Source is the value that v is a view of, v itself where it is none.
func Source(v *ir.Value) *ir.Value {
	for range maxChain {
		if v.Op == nil || !IsView(v.Op) {
			break
		}
		v = v.Op.Operands[0]
	}
	return v
}

// updated is the op that makes v by an update, nil where none does.
func updated(v *ir.Value) *ir.Op {
	if v.Op == nil || !Updates(v.Op) {
		return nil
	}
	return v.Op
}

// kernelYield is the value inside a kernel that its result v stands for, nil where
// v is something else.
func kernelYield(v *ir.Value) *ir.Value {
	if v.Op == nil || v.Op.Name != Kernel {
		return nil
	}
	if t := v.Op.Body(0).Terminator(); t != nil && v.Index < len(t.Operands) {
		return t.Operands[v.Index]
	}
	return nil
}

// kernelAround is the kernel that o stands in, nil where it stands in none.
func kernelAround(o *ir.Op) *ir.Op {
	if o.Parent == nil || o.Parent.Region == nil {
		return nil
	}
	if k := o.Parent.Region.Op; k != nil && k.Name == Kernel {
		return k
	}
	return nil
}

// before reports whether a stands before b in their block.
func (p *InPlace) before(a, b *ir.Op) bool {
	at := p.place[a.Parent]
	if at == nil {
		at = make(map[*ir.Op]int, len(a.Parent.Ops))
		for i, o := range a.Parent.Ops {
			at[o] = i
		}
		if p.place == nil {
			p.place = map[*ir.Block]map[*ir.Op]int{}
		}
		p.place[a.Parent] = at
	}
	return at[a] < at[b]
}

// sameStorage reports whether a and b would lie in the same bytes in the same way.
func sameStorage(a, b *ir.Value) bool {
	x, y := a.Tensor(), b.Tensor()
	return x != nil && y != nil && x.Elem == y.Elem && x.At.In() == y.At.In() && sameOrder(x, y) && x.Elements().Equal(y.Elements())
}

func sameOrder(a, b *types.Tensor) bool {
	x, y := OrderOf(a), OrderOf(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return false
		}
	}
	return len(x) == len(y)
}

// TrafficOf is what o, which has Traffic of its own, reads of each operand and
// writes. An update that is copied reads the rest of what it updates, and writes
// all of it: an update of a slice reads what it does not replace, a scatter,
// whose places are data, reads all.
func TrafficOf(o *ir.Op, copied bool) (read []dim.Dim, written dim.Dim) {
	switch d := Of(o); {
	case IsSparse(o):
		return WriteOut(o).Traffic()
	case d.Traffic == nil:
		return wholeTraffic(o)
	default:
		read, written = d.Traffic(o)
	}
	if !copied || !Of(o).Is(Update) || len(read) < 2 {
		return read, written
	}
	whole, _ := wholeTraffic(o)
	rest := whole[0]
	if o.Name == "dm.dynamic_update_slice" {
		rest = rest.Sub(whole[1])
	}
	read[0] = rest
	return read, whole[0]
}
