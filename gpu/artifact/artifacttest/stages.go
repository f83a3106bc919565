package artifacttest

import (
	"slices"

	"dmir/gpu/artifact"
)

// InStages is a program of two stages for four devices: those of the first compute 3 x and send it, those of the second
// return what they get. An argument %unused has no stage.
func InStages() *artifact.Program {
	p := Program()
	mesh := func(inputs, outputs int) *artifact.Distribution {
		return &artifact.Distribution{
			Mesh: "grid", Axes: []artifact.MeshAxis{{Name: "data", Size: 2}, {Name: "pipe", Size: 2}},
			Inputs: make([]*artifact.Whole, inputs), Outputs: make([]*artifact.Whole, outputs),
		}
	}
	point := func(op artifact.CollectiveOp, buffer int) artifact.Step {
		return artifact.Step{Name: string(op), Kind: artifact.StepCollective, TimeNs: 500, Collective: artifact.Collective{
			Op: op, From: buffer, To: buffer, Axes: []artifact.Span{{Size: 2, Stride: 1}}, Pairs: [][2]int{{0, 1}}, Tag: 7,
		}}
	}
	x, c, y := p.Buffers[0], p.Buffers[1], p.Buffers[3]
	x.Last, c.Last = 1, 2
	y.Kind, y.First, y.Last = artifact.Output, 0, 2
	scaled := p.Steps[1]
	scaled.Launch.Args = args(0, 1, 2)
	first := &artifact.Program{
		Name: "scale.pipe0", File: p.File, Target: p.Target, Source: p.Source, Kernels: p.Kernels[:1], Workspace: p.Workspace,
		Buffers: []artifact.Buffer{x, c, y}, Steps: []artifact.Step{scaled, point(artifact.Send, 2)},
		Inputs: []int{0}, Outputs: []int{2}, Divided: mesh(1, 1),
	}
	got := y
	got.Name, got.Last = "got", 1
	second := &artifact.Program{
		Name: "scale.pipe1", File: p.File, Target: p.Target, Workspace: p.Workspace,
		Buffers: []artifact.Buffer{got}, Steps: []artifact.Step{point(artifact.Recv, 0)}, Outputs: []int{0}, Divided: mesh(0, 1),
	}
	return artifact.InStages("scale", "pipe", []artifact.Stage{
		{Program: first, Inputs: []int{1}, Outputs: []int{0}}, {Program: second, Outputs: []int{1}},
	}, map[int]artifact.Buffer{0: {Name: "unused", Elem: "f64", Shape: slices.Clone([]int64{3}), Bytes: 24}})
}
