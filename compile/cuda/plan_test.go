package cuda

import (
	"regexp"
	"testing"

	"dmir/analysis/cost"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// planned are kernels of all forms.
var planned = []struct{ name, args, body, results string }{
	{"elements", "%x: tensor<64x32xf32>", "%1 = dm.exp %x : tensor<64x32xf32>", "%1 : tensor<64x32xf32>"},
	{"rows", "%x: tensor<4096x64xf16>", "%1 = dm.softmax %x : tensor<4096x64xf16>", "%1 : tensor<4096x64xf16>"},
	{"few columns of many rows", "%x: tensor<65536x64xf16>", "%1 = dm.reduce add %x, dims = [0] : (tensor<65536x64xf16>) -> tensor<64xf16>", "%1 : tensor<64xf16>"},
	{"many columns of few rows", "%x: tensor<16x65536xf32>", "%1 = dm.reduce max %x, dims = [0] : (tensor<16x65536xf32>) -> tensor<65536xf32>", "%1 : tensor<65536xf32>"},
	{"all of a tensor", "%x: tensor<2048x4096xf32>", "%1 = dm.reduce add %x, dims = [0, 1] : (tensor<2048x4096xf32>) -> tensor<f32>", "%1 : tensor<f32>"},
	{"columns of normalised rows", "%x: tensor<4096x1024xf32>", "%0 = dm.softmax %x : tensor<4096x1024xf32>\n%1 = dm.reduce add %0, dims = [0] : (tensor<4096x1024xf32>) -> tensor<1024xf32>", "%1 : tensor<1024xf32>"},
	{"more columns than registers hold", "%x: tensor<2048x32768xf32>", "%0 = dm.softmax %x : tensor<2048x32768xf32>\n%1 = dm.reduce add %0, dims = [0] : (tensor<2048x32768xf32>) -> tensor<32768xf32>", "%0, %1 : tensor<2048x32768xf32>, tensor<32768xf32>"},
	{"a total of rows", "%x: tensor<4096x512xf32>", "%0 = dm.reduce add %x, dims = [1] : (tensor<4096x512xf32>) -> tensor<4096xf32>\n%2 = dm.sqrt %0 : tensor<4096xf32>\n%1 = dm.reduce max %2, dims = [0] : (tensor<4096xf32>) -> tensor<f32>", "%2, %1 : tensor<4096xf32>, tensor<f32>"},
	{"reductions of a product", "%x: tensor<512x256xf16>, %w: tensor<256x384xf16>", "%0 = dm.matmul %x, %w : (tensor<512x256xf16>, tensor<256x384xf16>) -> tensor<512x384xf16>\n%1 = dm.reduce add %0, dims = [0] : (tensor<512x384xf16>) -> tensor<384xf16>", "%0, %1 : tensor<512x384xf16>, tensor<384xf16>"},
	{"a scan", "%x: tensor<64x700xf32>", "%1 = dm.cumsum %x, dim = 1, exclusive = true : tensor<64x700xf32>", "%1 : tensor<64x700xf32>"},
	{"segments of numbers", "%x: tensor<65536xf32>, %c: tensor<1000000xi32>, %a: tensor<1000000xf32>, %p: tensor<65537xi32>", "%0 = dm.gather %x, %c : (tensor<65536xf32>, tensor<1000000xi32>) -> tensor<1000000xf32>\n%2 = dm.mul %0, %a : tensor<1000000xf32>\n%1 = dm.segment_reduce add %2, %p : (tensor<1000000xf32>, tensor<65537xi32>) -> tensor<65536xf32>", "%1 : tensor<65536xf32>"},
	{"segments of columns", "%x: tensor<100000x16xf16>, %p: tensor<9001xi64>", "%1 = dm.segment_reduce max %x, %p : (tensor<100000x16xf16>, tensor<9001xi64>) -> tensor<9000x16xf16>", "%1 : tensor<9000x16xf16>"},
	{"numbers of segments", "%p: tensor<9001xi32>", "%1 = dm.segment_ids %p : (tensor<9001xi32>) -> tensor<100000xi32>", "%1 : tensor<100000xi32>"},
	{"the greatest", "%x: tensor<64x700xf32>", "%1 = dm.argmax %x, dim = 1 : (tensor<64x700xf32>) -> tensor<64xi64>", "%1 : tensor<64xi64>"},
	{"a rank", "%x: tensor<64x37xf32>", "%1 = dm.sort %x, dim = 1 : tensor<64x37xf32>", "%1 : tensor<64x37xf32>"},
	{"short lines in order", "%x: tensor<300x100xf64>", "%1, %2 = dm.sort %x, dim = 1, descending = true : (tensor<300x100xf64>) -> (tensor<300x100xf64>, tensor<300x100xi64>)", "%1, %2 : tensor<300x100xf64>, tensor<300x100xi64>"},
	{"the first across short lines", "%x: tensor<4x40x30xf16>", "%1, %2 = dm.top_k %x, k = 7, dim = 1 : (tensor<4x40x30xf16>) -> (tensor<4x7x30xf16>, tensor<4x7x30xi32>)", "%1, %2 : tensor<4x7x30xf16>, tensor<4x7x30xi32>"},
	{"lines in order", "%x: tensor<7x250xbf16>", "%1, %2 = dm.sort %x : (tensor<7x250xbf16>) -> (tensor<7x250xbf16>, tensor<7x250xi32>)", "%1, %2 : tensor<7x250xbf16>, tensor<7x250xi32>"},
	{"long lines in order", "%x: tensor<2x3000000xf16>", "%1, %2 = dm.sort %x : (tensor<2x3000000xf16>) -> (tensor<2x3000000xf16>, tensor<2x3000000xi32>)", "%1, %2 : tensor<2x3000000xf16>, tensor<2x3000000xi32>"},
	{"many of a long line in order", "%x: tensor<20000xf32>", "%1, %2 = dm.top_k %x, k = 2000 : (tensor<20000xf32>) -> (tensor<2000xf32>, tensor<2000xi32>)", "%1, %2 : tensor<2000xf32>, tensor<2000xi32>"},
	{"the first of long lines", "%x: tensor<2x1000000xf32>", "%1, %2 = dm.top_k %x, k = 1000 : (tensor<2x1000000xf32>) -> (tensor<2x1000xf32>, tensor<2x1000xi64>)", "%1, %2 : tensor<2x1000xf32>, tensor<2x1000xi64>"},
	{"a scatter of many updates", "%x: tensor<500x8xf32>, %i: tensor<20x20xi32>, %u: tensor<20x20x8xf32>", "%1 = dm.scatter add %x, %i, %u, dim = 0 : (tensor<500x8xf32>, tensor<20x20xi32>, tensor<20x20x8xf32>) -> tensor<500x8xf32>", "%1 : tensor<500x8xf32>"},
	{"an attention", "%q: tensor<1x64x64xf16>, %k: tensor<1x4096x64xf16>", "%1 = dm.attention %q, %k, %k : (tensor<1x64x64xf16>, tensor<1x4096x64xf16>, tensor<1x4096x64xf16>) -> tensor<1x64x64xf16>", "%1 : tensor<1x64x64xf16>"},
}

// formed is the form of a case.
func formed(t *testing.T, c productCase) *kernel.Form {
	t.Helper()
	fn := module(t, c).Funcs[0]
	f, err := kernel.Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return f
}

// What the fusion planner is told that a kernel moves beside its operands and results is what the launches of its plan write for each
// other and read again.
func TestRunning(t *testing.T) {
	for _, c := range planned {
		for _, arch := range []string{"sm_80", "sm_90a"} {
			f := formed(t, productCase{name: c.name, args: c.args, body: c.body, out: c.results})
			of := targetOf(t, arch)
			p, err := of.plan(f, assemble.Options{})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			ls, err := p.launches()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			var want cost.Running
			for _, l := range ls {
				for _, q := range l.Params {
					if q.Temp == nil {
						continue
					}
					if q.Mode != artifact.Out && !q.Fresh && !q.Instead {
						want.Read += q.Temp.Bytes()
					}
					if q.Mode != artifact.In {
						want.Written += q.Temp.Bytes()
					}
				}
			}
			stored := int64(0)
			for _, v := range f.Outputs {
				stored += f.Elements(v) * v.Elem().Bytes()
			}
			got, ok := assemble.Running(assembler{of}, f, target.Moved{Written: stored, Of: func(*ir.Value) int64 { return 0 }})
			if tile, _ := p.Tile(); !ok || got.Read != want.Read || got.Written != want.Written || got.Tile != tile || got.Launches != int64(p.Pace().Launches) {
				t.Errorf("%s, %s: %+v, its %d launches take %+v", c.name, arch, got, len(ls), want)
			}
		}
	}
}

var word = regexp.MustCompile(`[].:%0-9]?[A-Za-z_][A-Za-z0-9_]*\(?`)

// Names are verified where they are operands of code. So a name that a kernel
// declares is never part of a format.
func TestNamesAreOperands(t *testing.T) {
	var cases []productCase
	for _, c := range planned {
		cases = append(cases, productCase{name: c.name, args: c.args, body: c.body, out: c.results})
	}
	for _, c := range [][]productCase{orders, long, groups, around, convolutions, reducing, exactTypes} {
		for _, p := range c {
			cases = append(cases, p.of("f16", Config{}), p.of("f32", Config{}))
		}
	}
	for _, r := range longRows {
		cases = append(cases, r.of("f16", 3, 70001))
	}
	for _, c := range cases {
		f := formed(t, c)
		for _, arch := range []string{"sm_80", "sm_90a"} {
			p, err := targetOf(t, arch).plan(f, assemble.Options{})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			ls, err := p.launches()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			written, err := texts(ls)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for _, x := range written {
				all := append(x.before.statements(), x.kernel())
				declared := map[string]bool{}
				walkCode(all, func(c code) { c.names(func(string) {}, func(n string) { declared[n] = true }) })
				walkCode(all, func(c code) {
					texts := []string{c.format}
					for _, a := range c.args {
						if s, ok := a.(string); ok {
							texts = append(texts, s)
						}
					}
					for _, s := range texts {
						for _, w := range word.FindAllString(s, -1) {
							if declared[w] {
								t.Errorf("%s, %s: %q names %s, which is declared", c.format, arch, s, w)
							}
						}
					}
				})
			}
		}
	}
}

// walkCode visits the code of statements.
func walkCode(list []*stmt, visit func(code)) {
	var all func(c code)
	all = func(c code) {
		visit(c)
		for _, a := range c.args {
			switch a := a.(type) {
			case code:
				all(a)
			case []code:
				for _, x := range a {
					all(x)
				}
			}
		}
	}
	for _, s := range list {
		all(s.head)
		walkCode(s.body, visit)
	}
}

// A scatter groups its updates where that takes less time than to compare each of
// them with the row of every element.
func TestGrouping(t *testing.T) {
	for _, c := range []struct {
		name           string
		x, ids, values string
		clauses        string
		want           bool
	}{
		{"a table's gradient", "50257x768", "4096", "4096x768", "dim = 0", true},
		{"few updates of few rows", "64x32", "100", "100x32", "dim = 0", false},
		{"few updates of a large table", "50257x768", "16", "16x768", "dim = 0", true},
		{"one update", "50257x768", "1", "1x768", "dim = 0", false},
		{"many updates of few elements", "8", "100000", "100000", "dim = 0", true},
		{"rows in many batches", "1024x512", "1024x300", "1024x300", "dim = 1, batch_dims = 1", true},
		{"many rows, one for each update", "100000000", "256", "256", "dim = 0", true},
	} {
		x, ids, values := "tensor<"+c.x+"xf32>", "tensor<"+c.ids+"xi32>", "tensor<"+c.values+"xf32>"
		f := formed(t, productCase{
			name: c.name, args: "%x: " + x + ", %i: " + ids + ", %u: " + values,
			body: "%1 = dm.scatter add %x, %i, %u, " + c.clauses + " : (" + x + ", " + ids + ", " + values + ") -> " + x, out: "%1 : " + x,
		})
		p, err := targetOf(t, "sm_90a").plan(f, assemble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := assemble.Scratch(p) > 0; got != c.want {
			t.Errorf("%s: grouped: %t", c.name, got)
		}
	}
}
