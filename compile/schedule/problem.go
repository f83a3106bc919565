package schedule

import (
	"slices"

	"dmir/compile/pass"
)

// problem is an instance of memory-aware scheduling: tasks that define and read
// stores. Tasks are numbered in a valid order.
type problem struct {
	tasks []task
	size  []int64 // bytes of each store
	kept  []bool  // the store is never freed
	base  int64   // bytes that are live throughout
}

// task is a step.
type task struct {
	after   []int   // tasks that define its operands, each once
	reads   []int   // stores, each once
	makes   []int   // stores
	over    [][]int // for each of makes the stores that it may overwrite, if this task is their last reader; may be nil
	scratch int64   // bytes of scratch memory
	ns      float64 // predicted time
	once    bool    // it is never repeated
}

// problem is the instance for g's steps, with sizes rounded up to Align or
// exact.
func (g *model) problem(rounded bool) *problem {
	size := func(r *root) int64 {
		if rounded {
			return r.size
		}
		return r.bytes
	}
	p := &problem{}
	store := map[*root]int{}
	for _, r := range g.roots {
		if r.persistent() {
			p.base += size(r)
			continue
		}
		store[r] = len(p.size)
		p.size = append(p.size, size(r))
		p.kept = append(p.kept, r.out)
	}
	for _, s := range g.steps {
		t := task{scratch: s.scratch, once: pass.Controls(s.op)}
		for _, r := range s.reads {
			if r.persistent() {
				continue
			}
			t.reads = append(t.reads, store[r])
			if !slices.Contains(t.after, r.maker.index) {
				t.after = append(t.after, r.maker.index)
			}
		}
		for _, i := range g.before(s) {
			if !slices.Contains(t.after, i) {
				t.after = append(t.after, i)
			}
		}
		for i, r := range s.makes {
			t.makes = append(t.makes, store[r])
			var over []int
			for _, x := range g.over(s, i) {
				over = append(over, store[x])
			}
			t.over = append(t.over, over)
		}
		p.tasks = append(p.tasks, t)
	}
	return p
}

// readers is the number of readers of each store.
func (p *problem) readers() []int32 {
	n := make([]int32, len(p.size))
	for i := range p.tasks {
		for _, s := range p.tasks[i].reads {
			n[s]++
		}
	}
	return n
}

// behind are the tasks that wait for each one.
func (p *problem) behind() [][]int {
	out := make([][]int, len(p.tasks))
	for i := range p.tasks {
		for _, j := range p.tasks[i].after {
			out[j] = append(out[j], i)
		}
	}
	return out
}

// state is memory between tasks.
type state struct {
	*problem
	left []int32 // tasks still to read each store
	live int64
}

func (p *problem) start() *state { return &state{p, p.readers(), p.base} }

// held is the live memory while task i runs next.
func (m *state) held(i int) int64 {
	t := &m.tasks[i]
	n := m.live + t.scratch
	var taken [4]int
	used := taken[:0]
	for k, s := range t.makes {
		n += m.size[s]
		if t.over == nil {
			continue
		}
		for _, x := range t.over[k] {
			if m.left[x] == 1 && !m.kept[x] && !slices.Contains(used, x) {
				n -= m.size[x]
				used = append(used, x)
				break
			}
		}
	}
	return n
}

// gain is the change of live memory once task i has run next.
func (m *state) gain(i int) (n int64) {
	t := &m.tasks[i]
	for _, s := range t.makes {
		if m.left[s] > 0 || m.kept[s] {
			n += m.size[s]
		}
	}
	for _, s := range t.reads {
		if m.left[s] == 1 && !m.kept[s] {
			n -= m.size[s]
		}
	}
	return n
}

// run runs task i.
func (m *state) run(i int) {
	m.live += m.gain(i)
	for _, s := range m.tasks[i].reads {
		m.left[s]--
	}
}

// holds is the live memory while each task of order runs, and its maximum.
func (p *problem) holds(order []int) (live []int64, peak int64) {
	m := p.start()
	live = make([]int64, len(order))
	peak = p.base
	for at, i := range order {
		live[at] = m.held(i)
		peak = max(peak, live[at])
		m.run(i)
	}
	return live, max(peak, m.live)
}

// peak is the maximum live memory of order.
func (p *problem) peak(order []int) int64 {
	_, peak := p.holds(order)
	return peak
}

// least is a lower bound on the peak of any order: the memory of the largest
// task by itself, and that live at the end.
func (p *problem) least() int64 {
	end := p.base
	most := p.base
	for s, n := range p.size {
		if p.kept[s] {
			end += n
		}
	}
	left := p.readers()
	for i := range p.tasks {
		t := &p.tasks[i]
		n := p.base + t.scratch
		for _, s := range t.reads {
			n += p.size[s]
		}
		var used []int
		for k, s := range t.makes {
			n += p.size[s]
			if t.over == nil {
				continue
			}
			for _, x := range t.over[k] {
				if !p.kept[x] && left[x] > 0 && !slices.Contains(used, x) {
					n -= p.size[x]
					used = append(used, x)
					break
				}
			}
		}
		most = max(most, n)
	}
	return max(most, end)
}

// textOrder is 0, 1, 2 …
func (p *problem) textOrder() []int {
	order := make([]int, len(p.tasks))
	for i := range order {
		order[i] = i
	}
	return order
}
