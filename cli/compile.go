package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

type compileCmd struct {
	targeting
	deviceFlags
	Func         string   `help:"Function to compile (default: @main, or the only public one)." placeholder:"NAME"`
	Grad         string   `help:"Compile the training step of this function: values and gradients in one." placeholder:"NAME"`
	Arch         []string `complete:"arch" help:"Architectures to make machine code for, or machines that have them, or none (default: this machine's GPU, else the target's); x86-64-v2, -v3, -v4 and armv8-a are processors." placeholder:"sm_90a" sep:","`
	Skip         []string `complete:"pass" help:"Passes to leave out." placeholder:"PASS" sep:","`
	Tune         bool     `help:"Measure the tiles of contractions on this machine's GPU first, and store the fastest for later builds."`
	Emit         string   `help:"What to write: dmx, or text: cuda, ptx or sass; for a processor llvm, asm, c-header, or the binaries obj and so (default: as the name of the output ends)." enum:",dmx,cuda,ptx,sass,llvm,asm,obj,so,c-header" default:""`
	Output       string   `short:"o" complete:"file:dmx,cu,ptx,sass,ll,s,o,so,h" help:"File to write; without it, or '-', texts go to stdout and nothing else is written." placeholder:"FILE"`
	OutputFormat string   `help:"Format of the report on the kernels: text or json." enum:"text,json" default:"text"`
	File         string   `arg:"" complete:"file:dmir,mlir,onnx" help:"The program; '-' is stdin."`

	src *source.File // of the program
}

// Help is what --help adds.
func (compileCmd) Help() string {
	return "A .dmx file holds machine code, the order of launches and the memory plan; dmir run takes it without compiling.\n" +
		"--emit cuda prints the kernels; with -o NAME.cu it writes them with a C entry point, and NAME.h, to build into other programs.\n" +
		"--emit so and obj write a shared library or an object for this machine's processor, which --emit c-header declares.\n" +
		"Several architectures give a file that runs on each of them."
}

// Run compiles one function.
func (c compileCmd) Run(a *app) error {
	for _, name := range c.Skip {
		if _, err := passNamed("--skip", name); err != nil {
			return err
		}
	}
	if c.Grad != "" && c.Func != "" && strings.TrimPrefix(c.Grad, "@") != strings.TrimPrefix(c.Func, "@") {
		return &failure{"DM612", "--grad " + c.Grad, "cannot be combined with --func " + c.Func, "name one function"}
	}
	src, opts, err := c.program(a, c.File)
	if err != nil {
		return err
	}
	if err := c.keepInput(); err != nil {
		return err
	}
	if c.Emit, err = emitFor(c.Emit, c.Output); err != nil {
		return err
	}
	if c.Output == "-" { // stdout, as without it
		c.Output = ""
	}
	if c.Output != "" {
		if err := atomicfile.Check(c.Output); err != nil { // before work that may take long
			return cannotWrite(c.Output, err)
		}
	}
	sizes, err := c.sizes()
	if err != nil {
		return err
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
		if p.HasErrors() { // its errors may be why the function is missing
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
		if err := c.tune(a, p, m, fn, archs, bar); err != nil {
			bar.done()
			return compileFailed(a, p, err)
		}
	}
	builds, warnings, err := c.build(a, p, m, fn, archs, sizes, bar)
	bar.done()
	if err != nil {
		return compileFailed(a, p, err)
	}
	a.warn(src, warnings)
	c.src = src
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

// forms are the forms that targets write besides those of CUDA.
func forms() (all []target.Form) {
	for _, t := range target.All() {
		if e, ok := t.(target.Emitter); ok {
			all = append(all, e.Forms()...)
		}
	}
	return all
}

// endings are the kinds of --emit by the endings of file names.
func endings() map[string]string {
	out := map[string]string{".dmx": "dmx", ".cu": "cuda", ".ptx": "ptx", ".sass": "sass"}
	for _, f := range forms() {
		out[f.Ending] = f.Name
	}
	return out
}

// binary reports whether a kind of --emit, besides dmx, is no text.
func binary(emit string) bool {
	return slices.ContainsFunc(forms(), func(f target.Form) bool { return f.Name == emit && f.Binary })
}

// emitFor is the kind of output: the value of --emit, else by the file's name. It
// returns an error if the two differ, or if the name is that of a kind that compile
// does not write.
func emitFor(emit, output string) (string, error) {
	ending := filepath.Ext(output)
	switch {
	case output == "" && emit == "dmx":
		return "", &failure{"DM612", "--emit dmx", "needs an output file", "name one with -o"}
	case (output == "" || output == "-") && binary(emit):
		return "", &failure{"DM612", "--emit " + emit, "is not a text, and needs an output file", "name one with -o"}
	case output == "-" && (emit == "" || emit == "dmx"):
		return "", &failure{"DM612", "--output -", "is stdout, which takes a text", "name a .dmx file, or add --emit cuda, ptx or sass"}
	case output == "" || ending == "" || atomicfile.IsStream(output):
		return emit, nil
	}
	named, known := endings()[ending]
	refuse := func(what, help string) (string, error) {
		return "", &failure{"DM612", "--output " + output, what, help}
	}
	switch {
	case known && emit == "":
		return named, nil
	case known && emit != named:
		return refuse("has the ending of --emit "+named+", but --emit "+emit+" is given", "give one of them another value")
	case emit != "":
		return emit, nil
	case ending == ".dmir" || ending == ".mlir":
		return refuse("is the name of a program's text", "dmir opt --emit schedule prints that of the compiled program; to write a compiled file name a .dmx file")
	}
	return refuse("does not determine what to write: expected a name that ends in "+strings.Join(slices.Sorted(maps.Keys(endings())), ", "), "use such an ending, or add --emit")
}

// archs are the architectures asked for; none where no machine code is wanted.
func (c compileCmd) archs(opts program.Options) ([]string, error) {
	var list []string
	for _, name := range c.Arch {
		name = strings.TrimSpace(name)
		if m, ok := opts.Config.Machine(name); ok && name != "" && m.Arch != "" && !target.For(name).Makes(name) {
			name = m.Arch // a machine stands for what its code is called
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	form := target.Emitting(c.Emit)
	switch {
	case form != nil && len(list) == 0:
		return []string{form.DefaultArch()}, nil
	case form != nil && (len(list) > 1 || !form.Makes(list[0])):
		return nil, &failure{"DM612", "--arch " + strings.Join(list, ","), "cannot be combined with --emit " + c.Emit + ", which is for one processor", "name a processor, such as " + form.DefaultArch()}
	case len(list) == 1 && list[0] == "none":
		if c.Emit == "ptx" || c.Emit == "sass" {
			return nil, &failure{"DM612", "--arch none", "cannot be combined with --emit " + c.Emit, "name an architecture"}
		}
		return nil, nil
	case len(list) == 0:
		arch := driver.DefaultArch(opts.Target)
		if oldest := target.For(arch).DefaultArch(); machine.Capability(arch) < machine.Capability(oldest) {
			return nil, &failure{"DM617", "--target " + opts.Target.Name, fmt.Sprintf("%s is %s; kernels need %s or newer", opts.Target.Title, arch, oldest), "dmir cost, lint and plan take it; compile for a newer one, such as --target a100-80"}
		}
		return []string{arch}, nil
	case len(list) > 1 && c.Emit != "" && c.Emit != "dmx":
		return nil, &failure{"DM612", "--arch " + strings.Join(list, ","), "names several architectures, but --emit " + c.Emit + " takes one", "name one architecture"}
	}
	for _, arch := range list {
		if target.For(arch) != target.For(list[0]) {
			return nil, &failure{"DM612", "--arch " + strings.Join(list, ","), "mixes GPUs and processors", "compile a file for each"}
		}
		if !target.For(arch).Makes(arch) {
			return nil, &failure{"DM617", "--arch " + arch, fmt.Sprintf("%q is not an architecture", arch), "write sm_80, sm_90a or sm_100, or for a processor x86-64-v3, x86-64-v4 or armv8-a"}
		}
		if oldest := target.For(arch).DefaultArch(); machine.Capability(arch) < machine.Capability(oldest) {
			return nil, &failure{"DM617", "--arch " + arch, "kernels need " + oldest + " or newer", "name a newer one; dmir cost, lint and plan take older machines"}
		}
	}
	return list, nil
}

// build compiles the function for archs.
func (c compileCmd) build(a *app, p *program.Program, m *ir.Module, fn *ir.Func, archs []string, sizes map[string]int64, bar *progress) (out []driver.Compiled, warnings []diag.Diagnostic, err error) {
	warn := func(d diag.Diagnostic) { warnings = append(warnings, d) }
	code := c.Emit != "cuda" && target.Emitting(c.Emit) == nil
	out, err = await(a.ctx, func() ([]driver.Compiled, error) {
		o := driver.BuildOptions{Machine: p.Target, Bind: p.Bind, Grad: c.Grad != "", Skip: c.Skip, Warn: warn, Devices: c.count(), Mesh: sizes}
		return driver.CompileFor(a.ctx, m, fn, archs, code, o, bar.stage)
	})
	if err != nil {
		return nil, nil, err // the build may still run in its goroutine
	}
	return out, warnings, nil
}

// compileFailed reports why there is no machine code: in the program's text
// where it is known.
func compileFailed(a *app, p *program.Program, err error) error {
	var invalid *driver.InvalidError
	if errors.As(err, &invalid) {
		return &failure{"DM616", p.Src.Path, "the compiled program is invalid: " + firstLineOf(err.Error()), "report it with the file"}
	}
	var edited schedule.Problems // of a plan that was written by hand
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

// codeFailed converts failures of a tool chain to diagnostics; it returns other
// errors unchanged.
func codeFailed(path string, err error) error {
	f, _ := artifact.FailureOf(err)
	switch f.Reason {
	case artifact.UnknownArch:
		return &failure{"DM617", "--arch " + f.Arch, f.Err.Error(), f.Help}
	case artifact.MissingTool:
		return &failure{"DM614", path, f.Err.Error(), f.Help}
	case artifact.Rejected:
		where := path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		return &failure{"DM615", where, f.Compiler + " rejects the code that was generated: " + f.Err.Error(), "report it with the file; dmir compile --emit cuda prints the code"}
	}
	return err
}

func firstLineOf(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// write writes the requested output and reports the kernels.
func (c compileCmd) write(a *app, builds []driver.Compiled, archs []string, took time.Duration) error {
	main := builds[0]
	if main.Program.Stages != nil && c.Emit != "" && c.Emit != "dmx" {
		return c.emitStages(a, main, archs)
	}
	switch c.Emit {
	case "", "dmx":
		if c.Output != "" {
			if err := main.Program.WriteFile(c.Output); err != nil {
				return cannotWrite(c.Output, err)
			}
		}
	case "cuda":
		return c.writeCUDA(a, main.Program)
	default:
		text, err := c.emitted(a, main, archs[0])
		if err != nil {
			return err
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

// emitted is the form of b that was asked for, for an architecture.
func (c compileCmd) emitted(a *app, b driver.Compiled, arch string) (text string, err error) {
	switch form := target.Emitting(c.Emit); {
	case c.Emit == "cuda":
		return b.Program.Source, nil
	case form != nil:
		var out []byte
		out, err = form.Emit(a.ctx, b.Program, c.Emit, arch)
		text = string(out)
	case c.Emit == "sass":
		text, err = target.For(arch).Disassemble(a.ctx, b.Code[0].Image)
	default:
		text, err = b.Code[0].Assembly(a.ctx)
	}
	if err != nil {
		return "", codeFailed("--emit "+c.Emit, err)
	}
	return text, nil
}

// remarks are how a line of text begins that says what follows, by form.
var remarks = map[string]string{"cuda": "//", "ptx": "//", "sass": "//", "llvm": ";", "asm": "#"}

// emitStages writes the texts of all stages, one behind the other.
func (c compileCmd) emitStages(a *app, b driver.Compiled, archs []string) error {
	mark, isText := remarks[c.Emit]
	if !isText || c.Emit == "cuda" && c.Output != "" {
		return &failure{"DM612", "--emit " + c.Emit, fmt.Sprintf("is of one function, and @%s is in %s along %s, which have one each", b.Program.Name,
			diag.Count(len(b.Program.Stages), "stage"), b.Program.Divided.Pipeline), "write a .dmx file, which holds all; dmir run runs it"}
	}
	arch := ""
	if len(archs) > 0 {
		arch = archs[0]
	}
	var all strings.Builder
	for i, s := range b.Parts() {
		text, err := c.emitted(a, s, arch)
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%s @%s\n%s\n", mark, escape.Comment(s.Program.Name), strings.TrimRight(text, "\n"))
		if i < len(b.Program.Stages)-1 {
			all.WriteByte('\n')
		}
	}
	return c.emit(a, c.Output, all.String())
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
	if err := target.For(p.Arch()).Export(p, &cu, &h); err != nil {
		return err
	}
	if atomicfile.IsStream(c.Output) { // which has no header beside it
		return write(c.Output, cu.String())
	}
	header := strings.TrimSuffix(c.Output, filepath.Ext(c.Output)) + ".h"
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
