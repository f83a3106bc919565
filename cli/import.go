package cli

import (
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"dmir/analysis/attribution"
	"dmir/analysis/program"
	"dmir/base/atomicfile"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/print"
	"dmir/dialect/stablehlo"
	"dmir/dialect/train"
	"dmir/dialect/types"
	"dmir/dialect/weights"
	"dmir/syntax/diag"
)

type importCmd struct {
	Output    string   `short:"o" complete:"file:dmir" help:"File to write (default: stdout)." placeholder:"OUT.dmir"`
	Locations bool     `help:"Print the locations of ops, as #loc aliases at the end of the file."`
	Bind      []string `help:"Give a size that a model in ONNX leaves open." placeholder:"n=512" sep:","`
	spec      *train.Spec
	Train     string `help:"Make a training step of a model in ONNX or StableHLO: its loss, optimizer and their options." placeholder:"loss=cross_entropy,optimizer=adamw,lr=0.001"`
	File      string `arg:"" complete:"file:mlir,onnx,json" help:"A program in StableHLO (or mhlo, chlo) or in MLIR's linalg and sparse_tensor, in pretty or generic form, or a model in ONNX, or the .json of a trace; '-' is stdin."`
}

// Help is what --help adds.
func (importCmd) Help() string {
	return "From JAX: print(jax.jit(f).lower(*args).as_text()) > f.mlir. Sections cut at '// -----' stay sections. Names of\n" +
		"functions, arguments and values are kept, and with --locations those of ops. With -o, large constants are\n" +
		"arrays in OUT.weights.npz. --train makes @step of a model that torch.onnx.export(model, args, dynamo=True,\n" +
		"optimize=False) wrote, or of a model or its loss in StableHLO; the keys are in docs/TRAINING.md. cost, run, opt, compile and report read such files, and models in ONNX, directly.\n" +
		"Exit status: 0 written, 2 the program has errors, or something without an equivalent in the dialect."
}

// Run writes the program as text in the dialect.
func (c importCmd) Run(a *app) error {
	if atomicfile.IsStream(c.Output) || c.Output == "-" {
		c.Output = ""
	}
	path := "" // of the weights, beside the text
	base := ""
	if c.Output != "" {
		path = weights.Path(c.Output)
		base = filepath.Base(path)
		for _, file := range []string{c.Output, path} {
			if err := atomicfile.Check(file); err != nil {
				return cannotWrite(file, err)
			}
		}
	}
	if err := c.begin(a); err != nil {
		return err
	}
	text, arrays, err := c.imported(a, base)
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err = io.WriteString(a.stdout, text)
		return err
	}
	if len(arrays.Arrays) > 0 {
		if err := save(path, arrays); err != nil {
			return err
		}
	}
	return write(c.Output, text)
}

// locations are the options of printing for the flag --locations.
func locations(on bool) []print.Option {
	if on {
		return []print.Option{print.Locations}
	}
	return nil
}

// save writes arrays to the file at path.
func save(path string, arrays *weights.Set) error {
	err := atomicfile.WriteFile(path, 0o644, func(w io.Writer) error {
		z := tensor.NewWriter(w)
		for _, x := range arrays.Arrays {
			t, err := tensor.Of(x.Value)
			if err != nil {
				return err
			}
			if err := z.Array(x.Name, t); err != nil {
				return err
			}
		}
		return z.Close()
	})
	if err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// imported is the text of the program in the dialect, whose large constants are in a
// file called path beside it, or where that is "" in the text.
func (c importCmd) imported(a *app, path string) (_ string, arrays *weights.Set, err error) {
	data, name, err := a.bytes(c.File)
	if err != nil {
		return "", nil, err
	}
	if c.spec != nil {
		return c.trained(a, name, data, path)
	}
	bind, err := binding(c.Bind)
	if err != nil {
		return "", nil, err
	}
	if isModel(name, data) {
		text, open, arrays, err := a.model(name, data, bind, path, c.Locations)
		if err == nil {
			err = unknownSize(c.Bind, open)
		}
		return text, arrays, err
	}
	src, err := text(name, data)
	if err != nil {
		return "", nil, err
	}
	p, err := a.analyse(src, program.Options{Bind: bind, Arrays: tensor.In(filepath.Dir(name)), Upstream: true})
	switch {
	case err != nil:
		return "", nil, err
	case !p.Imported:
		return "", nil, &failure{"DM619", src.Path, "holds no op of a dialect that is imported", "name a file in StableHLO, linalg or sparse_tensor; a program in the dialect needs no import"}
	case p.HasErrors():
		printErrors(a.stderr, src, p.Diags)
		return "", nil, exitStatus(exitFailed)
	}
	if err := unknownSize(c.Bind, p.Symbols()); err != nil {
		return "", nil, err
	}
	a.warn(src, leftOut(p))
	if arrays, err = weights.Place(p.Modules, path); err != nil {
		return "", nil, err
	}
	written, err := await(a.ctx, func() (string, error) { return print.Sections(p.Modules, locations(c.Locations)...) })
	return written, arrays, err
}

// leftOut are the warnings of functions that were not imported.
func leftOut(p *program.Program) (out []diag.Diagnostic) {
	for _, m := range p.Modules {
		for _, d := range m.Diags {
			if d.Severity == diag.Warning && d.Code == stablehlo.Unsupported {
				out = append(out, d)
			}
		}
	}
	return out
}

// model is the text of a model in ONNX in the ops of the dialect, whose large constants
// are in a file called path beside it, or where that is "" in the text; and the names of
// the sizes that the model leaves open, which bind gives.
func (a *app) model(name string, data []byte, bind map[string]int64, path string, locations bool) (text string, open []string, arrays *weights.Set, err error) {
	open, arrays, err = a.onnx(name, data, bind, func(opts onnx.Options) (w *weights.Set, err error) {
		opts.Locations = locations
		text, w, err = onnx.Text(name, data, opts, path)
		return w, err
	})
	return text, open, arrays, err
}

// onnx calls read, which sets what it makes of the model beside its arrays, and returns the names of the sizes that the
// model leaves open.
func (a *app) onnx(name string, data []byte, bind map[string]int64, read func(onnx.Options) (*weights.Set, error)) (open []string, arrays *weights.Set, err error) {
	dir := ""
	if name != stdin {
		dir = filepath.Dir(name)
	}
	file := ""
	if info, err := os.Stat(name); name != stdin && err == nil && info.Mode().IsRegular() {
		file = name
	}
	type result struct {
		open   []string
		arrays *weights.Set
	}
	r, err := await(a.ctx, func() (r result, err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(file != ""))
		if r.open, err = onnx.Sizes(data); err != nil {
			return r, err
		}
		r.arrays, err = read(onnx.Options{
			Dir: dir, Bind: bind, File: file,
			Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(a.ctx, f) },
		})
		return r, err
	})
	if e := onnx.As(err); e != nil {
		f := &failure{e.Code, name, e.Msg, ""}
		if e.Loc != nil {
			if from := attribution.OriginText(e.Loc); from != "" {
				f.msg += " (" + from + ")"
			}
		}
		if e.Value {
			f.help = "sizes may not depend on data: in place of x[mask] or nonzero() keep the shape, as with torch.where(mask, x, 0)"
		}
		err = f
	}
	return r.open, r.arrays, err
}
