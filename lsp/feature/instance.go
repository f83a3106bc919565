package feature

import (
	"fmt"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// mostSizes bounds how many sizes, or calls in other sizes, are listed.
const mostSizes = 6

// sized are the calls of a function with symbols that give these different sizes, in the order of the text.
type sized struct {
	in    *cost.Func
	entry *cost.Entry
	sizes map[string]dim.Dim
	where string
	times int // how many calls give the same
}

// sizedCalls are those of fn.
func sizedCalls(p *program.Program, fn *ir.Func) []*sized {
	if !op.Generic(fn) {
		return nil
	}
	m := moduleOf(p, fn)
	var out []*sized
	first := map[string]*sized{}
	for _, f := range p.Funcs {
		for _, e := range f.Entries {
			if e.Op.Name != op.Call && e.Op.Name != op.Grad || e.Op.Str("callee") != fn.Name {
				continue
			}
			i := p.Instance(m, e.Op)
			if i == nil {
				continue
			}
			where := verify.Where(i.Sizes)
			if same := first[where]; same != nil {
				same.times++
				continue
			}
			first[where] = &sized{f, e, i.Sizes, where, 1}
			out = append(out, first[where])
		}
	}
	return out
}

// callsText lists what fn, a function with symbols, costs in the sizes that calls give these.
func callsText(p *program.Program, fn *ir.Func) string {
	var rows []row
	for i, c := range sizedCalls(p, fn) {
		if i == mostSizes {
			rows = append(rows, row{"…", ""})
			break
		}
		line, _ := p.Src.Human(c.entry.Op.Span.Start)
		cost := units.DimBytes(c.entry.Read.Add(c.entry.Written)) + " moved"
		if t := c.entry.Time(p.Target); t.Known {
			cost += ", " + units.Time(t.Ns)
		}
		if c.times > 1 {
			cost += fmt.Sprintf(", %d times", c.times)
		}
		rows = append(rows, row{fmt.Sprintf("line %d", line), c.where + ": " + cost})
	}
	if rows == nil {
		return ""
	}
	return table(rows)
}

// givenTo are the sizes that calls give a symbol of fn: "8, 16 and 3*n".
func givenTo(p *program.Program, fn *ir.Func, symbol string) string {
	var list []string
	for _, c := range sizedCalls(p, fn) {
		if d, ok := c.sizes[symbol]; ok && !slices.Contains(list, d.String()) {
			list = append(list, d.String())
		}
	}
	if len(list) > mostSizes {
		list = append(list[:mostSizes], "others")
	}
	return diag.List(list)
}
