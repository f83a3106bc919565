package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
)

// Recording is the folder in which cases are recorded, and the architecture
// they are compiled for, from the environment variables DMIR_CARRY and
// DMIR_CARRY_ARCH; ok is false where recording is off.
func Recording() (dir, arch string, ok bool) {
	dir, arch = os.Getenv("DMIR_CARRY"), os.Getenv("DMIR_CARRY_ARCH")
	if arch == "" {
		arch = "sm_90a"
	}
	return dir, arch, dir != ""
}

// Source is the input of a case.
type Source struct {
	Name  string // in the test; "": the test's own
	Class string // "": the test's name
	// Build makes the program for an architecture.
	Build func(arch string) (*artifact.Program, error)
	Args  []*tensor.Tensor
	Want  []*tensor.Tensor
	// Again is the arguments of another seed, and the results; nil: there are no others.
	Again func(seed uint64) (args, want []*tensor.Tensor, err error)
	// Within is the tolerance of result i.
	Within func(i int) Within
	Probes func(p *artifact.Program) ([]Probe, error)
}

// Reference returns the function that gives a program's arguments of a seed, and what
// the reference executor computes from them.
func Reference(ctx context.Context, m *ir.Module, fn *ir.Func, bind map[string]int64, given map[string]*tensor.Tensor) func(seed uint64) (args, want []*tensor.Tensor, err error) {
	return func(seed uint64) (args, want []*tensor.Tensor, err error) {
		if args, err = interp.Inputs(ctx, fn, bind, seed, given); err != nil {
			return nil, nil, err
		}
		got, err := interp.Run(ctx, m, fn, args, interp.Options{})
		if err != nil {
			return nil, nil, err
		}
		return args, got.Outputs, nil
	}
}

var (
	noName  = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
	takenMu sync.Mutex
	taken   = map[string]int{}
)

// Record records a case if recording is on. seed is that of the arguments.
func Record(t testing.TB, seed uint64, s Source) {
	t.Helper()
	dir, arch, ok := Recording()
	if !ok {
		return
	}
	test, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "Test"), "/")
	c := Case{Name: strings.TrimPrefix(t.Name(), "Test"), Class: s.Class}
	if s.Name != "" {
		c.Name += "-" + s.Name
	}
	if c.Class == "" {
		c.Class = strings.ToLower(test)
	}
	c.Name = strings.Trim(noName.ReplaceAllString(c.Name, "_"), "_")
	takenMu.Lock()
	taken[c.Name]++
	if n := taken[c.Name]; n > 1 {
		c.Name += fmt.Sprintf("_%d", n)
	}
	takenMu.Unlock()
	if err := c.fill(s, seed, arch, true); err != nil {
		t.Fatalf("%s is not kept: %v", c.Name, err)
	}
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
}

// Make returns a case without machine code, for devices that need none or
// compile it.
func Make(s Source, seed uint64, arch string) (*Case, error) {
	c := &Case{Name: s.Name, Class: s.Class}
	return c, c.fill(s, seed, arch, false)
}

func (c *Case) fill(s Source, seed uint64, arch string, compile bool) error {
	p, err := s.Build(arch)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if compile && len(p.Kernels) > 0 {
		made, err := nvrtc.CompileProgram(context.Background(), p, arch, nvrtc.Options{LineInfo: true, Jobs: runtime.GOMAXPROCS(0)})
		if err != nil {
			return err
		}
		kept := *p
		kept.Images = []artifact.Image{made.Image()}
		p = &kept
	}
	if err := c.add(p, seed, s.Args, s.Want, s.Within); err != nil {
		return err
	}
	if s.Again != nil {
		args, want, err := s.Again(seed + 1)
		if err != nil {
			return err
		}
		if err := c.add(p, seed+1, args, want, s.Within); err != nil {
			return err
		}
	}
	if s.Probes != nil {
		if c.Probes, err = s.Probes(p); err != nil {
			return err
		}
	}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		return err
	}
	c.Program, c.made = file.Bytes(), p
	return nil
}

// add adds the set of a seed.
func (c *Case) add(p *artifact.Program, seed uint64, args, want []*tensor.Tensor, within func(i int) Within) error {
	set, sample := Set{Seed: seed}, sampled
	if len(c.Sets) > 0 {
		sample = sampledAgain
	}
	for i, x := range args {
		in, err := inputOf(x, &p.Buffers[p.Inputs[i]], seed, uint64(i))
		if err != nil {
			return err
		}
		set.Inputs = append(set.Inputs, in)
	}
	for i, x := range want {
		w, err := wantOf(x, p.ResultView(i).Order, within(i), sample)
		if err != nil {
			return err
		}
		set.Want = append(set.Want, w)
	}
	c.Sets = append(c.Sets, set)
	return nil
}
