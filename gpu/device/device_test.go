package device

import (
	"context"
	"errors"
	"strings"
	"testing"

	"dmir/gpu/artifact"
)

// named is a device that only has a name.
type named string

func (n named) Name() string  { return string(n) }
func (n named) Title() string { return "a " + string(n) }
func (n named) Arch() string  { return "" }
func (n named) Run(context.Context, *artifact.Program, [][]byte, Options) (*Result, error) {
	return nil, errors.New("it only has a name")
}

func TestChoose(t *testing.T) {
	noDriver, noCompiler := errors.New("no NVIDIA driver is installed on this machine"), errors.New("no C++20 compiler found: install g++")
	gpus, emulator := []Device{named("cuda"), named("cuda:1")}, []Device{named("emulator")}
	machine := func(gpus, emulator []Device) []found {
		all := []found{{Kind{Name: "cuda", Numbered: true}, gpus, nil}, {Kind{Name: "emulator", Checks: true}, emulator, nil}}
		if len(gpus) == 0 {
			all[0].err = noDriver
		}
		if len(emulator) == 0 {
			all[1].err = noCompiler
		}
		return all
	}
	all, one := machine(gpus, emulator), machine(gpus[:1], emulator)
	onlyGPU, onlyEmulator, nothing := machine(gpus[:1], nil), machine(nil, emulator), machine(nil, nil)
	noClang := errors.New("clang is not installed")
	cpu := func(missing error) found {
		return found{Kind{Name: "cpu", Host: true, Ready: func() error { return missing }, Why: func([]Device) string { return "this machine's CPU, compiled by clang 14" }}, []Device{named("cpu")}, nil}
	}
	withCPU, noAccelerator, onlyImages := append(machine(gpus, emulator), cpu(nil)), append(machine(nil, emulator), cpu(nil)), append(machine(nil, nil), cpu(noClang))
	for _, c := range []struct {
		name string
		all  []found
		want string // the device
		why  string // or the error
	}{
		{"auto", all, "cuda", "the first of this machine's GPUs"},
		{"", onlyGPU, "cuda", "this machine's GPU"},
		{"auto", one, "cuda", "this machine's GPU"},
		{"auto", onlyEmulator, "emulator", noDriver.Error()},
		{"auto", nothing, "", noDriver.Error() + "; " + noCompiler.Error()},
		{"cuda", all, "cuda", "requested"},
		{"cuda:0", all, "cuda", "requested"},
		{"cuda:1", all, "cuda:1", "requested"},
		{"cuda:2", all, "", "there is no cuda:2; this machine has cuda (a cuda), cuda:1 (a cuda:1)"},
		{"emulator", all, "emulator", "requested"},
		{"cuda", onlyEmulator, "", noDriver.Error()},
		{"emulator", onlyGPU, "", noCompiler.Error()},
		{"auto", withCPU, "cuda", "the first of this machine's GPUs"},
		{"auto", noAccelerator, "cpu", "this machine's CPU, compiled by clang 14"},
		{"auto", onlyImages, "", noDriver.Error() + "; " + noClang.Error() + "; " + noCompiler.Error()},
		{"cpu", onlyImages, "cpu", "requested"},
		{"tpu", all, "", `"tpu" is not a device: the devices are cuda, cuda:1 and so on, emulator and reference`},
		{"cuda:-1", all, "", "is not a device"},
		{"cuda:x", all, "", "is not a device"},
		{"emulator:1", all, "", "is not a device"},
	} {
		d, why, err := choose(c.name, c.all)
		switch {
		case err != nil:
			if c.want != "" || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%q of %v: error %v, want %q", c.name, c.all, err, c.why)
			}
		case d.Name() != c.want || why != c.why:
			t.Errorf("%q of %v: %s because %q, want %s because %q", c.name, c.all, d.Name(), why, c.want, c.why)
		}
	}
}

// Without being asked programs run on the processor only where there is no accelerator,
// and are compiled for it only if somebody asks.
func TestDefaults(t *testing.T) {
	before := kinds
	defer func() { kinds = before }()
	find := func(names ...string) func() ([]Device, error) {
		return func() ([]Device, error) {
			var ds []Device
			for _, n := range names {
				ds = append(ds, named(n))
			}
			return ds, errOf(len(ds) == 0)
		}
	}
	emulator := Kind{Name: "emulator", Checks: true, Find: find("emulator")}
	cpu := Kind{Name: "cpu", Host: true, Find: find("cpu"), Why: func([]Device) string { return "the CPU" }}
	idle := Kind{Name: "cpu", Host: true, Find: find("cpu"), Ready: func() error { return errOf(true) }}
	for _, c := range []struct {
		kinds                  []Kind
		fallback, fastest, why string
	}{
		{[]Kind{{Name: "cuda", Find: find("cuda")}, emulator, cpu}, "cuda", "cuda", "this machine's GPU"},
		{[]Kind{{Name: "cuda", Find: find()}, emulator, cpu}, "", "cpu", "the CPU"},
		{[]Kind{{Name: "cuda", Find: find()}, emulator, idle}, "", "", "missing; missing"},
		{[]Kind{emulator}, "", "", ""},
	} {
		kinds = c.kinds
		name := func(d Device) string {
			if d == nil {
				return ""
			}
			return d.Name()
		}
		d, why := Fastest()
		if name(Default()) != c.fallback || name(d) != c.fastest || why != c.why {
			t.Errorf("%v: the default is %v, the fastest %v because %q", c.kinds, Default(), d, why)
		}
	}
}

func errOf(failed bool) error {
	if failed {
		return errors.New("missing")
	}
	return nil
}
