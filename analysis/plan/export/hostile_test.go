package export_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dmir/analysis/plan"
	"dmir/analysis/plan/export"
	"dmir/testkit/need"
)

// hostile are names that end strings, comments and lines of the languages that are written, where they are not escaped.
var hostile = []string{
	`a"b'c\d`, "line\nimport os; os.abort()\n", "$(touch pwned)`touch pwned`${HOME}", "'; touch pwned; '", `"""` + "'''", "}); x = {(", "- a: &b *c !d", "é \u202e 😀 \x00\x1b[31m", "#SBATCH --uid=0", "\r\n---\nkind: Pod", "%s %d {0}",
}

// named is a plan whose names are all s.
func named(s string) *export.Portable {
	array := export.Array{Name: s, Path: s, Kind: plan.Samples, Next: -1, Of: -1, Elem: "f32", Shape: []int64{8, 4}, Spec: export.Spec{{s}, {}}}
	result := array
	result.Kind, result.Next = plan.Parameter, 0
	return &export.Portable{
		Program: s, Planned: s, Writes: []string{s}, Function: s, Summary: s, Target: export.Target{Name: s, Title: s, PerNode: 2}, Devices: 4,
		Axes: []export.Axis{{Name: s, Size: 4, Role: export.Data}}, Arguments: []export.Array{array}, Results: []export.Array{result},
		Activations:  []export.Activation{{Name: s, Function: s, Where: export.Where{File: s, Line: 1, Scope: s}, Shape: []int64{8, 4}, Spec: array.Spec}},
		Points:       []export.Point{{Where: export.Where{File: s, Line: 1, Scope: s}, Shape: []int64{8, 4}, Of: 1, Spec: array.Spec}},
		Microbatches: 2, Chunks: 1, Recompute: plan.None,
		Predicted: export.Predicted{Collectives: []export.Collective{{Kind: s, Axes: []string{s}, Count: 1, Bytes: 1}}},
	}
}

func written(t *testing.T, format string, p *export.Portable) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := export.Lookup(format).Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Names are data in whatever is written: of the same characters where they are strings, and never code.
func TestHostileNames(t *testing.T) {
	for _, name := range hostile {
		p := named(name)
		var back export.Portable
		if err := json.Unmarshal(written(t, "json", p), &back); err != nil || back.Arguments[0].Path != name {
			t.Errorf("json: %q became %q: %v", name, back.Arguments[0].Path, err)
		}
		d := yaml.NewDecoder(bytes.NewReader(written(t, "jobset", p)))
		var set, more map[string]any
		if err := d.Decode(&set); err != nil || set["kind"] != "JobSet" {
			t.Errorf("jobset: with %q the kind is %v: %v", name, set["kind"], err)
		}
		if err := d.Decode(&more); err == nil {
			t.Errorf("jobset: with %q there is a second document", name)
		}
	}
	t.Run("python", func(t *testing.T) {
		need.Long(t)
		python := need.Tool(t, "python3", "it parses the modules")
		var modules, want []string
		for _, name := range hostile {
			modules, want = append(modules, string(written(t, "jax", named(name)))), append(want, name)
		}
		in, _ := json.Marshal(modules)
		cmd := exec.Command(python, "-c", `import ast, json, sys
out = []
for text in json.load(sys.stdin):
    tables = {n.targets[0].id: n.value for n in ast.parse(text).body if isinstance(n, ast.Assign)}
    out.append(ast.literal_eval(tables["ARGUMENTS"].elts[0].elts[0]))
print(json.dumps(out))`)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		var got []string
		if err != nil || json.Unmarshal(out, &got) != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("shell", func(t *testing.T) {
		bash := need.Tool(t, "bash", "it runs the batch files")
		for _, name := range hostile {
			if strings.ContainsRune(name, 0) { // no word of a shell has it
				continue
			}
			folder := t.TempDir()
			// Each word that mpirun gets ends with a byte that no name has.
			if err := os.WriteFile(filepath.Join(folder, "mpirun"), []byte("#!/bin/sh\nprintf '%s\\001' \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if !strings.ContainsAny(name, "/") {
				if err := os.WriteFile(filepath.Join(folder, name+".npy"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(bash, "-s")
			cmd.Dir, cmd.Env = folder, []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "SLURM_NTASKS=4"}
			cmd.Stdin = bytes.NewReader(written(t, "slurm", named(name)))
			out, err := cmd.CombinedOutput()
			words := strings.Split(strings.TrimSuffix(string(out), "\x01"), "\x01")
			if n := len(words); err != nil || words[n-1] != name || !slices.Contains(words, name) || !slices.Contains(words, name+"=./"+name+".npy") {
				t.Errorf("%q: %v\n%q", name, err, words)
			}
			if _, err := os.Stat(filepath.Join(folder, "pwned")); err == nil {
				t.Errorf("%q is run", name)
			}
		}
	})
}
