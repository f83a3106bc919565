package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/compile/rates"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/calibrate"
	"dmir/gpu/device"
)

type calibrateCmd struct {
	Device  string        `default:"cpu" complete:"device" help:"What to measure: cpu, or a GPU as cuda or cuda:1." placeholder:"DEVICE"`
	Base    string        `complete:"machine" help:"The machine with the data sheet of the GPU (default: by the card's name)." placeholder:"MACHINE"`
	Timeout time.Duration `help:"End the measurement of a GPU after this time; what is left stays as the data sheet has it." placeholder:"TIME"`
	Print   bool          `help:"Print the machine instead of writing it."`
	Output  string        `short:"o" complete:"file:toml" help:"File to write (default: local.toml, of a GPU local-cuda.toml, in dmir's folder of the user's configuration)." placeholder:"FILE"`
}

// Help is what --help adds.
func (calibrateCmd) Help() string {
	return "Measures for some seconds, with all threads: bandwidths of the memory and of each cache, peak rates, the latency of\n" +
		"launches, and what compiled kernels reach. Other programs should rest. --target local then predicts for this machine:\n" +
		"where the bytes that a kernel moves fit a cache, its time is that of the cache. It needs clang 14 or newer, and no GPU.\n" +
		"With --device cuda it measures the GPU for about a minute: launches, loads, the memory, the level-2 cache, arithmetic,\n" +
		"products and attention; --target local-cuda then predicts for it. Sizes, peaks, clock and links are the data sheet's.\n" +
		"Exit status: 0 measured, 2 it could not measure or write."
}

// measure and rate are replaced in tests.
var (
	measure = calibrate.Measure
	rate    = rates.Measure
	find    = device.Find
	ofCard  = rates.Accelerator
)

// Run measures this machine's processor or GPU, and writes it as the machine local or local-cuda.
func (c calibrateCmd) Run(a *app) error {
	card := c.Device != "cpu"
	name := machine.LocalName
	if card {
		name = machine.LocalCard
	}
	if !card && c.Base != "" {
		return &failure{"DM612", "--base", "names the data sheet of a GPU, and a processor is measured", "add --device cuda, or remove it"}
	}
	if !card && c.Timeout != 0 || c.Timeout < 0 {
		return &failure{"DM612", "--timeout", "is a time for the measurement of a GPU", "add --device cuda, or remove it"}
	}
	if c.Print && c.Output != "" {
		return &failure{"DM612", "--print", "does not go with --output", "give one of them"}
	}
	path := c.Output
	if path == "" && !c.Print {
		var err error
		if path, err = machine.LocalFile(name); err != nil {
			help := "name a file with -o, or set HOME"
			if os.Getenv("XDG_CONFIG_HOME") != "" {
				help = "name a file with -o, or give XDG_CONFIG_HOME an absolute path"
			}
			return &failure{"DM603", name + ".toml", reason(err), help}
		}
	}
	if c.Output != "" {
		if err := atomicfile.Check(path); err != nil {
			return cannotWrite(path, err)
		}
	}
	var m *machine.Machine
	var err error
	if card {
		m, err = c.measuredCard(a)
	} else if m, err = c.measured(a); err != nil {
		err = cannotMeasure(err)
	}
	if err != nil {
		return err
	}
	if c.Print {
		_, err := io.WriteString(a.stdout, m.TOML())
		return err
	}
	if c.Output == "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return cannotWrite(path, err)
		}
	}
	if err := write(path, m.TOML()); err != nil {
		return err
	}
	if !a.isStdout(path) {
		c.report(a, m, path)
	}
	return nil
}

// measuredCard is the machine that a GPU of this one is.
func (c calibrateCmd) measuredCard(a *app) (*machine.Machine, error) {
	d, _, err := find(c.Device)
	if err != nil {
		return nil, &failure{"DM608", "--device " + c.Device, err.Error(), "calibrate on a machine with a GPU, or describe yours in dmir.toml"}
	}
	if kind, _, _ := strings.Cut(d.Name(), ":"); kind != "cuda" {
		return nil, &failure{"DM612", "--device " + c.Device, "is neither the processor nor a GPU", "write --device cpu or --device cuda"}
	}
	base := machine.OfCard(d.Title())
	if c.Base != "" {
		m, ok := machine.Lookup(c.Base)
		if !ok {
			return nil, &failure{"DM604", "--base " + c.Base, fmt.Sprintf("%q is not a known machine", c.Base), machine.Meant(c.Base, machine.Names())}
		}
		base = m
	}
	switch {
	case base == nil:
		return nil, &failure{"DM604", "--device " + c.Device, fmt.Sprintf("there is no data sheet of %q", d.Title()), "name the machine that comes nearest: --base h100"}
	case base.CPU:
		return nil, &failure{"DM612", "--base " + c.Base, "is a processor", "name a GPU, such as h100"}
	}
	bar := newProgress(a.stderr)
	defer bar.done()
	ctx, cancel := a.ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	m, err := ofCard(ctx, d, base, machine.LocalCard, bar.stage)
	switch {
	case a.ctx.Err() != nil:
		return nil, a.ctx.Err()
	case m == nil:
		return nil, &failure{"DM608", "dmir calibrate", err.Error(), "see dmir doctor for what kernels need on this machine"}
	case err != nil:
		bar.done()
		for line := range strings.Lines(err.Error()) {
			escape.Fprintf(a.stderr, "dmir: warning: not measured, as the data sheet has it: %s\n", strings.TrimSpace(line))
		}
	}
	return m, nil
}

// measured is the machine that this one is. What kernels reach is left out where they do
// not compile or run: the figures of the processor hold without it.
func (calibrateCmd) measured(a *app) (*machine.Machine, error) {
	bar := newProgress(a.stderr)
	defer bar.done()
	f, err := measure(a.ctx, bar.stage)
	if err != nil {
		return nil, err
	}
	m := rates.Machine(f, time.Now())
	for i, e := range rates.Elems {
		bar.stage("kernels of "+e.String(), i, len(rates.Elems))
		if err := rate(a.ctx, m, e); a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		} else if err != nil {
			bar.done()
			escape.Fprintf(a.stderr, "dmir: warning: rates of kernels are not measured: %s\n", firstLineOf(err.Error()))
			break
		}
	}
	return m, nil
}

// cannotMeasure converts an error of the measurement to a diagnostic.
func cannotMeasure(err error) error {
	if f, ok := artifact.FailureOf(err); ok && f.Reason == artifact.MissingTool {
		return &failure{"DM614", "dmir calibrate", strings.TrimSuffix(err.Error(), "; "+f.Help), f.Help}
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &failure{"DM608", "dmir calibrate", err.Error(), "it measures processors that programs are compiled for, on Linux and macOS"}
}

// report prints the figures in short.
func (c calibrateCmd) report(a *app, m *machine.Machine, path string) {
	bandwidth, rate := m.Bandwidth, m.Vector[types.F32]
	if !m.CPU { // of a GPU these are the data sheet's
		bandwidth, rate = m.Reach(), m.Rate(false, types.F32, "")
	}
	escape.Fprintf(a.stdout, "%s: %s · %s in f32 · %s\n", m.Title, units.Bandwidth(bandwidth), units.Rate(rate), m.LaunchText())
	if !m.CPU {
		escape.Fprintf(a.stdout, "  a load: %s · L2: %s", units.Time(m.MemoryLatency*1e9), units.Bandwidth(m.L2Bandwidth))
		for _, e := range slices.Sorted(maps.Keys(m.TensorCore)) {
			if m.Assumed[machine.CeilingOf(true, e)] == "" {
				escape.Fprintf(a.stdout, " · %s: %s", e, units.Rate(m.Rate(true, e, "")))
			}
		}
		fmt.Fprintln(a.stdout)
	}
	for _, x := range m.Caches {
		each := ""
		if x.PerCore {
			each = " a core"
		}
		escape.Fprintf(a.stdout, "  %s: %s%s · %s\n", x.Name, units.Bytes(x.Size), each, units.Bandwidth(x.Bandwidth))
	}
	escape.Fprintf(a.stdout, "  → %s\n", path)
	if c.Output == "" {
		escape.Fprintf(a.stdout, "--target %s predicts for it\n", m.Name)
	}
}

// unknownLocal is the failure for a local machine where there is no measurement of it, or
// none that can be read.
func unknownLocal(name string) error {
	err := machine.NoLocal(name)
	if err == nil { // it was measured since
		err = &machine.LocalError{Err: machine.ErrNotMeasured, Help: "try again"}
	}
	return &failure{"DM604", "--target " + strings.ToLower(name), err.Err.Error(), err.Help}
}
