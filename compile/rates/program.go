package rates

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// measured is a program of ops that are measured, each on two lines, of which the second
// counts: threads may still sleep when the first one runs, and an operand may lie in the
// memory. Behind them a further op, which counts no FLOP, uses the results, so that few
// values live at a time and all of them stay in the caches.
type measured struct {
	ops     map[int]*op.Def // by line
	program *program.Program
}

// The size of a row, and how many of them each thread has: enough for a task of each.
const (
	row  = 1024
	each = 32
)

// programs are those for numbers of type e: one of the products, which are large enough to
// reach their rate, and one of all other ops.
func programs(m *machine.Machine, e types.Elem) []*measured {
	n := 64 * int(math.Round(8*math.Cbrt(float64(m.SMs))))
	product := fmt.Sprintf("tensor<%dx%dx%s>", n, n, e)
	other := fmt.Sprintf("tensor<%dx%dx%s>", each*m.SMs, row, e)
	var products, others []*op.Def
	var use *op.Def
	for _, d := range op.All() {
		if operands(d, e) == 0 {
			continue
		}
		shape := other
		if d.Class == op.ClassContraction {
			shape = product
		}
		p := load(m, []string{text(d, e, shape, "%x", "%w")}, shape)
		switch {
		case p.HasErrors():
		case op.FLOP(p.Funcs[0].Entries[0].Op).IsZero():
			if use == nil && operands(d, e) == 2 {
				use = d
			}
		case d.Class == op.ClassContraction:
			products = append(products, d)
		default:
			others = append(others, d)
		}
	}
	return []*measured{newMeasured(m, products, use, e, product), newMeasured(m, others, use, e, other)}
}

func newMeasured(m *machine.Machine, ops []*op.Def, use *op.Def, e types.Elem, shape string) *measured {
	b := &measured{ops: map[int]*op.Def{}}
	var lines []string
	last := "%x"
	value := func(line string) string {
		lines = append(lines, line)
		return fmt.Sprintf("%%y%d", len(lines)-1)
	}
	for _, d := range ops {
		first := value(text(d, e, shape, "%x", "%w"))
		second := value(text(d, e, shape, "%x", "%w"))
		b.ops[len(lines)+1] = d
		if use == nil {
			last = second
			continue
		}
		for _, result := range []string{first, second} {
			last = value(text(use, e, shape, last, result))
		}
	}
	b.program = load(m, lines, shape)
	return b
}

// text is an op on values of a shape.
func text(d *op.Def, e types.Elem, shape string, values ...string) string {
	n := operands(d, e)
	return fmt.Sprintf("%s %s : (%s) -> %s", d.FullName(), strings.Join(values[:n], ", "), strings.Join(slices.Repeat([]string{shape}, n), ", "), shape)
}

// load is a program of lines that are ops on two arguments of a shape, and on values of
// earlier lines, %y0 and so on; the last one is the result.
func load(m *machine.Machine, lines []string, shape string) *program.Program {
	body := make([]string, len(lines))
	for i, line := range lines {
		body[i] = fmt.Sprintf("%%y%d = %s", i, line)
	}
	last := fmt.Sprintf("%%y%d", len(lines)-1)
	return loadText(m, function("rates", fmt.Sprintf("%%x: %s, %%w: %[1]s", shape), body, []string{last}, []string{shape}))
}

// loadText is a program that is measured on m.
func loadText(m *machine.Machine, text string) *program.Program {
	return program.Load(source.New("calibrate.dmir", text), program.Options{Target: m, OneKernel: kernel.Unfit})
}

// operands is how many tensors of numbers of type e are all that an op with FLOP needs;
// 0 if it needs something else.
func operands(d *op.Def, e types.Elem) int {
	if d.FLOP == nil || d.Kernel == op.Structure || len(d.Results) != 1 || len(d.Regions) > 0 {
		return 0
	}
	for _, a := range d.Attrs {
		if a.Default == nil && !a.Optional {
			return 0
		}
	}
	n := 0
	for _, p := range d.Operands {
		switch {
		case p.Optional:
			return n
		case p.Variadic || p.Elems != nil && !slices.Contains(p.Elems, e):
			return 0
		}
		n++
	}
	if n > 2 {
		return 0
	}
	return n
}
