package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/attribution"
	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/present"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	panel "dmir/analysis/report"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/gpu/highs"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

type planCmd struct {
	targeting
	Devices string        `help:"Number of devices; a range of powers of two, 8..4096, or a list, 8,16,24, to compare (default: those of the program's mesh, else dmir.toml's)." placeholder:"N"`
	Func    string        `help:"The training step (default: the only one)." placeholder:"NAME"`
	Batch   string        `help:"The arguments with the samples of a step, %x,%labels (default: found)." placeholder:"NAMES"`
	Memory  string        `help:"Memory of a device that a plan may use (default: dmir.toml's, else all)." placeholder:"SIZE"`
	Top     int           `help:"How many plans to show." default:"10" placeholder:"N"`
	Limit   time.Duration `help:"Give the best plan that is found in this time, with the bound of all that were not looked at." placeholder:"TIME"`
	Explain bool          `help:"Show the stages of the best plan, and why the next one takes longer, term by term."`
	settingFlags
	Write        bool   `help:"Write the best plan into the program: its mesh, shardings, stages and schedule." xor:"write"`
	Apply        int    `help:"Write plan N into the program." placeholder:"N" xor:"write"`
	Diff         bool   `help:"Change nothing; print what --write, or --apply, would change."`
	Output       string `short:"o" complete:"file:dmir" help:"Write the program with the plan to this file instead; '-' is stdout." placeholder:"FILE"`
	Export       string `complete:"export" help:"Write the best plan, or that of --apply, for other tools, to -o FILE or stdout: ${export_formats}. A program that states a plan has its own written." placeholder:"FORMAT"`
	HTML         string `complete:"file:html" help:"Write the plans, and charts of several numbers of devices, as a page; '-' is stdout." placeholder:"FILE"`
	OutputFormat string `help:"text or json." enum:"text,json" default:"text"`
	File         string `arg:"" complete:"file:dmir,mlir" help:"The program; '-' is stdin, and the program with a plan goes to stdout."`
}

// settingFlags fix parts of a plan, which are then not searched.
type settingFlags struct {
	Data         int    `help:"Fix the number of devices that the batch is divided over." placeholder:"N"`
	Context      int    `help:"Fix the number of devices that the sequence is divided over." placeholder:"N"`
	Expert       int    `help:"Fix the number of devices that experts are divided over." placeholder:"N"`
	Tensor       int    `help:"Fix the number of devices that layers are divided over." placeholder:"N"`
	Pipe         int    `help:"Fix the number of places of the pipeline." placeholder:"N"`
	Chunks       int    `help:"Fix the number of stages at each place of the pipeline." placeholder:"N"`
	Microbatches int    `help:"Fix the number of micro-batches." placeholder:"N"`
	Schedule     string `help:"Fix the schedule of the pipeline: gpipe, 1f1b, interleaved, zb-h1 or zb-v." enum:",gpipe,1f1b,interleaved,zb-h1,zb-v" default:"" placeholder:"NAME"`
	Recompute    string `help:"Fix what the backward pass computes again: none, selective or full." enum:",none,selective,full" default:"" placeholder:"WHAT"`
	States       string `help:"Fix where optimizer states lie: whole, beside their parameters, or split over the data axis; parameters: these too, gathered for each pass (ZeRO-3)." enum:",whole,split,parameters" default:"" placeholder:"HOW"`
}

func (f settingFlags) setting() (plan.Setting, error) {
	set := plan.Setting(f)
	for _, n := range append(set.Axes(), plan.Axis{Name: "chunks", Size: f.Chunks}, plan.Axis{Name: "microbatches", Size: f.Microbatches}) {
		if n.Size < 0 {
			return plan.Setting{}, &failure{"DM612", fmt.Sprintf("--%s %d", n.Name, n.Size), "is no number", "write a number from 1, or leave it out to search for the best"}
		}
	}
	return set, nil
}

// Help is what --help adds.
func (planCmd) Help() string {
	return "Searches data, tensor, sequence, expert, optimizer-state and pipeline parallelism for a training step, and states how far\n" +
		"the best plan found may be from the best there is. Nothing runs, and nothing is written without --write, --apply or -o.\n" +
		"Several numbers of devices are compared: dmir plan --devices 8..4096 --target dgx-h100 step.dmir\n" +
		"Exit status: 0 done, 2 there is no plan, or the program has errors or cannot be read."
}

// Run finds plans and shows or writes them.
func (c planCmd) Run(a *app) error {
	counts, err := c.counts()
	if err == nil {
		err = c.sensible(len(counts) > 1)
	}
	if err != nil {
		return err
	}
	format, err := c.format()
	if err != nil {
		return err
	}
	asked := request.Asked{Func: c.Func}
	for name := range strings.SplitSeq(c.Batch, ",") {
		if name = strings.TrimSpace(name); name != "" {
			asked.Batch = append(asked.Batch, name)
		}
	}
	if c.Memory != "" {
		if asked.Memory, err = request.ParseMemory(c.Memory); err != nil {
			return &failure{"DM612", "--memory " + c.Memory, err.Error(), `write --memory "70 GB"`}
		}
	}
	p, err := c.load(a, c.File)
	if err != nil {
		return err
	}
	if err := c.bound(p); err != nil {
		return err
	}
	if format != nil {
		if p, err = c.dialect(a, p); err != nil {
			return err
		}
	}
	if c.Target != "" {
		asked.Machine = p.Target
	}
	var r *request.Request
	requests := make([]*request.Request, len(counts))
	for i, n := range counts {
		if asked.Devices = n; r == nil || n > 0 {
			if r, err = c.request(a, p, asked); err != nil {
				return err
			}
		}
		requests[i] = r
	}
	if c.own(r) {
		return c.exported(a, format, p, r, nil, nil)
	}
	points, err := c.search(a, requests)
	if err != nil {
		return err
	}
	if err := c.noPlan(a, p, r, points); err != nil {
		return err
	}
	if c.writes() {
		if len(points[0].Result.Plans) < c.Apply {
			there := diag.CountAre(len(points[0].Result.Plans), "plan")
			return &failure{"DM612", fmt.Sprintf("--apply %d", c.Apply), "there is no such plan: " + there + " shown", "name one of them"}
		}
	}
	if err := c.show(a, p, r.Options.Machine, points); err != nil {
		return err
	}
	switch {
	case format != nil:
		return c.exportFound(a, format, p, r, points[0].Result)
	case c.writes():
		return c.put(a, p, points[0].Result)
	}
	return nil
}

// counts are the numbers of --devices; one 0 where it is not given.
func (c planCmd) counts() ([]int, error) {
	bad := func(why, help string) error { return &failure{"DM612", "--devices " + c.Devices, why, help} }
	number := func(s string) int {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 1<<24 {
			return 0
		}
		return n
	}
	if c.Devices == "" {
		return []int{0}, nil
	}
	if from, to, ok := strings.Cut(c.Devices, ".."); ok {
		first, last := number(from), number(to)
		if first == 0 || last < first {
			return nil, bad("is no range", "write --devices 8..4096")
		}
		var out []int
		for n := first; n <= last; n *= 2 {
			out = append(out, n)
		}
		return out, nil
	}
	var out []int
	for s := range strings.SplitSeq(c.Devices, ",") {
		n := number(s)
		switch {
		case n == 0:
			return nil, bad("is no number of devices", "write --devices 64, --devices 8..4096 or --devices 8,16,24")
		case len(out) > 0 && n <= out[len(out)-1]:
			return nil, bad("is not in order", "write the numbers from the least to the largest")
		}
		out = append(out, n)
	}
	return out, nil
}

// writes reports whether the program with a plan is written or compared.
func (c planCmd) writes() bool {
	return c.Write || c.Apply > 0 || c.Diff || c.Output != "" || c.Export != ""
}

// sensible returns an error for flags that cannot be combined; several numbers of devices are a sweep.
func (c planCmd) sensible(sweep bool) error {
	switch {
	case c.Apply < 0:
		return &failure{"DM612", fmt.Sprintf("--apply %d", c.Apply), "is no plan", "plans are counted from 1"}
	case c.Top < 1:
		return &failure{"DM612", fmt.Sprintf("--top %d", c.Top), "is no number of plans", "write --top 10"}
	case sweep && c.writes():
		return &failure{"DM612", "--devices " + c.Devices, "compares several numbers of devices, and a plan is for one", "name one to write its plan"}
	case sweep && c.Explain:
		return &failure{"DM612", "--explain", "compares plans for one number of devices", "name one with --devices"}
	case c.Diff && c.Output != "":
		return &failure{"DM612", "--diff", "writes nothing, and --output names a file", "remove one of them"}
	case c.HTML == "-" && (c.Output == "-" || c.Diff || c.Export != "" && c.Output == ""):
		return &failure{"DM612", "--html -", "is stdout, where the program goes", "name a file"}
	case c.HTML != "" && c.HTML != "-" && sameFile(c.HTML, c.File):
		return &failure{"DM612", "--html " + c.HTML, "is the program itself", "name another file"}
	case c.Write && c.Output != "" || c.Apply > 0 && c.Output != "" && sameFile(c.Output, c.File):
		return &failure{
			"DM612", "--output " + c.Output, "cannot be combined with --write: one of them names the file",
			"remove one of them; --apply N chooses the plan",
		}
	}
	return nil
}

// request is what the planner is asked for.
func (c planCmd) request(a *app, p *program.Program, asked request.Asked) (*request.Request, error) {
	fix, err := c.setting()
	if err != nil {
		return nil, err
	}
	if c.Limit < 0 {
		return nil, &failure{"DM612", "--limit " + c.Limit.String(), "is no time", "write --limit 30s, or leave it out"}
	}
	r, err := request.New(p, asked)
	switch {
	case errors.Is(err, request.ErrDevices):
		return nil, &failure{"DM612", "--devices", "is not given, and " + err.Error(), "write --devices 64"}
	case err != nil:
		return nil, c.failed(a, p, r, err)
	}
	r.Options.Top, r.Options.Fix, r.Options.Limit = max(c.Top, c.Apply), fix, c.Limit
	if lib, err := highs.Find(); err == nil {
		r.Options.MILP = lib
	}
	return r, nil
}

// search finds the plans of all requests. Only of one the error is returned.
func (c planCmd) search(a *app, requests []*request.Request) ([]present.Point, error) {
	bar := newProgress(a.stderr)
	defer bar.done()
	const parts = 1000
	points := make([]present.Point, len(requests))
	for i, r := range requests {
		what := fmt.Sprintf("planning for %d devices", r.Options.Devices)
		r.Options.Progress = func(done, total int) {
			bar.stage(what, i*parts+done*parts/max(total, 1), len(requests)*parts)
		}
		bar.stage(what, i*parts, len(requests)*parts)
		result, err := await(a.ctx, func() (*plan.Result, error) { return r.Search(a.ctx) })
		if a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		}
		var none *plan.Error
		if err != nil && !errors.As(err, &none) {
			return nil, err
		}
		points[i] = present.Point{Devices: r.Options.Devices, Result: result, Err: err}
	}
	return points, nil
}

// noPlan is an error if none of the points has a plan, reported in the program.
func (c planCmd) noPlan(a *app, p *program.Program, r *request.Request, points []present.Point) error {
	for _, at := range points {
		if at.Err == nil && len(at.Result.Plans) > 0 {
			return nil
		}
	}
	if err := points[len(points)-1].Err; err != nil {
		return c.failed(a, p, r, err)
	}
	return c.failed(a, p, r, &plan.Error{Code: plan.CodeDevices, Msg: "there is no plan for so many devices", Help: "ask for another number"})
}

// failed reports why there is no plan, in the program where that is known. Of a text that was made of the file that a person named,
// a model or the description of a trace, that file is named, and the line of Python that the op was traced from.
func (c planCmd) failed(a *app, p *program.Program, r *request.Request, err error) error {
	var d diag.Diagnostic
	ok := false
	if r != nil {
		d, ok = r.Error(err)
	} else {
		d, ok = request.Diagnostic(err, nil)
	}
	switch {
	case !ok:
		return noFunction(p, err, "--func")
	case isModel(c.File, nil) || p.Src.Path != c.File && c.File != "-":
		return &failure{d.Code, c.File, c.tracedFrom(a, err) + d.Message, d.Help}
	case d.Span.Len() == 0:
		return &failure{d.Code, p.Src.Path, d.Message, d.Help}
	}
	diag.Text(a.stderr, p.Src, d, styleOf(a.stderr))
	return exitStatus(exitFailed)
}

// tracedFrom is "model.py:14: " where err is at an op that was traced from there, else "".
func (c planCmd) tracedFrom(a *app, err error) string {
	var e *plan.Error
	if !errors.As(err, &e) || e.At == nil || e.At.Loc == nil {
		return ""
	}
	sources, err := a.sources(c.File, nil)
	if err != nil {
		return ""
	}
	place := sources.Place(attribution.Costs(e.At.Loc)[0])
	if place.File == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", place.File.Path, place.Frame.Line)
}

// show prints the plans: not where stdout has the program.
func (c planCmd) show(a *app, p *program.Program, m *machine.Machine, points []present.Point) error {
	if c.HTML != "" {
		if err := c.page(a, p, points); err != nil || c.HTML == "-" {
			return err
		}
	}
	if c.Diff || c.Output == "-" || (c.File == "-" || c.Export != "") && c.writes() && c.Output == "" {
		return nil
	}
	if c.OutputFormat == "json" {
		if len(points) == 1 {
			return writeJSON(a.stdout, points[0].Result)
		}
		return writeJSON(a.stdout, map[string]any{"points": points})
	}
	var b bytes.Buffer
	sources, err := a.sources(c.File, nil)
	if err != nil {
		return err
	}
	o := present.Options{Color: styleOf(a.stdout).Color, Width: a.width(), Place: sources.Line(p)}
	if len(points) > 1 {
		present.Sweep(&b, m, points, o)
	} else {
		present.Table(&b, m, points[0].Result, o)
		if c.Explain {
			present.Explain(&b, points[0].Result, o)
		}
		switch {
		case c.writes():
		case p.Imported:
			escape.Fprintf(&b, "\n--export FORMAT writes it for another tool, and dmir import makes a text of the program that it can be written into\n")
		default:
			escape.Fprintf(&b, "\n--diff shows it in the program, --write writes it there, --apply N writes plan N, -o FILE a copy\n")
		}
	}
	_, err = a.stdout.Write(b.Bytes())
	return err
}

// page writes the panel of the plans.
func (c planCmd) page(a *app, p *program.Program, points []present.Point) error {
	html, err := await(a.ctx, func() ([]byte, error) {
		var results []*plan.Result
		for _, at := range points {
			if at.Err == nil {
				results = append(results, at.Result)
			}
		}
		d, err := panel.BuildPlans(p.Src.Path, results...)
		if err != nil {
			return nil, err
		}
		return panel.HTML(d)
	})
	if err != nil {
		return err
	}
	fill := func(w io.Writer) error {
		_, err := w.Write(html)
		return err
	}
	if c.HTML == "-" {
		return fill(a.stdout)
	}
	if err := atomicfile.WriteFile(c.HTML, 0o644, fill); err != nil {
		return cannotWrite(c.HTML, err)
	}
	fmt.Fprintln(a.stderr, c.HTML)
	return nil
}

// put writes the program with the plan that was chosen, or prints what it changes.
func (c planCmd) put(a *app, p *program.Program, r *plan.Result) error {
	n := max(c.Apply, 1)
	chosen := r.Plans[n-1]
	if p.Imported {
		return &failure{"DM612", c.File, "is no text in the dialect, so no plan can be written into it", "dmir import makes one of it"}
	}
	check, err := c.planned(a, p, r, chosen)
	if err != nil {
		return err
	}
	was, text := p.Src.Text(), check.Src.Text()
	path := c.Output
	if path == "" {
		path = c.File
	}
	switch {
	case c.Diff:
		return a.diff(p.Src.Path, was, text)
	case path == "-":
		_, err = io.WriteString(a.stdout, text)
		return err
	case c.Output == "":
		now, err := a.read(path)
		if err != nil {
			return err
		}
		if now.Text() != was {
			return &failure{"DM603", path, "has changed while the plan was searched; nothing is written", "run the command again"}
		}
	}
	if err := write(path, text); err != nil {
		return err
	}
	escape.Fprintf(a.stderr, "%s: plan %d: %s\n", path, n, present.Sentence(chosen))
	return nil
}

// planned is p with a plan of r in its text.
func (c planCmd) planned(a *app, p *program.Program, r *plan.Result, chosen *plan.Plan) (*program.Program, error) {
	text, err := await(a.ctx, func() (string, error) { return r.Write(chosen) })
	if err != nil {
		return nil, c.failed(a, p, nil, err)
	}
	with, err := a.analyse(source.New(p.Src.Path, text), optionsOf(p))
	if err != nil {
		return nil, err
	}
	if with.HasErrors() {
		printErrors(a.stderr, with.Src, with.Diags)
		return nil, &failure{plan.CodeStated, p.Src.Path, "the program with the plan has errors; nothing is written", "this is a bug in dmir: report it with the file"}
	}
	return with, nil
}
