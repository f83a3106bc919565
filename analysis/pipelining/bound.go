package pipelining

// Estimate is a lower bound of the time of the step under schedule s, without playing it: no order of the
// tasks takes less, whatever it holds. It is the largest of
//   - for each device, the time until its first stage has its first micro-batch, its work, and what must
//     follow on other devices;
//   - the way of one micro-batch forward through all stages and back.
func Estimate(s Schedule, sh Shape, t Times) (float64, error) {
	p, err := newPipe(s, sh, t)
	if err != nil {
		return 0, err
	}
	return p.estimate(), nil
}

func (p *pipe) estimate() float64 {
	m := float64(p.sh.Micro)
	head := make([]float64, p.stages) // until the stage can start
	tail := make([]float64, p.stages) // from the end of a Backward of the stage to the end of the step
	work := make([]float64, p.sh.Devices)
	weights := make([]float64, p.sh.Devices)
	first := make([]int, p.sh.Devices) // the first stage of the device
	for s := p.stages - 1; s >= 0; s-- {
		d := p.device[s]
		work[d] += m * (p.time[Forward][s] + p.time[Backward][s])
		if p.split {
			weights[d] += m * p.time[Weight][s]
		}
		first[d] = s
	}
	for s := range p.stages {
		after := p.once[p.device[s]]
		if p.split {
			after += p.time[Weight][s]
		}
		if s == 0 {
			tail[s] = after
			continue
		}
		head[s] = head[s-1] + p.time[Forward][s-1] + p.transfer[s-1]
		tail[s] = max(after, p.transfer[s-1]+p.time[Backward][s-1]+tail[s-1])
	}
	last := p.stages - 1
	bound := head[last] + p.time[Forward][last] + p.time[Backward][last] + tail[last]
	for d, s := range first {
		bound = max(bound, head[s]+work[d]+tail[s], head[s]+work[d]+weights[d]+p.once[d])
	}
	return bound
}

// Bubble is how much longer a step takes than the work of a device, as a fraction of that work, if all
// stages take the same time and transfers and Once take none. forward, backward and weight are the times
// of the tasks of one micro-batch in a stage (F, B, W).
//   - GPipe and 1F1B: (p−1)/m (arXiv 2104.04473, section 2.2.1)
//   - interleaved: (p−1)/(v·m) (arXiv 2104.04473, section 2.2.2), from m = p on
//   - ZB-H1: (p−1)(F+B−W) / m(F+B+W) (arXiv 2401.10241, section 2), which with F = B = W is a third of
//     that of 1F1B, from m = p on; where W is longer than F or B it fills no more than the shorter one, and
//     W in the difference is the least of the three
//   - ZB-V: (p−1)F / 2m(F+B+W) for F = B = W, from m = p on. It is the time until the last device has its
//     first micro-batch; after that no device waits, and arXiv 2401.10241, which counts from the
//     first task of each device, states 0.
//
// It is not known (ok is false) for fewer micro-batches, and for ZB-V with other times: simulate those.
func Bubble(s Schedule, sh Shape, forward, backward, weight float64) (fraction float64, ok bool) {
	if Check(s, sh) != nil {
		return 0, false
	}
	p, m, v := float64(sh.Devices-1), float64(sh.Micro), float64(sh.Chunks)
	task := forward + backward + weight
	switch {
	case task == 0 || s != GPipe && s != OneFOneB && sh.Micro < sh.Devices:
		return 0, false
	case s == ZBH1:
		return p * (forward + backward - min(forward, backward, weight)) / (m * task), true
	case s == ZBV:
		return p * forward / (2 * m * task), forward == backward && backward == weight
	}
	return p / (v * m), true
}

// InFlight is the most micro-batches that a device holds activations of, counted once for each of its
// stages: m for GPipe, p−d for 1F1B (arXiv 2104.04473, section 2.2.1), 2(p−d−1) + (v−1)p + 1 interleaved
// with m a multiple of p (the warm-up of Megatron-LM and one more), p for ZB-H1 and 2p, of stages half as
// large, for ZB-V (arXiv 2401.10241), and never more than all of them. Orders for ZB schedules may hold less.
func InFlight(s Schedule, sh Shape, device int) int {
	all := sh.Micro * sh.Chunks
	switch s {
	case GPipe:
		return all
	case OneFOneB:
		return min(all, sh.Devices-device)
	case Interleaved:
		if sh.Chunks == 1 {
			return InFlight(OneFOneB, sh, device)
		}
		groups := max(1, sh.Micro/sh.Devices)
		return min(all, interleavedWarmUp(sh.Devices, sh.Chunks, (sh.Micro+groups-1)/groups, device)+1)
	}
	return min(all, sh.Devices*sh.Chunks)
}
