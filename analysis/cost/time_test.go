package cost_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// A machine on which every term is easy to compute by hand: 1 TB/s moves a byte
// in a picosecond, and 10 ns go into each launch.
var toy = &machine.Machine{
	Name: "toy", Title: "toy", Bandwidth: 1e12, Launch: 10e-9, HostLink: 1e9,
	TensorCore: map[types.Elem]float64{types.F16: 100e12},
	Vector:     map[types.Elem]float64{types.F32: 10e12, types.F64: 5e12},
}

func TestTime(t *testing.T) {
	cases := []struct {
		name, in, result, body string
		ns                     float64
		bound                  string
	}{
		{
			"contraction on the tensor cores", "%x: tensor<1024x1024xf16>", "tensor<1024x1024xf16>",
			`dm.einsum "ij,jk->ik" %x, %x : (tensor<1024x1024xf16>, tensor<1024x1024xf16>) -> tensor<1024x1024xf16>`,
			math.Pow(2, 31)/100e12*1e9 + 10, cost.Compute,
		},
		{
			"contraction of a type that they do not take", "%x: tensor<1024x1024xf32>", "tensor<1024x1024xf32>",
			`dm.einsum "ij,jk->ik" %x, %x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>`,
			math.Pow(2, 31)/10e12*1e9 + 10, cost.Compute,
		},
		{
			"element-wise, in half precision at the rate of f32", "%x: tensor<1048576xf16>", "tensor<1048576xf16>",
			`dm.exp %x : tensor<1048576xf16>`, 4<<20/1e3 + 10, cost.Memory,
		},
		{
			"several launches, whose blocks do not reach the bandwidth", "%x: tensor<1048576xf16>", "tensor<1048576xf16>",
			`dm.exp %x {dm.launches = 3 : i64, dm.bandwidth = 500000000000 : i64} : tensor<1048576xf16>`, 4<<20/0.5e3 + 30, cost.Memory,
		},
		{
			"a bandwidth above the machine's", "%x: tensor<1048576xf16>", "tensor<1048576xf16>",
			`dm.exp %x {dm.bandwidth = 5000000000000 : i64} : tensor<1048576xf16>`, 4<<20/1e3 + 10, cost.Memory,
		},
		{
			"epilogues behind the products", "%x: tensor<1024x1024xf16>", "tensor<1024x1024xf16>",
			`dm.einsum "ij,jk->ik" %x, %x {dm.epilogue = 5000 : i64} : (tensor<1024x1024xf16>, tensor<1024x1024xf16>) -> tensor<1024x1024xf16>`,
			math.Pow(2, 31)/100e12*1e9 + 5010, cost.Compute,
		},
		{"small", "%x: tensor<4xf16>", "tensor<4xf16>", `dm.exp %x : tensor<4xf16>`, 10.016, cost.Launch},
		{"a view", "%x: tensor<4xf16>", "tensor<2x2xf16>", `dm.reshape %x : (tensor<4xf16>) -> tensor<2x2xf16>`, 0, ""},
		{
			"from the host", "%x: tensor<1000xf32, #dm.at<host>>", "tensor<1000xf32>",
			`dm.copy %x : (tensor<1000xf32, #dm.at<host>>) -> tensor<1000xf32>`, 4010, cost.Memory,
		},
		{"a kernel that keeps both units busy", "%x: tensor<1024x1024xf16>", "tensor<1024x1024xf16>", `dm.kernel -> tensor<1024x1024xf16> {
    %1 = dm.einsum "ij,jk->ik" %x, %x : (tensor<1024x1024xf16>, tensor<1024x1024xf16>) -> tensor<1024x1024xf16>
    %2 = dm.add %1, %1 : tensor<1024x1024xf16>
    dm.yield %2 : tensor<1024x1024xf16>
  }`, math.Pow(2, 31)/100e12*1e9 + 10, cost.Compute},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, "in.dmir", "func.func @f("+c.in+") -> "+c.result+" {\n  %0 = "+c.body+"\n  return %0 : "+c.result+"\n}\n", program.Options{Target: toy})
			f := only(t, p)
			got := f.Entries[0].Time(toy)
			if !got.Known || math.Abs(got.Ns-c.ns) > 1e-6 || got.Bound != c.bound {
				t.Errorf("got %+v, want %v ns, %s", got, c.ns, c.bound)
			}
			if sum := f.Time(toy); sum != got {
				t.Errorf("the function takes %+v, its only op %+v", sum, got)
			}
		})
	}
}

// The examples of the documentation.
func TestTimeOfDocumentedExample(t *testing.T) {
	f := only(t, loadFile(t, "../../examples/ffn.dmir"))
	h200 := lookup(t, "h200")
	for i, want := range []struct {
		us    float64
		bound string
	}{{50.0, cost.Compute}, {17.0, cost.Memory}} {
		got := f.Entries[i].Time(h200)
		if math.Round(got.Ns/100)/10 != want.us || got.Bound != want.bound {
			t.Errorf("op %d: %+v, want %v µs, %s", i, got, want.us, want.bound)
		}
	}
	if got := f.Time(h200); math.Round(got.Ns/100)/10 != 67 {
		t.Errorf("total: %+v, want 67.0 µs", got)
	}
}

// Without a machine there are counts and no times.
func TestNoMachine(t *testing.T) {
	f := only(t, loadFile(t, "../../examples/ffn.dmir"))
	var out strings.Builder
	if err := cost.Table(&out, nil, []*cost.Func{f}, cost.TableOptions{Measured: map[*ir.Op]int64{}, Device: "cpu"}); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "34.4 GFLOP") || strings.Contains(s, "µs") {
		t.Errorf("got\n%s", s)
	}
	if r := cost.JSON(nil, []*cost.Func{f}); r.Target != "" || r.Functions[0].TimeNs != nil || r.Functions[0].FLOP == nil {
		t.Errorf("got %+v", r)
	}
}

// However many sizes a formula has, a table stays readable.
func TestLongFormulas(t *testing.T) {
	var b strings.Builder
	b.WriteString("func.func @f() {\n")
	for i := range 500 {
		fmt.Fprintf(&b, "  %%%d = dm.iota dim = 0 : tensor<?xf32, #dm.at<dims = [size%d]>>\n", i, i)
	}
	b.WriteString("  return\n}\n")
	p := load(t, "in.dmir", b.String(), program.Options{})
	var out strings.Builder
	if err := cost.Table(&out, p.Target, p.Funcs, cost.TableOptions{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 260 {
			t.Fatalf("a line of %d characters: %.80s…", n, line)
		}
	}
}

func TestBudget(t *testing.T) {
	cases := []struct{ attrs, want, errs string }{
		{"", "", ""},
		{`{dm.max_moved = "1.2 GB", dm.max_peak = "3 MiB", dm.max_time = "1.5 µs"}`, "dm.max_moved 1200000000, dm.max_peak 3145728, dm.max_time 1500", ""},
		{`{dm.max_moved = 4096, dm.max_time = "50"}`, "", `dm.max_moved: "4096" has no unit; write "4096 GB", "4096 MB", "4096 kB", "4096 B"; dm.max_time: "50" has no unit; write "50 ms", "50 µs", "50 ns", "50 s"`},
		{`{dm.max_moved = "1 kB as written", dm.max_time = "2 ns on 4 x dgx-h100 as written", dm.max_peak = "4*n B as compiled"}`, "dm.max_moved 1000 as written, dm.max_peak 4*n, dm.max_time 2 as written", ""},
		{`{dm.max_moved = "1 kB as planned"}`, "", `dm.max_moved: "1 kB as planned" is not a quantity in B`},
		{`{dm.max_moved = "8*n B", dm.max_peak = "4*n + 16 B"}`, "dm.max_moved 8*n, dm.max_peak 4*n + 16", ""},
		{`{dm.max_peak = "4*n + 16"}`, "", `dm.max_peak: "4*n + 16" has no unit; write "4*n + 16 B"`},
		{`{dm.max_moved = "8*m B", dm.max_peak = "lots"}`, "", `dm.max_moved: "m" is no dimension of @f; "8*m B" is not a quantity in B; write for example "1.2 GB"; dm.max_peak: "lots" is no dimension of @f`},
		{`{dm.max_moved = "a lot", dm.max_peak = "1 B"}`, "dm.max_peak 1", `dm.max_moved: "a lot" is not a quantity in B`},
		{`{dm.max_peak = "-1 B"}`, "", `dm.max_peak: "-1 B" is negative`},
		{`{dm.max_peak = [1]}`, "", "dm.max_peak: [1] is not a size"},
		{`{dm.max_time = "8*n s"}`, "", `dm.max_time: "8*n s" is not a quantity in s`},
		{`{dm.max_time = "-1 s"}`, "", `dm.max_time: "-1 s" is negative`},
	}
	for _, c := range cases {
		attrs := ""
		if c.attrs != "" {
			attrs = " attributes " + c.attrs
		}
		p := load(t, "in.dmir", "func.func @f(%x: tensor<?xf32, #dm.at<dims = [n]>>)"+attrs+" {\n  return\n}\n", program.Options{})
		limits, errs := cost.ParseBudget(p.Funcs[0].Func)
		var got, texts []string
		for _, l := range limits {
			text := l.Attr + " " + l.At.String()
			if l.Written {
				text += " as written"
			}
			got = append(got, text)
		}
		for _, e := range errs {
			texts = append(texts, e.Error())
		}
		if text := strings.Join(texts, "; "); strings.Join(got, ", ") != c.want || !strings.HasPrefix(text, c.errs) || (c.errs == "") != (text == "") {
			t.Errorf("%s: got %s, %s; want %s, %s", c.attrs, got, text, c.want, c.errs)
		}
	}
}
