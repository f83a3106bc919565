package plan

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/dialect/ir"
)

// forwards are programs that train nothing, by name: a function @f of which the batch is known.
var forwards = map[string]string{
	"feed-forward, the type of its result": `func.func @f(%x: tensor<64x32xf32>, %up: tensor<32x128xf32>, %down: tensor<128x32xf32>) -> tensor<64x32xf32> {
  %h = dm.matmul %x, %up : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
  %a = dm.gelu %h : tensor<64x128xf32>
  %y = dm.matmul %a, %down : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}`,
	"weights before the samples": `func.func @f(%w: tensor<32x32xf32>, %v: tensor<32x32xf32>, %s: tensor<32xf32>, %x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %n = dm.rms_norm %x, %s : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
  %h = dm.matmul %n, %w, transpose_b = true : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %y = dm.matmul %h, %v, transpose_b = true : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %o = dm.add %x, %y : tensor<32x32xf32>
  return %o : tensor<32x32xf32>
}`,
	"one product": `func.func @f(%w: tensor<256x64xf32>, %b: tensor<256xf32>, %x: tensor<16x64xf32>) -> tensor<16x256xf32> {
  %h = dm.matmul %x, %w, transpose_b = true : (tensor<16x64xf32>, tensor<256x64xf32>) -> tensor<16x256xf32>
  %y = dm.add %h, %b : (tensor<16x256xf32>, tensor<256xf32>) -> tensor<16x256xf32>
  return %y : tensor<16x256xf32>
}`,
	"features in front of samples": `func.func @f(%w: tensor<64x32xf32>, %v: tensor<8x64xf32>, %x: tensor<32x16xf32>) -> tensor<8x16xf32> {
  %h = dm.matmul %w, %x : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  %a = dm.relu %h : tensor<64x16xf32>
  %y = dm.matmul %v, %a : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}`,
	"a loss": `func.func @f(%up: tensor<32x512xf32>, %down: tensor<512x32xf32>, %x: tensor<64x32xf32>, %labels: tensor<64xi64>) -> tensor<f32> {
  %h = dm.matmul %x, %up : (tensor<64x32xf32>, tensor<32x512xf32>) -> tensor<64x512xf32>
  %a = dm.relu %h : tensor<64x512xf32>
  %y = dm.matmul %a, %down : (tensor<64x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32>
  %l = dm.cross_entropy %y, %labels : (tensor<64x32xf32>, tensor<64xi64>) -> tensor<f32>
  return %l : tensor<f32>
}`,
	"tokens of a table": `func.func @f(%table: tensor<512x32xf32>, %ids: tensor<8x16xi64>, %w: tensor<32x512xf32>) -> tensor<8x16x512xf32> {
  %e = dm.embedding %table, %ids : (tensor<512x32xf32>, tensor<8x16xi64>) -> tensor<8x16x32xf32>
  %y = dm.matmul %e, %w : (tensor<8x16x32xf32>, tensor<32x512xf32>) -> tensor<8x16x512xf32>
  return %y : tensor<8x16x512xf32>
}`,
	"a depthwise convolution": `func.func @f(%x: tensor<16x8x9x9xf32>, %w: tensor<8x1x3x3xf32>, %p: tensor<8x8x1x1xf32>) -> tensor<16x8x9x9xf32> {
  %d = dm.convolution %x, %w, padding = [[1, 1], [1, 1]], feature_group_count = 8 : (tensor<16x8x9x9xf32>, tensor<8x1x3x3xf32>) -> tensor<16x8x9x9xf32>
  %y = dm.convolution %d, %p : (tensor<16x8x9x9xf32>, tensor<8x8x1x1xf32>) -> tensor<16x8x9x9xf32>
  return %y : tensor<16x8x9x9xf32>
}`,
	"an equation": `func.func @f(%x: tensor<16x32xf32>, %w: tensor<64x32xf32>, %v: tensor<32x64xf32>) -> tensor<16x32xf32> {
  %h = dm.einsum "bi,oi->bo" %x, %w : (tensor<16x32xf32>, tensor<64x32xf32>) -> tensor<16x64xf32>
  %y = dm.einsum "bi,oi->bo" %h, %v : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}`,
}

// The batch is found by what is computed, with no help of names: of programs that train and those that do not.
func TestBatchWithoutNames(t *testing.T) {
	rows := []struct{ name, samples string }{
		{"examples/bert_encoder.dmir", "%x"},
		{"examples/bert_encoder_train.dmir", "%x %dy"},
		{"examples/cnn.dmir", ""}, // statistics of the whole batch are divided in what a gradient writes out alone
		{"examples/cnn_train.dmir", "%images %labels"},
		{"examples/ffn.dmir", "%x"},
		{"examples/llama_layer.dmir", ""}, // one sample
		{"examples/llama_layer_train.dmir", ""},
		{"examples/lstm_train.dmir", "%x (dimension 1) %labels"},
		{"examples/mlp_train.dmir", "%x %labels"},
		{"examples/transformer_block.dmir", "%x"},
		{"examples/transformer_train.dmir", "%tokens"},
		{"testdata/programs/cnn_forward.dmir", ""},
		{"testdata/programs/cnn_train.dmir", "%images %labels"},
		{"testdata/programs/embedding_train.dmir", "%drawn %labels"},
		{"testdata/programs/encoder_forward.dmir", "%x"},
		{"testdata/programs/encoder_train.dmir", "%x %dy"},
		{"testdata/programs/llama_forward.dmir", "%x"},
		{"testdata/programs/llama_train.dmir", "%x %dy"},
		{"testdata/programs/mlp_train.dmir", "%x %labels"},
		{"feed-forward, the type of its result", "%x"},
		{"weights before the samples", "%x"},
		{"one product", "%x"},
		{"features in front of samples", "%x (dimension 1)"},
		{"a loss", "%x %labels"},
		{"tokens of a table", "%ids"},
		{"a depthwise convolution", "%x"},
		{"an equation", "%x"},
	}
	name := regexp.MustCompile(`%[A-Za-z_]\w*|dm\.state = "\w+"`)
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			text, ok := forwards[c.name]
			if !ok {
				data, err := os.ReadFile("../../" + c.name)
				if err != nil {
					t.Fatal(err)
				}
				text = string(data)
			}
			mangled, was := map[string]string{}, map[string]string{}
			mangle := func(s string) string {
				if mangled[s] == "" {
					mangled[s] = "%n" + strconv.Itoa(len(mangled))
					was[mangled[s]] = s
				}
				return mangled[s]
			}
			m := loadText(t, name.ReplaceAllStringFunc(text, func(s string) string {
				if state, ok := strings.CutPrefix(s, `dm.state = "`); ok {
					return `dm.state = "` + mangle("%" + strings.TrimSuffix(state, `"`))[1:] + `"`
				}
				return mangle(s)
			}))
			public := slices.IndexFunc(m.Funcs, func(f *ir.Func) bool { return !f.Private })
			s, err := newSearch(m, m.Funcs[public], Options{Machine: cluster(t, "dgx-h100"), Devices: 4, Bind: map[string]int64{"b": 4, "n": 16, "s": 64}})
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range s.samples {
				first, rest, _ := strings.Cut(x, " ")
				s.samples[i] = strings.TrimSpace(was[first] + " " + rest)
			}
			if got := strings.Join(s.samples, " "); got != c.samples {
				t.Errorf("the samples are those of %q, not %q", got, c.samples)
			}
		})
	}
}
