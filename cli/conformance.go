package cli

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"dmir/base/escape"
	"dmir/compile/conformance"
	"dmir/compile/driver"
)

type conformanceCmd struct {
	Suite        string `arg:"" help:"The suite: ${suites}." enum:"${suites}"`
	Dir          string `arg:"" complete:"dir" help:"The folder of the suite."`
	Device       string `complete:"device" help:"Where the programs run: reference, or compiled on a device as of dmir run." default:"reference"`
	OutputFormat string `help:"text or json." enum:"text,json" default:"text"`
}

// suites are the names of the suites, with commas.
func suites() string {
	return strings.Join(slices.Sorted(maps.Keys(conformance.Suites)), ",")
}

// Help is what --help adds.
func (conformanceCmd) Help() string {
	return "The programs of the suite run on the reference executor or a device, and their own checks decide. Listed are those that\n" +
		"did not pass, each with the reason: unsupported ones have a type or an op without an equivalent here.\n" +
		"Exit status: 0 none failed, 1 one failed, 2 the suite cannot be run."
}

// Run runs a suite and prints what passed.
func (c conformanceCmd) Run(a *app) error {
	d, _, err := driver.Choose(c.Device)
	if err != nil {
		return &failure{"DM608", "--device " + c.Device, err.Error(), "use --device reference"}
	}
	bar := newProgress(a.stderr)
	r, err := conformance.Suites[c.Suite](a.ctx, c.Dir, conformance.Options{Device: d, Progress: func(done, total int) { bar.stage("cases", done, total) }})
	bar.done()
	var path *os.PathError
	switch {
	case a.ctx.Err() != nil:
		return a.ctx.Err()
	case errors.As(err, &path):
		return cannotRead(c.Dir, err)
	case err != nil:
		return &failure{"DM611", c.Dir, err.Error(), "name the folder with the suite's programs"}
	}
	return a.verdict(r, c.OutputFormat)
}

// verdict prints a report; its error is the exit status.
func (a *app) verdict(r *conformance.Report, format string) error {
	if format == "json" {
		if err := writeJSON(a.stdout, r); err != nil {
			return err
		}
	} else {
		for _, c := range r.Cases {
			if c.Status != conformance.Passed {
				escape.Fprintf(a.stdout, "%-11s  %s: %s\n", c.Status, c.Name, c.Reason)
			}
		}
		escape.Fprintf(a.stdout, "%s\n", r.Summary())
	}
	if r.Failed > 0 {
		return exitStatus(exitFindings)
	}
	return nil
}
