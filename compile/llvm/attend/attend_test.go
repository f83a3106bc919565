package attend_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	_ "dmir/compile/target/all"
	"dmir/compile/tensor"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/native"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

func TestAttention(t *testing.T) {
	for _, arch := range archs(t) {
		for _, a := range table {
			t.Run(arch+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				p := load(t, a.text())
				check(t, p, arch, func(args []*tensor.Tensor) {
					if a.mask != "" {
						a.edit(args[5])
					}
				})
			})
		}
	}
}

// archs are architectures with vectors of different sizes that this machine runs.
func archs(t *testing.T) []string {
	_, err := native.Find(t.Context())
	need.OK(t, err)
	host, ok := native.Host()
	if !ok {
		need.OK(t, errors.New("no programs are compiled for this processor"))
	}
	if host == "armv8-a" || host == "x86-64-v2" || testing.Short() {
		return []string{host}
	}
	return []string{host, "x86-64-v2"}
}

func load(t *testing.T, text string) *program.Program {
	t.Helper()
	p := program.Load(source.New("test.dmir", text), program.Options{})
	if _, _, err := driver.Pick(p, ""); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// check compares a program compiled for arch with the reference executor.
func check(t *testing.T, p *program.Program, arch string, edit func(args []*tensor.Tensor)) *artifact.Program {
	t.Helper()
	a, args := build(t, p, arch)
	edit(args)
	got, err := driver.Unpack(a, run(t, a, args))
	if err != nil {
		t.Fatal(err)
	}
	m, fn, _ := driver.Pick(p, "")
	want, err := interp.Run(t.Context(), m, fn, args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range got {
		compare(t, o.Name, o.Tensor, want.Outputs[i])
	}
	return a
}

// build compiles a program for arch, and makes its inputs.
func build(t *testing.T, p *program.Program, arch string) (*artifact.Program, []*tensor.Tensor) {
	t.Helper()
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: p.Target, Arch: arch})
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), fn, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, args
}

// run runs a program on this machine.
func run(t *testing.T, a *artifact.Program, args []*tensor.Tensor) [][]byte {
	t.Helper()
	in, err := driver.Pack(a, args)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := native.Kinds()[0].Find()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ds[0].Run(t.Context(), a, in, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs
}

// compare reports elements that differ by more than rounding.
func compare(t *testing.T, name string, got, want *tensor.Tensor) {
	t.Helper()
	scale := 0.0
	for i := range want.Len() {
		if x := math.Abs(want.Float(i)); !math.IsInf(x, 0) && !math.IsNaN(x) {
			scale = max(scale, x)
		}
	}
	limit := map[string]float64{"f64": 1e-13, "f32": 4e-6, "f16": 2e-3, "bf16": 1.6e-2}[want.Elem.String()]
	bad, worst := 0, 0.0
	first := ""
	for i := range want.Len() {
		x, y := got.Float(i), want.Float(i)
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		d := math.Abs(x - y)
		if d <= limit*scale {
			worst = max(worst, d/scale)
			continue
		}
		if bad++; bad == 1 {
			first = fmt.Sprintf("element %d is %g instead of %g", i, x, y)
		}
	}
	if bad > 0 {
		t.Errorf("%s %s: %d of %d elements differ by more than %g: %s", name, want.Type(), bad, want.Len(), limit*scale, first)
	}
	t.Logf("%s worst %.2g", name, worst)
}

// TestViews has operands and results that are parts of other tensors, in which the heads
// of a token lie side by side: read where they are, or copied since they are of another
// type or lie in the same sets of a cache.
func TestViews(t *testing.T) {
	large := strings.NewReplacer("2x4x37x24", "2x16x37x64", "2x4x37", "2x16x37", "4x24", "16x64", "4, 24]", "16, 64]")
	for _, arch := range archs(t) {
		for name, text := range map[string]string{"f32": views, "bf16": strings.ReplaceAll(views, "f32", "bf16"), "large": large.Replace(views)} {
			t.Run(arch+"/"+name, func(t *testing.T) {
				t.Parallel()
				a := check(t, load(t, strings.ReplaceAll(text, "SUM", "f32")), arch, func([]*tensor.Tensor) {})
				if len(a.Steps) != 2 {
					t.Errorf("%d steps", len(a.Steps))
				}
			})
		}
	}
}

// TestThreads compares the bits of results for different numbers of threads.
func TestThreads(t *testing.T) {
	arch := archs(t)[0]
	for _, a := range table {
		if a.name != "parts of keys" && a.name != "groups" {
			continue
		}
		program, args := build(t, load(t, a.text()), arch)
		var want [][]byte
		for _, threads := range []string{"1", "2", "5"} {
			t.Setenv("DMIR_THREADS", threads)
			got := run(t, program, args)
			if want == nil {
				want = got
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%s: result %d differs with %s threads", a.name, i, threads)
				}
			}
		}
	}
}

// TestArchitectures compiles for machines other than this one, and looks for the vector
// instructions that products should consist of.
func TestArchitectures(t *testing.T) {
	archs(t)
	for arch, want := range map[string]string{"x86-64-v2": "mulps", "x86-64-v3": "vfmadd231ps", "x86-64-v4": "zmm", "armv8-a": "fmla"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			a, _ := build(t, load(t, table[3].text()), arch)
			text, err := native.Assembly(t.Context(), a, arch)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(text, want); n < 100 {
				t.Errorf("%s occurs %d times", want, n)
			}
		})
	}
}
