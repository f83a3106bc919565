package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/compile/conformance"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/device"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

type runCmd struct {
	targeting
	stepFlags
	deviceFlags
	processFlags
	Device       string   `complete:"device" help:"auto, cuda, cuda:N, cpu, emulator or reference; auto takes the best that is available and prints which." default:"auto"`
	Func         string   `help:"Function to run (default: @main, or the only public one)." placeholder:"NAME"`
	Input        []string `help:"Give an argument its value; the others are random." placeholder:"x=FILE.npy" sep:"none"`
	Output       string   `complete:"dir" help:"Folder for the results, one .npy each, of sparse ones .npz." placeholder:"DIR"`
	Pieces       bool     `help:"Write the piece of each device, NAME.DEVICE.npy, in place of whole results."`
	Seed         uint64   `help:"Seed of the random inputs." default:"0"`
	Runs         int      `help:"Number of timed runs of a .dmx file on a GPU; the median is shown." default:"10"`
	Cold         bool     `help:"Empty the GPU's cache before each timed run."`
	Trust        bool     `help:"Run a .dmx file on the emulator although it was compiled elsewhere: its C++ code runs with your permissions."`
	By           string   `help:"Show what was measured by the lines, functions, modules or name scopes of the Python program that FILE was traced from: line, function, module or scope." enum:",line,function,module,scope" default:"" placeholder:"PART"`
	OutputFormat string   `help:"text or json." enum:"text,json" default:"text"`
	File         string   `arg:"" complete:"file:dmir,mlir,onnx,dmx" help:"The program, or a .dmx file that dmir compile wrote; '-' is stdin."`

	rank     int      // of this process among those that run the program together
	matrices []matrix // that Input names
	sparse   []sparseArgument
}

// Help is what --help adds.
func (runCmd) Help() string {
	return "An input may also name an array of an archive, x=FILE.npz:name, or a matrix in the Matrix Market format,\n" +
		"x=FILE.mtx. A sparse argument takes such a matrix, one of scipy.sparse.save_npz, or a dense array, whatever its\n" +
		"format, and sizes and nnz that are symbols are those of the matrix; or each component: a.values=FILE.npy.\n" +
		"A sparse result is written as scipy.sparse.load_npz reads it. A tuple takes an archive with an\n" +
		"array for each member (w=FILE.npz has w.0, w.1.0 and so on), or a file for each: w.0=FILE.npy.\n" +
		"With --steps the file may hold more of it, one value for each step: an array with one more dimension in\n" +
		"front, or a longer first one. It is read in parts, from its start again where it ends.\n" +
		"A @main without arguments runs as a program: its check.expect_* ops decide the exit status, 1 when one fails.\n" +
		"Without a @main, a file of several public functions without arguments runs all of them so, on the reference executor.\n" +
		"Where devices divide a program, a file name with {device} in it names a file for each, with its piece: x=FILE.{device}.npy.\n" +
		"mpirun -n 4 dmir run FILE starts a process for each device; --devices 4 runs all of them in one.\n" +
		"A program in StableHLO needs no import: dmir run FILE.mlir."
}

// load reads the program. Most of what that allocates lives as long as the program, which ends when it has
// run: a collector that starts at a few megabytes would follow it again and again.
func (c *runCmd) load(a *app) (*source.File, program.Options, *program.Program, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	src, opts, err := c.program(a, c.File)
	if err != nil {
		return nil, opts, nil, err
	}
	p, err := a.analyse(src, opts)
	return src, opts, p, err
}

// pick chooses the function of p that runs.
func (c runCmd) pick(a *app, p *program.Program) (*ir.Module, *ir.Func, error) {
	m, fn, err := driver.Pick(p, c.Func)
	if err != nil {
		if p.HasErrors() { // its errors may be why the function is missing
			printErrors(a.stderr, p.Src, p.Diags)
			return nil, nil, exitStatus(exitFailed)
		}
		return nil, nil, noFunction(p, err, "--func")
	}
	if errs := p.ErrorsOf(m, fn); len(errs) > 0 {
		printErrors(a.stderr, p.Src, errs)
		return nil, nil, exitStatus(exitFailed)
	}
	return m, fn, nil
}

// Run runs one function and prints the bytes and the time of each line.
func (c runCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	if strings.HasSuffix(c.File, ".dmx") || isCompiled(c.File) {
		return c.artifact(a)
	}
	if c.Trust {
		return &failure{"DM612", "--trust", "is for compiled files, and " + c.File + " is a program", "remove it: a program in text form runs nothing but its own ops"}
	}
	if _, _, err := driver.Choose(c.Device); err != nil {
		return &failure{"DM608", "--device " + c.Device, err.Error(), "use --device auto"}
	}
	src, opts, p, err := c.load(a)
	if err != nil {
		return err
	}
	if err := c.bound(p); err != nil {
		return err
	}
	if cases := driver.Cases(p); len(cases) > 1 && c.ofCases() {
		return c.cases(a, p, cases)
	}
	_, fn, err := c.pick(a, p)
	if err != nil {
		return err
	}
	if p, c.matrices, err = a.sized(src, opts, p, fn, c.Input); err != nil {
		return err
	}
	m, fn, err := c.pick(a, p)
	if err != nil {
		return err
	}
	c.sparse = sparseArguments(fn, p.Bind)
	on, err := c.distribution(p, m, fn, fmt.Sprint(c.Seed), fmt.Sprint(c.steps()))
	if err != nil {
		return err
	}
	on.Timeout = c.Timeout
	if c, err = c.together(a, &on); err != nil {
		return err
	}
	if c.steps() > 0 {
		return c.repeat(a, c.steppedProgram(a, p, m, fn, on))
	}
	args := programArgs(p, fn)
	given, pieces, err := c.inputs(fn.Name, args, nil)
	if err != nil {
		return err
	}
	discard, err := c.prepare()
	if err != nil {
		return err
	}
	c.tellInputs(a, args, given, pieces)
	labels := driver.LabelsOf(m, fn, p.Bind)
	for i, arg := range args {
		if d := labels.Outside(i, arg.name, given[i]); d != nil {
			a.warn(src, []diag.Diagnostic{*d})
		}
	}
	bar := newProgress(a.stderr)
	job := driver.Job{Program: p, Module: m, Fn: fn, On: on, Seed: c.Seed, Inputs: byName(args, given), Pieces: piecesByName(args, pieces), Device: c.Device, Progress: a.watch(bar, 1, smallerProgram(p))}
	res, err := driver.Run(a.ctx, job, bar.step)
	bar.done()
	if err != nil {
		discard()
		return c.failed(a, p, err)
	}
	if err := c.save(res); err != nil {
		discard()
		return err
	}
	a.warn(src, res.Warnings)
	f := p.Cost(fn)
	if c.By != "" {
		return c.attribute(a, p, f, res)
	}
	if c.OutputFormat == "json" {
		return c.json(a, p, fn, f, res)
	}
	return c.text(a, p, fn, f, res)
}

// ofCases reports whether no flag is about one function, and none about more than checks.
func (c runCmd) ofCases() bool {
	return c.Func == "" && c.steps() == 0 && len(c.Input) == 0 && c.Output == "" && (c.Device == "auto" || c.Device == "reference")
}

// cases runs the functions of a file of cases, which have no arguments.
func (c runCmd) cases(a *app, p *program.Program, cases []driver.Case) error {
	for _, k := range cases {
		printErrors(a.stderr, p.Src, p.ErrorsOf(k.Module, k.Fn))
	}
	r := conformance.Run(a.ctx, p, cases)
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	if err := a.verdict(r, c.OutputFormat); err != nil {
		return err
	}
	if r.Unsupported > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}

// failed reports why a program did not run to its end. A failed check is an
// error of the program, not of the run.
func (c runCmd) failed(a *app, p *program.Program, err error) error {
	if endedElsewhere(err) {
		return err
	}
	d, ok := driver.Diagnostic(err, p.Src)
	if !ok {
		return err
	}
	if d.Span.Len() == 0 {
		return &failure{d.Code, p.Src.Path, d.Message, d.Help}
	}
	diag.Text(a.stderr, p.Src, d, styleOf(a.stderr))
	if d.Code == interp.CheckFailed {
		return exitStatus(exitFindings)
	}
	return exitStatus(exitFailed)
}

// tellInputs is tellRandom for a run with some inputs; without any, all arguments are random, which is how a program is tried.
func (c runCmd) tellInputs(a *app, args []argument, given map[int]*tensor.Tensor, pieces map[int]driver.PieceReader) {
	if len(c.Input) > 0 {
		c.tellRandom(a, args, func(i int) bool { return given[i] != nil || pieces[i] != nil })
	}
}

// programArgs are the arguments of fn, a tuple as its members.
func programArgs(p *program.Program, fn *ir.Func) []argument {
	flat, _ := flatten.Func(fn)
	var args []argument
	for i, v := range flat.Args {
		arg := argument{name: strings.TrimPrefix(v.Name, "%"), typ: v.Type.String()}
		arg.elem, arg.shape, arg.err = interp.ArgType(flat, i, p.Bind)
		arg.drawn = op.ArgAttr(flat, i, op.InitAttr) != nil || op.ArgAttr(flat, i, op.StddevAttr) != nil
		args = append(args, arg)
	}
	for _, s := range sparseArguments(fn, p.Bind) {
		parts := args[s.first:][:len(s.t.Components())]
		for k := range parts {
			parts[k].of = s.name
			parts[k].drawn = parts[k].drawn || k < len(parts)-1 && op.ArgAttr(flat, s.first, op.PatternAttr) != nil
		}
	}
	return args
}

// steppedProgram is fn for --steps.
func (c runCmd) steppedProgram(a *app, p *program.Program, m *ir.Module, fn *ir.Func, on driver.Distribution) *stepped {
	flat, _ := flatten.Func(fn)
	s := &stepped{name: fn.Name, state: op.State(flat.Op), args: programArgs(p, fn), labels: driver.LabelsOf(m, fn, p.Bind)}
	var inputs map[string]*tensor.Tensor
	s.initial = func(given map[int]*tensor.Tensor) ([]*tensor.Tensor, error) {
		inputs = byName(s.args, given)
		args, err := interp.Inputs(a.ctx, fn, p.Bind, c.Seed, inputs)
		if err != nil {
			return nil, c.failed(a, p, err)
		}
		return args, nil
	}
	s.smaller = smallerProgram(p)
	s.open = func(progress func(device.Progress)) (*driver.Steps, error) {
		return driver.Open(a.ctx, driver.Job{Program: p, Module: m, Fn: fn, On: on, Seed: c.Seed, Inputs: inputs, Pieces: piecesByName(s.args, s.pieces), Device: c.Device, Steps: c.steps(), Progress: progress})
	}
	s.failed = func(err error) error { return c.failed(a, p, err) }
	s.warned = func(ws []diag.Diagnostic) { a.warn(p.Src, ws) }
	return s
}

// smallerProgram is what to run instead of p where that takes too long.
func smallerProgram(p *program.Program) string {
	help := "the reference executor is faster: --device reference"
	if names := p.Symbols(); len(names) > 0 {
		return help + "; or give smaller sizes: --bind " + names[0] + "=8"
	}
	return help + "; or write smaller sizes in the program"
}

// readTensor reads FILE.npy, FILE.npz:name or FILE.mtx as an argument.
func readTensor(path string, arg argument) (*tensor.Tensor, error) {
	if arg.err != nil {
		return nil, &failure{"DM607", path, arg.err.Error(), "only tensors can be read from files"}
	}
	file, entry, archive := path, "", false
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, cannotRead(path, syscall.EISDIR)
	}
	if at := strings.LastIndex(path, ".npz"); at >= 0 {
		file, entry, archive = path[:at+4], strings.TrimPrefix(path[at+4:], ":"), true
	}
	var t *tensor.Tensor
	var err error
	if strings.HasSuffix(path, ".mtx") {
		t, err = denseMatrix(path, arg)
	} else if archive {
		var z *tensor.Archive
		if z, err = tensor.OpenNPZ(file); err == nil {
			defer z.Close()
			if entry == "" {
				entry = arg.name
			}
			t, err = z.Read(entry, arg.elem, arg.shape)
		}
	} else if part := complexPart(arg.name); part >= 0 {
		t, err = tensor.LoadPart(file, arg.elem, arg.shape, part)
	} else {
		t, err = tensor.LoadNPY(file, arg.elem, arg.shape)
	}
	var missing *os.PathError
	switch {
	case errors.As(err, &missing):
		return nil, cannotRead(file, err)
	case err != nil:
		return nil, cannotTake(path, err, fmt.Sprintf("%%%s has type %s", arg.name, arg.typ))
	}
	return t, nil
}

// measured is the time that each op of the function's body took; nil where the device measures none.
func measured(res *driver.Result) map[*ir.Op]int64 {
	if len(res.Ops) == 0 {
		return nil
	}
	ns := map[*ir.Op]int64{}
	for _, t := range res.Ops {
		ns[t.Op] += t.Ns
	}
	return ns
}

func (c runCmd) text(a *app, p *program.Program, fn *ir.Func, f *cost.Func, res *driver.Result) error {
	opts := cost.TableOptions{Color: styleOf(a.stdout).Color, Width: a.width(), Measured: measured(res), Device: res.Device}
	if err := cost.Table(a.stdout, p.Target, []*cost.Func{f}, opts); err != nil {
		return err
	}
	escape.Fprintf(a.stdout, "\nran @%s on %s (%s) in %s, %s of tensors at most\n",
		fn.Name, res.Device, res.Why, units.Time(float64(res.Elapsed.Nanoseconds())), units.Bytes(res.Peak))
	return c.listOutputs(a, res)
}

// listOutputs sums up each result in a line.
func (c runCmd) listOutputs(a *app, res *driver.Result) error {
	width := 0
	for _, o := range res.Outputs {
		width = max(width, len(o.Name))
	}
	for _, o := range res.Outputs {
		if err := a.ctx.Err(); err != nil {
			return err // a summary may take long as well
		}
		to := ""
		if c.Output != "" {
			to = " → " + filepath.Join(c.Output, fileName(o))
		}
		escape.Fprintf(a.stdout, "  %-*s  %s  %s%s\n", width, o.Name, o.Type, o.Summary(), to)
	}
	return nil
}

type jsonRun struct {
	Device    string       `json:"device"`
	Why       string       `json:"why"`
	Func      string       `json:"func"`
	ElapsedNs int64        `json:"elapsed_ns"`
	PeakBytes int64        `json:"peak_bytes"`
	Outputs   []jsonOutput `json:"outputs"`
	Ops       []jsonOpTime `json:"ops"`
	Cost      any          `json:"cost"`
}

type jsonOutput struct {
	Name string   `json:"name"`
	Type string   `json:"type"`
	Min  *float64 `json:"min"` // null where no element is finite
	Max  *float64 `json:"max"`
	Mean *float64 `json:"mean"`
	NaNs int      `json:"nans"`
	Infs int      `json:"infs"`
	// Stored is how many elements a sparse result stores, whose figures these are.
	Stored *int   `json:"stored,omitempty"`
	File   string `json:"file,omitempty"`
}

type jsonOpTime struct {
	Line  int    `json:"line"`
	Name  string `json:"name"`
	Ns    int64  `json:"ns"`
	Count int    `json:"count"`
	Depth int    `json:"depth"`
}

func (c runCmd) json(a *app, p *program.Program, fn *ir.Func, f *cost.Func, res *driver.Result) error {
	out := jsonRun{
		Device: res.Device, Why: res.Why, Func: fn.Name, ElapsedNs: res.Elapsed.Nanoseconds(), PeakBytes: res.Peak,
		Cost: cost.JSON(p.Target, []*cost.Func{f}), Outputs: []jsonOutput{}, Ops: []jsonOpTime{},
	}
	for _, o := range res.Outputs {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		out.Outputs = append(out.Outputs, c.jsonOutput(o))
	}
	for _, t := range res.Ops {
		line, _ := p.Src.Human(t.Op.Head.Start)
		out.Ops = append(out.Ops, jsonOpTime{line, t.Op.Name, t.Ns, t.Count, t.Depth})
	}
	return writeJSON(a.stdout, out)
}

func (c runCmd) jsonOutput(o driver.Output) jsonOutput {
	s := o.Tensor.Stats()
	j := jsonOutput{Name: o.Name, Type: o.Type, Min: finite(s.Min), Max: finite(s.Max), Mean: finite(s.Mean), NaNs: s.NaNs, Infs: s.Infs}
	if o.Sparse != nil {
		n := o.Tensor.Len()
		j.Stored = &n
	}
	if c.Output != "" {
		j.File = filepath.Join(c.Output, fileName(o))
	}
	return j
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
