package streams

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"dmir/base/work"
)

// Orders are orders in which steps, given in one, can run as well, each step by its number: list schedules of the two
// streams, among which is one with little time exposed. Communication begins as soon as what it waits for has ended and the
// stream is free, that first of which most hangs; what computes beside it is chosen
//
//   - in the order given,
//   - by what hangs on it: the longest chain of steps behind it, so that other work is left for the gaps of that chain,
//   - while no communication runs, as what leads to the next one soonest, and else in the order given.
//
// A step overtakes none that stands reach places or more before it, which bounds what results live longer; reach goes down
// from all steps to a few. Steps that run alone stay where they are, and so does what lies before and behind them.
//
// The visits of steps that counts has, as "order", grow with the steps and what they wait for, times the logarithm of the steps.
func Orders(steps []Step, counts *work.Counts) [][]int {
	var out [][]int
	for reach := len(steps); ; reach /= 4 {
		for _, p := range []preference{asGiven, longest, soonest} {
			order := make([]int, 0, len(steps))
			for from, to := range segments(steps) {
				order = newList(steps, from, to, reach, p, counts).run(order)
			}
			if !slices.IsSorted(order) && !slices.ContainsFunc(out, func(o []int) bool { return slices.Equal(o, order) }) {
				out = append(out, order)
			}
		}
		if reach <= leastReach {
			return out
		}
	}
}

// Hidden is the schedule of steps in the order, of Orders and the one given, whose schedule is given, that takes the least
// time: the given one where no other takes Worth less. Spans are by the steps as they are given.
func Hidden(steps []Step, given Schedule, counts *work.Counts) (Schedule, error) {
	best, limit := given, given.Total*(1-Worth)
	if given.Exposed <= given.Total*Worth { // there is nothing to gain
		return best, nil
	}
	for _, order := range Orders(steps, counts) {
		s, err := Timeline(InOrder(steps, order))
		if err != nil {
			return given, err
		}
		if s.Total >= limit {
			continue
		}
		spans := make([]Span, len(steps))
		for k, i := range order {
			spans[i] = s.Spans[k]
		}
		best, limit = s, s.Total
		best.Spans = spans
	}
	return best, nil
}

// Worth is the part of the time from which another order is taken: less is within the error of the times of steps.
const Worth = 0.005

// leastReach is the least by which steps overtake others.
const leastReach = 8

// InOrder are the steps in another order.
func InOrder(steps []Step, order []int) []Step {
	at := make([]int, len(steps))
	for k, i := range order {
		at[i] = k
	}
	out := make([]Step, len(steps))
	for k, i := range order {
		out[k] = steps[i]
		out[k].After = make([]int, len(steps[i].After))
		for n, d := range steps[i].After {
			out[k].After[n] = at[d]
		}
	}
	return out
}

// segments are the stretches of steps that do not run alone, and each that does.
func segments(steps []Step) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		from := 0
		for i, s := range steps {
			if !s.Alone {
				continue
			}
			if i > from && !yield(from, i) || !yield(i, i+1) {
				return
			}
			from = i + 1
		}
		if from < len(steps) {
			yield(from, len(steps))
		}
	}
}

// preference is which of the steps of computation that can run does.
type preference uint8

const (
	asGiven preference = iota
	longest
	soonest
)

// list is a list schedule of the steps [from, to).
type list struct {
	steps    []Step
	from     int
	users    [][]int // who waits for each; of those numbers and the following, from 0
	waits    []int
	behind   []float64 // the longest chain that begins with each
	sooner   []float64 // the computation between each and the next communication
	reach    int
	first    int // the first that has not begun
	open     int // those before may begin
	begun    []bool
	prefer   preference
	computes [2]queue // that can begin: by preference, and by sooner
	comms    queue
	counts   *work.Counts
	visits   int
}

func newList(steps []Step, from, to, reach int, p preference, counts *work.Counts) *list {
	n := to - from
	l := &list{
		steps: steps[from:to], from: from, reach: max(reach, 1), prefer: p, counts: counts,
		users: make([][]int, n), waits: make([]int, n), behind: make([]float64, n), sooner: make([]float64, n), begun: make([]bool, n),
	}
	for i, s := range l.steps {
		for _, d := range s.After {
			if d -= from; d >= 0 {
				l.users[d] = append(l.users[d], i)
				l.waits[i]++
				l.visits++
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		l.sooner[i] = math.Inf(1)
		for _, u := range l.users[i] {
			l.behind[i] = max(l.behind[i], l.behind[u])
			if l.steps[u].Communication {
				l.sooner[i] = 0
			} else {
				l.sooner[i] = min(l.sooner[i], l.steps[u].Duration+l.sooner[u])
			}
		}
		l.behind[i] += l.steps[i].Duration
		l.visits += 1 + len(l.users[i])
	}
	less := func(key []float64, sign float64) func(a, b int) bool {
		return func(a, b int) bool { return cmp.Or(cmp.Compare(sign*key[a], sign*key[b]), cmp.Compare(a, b)) < 0 }
	}
	urgent := less(l.behind, -1)
	l.comms.less = urgent
	l.computes[1].less = less(l.sooner, 1)
	if l.computes[0].less = urgent; p != longest {
		l.computes[0].less = func(a, b int) bool { return a < b }
	}
	return l
}

// run appends the steps in the order in which they begin.
func (l *list) run(order []int) []int {
	now, n := 0.0, len(l.steps)
	running := [2]int{-1, -1} // of computation, and of communication
	var ends [2]float64
	l.widen()
	for begun := 0; ; {
		for s := range running {
			if running[s] >= 0 {
				continue
			}
			i := l.next(s == 1, running[1] >= 0)
			if i < 0 {
				continue
			}
			l.begun[i] = true
			order = append(order, l.from+i)
			running[s], ends[s] = i, now+l.steps[i].Duration
			begun++
			l.widen()
		}
		switch {
		case running[0] >= 0 && (running[1] < 0 || ends[0] <= ends[1]):
			now = ends[0]
			l.end(&running[0])
		case running[1] >= 0:
			now = ends[1]
			l.end(&running[1])
		}
		if begun == n {
			l.counts.Add("order", l.visits)
			return order
		}
	}
}

// widen lets steps begin that stand no more than reach behind the first that has not begun.
func (l *list) widen() {
	for l.first < len(l.steps) && l.begun[l.first] {
		l.first++
	}
	for ; l.open < min(len(l.steps), l.first+l.reach); l.open++ {
		l.visits++
		if l.waits[l.open] == 0 {
			l.ready(l.open)
		}
	}
}

func (l *list) ready(i int) {
	switch {
	case l.steps[i].Communication:
		heap.Push(&l.comms, i)
	case l.prefer == soonest:
		heap.Push(&l.computes[1], i)
		heap.Push(&l.computes[0], i)
	default:
		heap.Push(&l.computes[0], i)
	}
	l.visits++
}

// next takes the step that a stream runs next; -1: none can run.
func (l *list) next(communicates, busy bool) int {
	q := &l.computes[0]
	switch {
	case communicates:
		q = &l.comms
	case l.prefer == soonest && !busy && len(l.comms.of) == 0:
		q = &l.computes[1]
	}
	for len(q.of) > 0 {
		l.visits++
		if i := heap.Pop(q).(int); !l.begun[i] { // of two queues, the other may have had it
			return i
		}
	}
	return -1
}

func (l *list) end(i *int) {
	for _, u := range l.users[*i] {
		l.visits++
		if l.waits[u]--; l.waits[u] == 0 && u < l.open {
			l.ready(u)
		}
	}
	*i = -1
}

// queue is a heap of steps.
type queue struct {
	of   []int
	less func(a, b int) bool
}

func (q *queue) Len() int           { return len(q.of) }
func (q *queue) Less(i, j int) bool { return q.less(q.of[i], q.of[j]) }
func (q *queue) Swap(i, j int)      { q.of[i], q.of[j] = q.of[j], q.of[i] }
func (q *queue) Push(x any)         { q.of = append(q.of, x.(int)) }
func (q *queue) Pop() any {
	last := q.of[len(q.of)-1]
	q.of = q.of[:len(q.of)-1]
	return last
}
