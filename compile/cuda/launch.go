package cuda

import (
	"fmt"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// launch is one kernel and its launch configuration.
type launch struct {
	suffix  string // of its name, appended to that of the step; "" for the main one
	class   string
	threads int
	shared  int // bytes of dynamic shared memory
	blocks  int // that a multiprocessor must hold at once; 0: as many as it can
	grid    [3]int
	params  []param
	arch    string // "" where it runs on all
	include string // parts of the prelude that it needs
	differs string // why the bytes it moves are not those of the cost model
	of      *ir.Op // the op of statements that have none; nil: the step
	// stores are the results of the library op that it stores, where they lie in
	// other values; nil: all.
	stores []*ir.Value
	// named are the names of values in the text, and write writes the text.
	named map[*ir.Value]ident
	write func(t *text) error
}

// param is one parameter: a value of the program or memory that launches share.
type param struct {
	name  ident
	elem  types.Elem
	mode  artifact.Mode
	value *ir.Value
	over  *ir.Value // the result that is written over value; nil: none
	temp  *temp
	tmap  *artifact.TensorMap
	idle  bool // read only by a later launch of the plan
}

// text is the text of a launch: declarations in front of the kernel, and the
// kernel's body.
type text struct {
	*launch
	before, body *unit
	// invalid are expressions that cannot be computed where they are used.
	invalid []string
}

// texts are the verified texts of launches; an error is a defect of the
// generator.
func texts(ls []*launch) ([]*text, error) {
	out := make([]*text, len(ls))
	var invalid []string
	for i, l := range ls {
		t := &text{launch: l, before: newUnit(), body: newUnit()}
		if err := l.write(t); err != nil {
			return nil, err
		}
		out[i] = t
		invalid = append(append(invalid, t.invalid...), t.verify()...)
	}
	if len(invalid) == 0 {
		return out, nil
	}
	var b strings.Builder
	for _, t := range out {
		p := &printer{kernel: "k" + t.suffix}
		p.statements([]*stmt{t.kernel()}, 0)
		b.WriteString("\n" + p.b.String())
	}
	return nil, &invalidError{invalid, b.String()}
}

// verify returns the errors in the use of names in t.
func (t *text) verify() []string {
	bad := undefined(t.before.statements(), map[string]bool{})
	params := map[string]bool{}
	for _, p := range t.params {
		params[string(p.name)] = true
	}
	bad = append(bad, undefined(t.body.statements(), params)...)
	used := uses(t.body.statements())
	for _, p := range t.params {
		if used[string(p.name)] == p.idle {
			bad = append(bad, fmt.Sprintf("the plan and the text differ in whether %s is read", p.name))
		}
	}
	return bad
}

// kernel is the kernel: DM_KERNEL(name, threads)(params) and its body.
func (t *text) kernel() *stmt {
	params := make([]code, len(t.params))
	for i, p := range t.params {
		switch p.mode {
		case artifact.In:
			params[i] = cpp("dm::In<%s> %s", storage(p.elem), def(p.name))
		case artifact.Out:
			params[i] = cpp("dm::Out<%s> %s", storage(p.elem), def(p.name))
		case artifact.InOut:
			params[i] = cpp("dm::InOut<%s> %s", storage(p.elem), def(p.name))
		case artifact.Map:
			params[i] = cpp("DM_MAP(%s)", def(p.name))
		}
	}
	head := cpp("DM_KERNEL(%s, %d)(%s)", local(""), t.threads, params)
	if t.blocks > 0 {
		head = cpp("DM_KERNEL_OCCUPANCY(%s, %d, %d)(%s)", local(""), t.threads, t.blocks, params)
	}
	return &stmt{head: head, style: block, body: t.body.statements()}
}
