package emulator

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"dmir/gpu/artifact"
)

// buffer is one parameter of a kernel under test: its data, or the number of elements
// of a result.
type buffer struct {
	elem string
	data []byte
	out  int
}

// runKernel runs one kernel of source on the buffers and returns the results.
func runKernel(t *testing.T, source string, kernel artifact.Kernel, grid int, buffers ...buffer) [][]byte {
	t.Helper()
	p := &artifact.Program{Name: "test", File: "test.dmir", Source: source}
	step := artifact.Step{Name: kernel.Name, Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{grid, 1, 1}}}
	var inputs [][]byte
	for i, b := range buffers {
		size, ok := artifact.ElemBytes(b.elem)
		if !ok {
			t.Fatalf("element type %q", b.elem)
		}
		kind, mode, bytes := artifact.Input, artifact.In, int64(len(b.data))
		if b.out > 0 {
			kind, mode, bytes = artifact.Output, artifact.Out, int64(b.out)*size
			p.Outputs = append(p.Outputs, i)
		} else {
			p.Inputs = append(p.Inputs, i)
			inputs = append(inputs, b.data)
		}
		name := fmt.Sprint("p", i)
		kernel.Params = append(kernel.Params, artifact.Param{Name: name, Elem: b.elem, Mode: mode})
		p.Buffers = append(p.Buffers, artifact.Buffer{Name: name, Elem: b.elem, Shape: []int64{bytes / size}, Kind: kind, Offset: p.Workspace, Bytes: bytes})
		p.Workspace += (bytes + 255) &^ 255
		step.Launch.Args = append(step.Launch.Args, artifact.Arg{Buffer: i})
	}
	p.Kernels, p.Steps = []artifact.Kernel{kernel}, []artifact.Step{step}
	r, err := Run(t.Context(), p, inputs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs
}

func halves(x ...uint16) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func toHalves(b []byte) []uint16 {
	x := make([]uint16, len(b)/2)
	for i := range x {
		x[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return x
}

func doubles(x ...float64) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func toDoubles(b []byte) []float64 {
	x := make([]float64, len(b)/8)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return x
}

func words(x ...int64) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func toWords(b []byte) []int64 {
	x := make([]int64, len(b)/8)
	for i := range x {
		x[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return x
}
