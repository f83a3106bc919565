package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"dmir/gpu/dylib"
)

// Handles and numbers of the driver, as cuda.h has them.
type (
	status   int32
	device   int32
	handle   uintptr // a context, module, function, stream, event or graph
	deviceVA uint64  // an address in a device's memory
)

// The statuses that callers distinguish.
const (
	success        status = 0
	outOfMemory    status = 2
	stubLibrary    status = 34
	noDevice       status = 100
	invalidImage   status = 200
	noBinary       status = 209
	invalidPTX     status = 218
	unsupportedPTX status = 222
	notReady       status = 600
	illegalAccess  status = 700
	launchTimeout  status = 702
	assertFailed   status = 710
	stackError     status = 714
	illegalInstr   status = 715
	misaligned     status = 716
	addressSpace   status = 717
	illegalPC      status = 718
	launchFailed   status = 719
)

// The device attributes that dmir queries.
const (
	attrMultiprocessors = 16
	attrMajor           = 75
	attrMinor           = 76
	attrSharedOptin     = 97
)

// Other numbers of cuda.h.
const (
	functionMaxDynamicShared   = 8
	functionNonPortableCluster = 14
	captureThreadLocal         = 1
	streamNonBlocking          = 1
	eventNoTiming              = 2
	recordExternal             = 1
	launchClusterDimension     = 4
	launchProgrammaticSerial   = 6 // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
)

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      handle
	attributes  *launchAttribute
	count       uint32
}

// launchAttribute is CUlaunchAttribute: a number and a value of 64 bytes.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// tensorMap is CUtensorMap, which must lie at a multiple of 128 bytes.
type tensorMap [128]byte

// api is the functions of the driver that dmir calls. Tests replace them.
type api struct {
	started status // status of cuInit: success or noDevice

	Init         func(flags uint32) status                                                                                                                           `c:"cuInit"`
	Version      func(v *int32) status                                                                                                                               `c:"cuDriverGetVersion"`
	ErrorName    func(s status, text **byte) status                                                                                                                  `c:"cuGetErrorName"`
	ErrorString  func(s status, text **byte) status                                                                                                                  `c:"cuGetErrorString"`
	DeviceCount  func(n *int32) status                                                                                                                               `c:"cuDeviceGetCount"`
	DeviceGet    func(d *device, ordinal int32) status                                                                                                               `c:"cuDeviceGet"`
	DeviceName   func(name *byte, n int32, d device) status                                                                                                          `c:"cuDeviceGetName"`
	DeviceMemory func(n *uint64, d device) status                                                                                                                    `c:"cuDeviceTotalMem_v2"`
	DeviceAttr   func(n *int32, attribute int32, d device) status                                                                                                    `c:"cuDeviceGetAttribute"`
	CtxRetain    func(ctx *handle, d device) status                                                                                                                  `c:"cuDevicePrimaryCtxRetain"`
	CtxRelease   func(d device) status                                                                                                                               `c:"cuDevicePrimaryCtxRelease_v2|cuDevicePrimaryCtxRelease"`
	CtxSet       func(ctx handle) status                                                                                                                             `c:"cuCtxSetCurrent"`
	ModuleLoad   func(m *handle, image *byte) status                                                                                                                 `c:"cuModuleLoadData"`
	ModuleUnload func(m handle) status                                                                                                                               `c:"cuModuleUnload"`
	ModuleFunc   func(f *handle, m handle, name string) status                                                                                                       `c:"cuModuleGetFunction"`
	FuncSet      func(f handle, attribute, value int32) status                                                                                                       `c:"cuFuncSetAttribute"`
	MemAlloc     func(p *deviceVA, n uint64) status                                                                                                                  `c:"cuMemAlloc_v2"`
	MemFree      func(p deviceVA) status                                                                                                                             `c:"cuMemFree_v2"`
	CopyIn       func(to deviceVA, from *byte, n uint64, on handle) status                                                                                           `c:"cuMemcpyHtoDAsync_v2"`
	CopyOut      func(to *byte, from deviceVA, n uint64, on handle) status                                                                                           `c:"cuMemcpyDtoHAsync_v2"`
	CopyOn       func(to, from deviceVA, n uint64, on handle) status                                                                                                 `c:"cuMemcpyDtoDAsync_v2"`
	Fill         func(to deviceVA, value uint8, n uint64, on handle) status                                                                                          `c:"cuMemsetD8Async"`
	StreamCreate func(s *handle, flags uint32) status                                                                                                                `c:"cuStreamCreate"`
	StreamFree   func(s handle) status                                                                                                                               `c:"cuStreamDestroy_v2"`
	StreamQuery  func(s handle) status                                                                                                                               `c:"cuStreamQuery"`
	StreamWait   func(s, event handle, flags uint32) status                                                                                                          `c:"cuStreamWaitEvent"`
	EventCreate  func(e *handle, flags uint32) status                                                                                                                `c:"cuEventCreate"`
	EventFree    func(e handle) status                                                                                                                               `c:"cuEventDestroy_v2"`
	EventRecord  func(e, s handle) status                                                                                                                            `c:"cuEventRecord"`
	EventNode    func(e, s handle, flags uint32) status                                                                                                              `c:"cuEventRecordWithFlags"`
	EventElapsed func(ms *float32, from, to handle) status                                                                                                           `c:"cuEventElapsedTime"`
	Launch       func(c *launchConfig, f handle, args, extra unsafe.Pointer) status                                                                                  `c:"cuLaunchKernelEx,optional"`
	LaunchPlain  func(f handle, gx, gy, gz, bx, by, bz, shared uint32, s handle, args, extra unsafe.Pointer) status                                                  `c:"cuLaunchKernel"`
	MapEncode    func(m *tensorMap, elem, rank uint32, base deviceVA, dims, strides *uint64, box, steps *uint32, interleave, swizzle, promotion, fill uint32) status `c:"cuTensorMapEncodeTiled,optional"`
	Capture      func(s handle, mode uint32) status                                                                                                                  `c:"cuStreamBeginCapture_v2"`
	CaptureEnd   func(s handle, graph *handle) status                                                                                                                `c:"cuStreamEndCapture"`
	GraphMake    func(exec *handle, graph handle, flags uint64) status                                                                                               `c:"cuGraphInstantiateWithFlags"`
	GraphFree    func(graph handle) status                                                                                                                           `c:"cuGraphDestroy"`
	GraphLaunch  func(exec, s handle) status                                                                                                                         `c:"cuGraphLaunch"`
	ExecFree     func(exec handle) status                                                                                                                            `c:"cuGraphExecDestroy"`
}

// programmaticEdges is the first version of CUDA whose captured graphs have programmatic edges.
const programmaticEdges = 12030

// dependents reports whether a captured launch may start before the kernel before it has ended.
func (a *api) dependents() bool {
	var v int32
	return a.Launch != nil && a.Version(&v) == success && v >= programmaticEdges
}

// libraryNames are the names of the driver's library for the system's linker, and
// its paths where the linker does not search: under WSL, in containers with the
// host's driver mounted, on NixOS.
func libraryNames() []string {
	if runtime.GOOS == "windows" {
		return []string{"nvcuda.dll"}
	}
	const name = "libcuda.so.1"
	out := []string{name}
	for _, dir := range []string{
		"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/run/opengl-driver/lib",
	} {
		out = append(out, dir+"/"+name)
	}
	return out
}

// driver is the library, opened and initialised once.
var driver = sync.OnceValues(func() (*api, error) { return openDriver(libraryNames()) })

// openDriver opens the first of the libraries that can be initialised. It skips
// others, such as the toolkit's stub; if none can, the error is that of the first
// one that could be opened.
func openDriver(names []string) (*api, error) {
	var missing, failed error
	for _, name := range names {
		lib, err := dylib.Open(name)
		if err != nil {
			if missing == nil {
				missing = &Missing{err}
			}
			continue
		}
		a := &api{}
		if err = lib.BindAll(a); err != nil {
			err = fmt.Errorf("the NVIDIA driver is too old: %w", err)
		} else if err = a.start(); err == nil {
			return a, nil
		}
		if failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return nil, failed
	}
	return nil, missing
}

// Missing reports that there is no driver.
type Missing struct{ Err error }

// Error is one line.
func (e *Missing) Error() string { return "no NVIDIA driver is installed on this machine" }

// Unwrap is why the library could not be opened.
func (e *Missing) Unwrap() error { return e.Err }

// start initialises the driver. Without a device that fails, and every later call
// returns that the driver is not initialised; so the first error is kept.
func (a *api) start() error {
	a.started = a.Init(0)
	switch a.started {
	case success, noDevice:
		return nil
	case stubLibrary:
		return fmt.Errorf("%w: it is the toolkit's stub for linking, not a driver", a.check("cuInit", a.started))
	}
	return a.check("cuInit", a.started)
}

// Error is a call of the driver that failed.
type Error struct {
	Call string // "cuMemAlloc"
	Code int    // CUresult
	Name string // "CUDA_ERROR_OUT_OF_MEMORY"
	Text string // "out of memory"
}

// Error is one line.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%s)", e.Call, e.Text, e.Name) }

func (a *api) check(call string, s status) error {
	if s == success {
		return nil
	}
	e := &Error{Call: call, Code: int(s), Name: fmt.Sprintf("CUDA error %d", s), Text: "it failed"}
	var text *byte
	if a.ErrorName(s, &text) == success && text != nil {
		e.Name = cstring(text)
	}
	if a.ErrorString(s, &text) == success && text != nil {
		e.Text = cstring(text)
	}
	return e
}

// cstring copies a zero-terminated string of the driver.
func cstring(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// faulted reports whether s means that a kernel broke the context, so that every
// later call in it fails.
func faulted(s int) bool {
	switch status(s) {
	case illegalAccess, launchTimeout, assertFailed, stackError, illegalInstr, misaligned, addressSpace, illegalPC, launchFailed:
		return true
	}
	return false
}
