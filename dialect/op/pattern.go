package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// PatternAttr says which elements of a sparse argument are stored where no input is given.
const PatternAttr = "dm.pattern"

// ComponentAttr is the type of the sparse tensor that an argument stores a part of.
const ComponentAttr = "dm.component_of"

// Patterns are the kinds of patterns, the first of which is that of an argument without the attribute.
var Patterns = []string{"uniform", "power_law", "band", "blocks"}

// Pattern is which elements of a sparse tensor are stored.
type Pattern struct {
	Kind string // one of Patterns
	// Exponent of "power_law": the number of rows with d elements falls as d to its negative.
	Exponent float64
	Width    int64 // of "band", how far elements are from the diagonal at most; -1: as few as have room for them
	Size     int64 // of the sides of "blocks"
}

// StatedPattern is the pattern that a value of PatternAttr states; nil states none.
func StatedPattern(a types.Attr) (p Pattern, ok bool) {
	p = Pattern{Kind: Patterns[0], Exponent: 2.1, Width: -1, Size: 32}
	switch a := a.(type) {
	case nil:
		return p, true
	case types.Str:
		p.Kind = string(a)
	case types.Dict:
		p.Kind = ""
		for _, e := range a {
			v, number := types.NumberOf(e.Value)
			switch s, is := e.Value.(types.Str); {
			case e.Name == "kind" && is:
				p.Kind = string(s)
			case e.Name == "exponent" && number:
				p.Exponent = v
			case e.Name == "width" && wholeFrom(0)(e.Value):
				p.Width = int64(v)
			case e.Name == "size" && wholeFrom(1)(e.Value):
				p.Size = int64(v)
			default:
				return p, false
			}
			if of := patternSizes[e.Name]; of != "" && !slices.ContainsFunc(a, func(k types.Named) bool { return k.Name == "kind" && k.Value == types.Attr(types.Str(of)) }) {
				return p, false
			}
		}
	default:
		return p, false
	}
	return p, p.Valid()
}

// Valid reports whether p is a pattern.
func (p Pattern) Valid() bool {
	return slices.Contains(Patterns, p.Kind) && p.Exponent > 1 && !math.IsInf(p.Exponent, 0) && p.Width >= -1 && p.Size >= 1
}

// patternSizes are what a pattern may state beside its kind, by the kind that it is of.
var patternSizes = map[string]string{"exponent": "power_law", "width": "band", "size": "blocks"}

// SizeComponents gives numbers to the symbols of the sparse tensors that arguments of the function f store.
func SizeComponents(f *ir.Op, sizes map[string]dim.Dim) {
	all, _ := f.Attr("arg_attrs").(types.Array)
	changed := slices.Clone(all)
	for i, a := range all {
		own, _ := a.(types.Dict)
		at := slices.IndexFunc(own, func(a types.Named) bool { return a.Name == ComponentAttr })
		if at < 0 {
			continue
		}
		if t, ok := own[at].Value.(types.TypeAttr); ok {
			own = slices.Clone(own)
			own[at].Value = types.TypeAttr{T: types.Sized(t.T, sizes)}
			changed[i] = own
		}
	}
	if changed != nil {
		f.SetAttr("arg_attrs", changed)
	}
}
