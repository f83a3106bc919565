// Package suite is the device suite as data: programs with their machine code,
// inputs and the results of the reference, one file each. Tests that check the
// same programs on the emulator record them on machines without a GPU; they run
// on machines with one, without a compiler.
package suite
