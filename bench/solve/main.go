// Command solve compares the search of package solve with the integer linear program of Alpa (Zheng et al., OSDI
// 2022, section 4.2) of the same costs, which HiGHS solves on one core: the values of both answers, the bounds
// that they prove, and the times that they take.
//
//	go run ./bench/solve [-run REGEXP] [-limit DURATION] [-json FILE] [-table FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/solve"
	"dmir/analysis/plan/solve/solvetest"
	"dmir/analysis/program"
	"dmir/base/milp"
	"dmir/bench/models"
	"dmir/bench/record"
	"dmir/gpu/highs"
	"dmir/syntax/source"
)

// An instance is a problem to solve.
type instance struct {
	name    string
	problem *solve.Problem
	options solve.Options
}

// planned are problems of the planner itself: GPT models of Narayanan et al. (arXiv 2104.04473, Table 1) in one setting each.
func planned() ([]instance, error) {
	var out []instance
	for _, c := range []struct {
		name    string
		config  models.Config
		devices int
		fix     plan.Setting
	}{
		{"GPT 1.7B, data 4 × tensor 1", models.Config{Layers: 24, Hidden: 2304, Heads: 24, Vocabulary: 51200, Sequence: 2048, Batch: 512}, 4, plan.Setting{Data: 4, Tensor: 1, Pipe: 1, Microbatches: 16}},
		{"GPT 1.7B, data 2 × tensor 2", models.Config{Layers: 24, Hidden: 2304, Heads: 24, Vocabulary: 51200, Sequence: 2048, Batch: 512}, 4, plan.Setting{Data: 2, Tensor: 2, Pipe: 1, Microbatches: 16}},
		{"GPT 145.6B, 192 × 8, pipe 8", models.Config{Layers: 80, Hidden: 12288, Heads: 96, Vocabulary: 51200, Sequence: 2048, Batch: 2304}, 1536, plan.Setting{Pipe: 8, Data: 24, Tensor: 8, Microbatches: 96}},
	} {
		text, err := models.GPT(c.config)
		if err != nil {
			return nil, err
		}
		cluster, _ := machine.Lookup("dgx-a100")
		m := program.Load(source.New(c.name, text), program.Options{}).Modules[0]
		problems, err := plan.Problems(m, m.Func("train"), plan.Options{Machine: cluster, Devices: c.devices, Fix: c.fix})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		out = append(out, instance{c.name, problems[0], solve.Options{}})
	}
	return out, nil
}

// instances are problems of the planner, and others of the shape of a training step of a transformer on meshes of
// one, two and three axes.
func instances() ([]instance, error) {
	out, err := planned()
	if err != nil {
		return nil, err
	}
	for _, s := range []struct {
		name  string
		shape solvetest.Shape
	}{
		{"1 axis", solvetest.Shape{Layers: 3, Axes: 1, Vary: 0.1}},
		{"1 axis, memory", solvetest.Shape{Layers: 3, Axes: 1, Memory: 0.27, Vary: 0.1}},
		{"1 axis, memory, hidden", solvetest.Shape{Layers: 3, Axes: 1, Memory: 0.27, Hidden: true, Vary: 0.1}},
		{"1 axis, 24 layers", solvetest.Shape{Layers: 24, Axes: 1, Vary: 0.1}},
		{"2 axes, 1 layer", solvetest.Shape{Layers: 1, Axes: 2, Vary: 0.1}},
		{"2 axes", solvetest.Shape{Layers: 3, Axes: 2, Vary: 0.1}},
		{"2 axes, memory", solvetest.Shape{Layers: 3, Axes: 2, Memory: 0.08, Vary: 0.1}},
		{"2 axes, hidden", solvetest.Shape{Layers: 3, Axes: 2, Hidden: true, Vary: 0.1}},
		{"2 axes, memory, hidden", solvetest.Shape{Layers: 3, Axes: 2, Memory: 0.08, Hidden: true, Vary: 0.1}},
		{"2 axes, costs that differ", solvetest.Shape{Layers: 3, Axes: 2, Memory: 0.08, Hidden: true, Vary: 0.5}},
		{"3 axes, 1 layer", solvetest.Shape{Layers: 1, Axes: 3, Vary: 0.1}},
	} {
		out = append(out, instance{s.name, solvetest.Layered(s.shape), solve.Options{}})
	}
	return out, nil
}

// A row is what was measured of an instance. Gaps are relative to the value.
type row struct {
	Name      string
	Variables int
	Choices   int
	Edges     int
	Value     float64
	Gap       float64
	Seconds   float64 // the median of several solutions
	Method    string
	Columns   int     // of the integer linear program
	ILPValue  float64 // 0: none was found in time
	ILPGap    float64
	ILP       float64 // seconds
	InTime    bool    // it was solved within the limit
	Ratio     float64 // the value by that of the program
}

func main() {
	only := flag.String("run", "", "the instances whose name this regular expression matches")
	limit := flag.Duration("limit", time.Minute, "the time for each integer linear program")
	file := flag.String("json", "", "a file for the results")
	page := flag.String("table", "", "a file for the table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, *only, *limit, *file, *page); err != nil {
		fmt.Fprintln(os.Stderr, "solve:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, only string, limit time.Duration, file, page string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	lib, err := highs.Find()
	if err != nil {
		return err
	}
	all, err := instances()
	if err != nil {
		return err
	}
	var rows []row
	for _, in := range all {
		if !match.MatchString(in.name) {
			continue
		}
		r, err := measure(ctx, in, lib, limit)
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		fmt.Fprintf(os.Stderr, "%+v\n", r)
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return fmt.Errorf("no instance matches %q", only)
	}
	if err := record.JSON(file, rows); err != nil {
		return err
	}
	text := table(rows, lib.Version, limit)
	fmt.Print(text)
	return record.Table(page, text)
}

// times is how often an instance is solved to measure the time.
const times = 5

func measure(ctx context.Context, in instance, solver milp.Solver, limit time.Duration) (row, error) {
	p := in.problem
	r := row{Name: in.name, Variables: len(p.Unary), Edges: len(p.Edges)}
	for _, c := range p.Unary {
		r.Choices += len(c)
	}
	var seconds []float64
	for range times {
		began := time.Now()
		s, err := solve.Solve(ctx, p, in.options)
		if err != nil {
			return r, err
		}
		seconds = append(seconds, time.Since(began).Seconds())
		r.Value, r.Gap, r.Method = s.Value, s.Gap(), s.Method
	}
	slices.Sort(seconds)
	r.Seconds = seconds[times/2]
	began := time.Now()
	ilp := solve.NewILP(p)
	r.Columns = len(ilp.Program.Cost)
	got, err := solver.Solve(ctx, ilp.Program, milp.Limits{Time: limit, Gap: 1e-9})
	if err != nil {
		return r, err
	}
	r.ILP = time.Since(began).Seconds()
	r.InTime = got.Optimal
	if got.X != nil {
		r.ILPValue = p.Value(ilp.Choice(got.X))
		r.ILPGap = (r.ILPValue - got.Bound*ilp.Unit) / r.ILPValue
		r.Ratio = r.Value / r.ILPValue
	}
	// Neither proves what the other disproves: the solver's tolerance is 1e-6.
	if got.Bound*ilp.Unit > r.Value*(1+1e-6) {
		return r, fmt.Errorf("the solver's bound %v is above the value %v", got.Bound*ilp.Unit, r.Value)
	}
	if bound := r.Value * (1 - r.Gap); got.X != nil && bound > r.ILPValue*(1+1e-9) {
		return r, fmt.Errorf("the bound %v is above the solver's value %v", bound, r.ILPValue)
	}
	return r, nil
}

func table(rows []row, version string, limit time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s on one core with %s for each integer linear program. Ratio: the value by that of the program.\n\n",
		time.Now().Format(time.DateOnly), version, limit)
	b.WriteString("| instance | variables | choices | edges | value | gap | time | by | columns | ILP value | ILP gap | ILP time | ratio | times as long |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		value, gap, ratio := "none", "–", "–"
		if r.ILPValue > 0 {
			value, gap, ratio = fmt.Sprintf("%.6g", r.ILPValue), percent(r.ILPGap), fmt.Sprintf("%.4f", r.Ratio)
		}
		more := ""
		if !r.InTime {
			more = "> "
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.6g | %s | %s | %s | %d | %s | %s | %s%s | %s | %s%.0f |\n", r.Name, r.Variables, r.Choices, r.Edges,
			r.Value, percent(r.Gap), duration(r.Seconds), r.Method, r.Columns, value, gap, more, duration(r.ILP), ratio, more, r.ILP/r.Seconds)
	}
	return b.String()
}

func percent(x float64) string {
	if x <= 1e-9 {
		return "0"
	}
	if x > 0.1 {
		return fmt.Sprintf("%.0f %%", 100*x)
	}
	return fmt.Sprintf("%.2g %%", 100*x)
}

func duration(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g s", seconds)
}
