package cli

import (
	"io"

	"dmir/dialect/irdl"
)

type irdlCmd struct{}

// Run prints what mlir-opt --irdl-file reads.
func (irdlCmd) Run(a *app) error {
	_, err := io.WriteString(a.stdout, irdl.Generate())
	return err
}
