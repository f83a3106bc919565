// Package device defines the interface of devices, which run compiled programs, and
// registers the kinds of devices. Packages below it implement them.
package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
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
	// elements in the order of the buffers' dimensions, little-endian. Errors
	// of the program itself have an artifact.Failure.
	Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts Options) (*Result, error)
}

// Compiler is a device that compiles programs to objects that it keeps. A program with the name of one
// in Object runs without its source.
type Compiler interface {
	Device
	// Prepare compiles p, which took that long, and names the object; "" where it keeps none.
	Prepare(ctx context.Context, p *artifact.Program) (object string, took time.Duration, err error)
	// Toolchain is what compiles: where two programs are equal and this is too, so are their objects.
	Toolchain(ctx context.Context) (string, error)
}

// Options are the choices of a run.
type Options struct {
	// Runs is how often a device that can measure runs the program for its times,
	// after the run that gives the results; 0: at most that run is measured.
	Runs int
	// Cold empties the cache of the program's bytes before every timed run.
	Cold bool
	// Timeout ends a run that takes longer; 0: no limit but the device's own.
	Timeout time.Duration
	// Progress is called by a device that is slow, before all else and about twice a
	// second while steps run.
	Progress func(Progress)
	// Comm connects the devices that run a program together; nil: it is for one. Measured runs take
	// part in collectives too, so that all devices must be given equal Runs.
	Comm collective.Comm
	// OneByOne makes the device wait for each step, so that a fault names its kernel.
	OneByOne bool
}

// Progress is how far a run is on a device that is slow.
type Progress struct {
	Step     string        // that runs; "" before the first
	At, Of   int           // its number from 1, and how many there are
	Done     float64       // share of the work
	Expected time.Duration // of the whole run, by rates that were measured

	FLOP, Bytes                   int64   // of the whole run
	FLOPPerSecond, BytesPerSecond float64 // the rates
}

// Result is the result of a run.
type Result struct {
	Outputs [][]byte     // the bytes of the program's results, in their order
	Steps   []StepResult // in the order of the program's
	// Elapsed is the time of one run: on a GPU the device's own median, without
	// copies to and from it, where that was asked for; else the wall time.
	Elapsed time.Duration
	// Compile is the time of compiling machine code for the device; 0 if the program
	// or a cache held it.
	Compile time.Duration
	// Untimed is why there are no times although they were asked for; empty: there
	// are. The results are right all the same.
	Untimed string
}

// StepResult is what a device measured of one step.
type StepResult struct {
	Name string
	// Runs is how often it ran: other than once in a loop and in a branch.
	Runs int64
	// MeasuredNs is the step's own time, of all its runs; 0: not measured.
	MeasuredNs float64
	// Counted reports that the bytes were counted: distinct ones read in a run, but for those
	// that the step wrote before, and distinct ones written, summed over its runs.
	Counted                 bool
	ReadBytes, WrittenBytes int64
}

// Kind is a kind of devices, and how those of this machine are found.
type Kind struct {
	Name     string // what a device of the kind is asked for by
	Numbered bool   // a machine may have several, of which those behind the first are NAME:1, NAME:2, …
	Checks   bool   // it checks programs and is slow: no program runs on it unasked where there is another
	Host     bool   // it is the processor of this machine, no accelerator
	// Find finds the devices of this machine. Where there is none, the error states
	// what is missing and how to get it.
	Find func() ([]Device, error)
	// Ready is why devices that Find finds run only programs with machine code, since
	// something is missing that compiles them. It is nil where nothing can be missing.
	Ready func() error
	// Why is the reason for the first device where none is asked for; nil: that it
	// is this machine's GPU.
	Why func([]Device) string
}

// chosen is the reason for the first of the devices.
func (k *Kind) chosen(ds []Device) string {
	switch {
	case k.Why != nil:
		return k.Why(ds)
	case len(ds) > 1:
		return "the first of this machine's GPUs"
	}
	return "this machine's GPU"
}

var kinds []Kind

// Register adds kinds of devices, the preferred one first. It is called before any
// other function of the package.
func Register(ks ...Kind) { kinds = append(kinds, ks...) }

// found are the devices of one kind on this machine.
type found struct {
	Kind
	devices []Device
	err     error
}

func look(kinds []Kind) []found {
	var all []found
	for _, k := range kinds {
		ds, err := k.Find()
		all = append(all, found{k, ds, err})
	}
	return all
}

// Devices lists the devices of this machine, the best first.
func Devices() []Device {
	var ds []Device
	for _, f := range look(kinds) {
		ds = append(ds, f.devices...)
	}
	return ds
}

// Default is the first accelerator of this machine, for which programs are compiled
// unasked; nil where it has none.
func Default() Device {
	for _, k := range kinds {
		if k.Checks || k.Host {
			continue
		}
		if ds, _ := k.Find(); len(ds) > 0 {
			return ds[0]
		}
	}
	return nil
}

// Fastest is the device that programs run on unasked, an accelerator or else the
// processor, and why; nil where this machine has none that runs them fast, and what is
// missing.
func Fastest() (d Device, why string) {
	d, why, err := best(look(kinds), false)
	if err != nil {
		return nil, err.Error()
	}
	return d, why
}

// Find returns the device of a name and the reason why it was chosen: "auto" or "" for the
// best there is, "cuda" for the first GPU, "cuda:1" for another, "emulator". An
// error states what is missing and how to get it.
func Find(name string) (d Device, why string, err error) { return choose(name, look(kinds)) }

// FindAmong is Find among some kinds, for a program that has its machine code already if
// compiled.
func FindAmong(kinds []Kind, name string, compiled bool) (d Device, why string, err error) {
	kinds = slices.Clone(kinds)
	for i := range kinds {
		if compiled {
			kinds[i].Ready = nil
		}
	}
	return choose(name, look(kinds))
}

func choose(name string, all []found) (d Device, why string, err error) {
	if name == "" || name == "auto" {
		return best(all, false, true)
	}
	kind, number, numbered := strings.Cut(name, ":")
	i := slices.IndexFunc(all, func(f found) bool { return f.Name == kind })
	if i < 0 {
		return nil, "", unknown(name, all)
	}
	f := all[i]
	if n, err := strconv.Atoi(number); numbered && (!f.Numbered || err != nil || n < 0) {
		return nil, "", unknown(name, all)
	} else if n == 0 {
		name = kind
	}
	var have []string
	for _, d := range f.devices {
		if d.Name() == name {
			return d, "requested", nil
		}
		have = append(have, fmt.Sprintf("%s (%s)", d.Name(), d.Title()))
	}
	if len(have) > 0 {
		return nil, "", fmt.Errorf("there is no %s; this machine has %s", name, strings.Join(have, ", "))
	}
	return nil, "", f.err
}

// best is the first device of the kinds that do not check programs, then of those that
// do, in the order of checks.
func best(all []found, checks ...bool) (d Device, why string, err error) {
	var missing []string
	for _, slow := range checks {
		for _, f := range all {
			if f.Checks != slow {
				continue
			}
			err := f.err
			if err == nil && len(f.devices) > 0 && f.Ready != nil {
				err = f.Ready()
			}
			switch {
			case err != nil:
				missing = append(missing, err.Error())
			case len(f.devices) == 0:
			case slow:
				return f.devices[0], strings.Join(missing, "; "), nil
			default:
				return f.devices[0], f.chosen(f.devices), nil
			}
		}
	}
	return nil, "", errors.New(strings.Join(missing, "; "))
}

func unknown(name string, all []found) error {
	var names []string
	for _, f := range all {
		if names = append(names, f.Name); f.Numbered {
			names = append(names, f.Name+":1 and so on")
		}
	}
	return fmt.Errorf("%q is not a device: the devices are %s and reference", name, strings.Join(names, ", "))
}
