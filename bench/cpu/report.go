package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// times are those of one contestant. A ratio is its time over dmir's: above 1 dmir is
// faster.
type times struct {
	BestMs        float64 `json:"best_ms"`
	MedianMs      float64 `json:"median_ms"`
	Samples       int     `json:"samples"`
	RatioOfBest   float64 `json:"ratio_of_best,omitempty"`
	RatioOfMedian float64 `json:"ratio_of_median,omitempty"`
}

// row is one program with one number of threads.
type row struct {
	Name      string            `json:"name"`
	Threads   int               `json:"threads,omitempty"`
	Error     string            `json:"error,omitempty"`
	Bytes     int64             `json:"bytes,omitempty"` // of arguments and results
	FLOP      int64             `json:"flop,omitempty"`
	CompileMs float64           `json:"compile_ms,omitempty"` // of the passes, without clang
	Ours      times             `json:"dmir"`
	Others    map[string]*times `json:"others,omitempty"`
	Without   map[string]string `json:"without,omitempty"` // peers that cannot compute it, and why
}

type report struct {
	Date    string            `json:"date"`
	CPU     string            `json:"cpu"`
	Arch    string            `json:"arch"`
	Peers   map[string]string `json:"peers"`
	Missing map[string]string `json:"missing,omitempty"`
	Rows    []*row            `json:"rows"`
}

// columns are the contestants with a ratio, in the table's order.
var columns = []string{"OpenBLAS", "torch", "torch sdpa", "onnxruntime"}

func (r *report) failed() bool {
	return slices.ContainsFunc(r.Rows, func(w *row) bool { return w.Error != "" })
}

// line is the row in the table.
func (w *row) line() string {
	if w.Error != "" {
		return fmt.Sprintf("| %s | %d | failed: %s |", w.Name, w.Threads, w.Error)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %d | %.3g | %.3g |", w.Name, w.Threads, w.Ours.BestMs, w.Ours.MedianMs)
	if c := w.Others["copy"]; c != nil {
		fmt.Fprintf(&b, " %.1f GB/s | %.0f %% |", float64(w.Bytes)/w.Ours.BestMs/1e6, 100*c.RatioOfBest)
	} else {
		fmt.Fprintf(&b, " %.1f GFLOP/s | |", float64(w.FLOP)/w.Ours.BestMs/1e6)
	}
	for _, name := range columns {
		if t := w.Others[name]; t != nil {
			fmt.Fprintf(&b, " %.2f / %.2f |", t.RatioOfBest, t.RatioOfMedian)
		} else {
			b.WriteString(" |")
		}
	}
	if t := w.Others["reference"]; t != nil {
		fmt.Fprintf(&b, " %.1f |", t.RatioOfBest)
	} else {
		b.WriteString(" |")
	}
	return b.String()
}

const explained = `
Times of dmir are in milliseconds. The other columns are the time of the peer over that of dmir, of the best and of the median samples:
above 1 dmir is faster. "of copy" is the time of a copy that reads and writes as many bytes as the program's arguments and results have (memcpy).
The reference executor runs once. OpenBLAS computes the product of a row alone; "torch" the same ops in PyTorch's eager mode, "torch
sdpa" with its attention op.
`

func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Times on the processor, %s\n\n%s, %s\n", r.Date, r.CPU, r.Arch)
	for _, name := range slices.Sorted(maps.Keys(r.Peers)) {
		fmt.Fprintf(&b, "- %s\n", r.Peers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(&b, "- without %s: %s\n", name, r.Missing[name])
	}
	b.WriteString(explained)
	b.WriteString("\n| row | threads | best | median | rate | of copy | " + strings.Join(columns, " | ") + " | reference |\n|---|--:|--:|--:|--:|--:|" + strings.Repeat("--:|", len(columns)+1) + "\n")
	for _, w := range r.Rows {
		b.WriteString(w.line() + "\n")
	}
	b.WriteByte('\n')
	for _, w := range r.Rows {
		for _, name := range slices.Sorted(maps.Keys(w.Without)) {
			fmt.Fprintf(&b, "- %s with %d threads, without %s: %s\n", w.Name, w.Threads, name, w.Without[name])
		}
	}
	return b.String()
}
