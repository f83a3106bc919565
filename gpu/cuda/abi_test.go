package cuda

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/dylib"
	"dmir/testkit/need"
)

// A library built by a C compiler receives the arguments of the calls.
func TestCallsReachC(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.OK(t, errors.New("the library is built for a Unix"))
	}
	cc := need.Tool(t, "cc", "apt-get install gcc")
	path := filepath.Join(t.TempDir(), "libdriver.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", path, "testdata/driver.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lib, err := dylib.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{}
	if err := lib.BindAll(a); err != nil {
		t.Fatal(err)
	}
	var reported func() string
	if err := lib.Bind("reported", &reported); err != nil {
		t.Fatal(err)
	}

	var name [64]byte
	a.DeviceName(&name[0], 64, 3)
	if got := cstring(&name[0]); got != "card 3" {
		t.Errorf("the name is %q", got)
	}
	var memory uint64
	if a.DeviceMemory(&memory, 0); memory != 5<<40 {
		t.Errorf("%d bytes of memory", memory)
	}
	var ms float32
	if a.EventElapsed(&ms, 1, 2); ms != 1.5 {
		t.Errorf("%g ms", ms)
	}
	var f handle
	if a.ModuleFunc(&f, 0x55, "total"); f != 0x77 {
		t.Errorf("the function is %#x", f)
	}

	p := artifacttest.Program()
	p.Kernels[0].Block.Cluster = 2
	p.Kernels[3].Params[1].Mode = artifact.Map
	p.Steps[4].Launch.Args[1].Map = &artifact.TensorMap{Elem: "bf16", Dims: []uint64{40, 25}, Strides: []uint64{80}, Box: []uint32{16, 5}, Swizzle: 64}
	s := &Session{d: &Device{}, p: p, a: a, base: 0x7f0000001000, streams: []handle{0x90}, functions: []handle{0x10, 0x11, 0x12, 0x13}}
	if s.maps, err = s.encodeMaps(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "cuLaunchKernel negated: it is told (CUDA_ERROR_ILLEGAL_ADDRESS)", "cuLaunchKernel total: it is told (CUDA_ERROR_ILLEGAL_ADDRESS)"} {
		err := s.enqueue(i, s.streams[0])
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want || !isFault(err)) {
			t.Errorf("step %d: %v, want %q", i, err, want)
		}
	}
	want := `function total of 0x55
map at 0 of 128, type 9 rank 2 base 0x7f0000003000 dims 40 25 stride 80 box 16 5 steps 1 1: 0 2 2 0
fill 7f0000005100 with 0, 4 bytes, on 0x90
launch 0x10 grid 4 1 1 block 256 1 1 shared 0 on 0x90, 1 attributes: 4 2 1 1, args 7f0000001000
launch 0x12 grid 4 1 1 block 256 1 1 shared 0 on 0x90 args 7f0000001000 7f0000003000, 0 more
launch 0x11 grid 1 1 1 block 128 1 1 shared 128 on 0x90 args 7f0000002000 7f0000005100, 0 more
`
	if d := cmp.Diff(want, reported()); d != "" {
		t.Error(d)
	}
	if m := s.maps[[2]int{4, 1}]; m == nil || m[127] != 7 {
		t.Errorf("the map holds %v", m)
	}
	if n := unsafe.Sizeof(launchConfig{}); n != 56 {
		t.Errorf("a launch configuration has %d bytes", n)
	}
}
