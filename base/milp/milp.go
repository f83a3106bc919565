// Package milp describes mixed-integer linear programs, for those that formulate them and those that
// solve them.
package milp

import (
	"context"
	"time"
)

// A Program is to minimise Offset + Σ Cost·x with Lower ≤ x ≤ Upper and RowLower ≤ A·x ≤ RowUpper, where
// some x are integers. Bounds may be infinite.
type Program struct {
	Offset             float64
	Cost, Lower, Upper []float64 // by column
	Integer            []bool    // by column
	RowLower, RowUpper []float64 // by row
	Start              []int32   // by row, and the end: where the entries of A begin
	Index              []int32   // by entry: its column
	Value              []float64 // by entry
	Guess              []float64 // an x to start from; nil: none
}

// Column adds a column and returns its number.
func (p *Program) Column(cost, lower, upper float64, integer bool) int32 {
	p.Cost, p.Lower, p.Upper = append(p.Cost, cost), append(p.Lower, lower), append(p.Upper, upper)
	p.Integer = append(p.Integer, integer)
	return int32(len(p.Cost) - 1)
}

// Entry adds an entry to the row that the next call of Row ends.
func (p *Program) Entry(column int32, value float64) {
	p.Index, p.Value = append(p.Index, column), append(p.Value, value)
}

// Row ends a row that consists of the entries since the last one.
func (p *Program) Row(lower, upper float64) {
	if len(p.Start) == 0 {
		p.Start = append(p.Start, 0)
	}
	p.Start = append(p.Start, int32(len(p.Index)))
	p.RowLower, p.RowUpper = append(p.RowLower, lower), append(p.RowUpper, upper)
}

// Limits end a solution before it is optimal.
type Limits struct {
	Time time.Duration // 0: none
	Gap  float64       // relative distance of the value and the bound
}

// A Result is what is known of a program when its solution ends.
type Result struct {
	X          []float64 // the best found, nil: none
	Bound      float64   // of the value of every x; −Inf: none
	Infeasible bool      // there is no x
	Optimal    bool      // X is within Limits.Gap of the best
}

// A Solver solves programs. Solve returns what it knows with the error of ctx if that ends.
type Solver interface {
	Name() string
	Solve(ctx context.Context, p *Program, l Limits) (Result, error)
}
