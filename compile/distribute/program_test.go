package distribute_test

import (
	"testing"
)

// programs are small whole ones with their gradients, and the bytes that devices send along x.
var programs = []struct {
	name, text, args, results, mesh string
	sent                            int64
}{
	{
		// Tied embedding: rows of hidden values are summed for the lookup, and for the gradient of those
		// before the loss; for the loss three numbers of each row, of which the gradient computes two again.
		"language model with a divided vocabulary", `func.func @g(%table: tensor<40x8xf32>, %w: tensor<8x8xf32>, %ids: tensor<2x6xi64>, %labels: tensor<2x6xi64>) -> tensor<f32> {
  %0 = dm.embedding %table, %ids : (tensor<40x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
  %1 = dm.matmul %0, %w : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
  %2 = dm.tanh %1 : tensor<2x6x8xf32>
  %3 = dm.matmul %2, %table, transpose_b = true : (tensor<2x6x8xf32>, tensor<40x8xf32>) -> tensor<2x6x40xf32>
  %4 = dm.cross_entropy %3, %labels : (tensor<2x6x40xf32>, tensor<2x6xi64>) -> tensor<f32>
  return %4 : tensor<f32>
}
func.func @f(%table: tensor<40x8xf32>, %w: tensor<8x8xf32>, %ids: tensor<2x6xi64>, %labels: tensor<2x6xi64>) -> (tensor<f32>, tensor<40x8xf32>, tensor<8x8xf32>) {
  %y, %dt, %dw = dm.grad @g %table, %w, %ids, %labels, wrt = [0, 1] : (tensor<40x8xf32>, tensor<8x8xf32>, tensor<2x6xi64>, tensor<2x6xi64>) -> (tensor<f32>, tensor<40x8xf32>, tensor<8x8xf32>)
  return %y, %dt, %dw : tensor<f32>, tensor<40x8xf32>, tensor<8x8xf32>
}`, "x,- . . .", ". x,- .", "x4", 2 * 3 * (2*(2*6*8*4) + 5*(2*6*4)),
	},
	{
		// Halos of x, of the first result and of the second, there and back; of the last gradient, which the stride spreads
		// out, from one side alone; the sum of the first filter's gradient; the
		// second one's is less to compute whole.
		"convolutions over divided space", `func.func @g(%x: tensor<2x3x16x6xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x3x3xf32>) -> tensor<f32> {
  %0 = dm.convolution %x, %w, padding = [[1, 1], [1, 1]] : (tensor<2x3x16x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x16x6xf32>
  %1 = dm.relu %0 : tensor<2x4x16x6xf32>
  %2 = dm.reduce_window max %1, window_dimensions = [1, 1, 3, 3], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [1, 1]] : (tensor<2x4x16x6xf32>) -> tensor<2x4x8x3xf32>
  %3 = dm.convolution %2, %v, window_strides = [2, 1], padding = [[1, 1], [1, 1]] : (tensor<2x4x8x3xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x4x3xf32>
  %4 = dm.mul %3, %3 : tensor<2x4x4x3xf32>
  %5 = dm.reduce add %4 : (tensor<2x4x4x3xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}
func.func @f(%x: tensor<2x3x16x6xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x3x3xf32>) -> (tensor<f32>, tensor<2x3x16x6xf32>, tensor<4x3x3x3xf32>, tensor<4x4x3x3xf32>) {
  %y, %dx, %dw, %dv = dm.grad @g %x, %w, %v, wrt = [0, 1, 2] : (tensor<2x3x16x6xf32>, tensor<4x3x3x3xf32>, tensor<4x4x3x3xf32>) -> (tensor<f32>, tensor<2x3x16x6xf32>, tensor<4x3x3x3xf32>, tensor<4x4x3x3xf32>)
  return %y, %dx, %dw, %dv : tensor<f32>, tensor<2x3x16x6xf32>, tensor<4x3x3x3xf32>, tensor<4x4x3x3xf32>
}`, "-,-,x,- . .", ". -,-,x,- . .", "x4", 3 * ((2+2)*(2*3*6*4) + (1+2+2)*(2*4*6*4) + (1+1)*(2*4*3*4) + 2*(4*3*9*4+4) +
			4*(4*2*2*3*4+4*2*1*3*4)),
	},
	{
		"transformer layer over a divided sequence", `func.func @g(%x: tensor<2x8x8xf32>, %s: tensor<8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x4xf32>, %wv: tensor<8x4xf32>, %wo: tensor<8x8xf32>) -> tensor<2x8x8xf32> {
  %n = dm.rms_norm %x, %s : (tensor<2x8x8xf32>, tensor<8xf32>) -> tensor<2x8x8xf32>
  %q0 = dm.matmul %n, %wq : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %k0 = dm.matmul %n, %wk : (tensor<2x8x8xf32>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
  %v0 = dm.matmul %n, %wv : (tensor<2x8x8xf32>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
  %q1 = dm.reshape %q0 : (tensor<2x8x8xf32>) -> tensor<2x8x2x4xf32>
  %k1 = dm.reshape %k0 : (tensor<2x8x4xf32>) -> tensor<2x8x1x4xf32>
  %v1 = dm.reshape %v0 : (tensor<2x8x4xf32>) -> tensor<2x8x1x4xf32>
  %q = dm.transpose %q1, dims = [0, 2, 1, 3] : (tensor<2x8x2x4xf32>) -> tensor<2x2x8x4xf32>
  %k = dm.transpose %k1, dims = [0, 2, 1, 3] : (tensor<2x8x1x4xf32>) -> tensor<2x1x8x4xf32>
  %v = dm.transpose %v1, dims = [0, 2, 1, 3] : (tensor<2x8x1x4xf32>) -> tensor<2x1x8x4xf32>
  %a = dm.attention %q, %k, %v, causal = true : (tensor<2x2x8x4xf32>, tensor<2x1x8x4xf32>, tensor<2x1x8x4xf32>) -> tensor<2x2x8x4xf32>
  %a1 = dm.transpose %a, dims = [0, 2, 1, 3] : (tensor<2x2x8x4xf32>) -> tensor<2x8x2x4xf32>
  %a2 = dm.reshape %a1 : (tensor<2x8x2x4xf32>) -> tensor<2x8x8xf32>
  %o = dm.matmul %a2, %wo : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %y = dm.add %x, %o : tensor<2x8x8xf32>
  return %y : tensor<2x8x8xf32>
}
func.func @f(%x: tensor<2x8x8xf32>, %s: tensor<8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x4xf32>, %wv: tensor<8x4xf32>, %wo: tensor<8x8xf32>, %dy: tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>) {
  %y, %dx, %dq, %dk = dm.grad @g %x, %s, %wq, %wk, %wv, %wo, %dy, wrt = [0, 2, 3], cotangents = 1 : (tensor<2x8x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x8xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>)
  return %y, %dx, %dq, %dk : tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>
}`, "-,x,- . . . . . -,x,-", "-,x,- -,x,- . .", "x4", 3*6*block(2, 1, 2, 4, 4) + 2*3*(8*8+8*4)*4,
	},
	{
		// Of a divided row only its sums travel: the mean and the variance, and two of the gradient.
		"layer norm of a divided row", `func.func @g(%x: tensor<6x16xf32>, %s: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<6x16xf32> {
  %y = dm.layer_norm %x, %s, %b : (tensor<6x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}
func.func @f(%x: tensor<6x16xf32>, %s: tensor<16xf32>, %b: tensor<16xf32>, %dy: tensor<6x16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>, tensor<16xf32>) {
  %y, %dx, %ds = dm.grad @g %x, %s, %b, %dy, wrt = [0, 1], cotangents = 1 : (tensor<6x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<6x16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>, tensor<16xf32>)
  return %y, %dx, %ds : tensor<6x16xf32>, tensor<6x16xf32>, tensor<16xf32>
}`, "-,x x x -,x", "-,x -,x x", "x4", 2 * 3 * (6 * 4) * 6,
	},
	{
		"batch norm of a divided batch", `func.func @f(%x: tensor<8x3x5xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<8x3x5xf32> {
  %y = dm.batch_norm %x, %s, %b : (tensor<8x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<8x3x5xf32>
  return %y : tensor<8x3x5xf32>
}`, "x,-,- . .", "x,-,-", "x4", 2 * 3 * (3 * 4) * 2,
	},
	{
		// The caches stay divided over the positions; each step joins what the devices attend to.
		"decoding with a divided cache", `func.func @f(%k0: tensor<1x2x16x4xf32>, %v0: tensor<1x2x16x4xf32>, %x0: tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x2x16x4xf32>) {
  %start = dm.constant dense<6> : tensor<i64>
  %n, %x, %k, %v = dm.while %start, %x0, %k0, %v0 : (tensor<i64>, tensor<1x2x1x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>) -> (tensor<i64>, tensor<1x2x1x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>) {
  ^bb0(%i: tensor<i64>, %a: tensor<1x2x1x4xf32>, %b: tensor<1x2x16x4xf32>, %c: tensor<1x2x16x4xf32>):
    %end = dm.constant dense<11> : tensor<i64>
    %more = dm.compare lt %i, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %a: tensor<1x2x1x4xf32>, %b: tensor<1x2x16x4xf32>, %c: tensor<1x2x16x4xf32>):
    %zero = dm.constant dense<0> : tensor<i64>
    %one = dm.constant dense<1> : tensor<i64>
    %key = dm.sin %a : tensor<1x2x1x4xf32>
    %b1 = dm.dynamic_update_slice %b, %key, %zero, %zero, %i, %zero : (tensor<1x2x16x4xf32>, tensor<1x2x1x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x2x16x4xf32>
    %c1 = dm.dynamic_update_slice %c, %a, %zero, %zero, %i, %zero : (tensor<1x2x16x4xf32>, tensor<1x2x1x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x2x16x4xf32>
    %places = dm.iota dim = 0 : tensor<16xi64>
    %seen = dm.compare le %places, %i : (tensor<16xi64>, tensor<i64>) -> tensor<16xi1>
    %open = dm.constant dense<0.0> : tensor<f32>
    %shut = dm.constant dense<0xFF800000> : tensor<f32>
    %mask0 = dm.select %seen, %open, %shut : (tensor<16xi1>, tensor<f32>, tensor<f32>) -> tensor<16xf32>
    %mask = dm.reshape %mask0 : (tensor<16xf32>) -> tensor<1x16xf32>
    %y = dm.attention %a, %b1, %c1, %mask : (tensor<1x2x1x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x16xf32>) -> tensor<1x2x1x4xf32>
    %next = dm.add %i, %one : tensor<i64>
    dm.yield %next, %y, %b1, %c1 : tensor<i64>, tensor<1x2x1x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>
  }
  return %x, %k : tensor<1x2x1x4xf32>, tensor<1x2x16x4xf32>
}`, "-,-,x,- -,-,x,- .", ". -,-,x,-", "x4", 5 * 2 * 3 * (2*4*4 + 2*2*4),
	},
	{
		// y divides the heads of each key head in the queries and the key heads in the values, so that both claim it for the results.
		"heads that queries and values divide over one axis", `func.func @f(%q: tensor<4x4x8xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x4x64xf32>) -> tensor<4x4x64xf32> {
  %y = dm.attention %q, %k, %v : (tensor<4x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x64xf32>) -> tensor<4x4x64xf32>
  return %y : tensor<4x4x64xf32>
}`, "x+y,-,- . y,-,-", ".", "x2 y2", 0,
	},
	{
		// How often the loop runs depends on a sum whose parts the devices have: they agree, because each has
		// the whole sum before it decides.
		"a loop until all devices are done", `func.func @f(%x0: tensor<13xf32>) -> (tensor<13xf32>, tensor<i64>) {
  %zero = dm.constant dense<0> : tensor<i64>
  %x, %n = dm.while %x0, %zero, trip_count = 7 : (tensor<13xf32>, tensor<i64>) -> (tensor<13xf32>, tensor<i64>) {
  ^bb0(%a: tensor<13xf32>, %i: tensor<i64>):
    %abs = dm.abs %a : tensor<13xf32>
    %sum = dm.reduce add %abs : (tensor<13xf32>) -> tensor<f32>
    %few = dm.constant dense<0.1> : tensor<f32>
    %more = dm.compare gt %sum, %few : (tensor<f32>, tensor<f32>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%a: tensor<13xf32>, %i: tensor<i64>):
    %one = dm.constant dense<1> : tensor<i64>
    %half = dm.constant dense<0.5> : tensor<f32>
    %b = dm.mul %a, %half : (tensor<13xf32>, tensor<f32>) -> tensor<13xf32>
    %r = dm.roll %b, shifts = [1] : tensor<13xf32>
    %s = dm.sub %b, %r : tensor<13xf32>
    %t = dm.mul %s, %half : (tensor<13xf32>, tensor<f32>) -> tensor<13xf32>
    %next = dm.add %i, %one : tensor<i64>
    dm.yield %t, %next : tensor<13xf32>, tensor<i64>
  }
  return %x, %n : tensor<13xf32>, tensor<i64>
}`, "x", "x .", "x4", 7 * (2*3*4 + 4*3*(4*4)),
	},
}

// TestPrograms: programs whose parts exchange different things.
func TestPrograms(t *testing.T) {
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			d := whole(t, c.text, "f")
			local, sent := d.run(t, grid(c.mesh), layouts(c.args), layouts(c.results))
			if sent["x"] != c.sent {
				t.Errorf("the devices send %v, not %d bytes\n%s", sent, c.sent, local)
			}
		})
	}
}
