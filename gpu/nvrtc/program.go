package nvrtc

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"dmir/base/escape"
	"dmir/base/parallel"
	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

// CompileProgram compiles the kernels of a program for an architecture, with the
// headers that it holds or else the prelude that is built in: each by itself, on as many
// cores as there are, where they are several. What was compiled before comes from the
// cache. The program stays as it is; see Result.Image.
func CompileProgram(ctx context.Context, p *artifact.Program, arch string, opts Options) (*Result, error) {
	c, err := Find()
	if err != nil {
		return nil, err
	}
	headers := p.Headers
	if headers == nil {
		headers = DeviceHeaders()
	}
	if opts.Name == "" {
		opts.Name = escape.FileName(escape.Identifier(p.Name)) + ".cu" // also a file and an argument of nvcc
	}
	sources := kernelSources(p)
	if c.lib == nil || len(sources) < 2 { // nvcc reads its own headers each time
		sources = []numbered{wholeSource(p)}
	} else {
		opts.Jobs = 1
	}
	results, failed := make([]*Result, len(sources)), make([]error, len(sources))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	done := 0
	parallel.Each(runtime.GOMAXPROCS(0), len(sources), func(i int) {
		results[i], failed[i] = sources[i].compile(ctx, c, headers, arch, opts)
		mu.Lock()
		defer mu.Unlock()
		if done++; failed[i] != nil {
			cancel() // the others
		} else if opts.Progress != nil && len(sources) > 1 {
			opts.Progress(p.Kernels[i].Name, done, len(sources))
		}
	})
	if err := firstFailure(failed); err != nil {
		return nil, err
	}
	return joined(results), nil
}

// firstFailure is the first error, of those that only the failure of another kernel has caused the last
// choice.
func firstFailure(failed []error) (first error) {
	for _, err := range failed {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// joined is the result for a program of those of its kernels.
func joined(results []*Result) *Result {
	if len(results) == 1 {
		return results[0]
	}
	all := *results[0]
	all.Kernels, all.PTX, all.Log = nil, "", ""
	var code [][]byte
	for _, r := range results {
		code = append(code, r.Cubin)
		all.PTX += r.PTX
		all.Log += r.Log
		all.Kernels = append(all.Kernels, r.Kernels...)
		all.Cached = all.Cached && r.Cached
	}
	slices.SortFunc(all.Kernels, func(a, b Usage) int { return strings.Compare(a.Name, b.Name) })
	if all.Cubin != nil {
		all.Cubin = artifact.Join(code)
	}
	return &all
}

// numbered is a source with the numbers, from 1, of its lines in that of the program.
type numbered struct {
	text  string
	lines []int
}

// wholeSource is the source of all kernels.
func wholeSource(p *artifact.Program) numbered {
	text, lines := spread(p.Source)
	return numbered{text, lines}
}

// kernelSources are the sources of each kernel alone, with what stands before the first; none where
// something else stands between or behind kernels.
func kernelSources(p *artifact.Program) (out []numbered) {
	lines := strings.SplitAfter(p.Source, "\n")
	if len(p.Kernels) == 0 || p.Kernels[0].First < 1 {
		return nil
	}
	head := p.Kernels[0].First - 1
	at := head // lines that are accounted for
	for _, k := range p.Kernels {
		if k.First <= at || k.Last < k.First || k.Last > len(lines) || strings.TrimSpace(strings.Join(lines[at:k.First-1], "")) != "" {
			return nil
		}
		at = k.Last
	}
	if strings.TrimSpace(strings.Join(lines[at:], "")) != "" {
		return nil
	}
	for _, k := range p.Kernels {
		text, own := spread(strings.Join(lines[:head], "") + strings.Join(lines[k.First-1:k.Last], ""))
		for i, n := range own {
			if n > head {
				own[i] = n - head + k.First - 1
			}
		}
		out = append(out, numbered{text, own})
	}
	return out
}

// compile compiles the source. Messages have the lines of the program's.
func (n numbered) compile(ctx context.Context, c *Compiler, headers []Header, arch string, opts Options) (*Result, error) {
	r, err := c.Compile(ctx, n.text, headers, arch, opts)
	var failed *CompileError
	if errors.As(err, &failed) {
		for i := range failed.Messages {
			if m := &failed.Messages[i]; m.Generated > 0 && m.Generated <= len(n.lines) {
				m.Generated = n.lines[m.Generated-1]
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
