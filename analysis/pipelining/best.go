package pipelining

import (
	"cmp"
	"fmt"
	"slices"
)

// An Option is a way to run a pipeline that Best looks at. Options may cut a model into different numbers
// of stages; each has the times and sizes of its own stages.
type Option struct {
	Schedule Schedule
	Shape    Shape
	Times    Times
	Memory   Memory
}

// A Choice is what Best found out about an option.
type Choice struct {
	Option   Option
	Index    int       // of the option in the list
	Bound    float64   // see Estimate
	Order    [][]Task  // nil if Bound alone rules the option out
	Timeline *Timeline // nil as Order
	Fits     bool      // in memory, as far as it is known
	Why      string    // it is not the best; "" for the best one
	Err      error     // why the option has no order
}

// Best compares options, where a device can hold limit (0: any amount). The first choice is the fastest one
// that fits, if any does; then come the others that fit, by time, those that do not, by what they hold,
// and those that are impossible. Options whose bound is above the time of the best are not simulated.
func Best(options []Option, limit int64) []Choice {
	choices := make([]Choice, len(options))
	for i, o := range options {
		c := Choice{Option: o, Index: i}
		if c.Bound, c.Err = Estimate(o.Schedule, o.Shape, o.Times); c.Err == nil {
			_, c.Err = (&pipe{sh: o.Shape, stages: o.Shape.Stages()}).holding(o.Memory)
		}
		choices[i] = c
	}
	slices.SortStableFunc(choices, func(a, b Choice) int { return cmp.Compare(a.Bound, b.Bound) })
	var best *Choice
	for i := range choices {
		c := &choices[i]
		if c.Err != nil {
			continue
		}
		c.Fits = true
		if best != nil && c.Bound >= best.Timeline.Total {
			continue
		}
		o := c.Option
		if c.Order, c.Err = Order(o.Schedule, o.Shape); c.Err != nil {
			continue
		}
		if c.Timeline, c.Err = Simulate(c.Order, o.Schedule, o.Shape, o.Times, o.Memory); c.Err != nil {
			continue
		}
		c.Fits = limit == 0 || c.Timeline.Peak() <= limit
		if c.Fits && (best == nil || c.Timeline.Total < best.Timeline.Total) {
			best = c
		}
	}
	for i := range choices {
		if c := &choices[i]; c != best {
			c.Why = c.why(best, limit)
		}
	}
	slices.SortStableFunc(choices, func(a, b Choice) int {
		if r := cmp.Compare(a.rank(), b.rank()); r != 0 {
			return r
		}
		if a.rank() == 1 {
			return cmp.Compare(a.Timeline.Peak(), b.Timeline.Peak())
		}
		return cmp.Compare(a.time(), b.time())
	})
	return choices
}

// rank is 0 for a choice that fits, 1 for one that does not and 2 for an impossible one.
func (c *Choice) rank() int {
	switch {
	case c.Err != nil:
		return 2
	case !c.Fits:
		return 1
	}
	return 0
}

func (c *Choice) time() float64 {
	if c.Timeline == nil {
		return c.Bound
	}
	return c.Timeline.Total
}

func (c *Choice) why(best *Choice, limit int64) string {
	switch {
	case c.Err != nil:
		return c.Err.Error()
	case !c.Fits:
		return fmt.Sprintf("a device holds %d, which is %d more than the limit", c.Timeline.Peak(), c.Timeline.Peak()-limit)
	case c.Timeline == nil:
		return fmt.Sprintf("takes at least %.4g times as long as the best", ratio(c.Bound, best.Timeline.Total))
	case c.Timeline.Total == best.Timeline.Total:
		return "takes as long as the best"
	}
	return fmt.Sprintf("takes %.4g times as long as the best", ratio(c.Timeline.Total, best.Timeline.Total))
}

func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	return a / b
}
