package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/config"
)

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "f.dmir")
	if _, src, diags := Config(program); src != nil || len(diags) > 0 {
		t.Errorf("without a file: %v", diags)
	}
	for text, want := range map[string]string{
		"[lint]\nselect = [\"DM2\", \"all\", \"fusible-into-producer\"]\nignore = [\"dm402\"]\n": "",
		"[lint]\nselect = [\"DM2\", \"DM999\"]\n":                                                `2: lint.select: "DM999" is not a rule`,
		"target = \"h100\"\nlint.ignore = [\n  \"fusible\",\n  \"\"]\n":                          `2: lint.ignore: "fusible" is not a rule, 2: lint.ignore: "" is not a rule`,
	} {
		if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, src, diags := Config(program)
		var got []string
		for _, d := range diags {
			line, _ := src.Human(d.Span.Start)
			got = append(got, fmt.Sprintf("%d: %s", line, d.Message))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s\ngot %s, want %s", text, got, want)
		}
	}
}
