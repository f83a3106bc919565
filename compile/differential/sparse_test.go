package differential

import (
	"fmt"
	"testing"

	"dmir/internal/need"
	"dmir/internal/randprog"
)

// Random programs on sparse tensors compute what the reference does, on the processor and
// the emulated GPU.
func TestSparsePrograms(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	var cases []Case
	for seed := range uint64(6) {
		c := Case{Name: fmt.Sprint("seed ", seed), Text: randprog.Sparse(seed), Seed: 1}
		if seed%2 == 0 {
			c.Device = "cpu"
		}
		cases = append(cases, c)
	}
	agree(t, cases)
}
