package driver

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"dmir/compile/pass"
	"dmir/internal/messy"
)

// Programs that nobody wrote, fused as the compiler likes, agree with the
// reference. $DMIR_ROUNDS gives more of them.
func TestRandomPrograms(t *testing.T) {
	needEmulator(t)
	rounds, _ := strconv.Atoi(os.Getenv("DMIR_ROUNDS"))
	if rounds == 0 {
		rounds = 12
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := loaded(t, fmt.Sprintf("random%d.dmir", seed), messy.Program(seed, 12))
			m, fn, err := Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			var unfit *pass.Error
			if _, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor("sm_90a")}); errors.As(err, &unfit) && unfit.Code == "DM804" {
				return // control flow runs in the reference alone
			}
			agree(t, p, fn.Name)
		})
	}
}
