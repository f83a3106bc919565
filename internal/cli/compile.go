package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/nvrtc"
	"dmir/internal/atomicfile"
	"dmir/internal/local"
	"dmir/syntax/diag"
)

type compileCmd struct {
	targeting
	Func         string   `help:"Function to compile (default: @main, or the only public one)." placeholder:"NAME"`
	Grad         string   `help:"Compile the training step of this function: values and gradients in one." placeholder:"NAME"`
	Arch         []string `help:"Architectures to make machine code for, or none (default: this machine's GPU, else the target's)." placeholder:"sm_90a" sep:","`
	Skip         []string `help:"Passes to leave out." placeholder:"PASS" sep:","`
	Tune         bool     `help:"Measure the tiles of contractions on this machine's GPU first, and keep the fastest for later."`
	Emit         string   `help:"What to write: dmx, or text: cuda, ptx or sass (default: as the name of the output ends)." enum:",dmx,cuda,ptx,sass" default:""`
	Output       string   `short:"o" help:"File to write; without it texts go to stdout and nothing else is written." placeholder:"FILE"`
	OutputFormat string   `help:"What is said of the kernels: text or json." enum:"text,json" default:"text"`
	File         string   `arg:"" help:"The program; '-' is stdin."`
}

// Help is what --help adds.
func (compileCmd) Help() string {
	return "A .dmx file holds machine code, the order of launches and the memory plan; dmir run takes it without compiling.\n" +
		"--emit cuda prints the kernels; with -o NAME.cu it writes them with a C entry point, and NAME.h, to build into other programs.\n" +
		"Several architectures give a file that runs on each of them."
}

// build is one compiled program and its machine code.
type build struct {
	program  *artifact.Program
	code     []*nvrtc.Result
	warnings []diag.Diagnostic // of the program's text
}

// Run compiles one function.
func (c compileCmd) Run(a *app) error {
	for _, name := range c.Skip {
		if _, err := passNamed("--skip", strings.TrimSpace(name)); err != nil {
			return err
		}
	}
	if c.Grad != "" && c.Func != "" && strings.TrimPrefix(c.Grad, "@") != strings.TrimPrefix(c.Func, "@") {
		return &failure{"DM612", "--grad " + c.Grad, "does not go with --func " + c.Func, "name one function"}
	}
	src, opts, err := c.source(a, c.File)
	if err != nil {
		return err
	}
	if err := c.keepInput(); err != nil {
		return err
	}
	if c.Emit, err = emitFor(c.Emit, c.Output); err != nil {
		return err
	}
	if c.Output != "" {
		if err := atomicfile.Check(c.Output); err != nil { // before work that may take long
			return cannotWrite(c.Output, err)
		}
	}
	archs, err := c.archs(opts)
	if err != nil {
		return err
	}
	p, err := a.analyse(src, opts)
	if err != nil {
		return err
	}
	if err := c.bound(p); err != nil {
		return err
	}
	name := c.Func
	if c.Grad != "" {
		name = c.Grad
	}
	m, fn, err := driver.Pick(p, name)
	if err != nil {
		if p.HasErrors() { // the function may be there and be none for that
			printErrors(a.stderr, src, p.Diags)
			return exitStatus(exitFailed)
		}
		return noFunction(p, err, "--func")
	}
	if errs := p.ErrorsOf(m, fn); len(errs) > 0 {
		printErrors(a.stderr, src, errs)
		return exitStatus(exitFailed)
	}
	start := time.Now()
	bar := newProgress(a.stderr)
	if c.Tune {
		if err := c.tune(a, p, m, fn, bar); err != nil {
			bar.done()
			return compileFailed(a, p, err)
		}
	}
	builds, err := c.build(a, p, m, fn, archs, bar)
	bar.done()
	if err != nil {
		return compileFailed(a, p, err)
	}
	for _, w := range builds[0].warnings { // the others are of the same text
		diag.Text(a.stderr, p.Src, w, styleOf(a.stderr))
	}
	return c.write(a, builds, archs, time.Since(start))
}

// keepInput refuses to write the output over the program.
func (c compileCmd) keepInput() error {
	if c.Output == "" {
		return nil
	}
	in, err1 := os.Stat(c.File)
	out, err2 := os.Stat(c.Output)
	if err1 == nil && err2 == nil && os.SameFile(in, out) {
		return &failure{"DM612", "--output " + c.Output, "is the program itself", "name another file"}
	}
	return nil
}

// textEndings are what the names of files end in that hold what --emit asks for.
var textEndings = map[string]string{".dmx": "dmx", ".cu": "cuda", ".ptx": "ptx", ".sass": "sass"}

// emitFor is what is written to the output: what --emit says, else what its name
// says. Where the two say different things, or the name is that of something
// that is not made here, it refuses.
func emitFor(emit, output string) (string, error) {
	ending := filepath.Ext(output)
	switch {
	case output == "" && emit == "dmx":
		return "", &failure{"DM612", "--emit dmx", "has no file to write", "name one with -o"}
	case output == "" || ending == "" || atomicfile.IsStream(output):
		return emit, nil
	}
	named, known := textEndings[ending]
	refuse := func(what, help string) (string, error) {
		return "", &failure{"DM612", "--output " + output, what, help}
	}
	switch {
	case known && emit == "":
		return named, nil
	case known && emit != named:
		return refuse("is the name of what --emit "+named+" writes, and --emit "+emit+" is asked for", "give one of them another value")
	case emit != "":
		return emit, nil
	case ending == ".dmir" || ending == ".mlir":
		return refuse("is the name of a program's text", "dmir opt --emit schedule prints that of the compiled program; to write a compiled file name a .dmx file")
	case ending == ".h":
		return refuse("is the name of the header that is written beside a .cu file", "name a .cu file")
	}
	return refuse("says not what to write: a name ends in .dmx, .cu, .ptx or .sass", "give it such an ending, or say what to write with --emit")
}

// archs are the architectures asked for; none where no machine code is wanted.
func (c compileCmd) archs(opts program.Options) ([]string, error) {
	var list []string
	for _, name := range c.Arch {
		if name = strings.TrimSpace(name); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	switch {
	case len(list) == 1 && list[0] == "none":
		if c.Emit == "ptx" || c.Emit == "sass" {
			return nil, &failure{"DM612", "--arch none", "does not go with --emit " + c.Emit, "name an architecture"}
		}
		return nil, nil
	case len(list) == 0:
		if gpus, err := cuda.Devices(); err == nil && len(gpus) > 0 {
			return []string{gpus[0].Arch()}, nil
		}
		if opts.Target != nil && opts.Target.Arch != "" {
			return []string{opts.Target.Arch}, nil
		}
		return []string{"sm_80"}, nil
	case len(list) > 1 && c.Emit != "" && c.Emit != "dmx":
		return nil, &failure{"DM612", "--arch " + strings.Join(list, ","), "are several architectures, and --emit " + c.Emit + " takes one", "name one architecture"}
	}
	for _, arch := range list {
		if !nvrtc.ValidArch(arch) {
			return nil, &failure{"DM617", "--arch " + arch, fmt.Sprintf("%q is no architecture", arch), "write sm_80, sm_90a or sm_100"}
		}
	}
	return list, nil
}

// build compiles the function: once for all architectures, and once more for
// each that has features of its own where there are several.
func (c compileCmd) build(a *app, p *program.Program, m *ir.Module, fn *ir.Func, archs []string, bar *progress) ([]build, error) {
	bar.stage("planning", 0, len(archs)+1)
	one := func(arch string) (build, error) {
		var b build
		warn := func(d diag.Diagnostic) { b.warnings = append(b.warnings, d) }
		out, err := await(a.ctx, func() (*artifact.Program, error) {
			return driver.Build(a.ctx, m, fn, driver.BuildOptions{Machine: p.Target, Arch: arch, Bind: p.Bind, Grad: c.Grad != "", Skip: c.Skip, Warn: warn})
		})
		if err != nil {
			return build{}, err
		}
		if err := out.Check(); err != nil {
			return build{}, &failure{"DM616", p.Src.Path, "the compiled program breaks a rule: " + firstLineOf(err.Error()), "report it with the file"}
		}
		c.describe(out, fn)
		b.program = out
		return b, nil
	}
	if len(archs) <= 1 {
		arch := strings.Join(archs, "")
		b, err := one(arch)
		if err != nil {
			return nil, err
		}
		if arch != "" && c.Emit != "cuda" {
			bar.stage("code for "+arch, 1, 2)
			err = b.compile(a, arch)
		}
		return []build{b}, err
	}
	portable, err := one("")
	if err != nil {
		return nil, err
	}
	builds := []build{portable}
	for i, arch := range archs {
		bar.stage("code for "+arch, i+1, len(archs)+1)
		own, err := one(arch)
		if err != nil {
			return nil, err
		}
		if own.program.Arch() == "" { // nothing in it is for this architecture alone
			if err := builds[0].compile(a, arch); err != nil {
				return nil, err
			}
			continue
		}
		if err := own.compile(a, arch); err != nil {
			return nil, err
		}
		builds[0].program.Variants = append(builds[0].program.Variants, own.program)
		builds = append(builds, own)
	}
	return builds, nil
}

// compile adds the machine code for an architecture.
func (b *build) compile(a *app, arch string) error {
	r, err := nvrtc.CompileProgram(a.ctx, b.program, arch, nvrtc.Options{LineInfo: true, Jobs: runtime.GOMAXPROCS(0)})
	if err != nil {
		return err
	}
	b.program.Images = append(b.program.Images, r.Image())
	b.code = append(b.code, r)
	return nil
}

// describe adds what a run without the text needs to know.
func (c compileCmd) describe(p *artifact.Program, fn *ir.Func) {
	p.Headers = nvrtc.DeviceHeaders()
	if key, err := local.Key(true); err == nil { // without one the file is taken for a stranger's
		p.Key = key
	}
	if len(p.Outputs) == len(fn.Results) {
		p.Results = driver.OutputNames(fn)
	}
	for i := range p.Inputs { // fn's arguments, and behind them the cotangents that its gradient takes
		var d artifact.Default
		if v, ok := types.NumberOf(interp.ArgAttr(fn, i, interp.InitAttr)); ok {
			d.Init = &v
		}
		if v, ok := types.NumberOf(interp.ArgAttr(fn, i, interp.StddevAttr)); ok {
			d.Stddev = &v
		}
		p.Defaults = append(p.Defaults, d)
	}
}

// compileFailed reports why there is no machine code: in the program's text
// where it is known.
func compileFailed(a *app, p *program.Program, err error) error {
	var edited schedule.Problems // of a plan that no pass made
	if errors.As(err, &edited) {
		printErrors(a.stderr, p.Src, edited)
		return exitStatus(exitFailed)
	}
	var e *pass.Error
	if !errors.As(err, &e) {
		return codeFailed(p.Src.Path, err)
	}
	d := e.Diagnostic()
	if d.Span.Len() == 0 {
		return &failure{e.Code, p.Src.Path, e.Msg, e.Help}
	}
	diag.Text(a.stderr, p.Src, d, styleOf(a.stderr))
	return exitStatus(exitFailed)
}

// codeFailed is what the CUDA compiler's errors are to a person; other errors
// stay what they are.
func codeFailed(path string, err error) error {
	var none *nvrtc.NotFound
	var rejected *nvrtc.CompileError
	var arch *nvrtc.ArchError
	switch {
	case errors.As(err, &arch):
		return &failure{"DM617", "--arch " + arch.Arch, arch.Error(), "dmir doctor lists what the compiler knows"}
	case errors.As(err, &none):
		return &failure{"DM614", path, none.Error(), "dmir doctor --install-nvrtc; or --arch none, for a file without machine code"}
	case errors.As(err, &rejected):
		where := path
		if m, ok := rejected.First(); ok && m.Line > 0 {
			where = fmt.Sprintf("%s:%d", m.File, m.Line)
		}
		return &failure{"DM615", where, "the CUDA compiler rejects the code that was generated: " + rejected.Error(), "report it with the file; dmir compile --emit cuda prints the code"}
	}
	return err
}

func firstLineOf(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// write writes what was asked for and reports the kernels.
func (c compileCmd) write(a *app, builds []build, archs []string, took time.Duration) error {
	main := builds[0]
	switch c.Emit {
	case "", "dmx":
		if c.Output != "" {
			if err := main.program.WriteFile(c.Output); err != nil {
				return cannotWrite(c.Output, err)
			}
		}
	case "cuda":
		return c.writeCUDA(a, main.program)
	default:
		text := main.code[0].PTX
		if c.Emit == "sass" {
			var err error
			text, err = nvrtc.Disassemble(a.ctx, main.code[0].Cubin)
			if errors.Is(err, nvrtc.ErrNoDisassembler) {
				return &failure{"DM614", "--emit sass", err.Error(), nvrtc.DisassemblerHint}
			}
			if err != nil {
				return err
			}
		}
		return c.emit(a, c.Output, text)
	}
	if c.Output != "" && a.isStdout(c.Output) {
		a = &app{ctx: a.ctx, stdin: a.stdin, stdout: &output{w: a.stderr}, stderr: a.stderr}
	}
	if c.OutputFormat == "json" {
		return c.json(a, builds, archs, took)
	}
	return c.text(a, builds, archs, took)
}

// emit writes a text to a file, or to stdout where none is named.
func (c compileCmd) emit(a *app, path, text string) error {
	if path == "" {
		_, err := a.stdout.Write([]byte(text))
		return err
	}
	return write(path, text)
}

// writeCUDA prints the kernels as they were generated, or writes them for other
// programs: a file that needs nothing else, and its header.
func (c compileCmd) writeCUDA(a *app, p *artifact.Program) error {
	if c.Output == "" {
		return c.emit(a, "", p.Source)
	}
	var cu, h strings.Builder
	if err := p.ExportC(&cu); err != nil {
		return err
	}
	if atomicfile.IsStream(c.Output) { // beside which there is nothing
		return write(c.Output, cu.String())
	}
	if err := p.ExportHeader(&h); err != nil {
		return err
	}
	header := strings.TrimSuffix(c.Output, filepath.Ext(c.Output)) + ".h"
	if header == c.Output {
		return &failure{"DM612", "--output " + c.Output, "is the name of the header that is written beside it", "name a .cu file"}
	}
	_, before := os.Lstat(header)
	if err := write(header, h.String()); err != nil {
		return err
	}
	if err := write(c.Output, cu.String()); err != nil {
		if os.IsNotExist(before) { // both or none
			os.Remove(header)
		}
		return err
	}
	return nil
}
