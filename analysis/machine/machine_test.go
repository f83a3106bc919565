package machine

import (
	"io/fs"
	"math"
	"strings"
	"testing"

	"dmir/dialect/types"
)

func TestBuiltinMachines(t *testing.T) {
	want := []string{"a10", "a100-40", "a100-40-pcie", "a100-80", "a100-80-pcie", "a10g", "a30", "a40", "a6000", "b200", "cpu", "cpu-100gbe", "cpu-25gbe", "dgx-a100", "dgx-b200", "dgx-h100", "gb200-nvl72", "gh200", "h100", "h100-nvl", "h100-pcie", "h20", "h200", "hgx-h200", "l20", "l4", "l40", "l40s", "pcie-l40s", "rtx3080", "rtx3090", "rtx4080", "rtx4090", "rtx5080", "rtx5090", "rtx6000-ada", "t4", "v100", "v100-pcie"}
	files, err := fs.Glob(data, "data/*.toml")
	clusters, more := fs.Glob(data, "data/clusters/*.toml")
	if n := len(files) + len(clusters); err != nil || more != nil || n != len(want) {
		t.Fatalf("%d data files, want %d (%v, %v)", n, len(want), err, more)
	}
	if got := strings.Join(Names(), " "); got != strings.Join(want, " ") {
		t.Fatalf("machines are %s, want %s: a data file does not read", got, want)
	}
	for _, m := range All() {
		if m.Title == "" || m.Source == "" || m.SMs <= 0 || m.SharedMemory <= 0 || m.L2 <= 0 || m.Memory <= 0 || m.HostLink <= 0 || m.Launch <= 0 || m.Vector[types.F64] <= 0 {
			t.Errorf("%s: something is missing: %+v", m.Name, m)
		}
		if m.Launch > 10e-6 {
			t.Errorf("%s: launch latency of %v s is no latency of a launch", m.Name, m.Launch)
		}
		if !m.CPU && m.TensorCore[types.F16] < m.Vector[types.F32] {
			t.Errorf("%s: tensor cores slower than vector units", m.Name)
		}
	}
}

func TestPeak(t *testing.T) {
	h200, _ := Lookup("H200")
	v100, _ := Lookup("v100")
	b200, _ := Lookup("b200")
	cases := []struct {
		m           *Machine
		contraction bool
		e           types.Elem
		want        float64
	}{
		{h200, true, types.F16, 989e12},
		{h200, false, types.F16, 134e12},
		{h200, true, types.F32, 67e12}, // not tf32: that would be another function
		{h200, true, types.TF32, 494.7e12},
		{h200, false, types.TF32, 67e12},  // of what is no product it is f32
		{v100, true, types.TF32, 15.7e12}, // no tensor cores for it: as f32
		{h200, true, types.F64, 67e12},
		{h200, true, types.F8E5M2, 1979e12},
		{v100, true, types.BF16, 15.7e12}, // no tensor cores for it, no rate of its own
		{b200, false, types.F16, 75e12},   // not in the datasheet: as f32
		{h200, false, types.I32, 67e12},
	}
	for _, c := range cases {
		if got := c.m.Peak(c.contraction, c.e); got != c.want {
			t.Errorf("%s, contraction %v, %s: %g, want %g", c.m.Name, c.contraction, c.e, got, c.want)
		}
	}
}

// Each of three terms bounds the time of what blocks move.
func TestStreamed(t *testing.T) {
	m := &Machine{Bandwidth: 1e12, SMs: 100, Accelerator: Accelerator{L2Bandwidth: 2e12, MemoryLatency: 1e-6}}
	for _, c := range []struct {
		name                string
		memory, all, blocks int64
		rounds, want        float64
	}{
		{"memory", 1e9, 1e9, 1000, 1, 1e-3},
		{"what lies in the cache, of all multiprocessors", 1e9, 4e9, 1000, 1, 2e-3},
		{"of one", 1e9, 1e9, 1, 1, 50e-3},
		{"loads that wait for each other, but for the first", 1e6, 1e6, 1000, 11, 10e-6},
	} {
		if got := m.Streamed(c.memory, c.all, c.blocks, c.rounds); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	m, err := Parse("Lab", []byte("base = \"a100-80\"\nbandwidth = \"1.9 TB/s\"\nlaunch_latency = 2e-6\n[tensor_core]\nf16 = \"300 TFLOP/s\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	base, _ := Lookup("a100-80")
	if m.Name != "lab" || m.Bandwidth != 1.9e12 || m.Launch != 2e-6 || m.TensorCore[types.F16] != 300e12 || m.TensorCore[types.BF16] != 312e12 || m.Memory != base.Memory {
		t.Errorf("got %+v", m)
	}
	if base.TensorCore[types.F16] != 312e12 {
		t.Error("the base machine was changed")
	}
	bad := map[string]string{
		"bandwidth = \"3 TB/s\"":                                             "the peak of f32 is missing",
		"[vector]\nf32 = \"1 TFLOP/s\"":                                      "bandwidth is missing",
		"base = \"h300\"":                                                    "no machine \"h300\"",
		"base = \"h200\"\n[vector]\ni32 = \"1 TFLOP/s\"":                     "not a floating-point element type",
		"base = \"h200\"\nbandwidth = \"0 B/s\"":                             "must be more than 0",
		"base = \"h200\"\nbandwidth = \"3 TB/s\"\nlaunch_latency = \"-1 s\"": "negative",
		"base = \"h200\"\nsms = -4":                                          "negative",
		"base = \"h200\"\nbandwith = \"3 TB/s\"":                             "strict mode",
		"base = \"h200\"\nmemory = -1":                                       "negative",
	}
	for text, want := range bad {
		if _, err := Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}
