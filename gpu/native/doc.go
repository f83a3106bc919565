// Package native runs programs on the processors of this machine. A program is LLVM
// IR: clang compiles it, together with tables of its steps and buffers and a small
// runtime in C, to a shared object that this process opens. The same object serves
// programs in C, Python and other languages: see runtime/dmir.h.
//
// The source of a program with the target "llvm" is one module. It defines for each
// kernel
//
//	define void @NAME(i8** %args, i64 %first, i64 %last, i8* %scratch)
//
// which runs the tasks first ≤ t < last of a launch of Grid[0] tasks, in any order and
// on any thread. args are the buffers of its parameters. Inputs and outputs may be the
// caller's memory, so a kernel can rely on the alignment of their elements only.
// scratch is memory of the thread, of at least Kernel.Scratch bytes, aligned to 64; it
// holds anything.
//
// The shared objects are kept in the user's cache, by the content of all that they
// are made of.
package native
