package cuda

import (
	"fmt"
	"regexp"
	"strings"

	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/internal/escape"
)

// Target is what kernels are written for.
type Target struct {
	Arch    string // "sm_80", "sm_90a", …
	Machine *machine.Machine
	Tiles   *Choices // of contractions, where they were measured; nil: the model decides
	Rank    int      // take the candidate of this rank, 1 the best, to measure it; 0: none in particular
}

// launch is one kernel and how it is started.
type launch struct {
	name    string
	class   string
	threads int
	shared  int // bytes of dynamic shared memory
	cluster int
	blocks  int // that a multiprocessor must hold at once; 0: as many as it can
	grid    [3]int
	params  []param
	body    string
	arch    string // "" where it runs on all
	before  string // declarations that stand before the kernel; "@" in them and in body is its name
	include string // a part of the prelude that it needs
	differs string // why the bytes it moves are not those of the cost model
	of      *ir.Op // what it stands for where its text says nothing else; nil: the step
	zero    bool   // not a kernel: the one parameter is filled with zero bytes
}

// param is one parameter: a value of the program or memory of the kernel's own.
type param struct {
	name  string
	elem  types.Elem
	mode  artifact.Mode
	value *ir.Value
	temp  *temp
	tmap  *artifact.TensorMap
}

// temp is memory that launches of one form share.
type temp struct {
	elem types.Elem
	n    int64
}

// names gives the values that a form reads and writes the names of parameters.
type names struct {
	params []param
	of     map[*ir.Value]string
	taken  map[string]bool
}

func newNames() *names { return &names{of: map[*ir.Value]string{}, taken: map[string]bool{}} }

// add is the parameter for v, made at its first use.
func (n *names) add(v *ir.Value, mode artifact.Mode) string {
	if name, ok := n.of[v]; ok {
		return name
	}
	name := n.free(identifier(v.Name))
	n.of[v] = name
	n.params = append(n.params, param{name: name, elem: kernel.ElemOf(v), mode: mode, value: v})
	return name
}

// elementwise is the parameters of a kernel that takes each element by itself: its inputs, and its
// results, of which those written over an input share its parameter.
func (n *names) elementwise(f *kernel.Form, over map[*ir.Value]*ir.Value) {
	for _, v := range f.Inputs {
		mode := artifact.In
		for _, in := range over {
			if in == v {
				mode = artifact.InOut
			}
		}
		n.add(v, mode)
	}
	for _, v := range f.Outputs {
		if in := over[v]; in != nil && n.of[in] != "" { // else it is written alone
			n.of[v] = n.of[in]
		} else {
			n.add(v, artifact.Out)
		}
	}
}

func (n *names) addTemp(name string, t *temp, mode artifact.Mode) string {
	name = n.free(name)
	n.params = append(n.params, param{name: name, elem: t.elem, mode: mode, temp: t})
	return name
}

func (n *names) free(name string) string {
	if macro.MatchString(name) {
		name = "v_" + strings.TrimPrefix(name, "_")
	}
	if generated.MatchString(name) {
		name += "_"
	}
	try := name
	for i := 2; n.taken[try] || reserved[try]; i++ {
		try = fmt.Sprintf("%s_%d", name, i)
	}
	n.taken[try] = true
	return try
}

// generated are the names that emitters make.
var generated = regexp.MustCompile(`^(t|f|c|v|j|k|out|sum|total|sums_|scratch_.*)[0-9]*$`)

// identifier is a value's name as C++ allows it.
func identifier(name string) string { return escape.Identifier(strings.TrimPrefix(name, "%")) }

// macro matches the names that headers may define, or that are the
// implementation's: in capitals, or with an underscore in front.
var macro = regexp.MustCompile(`^(_.*|DM_.*|[A-Z][A-Z0-9_]+)$`)

// reserved are the words that no parameter may be called: those of C++ that
// values are likely to have, and the variables of the kernels.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`and and_eq asm auto bool break case catch char class const constexpr continue default delete do double else enum
		explicit export extern false float for friend goto if inline int long mutable namespace new not not_eq operator or or_eq private
		protected public register return short signed sizeof static struct switch template this throw true try typedef typename union
		unsigned using virtual void volatile while xor xor_eq dm main row col lane i j s p part lane_row partial first
		z m n k r a b f v to at acc arena full value from sum source outer load has
		alignas alignof char8_t char16_t char32_t compl concept consteval constinit const_cast co_await co_return co_yield decltype
		dynamic_cast noexcept nullptr reinterpret_cast requires static_assert static_cast thread_local typeid typeof typename wchar_t
		bitand bitor errno assert stdin stdout stderr offsetof va_list va_arg va_start va_end va_copy unix linux i386 std`) {
		m[w] = true
	}
	return m
}()

// declaration is the kernel's head: DM_KERNEL(name, threads)(params).
func (l *launch) declaration() string {
	parts := make([]string, len(l.params))
	for i, p := range l.params {
		switch p.mode {
		case artifact.In:
			parts[i] = fmt.Sprintf("dm::In<%s> %s", storage(p.elem), p.name)
		case artifact.Out:
			parts[i] = fmt.Sprintf("dm::Out<%s> %s", storage(p.elem), p.name)
		case artifact.InOut:
			parts[i] = fmt.Sprintf("dm::InOut<%s> %s", storage(p.elem), p.name)
		case artifact.Map:
			parts[i] = fmt.Sprintf("DM_MAP(%s)", p.name)
		}
	}
	if l.blocks > 0 {
		return fmt.Sprintf("DM_KERNEL_OCCUPANCY(%s, %d, %d)(%s)", l.name, l.threads, l.blocks, strings.Join(parts, ", "))
	}
	return fmt.Sprintf("DM_KERNEL(%s, %d)(%s)", l.name, l.threads, strings.Join(parts, ", "))
}
