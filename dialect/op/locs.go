package op

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
)

// FusedLoc is the location of an op that does what the op at first and those of parts did. What moves nothing by itself,
// such as a constant, has no share in it.
func FusedLoc(first loc.Loc, parts []*ir.Op) loc.Loc {
	l := first
	for _, o := range parts {
		if weighs(o) {
			l = loc.Fuse(l, o.Loc)
		} else {
			l = loc.Include(l, o.Loc)
		}
	}
	return l
}

// weighs reports whether o, as an op of its own, moves data: it is neither a view nor a constant nor a repetition that others read in place.
func weighs(o *ir.Op) bool {
	return o.Name != Constant && o.Name != Prefix+"broadcast" && !IsView(o)
}

// mostCovered bounds the ops that one rewrite is looked through for.
const mostCovered = 64

// KeepLocs adds to the ops of vs, which take the place of o's results, the locations of o and of the ops that only o needs, if
// they are new: nothing uses them yet. Where an op that was there before is used instead, what o did costs nothing more.
func KeepLocs(o *ir.Op, vs []*ir.Value) {
	var gone []*ir.Op
	for _, v := range vs {
		if v == nil || v.Op == nil || len(v.Uses) > 0 || v.Op == o {
			continue
		}
		if gone == nil {
			gone = covered(o)
		}
		for _, p := range gone {
			v.Op.Loc = loc.Include(v.Op.Loc, p.Loc)
		}
	}
}

// covered are o and the ops of its block that nothing needs without it.
func covered(o *ir.Op) []*ir.Op {
	out := []*ir.Op{o}
	for i := 0; i < len(out) && len(out) < mostCovered; i++ {
		for _, v := range out[i].Operands {
			p := v.Op
			if p == nil || p.Parent != o.Parent || p.Loc == nil || slices.Contains(out, p) || HasEffect(p) {
				continue
			}
			needed := slices.ContainsFunc(p.Results, func(r *ir.Value) bool {
				return slices.ContainsFunc(r.Uses, func(u ir.Use) bool { return !slices.Contains(out, u.Op) })
			})
			if !needed {
				out = append(out, p)
			}
		}
	}
	return out
}
