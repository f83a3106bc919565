package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// code is a kernel as a list of instructions, with registers and labels as numbers.
type code struct {
	fn     *Func
	list   []op
	regs   int
	vars   map[string]sharedVar // of shared memory
	params map[string]int
	after  []int  // by instruction, the one that all paths behind it pass, -1: the end
	sums   []bool // of registers, whether wgmma uses them
	static int    // bytes of shared memory
	files  map[int]string
	calls  map[[3]int][3]int // from a place (file, line, column) to the one that it is inlined at
}

// sharedVar is a variable of shared memory: its address, and whether its size is the launch's.
type sharedVar struct {
	at   uint64
	open bool
}

// arg is a source operand: a register, or else a known value.
type arg struct {
	reg   int // -1: none
	value uint64
	known bool
	off   int64 // that an address adds
}

// op is an instruction.
type op struct {
	in     *Instr
	loc    *Loc
	words  []string // of its name
	kind   opKind
	guard  int // -1: none
	target int // of a branch
	dst    []int
	src    []arg
	f      func(a, b, c uint64) uint64
	space  string
	bytes  int // that a lane moves
	eager  byte
}

// has reports whether a modifier is there.
func (o *op) has(word string) bool { return slices.Contains(o.words, word) }

// starts reports whether the name begins with these words.
func (o *op) starts(words string) bool {
	return o.in.Op == words || strings.HasPrefix(o.in.Op, words+".")
}

type opKind uint8

const (
	opUnknown opKind = iota // its results are not known
	opALU
	opSelect
	opBranch
	opExit
	opLoad
	opStore
	opReduce // red, of global memory
	opBarrier
	opCopy // cp.async
	opCopyCommit
	opCopyWait
	opInit // of an mbarrier
	opArrive
	opWait
	opBulk
	opPrefetch // of a tensor map
	opBulkCommit
	opBulkWait
	opFence
	opProduct // wgmma
	opProductFence
	opProductCommit
	opProductWait
	opRegisters
	opDependency
	opMatrix // ldmatrix
	opWarp   // .aligned and *.sync without another effect
	opCall
	opCluster
	opElect
	opForeign // an asynchronous instruction that is not modelled
	opNone
)

// Addresses that stand for those of a launch.
const (
	sharedBase  = 1024                 // of shared memory, which the system has the first bytes of
	sharedGen   = uint64(0x5000) << 32 // of shared memory in the generic space
	paramBase   = uint64(0x7000) << 32
	globalBase  = uint64(0x1000) << 32
	paramShift  = 20
	globalShift = 36
)

// decode reads a kernel. The error is of a text that is no valid kernel.
func decode(f *Func) (*code, error) {
	d := &decoder{c: &code{fn: f, vars: map[string]sharedVar{}, params: map[string]int{}, files: f.Unit.Files, calls: map[[3]int][3]int{}}}
	for i, p := range f.Params {
		d.c.params[p.Names[0].Name] = i
	}
	d.scan(f.Body, newScope(nil))
	for _, b := range d.branches {
		t, ok := b.scope.label(b.name)
		if !ok {
			return nil, &Error{d.c.list[b.at].in.Pos, fmt.Sprintf("the label %s is not defined", b.name)}
		}
		d.c.list[b.at].target = t
	}
	if d.err != nil {
		return nil, d.err
	}
	placed := map[*Var]bool{}
	for _, ref := range d.symbols { // the variables that the kernel uses
		name, _, _ := strings.Cut(ref.name, "+")
		if v := f.Unit.Vars[name]; v != nil && v.Space() == "shared" && !placed[v] {
			placed[v] = true
			d.shared(v)
		}
	}
	// Open arrays lie behind the others.
	for name, v := range d.c.vars {
		if v.open {
			v.at = sharedBase + uint64(d.c.static+1023)&^1023
			d.c.vars[name] = v
		}
	}
	d.bind()
	d.c.after = postDominators(d.c.list)
	return d.c, nil
}

// find reports that instruction o breaks a rule.
func (c *code) find(r *Report, o *op, rule Rule, format string, args ...any) {
	f := Finding{Rule: rule, Kernel: c.fn.Name, Pos: o.in.Pos, Message: fmt.Sprintf(format, args...)}
	f.File, f.Source = c.place(o.loc)
	r.Findings = append(r.Findings, f)
}

// place is the nearest place outside of the prelude's headers that an instruction came from.
func (c *code) place(l *Loc) (file string, line int) {
	if l == nil {
		return "", 0
	}
	at := [3]int{l.File, l.Line, l.Col}
	up := l.At
	for range 64 {
		if file := c.files[at[0]]; file != "" && !strings.HasSuffix(file, ".cuh") {
			return file, at[1]
		}
		if up == [3]int{} {
			break
		}
		at, up = up, c.calls[up]
	}
	return "", 0
}

// scope is a block of a text: what it declares.
type scope struct {
	up           *scope
	regs, labels map[string]int
	ranges       map[string]int // of %r<9>, 9
}

func newScope(up *scope) *scope {
	return &scope{up: up, regs: map[string]int{}, labels: map[string]int{}, ranges: map[string]int{}}
}

// reg is the number of a register. Those of ranges get theirs when they are first
// used, since a range may be longer than any text.
func (d *decoder) reg(s *scope, name string) (int, bool) {
	prefix := strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(prefix):])
	for ; s != nil; s = s.up {
		if r, ok := s.regs[name]; ok {
			return r, true
		}
		if err == nil && n < s.ranges[prefix] {
			s.regs[name] = d.c.regs
			d.c.regs++
			return s.regs[name], true
		}
	}
	return 0, false
}

func (s *scope) label(name string) (int, bool) {
	for ; s != nil; s = s.up {
		if r, ok := s.labels[name]; ok {
			return r, true
		}
	}
	return 0, false
}

type branch struct {
	at    int
	name  string
	scope *scope
}

type symbolRef struct {
	op, arg int
	name    string
}

type decoder struct {
	c        *code
	loc      *Loc
	branches []branch
	symbols  []symbolRef
	err      error
}

func (d *decoder) shared(v *Var) {
	align, size := 1, 1
	for i, w := range v.Words {
		if w == ".align" && i+1 < len(v.Words) {
			if n, ok := number(v.Words[i+1]); ok && n > 0 && n <= 1<<16 {
				align = int(n)
			}
		}
		if n := typeBytes(strings.TrimPrefix(w, ".")); n > 0 {
			size = n
		}
	}
	for _, n := range v.Names {
		open := false
		total := size
		for _, dim := range n.Dims {
			k, ok := number(dim)
			open = open || dim == "" || !ok
			if ok && k < 1<<20 {
				total = min(total*int(k), 1<<20)
			}
		}
		if open {
			d.c.vars[n.Name] = sharedVar{open: true}
			continue
		}
		d.c.static = (d.c.static + align - 1) / align * align
		d.c.vars[n.Name] = sharedVar{at: sharedBase + uint64(d.c.static)}
		d.c.static += total
	}
}

func (d *decoder) scan(body []Stmt, s *scope) {
	for _, st := range body {
		switch st := st.(type) {
		case *Loc:
			d.loc = st
			if st.At != [3]int{} {
				d.c.calls[[3]int{st.File, st.Line, st.Col}] = st.At
			}
		case *Label:
			s.labels[st.Name] = len(d.c.list)
		case *Scope:
			d.scan(st.Body, newScope(s))
		case *Var:
			switch st.Space() {
			case "reg":
				d.declare(st, s)
			case "shared":
				d.shared(st)
			}
		case *Instr:
			d.instr(st, s)
		}
	}
}

func (d *decoder) declare(v *Var, s *scope) {
	for _, n := range v.Names {
		if n.Count > 0 {
			s.ranges[n.Name] = n.Count
			continue
		}
		s.regs[n.Name] = d.c.regs
		d.c.regs++
	}
}

// flat adds the registers and values of an operand.
func (d *decoder) flat(o Operand, s *scope, at int, out []arg) []arg {
	switch o.Kind {
	case Name:
		if r, ok := d.reg(s, o.Text); ok {
			return append(out, arg{reg: r})
		}
		d.symbols = append(d.symbols, symbolRef{at, len(out), o.Text})
		return append(out, arg{reg: -1})
	case Num:
		v, ok := number(o.Text)
		return append(out, arg{reg: -1, value: v, known: ok})
	default:
		first := len(out)
		for _, sub := range o.Sub {
			out = d.flat(sub, s, at, out)
		}
		if o.Kind == Mem && o.Off != "" {
			v, _ := number(strings.TrimPrefix(o.Off, "+"))
			out[first].off = int64(v)
		}
	}
	return out
}

// dsts are how many of the first operands an instruction writes.
func dsts(o *op) int {
	switch o.kind {
	case opStore, opReduce, opBarrier, opCopy, opCopyCommit, opCopyWait, opInit, opBulk, opPrefetch, opBulkCommit, opBulkWait, opFence, opProductFence,
		opProductCommit, opProductWait, opRegisters, opDependency, opBranch, opExit, opCluster, opForeign, opNone:
		return 0
	case opWarp:
		if o.starts("bar") || o.starts("stmatrix") {
			return 0
		}
	case opArrive:
		if len(o.in.Args) < 2 || o.in.Args[0].Kind == Mem {
			return 0
		}
	case opUnknown, opCall:
		if o.starts("red") || o.starts("prefetch") || o.starts("call") {
			return 0
		}
	}
	return 1
}

func (d *decoder) instr(in *Instr, s *scope) {
	at := len(d.c.list)
	o := op{in: in, loc: d.loc, words: strings.Split(in.Op, "."), guard: -1, target: -1}
	o.classify()
	if (o.kind == opALU || o.kind == opSelect) && slices.ContainsFunc(in.Args, func(a Operand) bool { return a.Kind == Vec }) {
		o.kind = opUnknown
	}
	if in.Guard != "" {
		r, ok := d.reg(s, in.Guard)
		if !ok && d.err == nil {
			d.err = &Error{in.Pos, fmt.Sprintf("the register %s is not declared", in.Guard)}
		}
		o.guard = r
	}
	args := in.Args
	if o.kind == opBranch {
		if len(args) != 1 || args[0].Kind != Name {
			d.err = &Error{in.Pos, "a branch to a label is expected"}
			return
		}
		d.branches = append(d.branches, branch{at, args[0].Text, s})
		args = nil
	}
	n := min(dsts(&o), len(args))
	for _, a := range args[:n] {
		for _, r := range d.flat(a, s, -1, nil) {
			o.dst = append(o.dst, r.reg)
		}
	}
	for _, a := range args[n:] {
		o.src = d.flat(a, s, at, o.src)
	}
	if o.kind == opProduct && len(in.Args) > 0 { // its sums are read, too
		o.src = d.flat(in.Args[0], s, at, o.src)
	}
	if d.err == nil && !o.complete() {
		d.err = &Error{in.Pos, fmt.Sprintf("%s with %d operands", in.Op, len(in.Args))}
	}
	d.c.list = append(d.c.list, o)
}

// complete reports whether an instruction has the operands that are looked at.
func (o *op) complete() bool {
	switch o.kind {
	case opALU, opSelect, opElect:
		return len(o.dst) > 0 && len(o.src) > 0
	case opInit:
		return len(o.src) > 1
	case opArrive, opWait, opMatrix, opLoad, opStore, opReduce, opPrefetch:
		return len(o.src) > 0
	case opCopy, opBulk:
		return len(o.src) > 2
	case opProduct:
		a := o.in.Args
		return len(a) > 5 && a[0].Kind == Vec && len(o.words) > 6 && len(o.src) > len(o.dst)+len(a[1].Sub)+1
	}
	return true
}

// bind gives variables their addresses.
func (d *decoder) bind() {
	for _, ref := range d.symbols {
		if ref.op < 0 {
			continue
		}
		name, off, _ := strings.Cut(ref.name, "+")
		a := &d.c.list[ref.op].src[ref.arg]
		if v, ok := d.c.vars[name]; ok {
			a.value, a.known = v.at, true
		} else if p, ok := d.c.params[name]; ok {
			a.value, a.known = paramBase+uint64(p)<<paramShift, true
		} else {
			special(a, name)
		}
		if n, ok := number(off); ok && off != "" {
			a.value += n
		}
	}
	d.c.sums = make([]bool, d.c.regs)
	for i := range d.c.list {
		if o := &d.c.list[i]; o.kind == opProduct {
			for _, r := range o.dst {
				if r >= 0 {
					d.c.sums[r] = true
				}
			}
			if o.in.Args[1].Kind == Vec {
				for k := range o.in.Args[1].Sub {
					if r := o.src[k].reg; r >= 0 {
						d.c.sums[r] = true
					}
				}
			}
		}
	}
}

// The numbers of special registers, as negative registers below -1.
var specials = []string{"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%laneid", "%warpid", "WARP_SZ", "%cluster_ctarank", "%cluster_nctarank"}

func special(a *arg, name string) {
	if i := slices.Index(specials, name); i >= 0 {
		a.reg = -2 - i
	}
}

// typeBytes is the size of an element type of PTX, 0 if it is none.
func typeBytes(t string) int {
	switch t {
	case "b8", "u8", "s8":
		return 1
	case "b16", "u16", "s16", "f16", "bf16":
		return 2
	case "b32", "u32", "s32", "f32", "tf32", "f16x2", "bf16x2":
		return 4
	case "b64", "u64", "s64", "f64":
		return 8
	case "b128":
		return 16
	}
	return 0
}
