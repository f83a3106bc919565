package artifact

import "testing"

// The order of uses of a buffer is checked between neighbours: the cost grows with
// their number, not with its square.
func TestOrderOfManyUses(t *testing.T) {
	const n = 10_000
	asked := 0
	after := func(i, j int) bool { asked++; return !(i == 6000 && j == 6001) }
	for _, c := range []struct {
		name  string
		write func(i int) bool
		found bool
	}{
		{"all write", func(int) bool { return true }, true},
		{"every second", func(i int) bool { return i%2 == 0 }, true},
		{"one", func(i int) bool { return i == 6000 }, true},
		{"none", func(int) bool { return false }, false},
		{"the last", func(i int) bool { return i == n-1 }, false},
	} {
		var uses []access
		for i := range n {
			uses = append(uses, access{step: i, read: true, write: c.write(i)})
		}
		asked = 0
		if i, j, found := firstUnordered(uses, after); found != c.found || found && (i != 6000 || j != 6001) {
			t.Errorf("%s: steps %d and %d, %v", c.name, i, j, found)
		}
		if asked > 3*n {
			t.Errorf("%s: asked %d times of %d uses", c.name, asked, n)
		}
	}
}
