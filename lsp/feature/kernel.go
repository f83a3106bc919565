package feature

import (
	"math"
	"strconv"

	"dmir/analysis/units"
	"dmir/syntax/diag"
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

// kernels puts what was measured of each kernel on the first of its lines, in place
// of what is predicted. Of several on one line the slowest has the label.
func (h *hinter) kernels() {
	if h.ran == nil {
		return
	}
	slowest := map[int]float64{}
	for _, k := range h.ran.Kernels {
		if k.Ns <= 0 && !k.Counted || len(k.Lines) == 0 || k.Lines[0] < 1 || k.Lines[0] > h.p.Src.Lines() {
			continue
		}
		n := k.Lines[0] - 1
		if !h.shown(h.p.Src.LineStart(n)) {
			continue
		}
		hint := h.line(n)
		if most, before := slowest[n]; !before || k.Ns > most {
			hint.Label, slowest[n] = k.label(), k.Ns
			hint.rows = append(k.rows(h.ran.Device), hint.rows...)
		} else {
			hint.rows = append(hint.rows, k.rows(h.ran.Device)...)
		}
	}
}

// label is the measured time and what the kernel moves, as the device has counted
// where it has; the predicted time where the device measures none.
func (k KernelTime) label() Label {
	ns, moved := k.PredictedNs, k.Moved
	if k.Counted {
		moved = k.CountedBytes
	}
	if k.Ns > 0 {
		ns = k.Ns
	}
	l := Label{Time: units.ShortTime(ns), Bytes: units.ShortBytes(moved)}
	switch {
	case k.Counted && k.CountedBytes != k.Moved:
		l.Mark = MarkDiffers
	case k.Ns > 0:
		l.Mark = MarkMeasured
	default:
		l.Mark = MarkCounted
	}
	return l
}

func (k KernelTime) rows(device string) []row {
	rows := []row{{"kernel", k.Name}, {"from", LineList(k.Lines)}}
	if k.Ns > 0 {
		rows = append(rows, row{"measured on " + device, units.Time(k.Ns)})
	}
	rows = append(rows, row{"predicted", units.Time(k.PredictedNs)}, row{"roofline bound", units.Time(k.RoofNs)})
	if share := k.OfRoofline(); share > 0 {
		rows = append(rows, row{"of roofline", strconv.Itoa(share) + " %"})
	}
	rows = append(rows, row{"moved, predicted", units.Bytes(k.Moved)})
	if k.Counted {
		rows = append(rows, row{"moved, counted by " + device, units.Bytes(k.CountedBytes)})
	}
	if k.Differs != "" {
		rows = append(rows, row{"why they differ", k.Differs})
	}
	return rows
}

// LineList writes 3, 4, 5, 9 as "lines 3–5, 9".
func LineList(lines []int) string {
	if len(lines) == 1 {
		return "line " + diag.Ranges(lines)
	}
	return "lines " + diag.Ranges(lines)
}
