package irdl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/irdl"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// verifier writes the definition to a file and gives a function that runs
// mlir-opt on a text with it.
func verifier(t *testing.T) func(text string, flags ...string) (out string, err error) {
	t.Helper()
	tool := need.Tool(t, "mlir-opt-22", "apt-get install mlir-22-tools")
	file := filepath.Join(t.TempDir(), "dm.irdl.mlir")
	if err := os.WriteFile(file, []byte(irdl.Generate()), 0o644); err != nil {
		t.Fatal(err)
	}
	return func(text string, flags ...string) (string, error) {
		c := exec.Command(tool, append(flags, "--irdl-file="+file, "-")...)
		c.Stdin = strings.NewReader(text)
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

func TestAccepted(t *testing.T) {
	run := verifier(t)
	if out, err := run("func.func @f() {\n  return\n}\n"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestVerifies(t *testing.T) {
	cases := []struct{ name, op, want string }{
		{"add", `%r = "dm.add"(%x, %y) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>`, ""},
		{"scalar add", `%r = "dm.add"(%s, %s) : (f32, f32) -> f32`, ""},
		{"vector operand", `%r = "dm.add"(%x, %v) : (tensor<4xf32>, vector<4xf32>) -> tensor<4xf32>`, "does not satisfy the constraint"},
		{"index operand", `%r = "dm.add"(%i, %i) : (index, index) -> index`, "does not satisfy the constraint"},
		{"softmax of a vector", `%r = "dm.softmax"(%v) : (vector<4xf32>) -> tensor<4xf32>`, "expected base type 'builtin.tensor' but got 'builtin.vector'"},
		{"one operand", `%r = "dm.add"(%x) : (tensor<4xf32>) -> tensor<4xf32>`, "expects exactly 2 operands, but got 1"},
		{"keyword", `%r = "dm.compare"(%x, %x) {direction = "lt"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>`, ""},
		{"wrong keyword", `%r = "dm.compare"(%x, %x) {direction = "less"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>`, "does not satisfy the constraint"},
		{"missing attribute", `%r = "dm.compare"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>`, `attribute "direction" is expected but not provided`},
		{"scale and bias", `%r = "dm.layer_norm"(%y, %x, %x) : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>`, ""},
		{"neither", `%r = "dm.layer_norm"(%y) : (tensor<2x4xf32>) -> tensor<2x4xf32>`, ""},
		{
			"einsum", `%r = "dm.einsum"(%y, %x) {equation = "ij,j->i", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}` +
				` : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>`, "",
		},
		{"unknown op", `"dm.nothing"() : () -> ()`, "unregistered operation 'dm.nothing'"},
		{"placement", `%r = "dm.exp"(%p) : (tensor<4xf32, #dm.at<"host">>) -> tensor<4xf32, #dm.at<"host">>`, ""},
		{"mesh", `"dm.mesh"() {sym_name = "pod", axes = ["data"], sizes = [2]} : () -> ()`, ""},
		{"mesh without sizes", `"dm.mesh"() {sym_name = "pod", axes = ["data"]} : () -> ()`, `attribute "sizes" is expected but not provided`},
		{"sharding", `%r = "dm.reshard"(%x) : (tensor<4xf32>) -> tensor<4xf32, #dm.at<"split = @pod[{data:(2)4, ?}], partial = max{x}">>`, ""},
		{"collective", `%r = "dm.all_reduce"(%x) {reduction = "add", axes = ["data"]} : (tensor<4xf32>) -> tensor<4xf32>`, ""},
		{"unknown reduction", `%r = "dm.all_reduce"(%x) {reduction = "mean", axes = ["data"]} : (tensor<4xf32>) -> tensor<4xf32>`, "does not satisfy the constraint"},
		{"axes of a collective", `%r = "dm.all_gather"(%x) {dim = 0, axes = "data"} : (tensor<4xf32>) -> tensor<8xf32>`, "expected base attribute 'builtin.array' but got 'builtin.string'"},
		{"file", `%r = "dm.constant"() {value = #dm.file<"w.npz", "w">} : () -> tensor<4xf32>`, ""},
		{"file without a name", `%r = "dm.constant"() {value = #dm.file<"w.npy">} : () -> tensor<4xf32>`, "expected 2 type arguments"},
		{"no region", `"dm.kernel"() {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()`, "expected 1 but got 0"},
	}
	run := verifier(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, err := run("func.func @f(%x: tensor<4xf32>, %y: tensor<2x4xf32>, %v: vector<4xf32>, %s: f32, %i: index,\n    %p: tensor<4xf32, #dm.at<\"host\">>) attributes {dm.bind = {n = 512}} {\n  " + c.op + "\n  return\n}\n")
			switch {
			case c.want == "" && err != nil:
				t.Errorf("rejected: %s", out)
			case c.want != "" && (err == nil || !strings.Contains(out, c.want)):
				t.Errorf("%v; want %q in:\n%s", err, c.want, out)
			}
		})
	}
}

// Every example, in generic form, is verified by MLIR.
func TestExamples(t *testing.T) {
	run := verifier(t)
	var texts []string
	for _, d := range op.All() {
		m := lower.File(parse.File(source.New(d.Name, d.Example+"\n")))[0]
		text, err := irdl.Text(m)
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		texts = append(texts, text)
	}
	if _, err := run(strings.Join(texts, "// -----\n"), "--split-input-file"); err == nil {
		return
	}
	for i, d := range op.All() {
		if out, err := run(texts[i]); err != nil {
			t.Errorf("%s: %v\n%s\n%s", d.Name, err, out, texts[i])
		}
	}
}

// A placement whose mesh has a name in quotes is one string.
func TestPlacement(t *testing.T) {
	text, err := irdl.Text(lower.File(parse.File(source.New("quoted.dmir",
		"dm.mesh @\"a b\" {x = 2}\nfunc.func private @f(tensor<4xf32, #dm.at<host, split = @\"a b\"[{x}]>>)\n")))[0])
	if want := `#dm.at<"host, split = @\22a b\22[{x}]">`; err != nil || !strings.Contains(text, want) {
		t.Errorf("error %v, no %s in:\n%s", err, want, text)
	}
	if out, err := verifier(t)(text); err != nil {
		t.Error(out)
	}
}

func TestTooManyValues(t *testing.T) {
	names := make([]string, irdl.Slots+1)
	types := make([]string, len(names))
	for i := range names {
		names[i], types[i] = "%x", "tensor<1xf32>"
	}
	list := strings.Join(types, ", ")
	text := "func.func @f(%x: tensor<1xf32>) {\n  %y = dm.concatenate " + strings.Join(names, ", ") + ", dim = 0 : (" + list + ") -> tensor<17xf32>\n  return\n}\n"
	_, err := irdl.Text(lower.File(parse.File(source.New("many.dmir", text)))[0])
	if err == nil || !strings.Contains(err.Error(), "dm.concatenate has 17 operands") {
		t.Errorf("error %v", err)
	}
}
