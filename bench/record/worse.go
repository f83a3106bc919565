package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Change is a figure of two files of results.
type Change struct {
	Row, Figure string
	Old, New    float64
	By          float64 // how many times worse New is: 1.25 for a time that takes a quarter longer
}

func (c Change) String() string {
	return fmt.Sprintf("%-40s  %-44s  %10.4g  → %10.4g  %5.2f× worse", c.Row, c.Figure, c.Old, c.New, c.By)
}

// Tolerance is how many times worse a figure may be without being reported.
const Tolerance = 1.1

// Worse is the figures of results, a file that a benchmark wrote, that are worse than those
// of an earlier file by more than Tolerance, the worst first. Times and memory are compared only
// if both are of the same machine, which same reports; ratios to a peer, measured in the same run, always are.
func Worse(earlier, results []byte) (worse []Change, same bool, err error) {
	was, old, err := figures(earlier)
	if err != nil {
		return nil, false, err
	}
	is, now, err := figures(results)
	if err != nil {
		return nil, false, err
	}
	same = was == is
	for at, x := range now {
		y, ok := old[at]
		if !ok || x.better == 0 || x.absolute && !same || x.value <= 0 || y.value <= 0 {
			continue
		}
		by := x.value / y.value
		if x.better > 0 {
			by = 1 / by
		}
		if by > Tolerance {
			worse = append(worse, Change{at.row, at.name, y.value, x.value, by})
		}
	}
	slices.SortFunc(worse, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.By, a.By), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Figure, b.Figure))
	})
	return worse, same, nil
}

// machine is what a file says of the machine that it was measured on.
type machine struct {
	cpu   string
	cores float64
}

type place struct{ row, name string }

type figure struct {
	value    float64
	better   int  // 1 where more is better, -1 where less is, 0 where it is no figure to compare
	absolute bool // it depends on the machine
}

// figures are the numbers of a file, by the row of the table and by their names.
func figures(data []byte) (machine, map[place]figure, error) {
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		return machine{}, nil, err
	}
	var on machine
	if head, ok := all.(map[string]any); ok {
		on.cpu, _ = head["cpu"].(string)
		on.cores, _ = head["cores"].(float64)
	}
	out := map[place]figure{}
	collect(out, "", "", all)
	return on, out, nil
}

func collect(out map[place]figure, row, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			collect(out, row, strings.TrimPrefix(name+"/"+key, "/"), x)
		}
	case []any:
		if name == "rows" {
			name = ""
		}
		for _, x := range v {
			collect(out, strings.TrimSpace(row+" "+label(x)), name, x)
		}
	case float64:
		f := figure{value: v}
		f.better, f.absolute = direction(name)
		out[place{row, name}] = f
	}
}

// label names an element of a list by its words and by the sizes that it is for.
func label(v any) string {
	fields, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	var parts []string
	for key, x := range fields {
		switch x := x.(type) {
		case string:
			if len(x) <= 40 {
				parts = append(parts, strings.ToLower(key)+" "+x)
			}
		case float64:
			if slices.Contains([]string{"ops", "threads", "layers", "devices", "runs"}, strings.ToLower(key)) && x == math.Trunc(x) {
				parts = append(parts, fmt.Sprintf("%s %.0f", strings.ToLower(key), x))
			}
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// direction tells by the name of a figure whether more of it is better, and whether it depends on
// the machine. Figures of peers are none of ours.
func direction(name string) (better int, absolute bool) {
	parts := strings.Split(strings.ToLower(name), "/")
	last := parts[len(parts)-1]
	under := func(names ...string) bool {
		return slices.ContainsFunc(parts[:len(parts)-1], func(p string) bool { return slices.Contains(names, p) })
	}
	switch {
	case strings.HasPrefix(last, "ratio_of"): // a peer's time over ours
		return 1, false
	case under("ratios"), strings.HasSuffix(last, "_ratio"): // ours over a peer's
		return -1, false
	case under("peer", "others", "peers"), last == "max_ms", last == "p90_ms":
		return 0, false
	case strings.HasSuffix(last, "_ms"), strings.HasSuffix(last, "_mb"), strings.HasSuffix(last, "_mib"),
		strings.HasSuffix(last, "_s"), last == "seconds":
		return -1, true
	}
	return 0, false
}
