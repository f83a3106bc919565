package artifacttest

import "dmir/gpu/artifact"

// Divided is Program for two devices, which reduce their %y to its sum in place.
func Divided() *artifact.Program {
	p := Program()
	p.Divided = &artifact.Distribution{
		Mesh: "pair", Axes: []artifact.MeshAxis{{Name: "x", Size: 2}},
		Inputs:  []*artifact.Whole{{Shape: []int64{2 * N}, Dims: [][]string{{"x"}}}},
		Outputs: []*artifact.Whole{{Shape: []int64{2 * N}, Dims: [][]string{{"x"}}}, nil},
	}
	sum := artifact.Step{Name: "sum of y", Kind: artifact.StepCollective, Collective: artifact.Collective{
		Op: artifact.AllReduce, Reduction: "add", From: 3, To: 3, Axes: []artifact.Span{{Size: 2, Stride: 1}},
	}, ReadBytes: 4 * N, WrittenBytes: 4 * N}
	p.Steps = append(p.Steps[:2:2], append([]artifact.Step{sum}, p.Steps[2:]...)...)
	p.Steps[5].Waits = []int{3}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if b.First >= 2 {
			b.First++
		}
		if b.Last >= 2 {
			b.Last++
		}
	}
	return p
}

// Bucketed is Divided, whose devices reduce %z as well, as one with %y.
func Bucketed() *artifact.Program {
	p := Divided()
	p.Steps[2], p.Steps[3] = p.Steps[3], p.Steps[2]
	sum := &p.Steps[3]
	sum.Waits, sum.Collective.More = []int{2}, []artifact.Move{{From: 4, To: 4}}
	sum.ReadBytes, sum.WrittenBytes = 2*sum.ReadBytes, 2*sum.WrittenBytes
	p.Steps[5].Waits = []int{2}
	p.Buffers[4].First = 2
	return p
}
