// Package blocks plans how a CPU computes a batched matrix product: which tile of the result is in
// registers, which blocks of the operands are packed and stay in caches, and which tasks there are. Code is generated
// from a plan (compile/llvm/gemm), and times are predicted from it (analysis/machine).
package blocks
