package cli

import (
	"fmt"
	"text/tabwriter"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/compile/driver"
	"dmir/dialect/ir"
	"dmir/gpu/device"
	"dmir/internal/escape"
)

// tune measures the tiles of the function's contractions on this machine's GPU,
// for this build and those after it.
func (c compileCmd) tune(a *app, p *program.Program, m *ir.Module, fn *ir.Func, bar *progress) error {
	d, _, err := device.Find("cuda")
	if err != nil {
		return &failure{"DM608", "--tune", err.Error(), "measure on a machine with an NVIDIA GPU; without it the model chooses tiles"}
	}
	tuned, err := driver.Tune(a.ctx, d, driver.Job{Program: p, Module: m, Fn: fn}, "", func(done, total int) { bar.stage("measuring tiles", done, total) })
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PRODUCT\tMODEL\tTIME\tFASTEST\tTIME")
	for _, t := range tuned {
		escape.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Product, t.Model, units.Time(t.ModelNs), t.Best, units.Time(t.BestNs))
	}
	return w.Flush()
}
