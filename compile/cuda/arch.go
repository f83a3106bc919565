package cuda

import (
	"strconv"
	"strings"

	"dmir/analysis/machine"
)

// blockShared is the largest shared memory of a block, in bytes, by compute capability: "Maximum amount of shared memory per thread
// block" of the technical specifications in the CUDA C++ Programming Guide.
var blockShared = map[string]int64{
	"80": 163 << 10, "86": 99 << 10, "87": 163 << 10, "89": 99 << 10, "90": 227 << 10, "100": 227 << 10, "101": 227 << 10,
	"103": 227 << 10, "110": 227 << 10, "120": 99 << 10, "121": 99 << 10,
}

// dependent reports whether kernels for an architecture may start before those before them have ended: from sm_90 up.
func dependent(arch string) bool {
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "af"))
	return err == nil && n >= 90
}

// on is m as far as kernels for an architecture can use it: what is compiled for one may be predicted for a larger machine.
func on(m *machine.Machine, arch string) *machine.Machine {
	if !dependent(arch) {
		m = m.Serial()
	}
	limit, known := blockShared[strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "af")]
	if !known || m.SharedMemory <= limit {
		return m
	}
	smaller := *m
	smaller.SharedMemory = limit
	return &smaller
}
