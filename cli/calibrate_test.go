package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/dialect/types"
	"dmir/gpu/calibrate"
	"dmir/gpu/device"
	"dmir/gpu/native"
)

// faked is a command line whose measurement is small, with the rate of one op; err fails
// the measurement, and rates that of kernels.
func faked(t *testing.T, err, rates error) func(args ...string) (status int, out, errs string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Cleanup(func(m func(context.Context, calibrate.Progress) (*calibrate.Figures, error), r func(context.Context, *machine.Machine, types.Elem) error) func() {
		return func() { measure, rate = m, r }
	}(measure, rate))
	measure = func(_ context.Context, progress calibrate.Progress) (*calibrate.Figures, error) {
		progress("memory", 0, 1)
		if err != nil {
			return nil, err
		}
		return small, nil
	}
	rate = func(_ context.Context, m *machine.Machine, e types.Elem) error {
		if rates == nil && e == types.F32 {
			m.Ops[e] = map[string]float64{"exp": 5e9}
		}
		return rates
	}
	return func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		status := Main(args, strings.NewReader(""), &out, &errs)
		return status, out.String(), errs.String()
	}
}

var small = &calibrate.Figures{
	Title: "a small CPU", Threads: 2, Move: calibrate.Bandwidths{Both: 10e9, Read: 10e9}, Launch: 1e-6,
	Caches: []calibrate.Cache{{Level: 2, Size: 1 << 20, PerCore: true, Move: calibrate.Bandwidths{Both: 200e9, Read: 200e9}}},
	F32:    calibrate.Arithmetic{FMA: 100e9, Add: 50e9}, F64: calibrate.Arithmetic{FMA: 50e9, Add: 25e9},
}

func TestCalibrate(t *testing.T) {
	run := faked(t, nil, nil)
	program := filepath.Join(t.TempDir(), "p.dmir")
	text := "func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n  %y = dm.exp %x : tensor<1024xf32>\n  return %y : tensor<1024xf32>\n}\n"
	if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run("cost", "--target", "local", program); status != exitFailed || !strings.Contains(errs, "run dmir calibrate") {
		t.Errorf("before: %d %s", status, errs)
	}
	status, out, errs := run("calibrate", "--print")
	if status != exitOK || errs != "" || !strings.Contains(out, "[ops.f32]\nexp = \"5.00 GFLOP/s\"\n") {
		t.Errorf("--print: %d %s%s", status, out, errs)
	}
	if m, err := machine.Parse("x", []byte(out)); err != nil || len(m.Caches) != 1 {
		t.Errorf("--print is no machine: %v", err)
	}
	file := filepath.Join(t.TempDir(), "mine.toml")
	if status, _, errs := run("calibrate", "-o", file); status != exitOK || errs != "" {
		t.Errorf("-o: %d %s", status, errs)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != out {
		t.Errorf("-o wrote %s, %v", text, err)
	}
	if _, err := machine.Local("local"); !errors.Is(err, machine.ErrNotMeasured) {
		t.Errorf("--print and -o make a local machine: %v", err)
	}
	if status, _, errs := run("calibrate", "-o", filepath.Join(file, "x")); status != exitFailed || !strings.Contains(errs, "DM603") {
		t.Errorf("-o where nothing can be: %d %s", status, errs)
	}
	if status, _, errs := run("calibrate", "--print", "-o", file); status != exitFailed || !strings.Contains(errs, "DM612") {
		t.Errorf("--print -o: %d %s", status, errs)
	}
	if status, out, errs := run("calibrate"); status != exitOK || errs != "" || !strings.Contains(out, "L2: 1.05 MB a core · 200 GB/s") || !strings.Contains(out, "local.toml") {
		t.Errorf("calibrate: %d %s%s", status, out, errs)
	}
	if status, out, errs := run("cost", "--target", "LOCAL", program); status != exitOK || !strings.Contains(out, "a small CPU") {
		t.Errorf("after: %d %s%s", status, out, errs)
	}
}

func TestCalibrateFails(t *testing.T) {
	run := faked(t, &native.NotFound{Why: "clang is not installed"}, nil)
	if status, out, errs := run("calibrate"); status != exitFailed || out != "" || !strings.Contains(errs, "DM614") || !strings.Contains(errs, "clang is not installed\n") || !strings.Contains(errs, "apt-get install clang") {
		t.Errorf("without clang: %d %s%s", status, out, errs)
	}
	run = faked(t, context.Canceled, nil)
	if status, _, errs := run("calibrate"); status != exitCanceled || !strings.Contains(errs, "interrupted") {
		t.Errorf("interrupted: %d %s", status, errs)
	}
	run = faked(t, errors.New("there is no memory"), nil)
	if status, _, errs := run("calibrate"); status != exitFailed || !strings.Contains(errs, "error[DM608]") {
		t.Errorf("without a measurement: %d %s", status, errs)
	}
	run = faked(t, nil, errors.New("a kernel does not compile\nmore"))
	if status, out, errs := run("calibrate", "--print"); status != exitOK || strings.Contains(out, "exp") || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "a kernel does not compile") {
		t.Errorf("without kernels: %d %s%s", status, out, errs)
	}
}

// A damaged file is one diagnostic, and a new measurement replaces it.
func TestDamagedCalibration(t *testing.T) {
	run := faked(t, nil, nil)
	path, err := machine.LocalFile("local")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "\x00", "cpu = true\nbandwidth = \"fast\"", "cpu = true\nbandwidth = 1\nvector.f32 = 1\n[caches.l1]\nsize = 1\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		status, out, errs := run("cost", "--target", "local", "-")
		if status != exitFailed || out != "" || strings.Count(errs, "error[") != 1 || !strings.Contains(errs, "error[DM604]") || !strings.Contains(errs, "writes it again") {
			t.Errorf("%q: %d %s%s", text, status, out, errs)
		}
	}
	if status, _, _ := run("calibrate"); status != exitOK {
		t.Error("a damaged file is not replaced")
	}
	if m := machine.Host(); m.Title != "a small CPU" {
		t.Errorf("the host is %s", m.Title)
	}
}

// card is a GPU that runs nothing.
type card struct {
	device.Device
	name, title string
}

func (c card) Name() string  { return c.name }
func (c card) Title() string { return c.title }

func TestCalibrateCard(t *testing.T) {
	run := faked(t, nil, nil)
	cards := map[string]card{"cuda": {nil, "cuda", "NVIDIA H100 80GB HBM3"}, "cuda:1": {nil, "cuda:1", "Quadro 1\x1b[31m"}, "emulator": {nil, "emulator", "the emulator"}}
	realFind, realCard := find, ofCard
	t.Cleanup(func() { find, ofCard = realFind, realCard })
	var partly error
	ofCard = func(_ context.Context, d device.Device, base *machine.Machine, name string, progress calibrate.Progress) (*machine.Machine, error) {
		progress("memory", 0, 1)
		m := *base
		m.Name, m.Title, m.Source, m.Launch = name, d.Title(), "measured by dmir calibrate --device "+d.Name(), 3e-6
		return &m, partly
	}
	find = func(name string) (device.Device, string, error) {
		if c, ok := cards[name]; ok {
			return c, "", nil
		}
		return nil, "", errors.New("the NVIDIA driver finds no GPU")
	}
	program := filepath.Join(t.TempDir(), "p.dmir")
	if err := os.WriteFile(program, []byte("func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n  %y = dm.exp %x : tensor<1024xf32>\n  return %y : tensor<1024xf32>\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run("cost", "--target", "local-cuda", program); status != 2 || !strings.Contains(errs, "run dmir calibrate --device cuda") {
		t.Errorf("not measured: %d, %s", status, errs)
	}
	for _, c := range []struct {
		args, want string
	}{
		{"--device cuda:2", "the NVIDIA driver finds no GPU"},
		{"--device emulator", "is neither the processor nor a GPU"},
		{"--device cuda:1", "--base h100"},
		{"--device cuda --base h101", `"h101" is not a known machine`},
		{"--device cuda --base cpu", "is a processor"},
		{"--base h100", "add --device cuda, or remove it"},
		{"--timeout 5s", "add --device cuda, or remove it"},
	} {
		status, _, errs := run(append([]string{"calibrate"}, strings.Fields(c.args)...)...)
		if status != 2 || !strings.Contains(errs, c.want) || strings.Contains(errs, "\x1b[31m") {
			t.Errorf("%s: %d, %s", c.args, status, errs)
		}
	}
	status, out, errs := run("calibrate", "--device", "cuda")
	if status != 0 || !strings.Contains(out, "NVIDIA H100 80GB HBM3: ") || !strings.Contains(out, "--target local-cuda predicts for it") {
		t.Fatalf("%d, %s%s", status, out, errs)
	}
	if status, out, errs := run("cost", "--target", "local-cuda", program); status != 0 || !strings.Contains(out, "on NVIDIA H100 80GB HBM3") || !strings.Contains(out, "3.00 µs each") {
		t.Errorf("%d, %s%s", status, out, errs)
	}
	partly = errors.Join(errors.New("products: an illegal memory access"), errors.New("attention: it did not end"))
	if status, _, errs := run("calibrate", "--device", "cuda"); status != 0 || !strings.Contains(errs, "not measured, as the data sheet has it: attention: it did not end") {
		t.Errorf("in part: %d, %s", status, errs)
	}
	if m, err := machine.Local(machine.LocalCard); err != nil || m.Arch != "sm_90a" || machine.Host().Name != "cpu" {
		t.Errorf("%+v, %v", m, err)
	}
	if status, out, _ := run("calibrate", "--device", "cuda:1", "--base", "a100-80", "--print"); status != 0 || !strings.Contains(out, "launch_latency") || !strings.Contains(out, "measured by dmir calibrate --device cuda:1") {
		t.Errorf("%d, %s", status, out)
	}
}
