// Command moved compares the bytes that dmir's plans move with those that
// PyTorch's Inductor counts for the same programs, forward and forward–backward.
//
//	go run ./bench/moved [-md bench/results/moved-DATE.md] [-json bench/results/moved-DATE.json] DMIR
//
// testdata holds the programs, programs.py the same functions in PyTorch. The
// values and gradients of both are compared before their bytes. It exits with
// status 1 if values differ, and if a plan moves more than Inductor without a
// reason in the table.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmir/analysis/units"
	"dmir/bench/record"
)

// row is one line of the table. A nil Both has no gradient.
type row struct {
	Program string `json:"program"`
	Forward pair   `json:"forward"`
	Both    *pair  `json:"forward_backward,omitempty"`
}

// pair is what both sides move.
type pair struct {
	Ours     int64  `json:"bytes"`
	Scratch  int64  `json:"scratch_bytes"` // of them: partial results and repeated reads within kernels
	Kernels  int    `json:"kernels"`
	Inductor moves  `json:"inductor"`
	Reason   string `json:"reason,omitempty"` // why ours is more
}

// more reports whether the plan moves more than Inductor by either count.
func (p *pair) more() bool { return p.Ours > p.Inductor.Distinct }

type report struct {
	Date  string  `json:"date"`
	Torch string  `json:"torch"`
	Rows  []row   `json:"rows"`
	Times []timed `json:"times,omitempty"`
	Limit float64 `json:"limit_seconds,omitempty"` // of each of the times
	notes []string
}

func main() {
	log.SetFlags(0)
	here := flag.String("here", "bench/moved", "this command's folder")
	environ := flag.String("venv", "build/moved", "virtual environment with PyTorch, made if absent")
	only := flag.String("run", "", "the programs, separated by commas (default: all)")
	layers := flag.String("layers", "", "measure compile times of GPT-2 with so many layers, separated by commas")
	limit := flag.Duration("limit", 5*time.Minute, "longest time of one compilation")
	verbose := flag.Bool("v", false, "print the nodes that Inductor counts on stderr")
	asJSON := flag.String("json", "", "write the results to this file")
	asText := flag.String("md", "", "write the table to this file")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: moved [flags] DMIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	dmir, err := filepath.Abs(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	python, err := environment(*environ, *here)
	if err != nil {
		log.Fatal(err)
	}
	r := &report{Date: time.Now().UTC().Format(time.DateOnly)}
	if err := r.programs(dmir, python, *here, *only, *verbose); err != nil {
		log.Fatal(err)
	}
	if *layers != "" {
		if err := r.times(dmir, python, *here, *layers, *limit); err != nil {
			log.Fatal(err)
		}
	}
	text := r.table()
	fmt.Print(text)
	if err := errors.Join(record.Table(*asText, text), record.JSON(*asJSON, r)); err != nil {
		log.Fatal(err)
	}
	for _, n := range r.notes {
		log.Print(n)
	}
	if len(r.notes) > 0 {
		os.Exit(1)
	}
}

// programs compares every program of the list, or those that only names.
func (r *report) programs(dmir, python, here, only string, verbose bool) error {
	p, torch, err := start(python, filepath.Join(here, "peer.py"), verbose)
	if err != nil {
		return err
	}
	defer p.Close()
	r.Torch = torch
	for _, e := range entries {
		if only != "" && !slices.Contains(strings.Split(only, ","), e.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s\n", e.name)
		s, err := load(filepath.Join(here, "testdata"), e)
		if err != nil {
			return err
		}
		row, problems, err := s.compare(dmir, p)
		if err != nil {
			r.notes = append(r.notes, fmt.Sprintf("%s: %v", e.name, err))
			continue
		}
		r.notes = append(r.notes, problems...)
		r.Rows = append(r.Rows, *row)
	}
	return nil
}

const explained = `
Ours: the moved bytes of the plan, ` + "`dmir cost`" + ` of ` + "`dmir opt --emit schedule`" + ` for an H200; forward–backward is one graph. They contain what a
kernel moves for itself (partial results that thread blocks share, operands that a second pass reads again); in brackets: without.

Inductor: the count of PyTorch %s on the CPU (GraphLowering.count_bytes), the sum over the nodes of its scheduler of the buffers that
each reads and writes; products, convolutions and attention are nodes, by operands and results. The count has the whole of a buffer of
which a fused node takes a part (rows of a table); where the parts are less, they stand in brackets, and the ratio is to them.
Forward–backward is both graphs of AOTAutograd with its default partitioner. What an external kernel moves beyond operands and results
is not in the count. Inductor compiles for one thread, since for several it leaves scatters to external kernels.

The same shapes, types and functions on both sides; dropout is on in both.
`

func (r *report) table() string {
	var b strings.Builder
	less, equal, more := 0, 0, 0
	for _, row := range r.Rows {
		for _, p := range []*pair{&row.Forward, row.Both} {
			switch {
			case p == nil:
			case p.Ours < p.Inductor.Distinct:
				less++
			case p.Ours == p.Inductor.Distinct:
				equal++
			default:
				more++
			}
		}
	}
	fmt.Fprintf(&b, "# Moved bytes beside Inductor's, %s\n\n%d programs: %d plans move less, %d the same, %d more.\n", r.Date, len(r.Rows), less, equal, more)
	fmt.Fprintf(&b, explained, r.Torch)
	b.WriteString("\n| program | forward | Inductor | ratio | forward–backward | Inductor | ratio | where ours is more |\n|---|--:|--:|--:|--:|--:|--:|---|\n")
	for _, row := range r.Rows {
		var reasons []string
		fmt.Fprintf(&b, "| %s |", row.Program)
		for i, p := range []*pair{&row.Forward, row.Both} {
			if p == nil {
				b.WriteString(" – | – | – |")
				continue
			}
			ours := units.Bytes(p.Ours)
			if p.Scratch > p.Ours/1000 {
				ours += " (" + units.Bytes(p.Ours-p.Scratch) + ")"
			}
			theirs := units.Bytes(p.Inductor.Bytes)
			if p.Inductor.Distinct < p.Inductor.Bytes {
				theirs += " (" + units.Bytes(p.Inductor.Distinct) + ")"
			}
			fmt.Fprintf(&b, " %s | %s | %.2f |", ours, theirs, float64(p.Ours)/float64(p.Inductor.Distinct))
			if p.Reason != "" {
				reasons = append(reasons, [2]string{"forward: ", "forward–backward: "}[i]+p.Reason)
			}
		}
		fmt.Fprintf(&b, " %s |\n", strings.Join(reasons, "; "))
	}
	if len(r.Times) > 0 {
		r.timesTable(&b)
	}
	return b.String()
}
