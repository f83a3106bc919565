package driver

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"dmir/testkit/randprog"
)

// Random programs, fused by the compiler, agree with the
// reference. $DMIR_ROUNDS gives more of them.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	rounds, _ := strconv.Atoi(os.Getenv("DMIR_ROUNDS"))
	if rounds == 0 {
		rounds = 12
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := loaded(t, fmt.Sprintf("random%d.dmir", seed), randprog.Messy(seed, 12))
			_, fn, err := Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			// Results of wide types come from half-precision ones all the same, which a
			// kernel need not round.
			least := 0.0
			for _, a := range fn.Args {
				if x := a.Tensor(); x != nil && x.Elem.Bytes() == 2 {
					least = 0.004
				}
			}
			agreeWithin(t, p, fn.Name, least)
		})
	}
}
