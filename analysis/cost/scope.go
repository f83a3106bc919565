package cost

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// scope is a function with sizes for its symbols.
type scope struct {
	*coster
	env   map[string]dim.Dim
	bytes map[*types.Tensor]dim.Dim // types are interned: each is sized once
	extra []*Entry                  // of branches not taken
	calls map[*ir.Op]*body
	over  op.InPlace
	asked bool        // over was, for the entry that is being made
	mesh  *mesh.Mesh  // whose devices run the function; nil: one device does
	some  bool        // only those of one position along an axis do
	own   *op.Written // the op on sparse tensors whose entry is being made
}

// written is o, an op on sparse tensors, written out: once for all that its entry asks of it.
func (s *scope) written(o *ir.Op) *op.Written {
	if s.own == nil || s.own.Of() != o {
		s.own = op.WriteOut(o)
		s.m.Work.Add("written out", 1)
	}
	return s.own
}

// product is op.ProductOf.
func (s *scope) product(o *ir.Op) (op.Product, bool) {
	if op.IsSparse(o) {
		return s.written(o).Product()
	}
	return op.ProductOf(o)
}

func (c *coster) scope(env map[string]dim.Dim) *scope {
	return &scope{coster: c, env: env, bytes: map[*types.Tensor]dim.Dim{}, calls: map[*ir.Op]*body{}}
}

// scopeOf is the scope of fn's body.
func (c *coster) scopeOf(fn *ir.Func, env map[string]dim.Dim) *scope {
	s := c.scope(env)
	if fn.Op != nil && c.m != nil && op.PerDevice(fn.Op) {
		s.mesh, s.some = mesh.Find(c.m, fn.Op.Str(op.MeshAttr)), op.OnlyOf(fn.Op) != nil
	}
	return s
}

// size is the bytes of v, of a tuple those of its members: 0 for what has none.
func (s *scope) size(v *ir.Value) dim.Dim {
	if types.IsTuple(v.Type) {
		return s.members(v, func(*types.Tensor) bool { return true })
	}
	t := v.Tensor()
	if t == nil {
		return dim.Dim{}
	}
	n, ok := s.bytes[t]
	if !ok {
		n = t.Bytes().Subst(s.env)
		s.bytes[t] = n
	}
	return n
}

// elements are those of o's first result, for each tap of a window or, where it reduces rows, those of its first operand, and
// the rows that it reduces, whose elements lie side by side; 0 where sizes are not known, or it reduces none.
func (s *scope) elements(o *ir.Op) (n, rows int64) {
	count := func(v *ir.Value) int64 {
		t := v.Tensor()
		if t == nil {
			return 0
		}
		bytes, _ := s.size(v).Int()
		return bytes * 8 / max(t.Elem.Bits(), 1)
	}
	if len(o.Results) > 0 {
		n = count(o.Results[0])
	}
	for _, taps := range op.Ints(o, "window_dimensions") {
		n *= max(taps, 1)
	}
	if dims, ok := op.RowDims(o); ok && dims[len(dims)-1] == o.In(0).Rank()-1 {
		length := dim.Const(1)
		for _, d := range dims {
			length = length.Mul(o.In(0).Shape[d])
		}
		if l, known := length.Subst(s.env).Int(); known && l > 0 {
			n = count(o.Operands[0])
			rows = n / l
		}
	}
	if i := op.Positions(o); i >= 0 && o.In(i) != nil {
		if last, known := o.In(i).Shape[o.In(i).Rank()-1].Subst(s.env).Int(); known && last > 0 {
			rows = count(o.Operands[i]) / last * (last - 1)
		}
	}
	return n, rows
}

// members is the bytes of the members of v, a tuple, of which counts holds.
func (s *scope) members(v *ir.Value, counts func(*types.Tensor) bool) dim.Dim {
	var sum dim.Dim
	for _, m := range types.Members(v.Type) {
		if counts(m.Tensor) {
			sum = sum.Add(m.Tensor.Bytes())
		}
	}
	return sum.Subst(s.env)
}

// resident is the bytes of v in the device's main memory.
func (s *scope) resident(v *ir.Value) dim.Dim {
	inHBM := func(t *types.Tensor) bool { return t.At.Space == types.HBM || t.At.Space == "" }
	if types.IsTuple(v.Type) {
		return s.members(v, inHBM)
	}
	if t := v.Tensor(); t != nil && inHBM(t) {
		return s.size(v)
	}
	return dim.Dim{}
}

// block is the entries of ops that run one after the other, each for itself;
// ready are those that are known, by the places of the ops, or nil.
func (s *scope) block(ops []*ir.Op, ready []*Entry) []*Entry {
	var out []*Entry
	for i, o := range ops {
		if !counts(o, i == len(ops)-1) {
			continue
		}
		if out == nil {
			out = make([]*Entry, 0, len(ops)-i)
		}
		switch {
		case ready != nil && ready[i] != nil:
			out = append(out, ready[i])
		default:
			out = append(out, s.entry(o, false))
		}
	}
	return out
}

// counts reports whether o has a cost of its own: terminators, definitions and checks
// have none.
func counts(o *ir.Op, last bool) bool {
	switch o.Name {
	case op.Return, op.Func, op.Module:
		return false
	}
	if op.IsCheck(o) {
		return false
	}
	if d := op.Of(o); d != nil {
		return !d.Is(op.Terminator)
	}
	return len(o.Succs) == 0 && !(last && len(o.Results) == 0 && len(o.Regions) == 0 && o.Name != op.Call)
}

// entry is the cost of o. Fused ops lie in a kernel and move nothing.
func (s *scope) entry(o *ir.Op, fused bool) *Entry {
	e := new(Entry)
	s.fill(e, o, fused)
	return e
}

// fill makes e the cost of o.
func (s *scope) fill(e *Entry, o *ir.Op, fused bool) {
	*e = Entry{Op: o, in: s.m, Known: true, Fused: fused, inside: fused, Class: op.ClassMovement, Within: nothing}
	before := s.asked
	s.asked, s.own = false, nil
	defer func() { e.follows, s.asked = s.asked, s.asked || before }()
	d := op.Of(o)
	switch {
	case op.Grouped(o) && !o.Bad && o.Name != op.If && op.LoopBody(o) == nil:
		s.grouped(e, o, fused)
	case !op.Valid(o) && (o.Bad || !op.Grouped(o)) || d == nil && o.Name != op.Call:
		e.Known = false
		s.inner(e, o, fused)
	case o.Name == op.Call || o.Name == op.Grad:
		s.call(e, o)
	case o.Name == op.Kernel:
		s.kernel(e, o, fused)
	case o.Name == op.If:
		s.branch(e, o, fused)
	case op.LoopBody(o) != nil:
		s.loop(e, o, fused)
	default:
		e.Class, e.Elem = d.Class, computed(o)
		if op.IsSparse(o) {
			e.FLOP = s.written(o).FLOP().Subst(s.env)
		} else {
			e.FLOP = op.FLOP(o).Subst(s.env)
		}
		switch {
		case op.IsSparse(o) && e.Class == op.ClassContraction:
			if _, ok := s.product(o); ok && e.Elem.IsFloat() { // of blocks
				e.Class = op.ClassContraction
				s.products(e)
			} else { // sums of what is stored, row by row
				e.Class = op.ClassNormalization
			}
		case (e.Class == op.ClassContraction || op.TakesSegments(o)) && e.Elem.IsFloat():
			s.products(e)
		default:
			s.ordering(e)
		}
		e.elements, e.rows = s.elements(o)
		if i := op.Positions(o); i >= 0 && e.rows > 0 {
			if n := op.UnevenSegments(o.Operands[i], e.rows); n > 0 {
				e.own().uneven = n
			}
		}
		if ts := s.tables(o); ts != nil {
			for i := range ts {
				ts[i].segments = e.segments
			}
			e.own().tables = ts
		}
		if op.IsData(o) {
			s.data.Store(true)
		}
		if communicates(o) && !fused {
			e.own().Comm = s.collective(o)
		}
		if !fused {
			s.move(e, o, d)
		}
	}
	if fused {
		e.Read, e.Written = dim.Dim{}, dim.Dim{}
		if !e.link.IsZero() {
			e.own().link = dim.Dim{}
		}
	} else {
		e.Read, e.Written = e.Read.Add(scratch(o, ScratchReadAttr)), e.Written.Add(scratch(o, ScratchWrittenAttr))
	}
}

// grouped makes e the cost of an op with tuples: the sum of those of its members.
func (s *scope) grouped(e *Entry, o *ir.Op, fused bool) {
	switch {
	case o.Name == op.Call || o.Name == op.Grad:
		s.call(e, o)
		return
	case op.PassesOn(o): // it packs or unpacks
		return
	}
	parts := op.Split(o)
	if parts == nil {
		e.Known = false
		s.inner(e, o, fused)
		return
	}
	for i, p := range parts {
		of := s.entry(p, fused)
		e.Known = e.Known && of.Known
		e.FLOP, e.Read, e.Written = e.FLOP.Add(of.FLOP), e.Read.Add(of.Read), e.Written.Add(of.Written)
		w := e.own()
		w.link, w.parts = w.link.Add(of.link), append(w.parts, of)
		if i == 0 {
			e.Class, e.Elem = of.Class, of.Elem
		}
	}
}

// inner lists the ops in o's regions without counting them.
func (s *scope) inner(e *Entry, o *ir.Op, fused bool) {
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			for i, p := range b.Ops {
				if counts(p, i == len(b.Ops)-1) {
					w := e.own()
					w.Inner = append(w.Inner, s.entry(p, fused))
				}
			}
		}
	}
}

// move fills in what an op at level 1 reads and writes.
func (s *scope) move(e *Entry, o *ir.Op, d *op.Def) {
	switch {
	case op.IsView(o):
		return
	case op.HasTraffic(o):
		read, written := s.traffic(o)
		e.Written = written.Subst(s.env)
		for i := range o.Operands {
			if i < len(read) {
				e.Read = e.Read.Add(s.part(o, i, read))
			}
		}
	default:
		for i, v := range o.Operands {
			if !earlier(o, i) {
				e.Read = e.Read.Add(s.size(v))
			}
		}
		for _, v := range o.Results {
			e.Written = e.Written.Add(s.size(v))
		}
	}
	for i, v := range o.Operands {
		if onHost(v) && !earlier(o, i) {
			w := e.own()
			w.link = w.link.Add(s.size(v))
		}
	}
	for _, v := range o.Results {
		if onHost(v) {
			w := e.own()
			w.link = w.link.Add(s.size(v))
		}
	}
}

// part is the bytes that operand i adds to the read ones. What several operands
// touch of one value counts up to all of it.
func (s *scope) part(o *ir.Op, i int, read []dim.Dim) dim.Dim {
	whole := s.size(o.Operands[i])
	upTo := func(n dim.Dim) dim.Dim {
		if n.AtLeast(whole) {
			return whole
		}
		return n
	}
	var before dim.Dim
	for j := 0; j < i && j < maxCompared; j++ {
		if o.Operands[j] == o.Operands[i] {
			before = before.Add(read[j].Subst(s.env))
		}
	}
	return upTo(before.Add(read[i].Subst(s.env))).Sub(upTo(before))
}

// maxCompared bounds how far back an operand is compared with those before it:
// no op names a value twice far apart on purpose.
const maxCompared = 8

// earlier reports whether operand i is also one of the operands before it.
func earlier(o *ir.Op, i int) bool {
	for j := 0; j < i && j < maxCompared; j++ {
		if o.Operands[j] == o.Operands[i] {
			return true
		}
	}
	return false
}

func onHost(v *ir.Value) bool {
	t := v.Tensor()
	return t != nil && t.At.Space == types.Host
}

// computed is the element type that o computes on: TF32 where it rounds operands to that, the first floating-point
// operand's, else the first floating-point result's, else the first there is.
func computed(o *ir.Op) types.Elem {
	if op.TF32(o) {
		return types.TF32
	}
	first := types.InvalidElem
	for _, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			var e types.Elem
			switch t := v.Type.(type) {
			case *types.Tensor:
				e = t.Elem
			case types.Scalar:
				e = t.Elem
			}
			if e.IsFloat() {
				return e
			}
			if first == types.InvalidElem {
				first = e
			}
		}
	}
	return first
}

// The attributes in which a step records what its kernels read and write beside
// what crosses its boundary, in bytes: partial sums that blocks hand on in
// memory, and operands that several of the kernels read.
const (
	ScratchReadAttr    = op.ScratchReadAttr
	ScratchWrittenAttr = op.ScratchWrittenAttr
)

// The attributes in which a step records how many kernels run one after the other
// for it, and the bandwidth that their blocks reach, in bytes per second.
const (
	LaunchesAttr  = op.LaunchesAttr
	BandwidthAttr = op.BandwidthAttr
)

// EpilogueAttr is the attribute in which a step records what the epilogues of its tiles add to the time of its products, in
// nanoseconds.
const EpilogueAttr = op.EpilogueAttr

func scratch(o *ir.Op, name string) dim.Dim { return dim.Const(max(0, o.Int(name, 0))) }
