package cost

import (
	"cmp"
	"slices"
)

// Order is which of a function's ops are listed, and in what order: those that have most of By come first.
type Order struct {
	By  string // one of Orders; "" is the order of the text
	Top int    // how many; 0: all
}

// Orders are the values of Order.By.
var Orders = []string{"time", "moved", "read", "written", "flop", "line"}

// weight is what an op is ordered by.
type weight struct {
	line                     int
	ns, read, written, flops float64
}

// compare is less than 0 if a comes before b.
func (o Order) compare(a, b weight) int {
	switch o.By {
	case "time":
		return cmp.Compare(b.ns, a.ns)
	case "moved":
		return cmp.Compare(b.read+b.written, a.read+a.written)
	case "read":
		return cmp.Compare(b.read, a.read)
	case "written":
		return cmp.Compare(b.written, a.written)
	case "flop":
		return cmp.Compare(b.flops, a.flops)
	case "line":
		return cmp.Compare(a.line, b.line)
	}
	return 0
}

// cut is how many of n ops are listed.
func (o Order) cut(n int) int {
	if o.Top > 0 {
		return min(o.Top, n)
	}
	return n
}

// of are the entries that are listed, and how many are not.
func (o Order) of(entries []*Entry, t timer) (shown []*Entry, left int) {
	if o.By != "" {
		weights := make(map[*Entry]weight, len(entries))
		for _, e := range entries {
			w := weight{line: e.Line()}
			if x := t.entry(e); x.Known {
				w.ns = x.Ns
			}
			w.read, w.written, w.flops = value(number(e.Read)), value(number(e.Written)), value(number(e.FLOP))
			weights[e] = w
		}
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, func(a, b *Entry) int { return o.compare(weights[a], weights[b]) })
	}
	n := o.cut(len(entries))
	return entries[:n], len(entries) - n
}

// value is a number of a report, 0 for one that is not known.
func value(n *int64, _ string) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

// Sort lists the ops of each function of r by o.
func (r *Report) Sort(o Order) {
	for i := range r.Functions {
		f := &r.Functions[i]
		slices.SortStableFunc(f.Ops, func(a, b OpReport) int { return o.compare(a.weight(), b.weight()) })
		n := o.cut(len(f.Ops))
		f.Ops, f.LeftOut = f.Ops[:n], len(f.Ops)-n
	}
}

func (r *OpReport) weight() weight {
	return weight{r.Line, value(r.TimeNs, ""), value(r.Read, ""), value(r.Written, ""), value(r.FLOP, "")}
}
