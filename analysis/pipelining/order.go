package pipelining

// gpipe runs all micro-batches forward and then all backward.
func (p *pipe) gpipe() [][]Task {
	order := make([][]Task, p.sh.Devices)
	for d := range order {
		list := make([]Task, 0, 2*p.sh.Micro)
		for _, kind := range []Kind{Forward, Backward} {
			for i := range p.sh.Micro {
				list = append(list, Task{d, i, kind})
			}
		}
		order[d] = list
	}
	return order
}

// oneFOneB runs p−d−1 micro-batches forward on device d to warm up, then one forward and one backward
// in turn.
func (p *pipe) oneFOneB() [][]Task {
	order := make([][]Task, p.sh.Devices)
	for d := range order {
		order[d] = alternate(p.sh.Micro, p.sh.Devices-d-1,
			func(k int) Task { return Task{d, k, Forward} },
			func(k int) Task { return Task{d, k, Backward} })
	}
	return order
}

// alternate is a list of n forward and n backward tasks: warm of them forward, then one forward and one
// backward in turn, then the rest backward.
func alternate(n, warm int, forward, backward func(k int) Task) []Task {
	warm = min(warm, n)
	list := make([]Task, 0, 2*n)
	for k := range warm {
		list = append(list, forward(k))
	}
	for k := warm; k < n; k++ {
		list = append(list, forward(k), backward(k-warm))
	}
	for k := n - warm; k < n; k++ {
		list = append(list, backward(k))
	}
	return list
}

// interleaved runs groups of micro-batches through the chunks of a device in turn. Megatron-LM has
// groups of p and asks for a multiple of p micro-batches. Here groups are of p or more, as equal as
// possible, so that any number of micro-batches will do; with fewer than p there is one group.
func (p *pipe) interleaved() [][]Task {
	devices, chunks, m := p.sh.Devices, p.sh.Chunks, p.sh.Micro
	if chunks == 1 {
		return p.oneFOneB()
	}
	type step struct{ chunk, micro int }
	steps := make([]step, 0, chunks*m)
	groups := max(1, m/devices)
	first := 0
	for from, g := 0, 0; g < groups; g++ {
		size := m / groups
		if g < m%groups {
			size++
		}
		if g == 0 {
			first = size
		}
		for c := range chunks {
			for i := range size {
				steps = append(steps, step{c, from + i})
			}
		}
		from += size
	}
	order := make([][]Task, devices)
	for d := range order {
		order[d] = alternate(len(steps), interleavedWarmUp(devices, chunks, first, d),
			func(k int) Task { return Task{steps[k].chunk*devices + d, steps[k].micro, Forward} },
			func(k int) Task { return Task{(chunks-1-steps[k].chunk)*devices + d, steps[k].micro, Backward} })
	}
	return order
}

// interleavedWarmUp is how many forward tasks device d runs before it alternates.
func interleavedWarmUp(devices, chunks, group, d int) int {
	return 2*(devices-d-1) + (chunks-1)*group
}
