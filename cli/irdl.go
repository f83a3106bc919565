package cli

import (
	"io"
	"strings"

	"dmir/dialect/irdl"
)

type irdlCmd struct {
	targeting
	File string `arg:"" complete:"file:dmir,mlir" optional:"" help:"Print this program in the form that the definition verifies, instead of the definition."`
}

// Help is what --help adds.
func (irdlCmd) Help() string {
	return "dmir irdl > dm.irdl.mlir; dmir irdl layer.dmir | mlir-opt --irdl-file=dm.irdl.mlir"
}

// Run prints what mlir-opt --irdl-file reads, or what it then checks.
func (c irdlCmd) Run(a *app) error {
	if c.File == "" {
		_, err := io.WriteString(a.stdout, irdl.Generate())
		return err
	}
	p, err := c.load(a, c.File)
	if err != nil {
		return err
	}
	if err := c.bound(p); err != nil {
		return err
	}
	var sections []string
	for _, m := range p.Modules {
		text, err := irdl.Text(m)
		if err != nil {
			return err
		}
		sections = append(sections, text)
	}
	_, err = io.WriteString(a.stdout, strings.Join(sections, "// -----\n"))
	return err
}
