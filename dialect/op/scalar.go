package op

import "math"

// Scalar is the function that an element-wise op applies to one element of each
// of its operands. The devices' library has it under the op's name.
type Scalar struct {
	Form  string // the attribute that chooses among several forms of the function; "": it has one
	Jumps bool   // it is discontinuous: operands are rounded to their element type first
	Kinks bool   // its derivative is discontinuous
	Exact bool   // results for operands of few bits have few bits
	// Of a function of one number:
	Tame  Interval                      // where it and its derivative are finite and of moderate size
	Range func(x Interval) (y Interval) // an interval that holds the results for operands in x
}

// Interval is the numbers between two; the zero value is all of them.
type Interval struct{ Lo, Hi float64 }

// positive is the interval of functions that have a pole, or end, at 0.
var positive = Interval{Hi: math.Inf(1)}

func within(r float64) Interval { return Interval{-r, r} }

// monotone is the Range of a function that rises or falls everywhere.
func monotone(f func(float64) float64) func(Interval) Interval {
	return func(x Interval) Interval {
		a, b := f(x.Lo), f(x.Hi)
		return Interval{min(a, b), max(a, b)}
	}
}

// between is the Range of a bounded function.
func between(lo, hi float64) func(Interval) Interval {
	return func(Interval) Interval { return Interval{lo, hi} }
}

// tangents is the Range of the tangent, which rises between its poles.
func tangents(x Interval) Interval {
	if -math.Pi/2 < x.Lo && x.Hi < math.Pi/2 {
		return monotone(math.Tan)(x)
	}
	return Interval{math.Inf(-1), math.Inf(1)}
}

func absolute(x Interval) Interval {
	y := monotone(math.Abs)(x)
	if x.Lo < 0 && x.Hi > 0 {
		y.Lo = 0
	}
	return y
}
