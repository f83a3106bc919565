package tensor

// Sampler is the order in which steps take the samples of a data set: as they
// are, or, shuffled, in an order that each pass over the data draws from the seed. It is a pure function of
// the step, so that a run that is resumed takes what it would have taken.
type Sampler struct {
	Samples, Batch int
	Shuffle        bool
	Seed           uint64

	pass  int
	order []int // of pass
}

// shuffleStream separates the draws of orders from those of other random
// numbers of the seed.
const shuffleStream = 1 << 40

// Step are the samples of a step, counted from 0. What a pass leaves over,
// fewer than a batch, it does not take.
func (s *Sampler) Step(step int) []int {
	each := s.Samples / s.Batch
	pass, first := step/each, step%each*s.Batch
	out := make([]int, s.Batch)
	for i := range out {
		out[i] = first + i
	}
	if !s.Shuffle {
		return out
	}
	if s.order == nil || s.pass != pass {
		s.pass, s.order = pass, permutation(s.Samples, NewStream(s.Seed, shuffleStream+uint64(pass)))
	}
	for i := range out {
		out[i] = s.order[first+i]
	}
	return out
}

// permutation is 0 … n-1 in a random order (Fisher and Yates).
func permutation(n int, s Stream) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := int(s.Bits(uint64(i)) % uint64(i+1)) // n is far below 2^64: the bias is too
		p[i], p[j] = p[j], p[i]
	}
	return p
}
