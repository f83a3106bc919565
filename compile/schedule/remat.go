package schedule

import "slices"

// recomputed is a problem in which some tasks run twice: what they make is given
// back after its early readers, and made again before the late ones, instead of
// being held in between.
type recomputed struct {
	*problem
	order  []int
	origin []int // of each task: the one that it repeats, itself for those of the start
	from   []int // of each store: the one whose value it holds again, itself for those of the start
	maker  []int // of each store: the task; -1 of one that is in use no more
	again  []int // the repeated tasks that are in use
	alone  func(task int) bool
}

// newRecomputed is p, in an order, with nothing recomputed. alone tells of which
// tasks single results can be made without the others.
func newRecomputed(p *problem, order []int, alone func(int) bool) *recomputed {
	r := &recomputed{problem: p, order: order, alone: alone}
	for i := range p.tasks {
		r.origin = append(r.origin, i)
	}
	r.maker = make([]int, len(p.size))
	for i := range p.tasks {
		for _, s := range p.tasks[i].makes {
			r.maker[s] = i
		}
	}
	for s := range p.size {
		r.from = append(r.from, s)
	}
	return r
}

// clone is a copy of r. What hangs below a task is shared: it is replaced and
// never changed.
func (r *recomputed) clone() *recomputed {
	p := &problem{size: slices.Clone(r.size), kept: slices.Clone(r.kept), base: r.base, tasks: slices.Clone(r.tasks)}
	return &recomputed{
		problem: p, order: slices.Clone(r.order), origin: slices.Clone(r.origin), from: slices.Clone(r.from),
		maker: slices.Clone(r.maker), again: slices.Clone(r.again), alone: r.alone,
	}
}

// link sets after of task i from what it reads.
func (r *recomputed) link(i int) {
	t := &r.tasks[i]
	t.after = nil
	for _, s := range t.reads {
		if !slices.Contains(t.after, r.maker[s]) {
			t.after = append(t.after, r.maker[s])
		}
	}
}

// exchange makes task i read store now where it read old.
func (r *recomputed) exchange(i, old, now int) {
	t := &r.tasks[i]
	swapped := func(s []int) []int {
		s = slices.Clone(s)
		for k := range s {
			if s[k] == old {
				s[k] = now
			}
		}
		return s
	}
	t.reads = swapped(t.reads)
	if t.over != nil {
		t.over = slices.Clone(t.over)
		for k := range t.over {
			t.over[k] = swapped(t.over[k])
		}
	}
	r.link(i)
}

// once reports whether store s can only be made once.
func (r *recomputed) once(s int) bool { return r.maker[s] >= 0 && r.tasks[r.maker[s]].once }

// late are the places behind place at whose tasks read store s.
func (r *recomputed) late(s, at int) (places []int) {
	for k := at + 1; k < len(r.order); k++ {
		if slices.Contains(r.tasks[r.order[k]].reads, s) {
			places = append(places, k)
		}
	}
	return places
}

// repeat makes store s again right before its first reader behind place at, for
// all readers from there on. What its maker reads and nothing holds there any
// more is made again too, up to depth tasks back; beyond that it is held.
// It reports false where that repeats nothing new.
func (r *recomputed) repeat(s, at, depth int) bool {
	late := r.late(s, at)
	if len(late) == 0 || r.kept[s] || r.once(s) {
		return false
	}
	readers := make([]int, len(late))
	for k, place := range late {
		readers[k] = r.order[place]
	}
	now := r.insert(s, late[0], depth)
	for _, i := range readers {
		r.exchange(i, s, now)
	}
	return true
}

// insert puts a repetition of the maker of s at a place and gives its store.
func (r *recomputed) insert(s, place, depth int) (now int) {
	t := r.maker[s]
	c := len(r.tasks)
	task := r.tasks[t]
	task.over, task.makes = nil, nil
	for _, made := range r.tasks[t].makes {
		if made != s && r.alone(r.origin[t]) {
			continue
		}
		n := len(r.size)
		r.size = append(r.size, r.size[made])
		r.kept = append(r.kept, false)
		r.from = append(r.from, r.from[made])
		r.maker = append(r.maker, c)
		task.makes = append(task.makes, n)
		if made == s {
			now = n
		}
	}
	r.tasks = append(r.tasks, task)
	r.origin = append(r.origin, r.origin[t])
	r.again = append(r.again, c)
	r.order = slices.Insert(r.order, place, c)
	for _, x := range task.reads {
		if depth > 0 && !r.kept[x] && !r.once(x) && len(r.late(x, place)) == 0 {
			before := len(r.order)
			y := r.insert(x, place, depth-1)
			r.exchange(c, x, y)
			place += len(r.order) - before
		}
	}
	r.link(c)
	return now
}

// drop takes repetition c back: its readers read the values of the start.
func (r *recomputed) drop(c int) {
	for _, s := range r.tasks[c].makes {
		for _, i := range r.order {
			if slices.Contains(r.tasks[i].reads, s) {
				r.exchange(i, s, r.from[s])
			}
		}
	}
	r.remove(c)
	for again := true; again; { // what only c needed
		again = false
		left := r.readers()
		for _, d := range r.again {
			if !slices.ContainsFunc(r.tasks[d].makes, func(s int) bool { return left[s] > 0 }) {
				r.remove(d)
				again = true
				break
			}
		}
	}
}

func (r *recomputed) remove(c int) {
	r.again = slices.DeleteFunc(r.again, func(x int) bool { return x == c })
	r.order = slices.DeleteFunc(r.order, func(x int) bool { return x == c })
	r.tasks[c].reads, r.tasks[c].makes, r.tasks[c].after = nil, nil, nil
}

// valid reports whether every task comes behind those it waits for.
func (r *recomputed) valid() bool {
	seen := map[int]bool{}
	for _, i := range r.order {
		for _, j := range r.tasks[i].after {
			if !seen[j] {
				return false
			}
		}
		seen[i] = true
	}
	return true
}

// compact is r without the tasks that are in use no more, in its order.
func (r *recomputed) compact() *recomputed {
	c := r.clone()
	now := make([]int, len(r.tasks))
	c.tasks, c.origin, c.again = nil, nil, nil
	for k, i := range r.order {
		now[i] = k
		c.tasks = append(c.tasks, r.tasks[i])
		c.origin = append(c.origin, r.origin[i])
	}
	for s := range c.maker {
		c.maker[s] = -1
	}
	for k := range c.tasks {
		t := &c.tasks[k]
		t.after = nil
		for _, j := range r.tasks[r.order[k]].after {
			t.after = append(t.after, now[j])
		}
		for _, s := range t.makes {
			c.maker[s] = k
		}
	}
	for _, i := range r.again {
		c.again = append(c.again, now[i])
	}
	c.order = c.textOrder()
	return c
}
