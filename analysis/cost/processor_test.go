package cost_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/types"
)

// A processor on which terms are easy to compute by hand.
var toyCPU = &machine.Machine{
	Name: "toy", Title: "toy", CPU: true, SMs: 4, Bandwidth: 10e9, Launch: 1e-6,
	TensorCore: map[types.Elem]float64{types.F32: 400e9},
	Vector:     map[types.Elem]float64{types.F32: 400e9},
	Processor: machine.Processor{
		Caches: []machine.Cache{
			{Name: "L2", Size: 1 << 20, PerCore: true, Bandwidth: 200e9},
			{Name: "L3", Size: 32 << 20, Bandwidth: 50e9},
		},
		Read: 20e9, Grain: 64 << 10, Call: 50e-9,
		Ops:  map[types.Elem]map[string]float64{types.F32: {"exp": 10e9, "softmax": 40e9, "transpose": 2e9}},
		Rows: map[types.Elem]map[string]float64{types.F32: {"softmax": 20e-9}},
	},
}

// products is toyCPU with products that were measured: packing takes no time, and neither do their ends.
var products = func() *machine.Machine {
	m := *toyCPU
	m.Arch = "x86-64-v4"
	m.Products = map[types.Elem]machine.ProductRates{types.F32: {Sums: 400e9, Results: 100e9}}
	return &m
}()

// A product that was measured takes the time of its plan, and waits for what comes from memory; a thin one does not.
func TestProductsOfProcessor(t *testing.T) {
	for _, rows := range []int{8, 256} {
		text := fmt.Sprintf("func.func @f(%%x: tensor<%[1]dx1024xf32>, %%w: tensor<1024x1024xf32>) -> tensor<%[1]dx1024xf32> {\n  %%0 = dm.einsum \"mk,kn->mn\" %%x, %%w : (tensor<%[1]dx1024xf32>, tensor<1024x1024xf32>) -> tensor<%[1]dx1024xf32>\n  return %%0 : tensor<%[1]dx1024xf32>\n}\n", rows)
		e := only(t, load(t, "in.dmir", text, program.Options{Target: products})).Entries[0]
		p, _ := e.Product()
		x, ok := products.ProcessorProduct(p, 0)
		terms, _ := e.TimeTerms(products)
		want := x.Total()*1e9 + terms.Memory
		if x.Streams {
			want = max(x.Total()*1e9, terms.Memory)
		}
		if got := e.Time(products).Ns; !ok || x.Streams != (rows == 8) || math.Abs(got/(want+terms.Launch)-1) > 1e-9 || len(terms.Work) != 1 || terms.Work[0].Alone == x.Streams {
			t.Errorf("%d rows: %g ns, want %g: %+v", rows, got, want+terms.Launch, terms)
		}
	}
}

// Rows that a gather reads by their numbers take a time of their own each, beside none of which memory moves, and are waited for.
func TestRowsByNumber(t *testing.T) {
	m := *toyCPU
	m.Rows = map[types.Elem]map[string]float64{types.F32: {"gather": 50e-9}}
	for _, c := range []struct {
		width int
		own   float64 // ns of the rows
	}{{16, 1 << 16 * 50 / 4}, {1, 0}} { // an element is no row
		text := fmt.Sprintf("func.func @f(%%t: tensor<65536x%[1]dxf32>, %%n: tensor<65536xi32>) -> tensor<65536x%[1]dxf32> {\n  %%0 = dm.gather %%t, %%n, dim = 0 : (tensor<65536x%[1]dxf32>, tensor<65536xi32>) -> tensor<65536x%[1]dxf32>\n  return %%0 : tensor<65536x%[1]dxf32>\n}\n", c.width)
		e := only(t, load(t, "in.dmir", text, program.Options{Target: &m})).Entries[0]
		terms, ok := e.TimeTerms(&m)
		of := 0.0
		for _, w := range terms.Work {
			of += w.Ns()
		}
		if want := c.own + terms.Memory + terms.Tables + terms.Launch; !ok || math.Abs(terms.Ns()/want-1) > 1e-9 || math.Abs(of-c.own) > 1 || c.width > 1 && terms.Tables == 0 {
			t.Errorf("rows of %d: %g ns, want %g: %+v", c.width, terms.Ns(), want, terms)
		}
	}
}

// A kernel of a sparse product walks rows, whose ends take longer where a row is no longer as long as the one before; a product and its sum are one instruction, and
// nothing is computed beside what moves.
func TestSegmentsOfProcessors(t *testing.T) {
	m := *toyCPU
	m.Mispredict = 40e-9
	m.Rows = map[types.Elem]map[string]float64{types.F32: {"segment_reduce": 10e-9}}
	text := func(counted string) string {
		return fmt.Sprintf(`func.func @f(%%a.positions: tensor<16385xi32> {dm.component_of = tensor<16384x16384xf32, #dm.csr<nnz = 65536>>%s}, %%a.coordinates: tensor<65536xi32> {dm.component_of = tensor<16384x16384xf32, #dm.csr<nnz = 65536>>},
    %%a.values: tensor<65536xf32> {dm.component_of = tensor<16384x16384xf32, #dm.csr<nnz = 65536>>}, %%x: tensor<16384x64xf32>) -> tensor<16384x64xf32> {
  %%0 = dm.kernel -> tensor<16384x64xf32> {
    %%1 = dm.gather %%x, %%a.coordinates, dim = 0 : (tensor<16384x64xf32>, tensor<65536xi32>) -> tensor<65536x64xf32>
    %%2 = dm.reshape %%a.values : (tensor<65536xf32>) -> tensor<65536x1xf32>
    %%3 = dm.mul %%1, %%2 : (tensor<65536x64xf32>, tensor<65536x1xf32>) -> tensor<65536x64xf32>
    %%4 = dm.segment_reduce add %%3, %%a.positions : (tensor<65536x64xf32>, tensor<16385xi32>) -> tensor<16384x64xf32>
    dm.yield %%4 : tensor<16384x64xf32>
  }
  return %%0 : tensor<16384x64xf32>
}
`, counted)
	}
	const levels = `levels = [{level = 1, reads = 65536, touched = [16384, 2048, 1024], later = [[], [], []]}]`
	for _, c := range []struct {
		name, counted string
		uneven        float64
	}{
		{"nothing is known", "", 16384},
		{"a band", `, dm.pattern = "band"`, 0},
		{"counted", `, dm.counted = {file = "a.mtx", stored = 65536, rows = 16384, empty = 0, longest = 9, median = 4, uneven = 4096, blocks = 1, ` + levels + `}`, 4096},
	} {
		p := load(t, "in.dmir", text(c.counted), program.Options{Target: &m})
		if p.HasErrors() {
			t.Fatal(p.Diags[0].Message)
		}
		terms, ok := only(t, p).Entries[0].TimeTerms(&m)
		work := 65536*64/400.0 + (16384*10+c.uneven*40)/4
		if want := work + terms.Memory + terms.Tables + terms.Launch; !ok || math.Abs(terms.Ns()/want-1) > 0.01 {
			t.Errorf("%s: %g ns, want %g: %+v", c.name, terms.Ns(), want, terms)
		}
	}
}

func TestProcessorTime(t *testing.T) {
	unary := func(op string, n int) string {
		return fmt.Sprintf("func.func @f(%%x: tensor<%dxf32>) -> tensor<%dxf32> {\n  %%0 = dm.%s %%x : tensor<%dxf32>\n  return %%0 : tensor<%dxf32>\n}\n", n, n, op, n, n)
	}
	rows := func(n, length int) string {
		return fmt.Sprintf("func.func @f(%%x: tensor<%[1]dx%[2]dxf32>) -> tensor<%[1]dx%[2]dxf32> {\n  %%0 = dm.softmax %%x, dim = 1 : tensor<%[1]dx%[2]dxf32>\n  return %%0 : tensor<%[1]dx%[2]dxf32>\n}\n", n, length)
	}
	product := `dm.einsum "ij,jk->ik" %x, %x : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>`
	for _, c := range []struct {
		name, text string
		ns         float64
		bound      string
		level      string
		threads    int
		words      string
	}{
		{"in the caches of the cores", unary("relu", 1<<17), 1<<20/200.0 + 1000, cost.Memory, "L2", 0, "1.05 MB / 200 GB/s in L2"},
		{"between two levels", unary("relu", 1<<19), (0.7*(4<<20)/200 + 0.3*(4<<20)/50) + 1000, cost.Memory, "L2 and L3", 0, "in L2 and L3"},
		{"in the last cache", unary("relu", 1<<21), 16<<20/50.0 + 1000, cost.Memory, "L3", 0, "16.8 MB / 50.0 GB/s in L3"},
		{"in the memory", unary("relu", 1<<24), 128<<20/10.0 + 1000, cost.Memory, "", 0, "134 MB / 10.0 GB/s"},
		{"on one thread", unary("relu", 1<<12), 4*(1<<15)/200.0 + 50, cost.Memory, "L2", 1, "32.8 kB / 50.0 GB/s in L2"},
		{"an op with a rate of its own", unary("exp", 1<<18), 1<<18/10.0 + 1000, cost.Compute, "L2", 0, "2.10 MB / 200 GB/s in L2"},
		{"an op with a rate of its own on two threads", unary("exp", 1<<14), 2*(1<<14)/10.0 + 1000, cost.Compute, "L2", 2, "131 kB / 100 GB/s in L2"},
		{"an op without FLOP, by its elements", "func.func @f(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {\n  %0 = dm.transpose %x, dims = [1, 0] : (tensor<512x512xf32>) -> tensor<512x512xf32>\n  return %0 : tensor<512x512xf32>\n}\n", 1<<18/2.0 + 1000, cost.Compute, "L2", 0, "2.10 MB / 200 GB/s in L2"},
		{"short rows, each with a time of its own", rows(1<<14, 16), 4*(1<<18)/40.0 + (1<<14)*20/4.0 + 1000, cost.Compute, "L2", 0, "in L2"},
		{"long rows, which do not come while others are computed", rows(64, 4096), 4*(1<<18)/40.0 + 64*20/4.0 + (2<<20)/200.0 + 1000, cost.Compute, "L2", 0, "in L2"},
		{
			"a product and an op take turns", "func.func @f(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {\n  %0 = dm.kernel -> tensor<256x256xf32> {\n    %1 = " + product + "\n    %2 = dm.exp %1 : tensor<256x256xf32>\n    dm.yield %2 : tensor<256x256xf32>\n  }\n  return %0 : tensor<256x256xf32>\n}\n",
			(1<<25)/400.0 + (1<<16)/10.0 + 1000, cost.Compute, "L2", 0, "524 kB / 200 GB/s in L2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := only(t, load(t, "in.dmir", c.text, program.Options{Target: toyCPU}))
			e := f.Entries[0]
			got := e.Time(toyCPU)
			if math.Abs(got.Ns/c.ns-1) > 1e-9 || got.Bound != c.bound {
				t.Errorf("%.6g ns bound by %s, want %.6g by %s", got.Ns, got.Bound, c.ns, c.bound)
			}
			terms, ok := e.TimeTerms(toyCPU)
			if !ok || math.Abs(terms.Ns()/c.ns-1) > 1e-9 || terms.Level != c.level || terms.Threads != c.threads || !strings.Contains(terms.MovedText(), c.words) {
				t.Errorf("terms %+v of %.6g ns, %s", terms, terms.Ns(), terms.MovedText())
			}
			of := 0.0
			for _, w := range terms.Work {
				of += w.Ns()
			}
			if math.Abs(of-terms.Compute) > 1e-6*of {
				t.Errorf("the works take %g ns, all of them %g", of, terms.Compute)
			}
			if one := strings.Contains(terms.LaunchText(toyCPU), "one thread"); one != (c.threads == 1) {
				t.Errorf("launch: %s", terms.LaunchText(toyCPU))
			}
		})
	}
}

// What is measured of processors changes no time on other machines.
func TestOtherMachinesHaveNoLevels(t *testing.T) {
	p := loadFile(t, "../../examples/ffn.dmir")
	for _, m := range machine.All() {
		for _, f := range p.Funcs {
			f.Walk(func(e *cost.Entry) {
				if x, ok := e.TimeTerms(m); ok && (x.Level != "" || x.Threads != 0 || x.OneUnit || x.Moved > 0 && x.Bandwidth != m.Reach() || x.Ns() != e.Time(m).Ns) {
					t.Errorf("%s on %s: %+v", e.Op.Name, m.Name, x)
				}
			})
		}
	}
}
