package cuda_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/cuda"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/syntax/source"
)

const placed = `func.func @f(%x: tensor<64x128xf32>, %w: tensor<128x128xf32>, %bias: tensor<128xf32>) -> tensor<64x128xf32> {
  %m = dm.matmul %x, %w : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %n = dm.add %m, %bias : (tensor<64x128xf32>, tensor<128xf32>) -> tensor<64x128xf32>

  %o = dm.tanh %n : tensor<64x128xf32>
  %s = dm.softmax %o, dim = 1 : tensor<64x128xf32>
  // nothing

  %e = dm.sqrt %s : tensor<64x128xf32>
  return %e : tensor<64x128xf32>
}
`

// compiled is the program after all passes for an architecture.
func compiled(t *testing.T, text, arch string) *artifact.Program {
	t.Helper()
	p := program.Load(source.New("placed.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Fatalf("%s %s", d.Code, d.Message)
	}
	m := p.Modules[0]
	u := &pass.Unit{Module: m, Func: m.Funcs[0], Machine: p.Target}
	g := cuda.Backend{}.Generator(target.Options{Arch: arch})
	if err := pass.Run(u, pipeline.For(g), nil); err != nil {
		t.Fatal(err)
	}
	out, err := g.Program(u)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	fileLine = regexp.MustCompile(`^\s*\.file\s+(\d+) "([^"]*)"`)
	locLine  = regexp.MustCompile(`^\s*\.loc\s+(\d+) (\d+) \d+(?:, function_name [^,]+, inlined_at (\d+) (\d+) \d+)?`)
	entry    = regexp.MustCompile(`^\.visible \.entry (\w+)\(`)
)

// The line table of the machine code, which profilers and debuggers read, maps each
// instruction of a kernel to a line that the kernel came from or to one of the
// prelude, and those of an op's function to the op's line.
func TestLineTable(t *testing.T) {
	nvrtctest.Compiler(t)
	p := compiled(t, placed, "sm_80")
	r, err := nvrtc.CompileProgram(t.Context(), p, "sm_80", nvrtc.Options{LineInfo: true})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(r.PTX) { // they stand at the end
		if m := fileLine.FindStringSubmatch(line); m != nil {
			files[m[1]] = m[2]
		}
	}
	own := map[string]map[int]bool{} // lines of the program, by kernel
	kernel, at := "", 0
	of := map[string]map[int]bool{} // those that an instruction stands for
	for line := range strings.Lines(r.PTX) {
		if m := entry.FindStringSubmatch(line); m != nil {
			kernel = m[1]
			own[kernel] = map[int]bool{}
		}
		if m := locLine.FindStringSubmatch(line); m != nil {
			at = 0
			for _, place := range [][]string{m[1:3], m[3:5]} {
				if strings.HasSuffix(files[place[0]], "placed.dmir") {
					at, _ = strconv.Atoi(place[1])
					own[kernel][at] = true
				} else if name := files[place[0]]; place[0] != "" && !strings.HasSuffix(name, ".cuh") {
					t.Errorf("%s: a line of %q", kernel, name)
				}
			}
		}
		for _, op := range []string{"sqrt.", "ex2."} {
			if strings.HasPrefix(strings.TrimSpace(line), op) && at > 0 {
				if of[op] == nil {
					of[op] = map[int]bool{}
				}
				of[op][at] = true
			}
		}
	}
	all := map[int]bool{}
	for _, k := range p.Kernels {
		if len(own[k.Name]) == 0 {
			t.Errorf("%s has no lines of the program", k.Name)
		}
		for line := range own[k.Name] {
			all[line] = true
			if !slices.Contains(k.Lines, line) {
				t.Errorf("%s: an instruction stands for line %d; it came from %v", k.Name, line, k.Lines)
			}
		}
	}
	for _, line := range []int{2, 3, 5, 6, 9} {
		if !all[line] {
			t.Errorf("no instruction stands for line %d", line)
		}
	}
	if got := of["sqrt."]; len(got) != 1 || !got[9] {
		t.Errorf("square roots stand for the lines %v, not for line 9", got)
	}
	if got := of["ex2."]; !got[6] || got[2] || got[3] || got[9] {
		t.Errorf("powers stand for the lines %v, not for line 6 and that of tanh", got)
	}
}
