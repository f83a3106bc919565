package cuda

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/internal/escape"
)

// names assigns parameter names to the values that a form reads and writes.
type names struct {
	params []param
	of     map[*ir.Value]ident
	taken  map[string]bool
}

func newNames() *names { return &names{of: map[*ir.Value]ident{}, taken: map[string]bool{}} }

// namesOf are the names of the parameters for the inputs and outputs, distinct
// from the kernel's variables.
func namesOf(in, out []*ir.Value, taken ...ident) *names {
	n := newNames()
	for _, w := range taken {
		n.taken[string(w)] = true
	}
	for _, v := range in {
		n.add(v, artifact.In)
	}
	for _, v := range out {
		n.add(v, artifact.Out)
	}
	return n
}

// namesOver are the names of the parameters for f's inputs and results; a result
// written over an input shares its parameter.
func namesOver(f *kernel.Form, over map[*ir.Value]*ir.Value) *names {
	n := newNames()
	for _, v := range f.Inputs {
		n.add(v, artifact.In)
	}
	for _, v := range f.Outputs {
		if in := over[v]; in != nil && n.of[in] != "" { // else it is only written
			n.of[v] = n.of[in]
			i := slices.IndexFunc(n.params, func(p param) bool { return p.value == in })
			n.params[i].mode, n.params[i].over = artifact.InOut, v
		} else {
			n.add(v, artifact.Out)
		}
	}
	return n
}

// add is the parameter for v, made on first use.
func (n *names) add(v *ir.Value, mode artifact.Mode) ident {
	if name, ok := n.of[v]; ok {
		return name
	}
	name := n.free(identifier(v.Name))
	n.of[v] = name
	n.params = append(n.params, param{name: name, elem: v.Elem(), mode: mode, value: v})
	return name
}

// addTemp is a parameter for memory that launches share.
func (n *names) addTemp(name string, t *temp, mode artifact.Mode) ident {
	free := n.free(name)
	n.params = append(n.params, param{name: free, elem: t.elem, mode: mode, temp: t})
	return free
}

func (n *names) free(name string) ident {
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
	return ident(try)
}

// only are the parameters of the values and the temporaries that a launch uses.
func (n *names) only(takes func(p param) bool) (out []param) {
	for _, p := range n.params {
		if takes(p) {
			out = append(out, p)
		}
	}
	return out
}

// stores adds the parameters that outs are stored to, and returns the expressions
// that this evaluates.
func (n *names) stores(outs []kernel.Out) (reads []*kernel.Expr) {
	for _, o := range outs {
		n.add(o.Value, artifact.Out)
		reads = append(reads, o.Exprs()...)
	}
	return reads
}

// reduced are the expressions that reductions reduce.
func reduced(lists ...[]*kernel.Expr) (xs []*kernel.Expr) {
	for _, x := range slices.Concat(lists...) {
		xs = append(xs, x.Args[0])
	}
	return xs
}

// readers marks the parameters that xs do not read as parameters of later
// launches.
func (n *names) readers(xs ...*kernel.Expr) {
	reads := map[*ir.Value]bool{}
	for _, x := range xs {
		kernel.Walk(x, func(y *kernel.Expr) {
			if y.Op == kernel.Load {
				reads[y.Buf] = true
			}
		})
	}
	for i := range n.params {
		if p := &n.params[i]; p.value != nil && p.mode == artifact.In {
			p.idle = !reads[p.value]
		}
	}
}

// written makes the parameters for shared temporaries inputs: the launch that
// writes them already has parameters.
func (n *names) written() {
	for i := range n.params {
		if n.params[i].temp != nil {
			n.params[i].mode = artifact.In
		}
	}
}

// generated matches the names that emitters generate.
var generated = regexp.MustCompile(`^(t|f|c|v|j|k|out|sum|total|sums_|scratch_.*)[0-9]*$`)

// identifier is a value's name as C++ allows it.
func identifier(name string) string { return escape.Identifier(strings.TrimPrefix(name, "%")) }

// macro matches names that headers may define or that are reserved for the
// implementation: upper case, or with a leading underscore.
var macro = regexp.MustCompile(`^(_.*|DM_.*|[A-Z][A-Z0-9_]+)$`)

// reserved are the words that cannot name a parameter: C++ keywords that are
// likely value names, and the variables of the kernels.
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
