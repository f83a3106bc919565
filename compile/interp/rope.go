package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

// runRope turns the pairs of each row, in f32 or wider, and rounds once.
func runRope(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	if x.Rank() == 0 || x.Shape[x.Rank()-1]%2 != 0 {
		return nil, c.errorf("DM704", "%s has no pairs", x.Type())
	}
	half := x.Shape[x.Rank()-1] / 2
	pairs := append(append([]int{}, x.Shape[:x.Rank()-1]...), half)
	for _, angles := range c.in[1:] {
		if shape, ok := broadcastShape(pairs, angles.Shape); !ok || !slices.Equal(shape, pairs) {
			return nil, c.errorf("DM704", "%v does not broadcast to the pairs %v", angles.Shape, pairs)
		}
	}
	to := tensor.New(x.Elem, x.Shape...)
	cos, sin := broadcastStrides(c.in[1].Shape, pairs), broadcastStrides(c.in[2].Shape, pairs)
	step, across := 1, half // from pair to pair, and from its first number to its second
	if op.Str(c.op, "pairs") == "interleaved" {
		step, across = 2, 1
	}
	at := make([]int, len(pairs)) // of a row
	for r := range product(x.Shape[:x.Rank()-1]) {
		i, k, l := r*2*half, offset(at, cos), offset(at, sin)
		for p := range half {
			a, b := i+p*step, i+p*step+across
			turn(to, x, c.in[1], c.in[2], a, b, k+p*cos[len(pairs)-1], l+p*sin[len(pairs)-1])
		}
		for d := len(pairs) - 2; d >= 0; d-- {
			if at[d]++; at[d] < pairs[d] {
				break
			}
			at[d] = 0
		}
	}
	return one(to), nil
}

// turn turns numbers a and b of x by the angle whose cosine is number k of cos and whose sine is number l of sin.
func turn(to, x, cos, sin *tensor.Tensor, a, b, k, l int) {
	if x.F64 != nil {
		to.F64[a] = x.F64[a]*cos.F64[k] - x.F64[b]*sin.F64[l]
		to.F64[b] = x.F64[b]*cos.F64[k] + x.F64[a]*sin.F64[l]
		return
	}
	to.F32[a] = tensor.Round(to.Elem, x.F32[a]*cos.F32[k]-x.F32[b]*sin.F32[l])
	to.F32[b] = tensor.Round(to.Elem, x.F32[b]*cos.F32[k]+x.F32[a]*sin.F32[l])
}

func offset(at, strides []int) int {
	n := 0
	for d, i := range at {
		n += i * strides[d]
	}
	return n
}
