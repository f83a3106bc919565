// Package kernel says how a group of ops runs as one device kernel: its loops,
// and for each result the scalar expression that the kernel stores at each
// place. It turns ops on tensors into expressions for one element (evaluator),
// and finds the form of loops that computes every fold once. What a form looks
// like as text is compile/cuda's business.
package kernel
