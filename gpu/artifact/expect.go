package artifact

// Check is an expectation: result Got equals result Want. Outside of loops and
// branches all their elements are compared. In them kernels compare, and keep the
// first element that differs in the first iteration where one does.
type Check struct {
	Line      int     // of File, 0 where it is unknown
	Tolerance float64 `json:",omitempty"` // relative for values above 1, absolute below
	Got, Want int     // results
	Member    string  `json:",omitempty"` // the place in a tuple of what is compared
	// Kept: result At is the row-major index in Shape of the element that differs, the
	// number of elements where none does. Got and Want are then the two elements.
	Kept  bool    `json:",omitempty"`
	At    int     `json:",omitempty"`
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
	// Loop is a number of the loop. Result Count is how many iterations came before the
	// one that failed, which is iteration First + Step × Count.
	Loop  int   `json:",omitempty"`
	Count int   `json:",omitempty"`
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
	single := func(i int) bool { return p.Buffers[p.Outputs[i]].Elem == "i64" && elements(p.ResultView(i).Shape) == 1 }
	for i := range p.Checks {
		k := &p.Checks[i]
		results := []int{k.Got, k.Want, k.At}
		for _, a := range k.Around {
			results = append(results, a.Count)
		}
		for _, n := range results {
			if n < 0 || n >= len(p.Outputs) {
				c.errorf("check %d is about output %d of %d", i, n, len(p.Outputs))
				return
			}
		}
		if len(k.Types) != 0 && len(k.Types) != 2 {
			c.errorf("check %d is about %d types", i, len(k.Types))
		}
		got, want := &p.Buffers[p.Outputs[k.Got]], &p.Buffers[p.Outputs[k.Want]]
		if got.Elem != want.Elem || elements(p.ResultView(k.Got).Shape) != elements(p.ResultView(k.Want).Shape) {
			c.errorf("check %d compares a %s with a %s of other types", i, got.Name, want.Name)
		}
		if !k.Kept {
			continue
		}
		if !single(k.At) || elements(p.ResultView(k.Got).Shape) != 1 {
			c.errorf("check %d: what is kept of it are not single values", i)
		}
		for _, a := range k.Around {
			if a.Func == "" && !single(a.Count) {
				c.errorf("check %d: output %d is no count of iterations", i, a.Count)
			}
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
