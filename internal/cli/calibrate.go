package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/compile/rates"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/calibrate"
	"dmir/internal/atomicfile"
	"dmir/internal/escape"
)

type calibrateCmd struct {
	Print  bool   `help:"Print the machine instead of writing it."`
	Output string `short:"o" complete:"file:toml" help:"File to write (default: local.toml in dmir's folder of the user's configuration)." placeholder:"FILE"`
}

// Help is what --help adds.
func (calibrateCmd) Help() string {
	return "Measures for some seconds, with all threads: bandwidths of the memory and of each cache, peak rates, the latency of\n" +
		"launches, and what compiled kernels reach. Other programs should rest. --target local then predicts for this machine:\n" +
		"where the bytes that a kernel moves fit a cache, its time is that of the cache. It needs clang 14 or newer, and no GPU.\n" +
		"Exit status: 0 measured, 2 it could not measure or write."
}

// measure and rate are replaced in tests.
var (
	measure = calibrate.Measure
	rate    = rates.Measure
)

// Run measures this machine's processor, and writes it as the machine local.
func (c calibrateCmd) Run(a *app) error {
	if c.Print && c.Output != "" {
		return &failure{"DM612", "--print", "does not go with --output", "give one of them"}
	}
	path := c.Output
	if path == "" && !c.Print {
		var err error
		if path, err = machine.LocalFile(); err != nil {
			return &failure{"DM603", "local.toml", reason(err), "name a file with -o, or set HOME"}
		}
	}
	if c.Output != "" {
		if err := atomicfile.Check(path); err != nil {
			return cannotWrite(path, err)
		}
	}
	m, err := c.measured(a)
	if err != nil {
		return cannotMeasure(err)
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
	escape.Fprintf(a.stdout, "%s: %s · %s in f32 · %s\n", m.Title, units.Bandwidth(m.Bandwidth), units.Rate(m.Vector[types.F32]), m.LaunchText())
	for _, x := range m.Caches {
		each := ""
		if x.PerCore {
			each = " a core"
		}
		escape.Fprintf(a.stdout, "  %s: %s%s · %s\n", x.Name, units.Bytes(x.Size), each, units.Bandwidth(x.Bandwidth))
	}
	escape.Fprintf(a.stdout, "  → %s\n", path)
	if c.Output == "" {
		fmt.Fprintln(a.stdout, "--target local predicts for it")
	}
}

// unknownLocal is the failure for the machine local where there is no measurement of it, or
// none that can be read.
func unknownLocal() error {
	err := machine.NoLocal()
	if err == nil { // it was measured since
		err = &machine.LocalError{Err: machine.ErrNotMeasured, Help: machine.Calibrate}
	}
	return &failure{"DM604", "--target local", err.Err.Error(), err.Help}
}
