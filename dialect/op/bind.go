package op

import (
	"fmt"
	"maps"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// BindAttr is the attribute by which a function gives sizes to symbols:
// {dm.bind = {n = 512}}.
const BindAttr = "dm.bind"

// SizesAttr is the attribute by which a function says which sizes of its symbols it is
// for: {dm.sizes = {n = {min = 2, max = 512}}}.
const SizesAttr = "dm.sizes"

// Limits are the sizes of a symbol that a function is for.
type Limits struct {
	Symbol string
	Min    int64
	Max    int64 // 0: any
}

// Attr is the entry of SizesAttr.
func (l Limits) Attr() types.Named {
	var d types.Dict
	for _, e := range []struct {
		name string
		n    int64
	}{{"min", l.Min}, {"max", l.Max}} {
		if e.n > 1 || e.name == "max" && e.n > 0 {
			d = append(d, types.Named{Name: e.name, Value: types.Int{V: e.n}})
		}
	}
	return types.Named{Name: l.Symbol, Value: d}
}

// LimitsOf are those that the function f states; ok is false where its attribute is none
// of SizesAttr's form.
func LimitsOf(f *ir.Op) (all []Limits, ok bool) {
	a := f.Attr(SizesAttr)
	if a == nil {
		return nil, true
	}
	d, ok := a.(types.Dict)
	if !ok {
		return nil, false
	}
	for _, e := range d {
		entries, is := e.Value.(types.Dict)
		if !is {
			return nil, false
		}
		l := Limits{Symbol: e.Name}
		for _, x := range entries {
			n, is := x.Value.(types.Int)
			to := map[string]*int64{"min": &l.Min, "max": &l.Max}[x.Name]
			if !is || n.V < 0 || to == nil {
				return nil, false
			}
			*to = n.V
		}
		all = append(all, l)
	}
	return all, true
}

// BeyondLimits says which size in bind the function f is not for, "" where it is for all.
func BeyondLimits(f *ir.Op, bind map[string]int64) string {
	if f == nil {
		return ""
	}
	all, _ := LimitsOf(f)
	for _, l := range all {
		n, bound := bind[l.Symbol]
		switch {
		case !bound:
		case n < l.Min:
			return fmt.Sprintf("the size %s is %d, and the function is for sizes from %d on (%s)", l.Symbol, n, l.Min, SizesAttr)
		case l.Max > 0 && n > l.Max:
			return fmt.Sprintf("the size %s is %d, and the function is for sizes up to %d (%s)", l.Symbol, n, l.Max, SizesAttr)
		}
	}
	return ""
}

// SetLimits states limits, those that exclude no size left out.
func SetLimits(f *ir.Op, all []Limits) {
	all = slices.DeleteFunc(slices.Clone(all), func(l Limits) bool { return l.Min <= 1 && l.Max == 0 })
	if len(all) == 0 {
		f.RemoveAttr(SizesAttr)
		return
	}
	var d types.Dict
	for _, l := range all {
		d = append(d, l.Attr())
	}
	f.SetAttr(SizesAttr, d)
}

// Bindings are the sizes of fn's symbols as far as they are known before it
// runs: those of its own attribute, and over them those of bind.
func Bindings(fn *ir.Func, bind map[string]int64) map[string]int64 {
	all := map[string]int64{}
	if fn.Op != nil {
		own, _ := fn.Op.Attr(BindAttr).(types.Dict)
		for _, e := range own {
			if n, ok := e.Value.(types.Int); ok && n.V >= 0 {
				all[e.Name] = n.V
			}
		}
	}
	maps.Copy(all, bind)
	return all
}
