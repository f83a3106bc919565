// Package nvrtc compiles CUDA C++ text to machine code: with NVIDIA's run-time
// compiler, opened as a shared library from wherever it is installed, or with
// nvcc where only that is installed. Results are cached on disk by content.
package nvrtc

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"dmir/base/tally"
	"dmir/gpu/artifact"
)

// Header is a text that the source may include by its name.
type Header = artifact.Header

// Options change how a source is compiled; the zero value is right for kernels
// that dmir writes.
type Options struct {
	// Name is the name of the source in the compiler's messages; the default is
	// "kernels.cu".
	Name string
	// Defines are macros, "NAME" or "NAME=value".
	Defines []string
	// LineInfo keeps the lines of #line in the machine code, for profilers and
	// for the reports of faults.
	LineInfo bool
	// MaxRegisters limits the registers of a thread; 0: as many as the launch
	// bounds allow.
	MaxRegisters int
	// Flags are further options of the compiler, such as "--use_fast_math".
	Flags []string
	// PTX ends at PTX, which is half of the work: there is no machine code.
	PTX bool
	// Jobs is how many threads may compile the kernels of one source, where the
	// compiler can; 0: one.
	Jobs int
	// Progress is called behind each kernel of a program whose kernels are compiled one by one.
	Progress func(kernel string, done, total int)
	// NoCache compiles without reading or writing the cache.
	NoCache bool
}

// Result is compiled code for one architecture.
type Result struct {
	Arch     string  // "sm_90a"
	Compiler string  // "NVRTC 13.5"
	Cubin    []byte  // an ELF file, what the driver loads; of a program artifact.Join of its kernels'; none by Options.PTX
	PTX      string  // the intermediate assembly that the machine code came from
	Log      string  // the compiler's messages, most of them warnings
	Kernels  []Usage // in the order of their names; none by Options.PTX
	Cached   bool    // read from disk
}

// Usage is what one kernel needs of the machine, as the assembler counted it.
type Usage = artifact.Usage

// Kernel is the usage of the kernel of this name, and whether there is one.
func (r *Result) Kernel(name string) (Usage, bool) {
	for _, k := range r.Kernels {
		if k.Name == name {
			return k, true
		}
	}
	return Usage{}, false
}

// Spilled lists the kernels that keep registers in memory.
func (r *Result) Spilled() []Usage {
	var out []Usage
	for _, k := range r.Kernels {
		if k.Spills() {
			out = append(out, k)
		}
	}
	return out
}

// Warnings are the lines of the log in which the compiler warns, or advises, as in "(C7510) Potential Performance Loss: wgmma.mma_async
// instructions are serialized".
func (r *Result) Warnings() (out []string) {
	for line := range strings.Lines(r.Log) {
		if warning.MatchString(line) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

var warning = regexp.MustCompile(`\bwarning\b|\(C\d+\)|Performance Loss`)

// Compile compiles a source for an architecture ("sm_80", "sm_90a", "sm_100")
// with the compiler that Find finds. A source that does not compile gives a
// *CompileError, an architecture that the compiler does not know an *ArchError,
// no compiler at all a *NotFound. It may be called from several
// goroutines; ctx ends a compilation that is under way.
func Compile(ctx context.Context, source string, headers []Header, arch string, opts Options) (*Result, error) {
	c, err := Find()
	if err != nil {
		return nil, err
	}
	return c.Compile(ctx, source, headers, arch, opts)
}

// Compile is the function Compile with the compiler c.
func (c *Compiler) Compile(ctx context.Context, source string, headers []Header, arch string, opts Options) (*Result, error) {
	if !ValidArch(arch) {
		return nil, &ArchError{arch, c.Version, "it is not an architecture; write sm_80, sm_90a or sm_100"}
	}
	if opts.Name == "" {
		opts.Name = "kernels.cu"
	}
	key := cacheKey(c.build(), source, headers, arch, opts)
	if !opts.NoCache {
		if r := readCache(key); r != nil {
			tally.Kept(tally.NVRTC)
			return r, nil
		}
	}
	tally.Made(tally.NVRTC)
	r, err := c.compile(ctx, source, headers, arch, opts)
	if err != nil {
		if failed, ok := err.(*CompileError); ok {
			c.place(ctx, failed, source, headers, arch, opts)
		}
		return nil, err
	}
	if !opts.NoCache {
		writeCache(key, r)
	}
	return r, nil
}

func (c *Compiler) compile(ctx context.Context, source string, headers []Header, arch string, opts Options) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.lib == nil {
		return c.nvcc(ctx, source, headers, arch, opts)
	}
	// More concurrent compilations than cores would only need more memory.
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer tally.Within(tally.NVRTC)()
	return c.lib.compile(ctx, c.Version, source, headers, arch, opts)
}

// ValidArch reports whether arch has the compiler's notation: "sm_80", "sm_90a". The
// compiler may still not support it.
func ValidArch(arch string) bool {
	digits, ok := strings.CutPrefix(arch, "sm_")
	digits = strings.TrimRight(digits, "af")
	return ok && len(digits) >= 2 && len(digits) <= 3 && strings.Trim(digits, "0123456789") == ""
}

// virtual is the architecture whose PTX becomes machine code of arch.
func virtual(arch string) string { return strings.Replace(arch, "sm_", "compute_", 1) }

// flags are the options that both compilers understand.
func flags(arch string, opts Options) []string {
	if opts.PTX {
		arch = virtual(arch)
	}
	out := []string{"--gpu-architecture=" + arch, "--std=c++17", "--ptxas-options=-v"}
	for _, d := range opts.Defines {
		out = append(out, "--define-macro="+d)
	}
	if opts.LineInfo {
		out = append(out, "--generate-line-info")
	}
	if opts.MaxRegisters > 0 {
		out = append(out, fmt.Sprintf("--maxrregcount=%d", opts.MaxRegisters))
	}
	return append(out, opts.Flags...)
}
