package job

import (
	"fmt"
	"math"
	"strings"

	"dmir/analysis/units"
	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// far is how much of a prediction a measured time may differ before that is
// reported.
const far = 0.25

// runMessage summarizes a run or a profile in a sentence.
func runMessage(kind, fn string, got *worker.Result) string {
	device := got.Title
	if device == "" || got.Device == "reference" {
		device = got.Device
	}
	took := units.Time(float64(got.ElapsedNs))
	if kind != worker.KindProfile || len(got.Kernels) == 0 {
		msg := fmt.Sprintf("@%s ran in %s on %s", fn, took, device)
		if got.Device == "reference" && got.Why != "" && got.Why != "requested" {
			msg += " (" + got.Why + ")"
		}
		return msg
	}
	var predicted, measured float64
	var slowest worker.Kernel
	var moved, counted int64
	others := 0
	for _, k := range got.Kernels {
		predicted += k.PredictedNs
		measured += k.MeasuredNs
		if k.MeasuredNs > slowest.MeasuredNs {
			slowest = k
		}
		if k.Counted {
			moved += k.ReadBytes + k.WrittenBytes
			counted += k.CountedBytes
			if k.CountedBytes != k.ReadBytes+k.WrittenBytes {
				others++
			}
		}
	}
	kernels := counts(len(got.Kernels), "kernel")
	switch {
	case measured > 0:
		return fmt.Sprintf("@%s takes %s on %s, predicted %s; %s, the slowest %s with %s", fn, took, device, units.Time(predicted), kernels, slowest.Name, units.Time(slowest.MeasuredNs))
	case others > 0:
		return fmt.Sprintf("@%s on %s, which measures no times: %s moved, predicted %s; %d of %s other than predicted", fn, device, units.Bytes(counted), units.Bytes(moved), others, kernels)
	}
	return fmt.Sprintf("@%s on %s, which measures no times: %s moved by %s, as predicted", fn, device, units.Bytes(counted), kernels)
}

func counts(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// measured attaches what a run showed to the text and has the editor show it.
func (j *Jobs) measured(p session.Place, fn string, got *worker.Result) {
	m := &feature.Times{Func: fn, Device: got.Device, Ns: got.ElapsedNs, Ops: map[int]int64{}}
	if got.Title != "" {
		m.Device = got.Title
	}
	for _, o := range got.Ops {
		m.Ops[o.Line] = o.Ns
	}
	for _, k := range got.Kernels {
		if k.Counted {
			m.Ns = 0 // the emulator's time is not that of the function
		}
		m.Kernels = append(m.Kernels, feature.KernelTime{
			Name: k.Name, Lines: k.Lines, Ns: k.MeasuredNs, PredictedNs: k.PredictedNs, RoofNs: k.RoofNs, Foreign: got.Foreign,
			Moved: k.ReadBytes + k.WrittenBytes, Counted: k.Counted, CountedBytes: k.CountedBytes, Differs: k.Differs,
		})
	}
	if j.s.Docs.SetRun(p.Snapshot, m, differences(p.Src, m)) {
		j.opts.Ran()
	}
}

// differences are the kernels whose measured time is far from the predicted one.
func differences(src *source.File, m *feature.Times) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, k := range m.Kernels {
		if k.Ns <= 0 || k.PredictedNs <= 0 || k.Foreign || math.Abs(k.Ns-k.PredictedNs) <= far*k.PredictedNs {
			continue
		}
		how := "more"
		if k.Ns < k.PredictedNs {
			how = "less"
		}
		msg := fmt.Sprintf("kernel %s takes %s on %s, %s %s than the %s predicted; %d %% of the roofline", k.Name, units.Time(k.Ns), m.Device,
			units.Percent(math.Abs(k.Ns-k.PredictedNs), k.PredictedNs), how, units.Time(k.PredictedNs), k.OfRoofline())
		if d, ok := atKernel(src, worker.CodeDiffers, msg, k.Lines); ok {
			out = append(out, d)
		}
	}
	return out
}

// atKernel is a note at the first of the lines that a kernel came from; ok is
// false where it came from none.
func atKernel(src *source.File, code, msg string, lines []int) (_ diag.Diagnostic, ok bool) {
	if len(lines) == 0 || lines[0] < 1 || lines[0] > src.Lines() {
		return diag.Diagnostic{}, false
	}
	start, line := src.LineStart(lines[0]-1), src.Line(lines[0]-1)
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	return diag.New(code, diag.Info, source.Span{Start: start + indent, End: start + len(strings.TrimRight(line, "\r\n"))}, msg), true
}
