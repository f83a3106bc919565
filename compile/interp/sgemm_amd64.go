package interp

import "golang.org/x/sys/cpu"

// gonum's SSE kernels reach a sixth of what the machine can do with AVX2 and
// fused multiply-add (BenchmarkGemm has both in one run), which is the
// difference between one and many seconds for a transformer layer.
var haveFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func fma6x16(k int, a, b, c *float32, ldc int)
