package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dmir/testkit/sources"
)

// trusting matches what accepts a compiled file as the user's own; reading matches
// what reads one.
var (
	trusting = regexp.MustCompile(`\.Trust\(\)|--trust\b|Foreign = false`)
	reading  = regexp.MustCompile(`artifact\.Read(File|Signed)?\(`)
)

// TestTrust holds that only a user can allow a compiled file from elsewhere to run:
// no editor, server or worker does, and none reads such a file.
func TestTrust(t *testing.T) {
	root := filepath.Join("..", "..")
	may := map[string]bool{
		"gpu/artifact/codec.go": true,
		"cli/run.go":            true, "cli/run_artifact.go": true, "cli/failure.go": true, "cli/confined.go": true,
		"compile/suite/run.go": true, // if the flag of bench/gpu/suite is set
	}
	seen := 0
	sources.Each(t, root, func(path string) {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		ext := filepath.Ext(name)
		if ext != ".go" && ext != ".ts" && ext != ".lua" && ext != ".el" && name != "vscode-extension/package.json" || strings.HasSuffix(name, "_test.go") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if m := trusting.Find(text); m != nil && !may[name] {
			t.Errorf("%s has %q", name, m)
		}
		if m := reading.Find(text); m != nil && strings.HasPrefix(name, "lsp/") {
			t.Errorf("%s has %q", name, m)
		}
	})
	if seen < 300 {
		t.Fatalf("%d files", seen)
	}
}
