package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/program"
	"dmir/compile/tensor"
	"dmir/dialect/onnx"
	"dmir/dialect/print"
	"dmir/dialect/train"
	"dmir/dialect/weights"
	"dmir/syntax/source"
)

// begin reads what is trained and how: --train, or what a trace says.
func (c *importCmd) begin(a *app) (err error) {
	if c.Train != "" {
		c.spec, err = train.Read(c.Train)
	}
	if err == nil && strings.EqualFold(filepath.Ext(c.File), ".json") {
		err = c.trace(a)
	}
	if e := (*train.Error)(nil); errors.As(err, &e) {
		return &failure{"DM612", "--train " + e.Key, e.Msg, e.Help}
	}
	if err == nil && c.spec != nil && c.Output == "" {
		return &failure{"DM612", "--train", "writes the values of the parameters beside the program, which has no place", "add -o step.dmir"}
	}
	return err
}

// trace makes the program of a trace the file to import, and what the trace says how it is trained.
func (c *importCmd) trace(a *app) error {
	t, err := a.trace(c.File)
	switch {
	case err != nil:
		return err
	case t == nil:
		return &failure{"DM619", c.File, "is no description of a trace", "name the .json of a trace, a program in StableHLO, or a model in ONNX"}
	}
	c.File = t.ProgramPath()
	if c.spec == nil {
		c.spec, err = specOf(t)
	}
	return err
}

// specOf is what a trace says of how its program is trained, nil where it says nothing.
func specOf(t *attribution.Trace) (*train.Spec, error) {
	if t == nil || !t.Trained() {
		return nil, nil
	}
	return train.ReadJSON(t.Train)
}

// trained is the training step of a model as text; see imported.
func (c importCmd) trained(a *app, name string, data []byte, path string) (string, *weights.Set, error) {
	bind, err := binding(c.Bind)
	if err != nil {
		return "", nil, err
	}
	if !isModel(name, data) {
		src, err := text(name, data)
		if err != nil {
			return "", nil, err
		}
		opts := program.Options{Bind: bind, Arrays: tensor.In(filepath.Dir(name)), Upstream: true}
		text, open, arrays, err := a.trainedProgram(src, opts, path, c.spec, locations(c.Locations)...)
		if err != nil {
			return "", nil, err
		}
		return text, arrays, unknownSize(c.Bind, open)
	}
	text, open, arrays, err := a.trained(name, data, bind, path, c.Locations, c.spec)
	if err != nil {
		return "", nil, err
	}
	return text, arrays, unknownSize(c.Bind, open)
}

// trainedProgram is the text of the step that trains a program in StableHLO, and the sizes that the program leaves open.
func (a *app) trainedProgram(src *source.File, opts program.Options, path string, spec *train.Spec, how ...print.Option) (text string, open []string, arrays *weights.Set, err error) {
	type result struct {
		text   string
		arrays *weights.Set
		p      *program.Program
	}
	r, err := await(a.ctx, func() (r result, err error) {
		r.text, r.arrays, r.p, err = program.Trained(src, opts, spec, path, how...)
		return r, err
	})
	switch {
	case err != nil:
		return "", nil, nil, trainingFailure(src.Path, err)
	case !r.p.Imported:
		return "", nil, nil, &failure{"DM619", src.Path, "is no model in ONNX or StableHLO, and --train makes a step of one", "a program in the dialect states its step itself, with dm.grad"}
	case r.p.HasErrors():
		printErrors(a.stderr, src, r.p.Diags)
		return "", nil, nil, exitStatus(exitFailed)
	}
	return r.text, r.p.Symbols(), r.arrays, nil
}

// trained is model of the step that trains it.
func (a *app) trained(name string, data []byte, bind map[string]int64, path string, locations bool, spec *train.Spec) (text string, open []string, arrays *weights.Set, err error) {
	open, arrays, err = a.onnx(name, data, bind, func(opts onnx.Options) (w *weights.Set, err error) {
		opts.Locations = locations
		text, w, err = onnx.TrainText(name, data, opts, spec, path)
		return w, err
	})
	return text, open, arrays, trainingFailure(name, err)
}

// trainingFailure is err as a command tells it, where it is of package train.
func trainingFailure(name string, err error) error {
	var e *train.Error
	switch {
	case errors.As(err, &e) && e.Key != "":
		return &failure{"DM612", "--train " + e.Key, e.Msg, e.Help}
	case errors.As(err, &e):
		return &failure{train.Code, name, e.Msg, e.Help}
	}
	return err
}
