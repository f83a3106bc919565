// Package target is the interface of a back end: the questions of passes, the
// code of a scheduled function, its tool chain and its devices. Package all
// registers the back ends of this build.
package target

import (
	"context"
	"io"
	"slices"

	"dmir/analysis/machine"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// Target is a back end.
type Target interface {
	Name() string
	// Generator is the code generator with the options of one build.
	Generator(o Options) Generator

	// Makes reports whether arch is in the notation of this target's
	// architectures.
	Makes(arch string) bool
	// DefaultArch is the architecture of code where none is given.
	DefaultArch() string
	// Headers are the texts that the source of a program includes.
	Headers() []artifact.Header
	// Compile compiles p to machine code for an architecture. p is not changed.
	// Errors that are due to the program or to the machine have an
	// artifact.Failure.
	Compile(ctx context.Context, p *artifact.Program, arch string) (*Code, error)
	// Disassemble returns machine code as text.
	Disassemble(ctx context.Context, code artifact.Image) (string, error)
	// Export writes p as a source file with a C entry point, and the header that
	// declares it; either writer may be nil.
	Export(p *artifact.Program, source, header io.Writer) error

	// Devices are the kinds of devices that run the target's programs.
	Devices() []device.Kind
	// Tools are the programs and libraries that the target uses and that are
	// installed separately.
	Tools() []device.Tool
	// Install fetches the tool chain and returns what it installed.
	Install(ctx context.Context) ([]device.Installed, error)

	// TilesFile is the file of the tiles that were measured for this user.
	TilesFile() (string, error)
	// KeepTiles adds the fastest tiles, by artifact.Step.Product, to a file.
	KeepTiles(file string, fastest map[string]string) error
}

// Hosted is a target whose programs run on this machine's processor, which predicted
// times and plans are for unless the program names a processor itself.
type Hosted interface {
	Target
	HostMachine() *machine.Machine
}

// Machine is the machine that t plans for where m is asked for.
func Machine(t Target, m *machine.Machine) *machine.Machine {
	if h, ok := t.(Hosted); ok && (m == nil || !m.CPU) {
		return h.HostMachine()
	}
	return m
}

// Stepwise is a target that compiles kernel by kernel, and says which.
type Stepwise interface {
	Target
	CompileStepwise(ctx context.Context, p *artifact.Program, arch string, progress func(kernel string, done, total int)) (*Code, error)
}

// Emitter is a target that writes programs in other forms as well.
type Emitter interface {
	Target
	// Forms are those forms, by the names of --emit.
	Forms() []Form
	// Emit is p in the form called name, for an architecture.
	Emit(ctx context.Context, p *artifact.Program, name, arch string) ([]byte, error)
}

// Form is a form that programs are written in.
type Form struct {
	Name   string // of --emit
	Ending string // of files: ".ll"
	Binary bool   // it is no text
}

// Emitting is the target that writes the form called name, nil where none does.
func Emitting(name string) Emitter {
	for _, t := range targets {
		if e, ok := t.(Emitter); ok && slices.ContainsFunc(e.Forms(), func(f Form) bool { return f.Name == name }) {
			return e
		}
	}
	return nil
}

// Options are the choices of one build. Only the target reads them.
type Options struct {
	Arch string // "sm_90a"; empty for portable code
	// TilesFile holds measured tiles of contractions; empty: the model chooses.
	TilesFile string
	// TileRank is the rank in the model's order of the tiles to choose, 1 for the
	// best, to measure them; 0: the default choice.
	TileRank int
}

// Generator generates the code of functions.
type Generator interface {
	// Has reports whether there are kernels on m for o: a dm.attention, and its
	// gradient, or an op of the family of sparse tensors. Without them the ops are written out.
	Has(o *ir.Op, m *machine.Machine) bool
	// Times is what the kernels that it would generate take on the machine of u.
	Times(u *pass.Unit) (Times, error)
	// Plan plans each kernel of u's function: it records its tile, the size of
	// its scratch memory, and the bytes that its launches move through that.
	Plan(u *pass.Unit) error
	// Program is the code of u's function, on which all passes have run, with
	// predicted times for the machine of u.
	Program(u *pass.Unit) (*artifact.Program, error)
}

// Code is the machine code of a program for one architecture.
type Code struct {
	artifact.Image
	Compiler string
	Usage    []artifact.Usage // of each kernel
	// Assembly is the intermediate assembly that the machine code came from. It may take a
	// compilation of its own.
	Assembly func(ctx context.Context) (string, error)
}

// Kernel is the usage of the kernel with this name; zero where there is none.
func (c *Code) Kernel(name string) artifact.Usage {
	if i := slices.IndexFunc(c.Usage, func(u artifact.Usage) bool { return u.Name == name }); i >= 0 {
		return c.Usage[i]
	}
	return artifact.Usage{}
}

var targets []Target

// Register adds a target and its devices. The first one is the default.
func Register(t Target) {
	targets = append(targets, t)
	device.Register(t.Devices()...)
}

// All are the registered targets.
func All() []Target { return slices.Clone(targets) }

// Named is the target of programs whose artifact.Program.Target is name, nil where there
// is none.
func Named(name string) Target {
	if i := slices.IndexFunc(targets, func(t Target) bool { return t.Name() == name }); i >= 0 {
		return targets[i]
	}
	return nil
}

// For is the target that makes code for an architecture: the default where arch
// is empty or no target's.
func For(arch string) Target {
	if len(targets) == 0 {
		panic("target: none is registered; import compile/target/all")
	}
	if i := slices.IndexFunc(targets, func(t Target) bool { return t.Makes(arch) }); i >= 0 {
		return targets[i]
	}
	return targets[0]
}
