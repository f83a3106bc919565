package cuda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/compile/assemble"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/device"
	"dmir/gpu/device/nvidia"
	"dmir/gpu/emulator"
	"dmir/gpu/export"
	"dmir/gpu/nvrtc"
)

// Backend is the target of NVIDIA GPUs and of the emulator, which runs the same
// code.
type Backend struct{}

// Name is "cuda".
func (Backend) Name() string { return "cuda" }

// Generator is the code generator with the options of one build.
func (Backend) Generator(o target.Options) target.Generator { return codegen{o} }

// Makes reports whether arch is an architecture in the notation of NVIDIA's
// compilers.
func (Backend) Makes(arch string) bool { return nvrtc.ValidArch(arch) }

// DefaultArch is the oldest architecture that the kernels run on.
func (Backend) DefaultArch() string { return "sm_80" }

// Headers are the prelude without the emulation.
func (Backend) Headers() []artifact.Header { return nvrtc.DeviceHeaders() }

// Compile makes machine code with NVRTC or nvcc.
func (b Backend) Compile(ctx context.Context, p *artifact.Program, arch string) (*target.Code, error) {
	return b.CompileStepwise(ctx, p, arch, nil)
}

// CompileStepwise is Compile, with progress.
func (Backend) CompileStepwise(ctx context.Context, p *artifact.Program, arch string, progress func(kernel string, done, total int)) (*target.Code, error) {
	r, err := nvrtc.CompileProgram(ctx, p, arch, nvrtc.Options{LineInfo: true, Jobs: runtime.GOMAXPROCS(0), Progress: progress})
	if err != nil {
		return nil, err
	}
	return &target.Code{Image: r.Image(), Compiler: r.Compiler, Usage: r.Kernels, Assembly: func(context.Context) (string, error) { return r.PTX, nil }}, nil
}

// Disassemble prints machine code with nvdisasm or cuobjdump.
func (Backend) Disassemble(ctx context.Context, code artifact.Image) (string, error) {
	return nvrtc.Disassemble(ctx, code.Code)
}

// Export writes p as CUDA C++ with a C entry point, and its header.
func (Backend) Export(p *artifact.Program, source, header io.Writer) error {
	if source != nil {
		if err := export.Source(source, p); err != nil {
			return err
		}
	}
	if header == nil {
		return nil
	}
	return export.Header(header, p)
}

// Devices are the GPUs and the emulator.
func (Backend) Devices() []device.Kind { return nvidia.Kinds() }

// TilesFile is a file in the user's cache.
func (Backend) TilesFile() (string, error) {
	dir, err := nvrtc.CacheDir()
	return filepath.Join(dir, "tiles.json"), err
}

// KeepTiles adds the fastest tiles to a file.
func (Backend) KeepTiles(file string, fastest map[string]string) error {
	choices, err := ReadChoices(file)
	if err != nil {
		return err
	}
	for product, tile := range fastest {
		if !choices.Put(product, tile) {
			return fmt.Errorf("there is no tile %q", tile)
		}
	}
	return choices.Write(file)
}

// Install fetches NVRTC and nvdisasm with pip.
func (Backend) Install(ctx context.Context) ([]device.Installed, error) {
	found, err := nvrtc.Install(ctx)
	if err != nil {
		return nil, err
	}
	out := []device.Installed{{Version: found.Version, Path: found.Path}}
	if tool, err := nvrtc.Disassembler(); err == nil {
		out = append(out, device.Installed{Path: tool})
	}
	return out, nil
}

// Tools are the driver, NVIDIA's compilers and the emulator's compiler.
func (Backend) Tools() []device.Tool {
	return []device.Tool{
		{Name: "CUDA driver", Adds: "a GPU to run on", Get: "install the NVIDIA driver", Probe: driverFound},
		{Name: "GPU", Adds: "measured times", Get: "a card of NVIDIA's, compute capability 8.0 or newer", Probe: gpusFound},
		{Name: "NVRTC", Adds: "compilation of CUDA kernels without a GPU or toolkit", Get: "dmir doctor --install-nvrtc (or pip install nvidia-cuda-nvrtc)", Probe: compilerFound},
		{Name: "nvdisasm", Adds: "machine code as text (--emit sass)", Get: nvrtc.DisassemblerHint, Probe: disassemblerFound},
		{Name: "C++ compiler", Adds: "the emulator, which runs kernels without a GPU", Get: "apt-get install g++", Probe: hostCompilerFound},
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

// compilerFound is the CUDA compiler: NVRTC, or nvcc.
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

// disassemblerFound is the disassembler of machine code.
func disassemblerFound(ctx context.Context) (string, error) {
	path, err := nvrtc.Disassembler()
	if err != nil {
		return "", nil
	}
	return device.OnPath("--version", path)(ctx)
}

// hostCompilerFound is the compiler of the emulator.
func hostCompilerFound(ctx context.Context) (string, error) {
	if err := emulator.Check(); err != nil {
		return "", nil
	}
	return device.OnPath("--version", os.Getenv("CXX"), "c++", "clang++", "g++")(ctx)
}

// codegen is the code generator with the options of one build.
type codegen struct{ options target.Options }

// target is the Target of u's options and machine.
func (c codegen) target(u *pass.Unit) (Target, error) {
	t := Target{Arch: c.options.Arch, Machine: on(u.Machine, c.options.Arch), Rank: c.options.TileRank}
	if file := c.options.TilesFile; file != "" {
		var err error
		if t.Tiles, err = ReadChoices(file); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Has reports whether there are kernels for o, of attentions for the gradient as well, and of products with 2:4 operands faster ones than
// for what they are written out as.
func (c codegen) Has(o *ir.Op, m *machine.Machine) bool {
	if op.IsStructured(o) {
		return Target{Arch: c.options.Arch, Machine: on(m, c.options.Arch)}.structured(o)
	}
	if o.Name == op.Prefix+"segment_dense_product" {
		_, ok := denseProductOf(o)
		return ok
	}
	return op.Of(o).Family == op.Attention && Attends(o, on(m, c.options.Arch))
}

// Plan chooses how each kernel of u's body runs.
func (c codegen) Plan(u *pass.Unit) error {
	t, err := c.target(u)
	if err != nil {
		return err
	}
	return assemble.PlanPass(u, assembler{t})
}

// Program is the artifact of u's function, on which all passes have run.
func (c codegen) Program(u *pass.Unit) (*artifact.Program, error) {
	return assemble.Generate(u, assembler{Target{Arch: c.options.Arch, Machine: on(u.Machine, c.options.Arch)}})
}
