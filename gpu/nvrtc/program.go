package nvrtc

import (
	"context"
	"strings"

	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

// CompileProgram compiles the kernels of a program for an architecture, with the
// headers that it holds or else the prelude that is built in. The program stays
// as it is; see Result.Image.
func CompileProgram(ctx context.Context, p *artifact.Program, arch string, opts Options) (*Result, error) {
	headers := p.Headers
	if headers == nil {
		headers = DeviceHeaders()
	}
	if opts.Name == "" {
		opts.Name = p.Name + ".cu"
	}
	return Compile(ctx, p.Source, headers, arch, opts)
}

// DeviceHeaders are the parts of the prelude that are for devices: all but the
// emulation.
func DeviceHeaders() []artifact.Header {
	var out []artifact.Header
	for _, f := range prelude.Files() {
		if !strings.HasPrefix(f.Name, "emu") {
			out = append(out, f)
		}
	}
	return out
}

// Image is the machine code as a program holds it.
func (r *Result) Image() artifact.Image { return artifact.Image{Arch: r.Arch, Cubin: r.Cubin} }
