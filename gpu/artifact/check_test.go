package artifact_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

func TestCheck(t *testing.T) {
	if err := artifacttest.Program().Check(); err != nil {
		t.Fatalf("the program of the tests: %v", err)
	}
	// Steps: 0 zero s, 1 scaled, 2 negated (stream 1), 3 total, 4 joined.
	// Buffers: 0 x, 1 c, 2 s, 3 y, 4 z, 5 out.
	type program = artifact.Program
	for _, c := range []struct {
		name  string
		spoil func(p *program)
		want  string
	}{
		{"an input out of range", func(p *program) { p.Inputs[0] = 9 }, "input 0 is buffer 9 of 6"},
		{"an input of another kind", func(p *program) { p.Inputs[0] = 3 }, "of kind temp"},
		{"an input twice", func(p *program) { p.Inputs = []int{0, 0} }, "of another input"},
		{"an output out of range", func(p *program) { p.Outputs[1] = -1 }, "output 1 is buffer -1"},
		{"a negative workspace", func(p *program) { p.Workspace = -1 }, "the workspace has -1 bytes"},
		{"too many steps", func(p *program) { p.Steps = make([]artifact.Step, 1<<14+1) }, "16384 is the most"},
		{"a kernel's name", func(p *program) { p.Kernels[0].Name = "a b" }, `"a b" is not a valid name`},
		{"two kernels of a name", func(p *program) { p.Kernels[0].Name = "total" }, "two of this name"},
		{"no threads", func(p *program) { p.Kernels[0].Block.Threads = 0 }, "blocks of 0 threads"},
		{"much shared memory", func(p *program) { p.Kernels[0].Block.Shared = 1 << 20 }, "shared memory"},
		{"a cluster", func(p *program) { p.Kernels[0].Block.Cluster = 17 }, "clusters of 17"},
		{"lines beyond the source", func(p *program) { p.Kernels[0].Last = 1000 }, "lines 4 to 1000"},
		{"a mode", func(p *program) { p.Kernels[0].Params[0].Mode = "through" }, `the mode "through"`},
		{"a parameter's element type", func(p *program) { p.Kernels[0].Params[0].Elem = "f17" }, `the element type "f17"`},
		{"too many parameters", func(p *program) {
			for i := range 600 {
				p.Kernels[0].Params = append(p.Kernels[0].Params, artifact.Param{Name: fmt.Sprint("p", i), Elem: "f32", Mode: artifact.In})
			}
		}, "bytes of parameters"},
		{"a buffer's element type", func(p *program) { p.Buffers[3].Elem = "" }, `buffer y: the element type ""`},
		{"a shape", func(p *program) { p.Buffers[3].Shape[0] = -4 }, "no shape"},
		{"a huge shape", func(p *program) { p.Buffers[3].Shape = []int64{1 << 40, 1 << 40} }, "no shape"},
		{"a buffer too small", func(p *program) { p.Buffers[3].Bytes = 3999 }, "3999 bytes for 1000 elements"},
		{"an offset between", func(p *program) { p.Buffers[3].Offset = 4100 }, "not a multiple of 256"},
		{"beyond the workspace", func(p *program) { p.Buffers[5].Offset = 1 << 20 }, "of a workspace of 16896"},
		{"an overflowing offset", func(p *program) { p.Buffers[5].Offset = 1<<63 - 256 }, "of a workspace"},
		{"an order", func(p *program) { p.Buffers[3].Order = []int{1} }, "not an order of 1 dimensions"},
		{"a life backwards", func(p *program) { p.Buffers[3].First = 5 }, "lives from step 5 to step 4"},
		{"a constant's data", func(p *program) { p.Buffers[1].Data = nil }, "0 bytes of data"},
		{"data of a temporary", func(p *program) { p.Buffers[3].Data = []byte{1} }, "data, though"},
		{"a kind", func(p *program) { p.Buffers[3].Kind = "" }, `the kind ""`},
		{"two steps of a name", func(p *program) { p.Steps[1].Name = "total" }, "two of this name"},
		{"a stream", func(p *program) { p.Steps[1].Stream = 64 }, "stream 64"},
		{"a wait for a later step", func(p *program) { p.Steps[1].Waits = []int{4} }, "waits for step 4"},
		{"an argument out of range", func(p *program) { p.Steps[1].Launch.Args[0].Buffer = 77 }, "buffer 77 of 6"},
		{"a fill of nothing", func(p *program) { p.Steps[0].Move.To = -1 }, "buffer -1 of 6"},
		{"a fill from somewhere", func(p *program) { p.Steps[0].Move.From = 3 }, "a fill moves from no buffer"},
		{"a fill that launches", func(p *program) { p.Steps[0].Launch = p.Steps[1].Launch }, "a launch, though it is a fill"},
		{"a launch that moves", func(p *program) { p.Steps[1].Move.To = 2 }, "buffers to move, though it is a launch"},
		{"a kind of steps", func(p *program) { p.Steps[1].Kind = "send" }, `no kind of steps is "send"`},
		{"a fill of a constant", func(p *program) { p.Steps[0].Move.To = 1 }, "fills the constant c"},
		{"no such kernel", func(p *program) { p.Steps[1].Launch.Kernel = 4 }, "launches kernel 4 of 4"},
		{"an empty grid", func(p *program) { p.Steps[1].Launch.Grid[2] = 0 }, "no grid"},
		{"part of a cluster", func(p *program) { p.Kernels[0].Block.Cluster = 3 }, "not whole clusters of 3"},
		{"too few arguments", func(p *program) { p.Steps[1].Launch.Args = p.Steps[1].Launch.Args[:2] }, "2 arguments for the 3 parameters"},
		{"another element type", func(p *program) { p.Kernels[0].Params[0].Elem = "i32" }, "parameter x is of i32, the buffer x of f32"},
		{"a map for no map", func(p *program) { p.Steps[1].Launch.Args[0].Map = &artifact.TensorMap{} }, "do not agree on a tensor map"},
		{"written beside what is read", func(p *program) { p.Steps[1].Launch.Args[2].Buffer = 0 }, "step 1 (scaled): x and y are both the buffer x, which one of them writes"},
		{"a written constant", func(p *program) { p.Kernels[0].Params[1].Mode = artifact.InOut }, "writes the constant c"},
		{"use after its life", func(p *program) { p.Buffers[3].Last = 3 }, "step 4 (joined) uses it"},
		{"read before written", func(p *program) { p.Kernels[0].Params[2].Mode = artifact.In }, "reads it before anything is written"},
		{"an input from the middle", func(p *program) { p.Buffers[0].First = 1 }, "not from the start"},
		{"an output that ends early", func(p *program) { p.Buffers[2].Last = 4 }, "not to the end"},
		{"an output that nothing writes", func(p *program) { p.Kernels[3].Params[3].Mode = artifact.In }, "reads it before"},
		{"overlapping lives and bytes", func(p *program) { p.Buffers[4].Offset = 4096 + 256 }, "buffers y and z share bytes and live at the same time, from step 2 to step 4"},
		{"over a constant", func(p *program) { p.Buffers[2].Offset = 4 * 4096 }, "one is a constant"},
		{"no wait", func(p *program) { p.Steps[4].Waits = nil }, "step 4 (joined) does not wait for step 2 (negated), and both use the buffer z"},
		{"more results than outputs", func(p *program) { p.Checks, p.Returned = []artifact.Check{{Want: 1}}, 3 }, "3 of 2 outputs are returned"},
		{"results apart from no checks", func(p *program) { p.Returned = 1 }, "1 of 2 outputs are returned"},
		{"a check of no output", func(p *program) { p.Checks = []artifact.Check{{Got: 2}} }, "check 0 is about output 2 of 2"},
		{"a check of two types", func(p *program) { p.Checks = []artifact.Check{{Got: 0, Want: 1}} }, "which is of another type"},
		{"what is kept of a check", func(p *program) { p.Checks = []artifact.Check{{Kept: true, Got: 1, Want: 0}} }, "are not what is kept of a check"},
		{"one type of a check", func(p *program) { p.Checks = []artifact.Check{{Types: []string{"tensor<f32>"}}} }, "check 0 is about 1 types"},
		{"state of too few results", func(p *program) { p.State = []int{0} }, "state of 1 outputs, and there are 2"},
		{"state of no input", func(p *program) { p.State = []int{1, -1} }, "which is none or has another"},
		{"state of one input twice", func(p *program) { p.State = []int{0, 0} }, "which is none or has another"},
		{"state of another type", func(p *program) { p.State = []int{-1, 0} }, "output 1 is the state of input x and has another type"},
		{"state in another order", func(p *program) {
			p.State, p.Views = []int{0, -1}, []*artifact.View{{Shape: []int64{2, 500}, Order: []int{1, 0}}}
		}, "output 0 is the state of input x and has another type"},
		{"more views than results", func(p *program) { p.Views = make([]*artifact.View, 3) }, "3 views of 2 outputs"},
		{"a view of other elements", func(p *program) { p.Views = []*artifact.View{{Shape: []int64{10, 10}}} }, "the view [10 10] of the 1000 elements of the buffer out"},
		{"a view of no shape", func(p *program) { p.Views = []*artifact.View{{Shape: []int64{-1000}}} }, "the view [-1000]"},
		{"a view's order", func(p *program) {
			p.Views = []*artifact.View{nil, {Shape: []int64{1}, Order: []int{1}}}
		}, "output 1: [1] is not an order of 1 dimensions"},
		{"a variant's variants", func(p *program) {
			p.Variants = []*program{artifacttest.Program()}
			p.Variants[0].Variants = []*program{artifacttest.Program()}
		}, "variant 0 has variants"},
		{"a variant for all", func(p *program) { p.Variants = []*program{artifacttest.Program()} }, "no architecture of its own"},
		{"a broken variant", func(p *program) {
			p.Variants = []*program{artifacttest.Program()}
			p.Variants[0].Kernels[0].Arch, p.Variants[0].Workspace = "sm_90a", 100
		}, "variant 0: buffer x"},
		{"another variant", func(p *program) {
			p.Variants = []*program{artifacttest.Program()}
			p.Variants[0].Kernels[0].Arch, p.Variants[0].Outputs = "sm_90a", []int{5}
		}, "variant 0 has other inputs or outputs"},
		{"names of results", func(p *program) { p.Results = []string{"y"} }, "1 names of 2 outputs"},
		{"bytes reused too early", func(p *program) { // z, on its own stream, where y was
			p.Steps[2], p.Steps[3] = p.Steps[3], p.Steps[2]
			p.Steps[4].Launch.Args[0].Buffer = 4
			p.Steps[4].Waits = []int{3}
			p.Buffers[0].Last = 3
			p.Buffers[3].Last = 2
			p.Buffers[4].First, p.Buffers[4].Offset = 3, 4096
		}, "step 3 (negated) does not wait for step 1 (scaled), and both use the bytes of the buffers y and z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := artifacttest.Program()
			c.spoil(p)
			if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Bytes may be reused after the steps that used them have ended, on other streams
// after a wait.
func TestCheckAllowsReuse(t *testing.T) {
	p := artifacttest.Program()
	p.Steps[2], p.Steps[3] = p.Steps[3], p.Steps[2]
	p.Steps[3].Waits = []int{2} // y's last reader
	p.Steps[4].Launch.Args[0].Buffer = 4
	p.Steps[4].Waits = []int{3}
	p.Buffers[0].Last = 3
	p.Buffers[3].Last = 2
	p.Buffers[4].First, p.Buffers[4].Offset = 3, 4096
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckTensorMap(t *testing.T) {
	for _, c := range []struct {
		name string
		m    artifact.TensorMap
		want string
	}{
		{"right", artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{160}, Box: []uint32{8, 5}, Swizzle: 32}, ""},
		{"too large", artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 26}, Strides: []uint64{160}, Box: []uint32{8, 5}}, "covers 4160 bytes"},
		{"no rank", artifact.TensorMap{Elem: "f32"}, "0 dimensions"},
		{"a stride", artifact.TensorMap{Elem: "f32", Dims: []uint64{40, 25}, Strides: []uint64{100}, Box: []uint32{8, 5}}, "a stride of 100"},
		{"a box", artifact.TensorMap{Elem: "f32", Dims: []uint64{40}, Box: []uint32{257}}, "boxes of 257"},
		{"a row", artifact.TensorMap{Elem: "f32", Dims: []uint64{40}, Box: []uint32{3}}, "rows of 12 bytes"},
		{"a swizzle", artifact.TensorMap{Elem: "f32", Dims: []uint64{40}, Box: []uint32{4}, Swizzle: 16}, "a swizzle of 16"},
		{"a narrow swizzle", artifact.TensorMap{Elem: "f32", Dims: []uint64{40}, Box: []uint32{16}, Swizzle: 32}, "rows of 64 bytes with a swizzle of 32"},
		{"an overflow", artifact.TensorMap{Elem: "f32", Dims: []uint64{4, 1 << 32, 1 << 32}, Strides: []uint64{1 << 36, 1 << 36}, Box: []uint32{4, 1, 1}}, "exceed any memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := artifacttest.Program()
			p.Kernels[0].Params[0].Mode = artifact.Map
			p.Steps[1].Launch.Args[0].Map = &c.m
			err := p.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
