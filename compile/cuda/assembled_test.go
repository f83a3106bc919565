package cuda_test

import (
	"testing"

	"dmir/compile/cuda"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/ptx/ptxtest"
	"dmir/testkit/need"
)

// Every form of kernel is assembled for one of the architectures in turn.
func TestFormsAssemble(t *testing.T) {
	t.Parallel()
	need.Long(t)
	nvrtctest.Compiler(t)
	archs := []string{"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"}
	for i, c := range cuda.Forms() {
		for j, arch := range archs {
			if !need.Turn(t, i+j, len(archs)) {
				continue
			}
			t.Run(c.Name+"/"+arch, func(t *testing.T) {
				t.Parallel()
				p := compiled(t, c.Text, arch)
				r, err := nvrtc.CompileProgram(t.Context(), p, arch, nvrtc.Options{})
				if err != nil {
					t.Fatal(err)
				}
				nvrtctest.Clean(t, r)
				ptxtest.Check(t, p, r)
			})
		}
	}
}
