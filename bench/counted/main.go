// Command counted runs the programs of the suite on the emulator and writes
// the predicted and the counted bytes of each step.
//
//	go run ./bench/counted [-random 100] [-json bench/results/counted-DATE.json] [-md bench/results/counted-DATE.md]
//
// It exits with status 1 if bytes differ and no known term explains it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"dmir/analysis/units"
	"dmir/bench/record"
	"dmir/testkit/counted"
)

// report is the JSON file.
type report struct {
	Date     string        `json:"date"`
	Command  string        `json:"command"`
	Programs int           `json:"programs"`
	Steps    int           `json:"steps"`
	Equal    int           `json:"equal_steps"`
	Named    int           `json:"named_steps"`   // that differ by a known term
	Unnamed  int           `json:"unnamed_steps"` // that differ by no known term
	Failed   []string      `json:"failed,omitempty"`
	Rows     []counted.Row `json:"rows"`
}

func main() {
	log.SetFlags(0)
	random := flag.Int("random", 100, "random programs")
	root := flag.String("root", ".", "the repository")
	asJSON := flag.String("json", "", "write all rows to this file")
	asText := flag.String("md", "", "write the table to this file")
	flag.Parse()
	programs, err := counted.Suite(*root, *random)
	if err != nil {
		log.Fatal(err)
	}
	r := report{Date: time.Now().UTC().Format(time.DateOnly), Command: "go run ./bench/counted " + strings.Join(os.Args[1:], " "), Programs: len(programs)}
	var problems []string
	for i, p := range programs {
		fmt.Fprintf(os.Stderr, "\r%d/%d %-60s", i+1, len(programs), p.Name)
		rows, err := counted.Steps(context.Background(), p)
		if err != nil {
			r.Failed = append(r.Failed, err.Error())
			continue
		}
		for _, row := range rows {
			switch problem := row.Problem(); {
			case problem != "":
				r.Unnamed++
				problems = append(problems, problem)
			case row.Equal():
				r.Equal++
			default:
				r.Named++
			}
		}
		r.Steps += len(rows)
		r.Rows = append(r.Rows, rows...)
	}
	fmt.Fprintln(os.Stderr)
	text := table(&r)
	fmt.Print(text)
	if err := errors.Join(record.Table(*asText, text), record.JSON(*asJSON, r)); err != nil {
		log.Fatal(err)
	}
	for _, p := range append(problems, r.Failed...) {
		log.Print(p)
	}
	if len(problems)+len(r.Failed) > 0 {
		os.Exit(1)
	}
}

// sum is the total bytes of the rows with one name.
type sum struct {
	name               string
	steps, differ      int
	predicted, counted int64
}

// grouped sums rows by name, in order of first occurrence.
func grouped(rows []counted.Row, name func(*counted.Row) string) []*sum {
	var out []*sum
	of := map[string]*sum{}
	for i := range rows {
		row := &rows[i]
		n := name(row)
		if n == "" {
			continue
		}
		s := of[n]
		if s == nil {
			s = &sum{name: n}
			of[n] = s
			out = append(out, s)
		}
		s.steps++
		s.predicted += row.Predicted()
		s.counted += row.Counted()
		if !row.Equal() {
			s.differ++
		}
	}
	return out
}

// table writes the report as Markdown: the programs, the random ones as a group, and
// the terms by which bytes differ.
func table(r *report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Predicted and counted bytes, %s\n\n", r.Date)
	fmt.Fprintf(&b, "%d steps of %d programs: %d equal to the byte, %d differ by a known term, %d by no known term.\n\n", r.Steps, r.Programs, r.Equal, r.Named, r.Unnamed)
	b.WriteString("| program | steps | differ | predicted | counted | counted / predicted |\n|---|--:|--:|--:|--:|--:|\n")
	for _, s := range grouped(r.Rows, func(row *counted.Row) string {
		if strings.HasPrefix(row.Program, "random/") {
			return "random programs"
		}
		return row.Program
	}) {
		line(&b, s)
	}
	b.WriteString("\nTerms:\n\n| term | steps | differ | predicted | counted | counted / predicted |\n|---|--:|--:|--:|--:|--:|\n")
	terms := grouped(r.Rows, func(row *counted.Row) string {
		if t := counted.Find(row.Term); t != nil {
			return strings.ReplaceAll(t.Text, "%d", "n")
		}
		return row.Term
	})
	slices.SortStableFunc(terms, func(a, b *sum) int { return cmp.Compare(b.counted-b.predicted, a.counted-a.predicted) })
	for _, s := range terms {
		line(&b, s)
	}
	return b.String()
}

func line(b *strings.Builder, s *sum) {
	ratio := "–"
	if s.predicted > 0 {
		ratio = fmt.Sprintf("%.3f", float64(s.counted)/float64(s.predicted))
	}
	fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s |\n", s.name, s.steps, s.differ, units.Bytes(s.predicted), units.Bytes(s.counted), ratio)
}
