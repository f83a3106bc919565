package record

import (
	"math"
	"slices"
)

// Errors are relative errors of predictions, without their sign, the smallest first.
type Errors []float64

// ErrorsOf are the errors of a list, each by of.
func ErrorsOf[T any](list []T, of func(T) float64) Errors {
	out := make(Errors, len(list))
	for i, x := range list {
		out[i] = math.Abs(of(x))
	}
	slices.Sort(out)
	return out
}

// Tenth is the error that n tenths of them do not exceed, the median of 5; 0 of none.
func (e Errors) Tenth(n int) float64 {
	if len(e) == 0 {
		return 0
	}
	return e[len(e)*n/10]
}

// Within is the part of them that is at most so large; 0 of none.
func (e Errors) Within(most float64) float64 {
	n := 0
	for n < len(e) && e[n] <= most {
		n++
	}
	return float64(n) / float64(max(len(e), 1))
}
