package onnx_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/op"
	. "dmir/testkit/onnxmodel"
)

func relu(ins ...Message) []byte {
	return Model(13, Graph(ins, []Message{Value("y", F32, 2)}, nil, Node("Relu", []string{"x"}, []string{"y"})))
}

// on is a model with constants and nodes between the input x, of two numbers, and the
// output y.
func on(constants []Message, nodes ...Message) []byte {
	return Model(13, Graph([]Message{Value("x", F32, 2)}, []Message{Value("y", F32, 2)}, constants, nodes...))
}

// deep is a model with graphs in each other.
func deep(n int) []byte {
	g := Graph(nil, []Message{Value("r", F32, 2)}, nil, Node("Relu", []string{"x"}, []string{"r"}))
	for range n {
		g = Graph(nil, []Message{Value("r", F32, 2)}, nil, Node("If", []string{"c"}, []string{"r"}, Attr("then_branch", g), Attr("else_branch", g[:0:0])))
	}
	return Model(13, g)
}

// invalid are models that are not imported, and why.
func invalid() map[string]struct {
	model      []byte
	code, want string
} {
	type c = struct {
		model      []byte
		code, want string
	}
	two := []int{2}
	cut := relu(Value("x", F32, 2))
	calls := func(a, b string) Message {
		return Function(a, []string{"p"}, []string{"q"}, Node("local."+b, []string{"p"}, []string{"q"}))
	}
	return map[string]c{
		"empty":         {nil, "DM144", "it has no graph"},
		"text":          {[]byte("func.func @main()"), "DM144", "is no ONNX model or is cut off"},
		"cut off":       {cut[:len(cut)-30], "DM144", "is no ONNX model or is cut off"},
		"no opset":      {[]byte{8, 8, 0x3a, 0}, "DM144", "imports no operator set"},
		"unknown opset": {Model(99, Graph(nil, nil, nil)), "DM144", "version 99 of the operator set is not known"},
		"unknown op":    {on(nil, Node("Nonsense", []string{"x"}, []string{"y"})), "DM140", `the node of "y" (Nonsense): the op Nonsense: the dialect has no equivalent`},
		"unknown attribute": {
			on(nil, Node("Relu", []string{"x"}, []string{"y"}, Attr("window", 1))), "DM144", `the node of "y" (Relu): Relu has no attribute "window"`,
		},
		"unread attribute": {
			on(nil, Node("Clip", []string{"x"}, []string{"y"}, Attr("min", 1.0))), "DM140", `the attribute min of Clip`,
		},
		"extra input": {on(nil, Node("Relu", []string{"x", "x"}, []string{"y"})), "DM144", `the node of "y" (Relu): 2 inputs, and Relu has 1 at most`},
		"strings":     {relu(Value("x", Text, 2)), "DM140", `input "x"`},
		"open size": {
			Model(13, Graph([]Message{Value("x", F32, "N")}, []Message{Value("y", F32)}, []Message{Ints("s", []int{2}, 2, 5)}, Node("Reshape", []string{"x", "s"}, []string{"y"}))),
			"DM144", `input "x": the size of dimension 0 cannot stay open (the node of "y" (Reshape): [102] has no shape [2 5]): --bind N=1 gives it`,
		},
		"open unnamed": {
			Model(13, Graph([]Message{Value("x", F32, 1, 1, nil)}, []Message{Value("y", F32)}, []Message{Floats("s", []int{3}, 1, 1, 0.5)}, Node("Resize", []string{"x", "", "s"}, []string{"y"}))),
			"DM144", `input "x": the size of dimension 2 cannot stay open (dm.constant for %y depends on it): --bind x.2=1 gives it`,
		},
		"open sizes, one to blame": {
			Model(13, Graph([]Message{Value("z", F32, "M"), Value("x", F32, "N")}, []Message{Value("y", F32)}, []Message{Ints("s", []int{2}, 2, 2)},
				Node("Reshape", []string{"x", "s"}, []string{"w"}), Node("ReduceSum", []string{"z"}, []string{"v"}), Node("Add", []string{"w", "v"}, []string{"y"}))),
			"DM144", `input "x": the size of dimension 0 cannot stay open`,
		},
		"open sizes":    {relu(Value("x", F32, nil, nil, nil, nil, nil, nil, nil, nil, nil)), "DM140", "more than 8 sizes are open"},
		"negative size": {relu(Value("x", F32, -3)), "DM144", "size -3 is negative"},
		"too large":     {relu(Value("x", F32, 1<<40, 1<<40)), "DM144", "more than"},
		"overflow":      {on([]Message{Floats("w", []int{1 << 32, 1 << 32})}), "DM144", "more than"},
		"no such value": {on(nil, Node("Relu", []string{"z"}, []string{"y"})), "DM144", `"z" is not defined`},
		"no output":     {on(nil, Node("Relu", []string{"x"}, []string{"z"})), "DM144", `"y" is not defined`},
		"twice":         {on(nil, Node("Relu", []string{"x"}, []string{"y"}), Node("Relu", []string{"x"}, []string{"y"})), "DM144", `"y" is defined twice`},
		"input again":   {on(nil, Node("Relu", []string{"x"}, []string{"x"})), "DM144", `the graph has a cycle`},
		"cycle": {
			on(nil, Node("Add", []string{"x", "b"}, []string{"a"}), Node("Relu", []string{"a"}, []string{"b"}), Node("Relu", []string{"b"}, []string{"y"})),
			"DM144", "the graph has a cycle",
		},
		"constant's size": {on([]Message{Floats("w", two, 1, 2, 3)}, Node("Add", []string{"x", "w"}, []string{"y"})), "DM144", `tensor "w" has 12 bytes, its type tensor<2xf32> takes 8`},
		"sparse, unsorted": {
			sparse(Sparse(Floats("w", two, 1, 2), Ints("", two, 5, 1), 3, 2)), "DM144", `sparse tensor "w": entry 1 is element 1, behind element 5: entries are sorted`,
		},
		"sparse, twice":   {sparse(Sparse(Floats("w", two, 1, 2), Ints("", two, 5, 5), 3, 2)), "DM144", "entry 1 is element 5, behind element 5"},
		"sparse, outside": {sparse(Sparse(Floats("w", two, 1, 2), Ints("", []int{2, 2}, 0, 1, 3, 0), 3, 2)), "DM144", "index 0 of entry 1 is 3, outside of 3"},
		"sparse, number":  {sparse(Sparse(Floats("w", two, 1, 2), Ints("", two, 1, 6), 3, 2)), "DM144", "entry 1 is number 6 of 6 elements"},
		"sparse, indices": {sparse(Sparse(Floats("w", two, 1, 2), Ints("", []int{3}, 1, 2, 3), 3, 2)), "DM144", "its indices are tensor<3xi64>, and neither tensor<2xi64> nor tensor<2x2xi64>"},
		"sparse, none":    {sparse(Sparse(Floats("w", two, 1, 2), nil, 3, 2)), "DM144", "has 2 values and no indices"},
		"sparse, nothing": {sparse(Sparse(nil, nil, 3, 2)), "DM144", "a sparse tensor has no values"},
		"sparse, scalar":  {sparse(Sparse(Floats("w", two, 1, 2), Ints("", two, 0, 1))), "DM144", "has no dimensions"},
		"sparse, values":  {sparse(Sparse(Floats("w", []int{1, 2}, 1, 2), Ints("", two, 0, 1), 3, 2)), "DM144", "its values have 2 dimensions"},
		"sparse, large":   {sparse(Sparse(Floats("w", two, 1, 2), Ints("", two, 0, 1), 1<<40, 1<<40)), "DM144", "more than"},
		"missing file":    {on([]Message{External("w", two, "weights.bin")}), "DM144", `tensor "w": open`},
		"outside":         {on([]Message{External("w", two, "../weights.bin")}), "DM144", "outside the model's folder"},
		"absolute":        {on([]Message{External("w", two, "/etc/passwd")}), "DM144", "outside the model's folder"},
		"linked":          {on([]Message{External("w", two, "link")}), "DM144", `tensor "w"`},
		"short file":      {on([]Message{External("w", two, "short")}), "DM144", "short has 3 bytes, not 8 from 0 on"},
		"missing input":   {on(nil, Node("Add", []string{"x"}, []string{"y"})), "DM144", "(Add): input 1 is missing"},
		"axis":            {on(nil, Node("Softmax", []string{"x"}, []string{"y"}, Attr("axis", 4))), "DM144", "axis 4 of 1 dimensions"},
		"types":           {on([]Message{Ints("w", two, 1, 2)}, Node("Add", []string{"x", "w"}, []string{"y"})), "DM144", "cannot be built from"},
		"shape at run time": {
			Model(13, Graph([]Message{Value("x", F32, 2), Value("s", I64, 1)}, []Message{Value("y", F32, 2)}, nil, Node("Reshape", []string{"x", "s"}, []string{"y"}))),
			"DM140", "input 1 decides about shapes",
		},
		"no attribute": {on(nil, Node("Cast", []string{"x"}, []string{"y"})), "DM144", "(Cast): no type"},
		"no graph":     {on(nil, Node("Loop", []string{"", "", "x"}, []string{"y"})), "DM144", "no graph body"},
		"deep":         {deep(100), "DM144", "more than 64 deep"},
		"recursion":    {Model(13, Graph([]Message{Value("x", F32, 2)}, nil, nil, Node("local.f", []string{"x"}, []string{"y"})), calls("f", "g"), calls("g", "f")), "DM144", "more than 64 deep"},
		"a sequence as an output": {
			on(nil, Node("SequenceConstruct", []string{"x"}, []string{"y"})), "DM140", `output "y": a sequence`,
		},
		"a sequence as a tensor": {
			on(nil, Node("SequenceConstruct", []string{"x"}, []string{"s"}), Node("Relu", []string{"s"}, []string{"y"})), "DM140", `(Relu): input 0, a sequence`,
		},
		"a tensor as a sequence": {
			on([]Message{Ints("i", nil, 0)}, Node("SequenceAt", []string{"x", "i"}, []string{"y"})), "DM140", `(SequenceAt): input 0, a sequence that is not known at import`,
		},
		"no such member": {
			on([]Message{Ints("i", nil, 1)}, Node("SequenceConstruct", []string{"x"}, []string{"s"}), Node("SequenceAt", []string{"s", "i"}, []string{"y"})), "DM144", `position 1 of 1`,
		},
		"an empty sequence": {
			on(nil, Node("SequenceEmpty", nil, []string{"s"}), Node("SequenceErase", []string{"s"}, []string{"t"}), Node("ConcatFromSequence", []string{"t"}, []string{"y"}, Attr("axis", 0))), "DM144", `the sequence is empty`,
		},
		"a sequence out of a branch": {
			on([]Message{Raw("c", Bool, nil, []byte{1}), Floats("w", two, 1, 2)}, Node("If", []string{"c"}, []string{"s"},
				Attr("then_branch", Graph(nil, []Message{Value("r", F32, 2)}, nil, Node("SequenceConstruct", []string{"x"}, []string{"r"}))),
				Attr("else_branch", Graph(nil, []Message{Value("q", F32, 2)}, nil, Node("SequenceConstruct", []string{"w"}, []string{"q"})))),
				Node("Relu", []string{"s"}, []string{"y"})), "DM140", `a sequence`,
		},
		"large pads": {on([]Message{Ints("p", two, 1<<50, 0)}, Node("Pad", []string{"x", "p"}, []string{"y"})), "DM144", "pads"},
		"large value": {
			on([]Message{Ints("n", []int{1}, 1<<35)},
				Node("ConstantOfShape", []string{"n"}, []string{"s"}, Attr("value", Ints("v", []int{1}, 1))), Node("Reshape", []string{"x", "s"}, []string{"y"})),
			"DM140", "elements that decides about shapes",
		},
		"large reshape": {on([]Message{Ints("s", []int{3}, 1<<40, 1<<40, 0)}, Node("Reshape", []string{"x", "s"}, []string{"y"})), "DM144", "too many elements"},
	}
}

// Each mistake is one error, which says where it is.
func TestInvalid(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "model")
	for _, err := range []error{
		os.Mkdir(folder, 0o755),
		os.WriteFile(filepath.Join(dir, "secret"), make([]byte, 8), 0o644),
		os.WriteFile(filepath.Join(folder, "short"), make([]byte, 3), 0o644),
		os.Symlink(filepath.Join("..", "secret"), filepath.Join(folder, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range invalid() {
		t.Run(name, func(t *testing.T) {
			_, err := onnx.Import("m.onnx", c.model, onnx.Options{Dir: folder})
			e := onnx.As(err)
			if e == nil || e.Code != c.code || !strings.Contains(e.Msg, c.want) {
				t.Errorf("got %+v, want %s with %q", err, c.code, c.want)
			}
		})
	}
}

// The text of a model has the names of its values, and its constants.
func TestText(t *testing.T) {
	model := Model(13, Graph([]Message{Value("in/x:0", F32, "N", 2)}, []Message{Value("out", F32, "N", 2)},
		[]Message{Floats("fc.weight", []int{2, 2}, 1, 2, 3, 4), Ints("unused", []int{1}, 1)},
		Node("Relu", []string{"h"}, []string{"out"}), Node("MatMul", []string{"in/x:0", "fc.weight"}, []string{"h"})))
	got, _, err := onnx.Text("m.onnx", model, onnx.Options{Bind: map[string]int64{"N": 3}}, "")
	if err != nil {
		t.Fatal(err)
	}
	const want = `func.func @main(%in_x_0: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %fc.weight = dm.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %h = dm.matmul %in_x_0, %fc.weight : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %out = dm.relu %h : tensor<3x2xf32>
  return %out : tensor<3x2xf32>
}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Every op has the place of the node that it was made for, ops in regions too: a cost by line has nothing left over. Nodes of a
// graph inside have their own.
func TestPlaces(t *testing.T) {
	named := func(name string, m Message) Message { return Noted(m, OfNode, "namespace", name) }
	body := Graph([]Message{Value("i", I64), Value("go", Bool), Value("v", F32, 2)}, []Message{Value("again", Bool), Value("w", F32, 2)},
		nil, named("inner", Node("Add", []string{"v", "v"}, []string{"w"})), named("inner", Node("Identity", []string{"go"}, []string{"again"})))
	weights := []Message{Floats("W", []int{1, 4, 1}, 1, 1, 1, 1), Floats("R", []int{1, 4, 1}, 1, 1, 1, 1)}
	for name, c := range map[string]struct {
		model []byte
		want  []string // the places
	}{
		"loop": {on([]Message{Ints("n", nil, 3)}, named("outer", Node("Loop", []string{"n", "", "x"}, []string{"y"}, Attr("body", body)))), []string{"inner", "outer"}},
		"LSTM": {Model(14, Graph([]Message{Value("x", F32, 2, 1, 1)}, []Message{Value("y", F32, 2, 1, 1, 1)}, weights,
			named("outer", Node("LSTM", []string{"x", "W", "R"}, []string{"y"}, Attr("hidden_size", 1))))), []string{"outer"}},
	} {
		m, err := onnx.Import("model.onnx", c.model, onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		ir.Walk(m.Func("main").Body.Ops, func(o *ir.Op) bool {
			switch {
			case o.Loc != nil:
				got[o.Loc.Text] = true
			case o.Name != op.Return:
				t.Errorf("%s: %s has no place", name, o.Name)
			}
			return true
		})
		if places := slices.Sorted(maps.Keys(got)); !slices.Equal(places, c.want) {
			t.Errorf("%s: places %q, not %q", name, places, c.want)
		}
	}
}

// Constants may be in a file beside the model.
func TestExternal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weights.bin"), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, 0o644); err != nil {
		t.Fatal(err)
	}
	model := on([]Message{External("w", []int{2}, "weights.bin")}, Node("Add", []string{"x", "w"}, []string{"y"}))
	got, _, err := onnx.Text("m.onnx", model, onnx.Options{Dir: dir}, "")
	if err != nil || !strings.Contains(got, "dense<[1.0, 2.0]>") {
		t.Errorf("%v\n%s", err, got)
	}
}

// Weights in other files are read when something asks for their elements, each from its
// own place.
func TestExternalWeights(t *testing.T) {
	dir := t.TempDir()
	const n = 2000
	for name, first := range map[string]byte{"a.bin": 1, "b.bin": 2} {
		if err := os.WriteFile(filepath.Join(dir, name), append([]byte{first}, make([]byte, 4*n-1)...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	model := Model(13, Graph([]Message{Value("x", F32, n)}, []Message{Value("y", F32, n)},
		[]Message{External("a", []int{n}, "a.bin"), External("b", []int{n}, "b.bin")},
		Node("Add", []string{"x", "a"}, []string{"h"}), Node("Mul", []string{"h", "b"}, []string{"y"})))
	got, arrays, err := onnx.Text("m.onnx", model, onnx.Options{Dir: dir}, "m.weights.npz")
	if err != nil {
		t.Fatal(err)
	}
	if len(arrays.Arrays) != 2 || !strings.Contains(got, `#dm.file<"m.weights.npz", "a">`) || !strings.Contains(got, `#dm.file<"m.weights.npz", "b">`) {
		t.Fatalf("%d arrays of\n%s", len(arrays.Arrays), got)
	}
	for i, a := range arrays.Arrays {
		data, err := a.Value.All()
		if err != nil || len(data) != 4*n || data[0] != byte(i+1) {
			t.Errorf("%s: %v, %d bytes", a.Name, err, len(data))
		}
	}
	if err := os.Remove(filepath.Join(dir, "b.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := arrays.Arrays[1].Value.All(); err == nil {
		t.Error("elements of a file that is gone")
	}
	if _, _, err := onnx.Text("m.onnx", model, onnx.Options{Dir: dir}, "m.weights.npz"); err == nil {
		t.Error("a model is imported without its file")
	}
}

// FuzzImport imports any bytes: what it cannot import is one error, and what it imports
// has a text.
func FuzzImport(f *testing.F) {
	f.Add(sparse(Sparse(Floats("w", []int{2}, 1, 2), Ints("", []int{2}, 1, 5), 3, 2)))
	f.Add(sparse(Sparse(Floats("w", []int{2}, 1, 2), Ints("", []int{2, 2}, 0, 1, 2, 0), 3, 2)))
	for _, c := range invalid() {
		f.Add(c.model)
	}
	f.Add(relu(Value("x", F32, 2)))
	f.Add(relu(Value("x", F32, "N", nil)))
	f.Add(on([]Message{Ints("s", []int{2}, 1, 2)}, Node("Reshape", []string{"x", "s"}, []string{"z"}), Node("Softmax", []string{"z"}, []string{"y"}, Attr("axis", 1))))
	f.Add(Model(14, Graph([]Message{Value("x", F32, 1, 1, 4, 4), Value("w", F32, 1, 1, 3, 3)}, []Message{Value("y", F32, 1, 1, 2, 2)}, nil,
		Node("Conv", []string{"x", "w"}, []string{"c"}, Attr("auto_pad", "SAME_UPPER"), Attr("strides", []int{2, 2})),
		Node("AveragePool", []string{"c"}, []string{"y"}, Attr("kernel_shape", []int{1, 1})))))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, _, err := onnx.Text("m.onnx", bytes.Clone(data), onnx.Options{}, "")
		if err == nil {
			if text == "" {
				t.Error("no text")
			}
			return
		}
		e := onnx.As(err)
		if e == nil || e.Msg == "" || strings.Contains(e.Msg, "internal error") {
			t.Errorf("%v", err)
		}
	})
}

// sparse is a product with a sparse initializer, w.
func sparse(w Message) []byte {
	return Model(13, SparseGraph([]Message{Value("x", F32, 2, 3)}, []Message{Value("y", F32, 2, 2)}, nil, []Message{w}, Node("MatMul", []string{"x", "w"}, []string{"y"})))
}

// Sparse constants are read in both forms of their indices and in any rank; a product reads what they store.
func TestSparse(t *testing.T) {
	values, numbers := Floats("w", []int{3}, 1, 2, 3), Ints("", []int{3}, 0, 3, 5)
	for _, c := range []struct {
		model []byte
		want  []string
	}{
		{sparse(Sparse(values, numbers, 3, 2)), []string{"dm.pack", "dense<[0, 1, 2, 3]>", "dense<[0, 1, 1]>", "dm.matmul %x, %3 : (tensor<2x3xf32>, tensor<3x2xf32, #dm.csr<nnz = 3>>)"}},
		{sparse(Sparse(values, Ints("", []int{3, 2}, 0, 0, 1, 1, 2, 1), 3, 2)), []string{"dense<[0, 1, 2, 3]>", "dense<[0, 1, 1]>", "#dm.csr<nnz = 3>"}},
		{sparse(Sparse(Floats("w", []int{0}), Ints("", []int{0}), 3, 2)), []string{"dense<0.0> : tensor<3x2xf32>"}},
		{
			Model(13, SparseGraph([]Message{Value("x", F32, 1, 3, 2)}, []Message{Value("y", F32, 1, 3, 2)}, nil, []Message{Sparse(values, numbers, 1, 3, 2)}, Node("Add", []string{"x", "w"}, []string{"y"}))),
			[]string{"dm.convert_format", "tensor<1x3x2xf32, #dm.coo<nnz = 3>>", "dense<[0, 1, 2]>"},
		},
		{
			Model(13, SparseGraph([]Message{Value("x", F32, 6)}, []Message{Value("y", F32, 6)}, nil, []Message{Sparse(values, numbers, 6)}, Node("Mul", []string{"x", "w"}, []string{"y"}))),
			[]string{"dm.convert_format", "tensor<6xf32, #dm.sparse_vector<nnz = 3>>", "dense<[0, 3, 5]>"},
		},
	} {
		text, _, err := onnx.Text("m.onnx", c.model, onnx.Options{}, "")
		if err != nil {
			t.Errorf("%v: %v", c.want, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
}
