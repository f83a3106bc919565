package artifact

// Check is an expectation: result Got equals result Want. Outside of loops and
// branches all their elements are compared. In them kernels compare, and keep the
// first element that differs in the first iteration where one does.
type Check struct {
	Line      int     // of File, 0 where it is unknown
	Tolerance float64 `json:",omitempty"` // relative for values above 1, absolute below
	ULPs      int64   `json:",omitempty"` // units in the last place
	Member    string  `json:",omitempty"` // the place in a tuple of what is compared
	Room      string  `json:",omitempty"` // the sparse tensor that would store Got elements and has room for Want
	Got, Want int     // results
	// Kept: result Got is the two elements that differ, and result Want their row-major
	// index in Shape, the number of elements where none differs, and then for each loop
	// in Around how many iterations came before.
	Kept  bool    `json:",omitempty"`
	Shape []int64 `json:",omitempty"`
	// Types are those of the values where they differ: the check fails if it is reached.
	Types []string `json:",omitempty"`
	// Around are the loops and calls around it, the innermost first.
	Around []Place `json:",omitempty"`
}

// Place is a loop or a call around a check.
type Place struct {
	Func string `json:",omitempty"` // that was called; empty: a loop
	Line int    // of the loop or the call, 0 where it is unknown
	// Loop is a number of the loop. Behind n iterations comes iteration First + Step × n.
	Loop  int   `json:",omitempty"`
	First int64 `json:",omitempty"`
	Step  int64 `json:",omitempty"`
}

// Own is how many of the results are those of the function.
func (p *Program) Own() int {
	if len(p.Checks) == 0 {
		return len(p.Outputs)
	}
	return p.Returned
}

// expectations checks that checks are about results of the types that they need.
func (c *checker) expectations() {
	p := c.p
	if p.Returned < 0 || p.Returned > len(p.Outputs) || len(p.Checks) == 0 && p.Returned != 0 {
		c.errorf("%d of %d outputs are returned", p.Returned, len(p.Outputs))
		return
	}
	for i := range p.Checks {
		k := &p.Checks[i]
		for _, n := range []int{k.Got, k.Want} {
			if n < 0 || n >= len(p.Outputs) {
				c.errorf("check %d is about output %d of %d", i, n, len(p.Outputs))
				return
			}
		}
		if len(k.Types) != 0 && len(k.Types) != 2 {
			c.errorf("check %d is about %d types", i, len(k.Types))
		}
		numbers := int64(1)
		for _, a := range k.Around {
			if a.Func == "" {
				numbers++
			}
		}
		got, want := &p.Buffers[p.Outputs[k.Got]], &p.Buffers[p.Outputs[k.Want]]
		n, m := elements(p.ResultView(k.Got).Shape), elements(p.ResultView(k.Want).Shape)
		switch {
		case !k.Kept && (got.Elem != want.Elem || n != m):
			c.errorf("check %d compares %s with %s, which is of another type", i, got.Name, want.Name)
		case k.Kept && (n != 2 || m != numbers || want.Elem != "i64"):
			c.errorf("check %d: %s and %s are not what is kept of a check", i, got.Name, want.Name)
		}
	}
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
