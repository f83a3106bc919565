package kernel

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/syntax/source"
)

func load(t testing.TB, text string) *ir.Func {
	t.Helper()
	p := program.Load(source.New("t.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Errorf("%s %s", d.Code, d.Message)
	}
	if t.Failed() {
		t.FailNow()
	}
	return p.Modules[0].Funcs[0]
}

// Groups of ops and the class of kernel that they run as; "" where they run as none.
func TestClass(t *testing.T) {
	const (
		sums = "%0 = dm.segment_reduce add %x, %p : (tensor<8x64xf16>, tensor<5xi32>) -> tensor<4x64xf16>\n"
		ids  = "%i = dm.segment_ids %p : (tensor<5xi32>) -> tensor<8xi32>\n"
	)
	for _, c := range []struct{ name, body, results, want string }{
		{"element-wise", "%0 = dm.exp %x : tensor<8x64xf16>\n%1 = dm.add %0, %b : (tensor<8x64xf16>, tensor<64xf16>) -> tensor<8x64xf16>", "%1 : tensor<8x64xf16>", "pointwise"},
		{"softmax", "%1 = dm.softmax %x : tensor<8x64xf16>", "%1 : tensor<8x64xf16>", "row"},
		{"softmax along the first dimension", "%1 = dm.softmax %x, dim = 0 : tensor<8x64xf16>", "%1 : tensor<8x64xf16>", "row"},
		{"norm and what follows", "%0 = dm.layer_norm %x, %b, %b : (tensor<8x64xf16>, tensor<64xf16>, tensor<64xf16>) -> tensor<8x64xf16>\n%1 = dm.relu %0 : tensor<8x64xf16>", "%1 : tensor<8x64xf16>", "row"},
		{"sums of columns", "%1 = dm.reduce %x, kind = add, dims = [0] : (tensor<8x64xf16>) -> tensor<64xf16>", "%1 : tensor<64xf16>", "columns"},
		{"sums of columns beside the sum of all", "%0 = dm.reduce add %x, dims = [0] : (tensor<8x64xf16>) -> tensor<64xf16>\n%1 = dm.reduce add %x : (tensor<8x64xf16>) -> tensor<f16>", "%0, %1 : tensor<64xf16>, tensor<f16>", ""},
		{"sums of rows", "%1 = dm.reduce %x, kind = add, dims = [1] : (tensor<8x64xf16>) -> tensor<8xf16>", "%1 : tensor<8xf16>", "row"},
		{"a product with bias", "%0 = dm.einsum \"ij,kj->ik\" %x, %w : (tensor<8x64xf16>, tensor<32x64xf16>) -> tensor<8x32xf16>\n%1 = dm.relu %0 : tensor<8x32xf16>", "%1 : tensor<8x32xf16>", "contraction"},
		{"a product before a softmax", "%0 = dm.einsum \"ij,kj->ik\" %x, %w : (tensor<8x64xf16>, tensor<32x64xf16>) -> tensor<8x32xf16>\n%1 = dm.softmax %0 : tensor<8x32xf16>", "%1 : tensor<8x32xf16>", ""},
		{"loss", "%l = dm.iota dim = 0 : tensor<8xi32>\n%1 = dm.cross_entropy %x, %l : (tensor<8x64xf16>, tensor<8xi32>) -> tensor<f16>", "%1 : tensor<f16>", "row"},
		{"norm with the sums for its scale", "%0 = dm.softmax %x : tensor<8x64xf16>\n%1 = dm.reduce %0, kind = add, dims = [0] : (tensor<8x64xf16>) -> tensor<64xf16>", "%1 : tensor<64xf16>", "row"},
		{"rows, and what is no sum of theirs", "%0 = dm.softmax %x : tensor<8x64xf16>\n%1 = dm.exp %b : tensor<64xf16>", "%0, %1 : tensor<8x64xf16>, tensor<64xf16>", ""},
		{
			"sums of groups of columns, which each element of one would compute",
			"%0 = dm.reshape %x : (tensor<8x64xf16>) -> tensor<8x8x8xf16>\n%1 = dm.reduce add %0, dims = [0, 2] : (tensor<8x8x8xf16>) -> tensor<8xf16>\n" +
				"%2 = dm.broadcast %1, dims = [0] : (tensor<8xf16>) -> tensor<8x8xf16>\n%3 = dm.reshape %2 : (tensor<8x8xf16>) -> tensor<64xf16>\n" +
				"%4 = dm.sub %x, %3 : (tensor<8x64xf16>, tensor<64xf16>) -> tensor<8x64xf16>", "%4 : tensor<8x64xf16>", "",
		},
		{"sums of segments of rows", sums + "%1 = dm.exp %0 : tensor<4x64xf16>", "%1 : tensor<4x64xf16>", "loop"},
		{"elements by their segment", ids + "%1 = dm.gather %w, %i : (tensor<32x64xf16>, tensor<8xi32>) -> tensor<8x64xf16>", "%1 : tensor<8x64xf16>", "pointwise"},
		{"sums of segments, which each of their elements would compute", sums + ids + "%1 = dm.gather %0, %i : (tensor<4x64xf16>, tensor<8xi32>) -> tensor<8x64xf16>", "%1 : tensor<8x64xf16>", ""},
		{"sums of segments by stored numbers of them", sums + "%1 = dm.gather %0, %n : (tensor<4x64xf16>, tensor<8xi32>) -> tensor<8x64xf16>", "%1 : tensor<8x64xf16>", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, results, _ := strings.Cut(c.results, " : ")
			fn := load(t, "func.func @f(%x: tensor<8x64xf16>, %b: tensor<64xf16>, %w: tensor<32x64xf16>, %p: tensor<5xi32>, %n: tensor<8xi32>) -> ("+results+") {\n"+c.body+"\nreturn "+c.results+"\n}\n")
			ops := fn.Body.Ops[:len(fn.Body.Ops)-1]
			form, err := Of(ops, fn.Body.Terminator().Operands)
			got := ""
			if err == nil {
				got = string(form.Class)
			}
			if got != c.want {
				t.Errorf("%q, want %q (%v)", got, c.want, err)
			}
			if err != nil {
				return
			}
			for _, v := range []int64{2, 8} {
				if _, err := form.Widen(v, 1); err != nil {
					t.Errorf("%d at a time: %v", v, err)
				}
			}
		})
	}
}

// An update is stored only at a row that is there, however many rows there are.
func TestIndicesAreCompared(t *testing.T) {
	for _, id := range []string{"i64", "ui32", "ui64"} {
		for _, rows := range []string{"100", "3000000000"} {
			t.Run(id+" of "+rows, func(t *testing.T) {
				y := "tensor<" + rows + "xi8>"
				fn := load(t, "func.func @f(%x: "+y+" {dm.donated}, %i: tensor<"+id+">, %u: tensor<i8>) -> "+y+" {\n%y = dm.scatter set %x, %i, %u, dim = 0 : ("+y+", tensor<"+id+">, tensor<i8>) -> "+y+"\nreturn %y : "+y+"\n}\n")
				v := fn.Body.Ops[0].Results[0]
				form, err := OfOver(fn.Body.Ops[:1], []*ir.Value{v}, map[*ir.Value]bool{v: true})
				if err != nil {
					t.Fatal(err)
				}
				exists := form.Outs[0].If[0]
				lo, hi := exists.X.Bounds()
				if id != "ui32" && lo >= exists.Lo || hi < exists.Hi {
					t.Errorf("an index lies between %d and %d", lo, hi)
				}
			})
		}
	}
}

// Which windows leave elements between them out, by their number, size, stride and dilation.
func TestGaps(t *testing.T) {
	for _, c := range []struct {
		out, win, stride, dilation int64
		want                       bool
	}{
		{1, 3, 2, 1, false},
		{100, 3, 2, 1, false},
		{100, 2, 3, 1, true},
		{1, 2, 3, 1, false},
		{1, 3, 1, 2, true},
		{2, 3, 1, 2, false},
		{100, 3, 2, 2, true},
		{100, 3, 2, 3, true}, // at its ends
		{1 << 40, 3, 1, 1 << 30, true},
	} {
		if got := gaps(c.out, c.win, c.stride, c.dilation); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
