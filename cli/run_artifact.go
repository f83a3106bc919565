package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/base/sandbox"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/gpu/device"
	"dmir/syntax/diag"
)

// artifact runs a compiled file.
func (c runCmd) artifact(a *app) error {
	if c.Func != "" || len(c.Bind) > 0 || c.Target != "" || c.F32Products != "" {
		return &failure{"DM612", c.File, "is already compiled: --func, --bind, --target and --f32-products apply to programs", "remove them, or compile the program again with dmir compile"}
	}
	p, err := artifact.ReadFile(c.File)
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return cannotRead(c.File, err)
	case err != nil:
		return &failure{"DM616", c.File, strings.TrimPrefix(err.Error(), c.File+" "), "compile it again with dmir compile -o FILE.dmx"}
	}
	if c.Device == "reference" {
		return &failure{"DM608", "--device reference", "runs programs, not compiled files", "run the .dmir file, or use --device auto"}
	}
	d, why, err := driver.DeviceFor(c.Device, p)
	if err != nil {
		return &failure{"DM608", "--device " + c.Device, err.Error(), "dmir doctor lists what is available"}
	}
	if c.Trust {
		// A process that is not the command itself, such as a test, cannot be started again as one.
		if _, launched := collective.Launched(); p.Foreign && !launched && sandbox.Active() && slices.Equal(a.args, os.Args[1:]) {
			return c.confined(a)
		}
		p.Trust()
	}
	on, err := c.compiledDistribution(p)
	if err != nil {
		return err
	}
	if c, err = c.together(a, &on); err != nil {
		return err
	}
	if c.sparse, err = compiledSparse(p, c.File); err != nil {
		return err
	}
	if c.matrices, err = readMatrices(c.Input, c.sparse); err != nil {
		return err
	}
	if c.steps() > 0 {
		return c.repeat(a, c.steppedArtifact(a, p, d, why, on))
	}
	given, pieces, err := c.inputs(p.Name, artifactArgs(p), nil)
	if err != nil {
		return err
	}
	inputs, err := c.artifactInputs(p, given)
	if err != nil {
		return err
	}
	discard, err := c.prepare()
	if err != nil {
		return err
	}
	c.tellInputs(a, artifactArgs(p), given, pieces)
	bar := newProgress(a.stderr)
	o := device.Options{Runs: c.Runs, Cold: c.Cold, Progress: a.watch(bar, 1, smallerArtifact(p))}
	var res *driver.Result
	if p.Divided == nil {
		res, err = driver.RunArtifact(a.ctx, d, p, inputs, o)
	} else {
		res, err = driver.RunTogether(a.ctx, d, p, inputs, pieces, on, o)
	}
	bar.done()
	if err == nil {
		if p.Divided == nil {
			res.Why = why
		}
		err = c.artifactResult(a, p, res)
	}
	if err != nil {
		discard()
	}
	return deviceFailed(a, c.File, err)
}

// deviceFailed reports why a compiled program did not run to its end.
func deviceFailed(a *app, path string, err error) error {
	if endedElsewhere(err) {
		return err
	}
	var count *driver.CountError
	if errors.As(err, &count) {
		return &failure{"DM830", path, count.Msg, diag.Find("DM830").Help}
	}
	var failed *driver.CheckError
	if errors.As(err, &failed) {
		where := path
		if failed.Line > 0 {
			where = fmt.Sprintf("%s:%d", failed.File, failed.Line)
		}
		(&failure{interp.CheckFailed, where, failed.Msg, diag.Find(interp.CheckFailed).Help}).print(a.stderr, styleOf(a.stderr))
		return exitStatus(exitFindings)
	}
	switch f, _ := artifact.FailureOf(err); f.Reason {
	case artifact.Untrusted:
		return &failure{"DM620", path, err.Error(), "compile its program here, or run it on a GPU; if you trust who made the file: dmir run --trust"}
	case artifact.OutOfMemory:
		return &failure{"DM705", path, f.Err.Error(), diag.Find("DM705").Help}
	case artifact.Faulted:
		return &failure{"DM618", path, f.Err.Error(), f.Help}
	}
	return codeFailed(path, err)
}

// artifactArgs are the arguments of a compiled program.
func artifactArgs(p *artifact.Program) []argument {
	var args []argument
	for i, b := range p.Inputs[:p.Given()] {
		buf := &p.Buffers[b]
		if p.Divided != nil && p.Divided.Inputs[i] != nil {
			whole := *buf
			whole.Shape = p.Divided.Inputs[i].Shape
			buf = &whole
		}
		arg := argument{name: buf.Name, typ: tensorText(buf)}
		arg.elem, arg.shape, arg.err = bufferType(buf)
		arg.drawn = i < len(p.Defaults) && p.Defaults[i] != artifact.Default{}
		args = append(args, arg)
	}
	stored, _ := compiledSparse(p, p.File) // what is wrong with them is reported before
	for _, s := range stored {
		parts := args[s.first:][:len(s.t.Components())]
		for k := range parts {
			parts[k].of = s.name
		}
	}
	return args
}

// artifactInputs are the values of the program's arguments: those given, and seeded
// random numbers.
func (c runCmd) artifactInputs(p *artifact.Program, given map[int]*tensor.Tensor) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	patterns, err := c.patterns(given)
	if err != nil {
		return nil, err
	}
	for i, arg := range artifactArgs(p) {
		if arg.err != nil {
			return nil, arg.err
		}
		t := given[i]
		if t == nil {
			t = patterns[i]
		}
		if t == nil && i < len(p.Defaults) && p.Defaults[i].Array != nil {
			var err error
			if t, err = c.initialArray(p.Defaults[i].Array, arg); err != nil {
				return nil, err
			}
		}
		if t == nil {
			t = defaultInput(p, i, arg.elem, arg.shape, c.Seed)
		}
		out = append(out, t)
	}
	return out, c.padded(given, out)
}

// patterns are the components that say which elements of the sparse arguments are stored, those that are not given, by the number
// of the argument.
func (c runCmd) patterns(given map[int]*tensor.Tensor) (map[int]*tensor.Tensor, error) {
	out := map[int]*tensor.Tensor{}
	for _, s := range c.sparse {
		x := &sparse.Tensor{Type: s.t, Parts: make([]*tensor.Tensor, len(s.t.Components()))}
		for k := range x.Parts {
			x.Parts[k] = given[s.first+k]
		}
		if err := x.Complete(s.drawn, tensor.NewStream(c.Seed, uint64(s.first))); err != nil {
			return nil, badStorage(s, err)
		}
		for k := range x.Parts[:len(x.Parts)-1] {
			out[s.first+k] = x.Parts[k]
		}
	}
	return out, nil
}

// padded makes the padding of random values of sparse arguments 0, and checks that of those that are given.
func (c runCmd) padded(given map[int]*tensor.Tensor, args []*tensor.Tensor) error {
	for _, s := range c.sparse {
		x := &sparse.Tensor{Type: s.t, Parts: args[s.first:][:len(s.t.Components())]}
		if given[s.first+len(x.Parts)-1] == nil {
			x.Pad()
		} else if err := x.Check(); err != nil {
			return badStorage(s, err)
		}
	}
	return nil
}

// badStorage is why a sparse argument is not stored as its type says.
func badStorage(s sparseArgument, err error) error {
	var bad *sparse.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &failure{"DM712", "--input " + s.name, bad.Error(), cmp.Or(bad.Help, diag.Find("DM712").Help)}
}

// initialArray is what an argument begins with: an array in a file in the folder of the compiled program.
func (c runCmd) initialArray(from *artifact.Array, arg argument) (*tensor.Tensor, error) {
	f := &types.File{Path: from.Path, Name: from.Name, Arrays: tensor.In(filepath.Dir(c.File))}
	failed := func(err error) error {
		return &failure{types.MissingArray, c.File, fmt.Sprintf("%%%s begins with an array in a file: %v", arg.name, err), "put " + f.Path + " beside the compiled program, or give --input " + arg.name + "=FILE.npy"}
	}
	if err := f.Check(); err != nil {
		return nil, failed(err)
	}
	t, err := tensor.Of(types.InFile(tensorType(arg), f))
	if err != nil {
		return nil, failed(err)
	}
	return t, nil
}

// tensorType is the type of an argument.
func tensorType(arg argument) *types.Tensor {
	t := &types.Tensor{Elem: arg.elem}
	for _, n := range arg.shape {
		t.Shape = append(t.Shape, dim.Const(int64(n)))
	}
	return t
}

// steppedArtifact is p for --steps on d.
func (c runCmd) steppedArtifact(a *app, p *artifact.Program, d device.Device, why string, on driver.Distribution) *stepped {
	s := &stepped{name: p.Name, state: p.State, args: artifactArgs(p), warned: func([]diag.Diagnostic) {}}
	s.initial = func(given map[int]*tensor.Tensor) ([]*tensor.Tensor, error) { return c.artifactInputs(p, given) }
	s.smaller = smallerArtifact(p)
	s.open = func(progress func(device.Progress)) (*driver.Steps, error) {
		if p.Divided != nil {
			return driver.OpenTogether(a.ctx, d, p, on, s.pieces, progress)
		}
		run, err := driver.OpenArtifact(a.ctx, d, p, progress)
		if err == nil {
			run.Why = why
		}
		return run, err
	}
	s.failed = func(err error) error { return deviceFailed(a, c.File, err) }
	return s
}

// smallerArtifact is what to run instead of p where that takes too long.
func smallerArtifact(p *artifact.Program) string {
	file := "FILE.dmir"
	if p.File != "" {
		file = p.File
	}
	return "the reference executor is faster: dmir run --device reference " + file + "; or compile the program with smaller sizes, with --bind where they are symbols"
}

// defaultInput is an argument that is not given: the same numbers that the
// reference executor gives it for the same seed.
func defaultInput(p *artifact.Program, i int, elem types.Elem, shape []int, seed uint64) *tensor.Tensor {
	t := tensor.Random(elem, shape, seed, uint64(i))
	if i >= len(p.Defaults) {
		return t
	}
	if d := p.Defaults[i]; d.Init != nil {
		for k := range t.Len() {
			t.SetFloat(k, *d.Init)
		}
	}
	if d := p.Defaults[i]; d.Stddev != nil && elem.IsFloat() {
		for k := range t.Len() {
			t.SetFloat(k, t.Float(k)**d.Stddev)
		}
	}
	return t
}

// bufferType is a buffer's type in host memory.
func bufferType(b *artifact.Buffer) (elem types.Elem, shape []int, err error) {
	elem, ok := types.ElemByName(b.Elem)
	for _, d := range b.Shape {
		shape = append(shape, int(d))
	}
	if _, fits := tensor.Count(shape); !ok || !fits {
		return elem, nil, fmt.Errorf("%s is too large for this machine", tensorText(b))
	}
	return elem, shape, nil
}

func tensorText(b *artifact.Buffer) string {
	var t strings.Builder
	t.WriteString("tensor<")
	for _, d := range b.Shape {
		fmt.Fprintf(&t, "%dx", d)
	}
	return t.String() + b.Elem + ">"
}

// fileNames gives results names that are files' in the folder for them: a compiled
// file must not choose where results go.
func fileNames(outs []driver.Output) {
	used := map[string]bool{}
	for i := range outs {
		name := escape.FileName(outs[i].Name)
		if used[name] || name == "" {
			name = fmt.Sprintf("result%d", i)
		}
		used[name] = true
		outs[i].Name = name
	}
}

// artifactResult saves the results and prints what each step took and moved.
func (c runCmd) artifactResult(a *app, p *artifact.Program, res *driver.Result) error {
	res.Outputs = driver.Together(p, res.Outputs)
	fileNames(res.Outputs)
	if err := c.save(res); err != nil {
		return err
	}
	if res.Untimed != "" {
		escape.Fprintf(a.stderr, "dmir: the run produced results but no times: %s\n", res.Untimed)
	}
	if c.OutputFormat == "json" {
		return c.artifactJSON(a, p, res)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tFLOP\tMOVED\tCOUNTED\tTIME\tMEASURED")
	for _, s := range res.Kernels {
		counted, measured := "", ""
		if s.Counted {
			counted = units.Bytes(s.CountedReadBytes + s.CountedWrittenBytes)
		}
		if s.MeasuredNs > 0 {
			measured = units.Time(s.MeasuredNs)
		}
		if s.Decision {
			escape.Fprintf(w, "%s\t\t\t\t\t\n", repeated(s.Name, s.Runs))
			continue
		}
		escape.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", repeated(s.Name, s.Runs), units.FLOP(s.FLOP), units.Bytes(s.ReadBytes+s.WrittenBytes), counted, units.Time(s.PredictedNs), measured)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	compiled := ""
	if res.Compile > 0 {
		compiled = ", compiled in " + units.Time(float64(res.Compile.Round(time.Microsecond).Nanoseconds()))
	}
	escape.Fprintf(a.stdout, "\nran @%s on %s (%s) in %s, %s of memory%s\n", p.Name, res.Title, res.Why,
		units.Time(float64(res.Elapsed.Nanoseconds())), units.Bytes(p.Workspace), compiled)
	return c.listOutputs(a, res)
}

type jsonArtifactRun struct {
	Device    string             `json:"device"`
	Why       string             `json:"why"`
	Func      string             `json:"func"`
	ElapsedNs int64              `json:"elapsed_ns"`
	PeakBytes int64              `json:"peak_bytes"`
	Untimed   string             `json:"untimed,omitempty"` // why there are no measured times although they were asked for
	Outputs   []jsonOutput       `json:"outputs"`
	Steps     []jsonArtifactStep `json:"steps"`
}

type jsonArtifactStep struct {
	Name                string   `json:"name"`
	Runs                *int64   `json:"runs,omitempty"` // how often it ran, where that is not once; figures are those of all runs
	FLOP                int64    `json:"flop"`
	ReadBytes           int64    `json:"read_bytes"`
	WrittenBytes        int64    `json:"written_bytes"`
	TimeNs              float64  `json:"time_ns"`
	CountedReadBytes    *int64   `json:"counted_read_bytes"` // null where the device does not count
	CountedWrittenBytes *int64   `json:"counted_written_bytes"`
	MeasuredNs          *float64 `json:"measured_ns"` // null where it does not measure
}

func (c runCmd) artifactJSON(a *app, p *artifact.Program, res *driver.Result) error {
	out := jsonArtifactRun{
		Device: res.Device, Why: res.Why, Func: p.Name, ElapsedNs: res.Elapsed.Nanoseconds(), PeakBytes: p.Workspace, Untimed: res.Untimed,
		Outputs: []jsonOutput{}, Steps: []jsonArtifactStep{},
	}
	for _, o := range res.Outputs {
		out.Outputs = append(out.Outputs, c.jsonOutput(o))
	}
	for _, s := range res.Kernels {
		j := jsonArtifactStep{Name: s.Name, FLOP: s.FLOP, ReadBytes: s.ReadBytes, WrittenBytes: s.WrittenBytes, TimeNs: s.PredictedNs}
		if s.Runs != 1 {
			j.Runs = &s.Runs
		}
		if s.Counted {
			j.CountedReadBytes, j.CountedWrittenBytes = &s.CountedReadBytes, &s.CountedWrittenBytes
		}
		if s.MeasuredNs > 0 {
			j.MeasuredNs = &s.MeasuredNs
		}
		out.Steps = append(out.Steps, j)
	}
	return writeJSON(a.stdout, out)
}
