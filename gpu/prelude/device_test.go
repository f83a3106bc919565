package prelude_test

import (
	"os"
	"strings"
	"testing"

	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/prelude"
	"dmir/testkit/need"
)

// Every intrinsic compiles for every architecture, without a toolkit's headers,
// without a warning and without spilling, from the parts and from the flat text.
func TestDeviceCompiler(t *testing.T) {
	need.Long(t)
	c := nvrtctest.Compiler(t)
	source, err := os.ReadFile("testdata/intrinsics.cu")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Replace(string(source), "#include \"dm.cuh\"\n", prelude.Text(), 1)
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		for name, text := range map[string]string{"parts": string(source), "flat": flat} {
			headers := prelude.Files()
			if name == "flat" {
				headers = nil
			}
			r, err := c.Compile(t.Context(), text, headers, arch, nvrtc.Options{})
			if err != nil {
				t.Errorf("%s, %s: %v", arch, name, err)
				continue
			}
			if strings.Contains(r.Log, "warning") {
				t.Errorf("%s, %s: %s", arch, name, r.Log)
			}
			if spilled := r.Spilled(); len(r.Kernels) != 4 || len(spilled) > 0 {
				t.Errorf("%s, %s: %d kernels, of them spill: %v", arch, name, len(r.Kernels), spilled)
			}
			for _, k := range r.Kernels {
				t.Logf("%s %s: %d registers, %d bytes of stack", arch, k.Name, k.Registers, k.Stack)
			}
		}
	}
}
