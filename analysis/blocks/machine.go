package blocks

// Machine is what a plan needs to know of an architecture.
type Machine struct {
	Bytes     int64 // of a vector
	Registers int64 // for vectors
	FMA       bool  // fused multiply-add
	Masks     bool  // loads and stores of a part of a vector are as fast as of a whole one
	// L1 and L2 are bytes of the data caches of one core, of the smallest one in use.
	L1, L2 int64

	// spare is how many registers compilers need besides the sums and a row of B: for
	// broadcast elements of A, a product without FMA, and loads that are moved up. With
	// fewer they keep sums in memory.
	spare int64
}

// machines are the architectures by the names that clang's -march has for them.
// Caches: v4 since Skylake-SP and Zen 4, v3 since Haswell and Zen, v2 since Nehalem,
// armv8 since Neoverse N1 and Cortex-A76.
var machines = map[string]Machine{
	"x86-64-v4": {Bytes: 64, Registers: 32, FMA: true, Masks: true, L1: 32 << 10, L2: 1 << 20, spare: 2},
	"x86-64-v3": {Bytes: 32, Registers: 16, FMA: true, L1: 32 << 10, L2: 512 << 10, spare: 2},
	"x86-64-v2": {Bytes: 16, Registers: 16, L1: 32 << 10, L2: 256 << 10, spare: 3},
	"armv8-a":   {Bytes: 16, Registers: 32, FMA: true, L1: 64 << 10, L2: 512 << 10, spare: 6},
}

// MachineOf is the machine called arch; of an unknown one the least is assumed.
func MachineOf(arch string) Machine {
	if m, ok := machines[arch]; ok {
		return m
	}
	return machines["x86-64-v2"]
}
