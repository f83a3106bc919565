package solve

import (
	"math/rand/v2"
	"testing"
)

// A choice of which the marks tell that it costs more than another one is not found to be no worse.
func TestMarks(t *testing.T) {
	told, kept := 0, 0
	for seed := range 300 {
		s := shape{vars: 6, choices: 8, density: 0.5, limits: 1, excess: 1, infinite: []float64{0, 0.3}[seed%2], integers: seed%3 == 0}
		m := compile(s.random(rand.New(rand.NewPCG(uint64(seed), 3))))
		r := &rivalry{m: m, alive: m.all(), stats: &Stats{}}
		for v := range m.vars {
			r.of(v)
			for a := range r.alive[v] {
				for b := range r.alive[v] {
					switch {
					case a == b || !r.told(b, a):
						kept++
					case r.noWorse(b, a):
						t.Fatalf("seed %d: of variable %d choice %d is no worse than %d; marks %v", seed, v, b, a, r.marks)
					default:
						told++
					}
				}
			}
		}
	}
	if told < kept {
		t.Errorf("marks tell of %d pairs and not of %d", told, kept)
	}
}
