// Package scalar is the scalar operations of the dialect, for one element, as LLVM
// IR, and the loads and stores around them.
//
// The results are those of the reference executor, compile/interp: bit for bit for
// integers, conversions and random numbers, and to a few units in the last place for
// functions that have no exact result (TestUlps measures how many). Floats of up to 32 bits are computed in
// float and rounded where they are stored or converted, as compile/kernel has it.
//
// The functions of float are straight lines of arithmetic without calls, branches or
// tables, so that loops over them become vector code. Their coefficients are minimax
// fits made for this package with 200 bits of precision (Lawson's algorithm, the lowest
// coefficients rounded to float first, and the others fitted again). Those of double call
// the C library.
package scalar
