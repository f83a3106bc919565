// Package cuda writes kernels as CUDA C++: the text of each form of
// compile/kernel, and of a whole scheduled function the program that a device
// runs (gpu/artifact). The text uses the prelude's names (gpu/prelude) and is
// meant to be read: the value names of the program, one statement for each
// scalar op, lines that point back to the program.
package cuda
