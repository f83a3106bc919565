package interp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/gpu/collective"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// read lowers a text without errors.
func read(t testing.TB, text string) *ir.Module {
	t.Helper()
	f := parse.File(source.New("test.dmir", text))
	for _, d := range f.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
		}
	}
	m := lower.File(f)[0]
	for _, d := range m.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
		}
	}
	return m
}

// run runs the first function of a text on the inputs, or on seeded ones.
func run(t testing.TB, text string, args ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := try(t, read(t, text), Options{}, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func try(t testing.TB, m *ir.Module, opts Options, args ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	t.Helper()
	fn := m.Funcs[0]
	if args == nil {
		var err error
		if args, err = Inputs(t.Context(), fn, opts.Bind, 1, nil); err != nil {
			return nil, err
		}
	}
	if op.PerDevice(fn.Op) {
		return together(m, fn, opts, args)
	}
	r, err := Run(context.Background(), m, fn, args, opts)
	if err != nil {
		return nil, err
	}
	return r.Outputs, nil
}

// together runs fn on the devices of its mesh, all with the same arguments, and gives the
// results of one device after those of another.
func together(m *ir.Module, fn *ir.Func, opts Options, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	devices := mesh.Find(m, op.MeshOf(fn.Op))
	results, failed := make([][]*tensor.Tensor, devices.Devices()), make([]error, devices.Devices())
	var wait sync.WaitGroup
	for i, comm := range collective.Local(devices.Devices()) {
		wait.Go(func() {
			own := opts
			own.Device = &Device{Mesh: devices, ID: i, Comm: comm}
			r, err := Run(context.Background(), m, fn, args, own)
			if failed[i] = err; err != nil {
				comm.Abort(err)
				return
			}
			results[i] = r.Outputs
		})
	}
	wait.Wait()
	return slices.Concat(results...), errors.Join(failed...)
}
