// Package attend plans scaled dot-product attention and its gradient for CPUs and emits
// them as LLVM IR, without the matrix of scores in memory (Dao et al., FlashAttention,
// arXiv 2205.14135; FlashAttention-2, arXiv 2307.08691). What loads an element of an
// operand, and what stores one of a result, are functions of the caller: the package
// knows neither tensors nor kernels.
//
// Blocks of scores are computed transposed: a row for each key, with neighbouring
// queries in the lanes of vectors. The softmax of a query then stays in its lane, and of
// the products in
//
//	Sᵀ = K Qᵀ, Oᵀ += Vᵀ Pᵀ, dPᵀ = V dYᵀ, dV += Pᵀ dY, dK += dSᵀ Q, dQᵀ += Kᵀ dSᵀ
//
// K, V and the blocks of scores are either broadcast element by element, in any order,
// or read as vectors along their rows. None of them is transposed: only Q and dY are,
// once for a block of queries, and the results of queries before they are stored.
//
// A few queries, whose keys and values are read at the speed of memory, have rows of
// their own instead (few.go).
//
// The order of all sums follows from the shape and the architecture alone, so that
// results are the same for any number of threads.
package attend
