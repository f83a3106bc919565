package emulator

import (
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// A program with its own parts of the prelude is compiled with them, and with the
// built-in emulation.
func TestProgramsHeaders(t *testing.T) {
	needCompiler(t)
	own := artifact.Header{Name: "shifted.cuh", Text: "#pragma once\nnamespace dm { inline float shifted(float x) { return x + 1; } }\n"}
	for _, c := range []struct {
		name    string
		headers []artifact.Header
		want    string // in the error
	}{
		{"its own", []artifact.Header{own}, ""},
		{"another version", []artifact.Header{{Name: own.Name, Text: strings.Replace(own.Text, "+ 1", "+ 2", 1)}}, ""},
		{"none", nil, "shifted.cuh"},
		{"not the emulation's", []artifact.Header{own, {Name: "types.cuh", Text: "#error"}, {Name: "emu.cuh", Text: "#error"}}, ""},
		{"a name that leads elsewhere", []artifact.Header{{Name: "../dm.cuh"}}, "is not a valid name for a header"},
		{"a program's name", []artifact.Header{{Name: "main.cc"}}, "is not a valid name for a header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := artifacttest.Program()
			p.Source = strings.Replace(p.Source, "#include \"dm.cuh\"", "#include \"dm.cuh\"\n#include \"shifted.cuh\"", 1)
			p.Source = strings.Replace(p.Source, "z.store(i, -x[i])", "z.store(i, dm::shifted(-x[i]))", 1)
			p.Headers = c.headers
			r, err := Run(t.Context(), p, [][]byte{make([]byte, 4*artifacttest.N)}, Options{})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := float32(1)
			if c.name == "another version" {
				want = 2
			}
			if got := toFloats(r.Outputs[0])[0]; got != want {
				t.Errorf("%g, want %g", got, want)
			}
		})
	}
}
