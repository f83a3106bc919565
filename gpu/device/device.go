// Package device is what a program runs on, whichever that is: a GPU, or the
// emulator where there is none. It finds the devices of this machine and says
// why one was chosen.
package device

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/emulator"
)

// Device runs programs.
type Device interface {
	// Name is what the device is asked for by: "cuda", "cuda:1", "emulator".
	Name() string
	// Title is what people call it: "NVIDIA H200".
	Title() string
	// Arch is the architecture to compile a program for: "sm_90a".
	Arch() string
	// Run runs the program on inputs, the bytes of its arguments in their order:
	// elements in the order of the buffers' dimensions, little-endian. What is
	// wrong with the program itself comes as a *cuda.Fault, an *emulator.Fault or
	// a *nvrtc.CompileError.
	Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts Options) (*Result, error)
}

// Options say how to run.
type Options struct {
	// Runs is how often a device that can measure runs the program for its times,
	// after the run that gives the results; 0: it measures nothing.
	Runs int
	// Cold has every timed run find a cache that holds nothing of the program's.
	Cold bool
	// Timeout ends a run that takes longer; 0: no limit but the device's own.
	Timeout time.Duration
	// OneByOne has a GPU wait for each step, so that a fault names its kernel.
	OneByOne bool
}

// Result is what came of a run.
type Result struct {
	Outputs [][]byte     // the bytes of the program's results, in their order
	Steps   []StepResult // in the order of the program's
	// Elapsed is the time of one run: on a GPU the device's own median, without
	// copies to and from it, where that was asked for; else the wall time.
	Elapsed time.Duration
	// Compile is the time that went into machine code, which the program did not
	// hold for the device; 0 where it did, or where that was in a cache.
	Compile time.Duration
	// Untimed is why there are no times although they were asked for; empty: there
	// are. The results are right all the same.
	Untimed string
}

// StepResult is what a device saw of one step.
type StepResult struct {
	Name string
	// Runs is how often it ran: other than once in a loop and in a branch.
	Runs int64
	// MeasuredNs is the step's own time, of all its runs; 0: not measured.
	MeasuredNs float64
	// Counted says that the bytes were: distinct ones read in a run, but for those
	// that the step wrote before, and distinct ones written, summed over its runs.
	Counted                 bool
	ReadBytes, WrittenBytes int64
}

// Devices lists the devices of this machine, the best first.
func Devices() []Device {
	found, _ := devices()
	return found
}

// devices also says why there are no others.
func devices() (found []Device, missing []string) {
	gpus, err := cuda.Devices()
	if err == nil && len(gpus) == 0 {
		err = errors.New("the NVIDIA driver finds no GPU")
	}
	if err != nil {
		missing = append(missing, err.Error())
	}
	for _, d := range gpus {
		found = append(found, &gpu{d})
	}
	if err := emulator.Check(); err == nil {
		found = append(found, emulated{})
	} else {
		missing = append(missing, err.Error())
	}
	return found, missing
}

// Find gives the device of a name, and why it was taken: "auto" or "" for the
// best there is, "cuda" for the first GPU, "cuda:1" for another, "emulator". An
// error says what is missing and how to get it.
func Find(name string) (d Device, why string, err error) {
	found, missing := devices()
	return choose(name, found, missing)
}

func choose(name string, found []Device, missing []string) (d Device, why string, err error) {
	lacks := strings.Join(missing, "; ")
	if name == "" || name == "auto" {
		if len(found) == 0 {
			return nil, "", errors.New(lacks)
		}
		if found[0].Name() == "emulator" {
			return found[0], missing[0], nil
		}
		if len(found) > 1 && found[1].Name() != "emulator" {
			return found[0], "the first of this machine's GPUs", nil
		}
		return found[0], "this machine's GPU", nil
	}
	kind, number, numbered := strings.Cut(name, ":")
	if n, err := strconv.Atoi(number); numbered && (kind != "cuda" || err != nil || n < 0) {
		return nil, "", unknown(name)
	}
	if kind != "cuda" && kind != "emulator" {
		return nil, "", unknown(name)
	}
	if name == "cuda:0" {
		name = "cuda"
	}
	var have []string
	for _, d := range found {
		if d.Name() == name {
			return d, "asked for", nil
		}
		if strings.HasPrefix(d.Name(), kind) {
			have = append(have, fmt.Sprintf("%s (%s)", d.Name(), d.Title()))
		}
	}
	if len(have) > 0 {
		return nil, "", fmt.Errorf("there is no %s; this machine has %s", name, strings.Join(have, ", "))
	}
	for _, m := range missing { // each kind has one reason to be missing
		if strings.Contains(m, "NVIDIA") == (kind == "cuda") {
			return nil, "", errors.New(m)
		}
	}
	return nil, "", errors.New(lacks)
}

func unknown(name string) error {
	return fmt.Errorf("%q is no device: there are cuda, cuda:1 and so on, emulator and reference", name)
}

// within bounds ctx by the options' time.
func within(ctx context.Context, opts Options) (context.Context, context.CancelFunc) {
	if opts.Timeout > 0 {
		return context.WithTimeout(ctx, opts.Timeout)
	}
	return context.WithCancel(ctx)
}
