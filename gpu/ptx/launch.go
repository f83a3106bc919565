package ptx

import (
	"reflect"
	"slices"

	"dmir/gpu/artifact"
)

// Launches are those of a program's kernels, by the kernels' names, each that differs once.
func Launches(p *artifact.Program, usage []artifact.Usage) map[string][]Launch {
	out := map[string][]Launch{}
	for i := range p.Steps {
		s := &p.Steps[i]
		k := p.KernelOf(s)
		if k == nil {
			continue
		}
		l := Launch{Grid: s.Launch.Grid, Threads: k.Block.Threads, Cluster: k.Block.Cluster, Shared: k.Block.Shared, Maps: map[int]*artifact.TensorMap{}, Dependent: k.Block.Waits}
		for j, a := range s.Launch.Args {
			if a.Map != nil {
				l.Maps[j] = a.Map
			}
		}
		for _, u := range usage {
			if u.Name == k.Name {
				l.Registers = u.Registers
			}
		}
		if !slices.ContainsFunc(out[k.Name], func(o Launch) bool { return reflect.DeepEqual(o, l) }) {
			out[k.Name] = append(out[k.Name], l)
		}
	}
	return out
}
