package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"dmir/analysis/units"
	"dmir/gpu/cuda"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/internal/escape"
)

type doctorCmd struct {
	InstallNvrtc bool `help:"Fetch NVRTC, NVIDIA's run-time compiler, and nvdisasm with pip into dmir's folder in the user's cache."`
}

// tool is something dmir can use but does not need.
type tool struct {
	name string
	adds string
	get  string
	// probe returns what is installed, "" for nothing; an error is something that is
	// there and of no use.
	probe func(context.Context) (found string, err error)
}

func tools() []tool {
	return []tool{
		{"CUDA driver", "a GPU to run on", "install the NVIDIA driver", driverFound},
		{"GPU", "measured times", "a card of NVIDIA's, compute capability 8.0 or newer", gpusFound},
		{"NVRTC", "compilation of CUDA kernels without a GPU or toolkit", "dmir doctor --install-nvrtc (or pip install nvidia-cuda-nvrtc)", compilerFound},
		{"nvdisasm", "machine code as text (--emit sass)", nvrtc.DisassemblerHint, disassemblerFound},
		{"C++ compiler", "the emulator, which runs kernels without a GPU", "apt-get install g++", hostCompilerFound},
		{"clang", "optimised native code on the CPU", "apt-get install clang", onPath("--version", "clang", "clang-22", "clang-19", "clang-16", "clang-14")},
		{"mlir-opt", "the interoperability tests with MLIR", "apt-get install mlir-22-tools", onPath("--version", "mlir-opt-22", "mlir-opt")},
	}
}

// Run lists the tools. None is needed, so the status is 0 whatever is missing.
func (c doctorCmd) Run(a *app) error {
	if c.InstallNvrtc {
		found, err := nvrtc.Install(a.ctx)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return err
			}
			return &failure{"DM614", "--install-nvrtc", err.Error(), "pip install nvidia-cuda-nvrtc into any Python environment, or name a library in DMIR_NVRTC"}
		}
		escape.Fprintf(a.stdout, "installed %s\n  → %s\n", found.Version, found.Path)
		if tool, err := nvrtc.Disassembler(); err == nil {
			escape.Fprintf(a.stdout, "  → %s\n", tool)
		}
		return nil
	}
	escape.Fprintf(a.stdout, "dmir %s on %s/%s, %d cores\n\n", version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	escape.Fprintf(w, "reference executor\tready\tbuilt in: runs every op, accumulates in f32 or wider\n")
	for _, t := range tools() {
		t.report(a.ctx, w)
	}
	return w.Flush()
}

// report writes a line. A tool that does not answer within ten seconds, such as
// a driver whose card hangs, is reported and left alone.
func (t tool) report(ctx context.Context, w io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	type answer struct {
		found string
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		found, err := t.probe(ctx)
		answers <- answer{found, err}
	}()
	select {
	case got := <-answers:
		switch {
		case got.err != nil:
			escape.Fprintf(w, "%s	unusable	%s\n", t.name, firstLineOf(got.err.Error()))
		case got.found != "":
			escape.Fprintf(w, "%s	found	%s\n", t.name, got.found)
		default:
			escape.Fprintf(w, "%s	not found	would add %s: %s\n", t.name, t.adds, t.get)
		}
	case <-ctx.Done():
		escape.Fprintf(w, "%s	no answer	it was asked for ten seconds\n", t.name)
	}
}

// onPath probes for the first of names on PATH and gives what it says of its
// version.
func onPath(flag string, names ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		for _, n := range names {
			path, err := exec.LookPath(n)
			if err != nil {
				continue
			}
			out, _ := exec.CommandContext(ctx, path, flag).Output()
			first := ""
			for line := range strings.Lines(string(out)) {
				if line = strings.TrimSpace(line); strings.Contains(strings.ToLower(line), "version") || strings.Contains(line, ", release ") {
					return path + " (" + line + ")", nil
				}
				if first == "" {
					first = line
				}
			}
			if first != "" {
				return path + " (" + first + ")", nil
			}
			return path, nil
		}
		return "", nil
	}
}

func driverFound(context.Context) (string, error) {
	v, err := cuda.DriverVersion()
	var missing *cuda.Missing
	if errors.As(err, &missing) {
		return "", nil
	}
	return "knows CUDA " + v, err
}

func gpusFound(context.Context) (string, error) {
	gpus, err := cuda.Devices()
	var missing *cuda.Missing
	if errors.As(err, &missing) {
		return "", nil
	}
	var out []string
	for _, g := range gpus {
		out = append(out, fmt.Sprintf("%s (%s, %s)", g.Name, g.Arch(), units.Bytes(g.Memory)))
	}
	return strings.Join(out, "; "), err
}

// compilerFound is the CUDA compiler: NVRTC, or nvcc in its place.
func compilerFound(context.Context) (string, error) {
	c, err := nvrtc.Find()
	var none *nvrtc.NotFound
	if errors.As(err, &none) && len(none.Tried) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	archs := ""
	if list := c.Archs(); len(list) > 0 {
		archs = fmt.Sprintf(" for sm_%d to sm_%d", list[0], list[len(list)-1])
	}
	return fmt.Sprintf("%s%s: %s (%s)", c.Version, archs, c.Path, c.Where), nil
}

// disassemblerFound is what prints machine code.
func disassemblerFound(ctx context.Context) (string, error) {
	path, err := nvrtc.Disassembler()
	if err != nil {
		return "", nil
	}
	return onPath("--version", path)(ctx)
}

// hostCompilerFound is what the emulator compiles with.
func hostCompilerFound(ctx context.Context) (string, error) {
	if err := emulator.Check(); err != nil {
		return "", nil
	}
	return onPath("--version", os.Getenv("CXX"), "c++", "clang++", "g++")(ctx)
}
