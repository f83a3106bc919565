package nvidia

import (
	"context"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
)

// emulated is the emulator. It runs kernels of any architecture; programs that
// are compiled for it get the portable ones.
type emulated struct{}

func (emulated) Name() string  { return "emulator" }
func (emulated) Title() string { return "the emulator" }
func (emulated) Arch() string  { return "" }

// Run runs the program on the host, checked and counted.
func (emulated) Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	out, err := emulator.Run(ctx, p, inputs, emulator.Options{Timeout: opts.Timeout, Comm: opts.Comm, Progress: forward(p, opts.Progress)})
	if err != nil {
		return nil, err
	}
	r := &device.Result{Elapsed: out.Run, Compile: out.Compile}
	for i, b := range p.Outputs { // a buffer may be longer than its elements
		r.Outputs = append(r.Outputs, out.Outputs[i][:p.Buffers[b].Size()])
	}
	for _, s := range out.Steps {
		r.Steps = append(r.Steps, device.StepResult{Name: s.Name, Runs: s.Runs, Counted: true, ReadBytes: s.Read, WrittenBytes: s.Written})
	}
	return r, nil
}

// forward passes the emulator's progress on, with the names of steps.
func forward(p *artifact.Program, progress func(device.Progress)) func(emulator.Progress) {
	if progress == nil {
		return nil
	}
	var flop, bytes int64
	for i, n := range p.Times() {
		s := &p.Steps[i]
		flop += artifact.Repeated(s.FLOP, n)
		bytes += artifact.Repeated(s.ReadBytes+s.WrittenBytes, n)
	}
	return func(at emulator.Progress) {
		out := device.Progress{
			At: at.Step + 1, Of: len(p.Steps), Done: at.Done, Expected: at.Expected,
			FLOP: flop, Bytes: bytes, FLOPPerSecond: emulator.FLOPPerSecond, BytesPerSecond: emulator.BytesPerSecond,
		}
		if at.Step >= 0 {
			out.Step = p.Steps[at.Step].Name
		}
		progress(out)
	}
}
