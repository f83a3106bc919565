package cuda

import (
	"fmt"
	"strings"

	"dmir/compile/assemble"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// launch is a launch as package assemble takes it, and its text.
type launch struct {
	assemble.Launch
	blocks  int    // that a multiprocessor must hold at once; 0: as many as it can
	include string // parts of the prelude that it needs
	// late says that the text waits by itself for the kernels before, behind what it does without global memory; others wait first.
	late bool
	// named are the names of values in the text, and write writes the text.
	named map[*ir.Value]ident
	write func(t *text) error
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
		t.body.prune()
		out[i] = t
		invalid = append(append(invalid, t.invalid...), t.verify()...)
	}
	if len(invalid) == 0 {
		return out, nil
	}
	var b strings.Builder
	for _, t := range out {
		p := &printer{kernel: "k" + t.Suffix}
		p.statements([]*stmt{t.kernel()}, 0)
		b.WriteString("\n" + p.b.String())
	}
	return nil, &assemble.InvalidError{Problems: invalid, Text: b.String()}
}

// verify returns the errors in the use of names in t.
func (t *text) verify() []string {
	bad := undefined(t.before.statements(), map[string]bool{})
	params := map[string]bool{}
	for _, p := range t.Params {
		params[p.Name] = true
	}
	bad = append(bad, undefined(t.body.statements(), params)...)
	used := uses(t.body.statements())
	for _, p := range t.Params {
		if used[p.Name] == p.Idle {
			bad = append(bad, fmt.Sprintf("the plan and the text differ in whether %s is read", p.Name))
		}
	}
	return bad
}

// kernel is the kernel: DM_KERNEL(name, threads)(params) and its body.
func (t *text) kernel() *stmt {
	params := make([]code, len(t.Params))
	for i, p := range t.Params {
		switch p.Mode {
		case artifact.In:
			params[i] = cpp("dm::In<%s> %s", storage(p.Elem), def(p.Name))
		case artifact.Out:
			params[i] = cpp("dm::Out<%s> %s", storage(p.Elem), def(p.Name))
		case artifact.InOut:
			params[i] = cpp("dm::InOut<%s> %s", storage(p.Elem), def(p.Name))
		case artifact.Map:
			params[i] = cpp("DM_MAP(%s)", def(p.Name))
		}
	}
	head := cpp("DM_KERNEL(%s, %d)(%s)", local(""), t.Block.Threads, params)
	switch {
	case t.Block.Cluster > 1:
		head = cpp("DM_KERNEL_CLUSTER(%s, %d, %d, %d)(%s)", local(""), t.Block.Threads, max(1, t.blocks), t.Block.Cluster, params)
	case t.blocks > 0:
		head = cpp("DM_KERNEL_OCCUPANCY(%s, %d, %d)(%s)", local(""), t.Block.Threads, t.blocks, params)
	}
	body := t.body.statements()
	var first []*stmt
	if maps := t.prefetched(); len(maps) > 0 {
		first = append(first, &stmt{head: cpp("if (dm::thread() == 0)"), style: block, body: maps})
	}
	if t.Block.Waits {
		// All blocks of a kernel have their places when the last of them is here: the next kernel takes none that this one needs, and
		// waits for this one's end, which is behind its own wait.
		first = append(first, &stmt{head: cpp("dm::launch_dependents()")})
		if !t.late {
			first = append(first, &stmt{head: cpp("dm::grid_dependency_wait()")})
		}
	}
	body = append(first, body...)
	return &stmt{head: head, style: block, body: body}
}

// prefetched reads the tensor maps of the parameters, which no kernel writes, before the kernel waits for others.
func (t *text) prefetched() (all []*stmt) {
	for _, p := range t.Params {
		if p.Mode == artifact.Map {
			all = append(all, &stmt{head: cpp("dm::map_prefetch(%s)", ident(p.Name))})
		}
	}
	return all
}

// Key is the text with other names for the kernel and its parameters, and
// without lines.
func (t *text) Key() string {
	same := printer{kernel: "k", renamed: map[string]string{}}
	for i, p := range t.Params {
		same.renamed[p.Name] = fmt.Sprintf("$%d", i) // no name of a program
	}
	same.statements(t.before.statements(), 0)
	same.statements([]*stmt{t.kernel()}, 0)
	return same.b.String()
}
