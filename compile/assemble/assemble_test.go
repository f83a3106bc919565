package assemble_test

import (
	"fmt"
	"slices"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/syntax/source"
)

// plain is a back end with one launch for each kernel, whose text is its class
// and its ops, and with scratch memory for each kernel.
type plain struct{}

func (plain) Name() string                      { return "plain" }
func (plain) Machine() *machine.Machine         { return nil }
func (plain) Has(*ir.Op, *machine.Machine) bool { return false }
func (plain) Plan(u *pass.Unit) error           { return assemble.PlanPass(u, back{}) }

func (plain) Program(u *pass.Unit) (*artifact.Program, error) { return assemble.Generate(u, back{}) }

func (plain) Times(*pass.Unit) (target.Times, error) { return assemble.Times(back{}), nil }

type back struct{ plain }

func (back) Plan(f *kernel.Form, _ assemble.Options) (assemble.Plan, error) {
	return &one{f, &assemble.Temp{Elem: types.F32, N: 100, Own: true}}, nil
}

// Source writes a line for each kernel.
func (back) Source(p *artifact.Program, kernels []assemble.Kernel) error {
	for i, k := range kernels {
		p.Source += fmt.Sprintf("%s %s %d\n", p.Kernels[i].Name, k.Text.Key(), k.Line)
		p.Kernels[i].First, p.Kernels[i].Last = i+1, i+1
	}
	return nil
}

type one struct {
	f *kernel.Form
	t *assemble.Temp
}

func (p *one) Temps() []*assemble.Temp { return []*assemble.Temp{p.t} }
func (p *one) Tile() (string, string)  { return "", "" }
func (p *one) Pace() assemble.Pace     { return assemble.Pace{} }

func (p *one) Launches() ([]*assemble.Launch, error) {
	l := &assemble.Launch{Class: string(p.f.Class), Block: artifact.Block{Threads: 1}, Grid: artifact.Grid{1, 1, 1}, Scratch: 64}
	for _, v := range p.f.Inputs {
		l.Params = append(l.Params, assemble.Param{Name: assemble.Identifier(v.Name), Elem: v.Elem(), Mode: artifact.In, Value: v})
	}
	for _, v := range p.f.Outputs {
		l.Params = append(l.Params, assemble.Param{Name: assemble.Identifier(v.Name), Elem: v.Elem(), Mode: artifact.Out, Value: v})
	}
	l.Params = append(l.Params, assemble.Param{Name: "own", Elem: p.t.Elem, Mode: artifact.InOut, Temp: p.t})
	return []*assemble.Launch{l}, nil
}

func (p *one) Texts() ([]assemble.Text, error) {
	text := key(p.f.Class)
	for _, o := range p.f.Ops {
		text += key(" " + o.Name)
	}
	return []assemble.Text{text}, nil
}

type key string

func (k key) Key() string { return string(k) }

// A back end that knows nothing of GPUs gets a whole program: kernels that
// differ only in names once, with the lines of all their launches, and memory for
// what launches share.
func TestProgram(t *testing.T) {
	const text = `func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %auto = dm.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = dm.matmul %auto, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}
`
	p := program.Load(source.New("f.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Fatalf("%s %s", d.Code, d.Message)
	}
	u := &pass.Unit{Module: p.Modules[0], Func: p.Modules[0].Funcs[0], Machine: p.Target}
	if err := pass.Run(u, pipeline.For(plain{}), nil); err != nil {
		t.Fatal(err)
	}
	out, err := plain{}.Program(u)
	if err != nil {
		t.Fatal(err)
	}
	if out.Target != "plain" || len(out.Steps) != 2 || len(out.Kernels) != 1 {
		t.Fatalf("for %s, %d steps launch %d kernels", out.Target, len(out.Steps), len(out.Kernels))
	}
	if want := "k0_auto_kernel contraction dm.einsum 2\n"; out.Source != want {
		t.Errorf("the text is %q, want %q", out.Source, want)
	}
	k := out.Kernels[0]
	if k.Scratch != 64 || !slices.Equal(k.Lines, []int{2, 3}) {
		t.Errorf("%d bytes for each thread, lines %v", k.Scratch, k.Lines)
	}
	for i, s := range out.Steps {
		own := out.Buffers[s.Launch.Args[3].Buffer]
		if own.Kind != artifact.Temp || own.Bytes != 400 || own.First != i || own.Last != i || len(s.Lines) != 1 {
			t.Errorf("%s, of lines %v, shares %+v", s.Name, s.Lines, own)
		}
	}
	if err := out.Check(); err != nil {
		t.Error(err)
	}
}

// A dm.empty adds no step: what waits for it waits for what stands before it on its stream, and what stands behind it there for what it
// waits for.
func TestWaitsForNoStep(t *testing.T) {
	const text = `dm.mesh @m {d = 2}
!v = tensor<4xf32>
func.func @f(%x: !v, %y: !v) -> (!v, !v, !v, !v)
    attributes {dm.arg_offsets = [0, 256], dm.mesh = @m, dm.workspace = 2304} {
  %a = dm.neg %x {dm.offsets = [512], dm.stream = 0, dm.scratch = 512, dm.scratch_offset = 1792} : !v
  %e = dm.empty {dm.offsets = [768], dm.stream = 0} : !v
  %s = dm.all_reduce %y, reduction = "add", axes = ["d"] {dm.offsets = [1024], dm.stream = 1, dm.waits = [1]} : !v
  %n = dm.empty {dm.offsets = [1280], dm.stream = 0, dm.waits = [2]} : !v
  %b = dm.neg %a {dm.offsets = [1536], dm.stream = 0, dm.scratch = 512, dm.scratch_offset = 1792} : !v
  return %b, %s, %e, %n : !v, !v, !v, !v
}
`
	p := program.Load(source.New("f.dmir", text), program.Options{})
	for _, d := range p.Diags {
		t.Fatalf("%s %s", d.Code, d.Message)
	}
	out, err := plain{}.Program(&pass.Unit{Module: p.Modules[0], Func: p.Modules[0].Funcs[0], Machine: p.Target})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(out.Steps[0].Waits, out.Steps[1].Waits, out.Steps[2].Waits); len(out.Steps) != 3 || got != "[] [0] [1]" {
		t.Errorf("%d steps, which wait for %s", len(out.Steps), got)
	}
}
