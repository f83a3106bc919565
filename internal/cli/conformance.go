package cli

import (
	"encoding/json"
	"fmt"

	"dmir/compile/conformance"
	"dmir/internal/escape"
)

type conformanceCmd struct {
	OutputFormat string `help:"text or json." enum:"text,json" default:"text"`
	Suite        string `arg:"" enum:"stablehlo,onnx" help:"The kind of suite: stablehlo or onnx."`
	Dir          string `arg:"" help:"Folder of the suite."`
}

// Help is what --help adds.
func (conformanceCmd) Help() string {
	return "Runs each case of a suite on the reference executor. Exit status 1 if a case fails; cases that use what the dialect does not have are unsupported and do not count as failures."
}

// Run runs the suite and prints what did not pass.
func (c conformanceCmd) Run(a *app) error {
	bar := newProgress(a.stderr)
	defer bar.done()
	suite, what := conformance.StableHLO, "files"
	if c.Suite == "onnx" {
		suite, what = conformance.ONNX, "cases"
	}
	r, err := suite(a.ctx, c.Dir, func(done, total int) { bar.stage(what, done, total) })
	bar.done()
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	if err != nil {
		return cannotRead(c.Dir, err)
	}
	if c.OutputFormat == "json" {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		for _, k := range r.Cases {
			if k.Status != conformance.Passed {
				escape.Fprintf(a.stdout, "%s %s: %s\n", k.Status, k.Name, k.Reason)
			}
		}
		_, err = fmt.Fprintln(a.stdout, r.Summary())
	}
	if err == nil && r.Failed > 0 {
		err = exitStatus(exitFindings)
	}
	return err
}
