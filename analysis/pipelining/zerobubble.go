package pipelining

// zeroBubble is the paper's order for equal times or what fill makes of it, whichever is faster.
func (p *pipe) zeroBubble() [][]Task {
	var equal [][]Task
	if p.s == ZBH1 {
		equal = p.zbh1()
	} else {
		equal = p.zbv()
	}
	total := p.length(equal)
	if total <= p.estimate()*(1+1e-9) {
		return equal
	}
	if filled, t := p.fill(equal); t < total*(1-1e-9) {
		return filled
	}
	return equal
}

// zbh1 is 1F1B in which device d puts off the gradient of weights by d micro-batches, so that all devices
// hold p micro-batches (arXiv 2401.10241, section 2.1).
func (p *pipe) zbh1() [][]Task {
	devices, m := p.sh.Devices, p.sh.Micro
	order := make([][]Task, devices)
	for d := range order {
		list := make([]Task, 0, 3*m)
		warm := min(devices-d-1, m)
		for i := range warm {
			list = append(list, Task{d, i, Forward})
		}
		for i := range m {
			if warm+i < m {
				list = append(list, Task{d, warm + i, Forward})
			}
			list = append(list, Task{d, i, Backward})
			if i >= d {
				list = append(list, Task{d, i - d, Weight})
			}
		}
		for i := max(0, m-d); i < m; i++ {
			list = append(list, Task{d, i, Weight})
		}
		order[d] = list
	}
	return order
}

// zbv is the schedule of arXiv 2401.10241 by the counts of PyTorch's ScheduleZBVZeroBubble:
// the order for at least 2p−1 micro-batches, without those that there are not.
func (p *pipe) zbv() [][]Task {
	devices := p.sh.Devices
	m := max(p.sh.Micro, 2*devices-1)
	order := make([][]Task, devices)
	for d := range order {
		list := make([]Task, 0, 6*p.sh.Micro)
		var done [2][3]int // tasks so far, by chunk and kind
		add := func(chunk int, kinds ...Kind) {
			for _, kind := range kinds {
				i := done[chunk][kind]
				if done[chunk][kind]++; i < p.sh.Micro {
					stage := d
					if chunk == 1 {
						stage = 2*devices - 1 - d
					}
					list = append(list, Task{stage, i, kind})
				}
			}
		}
		for range 2*(devices-d) - 1 {
			add(0, Forward)
		}
		for range d {
			add(1, Forward)
			add(0, Forward)
		}
		for range devices - d {
			add(1, Forward, Backward, Weight)
		}
		for done[1][Forward] < done[0][Forward] || done[0][Forward] < m {
			if done[0][Forward] < m {
				add(0, Forward)
			}
			add(0, Backward, Weight)
			add(1, Forward, Backward, Weight)
		}
		for range d {
			add(0, Backward)
			add(1, Backward)
		}
		for range devices - d {
			add(0, Backward, Weight)
		}
		for chunk := 1; chunk >= 0; chunk-- {
			for done[chunk][Weight] < done[chunk][Backward] {
				add(chunk, Weight)
			}
		}
		order[d] = list
	}
	return order
}

// fill places the gradients of weights in an order that keeps its forward and backward tasks, as the
// automatic schedule of arXiv 2401.10241 (section 3.1) does: where a device waits for at least a quarter of
// the time of one (of several fractions, the one with the shortest steps on average over random times),
// where it must free memory before its next forward task, and at the end.
func (p *pipe) fill(order [][]Task) (filled [][]Task, total float64) {
	pl := p.play()
	limit := p.sh.Devices * p.sh.Chunks
	filled = make([][]Task, len(order))
	state := make([]struct {
		next            int // in order
		weight          int // in filled: the backward tasks before it have run their gradient of weights
		backward, freed int // tasks that have run, backward and gradient of weights
		forward         int
	}, len(order))
	for d := range order {
		filled[d] = make([]Task, 0, len(order[d]))
	}
	pl.each(func(d int) (sent int, ok bool) {
		st := &state[d]
		for st.next < len(order[d]) && order[d][st.next].Kind == Weight {
			st.next++
		}
		end := st.next == len(order[d])
		var t Task
		var at float64
		if !end {
			t = order[d][st.next]
			if at, _, ok = pl.ready(t); !ok {
				return -1, false
			}
		}
		for st.freed < st.backward {
			for filled[d][st.weight].Kind != Backward {
				st.weight++
			}
			w := filled[d][st.weight]
			w.Kind = Weight
			gap := at - pl.free[d]
			fits := gap > 0 && gap >= pl.time[Weight][w.Stage]/4
			full := t.Kind == Forward && st.forward-st.freed == limit
			if !end && !fits && !full {
				break
			}
			pl.run(w, pl.free[d])
			filled[d] = append(filled[d], w)
			st.weight++
			st.freed++
		}
		if end {
			return -1, false
		}
		_, sent = pl.run(t, max(at, pl.free[d]))
		filled[d] = append(filled[d], t)
		st.next++
		if t.Kind == Forward {
			st.forward++
		} else {
			st.backward++
		}
		return sent, true
	})
	return filled, pl.total
}
