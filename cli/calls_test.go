package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"dmir/testkit/randprog"
)

// TestCallsInSizes: whatever shows, runs or writes a program does not distinguish a function with symbols, called in
// several sizes, from a function in numbers for each.
func TestCallsInSizes(t *testing.T) {
	places := regexp.MustCompile(`"(line|start|end|column|position|span|of|seconds|file|path)": ?[^,\n]*|"elapsed_ns": [0-9]+|@g[0-9_]+`)
	tools := []struct {
		name string
		args []string
	}{
		{"cost", []string{"cost", "--func", "f"}},
		{"run", []string{"run", "--func", "f", "--device", "reference", "--output-format", "json"}},
		{"graph", []string{"opt", "--func", "f"}},
		{"graph of the gradient", []string{"opt", "--grad", "f"}},
		{"schedule", []string{"opt", "--func", "f", "--emit", "schedule"}},
		{"StableHLO", []string{"opt", "--func", "f", "--emit", "stablehlo"}},
		{"MLIR", []string{"opt", "--func", "f", "--emit", "mlir"}},
	}
	for seed := range uint64(5) {
		generic, static := randprog.Calls(seed)
		dir := t.TempDir()
		g, s := filepath.Join(dir, "generic.dmir"), filepath.Join(dir, "static.dmir")
		for path, text := range map[string]string{g: generic, s: static} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, tool := range tools {
			of := func(path string) []byte {
				out := run(t, append([]string{tool.args[0], path}, tool.args[1:]...)...)
				out, _, _ = bytes.Cut(out, []byte(`"ops"`)) // with how long each took
				return places.ReplaceAll(bytes.ReplaceAll(out, []byte(path), nil), nil)
			}
			if got, want := of(g), of(s); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, %s: with symbols\n%s\nin numbers\n%s\nof\n%s", seed, tool.name, got, want, generic)
			}
		}
	}
}
