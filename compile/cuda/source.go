package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/base/escape"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// assembler is a Target as the back end of package assemble.
type assembler struct{ Target }

// Name is that of the target.
func (assembler) Name() string { return Backend{}.Name() }

// Machine is the target's.
func (a assembler) Machine() *machine.Machine { return a.Target.Machine }

// Plan is the target's plan of f.
func (a assembler) Plan(f *kernel.Form, o assemble.Options) (assemble.Plan, error) {
	p, err := a.plan(f, o)
	if err != nil {
		return nil, err // not a nil *Plan, which is no nil assemble.Plan
	}
	return p, nil
}

// Source renders the text of all kernels as one C++ file.
func (a assembler) Source(out *artifact.Program, kernels []assemble.Kernel) error {
	p := printer{file: out.File}
	fmt.Fprintf(&p.b, "// @%s of %s, for %s. Steps run in the order of the kernels.\n", escape.Comment(out.Name),
		escape.Comment(cmp.Or(out.File, "a program")), escape.Comment(cmp.Or(a.Arch, "any architecture")))
	includes := []string{"dm.cuh", "ops.cuh"}
	for _, k := range kernels {
		for _, inc := range strings.Fields(k.Text.(*text).include) {
			if !slices.Contains(includes, inc) {
				includes = append(includes, inc)
			}
		}
	}
	for _, inc := range includes {
		fmt.Fprintf(&p.b, "#include \"%s\"\n", inc)
	}
	line, counted := 1, 0
	lines := func() int {
		line, counted = line+strings.Count(p.b.String()[counted:], "\n"), p.b.Len()
		return line
	}
	for i, from := range kernels {
		t, k := from.Text.(*text), &out.Kernels[i]
		p.b.WriteByte('\n')
		k.First = lines()
		if from.Line > 0 {
			fmt.Fprintf(&p.b, "// %s, from %s\n", k.Class, linesText(k.Lines))
		}
		p.kernel, p.line, p.lineSet, p.at = k.Name, from.LineOf, 0, from.Line
		p.statements(t.before.statements(), 0)
		p.at = from.Line
		p.statements([]*stmt{t.kernel()}, 0)
		k.Last = lines() - 1
	}
	out.Source = p.b.String()
	return nil
}

func linesText(lines []int) string {
	texts := make([]string, len(lines))
	for i, n := range lines {
		texts[i] = fmt.Sprint(n)
	}
	if len(texts) == 1 {
		return "line " + texts[0]
	}
	return "lines " + strings.Join(texts, ", ")
}
