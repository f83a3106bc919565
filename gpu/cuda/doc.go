// Package cuda runs programs on NVIDIA GPUs through the driver's own interface,
// opened as a shared library: no toolkit, no cgo. A program is loaded once, into
// one allocation, and its launches are captured once, as one graph; a run copies
// the inputs, replays the graph and copies the results.
package cuda
