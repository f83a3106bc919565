package cli

import (
	"bytes"
	"errors"

	"dmir/analysis/cost"
)

type costCmd struct {
	targeting
	OutputFormat string `help:"text or json." enum:"text,json" default:"text"`
	File         string `arg:"" complete:"file:dmir,mlir" help:"The program; '-' is stdin."`
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
	if len(p.Funcs) == 0 && !p.HasErrors() {
		return noFunction(p, errors.New("the file has no function"), "")
	}
	opts := cost.TableOptions{Color: styleOf(a.stdout).Color, Width: a.width()}
	text, err := await(a.ctx, func() ([]byte, error) {
		var b bytes.Buffer
		if c.OutputFormat == "json" {
			err := writeJSON(&b, cost.JSON(p.Target, p.Funcs))
			return b.Bytes(), err
		}
		err := cost.Table(&b, p.Target, p.Funcs, opts)
		return b.Bytes(), err
	})
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}
