// Package solve chooses one value for each of many variables so that a sum of costs is least: of
// single choices, of pairs of choices, of what exceeds a free amount, and under limits. It knows
// nothing of programs. An answer comes with a lower bound of all answers, so that its gap is known.
package solve

// A Problem is what is minimised. Costs may be +Inf, which forbids a choice.
type Problem struct {
	Unary  [][]float64 // by variable, by choice
	Edges  []Edge
	Limits []Limit  // what must not be exceeded, as memory
	Excess []Excess // what costs only as far as it is above 0, as communication that computation hides
}

// An Edge is a cost of two choices.
type Edge struct {
	U, V int
	Cost []float64 // of choice i of U and j of V at i·len(Unary[V]) + j
}

// A Limit is a bound on a sum over variables: Σ Use[v][choice of v] ≤ Max. Variables without a
// list use nothing.
type Limit struct {
	Use [][]float64
	Max float64
}

// An Excess adds max(0, sum) to the cost, where sum is Base + Σ Unary + Σ Edges; variables and
// edges without a list add nothing.
type Excess struct {
	Base  float64
	Unary [][]float64
	Edges [][]float64 // as Problem.Edges
}
