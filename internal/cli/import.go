package cli

import (
	"io"
	"path/filepath"
	"strings"

	"dmir/dialect/stablehlo"
	"dmir/internal/atomicfile"
	"dmir/syntax/source"
)

type importCmd struct {
	Out  string `short:"o" complete:"file:dmir" help:"File to write instead of stdout." placeholder:"OUT.dmir"`
	File string `arg:"" complete:"file:mlir" help:"The program: StableHLO, CHLO or MHLO as MLIR text; '-' is stdin."`
}

// Help is what --help adds.
func (importCmd) Help() string {
	return "From JAX: print(jax.jit(f).lower(*args).as_text()) > f.mlir. cost, run, opt, compile and report read such files too."
}

// Run prints the program in the ops of the dialect.
func (c importCmd) Run(a *app) error {
	src, err := a.read(c.File)
	if err != nil {
		return err
	}
	text, err := a.imported(src)
	if err != nil {
		return err
	}
	if c.Out == "" || c.Out == "-" {
		_, err = io.WriteString(a.stdout, text)
		return err
	}
	err = atomicfile.WriteFile(c.Out, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return cannotWrite(c.Out, err)
	}
	return nil
}

// imported is the text of a program in the ops of the dialect.
func (a *app) imported(src *source.File) (string, error) {
	return await(a.ctx, func() (string, error) {
		text, diags := stablehlo.Text(src)
		if len(diags) > 0 {
			printErrors(a.stderr, src, diags)
			return "", exitStatus(exitFailed)
		}
		return text, nil
	})
}

// inDialect is src, of a program in StableHLO the program that dmir import writes, by
// the name that it has then.
func (a *app) inDialect(src *source.File) (*source.File, error) {
	if filepath.Ext(src.Path) != ".mlir" {
		return src, nil
	}
	text, err := a.imported(src)
	if err != nil || text == src.Text() {
		return src, err
	}
	return source.New(strings.TrimSuffix(src.Path, ".mlir")+".dmir", text), nil
}
