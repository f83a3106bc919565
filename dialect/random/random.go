// Package random defines the numbers of dm.rng and dm.dropout, for all that executes or
// exports them. Position i of a stream of a seed has 64 bits,
// mix(mix(seed + Golden (stream + 1)) + Golden (i + 1)), where mix is the finaliser of
// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014):
//
//	z = (z ^ z>>30) * MixFirst
//	z = (z ^ z>>27) * MixSecond
//	z ^ z>>31
package random

// The factors.
const (
	Golden    = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	MixFirst  = 0xbf58476d1ce4e5b9
	MixSecond = 0x94d049bb133111eb
)

// The numbers of streams, which separate the uses of one seed.
const (
	Dropout = 1
	RNG     = 2
	Step    = 3 // of the seeds of steps
)
