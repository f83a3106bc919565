package need

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// turn is which of the cases that take turns this run does: the number in $DMIR_TURN,
// else a random one; all of them where it is "all".
var turn = sync.OnceValues(func() (n uint, all bool) {
	value := os.Getenv("DMIR_TURN")
	if n, err := strconv.ParseUint(value, 10, 16); err == nil {
		return uint(n), false
	}
	return uint(rand.N(1 << 16)), value == "all"
})

// Turn reports whether a run does case i of a table whose cases cost too much for each
// run to do all: it does one of n. The log says which, and how to do the same again.
func Turn(t testing.TB, i, n int) bool {
	t.Helper()
	own, all := turn()
	if _, told := tells.LoadOrStore(t.Name(), true); !told && !all {
		t.Logf("one case of %d in turn: DMIR_TURN=%d does the same again, DMIR_TURN=all all of them", n, own)
	}
	return all || (uint(i)+own)%uint(n) == 0
}

// tells has the names of the tests whose log says which turn it is.
var tells sync.Map
