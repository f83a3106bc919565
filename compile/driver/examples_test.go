package driver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/syntax/diag"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

func loaded(t testing.TB, name, text string) *program.Program {
	t.Helper()
	p := program.Load(source.New(name, text), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s:%s %s\n%s", name, d.Code, d.Message, text)
		}
	}
	return p
}

// needEmulator skips where no C++ compiler is, but not in CI.
func needEmulator(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles C++")
	}
	need.OK(t, emulator.Check())
}

// needNVRTC skips where NVRTC is not, but not in CI.
func needNVRTC(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles CUDA")
	}
	nvrtctest.Compiler(t)
}

// agree builds @name and compares what the emulator computes with the reference.
func agree(t *testing.T, p *program.Program, name string) (*artifact.Program, *Result) {
	t.Helper()
	return agreeWithin(t, p, name, 0)
}

// agreeWithin is agree where results of floating-point types may differ by least,
// if not by more.
func agreeWithin(t *testing.T, p *program.Program, name string, least float64) (*artifact.Program, *Result) {
	t.Helper()
	ctx := context.Background()
	m, fn, err := Pick(p, name)
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: "reference"}
	want, err := Run(ctx, job, nil)
	if err != nil {
		t.Fatal(err)
	}
	h200, _ := machine.Lookup("h200")
	built, err := Build(ctx, m, fn, BuildOptions{Machine: h200, Bind: p.Bind})
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := Choose("emulator")
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(ctx, fn, p.Bind, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	wants := tensorsOf(want)
	within := func(i int) suite.Within {
		w := wants[i]
		allowed := tolerance(w)
		if w.Elem.IsFloat() {
			allowed = max(allowed, least)
		}
		return suite.Within{Most: allowed}
	}
	suite.Record(t, 7, suite.Source{Build: builderOf(m, fn, p.Bind), Args: args, Want: wants, Again: suite.Reference(t.Context(), m, fn, p.Bind, nil), Within: within})
	got, err := RunArtifact(ctx, d, built, args, device.Options{})
	var fault *emulator.Fault
	if errors.As(err, &fault) {
		t.Fatalf("%v\n%s", err, near(built.Source, fault.Line))
	}
	if err != nil {
		t.Fatal(err)
	}
	gots := tensorsOf(got)
	if len(gots) != len(wants) {
		t.Fatalf("%d results, want %d", len(gots), len(wants))
	}
	for i, x := range gots {
		if d := tensor.MaxDiff(x, wants[i]); !(d <= within(i).Most) {
			t.Errorf("result %d, %s: differs by %g", i, x.Type(), d)
		}
	}
	return built, got
}

func tolerance(t *tensor.Tensor) float64 {
	switch {
	case !t.Elem.IsFloat():
		return 0
	case t.Elem.Bytes() == 1:
		return 0.3
	case t.Elem.String() == "bf16":
		return 0.02
	case t.Elem.Bytes() == 2:
		return 0.004
	case t.Elem.Bytes() == 4:
		return 1e-4
	}
	return 1e-9
}

func near(text string, line int) string {
	lines := strings.Split(text, "\n")
	var b strings.Builder
	for i := max(0, line-12); i < min(len(lines), line+6); i++ {
		fmt.Fprintf(&b, "%5d %s\n", i+1, lines[i])
	}
	return b.String()
}

var notCompiled = map[string]string{
	"grad": "pass",
}

// Every op of the registry computes on the emulated device what it does in the
// reference: the examples, all called from one function.
func TestExamplesOfOps(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	var text, calls, results, values strings.Builder
	call := regexp.MustCompile(`(?s)func\.func @example\((.*?)\)\s*->\s*(.*?) \{\n`)
	args := []string{}
	n := 0
	for _, d := range op.All() {
		if notCompiled[d.Name] != "" || d.Name == "yield" || d.Family == op.Distribution { // several devices: package distribute
			continue
		}
		m := call.FindStringSubmatch(d.Example)
		if m == nil {
			t.Errorf("%s: no example", d.Name)
			continue
		}
		name := "op_" + d.Name
		text.WriteString(strings.Replace(d.Example, "@example", "@"+name, 1) + "\n")
		fn := loaded(t, name, d.Example).Modules[0].Func("example")
		var operands, in, out []string
		for i, a := range fn.Args {
			operands = append(operands, fmt.Sprintf("%%%s_%d", d.Name, i))
			in = append(in, a.Type.String())
			args = append(args, fmt.Sprintf("%%%s_%d: %s", d.Name, i, a.Type))
		}
		for _, r := range fn.Results {
			out = append(out, r.String())
			if n > 0 {
				results.WriteString(", ")
				values.WriteString(", ")
			}
			results.WriteString(r.String())
			fmt.Fprintf(&values, "%%r%d", n)
			n++
		}
		var names []string
		for i := range out {
			names = append(names, fmt.Sprintf("%%r%d", n-len(out)+i))
		}
		fmt.Fprintf(&calls, "  %s = func.call @%s(%s) : (%s) -> (%s)\n", strings.Join(names, ", "), name, strings.Join(operands, ", "), strings.Join(in, ", "), strings.Join(out, ", "))
	}
	fmt.Fprintf(&text, "func.func @all(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(args, ", "), results.String(), calls.String(), values.String(), results.String())
	agree(t, loaded(t, "ops.dmir", text.String()), "all")
}

// Rows of every length, half of them in turn: a warp, a block, more than registers hold, and sums of
// columns in registers and in memory.
func TestRows(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	var text, calls, args, results, values strings.Builder
	for i, shape := range []string{"3x7", "600x64", "300x1024", "5x1000", "2x20000", "270x33000", "3x65536"} {
		if !need.Turn(t, i, 2) {
			continue
		}
		row := shape[strings.Index(shape, "x")+1:]
		types := strings.NewReplacer("!x", "tensor<"+shape+"xf32>", "!g", "tensor<"+row+"xf32>", "@f", fmt.Sprintf("@f%d", i), "@grad", fmt.Sprintf("@grad%d", i))
		text.WriteString(types.Replace(`func.func private @f(%x: !x, %g: !g) -> !x {
  %s = dm.softmax %x : !x
  %y = dm.layer_norm %s, %g : (!x, !g) -> !x
  return %y : !x
}
func.func private @grad(%x: !x, %g: !g) -> (!x, !g) {
  %y, %dx, %dg = dm.grad @f %x, %g, %x, wrt = [0, 1], cotangents = 1 : (!x, !g, !x) -> (!x, !x, !g)
  return %dx, %dg : !x, !g
}
`))
		if args.Len() > 0 {
			args.WriteString(", ")
			results.WriteString(", ")
			values.WriteString(", ")
		}
		args.WriteString(types.Replace(fmt.Sprintf("%%x%d: !x, %%g%d: !g", i, i)))
		results.WriteString(types.Replace("!x, !g"))
		fmt.Fprintf(&values, "%%dx%d, %%dg%d", i, i)
		calls.WriteString(types.Replace(fmt.Sprintf("  %%dx%d, %%dg%d = func.call @grad(%%x%d, %%g%d) : (!x, !g) -> (!x, !g)\n", i, i, i, i)))
	}
	fmt.Fprintf(&text, "func.func @all(%s) -> (%s) {\n%s  return %s : %s\n}\n", &args, &results, &calls, &values, &results)
	agree(t, loaded(t, "rows.dmir", text.String()), "all")
}
