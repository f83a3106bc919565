package feature

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/analysis/units"
)

// KernelTime is what a device saw of one kernel of a compiled function.
type KernelTime struct {
	Name         string
	Lines        []int // of the text, 1-based, that it came from
	Ns           float64
	PredictedNs  float64
	RoofNs       float64 // what roofline bound
	Foreign      bool    // predicted for another machine than the one measured
	Moved        int64   // predicted bytes
	Counted      bool    // by the device, as CountedBytes
	CountedBytes int64
	Differs      string // why these are others than predicted
}

// OfRoofline is which share of the machine's peak the kernel reached, in whole
// percent; 0 where that is not known.
func (k KernelTime) OfRoofline() int {
	if k.Ns <= 0 || k.Foreign {
		return 0
	}
	return int(math.Round(100 * k.RoofNs / k.Ns))
}

// kernels puts what was measured of each kernel behind the first of its lines.
func (h *hinter) kernels() {
	if h.ran == nil {
		return
	}
	for _, k := range h.ran.Kernels {
		if len(k.Lines) == 0 || k.Lines[0] < 1 || k.Lines[0] > h.p.Src.Lines() {
			continue
		}
		start := h.p.Src.LineStart(k.Lines[0] - 1)
		off := start + len(h.p.Src.Line(k.Lines[0]-1))
		if !h.shown(off) {
			continue
		}
		tip := table(k.rows(h.ran.Device))
		for _, label := range k.labels() {
			h.hints = append(h.hints, Hint{off, label, tip})
		}
	}
}

// labels are "12.3 µs · predicted 11.0 µs ·" and "84 % of roofline", or what the
// device has counted where it measures nothing.
func (k KernelTime) labels() []string {
	switch {
	case k.Ns > 0:
		first := joinFitting(units.Time(k.Ns), "predicted "+units.Time(k.PredictedNs))
		if share := k.OfRoofline(); share > 0 {
			return []string{first, fmt.Sprintf("· %d %% of roofline", share)}
		}
		return []string{first}
	case k.Counted && k.CountedBytes == k.Moved:
		return []string{"counted " + units.Bytes(k.CountedBytes), "· as predicted"}
	case k.Counted:
		return []string{"counted " + units.Bytes(k.CountedBytes), "· predicted " + units.Bytes(k.Moved)}
	}
	return nil
}

func (k KernelTime) rows(device string) []row {
	rows := []row{{"kernel", escape(k.Name)}, {"from", LineList(k.Lines)}}
	if k.Ns > 0 {
		rows = append(rows, row{"measured on " + escape(device), units.Time(k.Ns)})
	}
	rows = append(rows, row{"predicted", units.Time(k.PredictedNs)}, row{"roofline bound", units.Time(k.RoofNs)})
	if share := k.OfRoofline(); share > 0 {
		rows = append(rows, row{"of roofline", strconv.Itoa(share) + " %"})
	}
	rows = append(rows, row{"moved, predicted", units.Bytes(k.Moved)})
	if k.Counted {
		rows = append(rows, row{"moved, counted by " + escape(device), units.Bytes(k.CountedBytes)})
	}
	if k.Differs != "" {
		rows = append(rows, row{"why they differ", escape(k.Differs)})
	}
	return rows
}

// LineList writes 3, 4, 5, 9 as "lines 3–5, 9".
func LineList(lines []int) string {
	if len(lines) == 1 {
		return "line " + strconv.Itoa(lines[0])
	}
	var parts []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(lines[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", lines[i], lines[j]))
		}
		i = j + 1
	}
	return "lines " + strings.Join(parts, ", ")
}
