// Depth plans training steps of GPT-2 with more and more layers and prints, for
// each depth, the time, on the clock and of the processor, and the peak memory of
// `dmir opt --emit schedule`, what the plan moves, and its gap.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/bench/gpt2"
	"dmir/bench/peak"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

func main() {
	log.SetFlags(0)
	depths := flag.String("layers", "1,3,6,12,24,48,96", "the depths")
	text := flag.Int("text", 0, "print the program of so many layers instead")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: depth [-layers 1,3,…] DMIR...\n\nEach DMIR is a program to measure, such as build/dmir and one of an earlier version.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *text > 0 {
		fmt.Print(gpt2.Step(*text))
		return
	}
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "depth-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fmt.Println("| layers | program | seconds | CPU seconds | peak memory | kernels | moved | per layer beyond the depth before | gap |\n|---|---|---|---|---|---|---|---|---|")
	type plan struct {
		layers int
		moved  int64
	}
	before := map[string]plan{}
	for d := range strings.SplitSeq(*depths, ",") {
		layers, err := strconv.Atoi(d)
		if err != nil || layers < 1 {
			log.Fatalf("%q is not a number of layers", d)
		}
		file := filepath.Join(dir, d+".dmir")
		if err := os.WriteFile(file, []byte(gpt2.Step(layers)), 0o600); err != nil {
			log.Fatal(err)
		}
		for _, dmir := range flag.Args() {
			cmd := exec.Command(dmir, "opt", "--emit", "schedule", "--timings", file)
			var notes strings.Builder
			cmd.Stderr = &notes
			start := time.Now()
			out, err := cmd.Output()
			if err != nil {
				log.Fatalf("%s with %d layers: %v\n%s", dmir, layers, err, notes.String())
			}
			elapsed := time.Since(start)
			kernels, moved, err := count(string(out))
			if err != nil {
				log.Fatalf("%s with %d layers: %v", dmir, layers, err)
			}
			each := "–"
			if f, ok := before[dmir]; ok && layers > f.layers {
				each = units.Bytes((moved - f.moved) / int64(layers-f.layers))
			}
			before[dmir] = plan{layers, moved}
			gap := "–" // printed by later versions
			if g := gaps.FindStringSubmatch(notes.String()); g != nil {
				gap = g[1]
			}
			cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			fmt.Printf("| %d | %s | %.1f | %.1f | %s | %d | %s | %s | %s |\n", layers, filepath.Base(dmir), elapsed.Seconds(), cpu.Seconds(), units.Bytes(peak.Of(cmd)), kernels, units.Bytes(moved), each, gap)
		}
	}
}

// gaps matches the gap that opt --timings prints.
var gaps = regexp.MustCompile(`gap ([0-9.]+ %)`)

// count is the number of kernels of a planned text, and the bytes that it moves.
func count(text string) (kernels int, moved int64, err error) {
	p := program.Load(source.New("plan.dmir", text), program.Options{})
	if p.HasErrors() {
		return 0, 0, fmt.Errorf("the plan is not valid: %v", p.Diags[0].Message)
	}
	m := p.Modules[0]
	for _, o := range m.Funcs[0].Body.Ops {
		if o.Name == op.Kernel {
			kernels++
		}
	}
	moved, ok := cost.Function(m.Funcs[0], m, nil).Moved().Int()
	if !ok {
		return 0, 0, fmt.Errorf("the plan has symbolic sizes")
	}
	return kernels, moved, nil
}
