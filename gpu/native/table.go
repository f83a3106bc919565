package native

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dmir/base/escape"
	"dmir/gpu/artifact"
)

// tables writes the C file that describes a program to the runtime; see
// runtime/table.h. data is the file of the constants' bytes, which it includes.
type tables struct {
	p      *artifact.Program
	inside bool // the object has the constants, and no caller gives them
	b      strings.Builder
	counts []string // of elements of the arrays, as struct table has them
	// Bytes of the memory of a thread, and of the states that carries copy away first.
	scratch, staged int64
}

// constantsFile is the name of the file with the bytes of constants.
const constantsFile = "constants.bin"

// constantAlign is the alignment of constants.
const constantAlign = 64

// kernelSymbol is a kernel's name in objects. With a dot in it, it is none of C's.
func kernelSymbol(name string) string { return "dmir.kernel." + name }

// table is the text of the C file.
func table(p *artifact.Program, inside bool) string {
	t := &tables{p: p, inside: inside}
	t.f("#include \"table.h\"\n#define TEXT(x) #x\n#define PREFIX(x) TEXT(x)\n#define SYMBOL(name) __asm__(PREFIX(__USER_LABEL_PREFIX__) name) __attribute__((visibility(\"hidden\")))\n")
	t.f("static const char table_name[] = %s;\n", escape.String(p.Name))
	t.constants()
	t.kernels()
	t.buffers()
	t.ports("input", p.Inputs)
	t.ports("output", p.Outputs)
	t.steps()
	t.carries()
	t.f("const struct table dmir_table = {table_name, table_kernels, table_kernel_names, table_buffers, table_inputs, table_outputs, table_steps, table_args, table_carries,\n  %s, INT64_C(%d), INT64_C(%d), INT64_C(%d)};\n", strings.Join(t.counts, ", "), t.scratch, p.Workspace, t.staged)
	return t.b.String()
}

func (t *tables) f(format string, args ...any) { fmt.Fprintf(&t.b, format, args...) }

func (t *tables) count(n ...int) {
	for _, n := range n {
		t.counts = append(t.counts, fmt.Sprint(n))
	}
}

// list writes an array; C has none without elements.
func (t *tables) list(head string, elements []string) {
	if len(elements) == 0 {
		elements = []string{"0"}
	}
	t.f("%s[] = {\n  %s};\n", head, strings.Join(elements, ",\n  "))
}

// constants includes the constants as they are, so that large ones are not text.
func (t *tables) constants() {
	if !t.inside || !slices.ContainsFunc(t.p.Buffers, func(b artifact.Buffer) bool { return b.Kind == artifact.Constant && len(b.Data) > 0 }) {
		return
	}
	t.f(`#ifdef __APPLE__
__asm__(".section __TEXT,__const\n.balign %[1]d\n_dmir_constants:\n.incbin \"%[2]s\"\n.text\n");
#else
__asm__(".pushsection .rodata\n.balign %[1]d\ndmir_constants:\n.incbin \"%[2]s\"\n.popsection\n");
#endif
extern const unsigned char dmir_constants[] __attribute__((visibility("hidden")));
`, constantAlign, constantsFile)
}

// constants are the bytes of all constants, each aligned.
func constants(p *artifact.Program) []byte {
	size := int64(0)
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Kind == artifact.Constant {
			size += aligned(int64(len(b.Data)), constantAlign)
		}
	}
	out := make([]byte, 0, size)
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Kind == artifact.Constant {
			out = append(out, b.Data...)
			out = out[:aligned(int64(len(out)), constantAlign)]
		}
	}
	return out
}

func aligned(n, to int64) int64 { return (n + to - 1) / to * to }

func (t *tables) kernels() {
	var functions, names []string
	scratch := int64(0)
	for i := range t.p.Kernels {
		k := &t.p.Kernels[i]
		t.f("kernel_function kernel_%d SYMBOL(%s);\n", i, escape.String(kernelSymbol(k.Name)))
		functions = append(functions, fmt.Sprintf("kernel_%d", i))
		names = append(names, escape.String(k.Name))
		scratch = max(scratch, k.Scratch)
	}
	t.list("static kernel_function *const table_kernels", functions)
	t.list("static const char *const table_kernel_names", names)
	t.scratch = aligned(scratch, 128) // threads share no line of a cache
}

func (t *tables) buffers() {
	var list []string
	at := int64(0)
	for i := range t.p.Buffers {
		b := &t.p.Buffers[i]
		data := "0"
		if t.inside && b.Kind == artifact.Constant && len(b.Data) > 0 {
			data = fmt.Sprintf("dmir_constants + %d", at)
			at += aligned(int64(len(b.Data)), constantAlign)
		}
		list = append(list, fmt.Sprintf("{%d, %d, %s}", b.Offset, b.Size(), data))
	}
	t.list("static const struct buffer table_buffers", list)
	t.count(len(list))
}

// ports describes the inputs or the outputs.
func (t *tables) ports(kind string, buffers []int) {
	var list []string
	direct := t.direct(kind, buffers)
	for i, n := range buffers {
		b := &t.p.Buffers[n]
		name, view, state := b.Name, artifact.View{Shape: b.Shape, Order: b.Order}, slices.Index(t.p.State, i)
		if kind == "output" {
			name, view, state = t.p.Result(i), t.p.ResultView(i), t.p.Carried(i)
		}
		t.numbers(fmt.Sprintf("%s_shape_%d", kind, i), view.Shape)
		t.numbers(fmt.Sprintf("%s_strides_%d", kind, i), strides(view))
		elem, _ := artifact.ElemBytes(b.Elem)
		var begin artifact.Default
		if kind == "input" && i < len(t.p.Defaults) {
			begin = t.p.Defaults[i]
		}
		list = append(list, fmt.Sprintf("{{%s, %s, %d, %s_shape_%d, %s_strides_%d, %d, %d, %s, %s}, %d, %d, %d}",
			escape.String(name), escape.String(b.Elem), len(view.Shape), kind, i, kind, i, b.Size(), state, double(begin.Init), double(begin.Stddev), n, elem, direct[i]))
	}
	t.list("static const struct port table_"+kind+"s", list)
	t.count(len(list))
}

// double is a number in C; NaN for nil.
func double(v *float64) string {
	switch {
	case v == nil || math.IsNaN(*v):
		return "__builtin_nan(\"\")"
	case math.IsInf(*v, 0):
		return strings.TrimSuffix(fmt.Sprint(*v), "Inf") + "__builtin_inf()"
	}
	return strconv.FormatFloat(*v, 'x', -1, 64)
}

func (t *tables) numbers(name string, list []int64) {
	var texts []string
	for _, n := range list {
		texts = append(texts, fmt.Sprint(n))
	}
	if len(texts) == 0 {
		texts = []string{"0"}
	}
	t.f("static const int64_t %s[] = {%s};\n", name, strings.Join(texts, ", "))
}

// strides are the distances of elements along each dimension.
func strides(v artifact.View) []int64 {
	out := make([]int64, len(v.Shape))
	stride := int64(1)
	for i := len(out) - 1; i >= 0; i-- {
		d := i
		if v.Order != nil {
			d = v.Order[i]
		}
		out[d] = stride
		stride *= v.Shape[d]
	}
	return out
}

// direct is 1 for the inputs or outputs that kernels may use in the caller's memory.
func (t *tables) direct(kind string, buffers []int) []int {
	p := t.p
	written := p.Written()
	uses := map[int]int{}
	for _, b := range p.Outputs {
		uses[b]++
	}
	out := make([]int, len(buffers))
	for i, b := range buffers {
		ok := !written[b] && slices.Index(p.State, i) < 0
		if kind == "output" {
			ok = p.Buffers[b].Kind == artifact.Output && uses[b] == 1 && p.Carried(i) < 0
		}
		if ok {
			out[i] = 1
		}
	}
	return out
}

func (t *tables) steps() {
	var list, args []string
	beside, behind := background(t.p)
	for i := range t.p.Steps {
		s := &t.p.Steps[i]
		kernel, at, tasks, work := 0, len(args), int64(0), int64(0)
		switch s.Kind {
		case artifact.StepLaunch:
			kernel, tasks, work = s.Launch.Kernel, int64(s.Launch.Grid[0]), workOf(s)
			for _, a := range s.Launch.Args {
				args = append(args, fmt.Sprint(a.Buffer))
			}
		case artifact.StepFill:
			args, work = append(args, fmt.Sprint(s.Move.To)), t.p.Buffers[s.Move.To].Size()
		case artifact.StepCopy:
			args, work = append(args, fmt.Sprint(s.Move.To), fmt.Sprint(s.Move.From)), t.p.Buffers[s.Move.To].Size()
		case artifact.StepCollective:
			for _, v := range s.Collective.Values() {
				args = append(args, fmt.Sprint(v.To), fmt.Sprint(v.From))
				tasks, work = tasks+1, work+t.p.Buffers[v.To].Size()
			}
		case artifact.StepRepeat:
			tasks = s.Decision.Trips
		default:
			args = append(args, fmt.Sprint(s.Decision.On))
		}
		list = append(list, fmt.Sprintf("{%s, %s, %d, %d, {%d, %d}, %d, %d, %d, %d}", escape.String(s.Name), strings.ToUpper(string(s.Kind)), kernel, at, s.Decision.Parts[0], s.Decision.Parts[1], tasks, work, beside[i], behind[i]))
	}
	t.list("static const struct step table_steps", list)
	t.list("static const int32_t table_args", args)
	t.count(len(list), len(args))
}

// background are, by step, whether other steps run beside a collective, 1, since the next one that is none does not wait for
// it or for a later one; and the last such collective that each other step waits for, -1: none. Steps begin in the order of
// the program, so that what a collective waits for has ended when it begins, and collectives end in that order.
func background(p *artifact.Program) (beside, behind []int) {
	collective := func(i int) bool { return p.Steps[i].Kind == artifact.StepCollective && p.Steps[i].Stream > 0 }
	beside, behind = make([]int, len(p.Steps)), make([]int, len(p.Steps))
	for i := range behind {
		behind[i] = -1
	}
	for _, s := range p.Stretches() {
		next := -1 // the next step that is no collective
		for i := s[1] - 1; i >= s[0]; i-- {
			if !collective(i) {
				for _, w := range p.Steps[i].Waits {
					if collective(w) {
						behind[i] = max(behind[i], w)
					}
				}
				next = i
			} else if next >= 0 && behind[next] < i {
				beside[i] = 1
			}
		}
	}
	return beside, behind
}

// workOf is the predicted work of one run of a launch; without a prediction all
// threads are worth it.
func workOf(s *artifact.Step) int64 {
	work := float64(s.FLOP) + float64(s.ReadBytes) + float64(s.WrittenBytes)
	if work <= 0 {
		return math.MaxInt64
	}
	return int64(min(work, math.MaxInt64/2))
}

// carries are the copies of state to the inputs of the next run. A result that shares
// bytes with an input that is copied to is copied away before any input is written.
func (t *tables) carries() {
	p := t.p
	type move struct{ from, to *artifact.Buffer }
	var moves []move
	var written []*artifact.Buffer // disjoint, since inputs are live together
	var list []string
	staged := int64(0)
	for i, in := range p.State {
		if in >= 0 && p.Outputs[i] != p.Inputs[in] {
			written = append(written, &p.Buffers[p.Inputs[in]])
			moves = append(moves, move{&p.Buffers[p.Outputs[i]], &p.Buffers[p.Inputs[in]]})
			list = append(list, fmt.Sprintf("{%d, %d, ", p.Outputs[i], p.Inputs[in]))
		}
	}
	sort.Slice(written, func(i, j int) bool { return written[i].Offset < written[j].Offset })
	for i, m := range moves {
		at := sort.Search(len(written), func(k int) bool { return written[k].Offset+written[k].Bytes > m.from.Offset })
		if at == len(written) || written[at].Offset >= m.from.Offset+m.from.Bytes {
			list[i] += "-1}"
			continue
		}
		list[i] += fmt.Sprintf("%d}", staged)
		staged += aligned(m.from.Size(), constantAlign)
	}
	t.list("static const struct carry table_carries", list)
	t.count(len(list))
	t.staged = staged
}
