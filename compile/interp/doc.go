// Package interp is the reference executor: it computes functions of the dm
// dialect op by op, in pure Go, and is the oracle for every other back end.
//
// Arithmetic. An op on f16, bf16 or f8 computes in float32 or wider and rounds
// once, when its result is stored; a contraction or a reduction with accumulate
// = f16 also rounds every partial sum. An op inside dm.kernel rounds as it does
// outside, so that fusing ops changes no bit. Integers wrap; a quotient by zero
// has all bits set and a remainder by zero is the dividend, as in XLA. max and
// min are NaN if an operand is NaN. Indices out of range are clamped for
// reading (gather, dynamic_slice, embedding) and dropped for writing (scatter),
// as StableHLO defines. Random numbers depend only on seed and element number.
// Placements do not matter: layout is logical.
package interp
