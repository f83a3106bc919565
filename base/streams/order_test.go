package streams

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"dmir/base/work"
)

// best is the least time of steps in one of the orders, or as they are.
func best(t *testing.T, steps []Step, orders [][]int) (total, given float64) {
	t.Helper()
	s, err := Timeline(steps)
	if err != nil {
		t.Fatal(err)
	}
	total = s.Total
	for _, o := range orders {
		moved := InOrder(steps, o) // a step before one that it uses is an error of Timeline
		for k, i := range o {
			if steps[i].Alone && k != i {
				t.Fatalf("step %d runs alone, and is step %d of %v", i, k, o)
			}
		}
		x, err := Timeline(moved)
		if err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		total = min(total, x.Total)
	}
	return total, s.Total
}

// What programs gain: layers of a backward pass whose input gradients are reduced behind weight gradients, gradients that are
// reduced while others are computed, weights gathered a layer ahead.
func TestOrders(t *testing.T) {
	const layers = 8
	var tensor, data, gathered []Step
	for i := range layers { // weight gradient, input gradient, its reduction, what follows
		at := len(tensor)
		var after []int
		if i > 0 {
			after = []int{at - 1}
		}
		tensor = append(tensor, compute(2, after...), compute(2, after...), comm(2, at+1), compute(1, at+2))
	}
	for i := range layers { // input gradients, and then all weight gradients with their reductions
		data = append(data, compute(2, []int{i - 1}[:min(i, 1)]...))
	}
	for i := range layers {
		data = append(data, compute(2, i), comm(2, layers+2*i))
	}
	for i := range layers {
		at := len(gathered)
		after := []int{at}
		if i > 0 {
			after = append(after, at-1)
		}
		gathered = append(gathered, comm(2), compute(3, after...))
	}
	for _, c := range []struct {
		name        string
		steps       []Step
		given, want float64
	}{
		{"input gradients first", tensor, 7 * layers, 5 * layers},
		{"reductions behind gradients", data, 4*layers + 2, 4*layers + 2},
		{"gathered ahead", gathered, 2 + 3*layers, 2 + 3*layers},
		{"loops stay", []Step{compute(1), comm(4, 0), alone(1, 1), compute(3)}, 9, 9},
		{"around no loop", []Step{comm(4), compute(1, 0), compute(3), alone(1)}, 9, 6},
	} {
		if got, given := best(t, c.steps, Orders(c.steps, nil)); got != c.want || given != c.given {
			t.Errorf("%s: %v, and %v as given; want %v and %v", c.name, got, given, c.want, c.given)
		}
	}
}

// all calls f with all orders in which steps can run.
func all(steps []Step, f func([]int)) {
	var order []int
	var next func()
	next = func() {
		if len(order) == len(steps) {
			f(order)
		}
		for i, s := range steps {
			ok := !slices.Contains(order, i) && (!s.Alone || i == len(order))
			for k := range i {
				ok = ok && (!steps[k].Alone || slices.Contains(order, k))
			}
			for k := i + 1; k < len(steps); k++ {
				ok = ok && (!s.Alone || !slices.Contains(order, k))
			}
			for _, d := range s.After {
				ok = ok && slices.Contains(order, d)
			}
			if ok {
				order = append(order, i)
				next()
				order = order[:len(order)-1]
			}
		}
	}
	next()
}

// Of random programs the best order found takes no more than what is given and, in the mean, hardly more than the best one.
func TestOrdersAgainstAll(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	worst, ratio, moved := 1.0, 0.0, 0
	const trials = 150
	for range trials {
		steps := make([]Step, 2+r.IntN(6))
		for i := range steps {
			steps[i] = Step{Communication: r.IntN(3) == 0, Duration: float64(1 + r.IntN(9))}
			steps[i].Alone = !steps[i].Communication && r.IntN(12) == 0
			for range r.IntN(3) {
				if i > 0 {
					if d := r.IntN(i); !slices.Contains(steps[i].After, d) {
						steps[i].After = append(steps[i].After, d)
					}
				}
			}
		}
		least := math.Inf(1)
		all(steps, func(order []int) {
			s, err := Timeline(InOrder(steps, order))
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, s.Total)
		})
		got, given := best(t, steps, Orders(steps, nil))
		if got < least || got > given {
			t.Fatalf("%v: %v found, %v given, %v is the least", steps, got, given, least)
		}
		if got < given {
			moved++
		}
		worst, ratio = max(worst, got/least), ratio+got/least/trials
	}
	t.Logf("%d of %d became faster; %.3f of the best in the mean, %.2f at worst", moved, trials, ratio, worst)
	if ratio > 1.005 || moved < trials/10 {
		t.Errorf("orders take %.3f of the best ones in the mean, %d of %d are faster than as given", ratio, moved, trials)
	}
}

// What is visited grows with the steps, times their logarithm.
func TestOrdersOfManySteps(t *testing.T) {
	visits := func(layers int) int {
		var steps []Step
		for i := range layers {
			var after []int
			if i > 0 {
				after = []int{len(steps) - 1}
			}
			at := len(steps)
			steps = append(steps, compute(2, after...), compute(2, after...), comm(2, at), comm(2, at+1), compute(1, at+3))
		}
		var counts work.Counts
		Orders(steps, &counts)
		return counts.Take()["order"]
	}
	each := func(layers int) int { return visits(layers) / layers / bits.Len(uint(5*layers)) }
	if few, many := each(50), each(3200); many > few+few/4 || few == 0 {
		t.Errorf("%d visits for each layer and bit of their number, of 64 times as many %d", few, many)
	}
}
