// Package assemble turns a scheduled function into an artifact for any back
// end: its steps, with the launches of each kernel, and the buffers, waits,
// regions and predicted costs. A back end adds how a kernel runs (Plan) and the
// text of the kernels (Backend).
package assemble
