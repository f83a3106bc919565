package cost

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// The attributes by which a function limits what it may move, hold, send and take: on each
// device, where its values are divided over several.
const (
	MaxMoved = op.MaxMovedAttr
	MaxPeak  = op.MaxPeakAttr
	MaxTime  = op.MaxTimeAttr
	MaxSent  = op.MaxSentAttr
)

// Limit is one of a function's own limits on its cost.
type Limit struct {
	Attr string
	At   dim.Dim  // bytes, or nanoseconds of MaxTime
	On   *Cluster // of MaxTime, if it is for a cluster; nil: for the machine that is chosen
	// Written: it is for the function as written, op by op; otherwise as it is compiled.
	Written bool
}

// What a budget ends in to state which text it is for.
const (
	asWritten  = "as written"
	asCompiled = "as compiled"
)

// parseText takes "as written" or "as compiled" off the end of a budget, which is for the
// compiled function without either.
func parseText(text string) (rest string, written bool) {
	text = strings.TrimSpace(text)
	for _, of := range []string{asCompiled, asWritten} {
		if rest, found := strings.CutSuffix(text, " "+of); found {
			return strings.TrimSpace(rest), of == asWritten
		}
	}
	return text, false
}

// A Cluster is a number of devices of a machine, by its name.
type Cluster struct {
	Devices int
	Machine string
}

func (c *Cluster) String() string { return fmt.Sprintf("%d x %s", c.Devices, c.Machine) }

// ParseBudget reads fn's limits: {dm.max_moved = "1.2 GB", dm.max_peak =
// "8*n B", dm.max_time = "50 µs"}. Bytes may be a formula in the symbols of the
// function. A time may be for a cluster,
// {dm.max_time = "350 ms on 64 x dgx-h100"}. A budget is for the function as it is compiled, or, where it says so,
// as it is written: {dm.max_moved = "1.2 GB as written"}. Errors name the attribute
// and describe how to write it; the other limits are still read.
func ParseBudget(fn *ir.Func) (limits []Limit, errs []error) {
	if fn.Op == nil {
		return nil, nil
	}
	for _, attr := range []string{MaxMoved, MaxPeak, MaxSent, MaxTime} {
		var at dim.Dim
		var on *Cluster
		var written bool
		var err error
		switch a := fn.Op.Attr(attr).(type) {
		case nil:
			continue
		case types.Int:
			err = units.Unitless(a.String(), op.LookupAttr(attr).Unit)
		case types.Str:
			var text string
			if text, written = parseText(string(a)); attr != MaxTime {
				at, err = parseSize(text, fn)
			} else if text, on, err = parseCluster(text); err == nil {
				at, err = parseTime(text)
			}
		default:
			d := op.LookupAttr(attr)
			err = fmt.Errorf("%s is not %s; write for example %s", a, d.Want, d.Example)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", attr, err))
			continue
		}
		limits = append(limits, Limit{attr, at, on, written})
	}
	return limits, errs
}

// parseSize reads "1.2 GB", or a formula in the symbols of fn: "8*n B".
func parseSize(text string, fn *ir.Func) (dim.Dim, error) {
	n, err := units.ParseBytes(text)
	if err == nil {
		return dim.Const(n), nil
	}
	formula, inBytes := strings.CutSuffix(strings.TrimSpace(text), " B")
	d, bad := dim.Parse(formula)
	if bad != nil || d.IsConst() {
		return dim.Dim{}, err
	}
	known := symbols(fn)
	for _, s := range d.Symbols() {
		if !known[s] {
			return dim.Dim{}, fmt.Errorf("%q is no dimension of @%s; %w", s, fn.Name, err)
		}
	}
	if !inBytes {
		return dim.Dim{}, fmt.Errorf("%q has no unit; write %q", text, formula+" B")
	}
	return d, nil
}

// symbols are those that a cost of fn may be a formula of, as people write them.
func symbols(fn *ir.Func) map[string]bool {
	out := map[string]bool{Trips: true}
	add := func(t types.Type) {
		for _, m := range types.Members(t) {
			for _, d := range m.Tensor.Shape {
				for _, s := range d.Symbols() {
					out[s] = true
				}
			}
		}
	}
	for _, v := range fn.Args {
		add(v.Type)
	}
	for _, t := range fn.Results {
		add(t)
	}
	return out
}

// parseCluster takes the cluster, " on 64 x dgx-h100", off the end of a time; on is nil without one.
func parseCluster(text string) (time string, on *Cluster, err error) {
	time, where, found := strings.Cut(text, " on ")
	if !found {
		return text, nil, nil
	}
	n, machine, found := strings.Cut(strings.ReplaceAll(where, "×", "x"), "x")
	devices, err := strconv.Atoi(strings.TrimSpace(n))
	if machine = strings.TrimSpace(machine); !found || err != nil || devices < 1 || machine == "" || strings.ContainsAny(machine, " \t") {
		return "", nil, fmt.Errorf("%q is no number of devices of a machine; write for example \"350 ms on 64 x dgx-h100\"", strings.TrimSpace(where))
	}
	return time, &Cluster{devices, machine}, nil
}

func parseTime(text string) (dim.Dim, error) {
	s, err := units.Parse(text, "s")
	switch ns := s * 1e9; {
	case err != nil:
		return dim.Dim{}, err
	case ns < 0:
		return dim.Dim{}, fmt.Errorf("%q is negative; a time is 0 or more", text)
	case ns >= math.MaxInt64:
		return dim.Dim{}, fmt.Errorf("%q is more nanoseconds than 64 bits count", text)
	default:
		return dim.Const(int64(math.Round(ns))), nil
	}
}

// Excess is a limit that a function exceeds.
type Excess struct {
	Limit
	Have dim.Dim // bytes or nanoseconds; more than At for all values of the symbols
	Of   string  // which text: Figures.Text
}

// Over returns the limits that f exceeds with figures of its own for all values of the symbols that
// bind leaves open, and the limits for which this cannot be decided. Limits for a cluster are left out: they
// are decided by a plan, or as limits on a machine by one who knows that f is divided over it.
func (f *Func) Over(have Figures, bind map[string]int64, limits []Limit) (over []Excess, open []Limit) {
	env := sizes(f.Func, bind)
	for _, l := range limits {
		if l.On != nil {
			continue
		}
		l.At = l.At.Subst(env)
		each := have.of(l.Attr)
		within := len(each) > 0
		exceeded := false
		for _, h := range each {
			if !exceeded && h.AtLeast(l.At.Add(dim.Const(1))) {
				over, exceeded = append(over, Excess{l, h, have.Text()}), true
			}
			within = within && l.At.AtLeast(h)
		}
		if !within && !exceeded {
			open = append(open, l)
		}
	}
	return over, open
}

// Message is how far f exceeds its budget: "@f moves 8.39 MB as compiled, 3.39 MB more than its
// budget of 5.00 MB".
func (x Excess) Message(f *Func) string {
	show, verb := units.DimBytes, "moves"
	switch x.Attr {
	case MaxPeak:
		verb = "holds up to"
	case MaxSent:
		verb = "sends"
	case MaxTime:
		verb = "takes"
		show = func(d dim.Dim) string {
			ns, _ := d.Int()
			return units.Time(float64(ns))
		}
	}
	of := ""
	if x.Of != "" {
		of = " " + x.Of
	}
	return fmt.Sprintf("@%s %s %s%s, %s more than its budget of %s", f.Func.Name, verb, show(x.Have), of, show(x.Have.Sub(x.At)), show(x.At))
}
