package plan

import (
	"cmp"
	"math"
	"slices"

	"dmir/analysis/pipelining"
)

// A path is a chain of tasks of a schedule that follow one another, whatever the order in which devices run theirs, with what its last
// device does once behind it: no step takes less.
type path struct {
	forward, inputs, weights []float64 // by stage: how often the tasks of a micro-batch are in it
	device                   int       // the last one
	sends                    float64   // between devices
}

// paths are those of a schedule that may be the longest. For each device, with the first of its stages and each one further:
//   - one micro-batch goes forward to the stage, all goes forward through it and the later stages of the device, and back
//     through all of its stages, and one micro-batch goes back from the first of them to the end of the step;
//   - the same with the gradients of weights, where they are tasks of their own, in place of the way back;
//   - one micro-batch goes forward through all stages and back to the stage, and all goes back through it and the earlier stages of the
//     device.
func (w way) paths() (out []*path) {
	n, micro, split := w.shape.Stages(), float64(w.shape.Micro), w.schedule.Split()
	begin := func() *path {
		return &path{forward: make([]float64, n), inputs: make([]float64, n), weights: make([]float64, n)}
	}
	sent := func(stage int) float64 { // on to the next one
		if pipelining.Device(w.schedule, w.shape, stage) == pipelining.Device(w.schedule, w.shape, stage+1) {
			return 0
		}
		return 1
	}
	back := func(x *path, stage int, times float64) {
		x.inputs[stage] += times
		if !split {
			x.weights[stage] += times
		}
	}
	home := func(x *path, from int) *path {
		for j := range from {
			back(x, j, 1)
			x.sends += sent(j)
		}
		if split {
			x.weights[0]++
		}
		return x
	}
	for d := range w.shape.Devices {
		stages := pipelining.StagesOf(w.schedule, w.shape, d)
		for i, at := range stages {
			there := func() *path {
				x := begin()
				for j := range at {
					x.forward[j]++
					x.sends += sent(j)
				}
				for _, j := range stages[i:] {
					x.forward[j] += micro
				}
				for _, j := range stages {
					back(x, j, micro)
				}
				return x
			}
			out = append(out, home(there(), stages[0]))
			if split {
				x := there()
				for _, j := range stages {
					x.weights[j] += micro
				}
				x.device = d
				out = append(out, x)
			}
			x := begin()
			for j := range n {
				x.forward[j]++
				if j > at {
					back(x, j, 1)
					x.sends += sent(j - 1)
				}
				if j+1 < n {
					x.sends += sent(j)
				}
			}
			for _, j := range stages[:i+1] {
				back(x, j, micro)
				if split {
					x.weights[j] += micro
				}
			}
			if x.device = d; !split {
				x.device = 0
				home(x, stages[0])
			}
			out = append(out, x)
		}
	}
	return out
}

// shares are how often what a layer with a number does is in a path: all layers of the number together. once counts the layers of the path's
// last device.
type shares struct {
	forward, inputs, weights, once []float64
	sends                          float64
}

// shares are those of x where stages have so many layers.
func (g *graph) shares(x *path, w way, layers []int) *shares {
	n, stages := g.layerCount(), w.shape.Stages()
	out := &shares{forward: make([]float64, n), inputs: make([]float64, n), weights: make([]float64, n), once: make([]float64, n), sends: x.sends}
	add := func(stage, number int) {
		out.forward[number] += x.forward[stage]
		out.inputs[number] += x.inputs[stage]
		out.weights[number] += x.weights[stage]
		if pipelining.Device(w.schedule, w.shape, stage) == x.device {
			out.once[number]++
		}
	}
	add(0, 0)
	add(stages-1, n-1)
	layer := 0
	for stage, count := range layers {
		for range count {
			add(stage, g.numberOf(layer))
			layer++
		}
	}
	return out
}

// of is what the path takes if layers take what parts say.
func (x *shares) of(parts []part) (t float64) {
	for i := range parts {
		p := &parts[i]
		t += x.forward[i]*p.forward + x.inputs[i]*(p.backward-p.weight) + x.weights[i]*p.weight + x.once[i]*p.once
	}
	return t
}

// common is what both paths take at least.
func (x *shares) common(y *shares, parts []part) float64 {
	z := x.clone()
	z.with(y, func(a, b float64) float64 { return min(a, b) })
	return z.of(parts)
}

// A course is how often a step does at least, and at most, what a layer with a number does, on a path of whichever of some schedules.
type course struct{ least, most *shares }

// level reports whether the layers are divided into stages that all have equally many of them, but for a rest.
func (g *graph) level(gr *grid, bandwidth float64) bool {
	return gr.pipe > 1 && g.layers != nil && !g.topHeavy(gr, bandwidth)
}

// course is that of all schedules of a setting: of each the path that has most in common with the longest path of the one that is best by
// pace. It is nil where stages have different numbers of layers.
func (s *search) course(g *graph, gr *grid, pace []part) *course {
	if !g.level(gr, s.bandwidth) {
		return nil
	}
	var all [][]*shares
	var longest *shares // of the best schedule
	best := math.Inf(1)
	for _, w := range s.ways(g, gr.pipe, gr.micro) {
		var paths []*shares
		for _, x := range w.paths() {
			paths = append(paths, g.shares(x, w, g.evenLayers(w.shape.Stages())))
		}
		x := slices.MaxFunc(paths, func(x, y *shares) int { return cmp.Compare(x.of(pace), y.of(pace)) })
		if takes := x.of(pace); takes < best {
			longest, best = x, takes
		}
		all = append(all, paths)
	}
	if longest == nil {
		return nil
	}
	c := &course{longest.clone(), longest.clone()}
	for _, paths := range all {
		like := slices.MaxFunc(paths, func(x, y *shares) int { return cmp.Compare(x.common(longest, pace), y.common(longest, pace)) })
		c.least.with(like, func(a, b float64) float64 { return min(a, b) })
		c.most.with(like, func(a, b float64) float64 { return max(a, b) })
	}
	c.most.once[0], c.most.once[len(c.most.once)-1] = 1, 1
	return c
}

func (x *shares) clone() *shares {
	return &shares{slices.Clone(x.forward), slices.Clone(x.inputs), slices.Clone(x.weights), slices.Clone(x.once), x.sends}
}

// with makes each number of x what f makes of it and that of y.
func (x *shares) with(y *shares, f func(a, b float64) float64) {
	for _, k := range [][2][]float64{{x.forward, y.forward}, {x.inputs, y.inputs}, {x.weights, y.weights}, {x.once, y.once}} {
		for i := range k[0] {
			k[0][i] = f(k[0][i], k[1][i])
		}
	}
	x.sends = f(x.sends, y.sends)
}

// gathers is how often what a layer gathers for its passes is in the path: half of it for each pass.
func (x *shares) gathers(layer int) float64 { return (x.forward[layer] + x.inputs[layer]) / 2 }

// runs is how often an op of a layer is in the path.
func (x *shares) runs(ph phase, layer int, ofWeights bool, again float64) float64 {
	switch {
	case ph == forward:
		return x.forward[layer] + (again-1)*x.inputs[layer]
	case ph == once:
		return x.once[layer]
	case ofWeights:
		return x.weights[layer]
	}
	return x.inputs[layer]
}
