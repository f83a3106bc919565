package machine

// Streaming is the bandwidth that so many blocks reach at once which keep flight bytes of loads in flight together: no
// more than kernels reach, than arrives while a load takes its time (Little's law; Volkov, Better Performance at Lower
// Occupancy, 2010), and than the multiprocessors that have blocks read of the level-2 cache, each its part.
func (m *Machine) Streaming(blocks, flight int64) float64 {
	rate := m.Reach()
	if m.MemoryLatency > 0 && flight > 0 {
		rate = min(rate, float64(flight)/m.MemoryLatency)
	}
	if m.SMs > 0 && m.L2Bandwidth > 0 {
		rate = min(rate, m.L2Bandwidth*float64(min(blocks, int64(m.SMs)))/float64(m.SMs))
	}
	return rate
}
