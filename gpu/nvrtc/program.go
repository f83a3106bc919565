package nvrtc

import (
	"context"
	"errors"
	"strings"

	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
	"dmir/internal/escape"
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
		opts.Name = escape.FileName(escape.Identifier(p.Name)) + ".cu" // also a file and an argument of nvcc
	}
	text, lines := spread(p.Source)
	r, err := Compile(ctx, text, headers, arch, opts)
	var failed *CompileError
	if errors.As(err, &failed) {
		for i := range failed.Messages {
			if m := &failed.Messages[i]; m.Generated > 0 && m.Generated <= len(lines) {
				m.Generated = lines[m.Generated-1]
			}
		}
	}
	return r, err
}

// spread is source with #line directives for C++: one before every line, since C++
// increments the number after each line. lines are the numbers, from 1, of its lines
// in source.
func spread(source string) (text string, lines []int) {
	var b strings.Builder
	directive, covered, n := "", false, 0 // covered: the next line has a directive
	for line := range strings.Lines(source) {
		n++
		switch code := strings.TrimLeft(line, " \t\r\n"); {
		case lineDirective.MatchString(line):
			directive, covered = strings.TrimRight(line, "\r\n")+"\n", true
		case code == "", code[0] == '#', strings.HasPrefix(code, "//"), directive == "":
			covered = false
		default:
			if !covered {
				b.WriteString(directive)
				lines = append(lines, n)
			}
			covered = strings.HasSuffix(strings.TrimRight(line, "\r\n"), "\\")
		}
		b.WriteString(line)
		lines = append(lines, n)
	}
	return b.String(), lines
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
func (r *Result) Image() artifact.Image { return artifact.Image{Arch: r.Arch, Code: r.Cubin} }
