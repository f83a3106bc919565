package job

import (
	"context"
	"fmt"
	"time"

	"dmir/analysis/units"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// compileMessage is "@ffn compiled for sm_90a in 1.20 s: 1 kernel moves 50.3 MB
// (117 MB as written, minimum 50.3 MB), 35.0 µs predicted on h200; NVRTC 13.5, no
// spills".
func compileMessage(fn, target string, got *worker.Result) string {
	b := got.Build
	var predicted float64
	spilled := 0
	for _, k := range got.Kernels {
		predicted += k.PredictedNs
		if k.SpillBytes > 0 {
			spilled++
		}
	}
	moves := "move"
	if len(got.Kernels) == 1 {
		moves = "moves"
	}
	msg := fmt.Sprintf("@%s compiled for %s in %s: %s %s %s", fn, b.Arch, units.Time(float64(got.ElapsedNs)), counts(len(got.Kernels), "kernel"), moves, units.Bytes(b.MovedBytes))
	if b.AsWrittenBytes >= 0 && b.MinimumBytes >= 0 {
		msg += fmt.Sprintf(" (%s as written, minimum %s)", units.Bytes(b.AsWrittenBytes), units.Bytes(b.MinimumBytes))
	}
	msg += fmt.Sprintf(", %s predicted on %s", units.Time(predicted), target)
	switch {
	case b.NoCode != "":
		msg += "; no machine code: " + b.NoCode
	case spilled > 0:
		msg += fmt.Sprintf("; %s, registers spilled by %s", b.Compiler, counts(spilled, "kernel"))
	default:
		msg += fmt.Sprintf("; %s, no spills", b.Compiler)
	}
	return msg
}

// spills are the kernels whose machine code keeps registers in memory.
func spills(src *source.File, kernels []worker.Kernel) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, k := range kernels {
		if k.SpillBytes == 0 {
			continue
		}
		msg := fmt.Sprintf("kernel %s spills registers: each thread writes and reads %d bytes of local memory, with %d registers", k.Name, k.SpillBytes, k.Registers)
		if d, ok := atKernel(src, worker.CodeSpills, msg, k.Lines); ok {
			out = append(out, d)
		}
	}
	return out
}

// differencesOf are those of the last run of the text, where there was one.
func differencesOf(p session.Place) []diag.Diagnostic {
	if p.Measured == nil {
		return nil
	}
	return differences(p.Src, p.Measured)
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
