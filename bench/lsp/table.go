package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// compare returns the ratio of dmir's figure to the peer's; below 1 dmir is better.
func (r *row) compare(peer *measured) {
	if peer == nil {
		return
	}
	r.Ratios = map[string]float64{}
	ratio := func(name string, a, b float64) {
		if b > 0 { // JSON has no NaN
			r.Ratios[name] = math.Round(a/b*1e4) / 1e4
		}
	}
	ratio("open_p50", r.Dmir.OpenMs.P50, peer.OpenMs.P50)
	ratio("open_processor_time_p50", r.Dmir.OpenCPU.P50, peer.OpenCPU.P50)
	ratio("edit_p50", r.Dmir.Edit.P50, peer.Edit.P50)
	ratio("edit_p50_valid", r.Dmir.Valid.P50, peer.Valid.P50)
	ratio("edit_p99", r.Dmir.Edit.P99, peer.Edit.P99)
	ratio("rss_after_open", r.Dmir.Idle.Now, peer.Idle.Now)
	ratio("rss_after_edits", r.Dmir.End.Now, peer.End.Now)
	ratio("peak_rss", r.Dmir.End.Peak, peer.End.Peak)
}

func printHead() {
	fmt.Printf("\n%7s %-5s %-8s %-5s %9s %7s %9s %7s %9s %7s %9s %9s %8s %8s %7s\n",
		"ops", "shape", "form", "", "open ms", "ratio", "edit p50", "ratio", "of valid", "ratio", "p99", "max", "rss MB", "peak MB", "ratio")
}

func (r *row) print(peer *measured) {
	line := func(who, form string, m *measured, ratios map[string]float64) {
		of := func(name string) string {
			if v, ok := ratios[name]; ok {
				return fmt.Sprintf("%.3f", v)
			}
			return ""
		}
		fmt.Printf("%7d %-5s %-8s %-5s %9.1f %7s %9.2f %7s %9.2f %7s %9.2f %9.2f %8.0f %8.0f %7s\n",
			r.Ops, r.Shape, form, who, m.OpenMs.P50, of("open_p50"), m.Edit.P50, of("edit_p50"), m.Valid.P50, of("edit_p50_valid"),
			m.Edit.P99, m.Edit.Max, m.End.Now, m.End.Peak, of("peak_rss"))
	}
	line("dmir", r.Form, r.Dmir, r.Ratios)
	if r.Peer != nil {
		line("peer", r.Form, r.Peer, nil)
	}
}

// printDetails prints the figures by kind of edit and request, for each text.
func printDetails(rows []*row) {
	for _, r := range rows {
		fmt.Printf("\n%d ops, %s, %s: p50 / p99 / max in ms\n", r.Ops, r.Shape, r.Form)
		for _, m := range []*measured{r.Dmir, r.Peer} {
			if m != nil {
				fmt.Printf("  processor time of opening         %.1f / %.1f / %.1f\n", m.OpenCPU.P50, m.OpenCPU.P99, m.OpenCPU.Max)
			}
		}
		kinds(r, func(m *measured) map[string]figures { return m.Kinds }, "")
		kinds(r, func(m *measured) map[string]figures { return m.Far }, " (far)")
		for i, q := range r.Dmir.Requests {
			peer := ""
			if r.Peer != nil {
				peer = r.Peer.Requests[i].String()
			}
			fmt.Printf("  %-28s %-4s %-34s %s\n", strings.TrimPrefix(q.Method, "textDocument/"), q.When, q, peer)
		}
	}
}

func kinds(r *row, of func(*measured) map[string]figures, note string) {
	for _, kind := range slices.Sorted(maps.Keys(of(r.Dmir))) {
		peer := ""
		if r.Peer != nil {
			peer = of(r.Peer)[kind].String()
		}
		fmt.Printf("  %-33s %-34s %s\n", kind+note, of(r.Dmir)[kind], peer)
	}
}

func (f figures) String() string { return fmt.Sprintf("%.2f / %.2f / %.2f", f.P50, f.P99, f.Max) }

func (r request) String() string {
	if r.Error != "" {
		return "—"
	}
	return fmt.Sprintf("%s  %d B", r.Times, r.Bytes)
}
