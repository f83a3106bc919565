// Package kernel decides how a group of ops runs as one device kernel: its
// loops, and for each result the scalar expression that the kernel stores at
// each index. It lowers ops on tensors to expressions for one element
// (evaluator) and finds loops in which every reduction is computed once.
// Package cuda renders a form as text.
package kernel
