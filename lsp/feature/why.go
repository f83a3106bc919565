package feature

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/verify"
)

// maxTerms bounds the summands that are written out.
const maxTerms = 6

// equation is one line of an explanation: a number's name and how it comes about.
type equation struct{ name, text string }

// why explains the numbers of an entry: which term of the definition, which
// figure of the machine. It is Markdown, "" where there is nothing to explain.
func why(p *program.Program, f *cost.Func, e *cost.Entry) string {
	m := moduleOf(p, f.Func)
	if m == nil || !e.Known {
		return ""
	}
	if e.Parts() != nil {
		return whyParts(p, e)
	}
	t := cost.Explain(m, f.Func, p.Bind, e)
	var eqs []equation
	add := func(name, text string) {
		if text != "" {
			eqs = append(eqs, equation{name, text})
		}
	}
	add("FLOP", flopTerms(e, t))
	add("read", sumOf(t.Read))
	add("written", sumOf(t.Written))
	switch tt, ok := e.TimeTerms(p.Target); {
	case ok:
		add("time", timeTerms(tt, p.Target))
	case e.Fused && len(e.Inner) == 0:
		add("moved", "0 B: inside a kernel, where only the kernel's inputs and outputs are counted")
	case len(e.Inner) > 0 || e.Op.Name == op.Call || e.Op.Name == op.Grad:
		add("all", whole(p, m, e))
	}
	return equations(eqs)
}

// whyParts explains the time of a line that each device runs as several ops.
func whyParts(p *program.Program, e *cost.Entry) string {
	var parts []string
	for _, x := range e.Parts() {
		t := x.Time(p.Target)
		if !t.Known || t.Ns == 0 {
			continue
		}
		if len(parts) == maxTerms {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, strings.TrimPrefix(x.Op.Name, op.Prefix)+" "+units.Time(t.Ns))
	}
	if len(parts) < 2 {
		return ""
	}
	return equations([]equation{{"time", strings.Join(parts, " + ")}})
}

// whyFunc explains the totals of a function.
func whyFunc(p *program.Program, f *cost.Func) string {
	m := moduleOf(p, f.Func)
	if m == nil {
		return ""
	}
	eqs := []equation{{"moved", "the sum over " + plural(len(f.Entries), "line")}}
	if f.IsDivided() {
		eqs[0].text += ", of what each device runs"
	} else if text := sumOf(cost.ExplainMinimum(m, f.Func, p.Bind)); text != "" {
		eqs = append(eqs, equation{"minimum", text})
	}
	if f.Unknown == 0 {
		eqs = append(eqs, equation{"waste", units.DimBytes(f.Moved()) + " moved − " + units.DimBytes(f.Minimum()) + " minimum"})
	}
	if t := f.Time(p.Target); t.Known && t.Ns > 0 {
		text := "the sum over " + plural(len(f.Entries), "line")
		if o := f.Overlap(p.Target); o.Known && o.Comm > 0 {
			text = units.Time(o.Compute) + " of kernels + " + units.Time(o.ExposedNs) + " of communication that they do not hide"
		}
		eqs = append(eqs, equation{"time", text})
	}
	if text := f.Launches(p.Target); text != "" {
		eqs = append(eqs, equation{"launches", text})
	}
	return equations(eqs)
}

func equations(eqs []equation) string {
	if len(eqs) == 0 {
		return ""
	}
	width := 0
	for _, q := range eqs {
		width = max(width, utf8.RuneCountInString(q.name))
	}
	var b strings.Builder
	for _, q := range eqs {
		fmt.Fprintf(&b, "%-*s = %s\n", width, q.name, q.text)
	}
	return fenced(b.String())
}

func moduleOf(p *program.Program, fn *ir.Func) *ir.Module {
	for _, m := range p.Modules {
		if slices.Contains(m.Funcs, fn) {
			return m
		}
	}
	return nil
}

// sumOf writes the summands out: "%x 8.39 MB + part of %w 1.05 MB".
func sumOf(ts []cost.Term) string {
	var parts []string
	for i, t := range ts {
		if i == maxTerms && len(ts) > maxTerms+1 {
			rest := dim.Dim{}
			for _, t := range ts[i:] {
				rest = rest.Add(t.Bytes)
			}
			parts = append(parts, fmt.Sprintf("%s more %s", plural(len(ts)-i, "value"), units.DimBytes(rest)))
			break
		}
		name := "its kernels' scratch"
		if t.Value != nil {
			name = t.Value.Name
		}
		if name == "" {
			name = "a result"
		}
		if t.Part {
			name = "part of " + name
		}
		parts = append(parts, name+" "+units.DimBytes(t.Bytes))
	}
	return strings.Join(parts, " + ")
}

// flopTerms writes FLOP as a product where it is one, and as the sum over what
// computes in a kernel.
func flopTerms(e *cost.Entry, t cost.Terms) string {
	switch {
	case t.Each > 0 && t.Loops != nil:
		var sizes []string
		for _, d := range t.Loops.Loops {
			sizes = append(sizes, factor(d))
		}
		text := fmt.Sprintf("%s × %s", group(t.Each), strings.Join(sizes, " × "))
		if names := t.Loops.Names; len(names) == len(sizes) && names[0] != "d0" { // of an equation
			text += "  over " + strings.Join(names, ", ")
		}
		return text
	case t.Each > 0:
		if n, ok := t.Over.Int(); ok {
			return fmt.Sprintf("%s × %s elements", group(t.Each), group(n))
		}
		return fmt.Sprintf("%s × %s elements", group(t.Each), factor(t.Over))
	case e.Op.Name == op.Kernel:
		return innerFLOP(e)
	}
	return ""
}

// innerFLOP is the sum over the ops in a kernel.
func innerFLOP(e *cost.Entry) string {
	var parts []string
	for i, in := range e.Inner {
		if in.FLOP.IsZero() {
			continue
		}
		if len(parts) == maxTerms {
			rest, n := dim.Dim{}, 0
			for _, in := range e.Inner[i:] {
				if !in.FLOP.IsZero() {
					rest, n = rest.Add(in.FLOP), n+1
				}
			}
			parts = append(parts, fmt.Sprintf("%s more %s", plural(n, "op"), units.DimFLOP(rest)))
			break
		}
		parts = append(parts, strings.TrimPrefix(in.Op.Name, op.Prefix)+" "+units.DimFLOP(in.FLOP))
	}
	return strings.Join(parts, " + ")
}

// factor is d as a factor of a product.
func factor(d dim.Dim) string {
	if n, ok := d.Int(); ok {
		return group(n)
	}
	if s := d.String(); strings.ContainsAny(s, "+- ") {
		return "(" + s + ")"
	}
	return d.String()
}

// timeTerms is the definition of time with its numbers:
// "max(34.4 GFLOP / 788 TFLOP/s + 2.10 µs tail, 50.3 MB / 4.30 TB/s) + 800 ns latency of the memory + 600 ns in a graph", and
// on a processor "268 MFLOP / 240 GFLOP/s + 81.0 µs tail + 3.15 MB / 156 GB/s in L2 + 300 ns launch".
func timeTerms(t cost.TimeTerms, m *machine.Machine) string {
	var side [2][]string // what the tensor cores and the vector units do
	alone := false       // on a processor the first of them waits for what comes from memory, or that for it
	for _, w := range t.Work {
		i := 1
		if w.Contraction && !t.OneUnit || w.Alone {
			i = 0
		}
		alone = alone || w.Alone
		side[i] = append(side[i], w.Text())
	}
	var terms []string
	first := ""
	for i, s := range side {
		if len(s) == 0 {
			continue
		}
		text := strings.Join(s, " + ")
		if i == 0 {
			text = productTerms(text, t)
		}
		if i == 0 && alone {
			first = text
			continue
		}
		terms = append(terms, text)
	}
	if t.Moved > 0 {
		text := t.MovedText()
		if t.Tables > 0 && t.OneUnit { // one core waits for both
			text += " + " + t.NearText(m)
		}
		terms = append(terms, text)
	}
	if t.Tables > 0 && !t.OneUnit {
		terms = append(terms, t.NearText(m))
	}
	if t.Longest > 0 {
		terms = append(terms, units.Time(t.Longest)+" of the longest row")
	}
	if t.LinkRate > 0 {
		terms = append(terms, units.Bytes(t.Linked)+" / "+units.Bandwidth(t.LinkRate)+" to the host")
	}
	text := strings.Join(terms, ", ")
	if len(terms) > 1 {
		text = "max(" + text + ")"
	}
	if first != "" && text != "" {
		first += " + "
	}
	text = first + text
	where := m.Name
	if t.Measured {
		where += ", rates as measured"
	}
	if len(t.Assumed) > 0 {
		where += "; assumed: " + strings.Join(t.Assumed, ", ")
	}
	if t.Latency > 0 {
		text += " + " + units.Time(t.Latency) + " latency of the memory"
	}
	if t.Launch > 0 {
		text += " + " + t.LaunchText(m)
	}
	return text + "  on " + where
}

// productTerms are the terms of contractions: their multiplications, or reading their tiles where that takes longer, and the tail.
func productTerms(text string, t cost.TimeTerms) string {
	if t.L2 > t.Compute {
		text = units.Time(t.L2) + " from L2"
	}
	if t.Tail > 0 {
		text += " + " + units.Time(t.Tail) + " tail"
	}
	return text
}

// whole describes the sum of an op without terms of its own sums up.
func whole(p *program.Program, m *ir.Module, e *cost.Entry) string {
	switch e.Op.Name {
	case op.Grad, op.Call:
		text := "the costs of "
		if e.Op.Name == op.Grad {
			text += "the joint forward and backward graph of "
		}
		text += "@" + strings.TrimPrefix(e.Op.Str("callee"), "@") + " with the sizes of the operands"
		if i := p.Instance(m, e.Op); i != nil && verify.Where(i.Sizes) != "" {
			text += ": " + verify.Where(i.Sizes)
		}
		return text
	case op.Prefix + "if":
		return "the more expensive branch"
	case op.While, op.Scan:
		if n, ok := e.Trips.Int(); ok {
			return group(n) + " × the body"
		}
		return factor(e.Trips) + " × the body; trip_count is not given"
	}
	return ""
}
