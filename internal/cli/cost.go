package cli

import (
	"bytes"
	"errors"

	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/syntax/diag"
)

type costCmd struct {
	targeting
	deviceFlags
	Strict       bool   `help:"Make ops of other dialects, which are not counted, an error."`
	OutputFormat string `help:"text or json." enum:"text,json" default:"text"`
	File         string `arg:"" complete:"file:dmir,mlir,onnx" help:"The program; '-' is stdin."`
}

// Help is what --help adds.
func (costCmd) Help() string {
	return "Ops of other dialects are not counted; stderr names them.\n" +
		"Exit status: 0 done, 1 there are such ops and --strict is given, 2 the program has errors or cannot be read."
}

// costReport is the JSON.
type costReport struct {
	cost.Report
	NotCounted []lint.Foreign `json:"not_counted,omitempty"` // ops of other dialects
}

// Run prints the cost of every function of the file.
func (c costCmd) Run(a *app) error {
	p, err := c.load(a, c.File)
	if err != nil {
		return err
	}
	if err := c.bound(p); err != nil {
		return err
	}
	if err := c.divide(a, p); err != nil {
		return err
	}
	if len(p.Funcs) == 0 && !p.HasErrors() {
		return noFunction(p, errors.New("the file has no function"), "")
	}
	opts := cost.TableOptions{Color: styleOf(a.stdout).Color, Width: a.width()}
	text, err := await(a.ctx, func() ([]byte, error) {
		var b bytes.Buffer
		if c.OutputFormat == "json" {
			err := writeJSON(&b, costReport{cost.JSON(p.Target, p.Funcs), lint.ForeignOps(p)})
			return b.Bytes(), err
		}
		err := cost.Table(&b, p.Target, p.Funcs, opts)
		return b.Bytes(), err
	})
	if err != nil {
		return err
	}
	if _, err = a.stdout.Write(text); err != nil {
		return err
	}
	d, ok := lint.Uncounted(p)
	if !ok {
		return nil
	}
	if c.Strict {
		d.Severity = diag.Error
	}
	diag.Text(a.stderr, p.Src, d, styleOf(a.stderr))
	if c.Strict {
		return exitStatus(exitFindings)
	}
	return nil
}
