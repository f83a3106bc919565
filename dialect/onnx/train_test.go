package onnx_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/onnx"
	"dmir/dialect/train"
	. "dmir/testkit/onnxmodel"
)

// classifier is a layer, batch normalization, dropout and a layer: x of [4, 3] and y of [4, 2].
func classifier(more ...Message) Message {
	return Graph([]Message{Value("x", F32, 4, 3)}, append([]Message{Value("y", F32, 4, 2)}, more...),
		[]Message{
			Floats("0.weight", []int{5, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
			Floats("norm.weight", []int{5}, 1, 1, 1, 1, 1), Floats("norm.bias", []int{5}, 0, 0, 0, 0, 0),
			Floats("norm.running_mean", []int{5}, 0, 0, 0, 0, 0), Floats("norm.running_var", []int{5}, 1, 1, 1, 1, 1),
			Floats("head", []int{5, 2}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), Floats("share", nil, 0.25), Raw("on", Bool, nil, []byte{1}),
			Floats("gain", []int{1}, 3),
		},
		Node("Gemm", []string{"x", "0.weight"}, []string{"a"}, Attr("transB", 1)),
		Node("BatchNormalization", []string{"a", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"}, []string{"b"}, Attr("momentum", 0.9)),
		Node("Relu", []string{"b"}, []string{"c"}),
		Node("Dropout", []string{"c", "share", "on"}, []string{"d"}),
		Node("MatMul", []string{"d", "head"}, []string{"e"}),
		Node("Mul", []string{"e", "gain"}, []string{"y"}),
	)
}

const signature = "\n# inputs\np_0: PARAMETER target='0.weight'\np_1: PARAMETER target='norm.weight'\np_2: PARAMETER target='norm.bias'\np_3: PARAMETER target='head'\n" +
	"b_1: BUFFER target='norm.running_mean' persistent=True\nb_2: BUFFER target='gain' persistent=True\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n"

// signed is a graph as torch.onnx writes it, which names the parameters.
func signed(graph Message) []byte {
	return Model(20, Noted(graph, OfGraph, "pkg.torch.export.ExportedProgram.graph_signature", signature))
}

var update = flag.Bool("rewrite", false, "rewrite the golden texts")

func step(model []byte, text string) (string, error) {
	spec, err := train.Read(text)
	if err != nil {
		return "", err
	}
	got, _, err := onnx.TrainText("m.onnx", model, onnx.Options{}, spec, "m.weights.npz")
	return got, err
}

// Training steps as text.
func TestTrain(t *testing.T) {
	vector := func(e int64, shape ...any) []byte { // y is a product of x with a weight
		return Model(20, Graph([]Message{Value("x", F32, 4, 3)}, []Message{Value("y", e, shape...)}, []Message{Floats("w", []int{3, 2}, 1, 2, 3, 4, 5, 6)},
			Node("MatMul", []string{"x", "w"}, []string{"y"})))
	}
	for name, c := range map[string]struct {
		model []byte
		spec  string
	}{
		"adamw":               {signed(classifier()), "loss=cross_entropy,optimizer=adamw,lr=0.01,decay=matrices,label_smoothing=0.1,ignore_index=0"},
		"guessed":             {Model(20, classifier()), "loss=cross_entropy,optimizer=sgd,lr=0.1"},
		"attention's dropout": {Model(20, Graph([]Message{Value("x", F32, 4, 3)}, []Message{Value("y", F32, 4, 3)}, []Message{Floats("w", []int{3}, 1, 2, 3), Floats("share", nil, 0.25)}, Node("Mul", []string{"x", "w"}, []string{"h"}), Node("Dropout", []string{"h", "share"}, []string{"y"}))), "loss=mse,optimizer=sgd"},
		"frozen":              {signed(classifier()), "loss=cross_entropy,optimizer=momentum,lr=0.1,nesterov=true,freeze=norm.*,batch_norm=eval"},
		"own of two outputs":  {Model(20, Graph([]Message{Value("x", F32, 4, 3)}, []Message{Value("y", F32, 4, 2), Value("l", F32)}, []Message{Floats("w", []int{3, 2}, 1, 2, 3, 4, 5, 6)}, Node("MatMul", []string{"x", "w"}, []string{"y"}), Node("ReduceMean", []string{"y"}, []string{"l"}, Attr("keepdims", 0)))), "loss=output,optimizer=sgd"},
		"mse":                 {vector(F32, 4, 2), "loss=mse,optimizer=adam,lr=0.1,weight_decay=0.5"},
		"bce":                 {vector(F32, 4, 2), "loss=bce_with_logits,reduction=sum,optimizer=sgd,lr=input,weight_decay=0.5"},
		"nll":                 {vector(F32, 4, 2), "loss=nll,optimizer=sgd,lr=0.1,dim=0"},
		"own loss":            {Model(20, Graph([]Message{Value("x", F32, 4)}, []Message{Value("z", F32), Value("y", F32, 4)}, []Message{Floats("w", []int{4}, 1, 2, 3, 4)}, Node("Mul", []string{"x", "w"}, []string{"y"}), Node("ReduceMean", []string{"y"}, []string{"z"}, Attr("keepdims", 0)))), "loss=output,output=z,optimizer=sgd,lr=0.1"},
		"sequences":           {Model(20, Graph([]Message{Value("x", F32, 4, 3)}, []Message{Value("y", F32, 4, 3)}, []Message{Floats("w", []int{3, 6}, make([]float32, 18)...), Ints("each", nil, 3), Ints("last", nil, -1)}, Node("MatMul", []string{"x", "w"}, []string{"h"}), Node("SplitToSequence", []string{"h", "each"}, []string{"s"}, Attr("axis", 1)), Node("SequenceAt", []string{"s", "last"}, []string{"y"}))), "loss=mse,optimizer=sgd"},
		"in a function": {Model(20, Graph([]Message{Value("x", F32, 4, 3)}, []Message{Value("y", F32, 4, 3)},
			[]Message{Floats("w", []int{3}, 1, 1, 1), Floats("b", []int{3}, 0, 0, 0), Floats("mean", []int{3}, 0, 0, 0), Floats("var", []int{3}, 1, 1, 1)},
			Node("local.outer", []string{"x", "w", "b", "mean", "var"}, []string{"y"}, Attr("eps", 1e-3))),
			Function("outer", []string{"p", "q", "r", "s", "t"}, []string{"u"}, Node("local.norm", []string{"t", "s", "r", "q", "p"}, []string{"u"}, Ref("eps", "eps"))),
			Function("norm", []string{"a", "b", "c", "d", "e"}, []string{"g"}, Node("BatchNormalization", []string{"e", "d", "c", "b", "a"}, []string{"f"}, Attr("momentum", 0.9)),
				Node("Constant", nil, []string{"h"}, Ref("value_float", "eps")), Node("Add", []string{"f", "h"}, []string{"g"}))), "loss=mse,optimizer=sgd"},
		"without values": {Model(20, Noted(Graph([]Message{Value("x", F32, 4, 3), Value("w", F32, 3, 2), Value("f", F32, 2)}, []Message{Value("y", F32, 4, 2)}, nil, Node("MatMul", []string{"x", "w"}, []string{"h"}), Node("Mul", []string{"h", "f"}, []string{"y"})), OfGraph, "pkg.torch.export.ExportedProgram.graph_signature", "w: PARAMETER target='w'\nf: PARAMETER target='f'\n")), "loss=mse,optimizer=sgd,freeze=f"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := step(c.model, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "train", strings.NewReplacer(" ", "_", "'", "").Replace(name)+".dmir")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is not current: run this test with -rewrite\n%s", file, got)
			}
		})
	}
}

// Older versions of torch.onnx write another text for the signature of the module.
func TestTrainOldSignature(t *testing.T) {
	old := "ExportGraphSignature(input_specs=["
	for _, name := range []string{"0.weight", "norm.weight", "norm.bias", "head"} {
		old += "InputSpec(kind=<InputKind.PARAMETER: 2>, arg=TensorArgument(name='p_x'), target='" + name + "', persistent=None), "
	}
	old += "InputSpec(kind=<InputKind.BUFFER: 3>, arg=TensorArgument(name='b_gain'), target='gain', persistent=True)], output_specs=[])"
	const spec = "loss=cross_entropy,optimizer=adamw,lr=0.01"
	want, err := step(signed(classifier()), spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := step(Model(20, Noted(classifier(), OfGraph, "pkg.torch.export.ExportedProgram.graph_signature", old)), spec)
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// The names of parameters are no paths.
func TestTrainNames(t *testing.T) {
	spec, err := train.Read("loss=mse,optimizer=sgd")
	if err != nil {
		t.Fatal(err)
	}
	model := Model(20, Graph([]Message{Value("x", F32, 2)}, []Message{Value("y", F32, 2)}, []Message{Floats("../../a\"b", []int{2}, 1, 2), Floats(".._.._a\"b", []int{2}, 3, 4)},
		Node("Mul", []string{"x", "../../a\"b"}, []string{"h"}), Node("Add", []string{"h", ".._.._a\"b"}, []string{"y"})))
	_, w, err := onnx.TrainText("m.onnx", model, onnx.Options{}, spec, "m.weights.npz")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range w.Arrays {
		got = append(got, a.Name)
	}
	if want := ".._.._a_b .._.._a_b_1"; strings.Join(got, " ") != want {
		t.Errorf("the arrays are %q", got)
	}
}

// Each reason why there is no step is one error, with what to do.
func TestTrainRefused(t *testing.T) {
	const adamw = "loss=cross_entropy,optimizer=adamw,lr=0.01"
	whole := signed(classifier())
	simple := func(constant Message, nodes ...Message) []byte {
		return Model(20, Graph([]Message{Value("x", F32, 4, 2)}, []Message{Value("y", F32, 4, 2)}, []Message{constant}, nodes...))
	}
	w := Floats("w", []int{2}, 1, 2)
	state := []Message{Value("on", Bool), Value("v", F32, 4, 2)}
	loop := Model(20, Graph([]Message{Value("x", F32, 4, 2), Value("n", I64)}, []Message{Value("y", F32, 4, 2)}, []Message{w},
		Node("Loop", []string{"n", "", "x"}, []string{"y"}, Attr("body", Graph(append([]Message{Value("i", I64)}, state...), []Message{Value("on", Bool), Value("u", F32, 4, 2)}, nil,
			Node("Mul", []string{"v", "w"}, []string{"u"}))))))
	for name, c := range map[string]struct {
		model           []byte
		spec, key, want string
		help            string
	}{
		"no pair":         {whole, "loss", "loss", "is not key=value", "write loss="},
		"unknown key":     {whole, adamw + ",weigth_decay=1", "weigth_decay=1", "weigth_decay is no key", "did you mean weight_decay?"},
		"unknown loss":    {whole, "loss=cross_entrpy,optimizer=sgd", "loss=cross_entrpy", "is no value of loss", "did you mean cross_entropy?"},
		"no number":       {whole, "loss=mse,optimizer=sgd,lr=fast", "lr=fast", "is not a number", "write a number"},
		"beta of 1":       {whole, adamw + ",beta1=1", "beta1=1", "is not a number of at least 0 and below 1", ""},
		"twice":           {whole, adamw + ",lr=1", "lr=1", "a second time", "once"},
		"no loss":         {whole, "optimizer=sgd", "loss=", "is missing", "loss=cross_entropy"},
		"no optimizer":    {whole, "loss=mse", "optimizer=", "is missing", "optimizer=adamw"},
		"of another":      {whole, adamw + ",momentum=0.9", "momentum=0.9", "is for sgd and momentum", "remove it"},
		"nesterov alone":  {whole, "loss=mse,optimizer=sgd,nesterov=true", "nesterov=true", "needs a momentum", "add momentum"},
		"no such output":  {whole, adamw + ",output=z", "output=z", "no such output", "the outputs are y"},
		"freezes nothing": {whole, adamw + ",freeze=h.*", "freeze=h.*", "names no parameter", "the parameters are 0.weight, norm.weight, norm.bias, head"},
		"two outputs":     {Model(20, classifier(Value("a", F32, 4, 5))), adamw, "", "the model has 2 outputs", "output=y; the outputs are y, a"},
		"no scalar":       {whole, "loss=output,optimizer=sgd", "", "is tensor<4x2xf32>", "as loss=mse"},
		"integers":        {Model(20, Graph([]Message{Value("x", F32, 4, 2)}, []Message{Value("y", I64, 4)}, []Message{w}, Node("Mul", []string{"x", "w"}, []string{"h"}), Node("ArgMax", []string{"h"}, []string{"y"}, Attr("axis", 1), Attr("keepdims", 0)))), adamw, "", "the output is tensor<4xi64>, and a loss is of floating-point numbers", "output=NAME"},
		"dimension":       {whole, adamw + ",dim=2", "", "dim=2", ""},
		"no parameter":    {simple(Ints("w", []int{2}, 1, 2), Node("Relu", []string{"x"}, []string{"y"})), adamw, "", "has no parameters to train", "initializer"},
		"not reached":     {simple(w, Node("Mul", []string{"x", "w"}, []string{"h"}), Node("Cast", []string{"h"}, []string{"i"}, Attr("to", I64)), Node("Cast", []string{"i"}, []string{"y"}, Attr("to", F32))), adamw, "", "no gradient of the loss reaches a parameter", "depends on them"},
		"quantized": {
			simple(w, Node("QuantizeLinear", []string{"x", "w"}, []string{"y"})), adamw, "", "the model is quantized", "made of",
		},
		"open size": {Model(20, Graph([]Message{Value("x", F32, "N")}, []Message{Value("y", F32, "N")}, []Message{w}, Node("Mul", []string{"x", "w"}, []string{"y"}))), adamw, "", `input "x": the size of dimension 0 is open`, "--bind N=8"},
		"folded": {
			signed(Graph([]Message{Value("x", F32, 4, 2)}, []Message{Value("y", F32, 4, 2)}, []Message{w},
				Noted(Node("Mul", []string{"x", "w"}, []string{"y"}), OfNode, "pkg.onnxscript.rewriter.rule_name", "FuseBatchNormIntoConv"))),
			adamw, "", "folded parameters into others: 0.weight, head, norm.bias, norm.weight", "optimize=False",
		},
		"no derivative": {loop, adamw, "", "dm.while has no derivative here: the values of each iteration are kept", "bound them"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := step(c.model, c.spec)
			var e *train.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v is no error of package train", err)
			}
			if e.Key != c.key || !strings.Contains(e.Msg, c.want) || !strings.Contains(e.Help, c.help) {
				t.Errorf("%+v, want %q: %q with help %q", *e, c.key, c.want, c.help)
			}
		})
	}
}

// An object in JSON is a specification as well.
func TestTrainJSON(t *testing.T) {
	a, err := train.ReadJSON([]byte(`{"loss": "mse", "optimizer": "adam", "lr": 3e-4, "betas": [0.8, "0.9"], "freeze": ["a.*", "b"], "weight_decay": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := train.Read("loss=mse,optimizer=adam,lr=0.0003,beta1=0.8,beta2=0.9,freeze=a.*,freeze=b,weight_decay=1")
	if err != nil {
		t.Fatal(err)
	}
	if a.LR != b.LR || a.Beta1 != b.Beta1 || a.Beta2 != b.Beta2 || strings.Join(a.Freeze, " ") != strings.Join(b.Freeze, " ") || a.WeightDecay != b.WeightDecay {
		t.Errorf("%+v, want %+v", a, b)
	}
	for _, text := range []string{"[]", `{"loss": "mse", "optimizer": ["adam"]}`, `{"loss": {}, "optimizer": "adam"}`, `{"betas": [1]}`, "null", `{"loss": null}`} {
		if _, err := train.ReadJSON([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
