package emulator

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/prelude"
	"dmir/gpu/ptx"
	"dmir/testkit/need"
)

// twinProgram is a program of twins.
func twinProgram(list []twin) *artifact.Program {
	var source strings.Builder
	source.WriteString("#include \"dm.cuh\"\n#include \"hopper.cuh\"\n#include \"ops.cuh\"\n#include \"attention.cuh\"\n#include \"scatter.cuh\"\n#include \"sort.cuh\"\n")
	p := &artifact.Program{Name: "twins", File: "twins.dmir"}
	for i, w := range list {
		name := fmt.Sprint("twin", i)
		params := "dm::In<dm::u32> x, dm::Out<dm::u32> y"
		k := artifact.Kernel{Name: name, Block: artifact.Block{Threads: w.threads, Shared: 64 << 10, Cluster: w.cluster}}
		if w.maps != nil {
			params = "DM_MAP(a), DM_MAP(b), dm::Out<dm::u32> y"
		}
		if w.to != nil {
			params = "dm::In<dm::u32> x, DM_MAP(y)"
		}
		head := fmt.Sprintf("DM_KERNEL(%s, %d)", name, w.threads)
		if w.cluster > 0 {
			head = fmt.Sprintf("DM_KERNEL_CLUSTER(%s, %d, 1, %d)", name, w.threads, w.cluster)
		}
		fmt.Fprintf(&source, "%s(%s) {\n  DM_ARENA(arena);%s\n}\n", head, params, w.body)
		buffer := func(name string, kind artifact.Kind, elem string, bytes int) int {
			size, _ := artifact.ElemBytes(elem)
			p.Buffers = append(p.Buffers, artifact.Buffer{Name: name, Elem: elem, Shape: []int64{int64(bytes) / size}, Kind: kind, Offset: p.Workspace, Bytes: int64(bytes)})
			p.Workspace += (int64(bytes) + 255) &^ 255
			if kind == artifact.Input {
				p.Inputs = append(p.Inputs, len(p.Buffers)-1)
			} else {
				p.Outputs = append(p.Outputs, len(p.Buffers)-1)
			}
			return len(p.Buffers) - 1
		}
		step := artifact.Step{Name: name, Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: i, Grid: artifact.Grid{max(1, w.cluster), 1, 1}}}
		if w.maps == nil {
			k.Params = append(k.Params, artifact.Param{Name: "x", Elem: "ui32", Mode: artifact.In})
			step.Launch.Args = append(step.Launch.Args, artifact.Arg{Buffer: buffer(name+"x", artifact.Input, "ui32", 4*w.x)})
		}
		for j := range w.maps {
			bytes := 4 * w.x
			if strings.HasPrefix(w.name, "product") { // x is one operand behind the other
				bytes = []int{8192, 4*w.x - 8192}[j]
			}
			elem := strings.TrimPrefix(w.maps[j].Elem, "t") // the numbers of a map that rounds are f32
			k.Params = append(k.Params, artifact.Param{Name: string(rune('a' + j)), Elem: elem, Mode: artifact.Map})
			step.Launch.Args = append(step.Launch.Args, artifact.Arg{Buffer: buffer(fmt.Sprint(name, j), artifact.Input, elem, bytes), Map: &w.maps[j]})
		}
		y := artifact.Param{Name: "y", Elem: "ui32", Mode: artifact.Out}
		if w.to != nil {
			y.Elem, y.Mode = w.to.Elem, artifact.Map
		}
		k.Params = append(k.Params, y)
		step.Launch.Args = append(step.Launch.Args, artifact.Arg{Buffer: buffer(name+"y", artifact.Output, y.Elem, 4*w.y), Map: w.to})
		p.Kernels, p.Steps = append(p.Kernels, k), append(p.Steps, step)
	}
	p.Source = source.String()
	return p
}

// twinInputs are random inputs of the program.
func twinInputs(p *artifact.Program, list []twin) (inputs [][]byte) {
	r := rand.New(rand.NewPCG(31, 1))
	n := 0
	for i, w := range list {
		for range p.Steps[i].Launch.Args[1:] {
			b := make([]byte, p.Buffers[p.Inputs[n]].Bytes)
			for j := 0; j+4 <= len(b); j += 4 {
				binary.LittleEndian.PutUint32(b[j:], w.fill(r, j/4))
			}
			inputs = append(inputs, b)
			n++
		}
	}
	return inputs
}

// runAssembly compiles the program's kernels with these headers and runs their
// assembly instruction by instruction.
func runAssembly(t *testing.T, p *artifact.Program, headers []artifact.Header, inputs [][]byte) (outputs [][]byte, err error) {
	t.Helper()
	r, err := nvrtc.Compile(t.Context(), p.Source, headers, "sm_90a", nvrtc.Options{})
	if err != nil {
		return nil, err
	}
	m, err := ptx.Parse(r.PTX)
	if err != nil {
		return nil, err
	}
	funcs := map[string]*ptx.Func{}
	for _, f := range m.Funcs() {
		funcs[f.Name] = f
	}
	data := map[int][]byte{}
	for i, b := range p.Inputs {
		data[b] = append([]byte{}, inputs[i]...)
	}
	for i, k := range p.Kernels {
		var args []ptx.Argument
		for _, a := range p.Steps[i].Launch.Args {
			if data[a.Buffer] == nil {
				data[a.Buffer] = make([]byte, p.Buffers[a.Buffer].Bytes)
			}
			args = append(args, ptx.Argument{Data: data[a.Buffer], Map: a.Map})
		}
		if err := ptx.Run(funcs[k.Name], k.Block.Threads, max(1, k.Block.Cluster), k.Block.Shared, args); err != nil {
			return nil, err
		}
	}
	for _, b := range p.Outputs {
		outputs = append(outputs, data[b])
	}
	return outputs, nil
}

// differ reports where two results differ.
func differ(w twin, a, b []byte) error {
	for i := 0; i < len(a); i += 4 {
		x, y := binary.LittleEndian.Uint32(a[i:]), binary.LittleEndian.Uint32(b[i:])
		if x == y || x&0x7fffffff > 0x7f800000 && y&0x7fffffff > 0x7f800000 {
			continue
		}
		p, q := float64(math.Float32frombits(x)), float64(math.Float32frombits(y))
		if w.within > 0 && math.Abs(p-q) <= w.within*math.Abs(p) {
			continue
		}
		return fmt.Errorf("word %d is %#x in C++ (%g), %#x in assembly (%g)", i/4, x, p, y, q)
	}
	return nil
}

// Every string of inline assembly does what its C++ twin does.
func TestTwins(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	nvrtctest.Compiler(t)
	p := twinProgram(twins)
	inputs := twinInputs(p, twins)
	want, err := Run(t.Context(), p, inputs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := runAssembly(t, p, prelude.Files(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range twins {
		if err := differ(w, want.Outputs[i], got[i]); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}
