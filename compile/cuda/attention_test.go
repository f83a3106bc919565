package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/gpu/prelude"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// attentionCase is an attention, with its gradient where back is set.
type attentionCase struct {
	name       string
	elem       string
	q, k       string // "2x4x70x64"
	value      string // the last dimension of v; "": that of k
	mask       string // its shape; "": none
	attributes string
	back       bool
	noMaskGrad bool
}

// text is the function of a case, called name, and what its arguments and
// results are.
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
	in := strings.Join(args, ", ")
	results = []string{y, lse}
	body := fmt.Sprintf("  %%y, %%lse = dm.attention %s%s : (%s) -> (%s, %s)\n", operands, c.attributes, in, y, lse)
	values := "%y, %lse"
	if c.back {
		args = append(args, y)
		params += ", %dy: " + y
		grads, kinds := "%dq, %dk, %dv", []string{q, k, v}
		operands, in = "%q, %k, %v, %y, %lse, %dy", strings.Join([]string{q, k, v, y, lse, y}, ", ")
		if c.mask != "" {
			operands, in = operands+", %m", in+", "+mask
			if !c.noMaskGrad {
				grads, kinds = grads+", %dm", append(kinds, mask)
			}
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
func calls(t *testing.T, cases []attentionCase) (p *program.Program, owners []string) {
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
		for k, r := range results {
			out = append(out, fmt.Sprintf("%%r%d", len(values)))
			values, kinds = append(values, out[len(out)-1]), append(kinds, r)
			owners = append(owners, fmt.Sprintf("%s, %s, result %d", c.name, c.elem, k))
		}
		fmt.Fprintf(&body, "  %s = func.call @%s(%s) : (%s) -> (%s)\n", strings.Join(out, ", "), name, strings.Join(in, ", "), strings.Join(args, ", "), strings.Join(results, ", "))
	}
	fmt.Fprintf(&text, "func.func @all(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(params, ", "), strings.Join(kinds, ", "), body.String(), strings.Join(values, ", "), strings.Join(kinds, ", "))
	p = program.Load(source.New("attention.dmir", text.String()), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s %s\n%s", d.Code, d.Message, text.String())
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
	mod := p.Modules[0]
	built, err := driver.Build(context.Background(), mod, mod.Func("all"), driver.BuildOptions{Machine: &of, Arch: arch})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func closeEnough(e types.Elem) float64 {
	switch e {
	case types.F64:
		return 1e-11
	case types.F32:
		return 2e-4
	case types.F16:
		return 0x1p-8
	case types.BF16:
		return 0x1p-5
	}
	return 0.3
}

// agrees runs all cases on the emulator and in the reference. With few
// multiprocessors tiles are as large as they can be, with many as small.
func agrees(t *testing.T, cases []attentionCase, sms int) {
	t.Helper()
	if err := emulator.Check(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ctx := context.Background()
	p, owners := calls(t, cases)
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
	built := buildAttention(t, p, "sm_80", sms)
	var in [][]byte
	for _, a := range args {
		b, err := tensor.Pack(a)
		if err != nil {
			t.Fatal(err)
		}
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
		if d := tensor.MaxDiff(got, w); !(d <= closeEnough(w.Elem)) {
			t.Errorf("%s: differs by %g", owners[i], d)
		}
	}
}

var plainAttention = []attentionCase{
	{name: "16 deep", elem: "f16", q: "1x2x40x16", k: "1x2x72x16"},
	{name: "64 deep", elem: "f16", q: "1x1x70x64", k: "1x1x90x64"},
	{name: "causal", elem: "bf16", q: "1x1x70x32", k: "1x1x90x32", attributes: ", causal = true"},
	{name: "f32", elem: "f32", q: "1x1x70x32", k: "1x1x90x32", attributes: ", causal = true"},
	{name: "grad", elem: "f16", q: "1x2x40x16", k: "1x1x72x16", attributes: ", causal = true", back: true},
	{name: "grad f32", elem: "f32", q: "1x2x40x16", k: "1x1x72x16", attributes: ", causal = true", back: true},
}

func TestAttention(t *testing.T) {
	agrees(t, plainAttention, 1)
}

var _ = nvrtc.Compile
var _ = prelude.Files
