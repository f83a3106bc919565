package raise

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Statistic gives the value x of which o is a statistic, a number for each row, such as a mean, a sum of squares or of exponentials, and a
// text that is the same for all ways to write that statistic of x, the value furthest back that it is one of; x is nil for other ops.
func Statistic(o *ir.Op) (x *ir.Value, key string) {
	if o.Bad || len(o.Results) != 1 || !op.Valid(o) || !o.Results[0].Elem().IsFloat() || !plain(o.Results[0]) {
		return nil, ""
	}
	switch o.Name {
	case "dm.mean", "dm.variance", "dm.logsumexp":
	case "dm.reduce":
		if op.Str(o, "kind") != "add" || len(o.Operands) != 1 {
			return nil, ""
		}
	default:
		return nil, ""
	}
	for _, x := range slices.Backward(elementsOf(o.Operands[0])) {
		r := newReader(types.F16, []*ir.Value{x})
		r.id(x)
		r.finite = true
		t := r.term(o.Results[0], whole(o.Out(0)))
		if t == nil || !t.of("0,") {
			continue
		}
		var b strings.Builder
		b.WriteString(t.key)
		for _, n := range t.nums {
			fmt.Fprintf(&b, " %.6g", n+0)
		}
		return x, b.String()
	}
	return nil, ""
}

// elementsOf are the values whose elements v may be a function of, as far as a few ops tell.
func elementsOf(v *ir.Value) (out []*ir.Value) {
	for range 6 {
		if v = base(v); v.Tensor() == nil || !v.Elem().IsFloat() {
			break
		}
		out = append(out, v)
		o := v.Op
		if o == nil || !slices.Contains([]string{"dm.mul", "dm.pow", "dm.sub", "dm.exp", "dm.convert"}, o.Name) || !op.Valid(o) {
			break
		}
		v = o.Operands[0]
	}
	return out
}

// of reports whether all leaves of t are elements of one value, whose names begin with prefix, and one is.
func (t *term) of(prefix string) bool {
	if t.kind == leaf {
		return strings.HasPrefix(t.name, prefix)
	}
	for _, a := range t.args {
		if _, is := a.isNumber(); !is && !a.of(prefix) {
			return false
		}
	}
	return len(t.args) > 0
}
