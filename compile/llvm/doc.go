// Package llvm compiles kernels to LLVM IR for the host's processor, in each form of
// package kernel, and a scheduled function to the program that a device runs
// (gpu/artifact).
//
// A kernel is a function
//
//	void kernel(i8** args, i64 first, i64 last, i8* scratch)
//
// that runs the tasks first to last - 1 of a launch, in which its work is divided
// by the plan: results do not depend on the number of threads. scratch is memory of
// the calling thread. Loops are written for clang's loop vectorizer: an index that
// is divided is split into two loops, so that no division is left in the inner one.
package llvm
