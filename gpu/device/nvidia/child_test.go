package nvidia

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/cuda"
	"dmir/gpu/cuda/cudatest"
	"dmir/gpu/device"
)

// card runs this test again in a process with the fake driver and the failures that
// it should have; in that process it returns the GPU, else nil.
func card(t *testing.T, wrong ...string) device.Device {
	t.Helper()
	if os.Getenv("STANDIN") == t.Name() {
		d, _, err := device.Find("cuda")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	rerun(t, wrong...)
	return nil // it has run there
}

// rerun runs the test in a process that finds the fake driver.
func rerun(t *testing.T, wrong ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+cudatest.Driver(t), "STANDIN="+t.Name()), wrong...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func sample() (x []byte, sum float64) {
	for i := range artifacttest.N {
		v := float64(i%13)/2 - 3
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(v)))
		sum += 3 * v
	}
	return x, sum
}

func compiled(t *testing.T) *artifact.Program {
	p := artifacttest.Program()
	cudatest.Compile(t, p)
	return p
}

func right(t *testing.T, r *device.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	_, sum := sample()
	if got := float64(math.Float32frombits(binary.LittleEndian.Uint32(r.Outputs[1]))); math.Abs(got-sum) > 1e-2 {
		t.Errorf("the sum is %g, want %g", got, sum)
	}
}

// A program runs through the driver's library.
func TestStandIn(t *testing.T) {
	d := card(t)
	if d == nil {
		return
	}
	x, _ := sample()
	p := compiled(t)
	r, err := d.Run(t.Context(), p, [][]byte{x}, device.Options{Runs: 3, Cold: true})
	right(t, r, err)
	if r.Untimed != "" || r.Steps[1].MeasuredNs <= 0 {
		t.Errorf("no times: %q, %+v", r.Untimed, r.Steps)
	}
	far := Isolated(d)
	defer far.Close()
	again, err := far.Run(t.Context(), p, [][]byte{x}, device.Options{})
	right(t, again, err)
	if !bytes.Equal(again.Outputs[0], r.Outputs[0]) {
		t.Error("another process gives another result")
	}
}

// A fault is located in another process, and so is what runs after it.
func TestStandInFault(t *testing.T) {
	d := card(t, "STANDIN_FAULT=total")
	if d == nil {
		return
	}
	x, _ := sample()
	p := compiled(t)
	const want = "scale.dmir:4: the kernel total failed: an illegal memory access was encountered"
	for range 2 {
		_, err := d.Run(t.Context(), p, [][]byte{x}, device.Options{})
		var fault *cuda.Fault
		if !errors.As(err, &fault) || fault.Kernel != "total" || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
		if !lostContext.Load() {
			t.Error("the context is thought to be sound")
		}
	}
	os.Unsetenv("STANDIN_FAULT")
	r, err := d.Run(t.Context(), p, [][]byte{x}, device.Options{})
	right(t, r, err)
}

// A hang ends with its time limit and its process; the next run starts another one.
func TestStandInHang(t *testing.T) {
	d := card(t, "STANDIN_HANG=negated")
	if d == nil {
		return
	}
	x, _ := sample()
	p := compiled(t)
	far := Isolated(d)
	defer far.Close()
	if _, err := far.Run(t.Context(), p, [][]byte{x}, device.Options{Timeout: 2 * time.Second}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	os.Unsetenv("STANDIN_HANG")
	r, err := far.Run(t.Context(), p, [][]byte{x}, device.Options{})
	right(t, r, err)
}

// Results are valid without times.
func TestStandInTiming(t *testing.T) {
	d := card(t, "STANDIN_TIMING=999")
	if d == nil {
		return
	}
	x, _ := sample()
	r, err := d.Run(t.Context(), compiled(t), [][]byte{x}, device.Options{Runs: 3})
	right(t, r, err)
	if !strings.Contains(r.Untimed, "cuEventElapsedTime") || r.Steps[1].MeasuredNs != 0 {
		t.Errorf("untimed %q, %+v", r.Untimed, r.Steps)
	}
}

// A program too large for the GPU has its own error.
func TestStandInMemory(t *testing.T) {
	d := card(t, "STANDIN_MEMORY=10000")
	if d == nil {
		return
	}
	x, _ := sample()
	far := Isolated(d)
	defer far.Close()
	var large *cuda.TooLarge
	if _, err := far.Run(t.Context(), compiled(t), [][]byte{x}, device.Options{}); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
}

// No device is no failure of the driver.
func TestStandInNoDevice(t *testing.T) {
	for status, want := range map[string]string{"100": "the NVIDIA driver finds no GPU", "999": "cuInit"} {
		t.Run(status, func(t *testing.T) {
			if os.Getenv("STANDIN") != t.Name() {
				rerun(t, "STANDIN_INIT="+status)
				return
			}
			if _, _, err := device.Find("cuda"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}
