// Package gemm plans batched matrix products
//
//	C[z, m, n] = Σ over k of A[z, m, k] · B[z, n, k]
//
// for CPUs and emits them as LLVM IR. What loads an element of A or B, and what
// consumes a finished tile of C, are functions of the caller: the package knows
// neither tensors nor kernels.
//
// The structure is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (TOMS 2008), as BLIS generalized it (Van Zee and van de Geijn, TOMS
// 2015): operands are packed in the order in which a micro-kernel, which holds a tile
// of C in registers, reads them. Unlike theirs, a sliver of A is packed right before
// its use and stays in the L1 cache, while B streams past it from the L2 cache: B is
// packed once for a block of columns and all rows of a thread, and a short sliver of A
// costs as little to pack as a large block. See [Choose] for the sizes.
//
// Products of a few rows read B once, where it is, without packing it ([Plan.Few]).
//
// The order in which the products of one element of C are summed follows from the shape,
// the architecture and the compiler of the IR alone, so that results are the same for any
// number of threads. The depth of a product is never divided among tasks.
package gemm
