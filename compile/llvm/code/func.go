package code

import (
	"fmt"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// The types of pointers to bytes and of indices.
var (
	Bytes = types.NewPointer(types.I8)
	Index = types.I64
)

// Module is a module that is being built.
type Module struct {
	*ir.Module
	// Vector is the bytes of the architecture's vectors; 0: not known. Masks: they are loaded
	// and stored in part as fast as whole.
	Vector int64
	Masks  bool
	funcs  map[string]*ir.Func
	nodes  int64 // of metadata
}

// NewModule is an empty module.
func NewModule() *Module {
	return &Module{Module: ir.NewModule(), funcs: map[string]*ir.Func{}}
}

// Once returns the function called name, which build makes when it is first asked for.
func (m *Module) Once(name string, build func() *ir.Func) *ir.Func {
	if f := m.funcs[name]; f != nil {
		return f
	}
	f := build()
	m.funcs[name] = f
	return f
}

// Declare returns the declaration of a function that is defined elsewhere: an
// intrinsic or a function of the C library.
func (m *Module) Declare(name string, result types.Type, params ...types.Type) *ir.Func {
	return m.Once(name, func() *ir.Func {
		var ps []*ir.Param
		for _, t := range params {
			ps = append(ps, ir.NewParam("", t))
		}
		return m.NewFunc(name, result, ps...)
	})
}

// Node adds a metadata node with an identifier of its own; distinct ones are equal to
// no other.
func (m *Module) Node(def metadata.Definition) metadata.Definition {
	def.SetID(m.nodes)
	m.nodes++
	m.MetadataDefs = append(m.MetadataDefs, def)
	return def
}

// Func is a function that is being built, at the end of its current block.
type Func struct {
	*ir.Block // the current one, to which instructions are added
	Of        *ir.Func
	M         *Module
	entry     *ir.Block
	blocks    int
}

// NewFuncBody begins the body of f.
func (m *Module) NewFuncBody(f *ir.Func) *Func {
	b := f.NewBlock("entry")
	return &Func{Block: b, Of: f, M: m, entry: b}
}

func (f *Func) block(name string) *ir.Block {
	f.blocks++
	return f.Of.NewBlock(fmt.Sprintf("%s%d", name, f.blocks))
}

// Int is an index.
func Int(n int64) *constant.Int { return constant.NewInt(Index, n) }

// Alloca is memory of n elements in the frame of the function, wherever the current
// block is.
func (f *Func) Alloca(t types.Type, n int64, align int) *ir.InstAlloca {
	a := ir.NewAlloca(t)
	if n != 1 {
		a.NElems = Int(n)
	}
	if align > 0 {
		a.Align = ir.Align(align)
	}
	f.entry.Insts = append([]ir.Instruction{a}, f.entry.Insts...)
	return a
}

// Loop is how a loop is to be compiled.
type Loop struct {
	Step       int64 // of the variable; 0 is 1
	Vectorize  bool  // the iterations are independent but for reductions, and worth vectors
	Scalar     bool  // it is no vector code
	Short      bool  // with Vectorize: there are few iterations, so that the rest of a vector counts
	Wide       int   // with Vectorize: iterations of a vector; 0: as the compiler likes
	Interleave int   // with Wide: vectors of an iteration
	Unroll     int   // 0: as the compiler likes; 1: not; Full
}

// Full unrolls a loop of a known number of iterations.
const Full = -1

// For runs body for i from first, below last.
func (f *Func) For(first, last value.Value, how Loop, body func(i value.Value)) {
	f.Fold(first, last, how, nil, func(i value.Value, _ []value.Value) []value.Value {
		body(i)
		return nil
	})
}

// A loop of up to so many iterations is unrolled as a whole by clang 14 before it looks for vectors, of which it then finds
// none in sums. Of fewer than fewest the vectors pay less than the rest takes.
const fewest, wholly = 16, 128

// Fold is For with values that each iteration gets from the one before and passes on,
// and returns the last ones.
func (f *Func) Fold(first, last value.Value, how Loop, begin []value.Value, body func(i value.Value, acc []value.Value) []value.Value) []value.Value {
	step := max(how.Step, 1)
	if a, ok := first.(*constant.Int); ok { // a loop of one iteration is none
		if b, ok := last.(*constant.Int); ok {
			n := b.X.Int64() - a.X.Int64()
			if n <= 0 {
				return begin
			}
			if n <= step {
				return body(first, begin)
			}
			if how.Vectorize && how.Unroll == 0 && n >= fewest*step && n <= wholly*step {
				how.Unroll = 1
			}
		}
	}
	head, inside, after := f.block("loop"), f.block("body"), f.block("end")
	before := f.Block
	f.NewBr(head)
	f.Block = head
	i := head.NewPhi(ir.NewIncoming(first, before))
	acc := make([]value.Value, len(begin))
	phis := make([]*ir.InstPhi, len(begin))
	for k, v := range begin {
		phis[k] = head.NewPhi(ir.NewIncoming(v, before))
		acc[k] = phis[k]
	}
	head.NewCondBr(head.NewICmp(enum.IPredSLT, i, last), inside, after)
	f.Block = inside
	next := body(i, acc)
	more := f.NewAdd(i, constant.NewInt(i.Type().(*types.IntType), step))
	more.OverflowFlags = []enum.OverflowFlag{enum.OverflowFlagNSW}
	i.Incs = append(i.Incs, ir.NewIncoming(more, f.Block))
	for k, v := range next {
		phis[k].Incs = append(phis[k].Incs, ir.NewIncoming(v, f.Block))
	}
	back := f.NewBr(head)
	if node := f.M.hints(how); node != nil {
		back.Metadata = append(back.Metadata, &metadata.Attachment{Name: "llvm.loop", Node: node})
	}
	f.Block = after
	return acc
}

// hints is the metadata of a loop, nil where there is nothing to state.
func (m *Module) hints(how Loop) metadata.MDNode {
	var fields []metadata.Field
	hint := func(name string, v constant.Constant) {
		fs := []metadata.Field{&metadata.String{Value: name}}
		if v != nil {
			fs = append(fs, Text(v.String()))
		}
		fields = append(fields, m.tuple(false, fs...))
	}
	if how.Scalar {
		hint("llvm.loop.vectorize.enable", constant.False)
	}
	if how.Vectorize {
		hint("llvm.loop.vectorize.enable", constant.True)
		if how.Wide > 0 {
			hint("llvm.loop.vectorize.width", constant.NewInt(types.I32, int64(how.Wide)))
			hint("llvm.loop.interleave.count", constant.NewInt(types.I32, int64(max(how.Interleave, 1))))
			// What it then takes as vectors is unrolled, such as the single iteration of a loop as long as they are.
			fields = append(fields, m.tuple(false, &metadata.String{Value: "llvm.loop.vectorize.followup_vectorized"}, m.tuple(false, &metadata.String{Value: "llvm.loop.unroll.full"})))
		}
		if how.Short && m.Masks {
			hint("llvm.loop.vectorize.predicate.enable", constant.True)
		}
	}
	switch {
	case how.Unroll == Full:
		hint("llvm.loop.unroll.full", nil)
	case how.Unroll == 1:
		hint("llvm.loop.unroll.disable", nil)
	case how.Unroll > 1:
		hint("llvm.loop.unroll.count", constant.NewInt(types.I32, int64(how.Unroll)))
	}
	if len(fields) == 0 {
		return nil
	}
	node := m.tuple(true, fields...)
	node.Fields = append([]metadata.Field{node}, node.Fields...)
	return node
}

// Text is a field of a tuple as it is written.
type Text string

func (t Text) String() string { return string(t) }

func (m *Module) tuple(distinct bool, fields ...metadata.Field) *metadata.Tuple {
	t := &metadata.Tuple{MetadataID: -1, Distinct: distinct, Fields: fields}
	m.Node(t)
	return t
}

// While runs body as long as cond holds; both see the values that body passes on.
func (f *Func) While(begin []value.Value, cond func(acc []value.Value) value.Value, body func(acc []value.Value) []value.Value) []value.Value {
	head, inside, after := f.block("while"), f.block("body"), f.block("end")
	before := f.Block
	f.NewBr(head)
	f.Block = head
	acc := make([]value.Value, len(begin))
	phis := make([]*ir.InstPhi, len(begin))
	for k, v := range begin {
		phis[k] = head.NewPhi(ir.NewIncoming(v, before))
		acc[k] = phis[k]
	}
	c := cond(acc)
	f.NewCondBr(c, inside, after)
	f.Block = inside
	for k, v := range body(acc) {
		phis[k].Incs = append(phis[k].Incs, ir.NewIncoming(v, f.Block))
	}
	f.NewBr(head)
	f.Block = after
	return acc
}

// If runs then where cond holds: without a branch where cond is a constant.
func (f *Func) If(cond value.Value, then func()) {
	switch cond {
	case value.Value(constant.True):
		then()
		return
	case value.Value(constant.False):
		return
	}
	inside, after := f.block("then"), f.block("end")
	f.NewCondBr(cond, inside, after)
	f.Block = inside
	then()
	f.NewBr(after)
	f.Block = after
}

// Likely is Choose where cond nearly always holds: a branch, with the other case aside.
func (f *Func) Likely(cond value.Value, then, otherwise func() []value.Value) []value.Value {
	weights := f.M.tuple(false, &metadata.String{Value: "branch_weights"}, Text("i32 2000"), Text("i32 1"))
	return f.choose(cond, &metadata.Attachment{Name: "prof", Node: weights}, then, otherwise)
}

// Choose is the values of then where cond holds, else those of otherwise; only the
// chosen ones are computed: without a branch where cond is a constant.
func (f *Func) Choose(cond value.Value, then, otherwise func() []value.Value) []value.Value {
	switch cond {
	case value.Value(constant.True):
		return then()
	case value.Value(constant.False):
		return otherwise()
	}
	return f.choose(cond, nil, then, otherwise)
}

func (f *Func) choose(cond value.Value, note *metadata.Attachment, then, otherwise func() []value.Value) []value.Value {
	yes, no, after := f.block("then"), f.block("else"), f.block("end")
	if br := f.NewCondBr(cond, yes, no); note != nil {
		br.Metadata = append(br.Metadata, note)
	}
	f.Block = yes
	a := then()
	yes = f.Block
	f.NewBr(after)
	f.Block = no
	b := otherwise()
	no = f.Block
	f.NewBr(after)
	f.Block = after
	out := make([]value.Value, len(a))
	for k := range a {
		out[k] = f.NewPhi(ir.NewIncoming(a[k], yes), ir.NewIncoming(b[k], no))
	}
	return out
}

// Call calls a function.
func (f *Func) Call(fn value.Value, args ...value.Value) value.Value { return f.NewCall(fn, args...) }

// Element is the address of element i of the array of t at p, a pointer of any type.
func (f *Func) Element(t types.Type, p, i value.Value) value.Value {
	to := types.NewPointer(t)
	if !p.Type().Equal(to) {
		p = f.NewBitCast(p, to)
	}
	g := f.NewGetElementPtr(t, p, i)
	g.InBounds = true
	return g
}
