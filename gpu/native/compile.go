package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dmir/base/local"
	"dmir/gpu/artifact"
)

// Result is the code of a program for one architecture.
type Result struct {
	artifact.Image        // a shared object
	Compiler       string // "clang 14.0.6"
	Usage          []artifact.Usage
	Cached         bool
}

// Compile compiles p to a shared object for arch. Errors that are due to the program
// or to this machine have an artifact.Failure.
func Compile(ctx context.Context, p *artifact.Program, arch string) (*Result, error) {
	u, err := newUnit(ctx, p, arch, true)
	if err != nil {
		return nil, err
	}
	made, cached, err := u.build(ctx)
	if err != nil {
		return nil, err
	}
	defer made.remove()
	code, err := os.ReadFile(made.path)
	if err != nil {
		return nil, err
	}
	return &Result{artifact.Image{Arch: arch, Code: code}, u.clang.Version, usage(p), cached}, nil
}

// usage lists the kernels; a processor has no resources that they share.
func usage(p *artifact.Program) []artifact.Usage {
	var out []artifact.Usage
	for _, k := range p.Kernels {
		out = append(out, artifact.Usage{Name: k.Name})
	}
	return out
}

// Assembly is the assembly of p's kernels for arch.
func Assembly(ctx context.Context, p *artifact.Program, arch string) (string, error) {
	text, err := output(ctx, p, arch, "-S", kernelsFile)
	return original(string(text)), err
}

// OptimisedIR is the IR of p's kernels after clang's optimisation for arch.
func OptimisedIR(ctx context.Context, p *artifact.Program, arch string) (string, error) {
	text, err := output(ctx, p, arch, "-S", "-emit-llvm", kernelsFile)
	return original(string(text)), err
}

// Object is p as an object for arch to link into other programs, with all it needs
// but -lm and -lpthread.
func Object(ctx context.Context, p *artifact.Program, arch string) ([]byte, error) {
	return output(ctx, p, arch, "-r", "-nostdlib", kernelsFile, tableFile, runtimeFile)
}

// output runs clang on p with further arguments, and returns the file that it makes.
func output(ctx context.Context, p *artifact.Program, arch string, args ...string) ([]byte, error) {
	u, err := newUnit(ctx, p, arch, true)
	if err != nil {
		return nil, err
	}
	work, err := local.NewWork()
	if err != nil {
		return nil, err
	}
	defer work.Remove()
	path := filepath.Join(work.Dir, "out")
	if err := u.compile(ctx, work.Dir, path, args...); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// unit is a program that is compiled for one architecture.
type unit struct {
	clang *Clang
	files map[string][]byte
	flags []string
}

// shared are the arguments for a shared object. It is never unloaded, since its
// handlers of signals stay.
func shared() []string { return sharing([]string{kernelsFile, tableFile, runtimeFile}) }

// sharing are the arguments for a shared object of files.
func sharing(files []string) []string {
	if runtime.GOOS == "darwin" {
		return append([]string{"-shared"}, files...)
	}
	return slices.Concat([]string{"-shared", "-Wl,-z,nodelete", "-Wl,-Bsymbolic", "-Wl,-z,defs"}, files, []string{"-lm", "-lpthread"})
}

func newUnit(ctx context.Context, p *artifact.Program, arch string, inside bool) (*unit, error) {
	flags, err := flags(arch)
	if err != nil {
		return nil, err
	}
	if !inside {
		flags = append(flags, "-DCONSTANTS_OUTSIDE")
	}
	files, err := sources(p, inside)
	if err != nil {
		return nil, err
	}
	clang, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	return &unit{clang, files, flags}, nil
}

// flags are clang's for an architecture. Kernels say themselves which operations may
// be fused.
func flags(arch string) ([]string, error) {
	of := family(arch)
	if of == "" {
		return nil, &ArchError{arch}
	}
	out := []string{"-O3", "-std=gnu11", "-w", "-fPIC", "-fvisibility=hidden", "-ffp-contract=on", "-march=" + arch}
	if of != runtime.GOARCH {
		out = append(out, "--target="+triples[of])
	}
	if host, _ := Host(); arch == host {
		out = append(out, "-mtune=native")
	}
	return out, nil
}

// CompileC runs c in dir with the flags of kernels for this machine's processor and
// further arguments.
func (c *Clang) CompileC(ctx context.Context, dir string, args ...string) error {
	host, ok := Host()
	if !ok {
		return errHost
	}
	flags, err := flags(host)
	if err != nil {
		return err
	}
	_, err = command(ctx, dir, c.Path, slices.Concat(flags, args)...)
	return err
}

// key is a hash of everything that the shared object depends on.
func (u *unit) key() string { return u.hash(shared(), slices.Sorted(maps.Keys(u.files))) }

// hash is that of what clang makes of files with args.
func (u *unit) hash(args, files []string) string {
	h := sha256.New()
	part := func(b []byte) { fmt.Fprintf(h, "%d:%s", len(b), b) }
	part([]byte(u.clang.banner))
	part([]byte(strings.Join(slices.Concat(u.flags, args), "\x00")))
	for _, name := range files {
		part([]byte(name))
		part(u.files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// build returns the shared object, compiled or from the cache.
func (u *unit) build(ctx context.Context) (made *product, cached bool, err error) {
	return produce(ctx, u.key()+suffix, u.fill(ctx))
}

// fill makes the shared object at path, with dir to work in.
func (u *unit) fill(ctx context.Context) func(dir, path string) error {
	return func(dir, path string) error { return u.compileParts(ctx, dir, path) }
}

// compile runs clang in dir, which it fills with the files.
func (u *unit) compile(ctx context.Context, dir, path string, args ...string) error {
	if err := u.write(dir); err != nil {
		return err
	}
	return u.run(ctx, dir, path, args...)
}

// write fills dir with the files.
func (u *unit) write(dir string) error {
	for name, text := range u.files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run runs clang in dir for the file at path.
func (u *unit) run(ctx context.Context, dir, path string, args ...string) error {
	out, err := command(ctx, dir, u.clang.Path, slices.Concat(u.flags, []string{"-o", path}, args)...)
	var tool *ToolError
	if errors.As(err, &tool) && place.Match(out) {
		return &CompileError{Compiler: u.clang.Version, Output: original(string(out))}
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return &ToolError{u.clang.Path + " ended without an error and without output"}
	}
	return nil
}
