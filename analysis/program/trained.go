package program

import (
	"dmir/dialect/print"
	"dmir/dialect/train"
	"dmir/dialect/weights"
	"dmir/syntax/source"
)

// Trained is the text of the step that trains @main of a program of another tool, in the dialect, with its large constants as
// arrays in the file called weightsPath. A program with errors is returned as it is, without a text. An error is a *train.Error or
// of the constants.
func Trained(src *source.File, opts Options, spec *train.Spec, weightsPath string, how ...print.Option) (text string, w *weights.Set, p *Program, err error) {
	p = Load(src, opts)
	if p.HasErrors() || !p.Imported {
		return "", nil, p, nil
	}
	m := p.Modules[0]
	f := m.Func("main")
	if len(p.Modules) > 1 || f == nil {
		return "", nil, p, &train.Error{Msg: "the program has no function @main alone, which a model is", Help: "lower the model as JAX does: jax.jit(loss).lower(params, x)"}
	}
	model, err := train.Of(m, f, spec)
	if err == nil {
		err = train.Step(model, spec)
	}
	if err != nil {
		return "", nil, p, err
	}
	if w, err = weights.Place(p.Modules, weightsPath); err != nil {
		return "", nil, p, err
	}
	text, err = print.Source(m, how...)
	return text, w, p, err
}
