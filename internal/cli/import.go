package cli

import (
	"io"
	"path/filepath"
	"strings"

	"dmir/compile/interp"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/stablehlo"
	"dmir/dialect/types"
	"dmir/internal/atomicfile"
	"dmir/syntax/source"
)

type importCmd struct {
	Out  string   `short:"o" complete:"file:dmir" help:"File to write instead of stdout." placeholder:"OUT.dmir"`
	Bind []string `help:"Give a size that a model in ONNX leaves open." placeholder:"n=512" sep:","`
	File string   `arg:"" complete:"file:mlir,onnx" help:"A program in StableHLO, CHLO or MHLO as MLIR text, or a model in ONNX; '-' is stdin."`
}

// Help is what --help adds.
func (importCmd) Help() string {
	return "From JAX: print(jax.jit(f).lower(*args).as_text()) > f.mlir. cost, run, opt, compile and report read such files, and models in ONNX, too."
}

// Run prints the program in the ops of the dialect.
func (c importCmd) Run(a *app) error {
	data, name, err := a.bytes(c.File)
	if err != nil {
		return err
	}
	bind, err := binding(c.Bind)
	if err != nil {
		return err
	}
	var text string
	if isModel(name, data) {
		var open []string
		if text, open, err = a.model(name, data, bind); err == nil {
			err = unknownSize(c.Bind, open)
		}
	} else {
		text, err = a.importedText(name, data, c.Bind)
	}
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

// importedText is the text of a program in StableHLO in the ops of the dialect.
func (a *app) importedText(name string, data []byte, bind []string) (string, error) {
	src, err := text(name, data)
	if err != nil {
		return "", err
	}
	if err := unknownSize(bind, nil); err != nil {
		return "", err
	}
	return a.imported(src)
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

// model is the text of a model in ONNX in the ops of the dialect, and the names of the
// sizes that the model leaves open, which bind gives.
func (a *app) model(name string, data []byte, bind map[string]int64) (text string, open []string, err error) {
	dir := ""
	if name != stdin {
		dir = filepath.Dir(name)
	}
	type result struct {
		text string
		open []string
	}
	r, err := await(a.ctx, func() (r result, err error) {
		if r.open, err = onnx.Sizes(data); err != nil {
			return r, err
		}
		r.text, err = onnx.Text(name, data, onnx.Options{
			Dir: dir, Bind: bind,
			Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(a.ctx, f) },
		})
		return r, err
	})
	if e := onnx.As(err); e != nil {
		err = &failure{e.Code, name, e.Msg, ""}
	}
	return r.text, r.open, err
}
