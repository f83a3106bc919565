package llvm

import (
	"fmt"
	"slices"
	"strings"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	dm "dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// launch is one kernel: its parameters and the function that writes its body.
type launch struct {
	assemble.Launch
	write func(b *body) error
}

// body is a kernel that is being written: it runs the tasks first to last - 1.
type body struct {
	*emitter
	first, last value.Value
	scratch     value.Value
	used        int64                          // bytes of scratch memory given out
	memory      map[*assemble.Temp]value.Value // that launches share
}

// newLaunch is a launch of tasks whose parameters ps are.
func newLaunch(suffix string, class kernel.Class, tasks int64, ps []assemble.Param, write func(b *body) error) *launch {
	packed := func(p assemble.Param) bool { return p.Mode != artifact.In && p.Elem.Packed() }
	if all := tasks; slices.ContainsFunc(ps, packed) { // two tasks may have the halves of one byte
		of := write
		tasks, write = 1, func(b *body) error {
			b.first, b.last = code.Int(0), code.Int(all)
			return of(b)
		}
	}
	return &launch{assemble.Launch{Suffix: suffix, Class: string(class), Block: artifact.Block{Threads: 1}, Grid: artifact.Grid{int(tasks), 1, 1}, Params: ps}, write}
}

// take is scratch memory of n elements.
func (b *body) take(elem types.Elem, n int64) value.Value {
	p := b.Element(lltypes.I8, b.scratch, code.Int(b.used))
	b.used += scratchBytes(elem, n)
	return p
}

// scratchBytes is what take uses.
func scratchBytes(elem types.Elem, n int64) int64 { return (n*elem.Bytes() + 63) &^ 63 }

// kept is the element type in which values of elem are kept between loops: that of
// the computation.
func kept(elem types.Elem) types.Elem {
	switch {
	case elem.IsFloat() && elem != types.F64:
		return types.F32
	case elem == types.I4:
		return types.I8
	case elem == types.UI4:
		return types.UI8
	}
	return elem
}

// params are the parameters of a kernel that reads in and writes out; a result
// written over an input shares its parameter.
type params struct {
	list  []assemble.Param
	taken map[string]bool
}

func newParams() *params { return &params{taken: map[string]bool{}} }

func (p *params) name(name string) string {
	name = assemble.Identifier(name)
	try := name
	for i := 2; p.taken[try]; i++ {
		try = fmt.Sprintf("%s_%d", name, i)
	}
	p.taken[try] = true
	return try
}

func (p *params) reads(vs []*dm.Value) {
	for _, v := range vs {
		if p.find(v) == nil {
			p.list = append(p.list, assemble.Param{Name: p.name(v.Name), Elem: v.Elem(), Mode: artifact.In, Value: v})
		}
	}
}

func (p *params) find(v *dm.Value) *assemble.Param {
	for i := range p.list {
		if p.list[i].Value == v || p.list[i].Over == v {
			return &p.list[i]
		}
	}
	return nil
}

func (p *params) writes(vs []*dm.Value, over map[*dm.Value]*dm.Value) {
	for _, v := range vs {
		if in := over[v]; in != nil {
			if q := p.find(in); q != nil { // else it is only written
				q.Mode, q.Over = artifact.InOut, v
				continue
			}
		}
		if p.find(v) == nil {
			p.list = append(p.list, assemble.Param{Name: p.name(v.Name), Elem: v.Elem(), Mode: artifact.Out, Value: v})
		}
	}
}

func (p *params) temp(name string, t *assemble.Temp, mode artifact.Mode) {
	p.list = append(p.list, assemble.Param{Name: p.name(name), Elem: t.Elem, Mode: mode, Temp: t})
}

// loads are the values that xs read, in order of first use.
func loads(xs ...*kernel.Expr) (out []*dm.Value) {
	seen := map[*dm.Value]bool{}
	for _, x := range xs {
		kernel.Walk(x, func(y *kernel.Expr) {
			if y.Op == kernel.Load && !seen[y.Buf] {
				seen[y.Buf] = true
				out = append(out, y.Buf)
			}
		})
	}
	return out
}

// values are the results that outs store, each once.
func values(outs []kernel.Out) (vs []*dm.Value) {
	seen := map[*dm.Value]bool{}
	for _, o := range outs {
		if !seen[o.Value] {
			seen[o.Value] = true
			vs = append(vs, o.Value)
		}
	}
	return vs
}

// text is the code of a launch.
type text struct {
	l   *launch
	key string
}

// Key is the function without the places in the program.
func (t *text) Key() string { return t.key }

// newText writes l once, to verify it and for its key.
func newText(l *launch, arch string) (*text, error) {
	m := module(arch)
	if err := emit(m, scalar.New(m), l, "k", nil); err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, p := range l.Params {
		fmt.Fprintf(&b, "%s %s\n", p.Mode, p.Elem)
	}
	fmt.Fprintf(&b, "%d\n", l.Scratch)
	b.WriteString(m.String())
	return &text{l, b.String()}, nil
}

// bodySuffix is the end of the name of a kernel's body.
const bodySuffix = "_body"

// emit adds the functions of l to m: the kernel, and behind it its body with the
// buffers as parameters that do not overlap, which the vectorizer can rely on.
func emit(m *code.Module, lib *scalar.Lib, l *launch, name string, at *lines) error {
	inner := make([]*ir.Param, 0, len(l.Params)+3)
	for i := range l.Params {
		p := ir.NewParam(fmt.Sprintf("p%d", i), code.Bytes)
		p.Attrs = append(p.Attrs, enum.ParamAttrNoAlias, enum.ParamAttrNoCapture) // not aligned: programs bind memory of theirs
		if l.Params[i].Mode == artifact.In {
			p.Attrs = append(p.Attrs, enum.ParamAttrReadOnly)
		}
		inner = append(inner, p)
	}
	first, last := ir.NewParam("first", code.Index), ir.NewParam("last", code.Index)
	scratch := ir.NewParam("scratch", code.Bytes)
	scratch.Attrs = append(scratch.Attrs, enum.ParamAttrNoAlias, enum.ParamAttrNoCapture, ir.Align(64))
	inner = append(inner, first, last, scratch)

	fn := m.NewFunc(name+bodySuffix, lltypes.Void, inner...)
	fn.Linkage = enum.LinkageInternal
	fn.FuncAttrs = append(fn.FuncAttrs, enum.FuncAttrNoUnwind, enum.FuncAttrNoInline, ir.AttrPair{Key: "prefer-vector-width", Value: "512"})
	at.begin(fn, name)
	f := m.NewFuncBody(fn)
	e := &emitter{
		Func: f, lib: lib, lines: at, params: map[*dm.Value]value.Value{}, scopes: []scope{newScope()}, atoms: map[*kernel.Atom]value.Value{},
		given: map[*kernel.Expr]value.Value{}, held: map[*kernel.Expr]value.Value{}, lists: map[*kernel.Groups]lists{}, ranges: map[*kernel.Atom]segment{}, bad: new([]string),
	}
	b := &body{emitter: e, first: first, last: last, scratch: scratch, memory: map[*assemble.Temp]value.Value{}}
	for i, p := range l.Params {
		switch {
		case p.Temp != nil:
			b.memory[p.Temp] = inner[i]
		default:
			e.params[p.Value] = inner[i]
			if p.Over != nil {
				e.params[p.Over] = inner[i]
			}
		}
	}
	if err := l.write(b); err != nil {
		return err
	}
	f.NewRet(nil)
	at.end(fn)
	if b.used > l.Scratch {
		*e.bad = append(*e.bad, fmt.Sprintf("%d bytes of scratch memory are used, and %d are planned", b.used, l.Scratch))
	}
	if len(*e.bad) > 0 {
		return &assemble.InvalidError{Problems: *e.bad, Text: "\n" + fn.LLString()}
	}
	outer(m, fn, name, len(l.Params), at)
	return nil
}

// outer adds the kernel, which reads the addresses of its buffers from an array.
func outer(m *code.Module, fn *ir.Func, name string, n int, at *lines) {
	args, first, last := ir.NewParam("args", lltypes.NewPointer(code.Bytes)), ir.NewParam("first", code.Index), ir.NewParam("last", code.Index)
	scratch := ir.NewParam("scratch", code.Bytes)
	k := m.NewFunc(name, lltypes.Void, args, first, last, scratch)
	k.FuncAttrs = append(k.FuncAttrs, enum.FuncAttrNoUnwind)
	f := m.NewFuncBody(k)
	var given []value.Value
	for i := range n {
		given = append(given, f.NewLoad(code.Bytes, f.Element(code.Bytes, args, code.Int(int64(i)))))
	}
	f.Call(fn, append(given, first, last, scratch)...)
	f.NewRet(nil)
}
