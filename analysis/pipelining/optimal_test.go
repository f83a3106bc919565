package pipelining

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// search finds the least time of any order by trying all in which the tasks of a kind and stage run in the
// order of their micro-batches, which are alike, without those that reach a state that another one has reached.
type search struct {
	*pipe
	limit []int // by device: how many micro-batches it may hold, counted once for each of its stages
	best  float64
	seen  map[string]bool
}

func (x *search) try(pl *play, done [][3]int, held []int) {
	if pl.total >= x.best {
		return
	}
	left := 0
	busiest := 0.0
	for d := range x.sh.Devices {
		end := pl.free[d]
		for _, s := range StagesOf(x.s, x.sh, d) {
			for kind := range x.kinds() {
				n := x.sh.Micro - done[s][kind]
				left += n
				end += float64(n) * x.time[kind][s]
			}
		}
		busiest = max(busiest, end+x.once[d])
	}
	if left == 0 {
		x.best = pl.total
		return
	}
	key := fmt.Sprint(done, pl.free, pl.link, pl.arrived)
	if busiest >= x.best || x.seen[key] {
		return
	}
	x.seen[key] = true
	for s := range x.stages {
		for kind := range x.kinds() {
			t := Task{s, done[s][kind], Kind(kind)}
			d := x.device[s]
			if t.Micro == x.sh.Micro || t.Kind == Forward && held[d] == x.limit[d] {
				continue
			}
			ready, _, ok := pl.ready(t)
			if !ok {
				continue
			}
			next := *pl
			next.made, next.arrived = append([]float64{}, pl.made...), append([]float64{}, pl.arrived...)
			next.free, next.link = append([]float64{}, pl.free...), append([][2]float64{}, pl.link...)
			next.run(t, max(ready, pl.free[d]))
			done[s][kind]++
			by := 0
			switch {
			case t.Kind == Forward:
				by = 1
			case int(t.Kind) == x.kinds()-1:
				by = -1
			}
			held[d] += by
			x.try(&next, done, held)
			held[d] -= by
			done[s][kind]--
		}
	}
}

// How far the schedules are from the best order within the same memory, for pipelines that are small enough
// to try all orders. The bound is never above the best order, nor the best order above the schedule's.
func TestBestOrdersOfSmallPipelines(t *testing.T) {
	most := 3
	if testing.Short() {
		most = 2
	}
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range Schedules {
		for m := 1; m <= most; m++ {
			for v := 1; v <= 2; v++ {
				sh := Shape{2, v, m}
				if Check(s, sh) != nil || s == ZBV && m == 3 {
					continue
				}
				worst, sum, n := 0.0, 0.0, 0
				for i := range 6 {
					times := even(sh, 1, 1, 1)
					for stage := range sh.Stages() {
						if i > 0 {
							times.Forward[stage], times.Backward[stage] = float64(1+r.IntN(4)), float64(1+r.IntN(4))
							times.Weight[stage] = float64(1 + r.IntN(4))
						}
						if i > 3 && stage > 0 {
							times.Transfer = append(times.Transfer, float64(r.IntN(3)))
						}
					}
					tl := simulated(t, s, sh, times, Memory{})
					p, err := newPipe(s, sh, times)
					if err != nil {
						t.Fatal(err)
					}
					x := &search{pipe: p, best: tl.Total + 1, seen: map[string]bool{}}
					for d := range sh.Devices {
						x.limit = append(x.limit, InFlight(s, sh, d))
					}
					x.try(p.play(), make([][3]int, p.stages), make([]int, sh.Devices))
					if x.best > tl.Total || p.estimate() > x.best {
						t.Errorf("%s %+v %+v: bound %v, best %v, simulated %v", s, sh, times, p.estimate(), x.best, tl.Total)
					}
					if i == 0 && x.best != tl.Total {
						t.Errorf("%s %+v with equal times: %v, but %v is possible", s, sh, tl.Total, x.best)
					}
					worst, sum, n = max(worst, tl.Total/x.best), sum+tl.Total/x.best, n+1
				}
				t.Logf("%-11s p=2 v=%d m=%d: %.3f times as long as the best order on average, %.3f at worst", s, v, m, sum/float64(n), worst)
			}
		}
	}
}
