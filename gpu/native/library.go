package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"dmir/base/local"
	"dmir/gpu/artifact"
	"dmir/gpu/dylib"
)

// apiVersion is the version of the interface of the shared objects.
const apiVersion = 1

// library is a program's shared object, open; see runtime/dmir.h.
type library struct {
	Version    func() int32                                          `c:"dmir_version"`
	Inputs     func() int32                                          `c:"dmir_inputs"`
	Outputs    func() int32                                          `c:"dmir_outputs"`
	Steps      func() int32                                          `c:"dmir_steps"`
	Create     func(threads int32, text *byte, size uintptr) uintptr `c:"dmir_create"`
	Destroy    func(p uintptr)                                       `c:"dmir_destroy"`
	BindInput  func(p uintptr, i int32, data unsafe.Pointer) int32   `c:"dmir_bind_input"`
	BindOutput func(p uintptr, i int32, data unsafe.Pointer) int32   `c:"dmir_bind_output"`
	Run        func(p uintptr) int32                                 `c:"dmir_run"`
	ReadOutput func(p uintptr, i int32, to unsafe.Pointer) int32     `c:"dmir_read_output"`
	Cancel     func(p uintptr)                                       `c:"dmir_cancel"`
	Error      func(p uintptr) string                                `c:"dmir_error"`
	StepTime   func(p uintptr, step int32) float64                   `c:"dmir_step_time"`
	StepRuns   func(p uintptr, step int32) int64                     `c:"dmir_step_runs"`
	Time       func(p uintptr) float64                               `c:"dmir_time"`
	At         func(p uintptr) int32                                 `c:"dmir_at"`
	Flush      func(p uintptr)                                       `c:"dmir_flush"`
	// BindConstant is missing in objects that have their constants inside.
	BindConstant func(p uintptr, buffer int32, data unsafe.Pointer) int32 `c:"dmir_bind_constant,optional"`
	// OnCollective is missing in machine code of programs for one device that earlier dmirs made.
	OnCollective func(p, f, user uintptr)             `c:"dmir_on_collective,optional"`
	OnBackground func(p, begin, finish, user uintptr) `c:"dmir_on_background,optional"`
	// Exchanged is missing in machine code that earlier dmirs made, whose collectives have one value.
	Exchanged func(p uintptr, step, value int32, from *unsafe.Pointer, fromBytes *int64, to *unsafe.Pointer, toBytes *int64) int32 `c:"dmir_exchanged,optional"`
}

// What the functions of a shared object return.
const (
	statusOK        = 0
	statusCancelled = 3
	statusFaulted   = 4
)

// libraries are the shared objects that are open, by their keys. They stay open.
var libraries = struct {
	sync.Mutex
	open map[string]*library
}{open: map[string]*library{}}

// errGone reports that the object of a program from the cache is no longer there.
var errGone = errors.New("what the program was compiled to is no longer in the cache")

// opened is the object that key names, if it is open.
func opened(key string) *library {
	libraries.Lock()
	defer libraries.Unlock()
	return libraries.open[key]
}

// load opens p's shared object: an image of the program that runs here, or one that is
// compiled for this machine; took is the time of that. key names the object.
func load(ctx context.Context, p *artifact.Program) (lib *library, key string, took time.Duration, err error) {
	if key = p.Object; key != "" {
		if lib, err = reopened(p); lib != nil || p.Source == "" && len(p.Kernels) > 0 {
			return lib, key, 0, err
		}
	}
	key, fill, err := origin(ctx, p)
	if err != nil {
		return nil, "", 0, err
	}
	if lib = opened(key); lib != nil {
		return lib, key, 0, nil
	}
	start := time.Now()
	made, cached, err := produce(ctx, key+suffix, fill)
	if err != nil {
		return nil, "", 0, err
	}
	if !cached {
		took = time.Since(start)
	}
	lib, err = open(made, p)
	if err != nil && made.work == nil { // it was deleted since, or nothing in the cache may be executed
		if made, err = fresh(fill); err == nil {
			lib, err = open(made, p)
		}
	}
	if err != nil {
		return nil, "", 0, err
	}
	keep(key, lib)
	return lib, key, took, nil
}

func keep(key string, lib *library) {
	libraries.Lock()
	defer libraries.Unlock()
	libraries.open[key] = lib
}

// reopened is the object that p names, from the cache. The error is errGone where it is not there
// or damaged.
func reopened(p *artifact.Program) (*library, error) {
	if lib := opened(p.Object); lib != nil {
		return lib, nil
	}
	dir := cacheDir()
	kept := filepath.Join(dir, p.Object+suffix)
	if dir == "" || filepath.Base(p.Object) != p.Object || !local.Kept(kept) {
		return nil, errGone
	}
	lib, err := open(&product{path: kept}, p)
	if err != nil {
		return nil, errGone
	}
	keep(p.Object, lib)
	return lib, nil
}

// origin is the key of p's shared object, and a function that makes it.
func origin(ctx context.Context, p *artifact.Program) (key string, fill func(dir, path string) error, err error) {
	if p.Foreign {
		return "", nil, ErrForeign
	}
	host, ok := Host()
	if !ok {
		return "", nil, errHost
	}
	if m, ok := imageFor(p); ok {
		sum := sha256.Sum256(m.Code)
		return "image-" + hex.EncodeToString(sum[:16]), func(_, path string) error { return os.WriteFile(path, m.Code, 0o700) }, nil
	}
	arch := host
	if p.Arch() != "" && runsHere(p.Arch()) {
		arch = p.Arch()
	}
	u, err := newUnit(ctx, p, arch, false)
	if err != nil {
		return "", nil, err
	}
	return u.key(), u.fill(ctx), nil
}

// imageFor is the image of p for the highest level that this machine's processor runs.
func imageFor(p *artifact.Program) (best artifact.Image, ok bool) {
	for _, m := range p.Images {
		if runsHere(m.Arch) && (!ok || m.Arch > best.Arch) {
			best, ok = m, true
		}
	}
	return best, ok
}

// open opens a shared object and checks that it is p's. A temporary file is deleted: the
// process has it mapped.
func open(made *product, p *artifact.Program) (*library, error) {
	defer made.remove()
	l, err := dylib.Open(made.path)
	if err != nil {
		return nil, err
	}
	lib := &library{}
	if err := l.BindAll(lib); err != nil {
		return nil, err
	}
	if v := lib.Version(); v != apiVersion {
		return nil, fmt.Errorf("@%s has machine code of version %d, and this dmir runs version %d: compile it again", p.Name, v, apiVersion)
	}
	if int(lib.Inputs()) != len(p.Inputs) || int(lib.Outputs()) != len(p.Outputs) || int(lib.Steps()) != len(p.Steps) {
		return nil, fmt.Errorf("@%s has machine code of another program", p.Name)
	}
	return lib, nil
}
