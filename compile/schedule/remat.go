package schedule

import "slices"

// rematerialized is a problem in which some tasks run twice: their results are
// freed after the early readers and recomputed before the late ones.
type rematerialized struct {
	*problem
	order      []int
	origin     []int // by task: the one that it repeats, itself for an original task
	from       []int // by store: the one whose value it has, itself for an original store
	maker      []int // by store: the task that defines it; -1 for one no longer used
	repeated   []int // the repeated tasks that are in use
	splittable func(task int) bool
}

// newRematerialized is p, in an order, with nothing recomputed. splittable
// reports whether single results of a task can be computed without the others.
func newRematerialized(p *problem, order []int, splittable func(int) bool) *rematerialized {
	r := &rematerialized{problem: p, order: order, splittable: splittable}
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

// clone is a copy of r. The slices of a task are shared, since they are
// replaced and never changed.
func (r *rematerialized) clone() *rematerialized {
	p := &problem{size: slices.Clone(r.size), kept: slices.Clone(r.kept), base: r.base, tasks: slices.Clone(r.tasks)}
	return &rematerialized{
		problem: p, order: slices.Clone(r.order), origin: slices.Clone(r.origin), from: slices.Clone(r.from),
		maker: slices.Clone(r.maker), repeated: slices.Clone(r.repeated), splittable: r.splittable,
	}
}

// link sets the predecessors of task i from its reads.
func (r *rematerialized) link(i int) {
	t := &r.tasks[i]
	t.after = nil
	for _, s := range t.reads {
		if !slices.Contains(t.after, r.maker[s]) {
			t.after = append(t.after, r.maker[s])
		}
	}
}

// substitute makes task i read store now instead of old.
func (r *rematerialized) substitute(i, old, now int) {
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

// once reports whether store s cannot be recomputed.
func (r *rematerialized) once(s int) bool { return r.maker[s] >= 0 && r.tasks[r.maker[s]].once }

// late are the positions after place whose tasks read store s.
func (r *rematerialized) late(s, at int) (places []int) {
	for k := at + 1; k < len(r.order); k++ {
		if slices.Contains(r.tasks[r.order[k]].reads, s) {
			places = append(places, k)
		}
	}
	return places
}

// repeat recomputes store s right before its first reader after position at,
// for all readers from there on. Operands of the recomputation that are no
// longer live are recomputed too, up to depth tasks back; beyond that they are
// kept live. It returns false if nothing is recomputed.
func (r *rematerialized) repeat(s, at, depth int) bool {
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
		r.substitute(i, s, now)
	}
	return true
}

// insert inserts a repetition of the maker of s at a position and returns its
// store.
func (r *rematerialized) insert(s, place, depth int) (now int) {
	t := r.maker[s]
	c := len(r.tasks)
	task := r.tasks[t]
	task.over, task.makes = nil, nil
	for _, made := range r.tasks[t].makes {
		if made != s && r.splittable(r.origin[t]) {
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
	r.repeated = append(r.repeated, c)
	r.order = slices.Insert(r.order, place, c)
	for _, x := range task.reads {
		if depth > 0 && !r.kept[x] && !r.once(x) && len(r.late(x, place)) == 0 {
			before := len(r.order)
			y := r.insert(x, place, depth-1)
			r.substitute(c, x, y)
			place += len(r.order) - before
		}
	}
	r.link(c)
	return now
}

// drop removes repetition c: its readers read the original values.
func (r *rematerialized) drop(c int) {
	for _, s := range r.tasks[c].makes {
		for _, i := range r.order {
			if slices.Contains(r.tasks[i].reads, s) {
				r.substitute(i, s, r.from[s])
			}
		}
	}
	r.remove(c)
	for again := true; again; { // needed only by c
		again = false
		left := r.readers()
		for _, d := range r.repeated {
			if !slices.ContainsFunc(r.tasks[d].makes, func(s int) bool { return left[s] > 0 }) {
				r.remove(d)
				again = true
				break
			}
		}
	}
}

func (r *rematerialized) remove(c int) {
	r.repeated = slices.DeleteFunc(r.repeated, func(x int) bool { return x == c })
	r.order = slices.DeleteFunc(r.order, func(x int) bool { return x == c })
	r.tasks[c].reads, r.tasks[c].makes, r.tasks[c].after = nil, nil, nil
}

// valid reports whether every task is after those it waits for.
func (r *rematerialized) valid() bool {
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

// compact is r without unused tasks, in its order.
func (r *rematerialized) compact() *rematerialized {
	c := r.clone()
	now := make([]int, len(r.tasks))
	c.tasks, c.origin, c.repeated = nil, nil, nil
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
	for _, i := range r.repeated {
		c.repeated = append(c.repeated, now[i])
	}
	c.order = c.textOrder()
	return c
}
