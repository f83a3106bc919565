package lint_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/analysis/config"
	"dmir/analysis/lint"
)

// The extension carries the schema that follows from the types of the configuration.
func TestSchema(t *testing.T) {
	const file = "../../vscode-extension/dmir.schema.json"
	got, err := config.Schema(lint.Choices())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("go test ./analysis/lint -update rewrites %s:\n%s", file, diff)
	}
}
