package machine

// Streamed is how long blocks of a kernel take to move bytes, its start aside: as long as memory takes at the rate that
// kernels reach; as the multiprocessors that have blocks take for all bytes, each at its part of the level-2 cache's
// bandwidth; and as the loads take that wait for each other, of which the first is in Fill. By Little's law those are the
// bytes that a thread reads over those that it has in flight together (Volkov, Better Performance at Lower Occupancy, 2010).
func (m *Machine) Streamed(memory, all, blocks int64, rounds float64) float64 {
	t := max(float64(memory)/m.Reach(), (rounds-1)*m.MemoryLatency)
	if m.SMs > 0 && m.L2Bandwidth > 0 {
		t = max(t, float64(all)/(m.L2Bandwidth*float64(min(blocks, int64(m.SMs)))/float64(m.SMs)))
	}
	return t
}
