package conformance

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/dim"
	"dmir/dialect/onnx"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// The suites of ONNX: one op each, and what PyTorch exported.
func TestONNX(t *testing.T) {
	need.Long(t)
	compare(t, "onnx", "node", "pytorch-converted", "pytorch-operator")
}

// Whole models give the outputs that other tools gave for them: Deeploy's with the
// inputs beside them, the light ones of ONNX with inputs that rise from 0 to 1.
func TestONNXModels(t *testing.T) {
	need.Long(t)
	deeploy, _ := filepath.Glob(filepath.Join(folder(t, "models/deeploy"), "*", "network.onnx"))
	light, _ := filepath.Glob(filepath.Join(folder(t, "models/onnx-light"), "*.onnx"))
	if len(deeploy) == 0 || len(light) == 0 {
		t.Fatal("no models")
	}
	for _, file := range deeploy {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			data := readModel(t, file)
			in, err1 := onnx.Inputs(data)
			out, err2 := onnx.Outputs(data)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			checkModel(t, data, arrays(t, file, "inputs.npz", in), arrays(t, file, "outputs.npz", out))
		})
	}
	for _, file := range light {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data := readModel(t, file)
			m, err := onnx.Import(filepath.Base(file), data, onnx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var inputs []*types.Dense
			for _, a := range m.Func("main").Args {
				inputs = append(inputs, rising(a.Tensor()))
			}
			want, err := os.ReadFile(strings.TrimSuffix(file, ".onnx") + "_output_0.pb")
			if err != nil {
				t.Fatal(err)
			}
			d, _, err := onnx.Tensor(want)
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, data, inputs, []*types.Dense{d})
		})
	}
}

func readModel(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rising is the numbers from 0 to 1.
func rising(to *types.Tensor) *types.Dense {
	n, _ := to.Elements().Int()
	data := make([]byte, 0, 4*n)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(float64(i)/float64(n))))
	}
	return types.DenseOf(to, data)
}

// elemsByDtype are NumPy's names of element types.
var elemsByDtype = map[string]types.Elem{"float32": types.F32, "int64": types.I64}

// arrays are those called names of an archive beside file.
func arrays(t *testing.T, file, name string, names []string) (out []*types.Dense) {
	t.Helper()
	z, err := tensor.OpenNPZ(filepath.Join(filepath.Dir(file), name))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if len(z.Names()) != len(names) {
		t.Fatalf("%s has %v, the model %v", name, z.Names(), names)
	}
	for _, name := range names {
		shape, dtype, err := z.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		x, err := z.Read(name, elemsByDtype[dtype], shape)
		if err != nil {
			t.Fatal(name, dtype, err)
		}
		to := &types.Tensor{Elem: x.Elem}
		for _, n := range shape {
			to.Shape = append(to.Shape, dim.Const(int64(n)))
		}
		out = append(out, types.DenseOf(to, tensor.Pack(x)))
	}
	return out
}

// checkModel runs a model, and checks the text that dmir import writes of it.
func checkModel(t *testing.T, data []byte, inputs, outputs []*types.Dense) {
	t.Helper()
	text, arrays, err := onnx.Text("model.onnx", data, onnx.Options{}, "weights.npz")
	if err != nil {
		t.Fatal(err)
	}
	src := source.New("model.dmir", text)
	if format.File(parse.File(src)) != text {
		t.Error("the imported program is not formatted")
	}
	p := program.Load(src, program.Options{Arrays: arrays})
	for _, d := range p.Diags {
		if d.Severity >= diag.Warning {
			t.Errorf("%s: %s", d.Code, d.Message)
		}
	}
	var args []*tensor.Tensor
	for _, d := range inputs {
		x, err := tensor.Of(d)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, x)
	}
	res, err := interp.Run(t.Context(), p.Modules[0], p.Modules[0].Func("main"), args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Outputs) != len(outputs) {
		t.Fatalf("%d outputs, expected are %d", len(res.Outputs), len(outputs))
	}
	for i, d := range outputs {
		want, err := tensor.Of(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := close(res.Outputs[i], want); err != nil {
			t.Errorf("output %d: %v", i, err)
		}
	}
}
