package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/dialect/stablehlo"
	"dmir/internal/need"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// TestStableHLO compares the results of StableHLO's suites with testdata/stablehlo.json:
// what passed once must go on to pass.
func TestStableHLO(t *testing.T) {
	need.Long(t)
	got := map[string]result{}
	for _, suite := range []string{"testdata", "interpret"} {
		dir := filepath.Join("..", "..", "..", "shared", "conformance", "stablehlo", suite)
		_, missing := os.Stat(dir)
		need.OK(t, missing)
		r, err := StableHLO(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[suite] = resultOf(r)
		t.Logf("%s: %s", suite, r.Summary())
	}
	compare(t, "testdata/stablehlo.json", got)
}

// The programs of other projects are imported and run, on inputs that are drawn. A
// program that states what it expects is run as it stands.
func TestStableHLOModels(t *testing.T) {
	need.Long(t)
	root := filepath.Join("..", "..", "..", "shared", "conformance", "models")
	files, err := filepath.Glob(filepath.Join(root, "*", "*.mlir"))
	if err == nil && len(files) == 0 {
		_, err = os.Stat(root)
	}
	need.OK(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runModel(t, filepath.Base(file), string(text))
		})
	}
}

// unsupportedModels are the programs that the dialect cannot express, and why.
var unsupportedModels = map[string]string{
	"unidirectional_lstm.mlir": "branches between the blocks of @Forward_o16DF3vQKaI__disable_call_shape_inference_true_.189: dm.while and dm.if have regions",
}

// maxFLOP is what the reference executor computes in seconds.
const maxFLOP = 20e9

func runModel(t *testing.T, name, text string) {
	written, diags := stablehlo.Text(source.New(name, text))
	if reason, known := unsupportedModels[name]; known {
		if len(diags) != 1 || !stablehlo.Unsupported(diags[0]) || diags[0].Message != reason {
			t.Errorf("got %v, want %s", diags, reason)
		}
		return
	}
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	src := source.New(name, written)
	if format.File(parse.File(src)) != written {
		t.Error("the imported program is not formatted")
	}
	p := program.Load(src, program.Options{})
	for _, d := range p.Diags {
		if d.Severity >= diag.Warning {
			t.Errorf("%s: %s", d.Code, d.Message)
		}
	}
	for _, f := range p.Funcs {
		if n, ok := f.FLOP.Int(); !ok || n == 0 {
			t.Errorf("@%s computes %s FLOP", f.Func.Name, f.FLOP)
		} else if float64(n) > maxFLOP {
			t.Logf("@%s takes %d FLOP: not run", f.Func.Name, n)
			continue
		}
		args, err := interp.Inputs(t.Context(), f.Func, nil, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := interp.Run(t.Context(), p.Modules[0], f.Func, args, interp.Options{}); err != nil {
			t.Errorf("@%s: %v", f.Func.Name, err)
		}
	}
}
