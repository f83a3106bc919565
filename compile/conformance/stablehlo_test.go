package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/dialect/print"
	"dmir/internal/need"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "rewrite the baselines")

const shared = "../../../shared/conformance"

// baseline is what is known of a suite: how many cases pass, which may only rise, and
// why others are not supported.
type baseline struct {
	Passed      int               `json:"passed"`
	Unsupported map[string]string `json:"unsupported"`
}

// atLeast compares a report with the baseline in testdata/NAME.json.
func atLeast(t *testing.T, name string, r *Report) {
	t.Helper()
	now := baseline{r.Passed, map[string]string{}}
	for _, c := range r.Cases {
		switch c.Status {
		case Failed:
			t.Errorf("%s: %s", c.Name, c.Reason)
		case Unsupported:
			now.Unsupported[c.Name] = c.Reason
		}
	}
	path := filepath.Join("testdata", name+".json")
	if *update {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(now); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var was baseline
	if err := json.Unmarshal(text, &was); err != nil {
		t.Fatal(err)
	}
	if now.Passed < was.Passed {
		t.Errorf("%d cases pass, of %d in the baseline", now.Passed, was.Passed)
	}
	for name, reason := range now.Unsupported {
		if was.Unsupported[name] != reason {
			t.Errorf("%s is not supported: %s; the baseline has %q", name, reason, was.Unsupported[name])
		}
	}
	if now.Passed > was.Passed {
		t.Logf("%d cases pass, more than the %d of the baseline: rewrite it with -update", now.Passed, was.Passed)
	}
}

func folder(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(shared, path)
	_, err := os.Stat(dir)
	need.OK(t, err)
	return dir
}

// The suites of StableHLO: what JAX's primitives lower to, and the interpreter's own.
func TestStableHLO(t *testing.T) {
	for _, name := range []string{"testdata", "interpret"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := StableHLO(t.Context(), folder(t, "stablehlo/"+name))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Summary())
			atLeast(t, "stablehlo_"+name, r)
		})
	}
}

// What these suites do not have.
func TestStableHLOMore(t *testing.T) {
	r, err := StableHLO(t.Context(), "testdata/stablehlo")
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
