// Package emulator runs programs without a GPU: the CUDA C++ of an artifact is
// compiled for the host against the prelude's emulation of a device, and run as
// a process of its own, so that a crash, an endless loop or a leak ends only that.
//
// It is a checker as much as a device. Every access to memory is checked:
// bounds of its buffer, alignment, elements that nothing has written, bytes
// that the plan has given to another buffer meanwhile, data races between the
// threads of a block and between blocks, barriers that not all threads reach,
// asynchronous copies that nothing waits for. Errors are returned as a [Fault]
// with kernel and line. The emulator also counts the distinct bytes that a step reads
// and writes, which is what memory must move, and the bytes of all accesses.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"dmir/base/local"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
)

// Options are the options of a run. The zero value is right for most.
type Options struct {
	Compiler string        // a C++20 compiler; "": $CXX, c++, clang++ or g++, the first there is
	Timeout  time.Duration // for running, without compiling; 0: none
	Cache    string        // folder of compiled programs; "": the user's, or under $DMIR_CACHE
	// Progress is called before the program is compiled, and about twice a second while
	// its steps run.
	Progress func(Progress)
	// Comm connects the devices that run a program together; nil: it is for one.
	Comm collective.Comm
}

// Result is the result of a run.
type Result struct {
	Outputs [][]byte // the elements of the program's results, in their order
	Steps   []StepReport
	Compile time.Duration // 0: it was in the cache
	Run     time.Duration
}

// StepReport is the bytes that a step moved in all of its runs.
type StepReport struct {
	Name      string
	Runs      int64 // how often it ran: in a loop, in a branch
	Read      int64 // distinct bytes read in a run that the step had not itself written before
	Written   int64 // distinct bytes written in a run
	Requested int64 // of all accesses: what the caches see
	Longest   int64 // the accesses of the thread with the most
	Params    []ParamReport
}

// ParamReport is the part of a StepReport for one parameter. Bytes of a buffer that is passed
// twice count for the parameter that touches them first.
type ParamReport struct {
	Name                     string
	Read, Written, Requested int64
}

// ErrForeign reports that a program is not run because it was not compiled
// by this user on this machine: its C++ would run as a process of this user's.
var ErrForeign error = &artifact.ForeignError{Would: "the emulator would run its C++ code with your permissions"}

// Run runs p once on inputs, the elements of its arguments in their order. The
// error is ErrForeign if p is foreign, a *Fault if the program is wrong, a
// *CompileError if its text does not compile, and that of ctx if it ends first.
func Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opt Options) (*Result, error) {
	if p.Foreign {
		return nil, ErrForeign
	}
	if err := checkNames(p); err != nil {
		return nil, err
	}
	if err := collective.Fits(opt.Comm, p); err != nil {
		return nil, err
	}
	if opt.Progress != nil {
		opt.Progress(Progress{Step: -1, Expected: expected(totalWork(p))})
	}
	exe, took, err := build(ctx, p, opt)
	if err != nil {
		return nil, err
	}
	r, err := run(ctx, p, inputs, opt, exe)
	if errors.Is(err, fs.ErrNotExist) { // another process has emptied the cache meanwhile
		if exe, took, err = build(ctx, p, opt); err == nil {
			r, err = run(ctx, p, inputs, opt, exe)
		}
	}
	if err != nil {
		return nil, err
	}
	r.Compile = took
	return r, nil
}

// run runs p once, which the command with arguments of its own was compiled from.
func run(ctx context.Context, p *artifact.Program, inputs [][]byte, opt Options, command ...string) (*Result, error) {
	work, err := local.NewWork()
	if err != nil {
		return nil, err
	}
	defer work.Remove()
	dir := work.Dir
	plan, data, out := filepath.Join(dir, "plan"), filepath.Join(dir, "data"), filepath.Join(dir, "out")
	text, err := planText(p)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(plan, text, 0o600); err != nil {
		return nil, err
	}
	if err := writeData(data, p, inputs); err != nil {
		return nil, err
	}
	start := time.Now()
	reply, err := execute(ctx, opt.Timeout, &stream{progress: watch(p, opt.Progress), exchange: exchanges(p, opt.Comm)}, dir, command[0], append(command[1:], plan, data, out)...)
	if err != nil {
		return nil, err
	}
	if reply.Fault != nil {
		if err := ctx.Err(); err != nil && reply.Fault.Kind == string(Timeout) {
			return nil, err
		}
		return nil, reply.Fault.resolve(p, opt.Timeout)
	}
	r := &Result{Run: time.Since(start)}
	if r.Steps, err = reply.reports(p); err != nil {
		return nil, err
	}
	r.Outputs, err = readOutputs(out, p)
	return r, err
}

// checkNames returns an error for kernels whose names are not C++ identifiers.
func checkNames(p *artifact.Program) error {
	for i, k := range p.Kernels {
		if !validName(k.Name) {
			return fmt.Errorf("kernel %d: %q is not a valid name", i, k.Name)
		}
	}
	return nil
}

func validName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// readOutputs splits the file that the process wrote into the program's results.
func readOutputs(path string, p *artifact.Program) ([][]byte, error) {
	all, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var outputs [][]byte
	for _, b := range p.Outputs {
		n, err := content(&p.Buffers[b])
		if err != nil {
			return nil, err
		}
		if n > int64(len(all)) {
			return nil, errors.New("the emulator has written too few bytes")
		}
		outputs = append(outputs, all[:n:n])
		all = all[n:]
	}
	return outputs, nil
}
