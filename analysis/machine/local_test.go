package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/types"
	"dmir/testkit/need"
)

// keepLocal makes text the file of the local machine for the test.
func keepLocal(t *testing.T, text string) (path string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	path, err := LocalFile("local")
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
	if _, err := Local("local"); !errors.Is(err, ErrNotMeasured) || Host().Name != "cpu" {
		t.Errorf("without a file: %v, %s", err, Host().Name)
	}
	if _, ok := Lookup("local"); ok || !strings.Contains(NoLocal("local").Error(), "run dmir calibrate") {
		t.Error("there is a local machine without a file")
	}
	if _, err := Parse("mine", []byte(`base = "local"`)); err == nil || !strings.Contains(err.Error(), "run dmir calibrate") {
		t.Errorf("a machine on top of none: %v", err)
	}

	path := keepLocal(t, calibrated)
	m, ok := Lookup("LOCAL")
	if !ok || m != Host() || m.Name != "local" || NoLocal("local") != nil {
		t.Fatalf("the local machine is %v, %v", m, NoLocal("local"))
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
		calibrated + "[vector":          fmt.Sprintf("line %d", strings.Count(calibrated, "\n")+1),
		calibrated + "speed = 1":        "unknown key ceilings.speed",
		"cpu = true":                    "bandwidth is missing",
		"base = \"h200\"":               "cpu = true is missing",
		"base = \"local\"":              "cannot build on itself",
		"like = \"local\"":              "cannot build on itself",
		strings.Repeat("#", maxLocal+1): "no description of a machine",
	} {
		path := keepLocal(t, text)
		_, err := Local("local")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
		if Host().Name != "cpu" || !strings.Contains(NoLocal("local").Error(), "writes it again") {
			t.Errorf("%.20q: %s, %v", text, Host().Name, NoLocal("local"))
		}
	}
}

// The name that the driver gives a card leads to its data sheet.
func TestOfCard(t *testing.T) {
	for title, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "h100", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H100 NVL": "h100-nvl", "NVIDIA H200": "h200", "NVIDIA H20": "h20",
		"NVIDIA A100-SXM4-80GB": "a100-80", "NVIDIA A100-SXM4-40GB": "a100-40", "NVIDIA A100 80GB PCIe": "a100-80-pcie", "NVIDIA A100-PCIE-40GB": "a100-40-pcie",
		"NVIDIA GeForce RTX 4090": "rtx4090", "NVIDIA GeForce RTX 4090 Laptop GPU": "", "NVIDIA GeForce RTX 3090": "rtx3090", "NVIDIA GeForce RTX 3090 Ti": "",
		"NVIDIA RTX A6000": "a6000", "NVIDIA RTX 6000 Ada Generation": "rtx6000-ada", "NVIDIA A10": "a10", "NVIDIA A10G": "a10g", "NVIDIA A100X": "",
		"NVIDIA L4": "l4", "NVIDIA L40": "l40", "NVIDIA L40S": "l40s", "Tesla T4": "t4", "NVIDIA T400": "", "Tesla V100-SXM2-16GB": "v100", "Tesla V100-PCIE-32GB": "v100-pcie",
		"NVIDIA B200": "b200", "NVIDIA GB200": "b200", "NVIDIA GH200 480GB": "gh200", "NVIDIA A100-SXM4-80GB MIG 1g.10gb": "", "Quadro P400": "", "": "",
		"RTX 4090": "rtx4090", "rtx-4090": "rtx4090", "h100 pcie": "h100-pcie", "a100": "", "h1000": "", "dgx-h200": "", "dgx a100": "", "cpu": "",
	} {
		got := ""
		if m := OfCard(title); m != nil {
			got = m.Name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}
