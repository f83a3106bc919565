package cuda_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/compile/cuda/audit"
	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/ptx/ptxtest"
	"dmir/gpu/sass"
	"dmir/testkit/need"
)

// moving are programs that change which dimension is contiguous.
func moving(t *testing.T) map[string]string {
	t.Helper()
	whole, err := os.ReadFile("testdata/transpose.dmir")
	if err != nil {
		t.Fatal(err)
	}
	of := func(from, order, to string) string {
		return fmt.Sprintf("func.func @main(%%x: tensor<%[1]s>) -> tensor<%[3]s> {\n  %%y = dm.transpose %%x, dims = [%[2]s] : (tensor<%[1]s>) -> tensor<%[3]s>\n  return %%y : tensor<%[3]s>\n}\n", from, order, to)
	}
	return map[string]string{
		"transpose":      string(whole),
		"f32":            of("8192x8192xf32", "1, 0", "8192x8192xf32"),
		"f64":            of("4096x4096xf64", "1, 0", "4096x4096xf64"),
		"i8":             of("8192x8192xi8", "1, 0", "8192x8192xi8"),
		"keys of heads":  of("32x2048x16x64xf16", "0, 2, 3, 1", "32x16x64x2048xf16"),
		"channels last":  of("256x256x28x28xf16", "0, 2, 3, 1", "256x28x28x256xf16"),
		"channels first": of("256x28x28x256xf16", "0, 3, 1, 2", "256x256x28x28xf16"),
		"three":          of("256x512x384xbf16", "2, 1, 0", "384x512x256xbf16"),
	}
}

// The machine code of transpositions, a third of them in turn, accesses memory by 16 bytes alone, uses no local
// memory, and issues fewer instructions than the machine does while it moves their bytes.
func TestTransposedMachineCode(t *testing.T) {
	nvrtctest.Compiler(t)
	nvrtctest.Disassembler(t)
	m, _ := machine.Lookup("h200")
	texts := moving(t)
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if !need.Turn(t, i, 3) {
			continue
		}
		p := compiled(t, texts[name], m.Arch)
		steps, err := audit.Steps(p, listed(t, p, m.Arch), m)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) != 1 || !strings.Contains(p.Source, "DM_SHARED") {
			t.Errorf("%s: %d steps\n%s", name, len(steps), p.Source)
			continue
		}
		a := steps[0]
		t.Logf("%-16s %3d instructions, %.2f slots for each byte (%.0f %%), %d of %d bytes by 16", name, a.All.Instrs, a.PerByte, 100*a.Share, a.All.Vector, a.All.Bytes)
		if a.All.Vector != a.All.Bytes || a.All.Local > 0 || a.Share > 1 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// Threads that compute several windows, or both halves of a row, have no more issue slots for each byte than stated; an
// H200 issues 7.75 while it moves one, an A100 10.6.
func TestCellMachineCode(t *testing.T) {
	need.Long(t)
	nvrtctest.Compiler(t)
	nvrtctest.Disassembler(t)
	text, err := os.ReadFile("testdata/pools.dmir")
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]float64{"largest": 1.3, "chosen": 5.5, "spread": 1.2, "odd": 5, "halves": 5.9, "odd_halves": 7.1, "turned": 2.2}
	// Before Hopper an addition and a maximum, and three maxima, are instructions of their own; an A100 has half as many lanes for f32.
	before := map[string]float64{"halves": 7.7, "odd_halves": 9.1, "spread": 1.5}
	for _, of := range []string{"a100-80", "h200"} {
		m, ok := machine.Lookup(of)
		if !ok {
			t.Fatalf("there is no machine %s", of)
		}
		p := compiled(t, string(text), m.Arch)
		steps, err := audit.Steps(p, listed(t, p, m.Arch), m)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) != len(most) {
			t.Errorf("%s: %d steps", of, len(steps))
		}
		for _, a := range steps {
			t.Logf("%s %-8s %4d instructions, %.2f slots for each byte (%.0f %%)", of, a.Name, a.All.Instrs, a.PerByte, 100*a.Share)
			limit := most[a.Name]
			if of != "h200" {
				limit = max(limit, before[a.Name])
			}
			if a.PerByte > limit || a.Share > 1 || a.All.Local > 0 {
				t.Errorf("%s: %.2f slots for each byte, %.0f %%, %d bytes of local memory", a.Name, a.PerByte, 100*a.Share, a.All.Local)
			}
		}
	}
}

// advice matches what ptxas says of code that it could not make as fast as it might be.
var advice = regexp.MustCompile(`(?i)warning|advisory|potential`)

// built is the machine code of p, by the names of kernels; see listed.
func built(t *testing.T, p *artifact.Program, arch string) []sass.Kernel {
	t.Helper()
	kernels := sass.Parse(listed(t, p, arch))
	slices.SortFunc(kernels, func(a, b sass.Kernel) int { return strings.Compare(a.Name, b.Name) })
	return kernels
}

// listed is the machine code of p as text; its kernels hold the rules of package ptx and spill nothing. They are compiled as
// one source, whose lines of kernels are not known: the disassembler takes half a second for each file, however small.
func listed(t *testing.T, p *artifact.Program, arch string) string {
	t.Helper()
	whole := *p
	whole.Kernels = slices.Clone(p.Kernels)
	for i := range whole.Kernels {
		whole.Kernels[i].First, whole.Kernels[i].Last = 0, 0
	}
	code, err := nvrtc.CompileProgram(t.Context(), &whole, arch, nvrtc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ptxtest.Check(t, p, code)
	if len(code.Spilled()) > 0 || advice.MatchString(code.Log) {
		t.Errorf("%s: %v %s", arch, code.Spilled(), code.Log)
	}
	listing, err := nvrtc.Disassemble(t.Context(), code.Cubin)
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

// The loops over the updates of an embedding's gradient have eight loads in flight: of
// updates, or of eight sums of pieces.
func TestScatterMachineCode(t *testing.T) {
	need.Long(t)
	nvrtctest.Compiler(t)
	nvrtctest.Disassembler(t)
	text, err := os.ReadFile("testdata/embedding-gradient.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		if !need.Turn(t, i, 3) {
			continue
		}
		p := compiled(t, string(text), arch)
		var loops []string
		for _, k := range built(t, p, arch) {
			for _, r := range k.Regions() {
				if c := k.Count(r); r.Depth > 0 && c.Vector >= 4*16 {
					loops = append(loops, fmt.Sprintf("%s %d", k.Name, c.Vector/16))
				}
			}
		}
		if got := strings.Join(loops, ", "); got != "k1_d_pieces 8, k2_d 8, k2_d 8" {
			t.Errorf("%s: loops with loads of 16 bytes: %s", arch, got)
		}
	}
}

// The main loops of convolutions copy both operands to shared memory 16 bytes at a time: an image with
// channels first is turned before. A product takes few instructions besides; on Hopper the warps that multiply issue none of the copies, and
// those that copy issue few for each. So it is of products of f32 rounded to TF32.
func TestConvolutionMachineCode(t *testing.T) {
	need.Long(t)
	nvrtctest.Compiler(t)
	nvrtctest.Disassembler(t)
	n := 0
	for _, c := range []struct {
		file  string
		archs []string
		most  map[string]map[string]float64 // of instructions for each of a kind, by kernel and kind
	}{
		{"conv-f16.dmir", []string{"sm_80", "sm_100"}, map[string]map[string]float64{"y": {"HMMA": 6}}}, // was 38.1
		{"conv-f16.dmir", []string{"sm_90a"}, map[string]map[string]float64{"y": {"HGMMA": 21, "LDGSTS": 11}}},
		{"tf32.dmir", []string{"sm_80"}, map[string]map[string]float64{"across": {"HMMA": 6}, "along": {"HMMA": 6.4}}}, // each operand of a product of 16x8x8 is rounded
		{"tf32.dmir", []string{"sm_90a"}, map[string]map[string]float64{"across": {"HMMA": 6}, "along": {"HGMMA": 23}}},
		{"conv-grad.dmir", []string{"sm_90a"}, map[string]map[string]float64{"d": {"HGMMA": 16, "LDGSTS": 9}, "e": {"HGMMA": 23, "LDGSTS": 21}}},
	} {
		text, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range c.archs {
			if n++; !need.Turn(t, n, 2) {
				continue
			}
			p := compiled(t, string(text), arch)
			for _, k := range built(t, p, arch) {
				_, name, _ := strings.Cut(k.Name, "_")
				for of, most := range c.most[name] {
					r, n := loopOf(k, of)
					each := float64(r.To-r.From) / float64(n[of])
					t.Logf("%s %s %s: %d instructions, %v", c.file, arch, k.Name, r.To-r.From, n)
					if each > most || n["LDG"]+n["STS"] > 0 || n["HMMA"] > 0 && n["LDGSTS"] == 0 || n["HGMMA"] > 0 && n["LDGSTS"] > 0 {
						t.Errorf("%s %s %s: %.1f instructions for each %s, %v", c.file, arch, k.Name, each, of, n)
					}
				}
			}
		}
	}
}

// loopOf is the smallest loop of k with all of its instructions of one kind, and how many it has of each.
func loopOf(k sass.Kernel, kind string) (loop sass.Region, n map[string]int) {
	for _, r := range k.Regions() {
		in, out := map[string]int{}, 0
		for at, i := range k.Code {
			if r.From <= at && at < r.To {
				in[i.Base()]++
			} else if i.Base() == kind {
				out++
			}
		}
		if out == 0 && (n == nil || r.To-r.From < loop.To-loop.From) {
			loop, n = r, in
		}
	}
	return loop, n
}
