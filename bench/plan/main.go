// Command plan compares the planner with published training steps: it predicts the time of each step with the plan
// that was published, searches the best plan of the same devices, and prints a table. With scale it measures how long
// planning takes for models of up to 96 layers on up to 16,384 devices; with text it prints a step to plan.
//
//	go run ./bench/plan [-run REGEXP] [-search REGEXP] [-update docs/PLANNING.md] [-json FILE] published
//	go run ./bench/plan [-update FILE] [-json FILE] scale
//	go run ./bench/plan [-batch N] text
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"dmir/analysis/plan"
	"dmir/bench/record"
)

//go:embed published.toml
var published []byte

func main() {
	only := flag.String("run", "", "the runs whose name this regular expression matches")
	update := flag.String("update", "", "the page in which to replace the table, instead of printing it")
	file := flag.String("json", "", "a file for the results")
	better := flag.String("search", "", "the runs for which the best plan is searched too, and not only the published one predicted")
	batch := flag.Int("batch", 128, "the sequences of the step that text prints")
	limit := flag.Duration("limit", 10*time.Minute, "the time for the search of one run")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: plan [flags] published|scale|text")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch flag.Arg(0) {
	case "published":
		err = compare(ctx, *only, *update, *file, *limit, *better)
	case "scale":
		err = scale(ctx, *update, *file)
	case "text":
		err = text(*batch)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, only, page, file string, limit time.Duration, better string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	searched, err := regexp.Compile(better)
	if err != nil {
		return err
	}
	set, err := Parse("published.toml", published)
	if err != nil {
		return err
	}
	var rows []Row
	for _, r := range set.Runs {
		if !match.MatchString(r.Name) {
			continue
		}
		began := time.Now()
		row, err := evaluate(ctx, set, r, plan.Search, limit, !searched.MatchString(r.Name))
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s, %.1f s\n", r.Name, row.summary(), time.Since(began).Seconds())
		for _, p := range []*plan.Plan{row.Fixed, row.Best} {
			if p != nil { // what is recorded is read by people
				p.Timeline, p.Values, p.Stages = nil, nil, nil
			}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return fmt.Errorf("no run matches %q", only)
	}
	if err := record.JSON(file, rows); err != nil {
		return err
	}
	text := table(rows)
	if page == "" {
		_, err := fmt.Print(text)
		return err
	}
	return record.Insert(page, begin, end, text)
}
