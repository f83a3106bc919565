// Package code builds functions of LLVM IR from structured control flow: loops,
// conditions and values, which it turns into blocks and phis. It is llir/llvm with
// the few constructs that kernels have, and knows nothing of kernels.
package code
