package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"dmir/base/regular"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// ONNX runs the cases in a folder: each is a folder with a model.onnx and folders
// test_data_set_N of its inputs and the outputs that are expected.
func ONNX(ctx context.Context, dir string, o Options) (*Report, error) {
	models, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		return nil, errors.New("holds no folder with a model.onnx")
	}
	models = o.some(models)
	outcomes := make([]error, len(models))
	each(ctx, len(models), o.Progress, func(i int) { outcomes[i] = o.onnxCase(ctx, filepath.Dir(models[i])) })
	r := new(Report)
	for i, m := range models {
		r.Add(filepath.Base(filepath.Dir(m)), outcomes[i])
	}
	r.Sort()
	return r, context.Cause(ctx)
}

// onnxCase runs a model on each of its sets of data.
func (o Options) onnxCase(ctx context.Context, dir string) error {
	data, err := regular.ReadFile(filepath.Join(dir, "model.onnx"), maxModel)
	if err != nil {
		return err
	}
	sets, err := filepath.Glob(filepath.Join(dir, "test_data_set_*"))
	if err != nil {
		return err
	}
	if len(sets) == 0 {
		return fmt.Errorf("no test_data_set_N in %s", filepath.Base(dir))
	}
	for _, set := range sets {
		if err := o.onnxSet(ctx, data, dir, set); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) onnxSet(ctx context.Context, model []byte, dir, set string) error {
	names, err := onnx.Inputs(model)
	if err != nil {
		return supported(err)
	}
	inputs, err := tensors(set, "input")
	if err != nil {
		return supported(err)
	}
	want, err := tensors(set, "output")
	if err != nil {
		return supported(err)
	}
	if len(inputs) > len(names) {
		return fmt.Errorf("%d inputs, the model has %d", len(inputs), len(names))
	}
	given := map[string]*types.Dense{}
	for i, d := range inputs {
		given[names[i]] = d
	}
	m, args, err := Bound(ctx, model, dir, names, given)
	if err != nil {
		return supported(err)
	}
	results, err := o.run(ctx, m, m.Func("main"), args)
	if err != nil {
		return err
	}
	if len(results) < len(want) {
		return fmt.Errorf("%d results, %d are expected", len(results), len(want))
	}
	for i, d := range want {
		w, err := tensor.Of(d)
		if err != nil {
			return err
		}
		if err := close(results[i], w); err != nil {
			err = fmt.Errorf("output %d: %w", i, err)
			if drawn(m.Func("main").Body.Terminator().Operands[i]) {
				return fmt.Errorf("expected are the random numbers of NumPy, which ONNX leaves open: %w: %w", err, ErrUnsupported)
			}
			return err
		}
	}
	return nil
}

// drawn reports whether v is computed from random numbers.
func drawn(v *ir.Value) bool {
	seen := map[*ir.Op]bool{}
	var from func(o *ir.Op) bool
	from = func(o *ir.Op) bool {
		if o == nil || seen[o] {
			return false
		}
		seen[o] = true
		found := false
		ir.Walk([]*ir.Op{o}, func(inner *ir.Op) bool {
			found = found || op.Of(inner).Is(op.Random) || slices.ContainsFunc(inner.Operands, func(v *ir.Value) bool { return from(v.Op) })
			return !found
		})
		return found
	}
	return from(v.Op)
}

// supported marks the error of an import of a valid model.
func supported(err error) error {
	if e := onnx.As(err); e != nil && e.Unsupported() {
		return fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	return err
}

// tensors are the files KIND_0.pb, KIND_1.pb and so on of a folder.
func tensors(dir, kind string) (out []*types.Dense, err error) {
	for i := 0; ; i++ {
		data, err := regular.ReadFile(filepath.Join(dir, fmt.Sprintf("%s_%d.pb", kind, i)), maxModel)
		if os.IsNotExist(err) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		d, _, err := onnx.Tensor(data)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
}

func shapeOf(d *types.Dense) []int {
	shape := make([]int, d.Type.Rank())
	for i, n := range d.Type.Shape {
		k, _ := n.Int()
		shape[i] = int(k)
	}
	return shape
}

// few is how many elements an input of numbers that decides about shapes has at most.
const few = 1 << 8

// Bound imports a model for given inputs, whose shapes it takes. Inputs that decide
// about shapes become constants: integers first, then all of a few elements. args are
// those of the others, for @main.
func Bound(ctx context.Context, model []byte, dir string, names []string, given map[string]*types.Dense) (m *ir.Module, args []*tensor.Tensor, err error) {
	opts := onnx.Options{
		Dir: dir, Shapes: map[string][]int{}, Values: map[string]*types.Dense{},
		Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(ctx, f) },
	}
	for name, d := range given {
		opts.Shapes[name] = shapeOf(d)
	}
	for _, constant := range []func(d *types.Dense) bool{
		func(*types.Dense) bool { return false },
		func(d *types.Dense) bool { return d.Elem.IsInt() },
		func(d *types.Dense) bool { return d.Elem.IsInt() || d.Len() <= few },
	} {
		for name, d := range given {
			if constant(d) {
				opts.Values[name] = d
			}
		}
		m, err = onnx.Import("model.onnx", model, opts)
		if e := onnx.As(err); e == nil || !e.Value {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		d := given[name]
		if d == nil || opts.Values[name] != nil {
			continue
		}
		t, err := tensor.Of(d)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, t)
	}
	return m, args, nil
}

// The tolerances of ONNX's own runner.
const (
	relative = 1e-3
	absolute = 1e-7
)

// close compares a result with the expected one: integers are equal, and so are NaNs.
func close(got, want *tensor.Tensor) error {
	if got.Elem != want.Elem || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("the result is %s, expected is %s", got.Type(), want.Type())
	}
	for i := range want.Len() {
		if want.Elem.IsInt() {
			if got.Integer(i) == want.Integer(i) {
				continue
			}
			return fmt.Errorf("%d at %v, expected is %d", got.Integer(i), interp.Index(i, want.Shape), want.Integer(i))
		}
		a, b := got.Float(i), want.Float(i)
		if a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= absolute+relative*math.Abs(b) && !math.IsInf(b, 0) {
			continue
		}
		return fmt.Errorf("%v at %v, expected is %v", a, interp.Index(i, want.Shape), b)
	}
	return nil
}
