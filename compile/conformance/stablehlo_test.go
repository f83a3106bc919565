package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/dialect/print"
	"dmir/gpu/device"
	"dmir/gpu/native"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// The suites of StableHLO: what JAX's primitives lower to, and the interpreter's own.
func TestStableHLO(t *testing.T) {
	compare(t, "stablehlo", "testdata", "interpret")
}

// What these suites do not have.
func TestStableHLOMore(t *testing.T) {
	r, err := StableHLO(t.Context(), "testdata/stablehlo", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		if c.Status != Passed {
			t.Errorf("%s %s: %s", c.Name, c.Status, c.Reason)
		}
	}
}

// long are the models that take long on the reference executor.
var long = map[string]bool{"NanoGPT_FW": true}

// Models that other tools wrote are imported, have a cost, run on random inputs, and
// are as text what a person would write: formatted, without errors, and importing
// changes nothing in it.
func TestStableHLOModels(t *testing.T) {
	var files []string
	for _, dir := range []string{"byteir", "iree"} {
		found, err := filepath.Glob(filepath.Join(folder(t, "models/"+dir), "*.mlir"))
		if err != nil || len(found) == 0 {
			t.Fatal("no models in ", dir)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".mlir")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			src := source.New(file, string(text))
			p := program.Load(src, program.Options{})
			noErrors(t, p)
			if len(p.Funcs) == 0 || p.Funcs[0].Read.IsZero() {
				t.Error("there is no cost")
			}
			written, err := print.Source(p.Modules[0])
			if err != nil {
				t.Fatal(err)
			}
			again := program.Load(source.New("out.dmir", written), program.Options{})
			noErrors(t, again)
			if formatted := format.File(again.Tree); formatted != written {
				t.Error("formatting changes the text")
			}
			if long[name] {
				need.Long(t)
			}
			m, fn, err := driver.Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Seed: 1, Device: "reference"}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func noErrors(t *testing.T, p *program.Program) {
	t.Helper()
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatal(d.Message)
		}
	}
}

// notCompiled are the cases that pass on the reference executor alone, with the reason.
var notCompiled = map[string]string{
	"cumlogsumexp_float16_8_9.mlir":                              "element [1 2] is", // kernels round f16 less often than the program does
	"test_rotary_embedding_interleaved_expanded":                 "has no elements",
	"test_rotary_embedding_no_position_ids_interleaved_expanded": "has no elements",
}

// Programs of the suites that pass on the reference executor pass on the processor: a third of every
// eighth, in turn. -all runs all of them.
func TestSuitesCPU(t *testing.T) {
	need.Long(t)
	_, err := native.Find(t.Context())
	need.OK(t, err)
	d, _, err := device.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	some := []Options{{}}
	if !*all {
		some = nil
		for i := range 3 {
			if need.Turn(t, i, 3) {
				some = append(some, Options{Every: 3 * 8, First: i * 8})
			}
		}
	}
	for _, suite := range []string{"stablehlo/testdata", "stablehlo/interpret", "onnx/node", "onnx/pytorch-operator", "onnx/pytorch-converted"} {
		run := Suites[strings.Split(suite, "/")[0]]
		for _, of := range some {
			base, err := run(t.Context(), folder(t, suite), of)
			if err != nil {
				t.Fatal(err)
			}
			on := of
			on.Device = d
			r, err := run(t.Context(), folder(t, suite), on)
			if err != nil {
				t.Fatal(err)
			}
			passes := map[string]bool{}
			for _, c := range base.Cases {
				passes[c.Name] = c.Status == Passed
			}
			for _, c := range r.Cases {
				if c.Status != Passed && passes[c.Name] && (notCompiled[c.Name] == "" || !strings.Contains(c.Reason, notCompiled[c.Name])) {
					t.Errorf("%s/%s: %s: %s", suite, c.Name, c.Status, c.Reason)
				}
			}
			t.Logf("%s on the processor: %s; on the reference executor: %s", suite, r.Summary(), base.Summary())
		}
	}
}
