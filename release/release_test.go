package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPEP440(t *testing.T) {
	for semantic, want := range map[string]string{
		"0.2.0": "0.2.0", "0.2.0-rc.1": "0.2.0rc1", "0.2.0-beta": "0.2.0b0", "1.0.0-alpha.12": "1.0.0a12", "0.0.0-dev": "0.0.0.dev0",
	} {
		if got := pep440(semantic); got != want {
			t.Errorf("pep440(%s) = %s, want %s", semantic, got, want)
		}
	}
}

// A release is refused whose tag would have pre-commit install another one.
func TestHooks(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "pyproject.toml"), []byte("[project]\ndependencies = [\"dmir==1.2.3rc4\"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"1.2.3-rc.4": true, "1.2.3": false, "1.2.30": false, development: true} {
		if err := (&release{root: root, version: version}).hooks(); (err == nil) != want {
			t.Errorf("%s: %v", version, err)
		}
	}
	if err := (&release{root: "..", version: development}).hooks(); err != nil {
		t.Error(err)
	}
}
