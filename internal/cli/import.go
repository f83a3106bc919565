package cli

import (
	"io"
	"path/filepath"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/internal/atomicfile"
)

type importCmd struct {
	Output string   `short:"o" complete:"file:dmir" help:"File to write (default: stdout)." placeholder:"OUT.dmir"`
	Bind   []string `help:"Give a size that a model in ONNX leaves open." placeholder:"n=512" sep:","`
	File   string   `arg:"" complete:"file:mlir,onnx" help:"A program in StableHLO (or mhlo, chlo), in pretty or generic form, or a model in ONNX; '-' is stdin."`
}

// Help is what --help adds.
func (importCmd) Help() string {
	return "From JAX: print(jax.jit(f).lower(*args).as_text()) > f.mlir. Sections cut at '// -----' stay sections. Names of\n" +
		"functions, arguments and values are kept, and locations. cost, run, opt, compile and report read such files, and\n" +
		"models in ONNX, directly.\n" +
		"Exit status: 0 written, 2 the program has errors, or something without an equivalent in the dialect."
}

// Run writes the program as text in the dialect.
func (c importCmd) Run(a *app) error {
	if c.Output == "-" {
		c.Output = ""
	}
	if c.Output != "" {
		if err := atomicfile.Check(c.Output); err != nil {
			return cannotWrite(c.Output, err)
		}
	}
	written, err := c.imported(a)
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err = io.WriteString(a.stdout, written)
		return err
	}
	return write(c.Output, written)
}

// imported is the text of the program in the dialect.
func (c importCmd) imported(a *app) (string, error) {
	data, name, err := a.bytes(c.File)
	if err != nil {
		return "", err
	}
	bind, err := binding(c.Bind)
	if err != nil {
		return "", err
	}
	if isModel(name, data) {
		text, open, err := a.model(name, data, bind)
		if err == nil {
			err = unknownSize(c.Bind, open)
		}
		return text, err
	}
	src, err := text(name, data)
	if err != nil {
		return "", err
	}
	if err := unknownSize(c.Bind, nil); err != nil {
		return "", err
	}
	p, err := a.analyse(src, program.Options{})
	switch {
	case err != nil:
		return "", err
	case !p.Imported:
		return "", &failure{"DM619", src.Path, "holds no op of a dialect that is imported", "name a file in StableHLO; a program in the dialect needs no import"}
	case p.HasErrors():
		printErrors(a.stderr, src, p.Diags)
		return "", exitStatus(exitFailed)
	}
	return await(a.ctx, func() (string, error) { return print.Sections(p.Modules) })
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
