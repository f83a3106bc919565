package report

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
)

// groups find the lines and modules of ops, by their numbers.
type groups struct {
	sources        *attribution.Sources
	lines, modules numbered
}

// numbered are rows of one kind.
type numbered struct {
	byOp  map[*ir.Op][]int // of what costs anything
	byRow map[loc.Loc]int
}

// group divides f by the lines and modules that it was traced from; nil where it was not, or where its cost is open.
func (b *builder) group(f *cost.Func, sources *attribution.Sources) *Groups {
	if !slices.ContainsFunc(b.p.Funcs, located) {
		return nil // what follows takes as long as a memory plan
	}
	x, err := attribution.Of(f, b.p.Target, nil)
	if err != nil || !x.Traced {
		return nil
	}
	if sources == nil {
		sources = &attribution.Sources{}
	}
	sources.Look(x)
	out := &Groups{}
	b.groups.sources = sources
	out.Lines, b.groups.lines = rows(x, attribution.ByLine, sources)
	out.Modules, b.groups.modules = rows(x, attribution.ByModule, sources)
	if len(out.Modules) == 1 && out.Modules[0].Name == "" {
		out.Modules, b.groups.modules = []Group{}, numbered{}
	}
	return out
}

// located reports whether an op of f has a location.
func located(f *cost.Func) bool {
	found := false
	f.Walk(func(e *cost.Entry) { found = found || e.Op.Loc != nil })
	return found
}

func rows(f *attribution.Function, by attribution.By, sources *attribution.Sources) ([]Group, numbered) {
	out := []Group{}
	n := numbered{byOp: map[*ir.Op][]int{}, byRow: map[loc.Loc]int{}}
	for i, r := range f.Rows(by, sources) {
		g := Group{
			Name: r.Path, Detail: r.Class, TimeNs: r.TimeNs, TimeLabel: units.Time(float64(r.TimeNs)),
			FLOPLabel: units.FLOP(r.FLOP), Moved: r.Moved(), MovedLabel: units.Bytes(r.Moved()),
			Held: r.Held, HeldLabel: units.Bytes(r.Held), Shared: r.Shared,
		}
		if r.File != nil {
			g.Name, g.Detail = fmt.Sprintf("%s:%d", r.Name(), r.Line), cut(strings.TrimSpace(r.File.Text(r.Line)), widestLabel)
		}
		if f.Total.TimeNs > 0 {
			g.Share = float64(r.TimeNs) / float64(f.Total.TimeNs)
		}
		out = append(out, g)
		for _, x := range r.Shares {
			n.byRow[x.Loc] = i
			for _, o := range []*ir.Op{x.Op, x.Step.Op} {
				if all := n.byOp[o]; len(all) == 0 || all[len(all)-1] != i {
					n.byOp[o] = append(all, i)
				}
			}
		}
	}
	return out, n
}

// of are the lines and the modules that o has a part in.
func (g *groups) of(o *ir.Op) (lines, modules []int) {
	if g.sources == nil || o == nil {
		return nil, nil
	}
	return g.lines.of(o), g.modules.of(o)
}

func (n *numbered) of(o *ir.Op) []int {
	if rows := n.byOp[o]; rows != nil {
		return rows
	}
	var rows []int // of what costs nothing, beside what stands in the same place
	for _, l := range attribution.Costs(o.Loc) {
		if i, known := n.byRow[l]; known && !slices.Contains(rows, i) {
			rows = append(rows, i)
		}
	}
	return rows
}
