package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"dmir/dialect/onnx"
	"dmir/dialect/train"
	"dmir/dialect/weights"
)

// traceFile is what an import reads of the .json of a trace, as docs/PYTHON.md describes it.
type traceFile struct {
	Version int             `json:"dmir_trace"`
	Program string          `json:"program"`
	Train   json.RawMessage `json:"train"`
}

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

// trace makes the program of a trace the file to import.
func (c *importCmd) trace(a *app) error {
	data, name, err := a.bytes(c.File)
	if err != nil {
		return err
	}
	var t traceFile
	switch err := json.Unmarshal(data, &t); {
	case err != nil || t.Version == 0:
		return &failure{"DM619", name, "is no trace: it has no dmir_trace", "name the .json of a trace, a program in StableHLO, or a model in ONNX"}
	case t.Version != 1:
		return &failure{"DM619", name, "is a trace of a newer version", "update dmir"}
	case t.Program == "" || t.Program != filepath.Base(t.Program) || t.Program == "..":
		return &failure{"DM619", name, "names no program beside it", "trace again"}
	}
	c.File = filepath.Join(filepath.Dir(name), t.Program)
	if c.spec == nil && len(t.Train) > 0 && string(t.Train) != "null" {
		c.spec, err = train.ReadJSON(t.Train)
	}
	return err
}

// trained is the training step of a model as text; see imported.
func (c importCmd) trained(a *app, name string, data []byte, path string) (string, *weights.Set, error) {
	if !isModel(name, data) {
		return "", nil, &failure{"DM619", name, "is no model in ONNX, and --train makes a step of one", "write the step of a program in StableHLO in its framework, as jax.value_and_grad and optax do"}
	}
	bind, err := binding(c.Bind)
	if err != nil {
		return "", nil, err
	}
	var text string
	open, arrays, err := a.onnx(name, data, bind, func(opts onnx.Options) (w *weights.Set, err error) {
		text, w, err = onnx.TrainText(name, data, opts, c.spec, path)
		return w, err
	})
	var e *train.Error
	switch {
	case errors.As(err, &e) && e.Key != "":
		return "", nil, &failure{"DM612", "--train " + e.Key, e.Msg, e.Help}
	case errors.As(err, &e):
		return "", nil, &failure{train.Code, name, e.Msg, e.Help}
	case err != nil:
		return "", nil, err
	}
	return text, arrays, unknownSize(c.Bind, open)
}
