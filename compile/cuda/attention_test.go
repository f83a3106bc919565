package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/cuda"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/gpu/prelude"
	"dmir/gpu/ptx/ptxtest"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// attentionCase is an attention, with its gradient where back is set.
type attentionCase struct {
	name       string
	elem       string
	q, k       string // "2x4x70x64"
	value      string // the last dimension of v; "": that of k
	mask       string // its shape; "": none
	attributes string
	step       string // its element type; "": none
	first      string // of a part of a whole, the number of its first row of scores; "": the whole
	back       bool
	noMaskGrad bool
	free       bool // the gradient takes a y that is not the attention's, so that no sums cancel out
}

// text is the function of a case, called name, and its arguments and results.
func (c attentionCase) text(name string) (text string, args, results []string) {
	type_ := func(shape, elem string) string { return fmt.Sprintf("tensor<%sx%s>", shape, elem) }
	last := func(s string) (front, back string) {
		i := strings.LastIndexByte(s, 'x')
		return s[:i], s[i+1:]
	}
	rows, depth := last(c.q)
	keys, _ := last(c.k)
	if c.value == "" {
		c.value = depth
	}
	wide := "f32"
	if c.elem == "f64" {
		wide = "f64"
	}
	q, k, v := type_(c.q, c.elem), type_(c.k, c.elem), type_(keys+"x"+c.value, c.elem)
	y, lse := type_(rows+"x"+c.value, c.elem), type_(rows, wide)
	args = []string{q, k, v}
	operands, params := "%q, %k, %v", "%q: "+q+", %k: "+k+", %v: "+v
	mask := ""
	if c.mask != "" {
		mask = type_(c.mask, c.elem)
		args = append(args, mask)
		operands += ", %m"
		params += ", %m: " + mask
	}
	if c.step != "" {
		args = append(args, "tensor<"+c.step+">")
		operands, params = operands+", %step", params+", %step: tensor<"+c.step+">"
	}
	in := strings.Join(args, ", ")
	results = []string{y, lse}
	body := ""
	if c.first != "" {
		body = "  %first = dm.constant dense<" + c.first + "> : tensor<i64>\n"
		operands, in = operands+", %first", in+", tensor<i64>"
	}
	body += fmt.Sprintf("  %%y, %%lse = dm.attention %s%s : (%s) -> (%s, %s)\n", operands, c.attributes, in, y, lse)
	values := "%y, %lse"
	if c.back {
		args = append(args, y)
		params += ", %dy: " + y
		grads, kinds := "%dq, %dk, %dv", []string{q, k, v}
		from := "%y"
		if c.free {
			from = "%z"
			args = append(args, y)
			params += ", %z: " + y
		}
		operands, in = "%q, %k, %v, "+from+", %lse, %dy", strings.Join([]string{q, k, v, y, lse, y}, ", ")
		if c.mask != "" {
			operands, in = operands+", %m", in+", "+mask
			if !c.noMaskGrad {
				grads, kinds = grads+", %dm", append(kinds, mask)
			}
		}
		if c.step != "" {
			operands, in = operands+", %step", in+", tensor<"+c.step+">"
		}
		if c.first != "" {
			operands, in = operands+", %first", in+", tensor<i64>"
		}
		body += fmt.Sprintf("  %s = dm.attention_grad %s%s : (%s) -> (%s)\n", grads, operands, c.attributes, in, strings.Join(kinds, ", "))
		values += ", " + grads
		results = append(results, kinds...)
	}
	out := strings.Join(results, ", ")
	return fmt.Sprintf("func.func @%s(%s) -> (%s) {\n%s  return %s : %s\n}\n", name, params, out, body, values, out), args, results
}

// calls is one function @all that calls those of all cases; so the emulator's
// compiler runs once.
func calls(t *testing.T, cases []attentionCase) (p *program.Program, owners []attentionCase) {
	t.Helper()
	var text, body strings.Builder
	var params, values, kinds []string
	for i, c := range cases {
		name := fmt.Sprintf("case%d", i)
		fn, args, results := c.text(name)
		text.WriteString(fn)
		var in, out []string
		for _, a := range args {
			in = append(in, fmt.Sprintf("%%a%d", len(params)))
			params = append(params, fmt.Sprintf("%s: %s", in[len(in)-1], a))
		}
		for _, r := range results {
			out = append(out, fmt.Sprintf("%%r%d", len(values)))
			values, kinds = append(values, out[len(out)-1]), append(kinds, r)
			owners = append(owners, c)
		}
		fmt.Fprintf(&body, "  %s = func.call @%s(%s) : (%s) -> (%s)\n", strings.Join(out, ", "), name, strings.Join(in, ", "), strings.Join(args, ", "), strings.Join(results, ", "))
	}
	fmt.Fprintf(&text, "func.func @all(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(params, ", "), strings.Join(kinds, ", "), body.String(), strings.Join(values, ", "), strings.Join(kinds, ", "))
	p = program.Load(source.New("attention.dmir", text.String()), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s %s", d.Code, d.Message)
		}
	}
	return p, owners
}

func buildAttention(t *testing.T, p *program.Program, arch string, sms int) *artifact.Program {
	t.Helper()
	m, _ := machine.Lookup(map[string]string{"sm_80": "a100-80", "sm_90a": "h200", "sm_100": "b200"}[arch])
	of := *m
	if sms > 0 {
		of.SMs = sms
	}
	return buildAttentionFor(t, p, arch, &of)
}

func buildAttentionFor(t *testing.T, p *program.Program, arch string, of *machine.Machine) *artifact.Program {
	t.Helper()
	mod := p.Modules[0]
	built, err := driver.Build(context.Background(), mod, mod.Func("all"), driver.BuildOptions{Machine: of, Arch: arch})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// apart is the tolerance of a result: its largest difference from the reference
// (tensor.MaxDiff), and the norm of the difference over that of the result, which
// detects errors of small gradients too.
func apart(e types.Elem) (most, length float64) {
	switch e {
	case types.F64:
		return 1e-11, 1e-11
	case types.F32:
		return 2e-4, 1e-5
	case types.F16:
		return 0x1p-8, 0x1p-9
	}
	return 0x1p-5, 0x1p-6
}

// apart is the tolerance of a result of c: numbers that TF32 rounds have as many bits as those of f16.
func (c attentionCase) apart(e types.Elem) (most, length float64) {
	if strings.Contains(c.attributes, "tf32") {
		e = types.F16
	}
	return apart(e)
}

// relative is the Euclidean length of a - b over that of b, without elements
// that are NaN in both.
func relative(a, b *tensor.Tensor) float64 {
	var difference, length float64
	for i := range a.Len() {
		if x, y := a.Float(i), b.Float(i); x == x || y == y {
			difference += (x - y) * (x - y)
			length += y * y
		}
	}
	if difference == 0 {
		return 0
	}
	return math.Sqrt(difference / length)
}

// carryAttention records a case for the device suite.
func carryAttention(t *testing.T, c attentionCase, sms int) {
	t.Helper()
	p, _ := calls(t, []attentionCase{c})
	fn := p.Modules[0].Func("all")
	values := suite.Reference(t.Context(), p.Modules[0], fn, nil, nil)
	args, want, err := values(7)
	if err != nil {
		t.Fatal(err)
	}
	suite.Record(t, 7, suite.Source{
		Name: c.name + " " + c.elem, Class: "attention", Args: args, Want: want, Again: values,
		Build: func(arch string) (*artifact.Program, error) { return buildAttention(t, p, arch, sms), nil },
		Within: func(i int) suite.Within {
			most, length := c.apart(want[i].Elem)
			return suite.Within{Most: most, Length: length}
		},
	})
}

// agrees compares all cases on the emulator with the reference. With few
// multiprocessors tiles are the largest, with many the smallest. agreesOn is for another
// architecture than sm_80.
func agrees(t *testing.T, cases []attentionCase, sms int) {
	t.Helper()
	agreesOn(t, "sm_80", cases, sms)
}

func agreesOn(t *testing.T, arch string, cases []attentionCase, sms int) {
	t.Helper()
	if _, _, ok := suite.Recording(); ok {
		for _, c := range cases {
			carryAttention(t, c, sms)
		}
		return
	}
	p, owners := calls(t, cases)
	runAttention(t, p, owners, buildAttention(t, p, arch, sms))
}

// runAttention compares a program of cases on the emulator with the reference.
func runAttention(t *testing.T, p *program.Program, owners []attentionCase, built *artifact.Program) {
	t.Helper()
	need.OK(t, emulator.Check())
	ctx := context.Background()
	mod := p.Modules[0]
	fn := mod.Func("all")
	args, err := interp.Inputs(ctx, fn, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := interp.Run(ctx, mod, fn, args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var in [][]byte
	for _, a := range args {
		b := tensor.Pack(a)
		in = append(in, b)
	}
	r, err := emulator.Run(ctx, built, in, emulator.Options{})
	var fault *emulator.Fault
	if errors.As(err, &fault) {
		lines := strings.Split(built.Source, "\n")
		t.Fatalf("%v\n%s", err, strings.Join(lines[max(0, min(len(lines), fault.Line-10)):max(0, min(len(lines), fault.Line+5))], "\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("compiled in %v, ran %d steps in %v", r.Compile, len(built.Steps), r.Run)
	for i, w := range want.Outputs {
		got, err := tensor.Unpack(r.Outputs[i], w.Elem, w.Shape)
		if err != nil {
			t.Fatal(err)
		}
		c := owners[i]
		most, length := c.apart(w.Elem)
		d, l := tensor.MaxDiff(got, w), relative(got, w)
		if !(d <= most) || !(l <= length) {
			t.Errorf("%s, %s: result %d, %s, differs by %g, in length by %g", c.name, c.elem, i, w.Type(), d, l)
		}
	}
	for i, s := range built.Steps {
		if got := r.Steps[i]; s.Differs == "" && (got.Read != s.ReadBytes || got.Written != s.WrittenBytes) {
			t.Errorf("%s: read %d and wrote %d bytes, the cost model predicts %d and %d", s.Name, got.Read, got.Written, s.ReadBytes, s.WrittenBytes)
		}
	}
}

// Head depths, forward and backward, with partial tiles; the numbers of queries and
// keys differ, and two heads share a key head. Each depth is causal in one turn and not in the other.
func depths(t *testing.T, elems ...string) []attentionCase {
	t.Helper()
	var out []attentionCase
	for i, depth := range []string{"16", "32", "64", "80", "128"} {
		c := attentionCase{name: depth + " deep", elem: elems[i%len(elems)], q: "1x2x70x" + depth, k: "1x1x85x" + depth, back: true}
		if need.Turn(t, i, 2) {
			out = append(out, c)
		}
		c.name += ", causal"
		c.elem = elems[(i+1)%len(elems)]
		c.attributes = ", causal = true"
		if need.Turn(t, i+1, 2) {
			out = append(out, c)
		}
	}
	return out
}

// All options of an attention: how masks repeat, dropout, other
// values, scales, heads, and edges of the masks.
var variants = []attentionCase{
	{name: "mask for all", q: "2x2x19x16", k: "2x2x35x16", mask: "19x35", back: true},
	{name: "mask for each", q: "2x2x19x16", k: "2x1x35x16", mask: "2x2x19x35", back: true},
	{name: "mask of keys", q: "2x4x19x16", k: "2x2x35x16", mask: "2x1x1x35", back: true},
	{name: "mask of queries", q: "2x2x19x16", k: "2x2x35x16", mask: "2x19x1", back: true, free: true},
	{name: "mask of heads", q: "2x2x35x16", k: "2x2x70x16", mask: "2x1x1", back: true, free: true, attributes: ", causal = true"},
	{name: "mask without gradient", q: "2x2x19x16", k: "2x2x35x16", mask: "2x1x19x35", back: true, noMaskGrad: true},
	{name: "dropout", q: "2x2x40x16", k: "2x1x50x16", attributes: ", dropout = 0.3, seed = 11", back: true},
	{name: "dropout, causal, mask", q: "1x2x40x32", k: "1x2x140x32", mask: "2x40x140", attributes: ", causal = true, dropout = 0.5, seed = 3", back: true},
	{name: "dropout of a step", q: "2x2x40x16", k: "2x1x50x16", attributes: ", dropout = 0.3, seed = 11", step: "i64", back: true},
	{name: "dropout of a step, mask", q: "1x2x19x16", k: "1x2x35x16", mask: "19x35", attributes: ", dropout = 0.3, seed = 11", step: "ui8", back: true},
	{name: "dropout in a part of a whole", q: "2x2x40x16", k: "2x1x50x16", attributes: ", dropout = 0.3, seed = 11, whole = [7000000000, 3, 60]", step: "i64", first: "420000000147", back: true},
	{name: "dropout in a part, odd keys", q: "2x19x16", k: "1x35x16", attributes: ", causal = true, dropout = 0.3, whole = [5, 19]", first: "38", back: true},
	{name: "no heads", q: "33x16", k: "47x16", back: true},
	{name: "many batch dimensions", q: "2x1x3x2x9x16", k: "2x1x3x1x20x16", mask: "3x1x9x1", back: true, free: true},
	{name: "values of their own depth", q: "1x1x40x16", k: "1x1x50x16", value: "40", attributes: ", causal = true", back: true},
	{name: "values less deep", q: "1x1x40x72", k: "1x1x50x72", value: "24", back: true},
	{name: "scale", q: "1x1x40x16", k: "1x1x50x16", attributes: ", scale = -0.7", back: true},
	{name: "more queries than keys", q: "1x1x40x16", k: "1x1x50x16", back: true},
	{name: "queries that see nothing", q: "1x1x50x16", k: "1x1x40x16", attributes: ", causal = true", back: true},
	{name: "one query", q: "1x4x1x16", k: "1x2x90x16", attributes: ", causal = true", back: true},
	{name: "one query and a mask", q: "1x4x1x16", k: "1x2x90x16", mask: "1x1x1x90", back: true},
	{name: "depth of fours", q: "1x1x20x20", k: "1x1x30x20", value: "12", back: true},
	{name: "depth of twos", q: "1x1x20x6", k: "1x1x30x6", value: "10", back: true},
	{name: "odd depth", q: "1x2x20x7", k: "1x1x30x7", value: "5", attributes: ", causal = true, dropout = 0.1", back: true},
	{name: "many tiles", q: "1x2x300x16", k: "1x1x330x16", attributes: ", causal = true", back: true},
	{name: "forward only", q: "1x1x130x64", k: "1x1x200x64", attributes: ", causal = true"},
}

func of(elem string, cases []attentionCase) []attentionCase {
	var out []attentionCase
	for _, c := range cases {
		c.elem = elem
		out = append(out, c)
	}
	return out
}

func TestAttentionDepths(t *testing.T) {
	t.Parallel()
	need.Long(t)
	t.Run("tensor cores", func(t *testing.T) { agrees(t, depths(t, "f16", "bf16"), 1) })
	t.Run("vector units", func(t *testing.T) { agrees(t, depths(t, "f32", "f64"), 1) })
}

func TestAttentionSmallTiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	cases := append(depths(t, "bf16", "f32", "f16"), depths(t, "f64")[:2]...)
	agrees(t, append(cases, fewQueries...), 1<<20)
}

// Blocks share the keys where there are few queries.
var fewQueries = []attentionCase{
	{name: "one query, many keys", elem: "f16", q: "1x4x1x64", k: "1x2x700x64", attributes: ", causal = true"},
	{name: "few queries, dropout and mask", elem: "bf16", q: "1x2x9x20", k: "1x2x300x20", value: "6", mask: "9x300", attributes: ", dropout = 0.2, whole = [3, 2, 30]", first: "70", back: true},
	{name: "keys behind all queries", elem: "f16", q: "1x1x300x16", k: "1x1x330x16", attributes: ", causal = true", back: true},
	{name: "few queries that see nothing", elem: "f16", q: "1x1x340x16", k: "1x1x300x16", attributes: ", causal = true"},
	{name: "f32", elem: "f32", q: "1x2x3x7", k: "1x1x100x7", attributes: ", causal = true", back: true},
}

func TestAttentionVariants(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for i, c := range []struct {
		elem string
		sms  int
	}{{"f16", 1}, {"f32", 1 << 20}} { // the one on tensor cores, the other on vector units
		if cuda.Turn(t, i, 2) {
			t.Run(c.elem, func(t *testing.T) { agrees(t, of(c.elem, variants), c.sms) })
		}
	}
}

func TestAttentionDeep(t *testing.T) {
	t.Parallel()
	need.Long(t)
	deep := []attentionCase{
		{name: "192 deep", elem: "f16", q: "1x1x40x192", k: "1x1x50x192", value: "128", back: true},
		{name: "256 deep", elem: "bf16", q: "1x2x40x256", k: "1x1x50x256", attributes: ", causal = true", back: true},
		{name: "256 deep", elem: "f32", q: "1x1x20x256", k: "1x1x30x256", back: true},
		{name: "320 deep", elem: "f16", q: "1x1x20x320", k: "1x1x30x320", back: true},
	}
	agrees(t, deep, 1)
}

// notRecorded skips a test whose cases are of one architecture where cases are recorded for a card, which CI never does.
func notRecorded(t *testing.T) {
	t.Helper()
	if _, _, ok := suite.Recording(); ok {
		t.Skip("the other tests' cases are recorded, and built for the card's architecture")
	}
}

// On Hopper an attention runs on warpgroup products: with one multiprocessor a block computes
// several tiles, with many the keys are split.
func TestAttentionWarpgroups(t *testing.T) {
	t.Parallel()
	need.Long(t)
	notRecorded(t)
	t.Run("depths", func(t *testing.T) { agreesOn(t, "sm_90a", depths(t, "f16", "bf16"), 1) })
	t.Run("variants", func(t *testing.T) {
		var cases []attentionCase
		for i, c := range of("bf16", variants) {
			if need.Turn(t, i, 2) {
				cases = append(cases, c)
			}
		}
		for i := range cases {
			cases[i].noMaskGrad = true // its kernel is on vector units
		}
		agreesOn(t, "sm_90a", cases, 1)
	})
	t.Run("splits", func(t *testing.T) { agreesOn(t, "sm_90a", fewQueries, 1<<20) })
}

// The CUDA compiler compiles every kernel without spills: of every second case on one of the targets in turn.
func TestAttentionCompiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	var cases []attentionCase
	add := func(attributes, mask string, kinds ...string) {
		for _, kind := range kinds {
			elem, depth, _ := strings.Cut(kind, " ")
			first := ""
			if strings.Contains(attributes, "whole") {
				first = "70"
			}
			cases = append(cases, attentionCase{name: kind, elem: elem, first: first, q: "1x2x70x" + depth, k: "1x1x85x" + depth, mask: mask, attributes: attributes, back: true})
		}
	}
	add(", causal = true", "", "f16 16", "bf16 32", "f16 64", "bf16 80", "f16 128", "bf16 256", "f32 64", "f32 128", "f64 64")
	add(", causal = true, dropout = 0.1, whole = [4, 2, 70]", "2x1x85", "bf16 64", "f16 128", "f32 64")
	long := func(q, k, attributes string) {
		cases = append(cases, attentionCase{name: q, elem: "bf16", q: q, k: k, attributes: attributes})
	}
	long("1x8x400x64", "1x2x500x64", "")
	long("1x2x768x64", "1x2x768x64", ", causal = true")
	long("2x4x640x192", "2x4x700x192", ", causal = true")
	long("1x4x512x128", "1x4x512x128", ", dropout = 0.1")
	targets := []struct {
		arch string
		sms  int
	}{{"sm_80", 1}, {"sm_90a", 1}, {"sm_90a", 1 << 20}, {"sm_100", 1}} // sm_80 and sm_100 with many multiprocessors are like sm_90a
	var headers []nvrtc.Header
	for _, h := range prelude.Files() {
		headers = append(headers, nvrtc.Header(h))
	}
	for i, target := range targets {
		arch := target.arch
		var own []attentionCase
		for j, c := range cases {
			if need.Turn(t, i+j, 2*len(targets)) {
				own = append(own, c)
			}
		}
		t.Run(fmt.Sprintf("%s/%d", arch, target.sms), func(t *testing.T) {
			t.Parallel()
			p, _ := calls(t, own)
			built := buildAttention(t, p, arch, target.sms)
			r, err := nvrtc.Compile(context.Background(), built.Source, headers, arch, nvrtc.Options{})
			if missing := (*nvrtc.NotFound)(nil); errors.As(err, &missing) {
				need.OK(t, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			ptxtest.Check(t, built, r)
			for _, k := range r.Kernels {
				i := slices.IndexFunc(built.Kernels, func(a artifact.Kernel) bool { return a.Name == k.Name })
				of := built.Kernels[i]
				lines := strings.Split(built.Source, "\n")[of.First:of.Last]
				call := lines[slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "dm::attention_") })]
				t.Logf("%s %3d registers, %6d bytes shared, %3d spilled: %s %.60s", arch, k.Registers, of.Block.Shared, k.SpillStores, k.Name, strings.TrimSpace(call))
			}
			for _, k := range r.Spilled() {
				t.Errorf("%s: %s spills %d bytes", arch, k.Name, k.SpillStores)
			}
		})
	}
}
