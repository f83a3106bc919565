package artifact

import (
	"fmt"
	"hash"
)

// Versions 1 and 2 of the format, which are read and no longer written. A step's
// Kernel is the number of a kernel, or below 0 one of the following; version 1
// has fills alone. Field names and their order are part of what is signed.
const (
	oldFill   = -1
	oldCopy   = -2
	oldLoop   = -3
	oldBranch = -4
)

type oldProgram struct {
	Name      string
	File      string
	Source    string
	Kernels   []oldKernel
	Steps     []oldStep
	Buffers   []Buffer
	Workspace int64
	Inputs    []int
	Outputs   []int
	Images    []oldImage
	Headers   []Header
	Results   []string
	Views     []*View
	Defaults  []Default
	Variants  []*oldProgram
}

type oldImage struct {
	Arch  string
	Cubin []byte
}

type oldKernel struct {
	Name        string
	Class       string
	Threads     int
	Shared      int
	Cluster     int
	Params      []Param
	Lines       []int
	First, Last int
	Arch        string
}

type oldStep struct {
	Name         string
	Kernel       int
	Grid         [3]int
	Args         []Arg
	Stream       int
	Waits        []int
	Parts        [2]int `json:",omitzero"`
	Trips        int64  `json:",omitempty"`
	TripsKnown   bool   `json:",omitempty"`
	FLOP         int64
	ReadBytes    int64
	WrittenBytes int64
	TimeNs       float64
	Product      string
	Tile         string
	Differs      string
}

// oldHeader reads the header of an older version.
func oldHeader(text, key []byte) (*document, hash.Hash, error) {
	d, mac, err := headerOf[oldProgram](text, key)
	if err != nil {
		return nil, nil, err
	}
	p, err := d.Program.program()
	if err != nil {
		return nil, nil, err
	}
	for _, v := range d.Program.Variants {
		if v == nil || len(v.Variants) > 0 {
			return nil, nil, errDamaged
		}
		q, err := v.program()
		if err != nil {
			return nil, nil, err
		}
		p.Variants = append(p.Variants, q)
	}
	return &document{Program: p, Data: d.Data, Images: d.Images, Seal: d.Seal}, mac, nil
}

// program is p without its variants.
func (p *oldProgram) program() (*Program, error) {
	q := &Program{
		Name: p.Name, File: p.File, Target: "cuda", Source: p.Source, Buffers: p.Buffers, Workspace: p.Workspace,
		Inputs: p.Inputs, Outputs: p.Outputs, Headers: p.Headers, Results: p.Results, Views: p.Views, Defaults: p.Defaults,
	}
	for _, m := range p.Images {
		q.Images = append(q.Images, Image{Arch: m.Arch, Code: m.Cubin})
	}
	for _, k := range p.Kernels {
		q.Kernels = append(q.Kernels, Kernel{
			Name: k.Name, Class: k.Class, Block: Block{Threads: k.Threads, Shared: k.Shared, Cluster: k.Cluster}, Params: k.Params,
			Lines: k.Lines, First: k.First, Last: k.Last, Arch: k.Arch,
		})
	}
	for i := range p.Steps {
		s, err := p.Steps[i].step()
		if err != nil {
			return nil, fmt.Errorf("holds a program that cannot be run: step %d (%s): %w", i, p.Steps[i].Name, err)
		}
		q.Steps = append(q.Steps, s)
	}
	return q, nil
}

// step is s with its kind and the fields of that.
func (s *oldStep) step() (Step, error) {
	out := Step{
		Name: s.Name, Stream: s.Stream, Waits: s.Waits,
		FLOP: s.FLOP, ReadBytes: s.ReadBytes, WrittenBytes: s.WrittenBytes, TimeNs: s.TimeNs,
		Product: s.Product, Tile: s.Tile, Differs: s.Differs,
	}
	decision := Decision{Parts: s.Parts, Trips: s.Trips, TripsKnown: s.TripsKnown}
	if s.Kernel >= 0 {
		out.Kind, out.Launch, out.Decision = StepLaunch, Launch{s.Kernel, s.Grid, s.Args}, decision
		return out, nil
	}
	want := 1
	if s.Kernel == oldCopy {
		want = 2
	}
	if len(s.Args) != want {
		return Step{}, fmt.Errorf("%d arguments, not %d", len(s.Args), want)
	}
	for _, a := range s.Args {
		if a.Map != nil {
			return Step{}, fmt.Errorf("a tensor map for a step that launches no kernel")
		}
	}
	switch first := s.Args[0].Buffer; s.Kernel {
	case oldFill:
		out.Kind, out.Move = StepFill, Move{To: first}
	case oldCopy:
		out.Kind, out.Move = StepCopy, Move{To: first, From: s.Args[1].Buffer}
	case oldLoop, oldBranch:
		out.Kind = StepLoop
		if s.Kernel == oldBranch {
			out.Kind = StepBranch
		}
		decision.On = first
		out.Decision = decision
		return out, nil
	default:
		return Step{}, fmt.Errorf("launches kernel %d", s.Kernel)
	}
	out.Decision = decision
	return out, nil
}
