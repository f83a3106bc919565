// Depth plans training steps of GPT-2 with more and more layers and prints, for
// each depth, the time and the peak memory of `dmir opt --emit schedule` and what
// the plan moves.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
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
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: depth [-layers 1,3,…] DMIR...\n\nEach DMIR is a program to measure, such as build/dmir and one of an earlier version.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "depth-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fmt.Println("| layers | program | seconds | peak memory | kernels | moved | per layer beyond the first depth |\n|---|---|---|---|---|---|---|")
	type plan struct {
		layers int
		moved  int64
	}
	first := map[string]plan{}
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
			cmd := exec.Command(dmir, "opt", "--emit", "schedule", file)
			cmd.Stderr = os.Stderr
			start := time.Now()
			out, err := cmd.Output()
			if err != nil {
				log.Fatalf("%s with %d layers: %v", dmir, layers, err)
			}
			elapsed := time.Since(start)
			kernels, moved, err := count(string(out))
			if err != nil {
				log.Fatalf("%s with %d layers: %v", dmir, layers, err)
			}
			each := "–"
			if f, ok := first[dmir]; !ok {
				first[dmir] = plan{layers, moved}
			} else if layers > f.layers {
				each = units.Bytes((moved - f.moved) / int64(layers-f.layers))
			}
			fmt.Printf("| %d | %s | %.1f | %s | %d | %s | %s |\n", layers, filepath.Base(dmir), elapsed.Seconds(), units.Bytes(peak.Of(cmd)), kernels, units.Bytes(moved), each)
		}
	}
}

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
