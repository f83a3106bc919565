package ptx

import "slices"

// flags proves the rule of that name over all paths through a kernel: blocks leave values in global memory for warps of others, which wait
// for a flag. A warp's lane sets it (st.release.gpu), or reads it until it is set (ld.acquire.gpu), for all lanes: bar.warp.sync puts these in
// order with it. Which parameter an address is of follows from what it is computed of.
func (c *code) flags(r *Report) {
	if !slices.ContainsFunc(c.list, func(o op) bool { return o.acquires() || o.releases() }) {
		return
	}
	of := c.origins()
	from := func(i int) uint64 {
		o := &c.list[i]
		if len(o.src) == 0 || o.src[0].reg < 0 {
			return 0
		}
		return of[o.src[0].reg]
	}
	var flags, read, written uint64 // parameters, as bits
	for i := range c.list {
		if o := &c.list[i]; o.acquires() || o.releases() {
			flags |= from(i)
		}
	}
	for i := range c.list {
		switch o := &c.list[i]; {
		case o.kind == opLoad && o.space == "global":
			read |= from(i)
		case o.kind == opStore && o.space == "global":
			written |= from(i)
		}
	}
	left := read & written &^ flags
	find := func(i int, format string, args ...any) { c.find(r, &c.list[i], Flag, format, args...) }
	warps := func(i int) bool {
		return c.list[i].kind == opWarp && c.list[i].starts("bar.warp.sync") && c.list[i].guard < 0
	}
	// Flags are awaited behind the first bar.warp.sync behind the wait of one lane.
	awaited := make([]bool, len(c.list))
	for i := range c.list {
		if !c.list[i].acquires() {
			continue
		}
		turns := false
		c.follow(i, func(k int) bool {
			awaited[k] = awaited[k] || warps(k)
			turns = turns || k == i
			return !warps(k) && k != i
		})
		r.Checked[Flag]++
		if !turns {
			find(i, "a flag is read once, and not until it is set")
		}
	}
	behind, reached := c.behind(func(i int) bool { return awaited[i] })
	for i := range c.list {
		o := &c.list[i]
		at := from(i)
		if o.space != "global" || !reached[i] || at&(flags|left) == 0 {
			continue
		}
		r.Checked[Flag]++
		switch {
		case at&flags != 0 && o.kind == opLoad && !o.acquires():
			find(i, "a flag is read without .acquire.gpu")
		case at&flags != 0 && o.kind == opStore && !o.releases():
			find(i, "a flag is set without .release.gpu")
		case at&left != 0 && o.kind == opLoad && !behind[i]:
			find(i, "what another block leaves is read, and no flag is awaited before")
		case at&left != 0 && o.kind == opStore:
			c.released(i, warps, find)
		}
	}
}

// released checks that what is stored at i is in order before a flag that is set: behind it lanes wait for each other, and then one of them
// sets it.
func (c *code) released(i int, warps func(int) bool, find func(int, string, ...any)) {
	set := false
	c.follow(i, func(k int) bool {
		if c.list[k].releases() {
			find(k, "a flag is set for what the lanes of the warp have left, which bar.warp.sync does not order before")
			set = true
			return false
		}
		if !warps(k) {
			return true
		}
		c.follow(k, func(k int) bool {
			set = set || c.list[k].releases()
			return !warps(k) && !c.list[k].releases()
		})
		return false
	})
	if !set {
		find(i, "a value is left for another block, and no flag is set behind")
	}
}

// acquires and releases report whether o reads or sets a flag in the order of other accesses.
func (o *op) acquires() bool {
	return o.kind == opLoad && o.space == "global" && o.has("acquire") && (o.has("gpu") || o.has("sys"))
}

func (o *op) releases() bool {
	return o.kind == opStore && o.space == "global" && o.has("release") && (o.has("gpu") || o.has("sys"))
}

// follow visits the instructions behind i on all paths, as long as on says so, each once; i itself where a path comes back to it.
func (c *code) follow(i int, on func(int) bool) {
	seen := make([]bool, len(c.list)+1)
	seen[len(c.list)] = true
	var todo []int
	step := func(i int) {
		a, b := next(c.list, i)
		for _, s := range []int{a, b} {
			if !seen[s] {
				seen[s] = true
				todo = append(todo, s)
			}
		}
	}
	step(i)
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if on(k) {
			step(k)
		}
	}
}

// origins are, by register, the pointer parameters that its value is computed of, as bits.
func (c *code) origins() []uint64 {
	of := make([]uint64, c.regs)
	for changed := true; changed; {
		changed = false
		for i := range c.list {
			o := &c.list[i]
			var at uint64
			switch {
			case o.kind == opLoad && o.space == "param":
				if p, ok := paramOf(o.src[0].value); ok && o.bytes == 8 && p < 64 {
					at = 1 << p
				}
			case o.kind == opALU, o.kind == opSelect, o.kind == opUnknown:
				for _, s := range o.src {
					if s.reg >= 0 {
						at |= of[s.reg]
					}
				}
			}
			for _, d := range o.dst {
				if d >= 0 && of[d]|at != of[d] {
					of[d] |= at
					changed = true
				}
			}
		}
	}
	return of
}
