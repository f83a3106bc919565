// Package calibrate measures the processor of this machine: bandwidths of the memory and
// of each cache, peak rates, and what a kernel costs beside its work.
//
// A program in C measures, compiled by the clang that compiles kernels, for the same
// level, with loops like theirs and threads that wait for work as theirs do. It runs in
// this process.
package calibrate
