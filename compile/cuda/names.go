package cuda

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// names assigns parameter names to the values that a form reads and writes.
type names struct {
	params []assemble.Param
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
			i := slices.IndexFunc(n.params, func(p assemble.Param) bool { return p.Value == in })
			n.params[i].Mode, n.params[i].Over = artifact.InOut, v
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
	name := n.free(assemble.Identifier(v.Name))
	n.of[v] = name
	n.params = append(n.params, assemble.Param{Name: string(name), Elem: v.Elem(), Mode: mode, Value: v})
	return name
}

// addTemp is a parameter for memory that launches share.
func (n *names) addTemp(name string, t *assemble.Temp, mode artifact.Mode) ident {
	free := n.free(name)
	n.params = append(n.params, assemble.Param{Name: string(free), Elem: t.Elem, Mode: mode, Temp: t})
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
	for i := 2; n.taken[try] || assemble.Reserved(try); i++ {
		try = fmt.Sprintf("%s_%d", name, i)
	}
	n.taken[try] = true
	return ident(try)
}

// loads adds the parameters that x reads.
func (n *names) loads(x *kernel.Expr) {
	kernel.Walk(x, func(x *kernel.Expr) {
		if x.Op == kernel.Load {
			n.add(x.Buf, artifact.In)
		}
	})
}

// only are the parameters of the values and the temporaries that a launch uses.
func (n *names) only(takes func(p assemble.Param) bool) (out []assemble.Param) {
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
		if p := &n.params[i]; p.Value != nil && p.Mode == artifact.In {
			p.Idle = !reads[p.Value]
		}
	}
}

// written makes the parameters for shared temporaries inputs: the launch that
// writes them already has parameters.
func (n *names) written() {
	for i := range n.params {
		if n.params[i].Temp != nil {
			n.params[i].Mode = artifact.In
		}
	}
}

// generated matches the names that emitters generate.
var generated = regexp.MustCompile(`^(t|f|c|v|j|k|from|to|rest|out|sum|total|tile|plane|line|column|step|sums_|scratch_.*)[0-9]*$`)

// macro matches names that headers may define or that are reserved for the
// implementation: upper case, or with a leading underscore.
var macro = regexp.MustCompile(`^(_.*|DM_.*|[A-Z][A-Z0-9_]+)$`)
