package machine

// Epilogue is what the kernel of a product does with each element of its result before it is stored.
type Epilogue struct {
	Slots         float64 // instructions of a thread
	Read, Written float64 // bytes of memory, besides those of one result
	Width         int     // neighbours that a thread computes at once, from 1 on: loads for the next ones wait until these are stored
}

// epilogue is how long one block's threads take for the epilogue of so many elements, s: the loads of a thread wait for each other
// (Little's law) or for the multiprocessor's part of the bandwidth. Between them they compute: a warp issues every second clock at best,
// as instructions wait for those before, so that two warps of each of the four schedulers issue all the time, and one half of it.
func (m *Machine) epilogue(e Epilogue, elements, threads float64) float64 {
	if e == (Epilogue{}) || m.SMs == 0 || m.Clock == 0 {
		return 0
	}
	move := elements * (e.Read + e.Written) * float64(m.SMs) / m.Reach()
	if e.Read > 0 {
		move = max(move, elements/(threads*float64(max(e.Width, 1)))*m.MemoryLatency)
	}
	return move + elements*e.Slots/(min(warpgroup, threads/2)*m.Clock)
}

// Exposed is what p's epilogue adds to its time with tile t, s.
func (m *Machine) Exposed(p Product, t Tile) float64 {
	plain := p
	plain.Epilogue = Epilogue{}
	return max(0, m.ProductTime(p, t).Total()-m.ProductTime(plain, t).Total())
}
