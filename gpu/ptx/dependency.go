package ptx

// dependency proves the rule of that name over all paths through a kernel, those of each warp role among them, whatever a launch's
// blocks and data are: griddepcontrol.wait is execution of one thread, so that each thread passes it by itself. A wait under a
// predicate is none. dependent says that a launch of the kernel may start early.
func (c *code) dependency(dependent bool, r *Report) {
	for i := range c.list {
		dependent = dependent || c.list[i].waits()
	}
	if !dependent {
		return
	}
	behind, reached := c.behind(func(i int) bool { return c.list[i].waits() })
	for i := range c.list {
		o := &c.list[i]
		what := o.touches()
		if o.kind == opExit && !o.starts("trap") || i == len(c.list)-1 && o.kind != opExit {
			what = "a thread ends"
		}
		if what == "" || !reached[i] {
			continue
		}
		r.Checked[Dependency]++
		switch {
		case !behind[i]:
			c.find(r, o, Dependency, "%s before griddepcontrol.wait", what)
		case o.kind == opLoad && o.has("nc"):
			c.find(r, o, Dependency, "ld.global.nc reads memory that a kernel before may write while this one runs")
		}
	}
}

// waits reports whether o lets its thread wait for the kernels before.
func (o *op) waits() bool { return o.kind == opDependency && o.has("wait") && o.guard < 0 }

// touches is how o may access global memory; "" if it does not. An address without a space may be one of global memory.
func (o *op) touches() string {
	global := o.space == "global" || o.space == ""
	switch {
	case o.kind == opLoad && global, o.kind == opCopy:
		return "global memory is read"
	case o.kind == opStore && global:
		return "global memory is written"
	case o.kind == opBulk && o.has("global"):
		return "a bulk copy is issued"
	case o.kind == opCall:
		return "a function is called"
	case o.kind == opReduce, o.kind == opUnknown && global && (o.words[0] == "atom" || o.words[0] == "red"):
		return "global memory is changed"
	}
	return ""
}

// behind is, for each instruction, whether all paths to it pass one of these, and whether any path leads to it.
func (c *code) behind(one func(int) bool) (behind, reached []bool) {
	n := len(c.list)
	behind, reached = make([]bool, n+1), make([]bool, n+1)
	todo := []int{0}
	reached[0] = true
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if i == n {
			continue
		}
		passed := behind[i] || one(i)
		a, b := next(c.list, i)
		for _, s := range []int{a, b} {
			if !reached[s] || behind[s] && !passed {
				behind[s] = passed && (!reached[s] || behind[s])
				reached[s] = true
				todo = append(todo, s)
			}
		}
	}
	return behind, reached
}
