package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/analysis/units"
	"dmir/bench/record"
)

// summary is "23 rows, median error 8 %, 91 % within 30 %".
func summary(all []prediction) string {
	median, within := errorsOf(all)
	return fmt.Sprintf("%d rows, median error %.0f %%, %.0f %% of them within 30 %%", len(all), 100*median, 100*within)
}

// errorsOf is the median of the errors without their sign, and the part of them that is within 30 %.
func errorsOf(all []prediction) (median, within float64) {
	es := record.ErrorsOf(all, prediction.error)
	return es.Tenth(5), es.Within(0.3)
}

// halves are the predictions that constants were fitted to, and those that were held out.
func halves(all []prediction) (fitted, held []prediction) {
	for _, p := range all {
		if p.row.held() {
			held = append(held, p)
		} else {
			fitted = append(fitted, p)
		}
	}
	return fitted, held
}

// The comments between which a page has what the command writes.
const (
	begin = "<!-- times -->"
	end   = "<!-- /times -->"
)

// report prints the tables, or replaces them in a page.
func report(f *file, all []prediction, left map[string]int, page string) error {
	text := tables(f, all, left)
	if page == "" {
		fmt.Print(text)
		return nil
	}
	return record.Insert(page, begin, end, text)
}

func tables(f *file, all []prediction, left map[string]int) string {
	var b bytes.Buffer
	fitted, held := halves(all)
	fmt.Fprintf(&b, "Held out: %s. Fitted: %s.\n\n", summary(held), summary(fitted))
	fmt.Fprint(&b, "| work | machine | rows held out | median error | within 30 % | rows fitted | median error |\n|---|---|--:|--:|--:|--:|--:|\n")
	type group struct{ kind, machine string }
	groups := map[group][2][]prediction{}
	for _, p := range all {
		k := group{family(p.row.Kind), p.row.Machine}
		g := groups[k]
		i := 0
		if p.row.held() {
			i = 1
		}
		g[i] = append(g[i], p)
		groups[k] = g
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b group) int {
		return strings.Compare(a.kind+" "+a.machine, b.kind+" "+b.machine)
	})
	for _, k := range keys {
		g := groups[k]
		median, within := errorsOf(g[1])
		was, _ := errorsOf(g[0])
		cell := func(n int, x float64) string {
			if n == 0 {
				return "–"
			}
			return fmt.Sprintf("%.0f %%", 100*x)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %d | %s |\n", k.kind, k.machine, len(g[1]), cell(len(g[1]), median), cell(len(g[1]), within), len(g[0]), cell(len(g[0]), was))
	}
	fmt.Fprint(&b, "\nFigures of these sources that no row stands for, and why:\n\n")
	for _, why := range slices.SortedFunc(maps.Keys(left), func(a, b string) int { return cmp.Or(left[b]-left[a], strings.Compare(a, b)) }) {
		fmt.Fprintf(&b, "- %d: %s\n", left[why], strings.TrimPrefix(why, errKind.Error()+" "))
	}
	fmt.Fprint(&b, "\n## Rows held out\n\n| work | machine | predicted | published | error | bound | source |\n|---|---|--:|--:|--:|---|---|\n")
	slices.SortStableFunc(held, func(a, b prediction) int {
		return strings.Compare(a.row.Kind+" "+a.row.Machine, b.row.Kind+" "+b.row.Machine)
	})
	for _, p := range held {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %+.0f %% | %s | %s |\n", p.row.work(), p.row.Machine, units.Time(p.predicted*1e9), units.Time(p.published*1e9), 100*p.error(), p.bound, p.row.Source)
	}
	fmt.Fprint(&b, "\n## Sources\n\n")
	used := map[string]int{}
	for _, p := range all {
		used[p.row.Source]++
	}
	for _, s := range f.Sources {
		if n := used[s.ID]; n > 0 {
			fmt.Fprintf(&b, "- **%s** (%d rows): %s\n", s.ID, n, s.Title)
		}
	}
	return b.String()
}

// family is the kind of work that a kind of row belongs to.
func family(kind string) string {
	switch kind {
	case "gemm":
		return "products of matrices"
	case "attention":
		return "attention"
	case "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv":
		return "collectives"
	case "layer_norm", "rms_norm", "add_rms_norm", "softmax", "reduce", "dot", "read":
		return "norms and reductions"
	}
	return "element-wise and copies"
}

// work is what a row measured: "gemm 4096 × 4096 × 4096 bf16".
func (r *row) work() string {
	n := r.integer
	t := r.text("type", "")
	switch r.Kind {
	case "gemm":
		s := fmt.Sprintf("gemm %d × %d × %d %s", n("m", 0), n("n", 0), n("k", 0), t)
		if b := n("batch", 1); b > 1 {
			s += fmt.Sprintf(", %d of them", b)
		}
		return s
	case "attention":
		s := fmt.Sprintf("attention %s, %d × %d heads of %d, length %d, %s", r.text("direction", "forward"), n("batch", 1), n("heads", 1), n("head", 0), n("length", 0), t)
		if r.flag("causal") {
			s += ", causal"
		}
		return s
	case "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv":
		return fmt.Sprintf("%s of %s, %d devices in %d", strings.ReplaceAll(r.Kind, "_", "-"), units.Bytes(n("bytes", 0)), n("devices", 0), n("nodes", 1))
	}
	if e := n("elements", 0); e > 0 {
		return fmt.Sprintf("%s, %d %s", r.Kind, e, t)
	}
	if e := n("bytes", 0); e > 0 {
		return fmt.Sprintf("%s, %s", r.Kind, units.Bytes(e))
	}
	return fmt.Sprintf("%s, %d rows of %d %s", r.Kind, n("rows", 1), n("columns", 0), t)
}
