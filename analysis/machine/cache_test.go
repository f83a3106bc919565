package machine

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"dmir/dialect/types"
)

// calibrated is a machine as dmir calibrate writes one.
const calibrated = `title = "a \"small\" CPU"
source = "measured by dmir calibrate"
cpu = true

bandwidth = "10 GB/s"
read_bandwidth = "15 GB/s"
memory = "8192 MiB"
l2 = "40 MiB"
shared_memory = "2 MiB"
sms = 4
grain = "64 KiB"
launch_latency = "1.5 µs"
call_latency = "50 ns"
mispredict = "8 ns"
random_bandwidth = "5 GB/s"
random_rows_bandwidth = "8 GB/s"

[caches.l3]
size = "40 MiB"
bandwidth = "50 GB/s"
random_bandwidth = "20 GB/s"
random_rows_bandwidth = "25 GB/s"

[caches.l1]
size = "48 KiB"
per_core = true
bandwidth = "800 GB/s"
read_bandwidth = "900 GB/s"

[vector]
f32 = "400 GFLOP/s"
f64 = "200 GFLOP/s"

[ops.f32]
exp = "10 GFLOP/s"

[rows.f32]
softmax = "20 ns"

[products.f32]
sums = "240 GFLOP/s"
rows = "20 GB/s"
cols = "40 GB/s"
results = "30 GB/s"
line = "6 ns"

[ceilings]
source = "measured by dmir calibrate"
vector.f32 = "200 GFLOP/s"
`

func parsed(t *testing.T, text string) *Machine {
	t.Helper()
	m, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMove(t *testing.T) {
	m := parsed(t, calibrated)
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct {
		read, written int64
		threads       int
		gbps          float64
		level         string
	}{
		{40 * kib, 40 * kib, 0, 800, "L1"},
		{80 * kib, 0, 0, 900, "L1"},
		{18 * kib, 18 * kib, 1, 200, "L1"}, // of one core's
		{5 * mib, 5 * mib, 0, 50, "L3"},
		{20 * mib, 20 * mib, 0, 1 / (0.7/50 + 0.3/10), "L3 and memory"},
		{50 * mib, 50 * mib, 0, 10, ""},
		{100 * mib, 0, 0, 15, ""},
		{0, 100 * mib, 0, 7.5, ""}, // writes read what they overwrite
	} {
		got := m.Move(c.read, c.written, c.threads)
		gbps := float64(c.read+c.written) / got.Seconds / 1e9
		if math.Abs(gbps/c.gbps-1) > 1e-3 || got.Level != c.level {
			t.Errorf("%d read, %d written on %d threads: %.4g GB/s in %q, want %.4g in %q", c.read, c.written, c.threads, gbps, got.Level, c.gbps, c.level)
		}
	}
	last := 0.0
	for n := int64(1); n < 1<<30; n += n/8 + 1 {
		if s := m.Move(n, n, 0).Seconds; s < last {
			t.Errorf("%d bytes take less time than fewer", 2*n)
		} else {
			last = s
		}
	}
	cpu, _ := Lookup("cpu")
	if got := cpu.Move(1e6, 2e6, 0); got.Seconds != 3e6/cpu.Bandwidth || got.Level != "" {
		t.Errorf("without caches: %+v", got)
	}
}

// Half precision is computed as f32 on processors.
func TestWidened(t *testing.T) {
	m := parsed(t, calibrated+"tensor_core.f32 = \"300 GFLOP/s\"\n[tensor_core]\nf32 = \"400 GFLOP/s\"\n")
	for _, e := range []types.Elem{types.F32, types.F16, types.BF16, types.F8E5M2} {
		if m.Rate(true, e, "") != 300e9 || m.Rate(false, e, "") != 200e9 || m.OpRate("exp", e) != 10e9 {
			t.Errorf("%s: %g, %g, %g", e, m.Rate(true, e, ""), m.Rate(false, e, ""), m.OpRate("exp", e))
		}
	}
	if m.OpRate("exp", types.F64) != 0 || m.Rate(true, types.F64, "") != 200e9 {
		t.Error("f64 is not computed as f32")
	}
}

func TestThreads(t *testing.T) {
	m := parsed(t, calibrated)
	for work, want := range map[int64]int{0: 1, 64 << 10: 1, 128 << 10: 2, 256 << 10: 0, 1 << 30: 0} {
		if got := m.Threads(work/2, work-work/2); got != want {
			t.Errorf("work of %d: %d threads, want %d", work, got, want)
		}
	}
	if m.Latency(1) != m.Call || m.Latency(2) != m.Launch || m.Latency(0) != m.Launch || m.Call >= m.Launch {
		t.Error("latencies")
	}
}

func TestProcessorsOfFiles(t *testing.T) {
	over := parsed(t, calibrated)
	if len(over.Caches) != 2 || over.Caches[0].Name != "L1" || over.OpRate("exp", types.F32) != 10e9 {
		t.Fatalf("got %+v", over.Processor)
	}
	for text, want := range map[string]string{
		"[caches.l2]\nbandwidth = \"1 GB/s\"":                            "caches.l2.size is missing",
		"[caches.l2]\nsize = \"1 MiB\"":                                  "caches.l2.bandwidth is missing",
		"[caches.l2]\nsize = -1\nbandwidth = 1":                          "caches.l2.size is missing",
		"[caches.l2]\nsize = 1\nbandwidth = nan":                         "caches.l2.bandwidth is missing",
		"[caches.l2]\nsize = 1\nbandwidth = 4\nread_bandwidth = 2":       "caches.l2.read_bandwidth is no more than half",
		"sms = 0\n[caches.l2]\nsize = 1\nbandwidth = 4\nper_core = true": "sms, the number of cores, is missing",
		"read_bandwidth = 1":                                             "no more than half",
		"grain = -1":                                                     "negative",
		"[ops.i32]\nexp = 1":                                             "not a floating-point element type",
		"[ops.f32]\nexp = 0":                                             "must be more than 0",
		"[rows.i32]\nsoftmax = \"1 ns\"":                                 "not a floating-point element type",
		"[rows.f32]\nsoftmax = \"0 s\"":                                  "must be more than 0",
		"[products.f16x]\nsums = \"1 GFLOP/s\"":                          "not a floating-point element type",
		"[products.f32]\nrows = \"1 GB/s\"":                              "products.f32.sums is missing",
		"cpu = false\n[products.f32]\nsums = \"1 GFLOP/s\"":              "write cpu = true",
		"cpu = false\ngrain = 1":                                         "write cpu = true",
		"[caches.l2]\nsise = 1":                                          "strict mode",
	} {
		if _, err := Parse("x", []byte("base = \"cpu\"\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := Parse("x", []byte("base = \"h200\"\n[caches.l2]\nsize = 1\nbandwidth = 1")); err == nil {
		t.Error("a GPU has caches of a CPU")
	}
}

// What is written reads as the same machine.
func TestTOML(t *testing.T) {
	for _, m := range append(All(), parsed(t, calibrated)) {
		got, err := Parse(m.Name, []byte(m.TOML()))
		if err != nil {
			t.Errorf("%s: %v\n%s", m.Name, err, m.TOML())
			continue
		}
		again, err := Parse(m.Name, []byte(got.TOML()))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%s: %v: %+v, then %+v", m.Name, err, got, again)
		}
		if got.Title != m.Title || got.Source != m.Source || got.CPU != m.CPU || len(got.Caches) != len(m.Caches) || math.Abs(got.Bandwidth/m.Bandwidth-1) > 1e-2 || got.Memory != m.Memory || len(got.Vector) != len(m.Vector) || len(got.Links) != len(m.Links) || len(got.Ceilings.Paths) != len(m.Ceilings.Paths) {
			t.Errorf("%s: %+v, want %+v", m.Name, got, m)
		}
	}
	if got := quoted("a\"b\\c\x1b"); got != `"a\"b\\c\u001B"` {
		t.Errorf("quoted is %s", got)
	}
}
