package llvm

import (
	"context"
	"errors"
	"io"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/native"
)

// Name is the name of the target.
const Name = artifact.LLVM

// Backend is the target of processors.
type Backend struct{}

// Name is "llvm".
func (Backend) Name() string { return Name }

// Generator is the code generator with the options of one build.
func (Backend) Generator(o target.Options) target.Generator { return codegen{o} }

// Makes reports whether arch is a level of processors.
func (Backend) Makes(arch string) bool { return native.ValidArch(arch) }

// DefaultArch is this machine's level.
func (Backend) DefaultArch() string {
	if arch, ok := native.Host(); ok {
		return arch
	}
	return "x86-64-v3"
}

// Headers are none: kernels declare what they use.
func (Backend) Headers() []artifact.Header { return nil }

// Compile makes a shared object with clang.
func (Backend) Compile(ctx context.Context, p *artifact.Program, arch string) (*target.Code, error) {
	r, err := native.Compile(ctx, p, arch)
	if err != nil {
		return nil, err
	}
	assembly := func(ctx context.Context) (string, error) { return native.Assembly(ctx, p, arch) }
	return &target.Code{Image: r.Image, Compiler: r.Compiler, Usage: r.Usage, Assembly: assembly}, nil
}

// Disassemble is not offered, since the assembly says the same.
func (Backend) Disassemble(context.Context, artifact.Image) (string, error) {
	return "", errors.New("the code of processors is shown as assembly: --emit asm")
}

// Export writes the kernels as they were generated, and the header of p's C interface.
func (Backend) Export(p *artifact.Program, source, header io.Writer) error {
	if source != nil {
		if _, err := io.WriteString(source, p.Source); err != nil {
			return err
		}
	}
	if header == nil {
		return nil
	}
	_, err := io.WriteString(header, native.Header(p))
	return err
}

// Forms are LLVM IR and what clang makes of it.
func (Backend) Forms() []target.Form {
	return []target.Form{{Name: "llvm", Ending: ".ll"}, {Name: "asm", Ending: ".s"}, {Name: "obj", Ending: ".o", Binary: true}, {Name: "so", Ending: ".so", Binary: true}, {Name: "c-header", Ending: ".h"}}
}

// Emit writes p in one of the forms.
func (Backend) Emit(ctx context.Context, p *artifact.Program, name, arch string) ([]byte, error) {
	switch name {
	case "llvm":
		return []byte(p.Source), nil
	case "asm":
		text, err := native.Assembly(ctx, p, arch)
		return []byte(text), err
	case "obj":
		return native.Object(ctx, p, arch)
	case "so":
		r, err := native.Compile(ctx, p, arch)
		if err != nil {
			return nil, err
		}
		return r.Code, nil
	}
	return []byte(native.Header(p)), nil
}

// HostMachine is this machine's processor, as it was measured or else a generic one.
func (Backend) HostMachine() *machine.Machine { return machine.Host() }

// Devices is the processor.
func (Backend) Devices() []device.Kind { return native.Kinds() }

// Tools is clang.
func (Backend) Tools() []device.Tool {
	return []device.Tool{{
		Name: "clang", Adds: "programs compiled for this machine's processor; without it the reference executor runs them", Get: native.Get,
		Probe: func(ctx context.Context) (string, error) {
			c, err := native.Find(ctx)
			var none *native.NotFound
			if errors.As(err, &none) {
				return "", nil
			}
			if err != nil {
				return "", err
			}
			return c.Path + " (" + c.Version + ")", nil
		},
	}}
}

// Install installs nothing: clang comes with the system.
func (Backend) Install(context.Context) ([]device.Installed, error) { return nil, nil }

// TilesFile is none: blocks follow from shapes.
func (Backend) TilesFile() (string, error) {
	return "", errors.New("processors have no measured tiles")
}

// KeepTiles has nothing to keep.
func (b Backend) KeepTiles(string, map[string]string) error { _, err := b.TilesFile(); return err }

// codegen is the code generator with the options of one build.
type codegen struct{ options target.Options }

func (c codegen) on(u *pass.Unit) generator {
	g := generator{c.options.Arch, u.Machine}
	if g.arch == "" {
		g.arch = Backend{}.DefaultArch()
	}
	return g
}

// Has reports whether there are kernels for o: attentions, and their gradients, and products of sparse matrices.
func (codegen) Has(o *ir.Op, _ *machine.Machine) bool {
	return op.Of(o).Family == op.SparseTensors || op.Of(o).Family == op.Attention && attends(o)
}

// Times is what kernels take.
func (c codegen) Times(u *pass.Unit) (target.Times, error) {
	times := assemble.Times(c.on(u))
	times.Of = c.on(u)
	return times, nil
}

// Plan plans each kernel of u's function.
func (c codegen) Plan(u *pass.Unit) error { return assemble.PlanPass(u, c.on(u)) }

// Program is the artifact of u's function.
func (c codegen) Program(u *pass.Unit) (*artifact.Program, error) {
	return assemble.Generate(u, c.on(u))
}
