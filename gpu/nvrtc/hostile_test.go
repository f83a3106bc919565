package nvrtc_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/base/escape"
	"dmir/base/escape/escapetest"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
)

// TestHostileNames verifies that a program's name cannot become an argument of a
// compiler, nor the name of its file text of an assembler.
func TestHostileNames(t *testing.T) {
	nvrtctest.Compiler(t)
	var source strings.Builder
	source.WriteString("#include \"dm.cuh\"\n")
	for i, name := range escapetest.Names {
		fmt.Fprintf(&source, "#line %d %s\nextern \"C\" __global__ void named%d(float *x) { x[0] = %d; }\n", i+1, escape.Line("dir/"+name), i, i)
	}
	p := artifacttest.Program()
	p.Source = source.String()
	for _, name := range []string{"-o\"x\ny", strings.Join(escapetest.Names, "\n")} {
		p.Name = name
		r, err := nvrtc.CompileProgram(t.Context(), p, "sm_90a", nvrtc.Options{LineInfo: true, NoCache: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Kernels) != len(escapetest.Names) {
			t.Errorf("%d kernels", len(r.Kernels))
		}
		if code := escapetest.Code(r.PTX); strings.Contains(code, escapetest.Mark) {
			t.Errorf("a name left its place:\n%s", code)
		}
	}
}
