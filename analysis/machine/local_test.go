package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/types"
	"dmir/internal/need"
)

// keepLocal makes text the file of the local machine for the test.
func keepLocal(t *testing.T, text string) (path string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	path, err := LocalFile()
	need.OK(t, err)
	if text == "" {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLocal(t *testing.T) {
	keepLocal(t, "")
	if _, err := Local(); !errors.Is(err, ErrNotMeasured) || Host().Name != "cpu" {
		t.Errorf("without a file: %v, %s", err, Host().Name)
	}
	if _, ok := Lookup("local"); ok || !strings.Contains(NoLocal().Error(), "run dmir calibrate") {
		t.Error("there is a local machine without a file")
	}
	if _, err := Parse("mine", []byte(`base = "local"`)); err == nil || !strings.Contains(err.Error(), "run dmir calibrate") {
		t.Errorf("a machine on top of none: %v", err)
	}

	path := keepLocal(t, calibrated)
	m, ok := Lookup("LOCAL")
	if !ok || m != Host() || m.Name != "local" || NoLocal() != nil {
		t.Fatalf("the local machine is %v, %v", m, NoLocal())
	}
	mine, err := Parse("mine", []byte("base = \"local\"\nsms = 4\n"))
	if err != nil || mine.Caches[1] != m.Caches[1] {
		t.Errorf("on top of local: %+v, %v", mine, err)
	}
	if err := os.WriteFile(path, []byte(calibrated+"[ops.f64]\nexp = 1e9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if Host() == m || Host().OpRate("exp", types.F64) == 0 {
		t.Error("a new measurement is not read")
	}
}

// A damaged file is an error, and the built-in machine stands for this one.
func TestDamagedLocal(t *testing.T) {
	for text, want := range map[string]string{
		"\x00\xff":                      "line 1",
		calibrated + "[vector":          "line 3",
		calibrated + "speed = 1":        "unknown key ceilings.speed",
		"cpu = true":                    "bandwidth is missing",
		"base = \"h200\"":               "cpu = true is missing",
		"base = \"local\"":              "cannot build on itself",
		strings.Repeat("#", maxLocal+1): "no description of a machine",
	} {
		path := keepLocal(t, text)
		_, err := Local()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
		if Host().Name != "cpu" || !strings.Contains(NoLocal().Error(), "writes it again") {
			t.Errorf("%.20q: %s, %v", text, Host().Name, NoLocal())
		}
	}
}
