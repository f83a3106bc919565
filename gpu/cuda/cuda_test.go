package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/nvrtc"
	"dmir/gpu/prelude"
)

var image = artifact.Image{Arch: "sm_90a", Code: []byte("code")}

// input is %x = -3, -2.5, … and the program's results.
func input() (x []byte, out, sum []float32) {
	sum = []float32{0}
	for i := range artifacttest.N {
		v := float32(i%13)/2 - 3
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(v))
		sum[0] += 3 * v
		out = append(out, 3*v-v)
	}
	for i := range out {
		out[i] += sum[0]
	}
	return x, out, sum
}

func floats(b []byte) []float32 {
	var out []float32
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return out
}

// holds requires the results of input, summed in any order.
func holds(t *testing.T, outputs [][]byte) {
	t.Helper()
	_, out, sum := input()
	if len(outputs) != 2 {
		t.Fatalf("%d outputs", len(outputs))
	}
	for i, want := range [][]float32{out, sum} {
		got := floats(outputs[i])
		if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-2 }) {
			t.Errorf("output %d: %.8v…, want %.8v…", i, got[:1], want[:1])
		}
	}
}

func load(t *testing.T, f *fake, p *artifact.Program) *Session {
	t.Helper()
	s, err := f.device().Load(p, image)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDevices(t *testing.T) {
	f := newFake(t)
	d := f.device()
	if d.Name != "NVIDIA Fake 900" || d.Arch() != "sm_90a" || d.Multiprocessors != 132 || d.Memory != 1<<30 || d.Shared != 232448 {
		t.Errorf("device %+v", d)
	}
	f.count = 0
	if list, err := f.api().devices(); err != nil || len(list) != 0 {
		t.Errorf("without a GPU: %v, %v", list, err)
	}
}

// Results are right in any order that the graph allows, run after run.
func TestRun(t *testing.T) {
	f := newFake(t)
	s := load(t, f, artifacttest.Program())
	x, _, _ := input()
	for range 20 {
		outputs, err := s.Run(t.Context(), [][]byte{x})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, outputs)
	}
	if n := len(f.launches); n != 4 {
		t.Errorf("%d launches were enqueued for 20 runs; the graph has 4", n)
	}
	if got, want := f.launches[1], (launched{"negated", [3]uint32{4, 1, 1}, 256, 0, 1, false}); got != want {
		t.Errorf("launch %+v, want %+v", got, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left := f.left(); left != "" {
		t.Errorf("not given back: %s", left)
	}
	if _, err := s.Run(t.Context(), [][]byte{x}); err == nil {
		t.Error("a closed session ran")
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// A kernel that waits by itself starts before the one directly before it on its stream has ended, if the driver captures
// that; behind a fill, or behind a wait for another stream, it starts as others do.
func TestDependentLaunches(t *testing.T) {
	for _, c := range []struct {
		version int32
		waits   []string
		want    string
	}{
		{13010, []string{"scaled", "negated", "total", "joined"}, "total"},
		{13010, []string{"joined"}, ""},
		{12020, []string{"scaled", "negated", "total", "joined"}, ""},
	} {
		f := newFake(t)
		f.version = c.version
		p := artifacttest.Program()
		for i := range p.Kernels {
			p.Kernels[i].Block.Waits = slices.Contains(c.waits, p.Kernels[i].Name)
		}
		s := load(t, f, p)
		x, _, _ := input()
		outputs, err := s.Run(t.Context(), [][]byte{x})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, outputs)
		var dependent []string
		for _, l := range f.launches {
			if l.dependent {
				dependent = append(dependent, l.name)
			}
		}
		if got := strings.Join(dependent, " "); got != c.want {
			t.Errorf("%v of version %d: dependent launches are %q, want %q", c.waits, c.version, got, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Clusters, tensor maps and much shared memory reach the driver.
func TestLaunchAttributes(t *testing.T) {
	f := newFake(t)
	p := artifacttest.Program()
	p.Kernels[0].Block.Cluster, p.Kernels[0].Block.Shared = 2, 100<<10
	p.Kernels[0].Params[0].Mode = artifact.Map
	p.Steps[1].Launch.Args[0].Map = &artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{160}, Box: []uint32{8, 5}, Swizzle: 32}
	s := load(t, f, p)
	x, _, _ := input()
	outputs, err := s.Run(t.Context(), [][]byte{x})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, outputs)
	if got, want := f.launches[0], (launched{"scaled", [3]uint32{4, 1, 1}, 256, 100 << 10, 2, false}); got != want {
		t.Errorf("launch %+v, want %+v", got, want)
	}
	if want := []string{"7 [40 25] [160] [8 5] [1 1] 1"}; !slices.Equal(f.maps, want) {
		t.Errorf("maps %q, want %q", f.maps, want)
	}
	if !slices.Contains(f.calls, "set scaled 8 102400") {
		t.Errorf("no call asked for 100 KiB of shared memory: %q", f.calls)
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

func TestTime(t *testing.T) {
	f := newFake(t)
	s := load(t, f, artifacttest.Program())
	x, _, _ := input()
	got, err := s.Time(t.Context(), [][]byte{x}, 3, false)
	if err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 10 }
	if !near(got.TotalNs, 8000) || !slices.EqualFunc(got.StepNs, []float64{0, 2000, 2000, 2000, 2000}, near) {
		t.Errorf("%+v; on the fake each kernel takes 2000 ns", got)
	}
	cold, err := s.Time(t.Context(), [][]byte{x}, 1, true)
	if err != nil || !near(cold.TotalNs, got.TotalNs) {
		t.Errorf("%+v, %v with an empty cache; what empties it is not in the time", cold, err)
	}
	outputs, err := s.Run(t.Context(), [][]byte{x})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, outputs)
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

// A kernel that faults breaks the context and is not identified; another process
// runs the steps one by one and names it with its line.
func TestFault(t *testing.T) {
	f := newFake(t)
	f.faults = "total"
	s := load(t, f, artifacttest.Program())
	x, _, _ := input()
	_, err := s.Run(t.Context(), [][]byte{x})
	var fault *Fault
	if !errors.As(err, &fault) || fault.Kernel != "" || !s.Lost() {
		t.Fatalf("error %v", err)
	}
	if want := "a kernel failed: an illegal memory access was encountered"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if _, err := s.Run(t.Context(), [][]byte{x}); err == nil {
		t.Error("the session ran again")
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed: %v", err)
	}

	f = newFake(t)
	f.faults = "total"
	s = load(t, f, artifacttest.Program())
	_, err = s.RunSteps(t.Context(), [][]byte{x})
	if want := "scale.dmir:4: the kernel total failed: an illegal memory access was encountered"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	if !errors.As(err, &fault) || fault.Kernel != "total" || fault.Step != "total" || !s.Lost() {
		t.Errorf("fault %+v", fault)
	}

	f = newFake(t)
	s = load(t, f, artifacttest.Program())
	outputs, err := s.RunSteps(t.Context(), [][]byte{x})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, outputs)
	if n := len(f.launches); n != 4 || slices.Contains(f.calls, "capture") {
		t.Errorf("%d launches; calls %q", n, f.calls)
	}
	if err := s.Close(); err != nil || f.left() != "" {
		t.Errorf("closed: %v; left %s", err, f.left())
	}
}

// The status of cuInit is kept: no device is not an error, and every later call
// returns the first error.
func TestStart(t *testing.T) {
	for _, c := range []struct {
		init status
		want string
	}{
		{noDevice, ""},
		{999, "cuInit"},
		{stubLibrary, "it is the toolkit's stub"},
	} {
		f := newFake(t)
		a := f.api()
		a.Init = func(uint32) status { return c.init }
		a.DeviceCount = func(*int32) status { return 3 } // not initialised, as drivers return from then on
		err := a.start()
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d: %v, want %q", c.init, err, c.want)
			}
			continue
		}
		if list, failed := a.devices(); err != nil || failed != nil || len(list) != 0 {
			t.Errorf("%d: %v, %v, %v", c.init, err, list, failed)
		}
	}
}

// A kernel that never ends does not block the caller.
func TestHang(t *testing.T) {
	f := newFake(t)
	s := load(t, f, artifacttest.Program())
	f.hangs = true
	x, _, _ := input()
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	<-ctx.Done()
	if _, err := s.Run(&late{Context: ctx}, [][]byte{x}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if err := s.Close(); err != nil { // it does not free what the device may still use
		t.Error(err)
	}
}

// late is a context that ends after its first poll.
type late struct {
	context.Context
	asked bool
}

func (c *late) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return c.Context.Err()
}

// Whichever call fails, the error names it, and all resources are released.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		call, want string
		code       status
	}{
		{"retain", "cuDevicePrimaryCtxRetain: out of memory", outOfMemory},
		{"load", "NVIDIA Fake 900 (sm_90) rejects the machine code", noBinary},
		{"function", "cuModuleGetFunction scaled", outOfMemory},
		{"alloc", "NVIDIA Fake 900 has no 16896 bytes of memory free", outOfMemory},
		{"stream", "cuStreamCreate", outOfMemory},
		{"copy in", "cuMemcpyHtoD", outOfMemory},
		{"copy out", "cuMemcpyDtoH", outOfMemory},
		{"capture", "cuStreamBeginCapture", outOfMemory},
		{"event", "cuEventCreate", outOfMemory},
		{"record", "cuEventRecord", outOfMemory},
		{"wait", "cuStreamWaitEvent", outOfMemory},
		{"fill", "cuMemsetD8Async zero s", outOfMemory},
		{"launch joined", "cuLaunchKernel joined", outOfMemory},
		{"capture end", "cuStreamEndCapture", outOfMemory},
		{"instantiate", "cuGraphInstantiate", outOfMemory},
		{"graph launch", "cuGraphLaunch", outOfMemory},
		{"query", "cuStreamSynchronize", outOfMemory},
	} {
		t.Run(c.call, func(t *testing.T) {
			f := newFake(t)
			f.failCall, f.failCode = c.call, c.code
			x, _, _ := input()
			s, err := f.device().Load(artifacttest.Program(), image)
			if err == nil {
				_, err = s.Run(t.Context(), [][]byte{x})
				if err := s.Close(); err != nil {
					t.Errorf("closed: %v", err)
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if left := f.left(); left != "" {
				t.Errorf("not given back: %s", left)
			}
		})
	}
}

// A program that cannot run is an error before any call of the driver.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(p *artifact.Program)
	}{
		{"a broken program", "buffer 77", func(p *artifact.Program) { p.Steps[1].Launch.Args[0].Buffer = 77 }},
		{"too much memory", "needs 2147483648 bytes of memory", func(p *artifact.Program) { p.Workspace = 2 << 30 }},
		{"another architecture", "kernel scaled was written for sm_100a; NVIDIA Fake 900 is sm_90a", func(p *artifact.Program) { p.Kernels[0].Arch = "sm_100a" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			p := artifacttest.Program()
			c.spoil(p)
			if _, err := f.device().Load(p, image); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if len(f.calls) > 0 {
				t.Errorf("calls %q", f.calls)
			}
		})
	}
	f := newFake(t)
	old := f.device()
	old.Major = 7
	if _, err := old.Load(artifacttest.Program(), image); err == nil || !strings.Contains(err.Error(), "sm_70; kernels need sm_80 or newer") {
		t.Errorf("on an old GPU: %v", err)
	}
	if _, err := f.device().Load(artifacttest.Program(), artifact.Image{}); err == nil || !strings.Contains(err.Error(), "no machine code for sm_90a") {
		t.Errorf("without machine code: %v", err)
	}
	s := load(t, f, artifacttest.Program())
	defer s.Close()
	for _, inputs := range [][][]byte{nil, {make([]byte, 3999)}, {make([]byte, 4000), nil}} {
		if _, err := s.Run(t.Context(), inputs); err == nil {
			t.Errorf("ran with %d inputs", len(inputs))
		}
	}
}

// On a real device, where there is one.
func TestDevice(t *testing.T) {
	list, err := Devices()
	if err != nil || len(list) == 0 {
		t.Skipf("no GPU: %v", err)
	}
	d := list[0]
	p := artifacttest.Program()
	r, err := nvrtc.Compile(t.Context(), p.Source, prelude.Files(), d.Arch(), nvrtc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Load(p, artifact.Image{Arch: r.Arch, Code: r.Cubin})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, _, _ := input()
	for range 3 {
		outputs, err := s.Run(t.Context(), [][]byte{x})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, outputs)
	}
	times, err := s.Time(t.Context(), [][]byte{x}, 5, true)
	if err != nil || times.TotalNs <= 0 || len(times.StepNs) != len(p.Steps) {
		t.Errorf("times %+v, %v", times, err)
	}
}

func TestImageOf(t *testing.T) {
	p := &artifact.Program{}
	for _, arch := range []string{"sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_120f"} {
		p.Images = append(p.Images, artifact.Image{Arch: arch})
	}
	for _, c := range []struct {
		major, minor int
		want         string // "": none
	}{{8, 0, "sm_80"}, {8, 6, "sm_86"}, {8, 9, "sm_86"}, {9, 0, "sm_90a"}, {10, 3, "sm_100"}, {12, 0, "sm_120f"}, {11, 0, ""}, {7, 5, ""}} {
		m, ok := imageFor(p, c.major, c.minor)
		if m.Arch != c.want || ok != (c.want != "") {
			t.Errorf("%d.%d: %q, want %q", c.major, c.minor, m.Arch, c.want)
		}
	}
}
