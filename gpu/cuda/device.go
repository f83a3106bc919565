package cuda

import (
	"bytes"
	"fmt"

	"dmir/gpu/artifact"
)

// Device is one GPU.
type Device struct {
	Ordinal         int
	Name            string // "NVIDIA H200"
	Major, Minor    int    // compute capability
	Memory          int64  // bytes
	Multiprocessors int
	Shared          int // bytes of shared memory that a block may have

	api *api
	id  device
}

// Arch is the architecture to compile for: with the features of that
// architecture alone ("sm_90a") where kernels use them.
func (d *Device) Arch() string {
	arch := fmt.Sprintf("sm_%d%d", d.Major, d.Minor)
	if d.Major == 9 && d.Minor == 0 {
		arch += "a"
	}
	return arch
}

// Devices lists the GPUs. Without a driver the error is a *Missing.
func Devices() ([]*Device, error) {
	a, err := driver()
	if err != nil {
		return nil, err
	}
	return a.devices()
}

// DriverVersion is the version of CUDA that the driver supports, "13.0".
func DriverVersion() (string, error) {
	a, err := driver()
	if err != nil {
		return "", err
	}
	var v int32
	if err := a.check("cuDriverGetVersion", a.Version(&v)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10), nil
}

func (a *api) devices() ([]*Device, error) {
	if a.started == noDevice {
		return nil, nil
	}
	var n int32
	if s := a.DeviceCount(&n); s == noDevice {
		return nil, nil
	} else if err := a.check("cuDeviceGetCount", s); err != nil {
		return nil, err
	}
	var out []*Device
	for i := range int(n) {
		d := &Device{Ordinal: i, api: a}
		if err := a.check("cuDeviceGet", a.DeviceGet(&d.id, int32(i))); err != nil {
			return nil, err
		}
		var name [256]byte
		if err := a.check("cuDeviceGetName", a.DeviceName(&name[0], int32(len(name)-1), d.id)); err != nil {
			return nil, err
		}
		d.Name = string(name[:bytes.IndexByte(name[:], 0)])
		var memory uint64
		if err := a.check("cuDeviceTotalMem", a.DeviceMemory(&memory, d.id)); err != nil {
			return nil, err
		}
		d.Memory = int64(memory)
		for _, q := range []struct {
			attribute int32
			to        *int
		}{{attrMajor, &d.Major}, {attrMinor, &d.Minor}, {attrMultiprocessors, &d.Multiprocessors}, {attrSharedOptin, &d.Shared}} {
			var v int32
			if err := a.check("cuDeviceGetAttribute", a.DeviceAttr(&v, q.attribute, d.id)); err != nil {
				return nil, err
			}
			*q.to = int(v)
		}
		out = append(out, d)
	}
	return out, nil
}

// TooLarge reports that a program does not fit into a device's memory.
type TooLarge struct{ Text string }

// Error is one line.
func (e *TooLarge) Error() string { return e.Text }

// Fits reports why the program cannot run on the device, if it cannot.
func (d *Device) Fits(p *artifact.Program) error {
	if d.Major < 8 {
		return fmt.Errorf("%s is %s; kernels need sm_80 or newer", d.Name, d.Arch())
	}
	if p.Workspace > d.Memory {
		return &TooLarge{fmt.Sprintf("@%s needs %d bytes of memory; %s has %d", p.Name, p.Workspace, d.Name, d.Memory)}
	}
	for _, k := range p.Kernels {
		if !d.runs(k.Arch) {
			return fmt.Errorf("kernel %s was written for %s; %s is %s", k.Name, k.Arch, d.Name, d.Arch())
		}
		if k.Block.Shared > d.Shared {
			return fmt.Errorf("kernel %s needs %d bytes of shared memory; a block of %s has %d", k.Name, k.Block.Shared, d.Name, d.Shared)
		}
	}
	return nil
}

// runs reports whether the device runs code that was written for arch. Code
// for the features of one architecture (sm_90a) runs on no other.
func (d *Device) runs(arch string) bool {
	var number int
	if n, err := fmt.Sscanf(arch, "sm_%d", &number); n == 1 && err == nil && arch == fmt.Sprintf("sm_%d", number) {
		return number <= 10*d.Major+d.Minor
	}
	return arch == "" || arch == d.Arch()
}

// Image is the machine code of p that runs on the device: for exactly its compute
// capability, or for an earlier one of the same major version.
func (d *Device) Image(p *artifact.Program) (artifact.Image, bool) {
	return imageFor(p, d.Major, d.Minor)
}

func imageFor(p *artifact.Program, major, minor int) (artifact.Image, bool) {
	for _, suffix := range []string{"a", "f", ""} {
		if m, ok := p.Image(fmt.Sprintf("sm_%d%d%s", major, minor, suffix)); ok {
			return m, true
		}
	}
	for older := minor - 1; older >= 0; older-- {
		if m, ok := p.Image(fmt.Sprintf("sm_%d%d", major, older)); ok {
			return m, true
		}
	}
	return artifact.Image{}, false
}
