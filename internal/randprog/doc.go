// Package randprog writes random valid programs for tests, forward and to be
// differentiated: every op of the registry, reductions of every dimension and of
// one another, values moved before, between and behind them, several results.
// The same seed writes the same text.
//
// What is computed stays tame. The writer follows the interval that each value
// lies in, and whether every correct execution computes it to the bit (exact).
// Operands are brought to where an op neither overflows nor stands at a pole,
// and values that rounding has touched decide no comparison, so that two correct
// executions agree up to rounding.
package randprog
