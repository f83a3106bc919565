package artifact_test

import (
	"slices"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// An input must be copied again if a step writes it, or if another buffer uses its
// bytes after its last use.
func TestOverwritten(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *artifact.Program)
		want   bool
	}{
		{"only read", func(*artifact.Program) {}, false},
		{"written in place", func(p *artifact.Program) { p.Kernels[0].Params[0].Mode = artifact.InOut }, true},
		{"its bytes used again", func(p *artifact.Program) { p.Buffers[5].Offset = 0 }, true},
	} {
		p := artifacttest.Program()
		c.change(p)
		if err := p.Check(); err != nil && c.name != "written in place" { // there both streams use it
			t.Errorf("%s: %v", c.name, err)
		}
		if got := p.Overwritten(); !slices.Equal(got, []bool{c.want}) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestVariants(t *testing.T) {
	p, v := artifacttest.Program(), artifacttest.Program()
	v.Kernels[0].Arch = "sm_90a"
	p.Variants = []*artifact.Program{v}
	if p.For("sm_90a") != v || p.For("sm_80") != p || p.For("") != p {
		t.Error("not the variant for the architecture")
	}
	if p.Arch() != "" || v.Arch() != "sm_90a" {
		t.Errorf("for %q and %q", p.Arch(), v.Arch())
	}
	if p.Result(1) != "s" {
		t.Errorf("result 1 is called %q", p.Result(1))
	}
	p.Results = []string{"y", "total"}
	if p.Result(1) != "total" {
		t.Errorf("result 1 is called %q", p.Result(1))
	}
}
