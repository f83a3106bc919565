// Package cli is the command line: one file per subcommand, each a thin layer
// over the packages that do the work. Exit status: 0 all is well, 1 the given
// text has errors or findings, 2 the command failed, 130 it was interrupted.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"dmir/analysis/attribution"
	"dmir/analysis/plan/export"
	"dmir/base/escape"
	"dmir/base/local"
	"dmir/compile/checkpoint"
)

// The exit statuses.
const (
	exitOK       = 0
	exitFindings = 1
	exitFailed   = 2
	exitCanceled = 130 // as shells report SIGINT
)

// grammar is the command line as kong reads it.
type grammar struct {
	Init        initCmd        `cmd:"" help:"Set a repository up: dmir.toml, hooks, a CI job, and a first program or the trace of a model."`
	Fmt         fmtCmd         `cmd:"" help:"Format files in place ('-' is stdin)."`
	Lint        lintCmd        `cmd:"" help:"Report wasted data movement and numerical risks, with their cost; fix them on request."`
	Cost        costCmd        `cmd:"" help:"Show FLOP, bytes and time of every op and function."`
	Diff        diffCmd        `cmd:"" help:"Compare the bytes moved, FLOP and memory of two versions; --budget makes it a gate for CI."`
	Report      reportCmd      `cmd:"" help:"Write the movement graph, roofline, memory plan, mesh, timeline or a difference as a page."`
	Plan        planCmd        `cmd:"" help:"Find how to divide a training step over the devices of a cluster: data, tensor and pipeline parallelism."`
	Run         runCmd         `cmd:"" help:"Run a function and show what each line moved and took."`
	Compile     compileCmd     `cmd:"" help:"Compile a function for GPUs: a file that runs without a compiler, CUDA, PTX or machine code."`
	Opt         optCmd         `cmd:"" help:"Print the program after the passes of the compiler, at any stage."`
	Import      importCmd      `cmd:"" help:"Turn a program of another tool, in StableHLO, MLIR's linalg or ONNX, into one in the data-movement dialect."`
	Explain     explainCmd     `cmd:"" help:"Explain a rule or a diagnostic, by code or name, or list a family of them."`
	Irdl        irdlCmd        `cmd:"" name:"irdl" help:"Print the dialect's definition in MLIR's IRDL."`
	Conformance conformanceCmd `cmd:"" help:"Run the conformance suite of a format that dmir imports."`
	Calibrate   calibrateCmd   `cmd:"" help:"Measure this machine's processor, to predict times for it as --target local."`
	Doctor      doctorCmd      `cmd:"" help:"List the tools that are installed and what each missing tool would add."`
	Lsp         lspCmd         `cmd:"" help:"Serve editors over stdio."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
	Help        helpCmd        `cmd:"" help:"Describe a command; --man writes the manual page."`

	Completion completionCmd `cmd:"" help:"Print the script by which bash, zsh or fish completes commands, flags and values."`
	Complete   completeCmd   `cmd:"" hidden:"" help:"Complete a command line for these scripts."`
	Worker     workerCmd     `cmd:"" hidden:"" help:"Run programs for the language server, over stdio."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// app is the state that all commands share.
type app struct {
	ctx    context.Context
	args   []string
	stdin  io.Reader
	stdout *output
	stderr io.Writer
	parser *kong.Kong
	traces map[string]*attribution.Trace // the descriptions that have been read, by their paths
}

// output is the standard output or error. It keeps the first write error, so that no
// command exits with success if its output is incomplete.
type output struct {
	w     io.Writer
	shown *escape.Filter // before w where that is a terminal
	err   error
}

func newOutput(w io.Writer) *output {
	o := &output{w: w}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		o.shown = escape.NewFilter(w)
	}
	return o
}

func (o *output) Write(b []byte) (int, error) {
	to := o.w
	if o.shown != nil {
		to = o.shown
	}
	n, err := to.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// flush ends a text that stops within a character.
func (o *output) flush() {
	if o.shown != nil {
		o.shown.Flush() // the write error is kept already
	}
}

// exitStatus is an error that only sets the exit status and prints nothing.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the command line and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	rank := rankOf(args)
	if rank != nil {
		stderr = rank.hold(stderr)
	}
	out, errors := newOutput(stdout), newOutput(stderr)
	defer local.RemoveWork()
	defer out.flush()
	defer errors.flush()
	a := &app{ctx: ctx, args: args, stdin: stdin, stdout: out, stderr: errors}

	exited := -1
	var g grammar
	parser, err := kong.New(&g,
		kong.Name("dmir"),
		kong.Description("Analyses, checks, compiles and runs programs in the data-movement dialect of MLIR."),
		kong.Writers(out, errors),
		kong.Vars{"keep": strconv.Itoa(checkpoint.Keep), "version": versionText(), "suites": suites(), "export_formats": strings.Join(export.Names(), ", ")},
		kong.Exit(func(status int) { exited = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.UsageOnError(),
	)
	if err != nil {
		fmt.Fprintln(errors, "dmir:", err)
		return exitFailed
	}
	a.parser = parser
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 || out.err != nil { // --help or --version
		return a.status(nil)
	}
	if err != nil {
		help := commandOf(err) + " --help"
		if info, failed := os.Stat(args[0]); failed == nil && info.Mode().IsRegular() {
			help = "a command stands before the file: dmir cost " + args[0]
		}
		escape.Fprintf(errors, "dmir: error: %v\n  = help: %s\n", err, help)
		return rank.settle(ctx, exitFailed, err)
	}
	err = command.Run(a)
	return rank.settle(ctx, a.status(err), err)
}

// commandOf is the command, with the program, whose arguments err is about.
func commandOf(err error) string {
	if e := (*kong.ParseError)(nil); errors.As(err, &e) && e.Context != nil {
		if node := e.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "dmir"
}

// status prints an error and returns the exit status.
func (a *app) status(err error) int {
	var status exitStatus
	var failed *failure
	var at *placed
	if a.stdout.err != nil {
		err = &failure{"DM603", "<stdout>", reason(a.stdout.err), "the output is incomplete"}
	}
	switch {
	case err == nil:
		return exitOK
	case endedElsewhere(err): // and reported there
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &at):
		at.print(a.stderr, styleOf(a.stderr))
	case errors.As(err, &failed):
		failed.print(a.stderr, styleOf(a.stderr))
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "dmir: interrupted")
		return exitCanceled
	default:
		fmt.Fprintln(a.stderr, "dmir: error:", escape.Lines(err.Error()))
	}
	return exitFailed
}
