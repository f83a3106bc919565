package conformance

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// multiplyAdds are those of the Conv, Gemm and MatMul nodes of models, by the shapes that
// onnx.shape_inference of ONNX 1.23 gives them.
var multiplyAdds = map[string]int64{
	"deeploy/CCT_1_16_16_8/network.onnx":     55296 + 99328 + 80,
	"deeploy/CCT_1_16_16_32/network.onnx":    55296 + 99328 + 80,
	"deeploy/Transformer_Train/network.onnx": 55296 + 99328 + 160,
	"onnx-light/light_inception_v1.onnx":     1430532352 + 1024000,
	"onnx-light/light_resnet50.onnx":         4087136256 + 2048000,
	"onnx-light/light_shufflenet.onnx":       124120528 + 544000,
	"onnx-light/light_squeezenet.onnx":       349151936,
}

// xlaFLOP are the "flops" that XLA's HloCostAnalysis (jaxlib 0.10.2) counts in programs
// before it optimizes them. It counts a maximum and a comparison as one, a composite as
// what it is written out in, and a logarithm as none.
var xlaFLOP = map[string]float64{
	"byteir/BertTiny_FW.mlir":            2252323328,
	"byteir/BertTiny_BW.mlir":            4513895936,
	"byteir/MLPInference.mlir":           3380,
	"byteir/NanoGPT_FW.mlir":             389925961728,
	"iree/fullyconnected.mlir":           875,
	"iree/mnist_fake_weights.mlir":       203568,
	"iree/mobilenetv3_fake_weights.mlir": 120803560,
}

// The FLOP of the contractions of a model is twice its multiply-adds.
func TestMultiplyAdds(t *testing.T) {
	dir := folder(t, "models")
	for name, want := range multiplyAdds {
		t.Run(name, func(t *testing.T) {
			m, err := onnx.Import(name, readModel(t, filepath.Join(dir, name)), onnx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := int64(0)
			ir.Walk(m.Ops, func(o *ir.Op) bool {
				switch n, _ := op.FLOP(o).Int(); o.Name {
				case "dm.convolution", "dm.matmul", "dm.einsum":
					got += n
				case "dm.attention": // two contractions and a softmax
					q, k := o.In(0), o.In(1)
					n, _ := q.Elements().Int()
					keys, _ := k.Shape[k.Rank()-2].Int()
					got += 4 * n * keys
				}
				return true
			})
			if got != 2*want {
				t.Errorf("%d FLOP of contractions, want %d", got, 2*want)
			}
		})
	}
}

// The FLOP of a program is near what XLA counts.
func TestXLAFLOP(t *testing.T) {
	dir := folder(t, "models")
	for name, want := range xlaFLOP {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			p := program.Load(source.New(name, string(text)), program.Options{})
			noErrors(t, p)
			got, _ := p.Funcs[0].FLOP.Int()
			near := 0.02
			if want < 1e4 {
				near = 0.1 // activations weigh more
			}
			if math.Abs(float64(got)/want-1) > near {
				t.Errorf("%d FLOP, XLA counts %.0f", got, want)
			}
		})
	}
}
