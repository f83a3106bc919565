package nvrtc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"dmir/gpu/dylib"
)

// slots bounds the concurrent compilations.
var slots = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)))

// program is NVRTC's handle of one compilation.
type program uintptr

// status is nvrtcResult.
type status int32

// The statuses that callers distinguish, numbered as in nvrtc.h.
const (
	success       status = 0
	invalidOption status = 5
	compilation   status = 6
	cancelled     status = 16
)

// api is the functions of NVRTC that dmir calls.
type api struct {
	Version     func(major, minor *int32) status                                                        `c:"nvrtcVersion"`
	ErrorString func(status) string                                                                     `c:"nvrtcGetErrorString"`
	Create      func(p *program, source, name *byte, headers int32, texts, names unsafe.Pointer) status `c:"nvrtcCreateProgram"`
	Run         func(p program, options int32, list unsafe.Pointer) status                              `c:"nvrtcCompileProgram"`
	Destroy     func(p *program) status                                                                 `c:"nvrtcDestroyProgram"`
	LogSize     func(p program, size *uintptr) status                                                   `c:"nvrtcGetProgramLogSize"`
	Log         func(p program, text *byte) status                                                      `c:"nvrtcGetProgramLog"`
	PTXSize     func(p program, size *uintptr) status                                                   `c:"nvrtcGetPTXSize"`
	PTX         func(p program, text *byte) status                                                      `c:"nvrtcGetPTX"`
	CubinSize   func(p program, size *uintptr) status                                                   `c:"nvrtcGetCUBINSize"`
	Cubin       func(p program, code *byte) status                                                      `c:"nvrtcGetCUBIN"`
	SetFlow     func(p program, callback uintptr, payload uintptr) status                               `c:"nvrtcSetFlowCallback,optional"`
	ArchCount   func(n *int32) status                                                                   `c:"nvrtcGetNumSupportedArchs,optional"`
	Archs       func(list *int32) status                                                                `c:"nvrtcGetSupportedArchs,optional"`
}

// library is an open libnvrtc. One program is used by one thread; several
// programs may compile at once.
type library struct {
	api
	path string
}

// openLibrary opens a library and verifies that it compiles: a part of it may be
// missing.
func openLibrary(path string) (*library, error) {
	openBuiltins(path)
	l, err := dylib.Open(path)
	if err != nil {
		return nil, err
	}
	lib := &library{path: path}
	if err := l.BindAll(&lib.api); err != nil {
		return nil, err
	}
	if err := lib.probe(); err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", path, err)
	}
	return lib, nil
}

// openBuiltins opens the library's other half, which lies beside it and which it
// opens by bare name when it first compiles: packages of CUDA 13.0 have no
// RPATH. An open library is found by its name. Errors
// show when the library compiles.
func openBuiltins(path string) {
	dirs := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "libnvrtc-builtins.so.*"))
		for _, f := range found {
			dylib.OpenGlobal(f)
		}
	}
}

// probe compiles a kernel of one line to machine code.
func (l *library) probe() error {
	version, err := l.versionText()
	if err != nil {
		return err
	}
	arch := 80 // the lowest that kernels support
	if list := l.supported(); len(list) > 0 && !slices.Contains(list, arch) {
		arch = list[len(list)-1]
	}
	const source = "extern \"C\" __global__ void probe(float *x) { x[threadIdx.x] = 1; }\n"
	_, err = l.compile(context.Background(), version, source, nil, fmt.Sprintf("sm_%d", arch), Options{Name: "probe.cu"})
	return err
}

func (l *library) check(call string, s status) error {
	if s == success {
		return nil
	}
	return fmt.Errorf("%s: %s", call, l.ErrorString(s))
}

// versionText is "NVRTC 13.5".
func (l *library) versionText() (string, error) {
	var major, minor int32
	if err := l.check("nvrtcVersion", l.Version(&major, &minor)); err != nil {
		return "", err
	}
	return fmt.Sprintf("NVRTC %d.%d", major, minor), nil
}

// supported lists the architectures that the library makes code for, as
// numbers (80, 90, 100); nil if it does not report them.
func (l *library) supported() []int {
	var n int32
	if l.ArchCount == nil || l.Archs == nil || l.ArchCount(&n) != success || n <= 0 || n > 1000 {
		return nil
	}
	list := make([]int32, n)
	if l.Archs(&list[0]) != success {
		return nil
	}
	out := make([]int, n)
	for i, a := range list {
		out[i] = int(a)
	}
	return out
}

// cstrings is an array of C strings. Its memory stays where it is until release.
type cstrings struct {
	pin  runtime.Pinner
	list []*byte
}

func (c *cstrings) add(s string) {
	b := append([]byte(s), 0)
	c.pin.Pin(&b[0])
	c.list = append(c.list, &b[0])
}

func (c *cstrings) pointer() unsafe.Pointer {
	if len(c.list) == 0 {
		return nil
	}
	c.pin.Pin(&c.list[0])
	return unsafe.Pointer(&c.list[0])
}

func (l *library) compile(ctx context.Context, version, source string, headers []Header, arch string, opts Options) (*Result, error) {
	var names, texts, options, own cstrings
	defer names.pin.Unpin()
	defer texts.pin.Unpin()
	defer options.pin.Unpin()
	defer own.pin.Unpin()
	for _, h := range headers {
		names.add(h.Name)
		texts.add(h.Text)
	}
	for _, f := range flags(arch, opts) {
		options.add(f)
	}
	var major int
	if fmt.Sscanf(version, "NVRTC %d", &major); opts.Jobs > 1 && major >= 13 {
		options.add(fmt.Sprintf("--split-compile=%d", opts.Jobs)) // not in the cache's key: it does not affect the code's quality
	}
	own.add(source)
	own.add(opts.Name)

	var p program
	if err := l.check("nvrtcCreateProgram", l.Create(&p, own.list[0], own.list[1], int32(len(headers)), texts.pointer(), names.pointer())); err != nil {
		return nil, err
	}
	defer l.Destroy(&p)
	if l.SetFlow != nil {
		payload := watch(ctx)
		defer unwatch(payload)
		if err := l.check("nvrtcSetFlowCallback", l.SetFlow(p, flowCallback(), payload)); err != nil {
			return nil, err
		}
	}
	done := l.Run(p, int32(len(options.list)), options.pointer())
	log, err := l.text(p, "nvrtcGetProgramLog", l.LogSize, l.Log)
	if err != nil {
		return nil, err
	}
	switch {
	case done == cancelled || ctx.Err() != nil:
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, errors.New("the compilation was cancelled")
	case done == compilation:
		return nil, &CompileError{Arch: arch, Compiler: version, Log: string(log), Messages: parseMessages(string(log))}
	case done == invalidOption:
		return nil, &ArchError{arch, version, firstLine(string(log))}
	case done != success:
		return nil, l.check("nvrtcCompileProgram", done)
	}
	r := &Result{Arch: arch, Compiler: version, Log: string(log)}
	ptx, err := l.text(p, "nvrtcGetPTX", l.PTXSize, l.PTX)
	if err != nil {
		return nil, err
	}
	r.PTX = string(ptx)
	if opts.PTX {
		return r, nil
	}
	var size uintptr
	if err := l.check("nvrtcGetCUBINSize", l.CubinSize(p, &size)); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, fmt.Errorf("%s made no machine code for %s", version, arch)
	}
	r.Cubin = make([]byte, size)
	if err := l.check("nvrtcGetCUBIN", l.Cubin(p, &r.Cubin[0])); err != nil {
		return nil, err
	}
	if r.Kernels, err = usage(r.Cubin, r.Log); err != nil {
		return nil, err
	}
	return r, nil
}

// text reads a text whose size the library gives with its final zero byte.
func (l *library) text(p program, call string, size func(program, *uintptr) status, read func(program, *byte) status) ([]byte, error) {
	var n uintptr
	if err := l.check(call+"Size", size(p, &n)); err != nil || n <= 1 {
		return nil, err
	}
	b := make([]byte, n)
	if err := l.check(call, read(p, &b[0])); err != nil {
		return nil, err
	}
	return b[:n-1], nil
}

// The contexts of the running compilations. The compiler polls a callback for
// cancellation, which gets the number of a compilation.
var (
	watched   sync.Map // uintptr -> context.Context
	watchLock sync.Mutex
	watchNext uintptr

	flowCallback = sync.OnceValue(func() uintptr {
		return dylib.Callback(func(payload, _ uintptr) uintptr {
			if ctx, ok := watched.Load(payload); ok && ctx.(context.Context).Err() != nil {
				return 1
			}
			return 0
		})
	})
)

func watch(ctx context.Context) uintptr {
	watchLock.Lock()
	defer watchLock.Unlock()
	watchNext++
	watched.Store(watchNext, ctx)
	return watchNext
}

func unwatch(payload uintptr) { watched.Delete(payload) }
