// Package suite is the device suite as data: programs with their machine code,
// inputs and the results that the reference computed, one file each. They are
// made where there is no card, by tests that hold the same programs to the
// emulator, and run where there is one, without a compiler.
package suite
