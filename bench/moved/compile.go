package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dmir/bench/gpt2"
)

// timed is the seconds from the text of GPT-2's training step to a compiled step;
// 0 is one that took longer than the limit or failed.
type timed struct {
	Layers  int     `json:"layers"`
	Plan    float64 `json:"artifact_without_machine_code"`
	Machine float64 `json:"artifact_with_machine_code"`
	Torch   float64 `json:"torch_compile"`
}

// times measures each number of layers.
func (r *report) times(dmir, python, here, layers string, limit time.Duration) error {
	dir, err := os.MkdirTemp("", "moved-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.Limit = limit.Seconds()
	for n := range strings.SplitSeq(layers, ",") {
		t := timed{}
		if t.Layers, err = strconv.Atoi(n); err != nil || t.Layers < 1 {
			return fmt.Errorf("%q is not a number of layers", n)
		}
		file := filepath.Join(dir, n+".dmir")
		if err := os.WriteFile(file, []byte(gpt2.Step(t.Layers)), 0o600); err != nil {
			return err
		}
		measure := func(to *float64, args ...string) []byte {
			fmt.Fprintf(os.Stderr, "%d layers: %s\n", t.Layers, filepath.Base(args[0]))
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.WaitDelay = time.Second
			cmd.Env = cached(filepath.Join(dir, "torch"))
			var out, problems bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &problems
			start := time.Now()
			if err := cmd.Run(); err == nil {
				*to = time.Since(start).Seconds()
			} else if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				r.notes = append(r.notes, fmt.Sprintf("%v: %v\n%s", args, err, problems.String()))
			}
			return out.Bytes()
		}
		compile := []string{dmir, "compile", "--func", "train", "-o", filepath.Join(dir, "step.dmx"), file}
		measure(&t.Plan, append(compile, "--arch", "none")...)
		measure(&t.Machine, append(compile, "--arch", "sm_90a")...)
		if out := measure(&t.Torch, python, filepath.Join(here, "gpt2.py"), n); t.Torch > 0 {
			var answer struct{ Seconds float64 }
			if err := json.Unmarshal(out, &answer); err != nil {
				return err
			}
			t.Torch = answer.Seconds
		}
		r.Times = append(r.Times, t)
	}
	return nil
}

const howTimed = `
## From text to a compiled step

GPT-2 small's training step (forward, backward, AdamW; D 768, S 1024, B 4, V 50304), each layer a call of one function. Seconds of wall
time, on whatever else the machine did; > is more than the limit of %.0f s. dmir: the whole process from the text to the .dmx file, for the
H200, with CUDA sources and with machine code for sm_90a by NVRTC. torch.compile: from the first call until forward, backward and AdamW are compiled
for the CPU, C++ code included and caches empty; the import of PyTorch is left out. The code differs, GPU beside CPU: these are not times
of the same work.

| layers | dmir, CUDA sources | dmir, machine code | torch.compile |
|--:|--:|--:|--:|
`

func (r *report) timesTable(b *strings.Builder) {
	fmt.Fprintf(b, howTimed, r.Limit)
	seconds := func(s float64) string {
		if s == 0 {
			return fmt.Sprintf("> %.0f", r.Limit)
		}
		return fmt.Sprintf("%.1f", s)
	}
	for _, t := range r.Times {
		fmt.Fprintf(b, "| %d | %s | %s | %s |\n", t.Layers, seconds(t.Plan), seconds(t.Machine), seconds(t.Torch))
	}
}
