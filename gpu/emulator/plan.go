package emulator

import (
	"bytes"
	"fmt"
	"math"
	"os"

	"dmir/gpu/artifact"
)

// kinds numbers the kinds of buffers as emu_main.cuh does.
var kinds = map[artifact.Kind]int{artifact.Input: 0, artifact.Output: 1, artifact.Constant: 2, artifact.Temp: 3}

// maxBuffers is how many buffers the shadow of a byte can distinguish.
const maxBuffers = 1<<16 - 2

// planText is the program's steps and buffers as numbers, in the order in which
// read_plan of emu_main.cuh takes them.
func planText(p *artifact.Program) ([]byte, error) {
	if len(p.Buffers) > maxBuffers {
		return nil, fmt.Errorf("%d buffers; the emulator supports %d", len(p.Buffers), maxBuffers)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n%d\n", p.Workspace, len(p.Buffers))
	for _, buf := range p.Buffers {
		if buf.Offset < 0 || buf.Bytes < 0 || buf.Offset > p.Workspace-buf.Bytes {
			return nil, fmt.Errorf("buffer %s lies outside the workspace", buf.Name)
		}
		size, err := content(&buf)
		if err != nil {
			return nil, err
		}
		if buf.Offset%artifact.Alignment != 0 {
			return nil, fmt.Errorf("buffer %s lies at offset %d, which is not a multiple of %d", buf.Name, buf.Offset, artifact.Alignment)
		}
		kind, ok := kinds[buf.Kind]
		if !ok {
			return nil, fmt.Errorf("buffer %s is of kind %q", buf.Name, buf.Kind)
		}
		fmt.Fprintf(&b, "%d %d %d\n", buf.Offset, size, kind)
	}
	fmt.Fprintf(&b, "%d\n", len(p.Steps))
	for i, s := range p.Steps {
		var params []artifact.Param
		var args []artifact.Arg
		kernel, grid := numbers[s.Kind], artifact.Grid{1, 1, 1}
		switch s.Kind {
		case artifact.StepFill:
			args = []artifact.Arg{{Buffer: s.Move.To}}
		case artifact.StepCopy:
			args = []artifact.Arg{{Buffer: s.Move.To}, {Buffer: s.Move.From}}
		case artifact.StepCollective:
			for _, v := range s.Collective.Values() {
				args = append(args, artifact.Arg{Buffer: v.To}, artifact.Arg{Buffer: v.From})
			}
			switch s.Collective.Op {
			case artifact.Send:
				args, kernel = args[1:], sendStep
			case artifact.Recv:
				args, kernel = args[:1], recvStep
			}
		case artifact.StepLoop, artifact.StepRepeat, artifact.StepBranch:
			a, b := s.Decision.Parts[0], s.Decision.Parts[1]
			if left := len(p.Steps) - i - 1; a < 0 || b < 0 || a > left || b > left-a {
				return nil, fmt.Errorf("step %s has parts of %d and %d steps, and %d are left", s.Name, a, b, left)
			}
			if s.Kind == artifact.StepRepeat {
				if s.Decision.Trips < 0 || s.Decision.Trips > math.MaxInt32 {
					return nil, fmt.Errorf("step %s runs %d times; the emulator repeats steps at most %d times", s.Name, s.Decision.Trips, math.MaxInt32)
				}
				grid = artifact.Grid{a, b, int(s.Decision.Trips)}
				break
			}
			args, grid = []artifact.Arg{{Buffer: s.Decision.On}}, artifact.Grid{a, b, 0}
		default:
			k := p.KernelOf(&s)
			if k == nil {
				return nil, fmt.Errorf("step %s runs kernel %d of %d", s.Name, s.Launch.Kernel, len(p.Kernels))
			}
			if params, args = k.Params, s.Launch.Args; len(params) != len(args) {
				return nil, fmt.Errorf("step %s: kernel %s has %d parameters, the step gives it %d", s.Name, k.Name, len(params), len(args))
			}
			kernel, grid = s.Launch.Kernel, s.Launch.Grid
		}
		fmt.Fprintf(&b, "%.0f %d %d %d %d %d", work(&s), kernel, grid[0], grid[1], grid[2], len(args))
		for i, a := range args {
			if a.Buffer < 0 || a.Buffer >= len(p.Buffers) {
				return nil, fmt.Errorf("step %s: argument %d is buffer %d of %d", s.Name, i, a.Buffer, len(p.Buffers))
			}
			elem := p.Buffers[a.Buffer].Elem
			if params != nil && params[i].Elem != "" {
				elem = params[i].Elem
			}
			size, ok := artifact.ElemBytes(elem)
			if a.Map != nil {
				elem = a.Map.Elem
				size, ok = a.Map.ElemBytes()
			}
			if !ok {
				return nil, fmt.Errorf("step %s: argument %d has elements of %q", s.Name, i, elem)
			}
			fmt.Fprintf(&b, " %d %d", a.Buffer, size)
			if err := mapText(&b, a.Map); err != nil {
				return nil, fmt.Errorf("step %s: argument %d: %w", s.Name, i, err)
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d\n", len(p.Outputs))
	for _, o := range p.Outputs {
		if o < 0 || o >= len(p.Buffers) {
			return nil, fmt.Errorf("an output is buffer %d of %d", o, len(p.Buffers))
		}
		fmt.Fprintf(&b, "%d\n", o)
	}
	return b.Bytes(), nil
}

// numbers are the kernel numbers in the plan's text of steps that launch none.
var numbers = map[artifact.StepKind]int{artifact.StepFill: -1, artifact.StepCopy: -2, artifact.StepLoop: -3, artifact.StepBranch: -4, artifact.StepRepeat: -5, artifact.StepCollective: -6}

// The numbers of collectives that only read a buffer, or only write one.
const (
	sendStep = -7
	recvStep = -8
)

// content is the bytes of a buffer's elements; the bytes after them are padding that
// no kernel may access.
func content(b *artifact.Buffer) (int64, error) {
	elem, ok := artifact.ElemBytes(b.Elem)
	n, fits := b.Len()
	if !ok || !fits || n > math.MaxInt64/elem || b.Size() > b.Bytes {
		return 0, fmt.Errorf("buffer %s: %v elements of %q do not fit into its %d bytes", b.Name, b.Shape, b.Elem, b.Bytes)
	}
	return b.Size(), nil
}

func mapText(b *bytes.Buffer, m *artifact.TensorMap) error {
	if m == nil {
		b.WriteString(" 0")
		return nil
	}
	rank := len(m.Dims)
	if rank < 1 || rank > 5 || len(m.Strides) != rank-1 || len(m.Box) != rank {
		return fmt.Errorf("a tensor map of %d dimensions, %d strides and %d sizes of the box", rank, len(m.Strides), len(m.Box))
	}
	size, ok := m.ElemBytes()
	if !ok {
		return fmt.Errorf("a tensor map of %q", m.Elem)
	}
	rounds := 0
	if m.Rounds() {
		rounds = 1
	}
	fmt.Fprintf(b, " %d %d %d", rank, m.Swizzle, rounds)
	for _, d := range m.Dims {
		fmt.Fprintf(b, " %d", d)
	}
	fmt.Fprintf(b, " %d", size) // the innermost stride
	for _, s := range m.Strides {
		fmt.Fprintf(b, " %d", s)
	}
	for _, x := range m.Box {
		fmt.Fprintf(b, " %d", x)
	}
	return nil
}

// writeData writes what inputs and constants hold, in the order of the buffers.
func writeData(path string, p *artifact.Program, inputs [][]byte) error {
	if len(inputs) != len(p.Inputs) {
		return fmt.Errorf("%s takes %d arguments, not %d", p.Name, len(p.Inputs), len(inputs))
	}
	data := map[int][]byte{}
	for i, b := range p.Inputs {
		if b < 0 || b >= len(p.Buffers) {
			return fmt.Errorf("argument %d is buffer %d of %d", i, b, len(p.Buffers))
		}
		data[b] = inputs[i]
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for i, b := range p.Buffers {
		var d []byte
		switch b.Kind {
		case artifact.Constant:
			d = b.Data
		case artifact.Input:
			d = data[i]
		default:
			continue
		}
		size, err := content(&b)
		if err != nil {
			return err
		}
		if int64(len(d)) != size && int64(len(d)) != b.Bytes {
			return fmt.Errorf("buffer %s holds %d bytes, not %d", b.Name, size, len(d))
		}
		if _, err := f.Write(d[:size]); err != nil {
			return err
		}
	}
	return f.Close()
}
