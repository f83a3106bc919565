package cli

import (
	"fmt"
	"text/tabwriter"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/compile/driver"
	"dmir/dialect/ir"
)

// tune measures the tiles of the function's contractions on this machine's device
// of the target that makes code for archs. This build and later ones use them.
func (c compileCmd) tune(a *app, p *program.Program, m *ir.Module, fn *ir.Func, archs []string, bar *progress) error {
	arch := ""
	if len(archs) > 0 {
		arch = archs[0]
	}
	d, err := driver.TuneDevice(arch)
	if err != nil {
		return &failure{"DM608", "--tune", err.Error(), "run it on a machine that has the device; without --tune a model chooses the tiles"}
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
