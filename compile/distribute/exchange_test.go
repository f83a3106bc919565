package distribute_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"dmir/dialect/mesh"
	"dmir/dialect/types"
)

// layouts reads the shardings of several tensors: "x,- y" divides the first dimension of one
// tensor over x, and the one dimension of the other over y; "." is none.
func layouts(text string) []*types.Sharding {
	var out []*types.Sharding
	for _, one := range strings.Fields(text) {
		if one == "." {
			out = append(out, nil)
			continue
		}
		s := &types.Sharding{Mesh: "m"}
		for _, d := range strings.Split(one, ",") {
			var split types.Split
			if d != "-" {
				for _, a := range strings.Split(d, "+") {
					split.Axes = append(split.Axes, types.Axis{Name: a})
				}
			}
			s.Dims = append(s.Dims, split)
		}
		out = append(out, s)
	}
	return out
}

// grid is the mesh "x4 y2".
func grid(text string) *mesh.Mesh {
	m := &mesh.Mesh{Name: "m"}
	for _, a := range strings.Fields(text) {
		m.Axes = append(m.Axes, mesh.Axis{Name: a[:1], Size: int(a[1] - '0')})
	}
	return m
}

// exchanged are programs, how their arguments and results are divided, and the bytes that the
// devices send along x, by the formulas of the algorithms.
var exchanged = []struct {
	name, text, args, results, mesh string
	sent                            int64
}{
	// The parallel vocabulary: an all-reduce of the rows.
	{"embedding", lookup("24"), "x,- .", ".", "x4", 2 * (5 * 6 * 4) * 3},
	{"embedding, uneven", lookup("23"), "x,- .", ".", "x4", 2 * (5 * 6 * 4) * 3},
	{"embedding, wanted in pieces", lookup("24"), "x,- .", "-,x", "x3", (5 * 6 * 4) * 2},
	{"embedding, grad", lookupGrad(24, 10), "x,- . .", "x,-", "x4", 0},
	{"embedding, grad, uneven", lookupGrad(23, 10), "x,- . .", "x,-", "x4", 0},
	{"embedding, grad of divided ids", lookupGrad(24, 64), ". x x,-", ".", "x5", 2 * (24 * 6 * 4) * 4},
	{"embedding, grad of divided ids, in pieces", lookupGrad(24, 65), ". x x,-", "x,-", "x2", 24 * 6 * 4},
	{"gather", `func.func @f(%x: tensor<3x9x2xi32>, %i: tensor<3x4xi32>) -> tensor<3x4x2xi32> {
  %y = dm.gather %x, %i, dim = 1, batch_dims = 1 : (tensor<3x9x2xi32>, tensor<3x4xi32>) -> tensor<3x4x2xi32>
  return %y : tensor<3x4x2xi32>
}`, "-,x,- .", ".", "x2", 2 * (3 * 4 * 2 * 4)},
	{"scatter set", scatter("set", 8), "-,x,- . .", "-,x,-", "x4", 0},
	{"scatter max", scatter("max", 8), "-,x,- . .", "-,x,-", "x4", 0},
	{"scatter mul of divided updates", scatter("mul", 40), ". -,x -,x,-", ".", "x4", 2 * (3 * 9 * 2 * 4) * 3},
	{"scatter min of divided updates", scatter("min", 40), ". -,x -,x,-", ".", "x3", 2 * (3 * 9 * 2 * 4) * 2},

	// Row maximum, row sum and picked logit, each of 6 rows.
	{"cross entropy", entropy("", 20), "-,x .", ".", "x4", 3 * 2 * (6 * 4) * 3},
	{"cross entropy, uneven", entropy("", 19), "-,x .", ".", "x4", 3 * 2 * (6 * 4) * 3},
	{"cross entropy, smoothing", entropy(", label_smoothing = 0.1, reduction = sum", 20), "-,x .", ".", "x4", 3 * 2 * (6 * 4) * 3},
	{"cross entropy, grad", entropyGrad(20), "-,x .", "-,x", "x4", 2 * 2 * (6 * 4) * 3},
	{"cross entropy, grad, uneven", entropyGrad(19), "-,x .", "-,x", "x4", 2 * 2 * (6 * 4) * 3},

	// One total for each row and device.
	{"cumsum", running("cumsum", 12, ""), "-,x", "-,x", "x4", 4 * 3 * (3 * 4)},
	{"cumsum, reverse, exclusive, uneven", running("cumsum", 13, ", reverse = true, exclusive = true"), "-,x", "-,x", "x4", 4 * 3 * (3 * 4)},
	{"cumprod, exclusive", running("cumprod", 13, ", exclusive = true"), "-,x", "-,x", "x3", 3 * 2 * (3 * 4)},
	{"cummax", running("cummax", 13, ""), "-,x", "-,x", "x3", 3 * 2 * (3 * 4)},

	// A value and a place for each row and device.
	{"argmax", `func.func @f(%x: tensor<3x17xf32>) -> tensor<3xi32> {
  %y = dm.argmax %x, dim = 1 : (tensor<3x17xf32>) -> tensor<3xi32>
  return %y : tensor<3xi32>
}`, "-,x", ".", "x4", 4 * 3 * 3 * (4 + 4)},
	{"argmax of ties", `func.func @f(%x: tensor<17x3xf32>) -> tensor<1x3xi64> {
  %s = dm.sign %x : tensor<17x3xf32>
  %y = dm.argmax %s, dim = 0, keep_dims = true : (tensor<17x3xf32>) -> tensor<1x3xi64>
  return %y : tensor<1x3xi64>
}`, "x,-", ".", "x4", 4 * 3 * 3 * (4 + 8)},
	{"top_k", topK("sign", 3, true, 40), "-,x", ". .", "x4", 4 * 3 * (2 * 3) * (4 + 8)},
	{"top_k, smallest, uneven", topK("sign", 3, false, 39), "-,x", ". .", "x4", 4 * 3 * (2 * 3) * (4 + 8)},
	{"top_k of so many that the whole is less", topK("abs", 7, false, 21), "-,x", ". .", "x4", 4 * 3 * (2 * 6 * 4)},
}

// windowed are programs in which a window moves over divided dimensions: devices send the halo.
var windowed = []struct {
	name, op, args, results, mesh string
	sent                          int64
}{
	{"3x3, same", `convolution %a, %b, padding = [[1, 1], [1, 1]] : (tensor<2x3x8x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x6xf32>`, "-,-,x,- .", "-,-,x,-", "x4", 2 * 3 * (2 * 3 * 6 * 4)},
	{"3x3, same, uneven", `convolution %a, %b, padding = [[1, 1], [1, 1]] : (tensor<2x3x10x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x10x6xf32>`, "-,-,x,- .", "-,-,x,-", "x4", 2 * 3 * (2 * 3 * 6 * 4)},
	{"two dimensions, with corners", `convolution %a, %b, padding = [[1, 1], [1, 1]] : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32>`, "-,-,x,y .", "-,-,x,y", "x2 y2", 2 * 2 * (2 * 4 * 4)},
	{"valid", `convolution %a, %b : (tensor<1x2x12x5xf32>, tensor<4x2x5x5xf32>) -> tensor<1x4x8x1xf32>`, "-,-,x,- .", "-,-,x,-", "x2", (2 + 2) * (2 * 5 * 4)},
	{"stride 2, seven taps", `convolution %a, %b, window_strides = [2], padding = [[3, 3]] : (tensor<2x3x32xf32>, tensor<4x3x7xf32>) -> tensor<2x4x16xf32>`, "-,-,x .", "-,-,x", "x4", (3 + 2) * 3 * (2 * 3 * 4)},
	{"stride 2, uneven", `convolution %a, %b, window_strides = [2], padding = [[1, 1]] : (tensor<2x3x31xf32>, tensor<4x3x3xf32>) -> tensor<2x4x16xf32>`, "-,-,x .", "-,-,x", "x4", 1 * 3 * (2 * 3 * 4)},
	{"stride 2, uneven, pieces that do not match", `convolution %a, %b, window_strides = [2], padding = [[1, 1]] : (tensor<2x3x5xf32>, tensor<4x3x3xf32>) -> tensor<2x4x3xf32>`, "-,-,x .", "-,-,x", "x2", 1 * (2 * 3 * 4)},
	{"dilated, a halo of two neighbours", `convolution %a, %b, rhs_dilation = [3], padding = [[3, 3]] : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x8xf32>`, "-,-,x .", "-,-,x", "x4", 2 * (2*3 + 1*2) * (2 * 3 * 4)},
	{"channels too", `convolution %a, %b, padding = [[1, 1]] : (tensor<2x6x8xf32>, tensor<4x6x3xf32>) -> tensor<2x4x8xf32>`, "-,y,x -,y,-", "-,-,x", "x4 y3", 2 * 3 * (2 * 2 * 4) * 3},
	{"transposed", `convolution %a, %b, lhs_dilation = [2], padding = [[1, 2]] : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x16xf32>`, "-,-,x .", "-,-,x", "x4", 1 * 3 * (2 * 3 * 4)},
	{"grouped", `convolution %a, %b, feature_group_count = 3, padding = [[0, 2]] : (tensor<2x3x8xf32>, tensor<6x1x3xf32>) -> tensor<2x6x8xf32>`, "-,-,x .", "-,-,x", "x4", 2 * 3 * (2 * 3 * 4)},
	{"filter gradient", `convolution %a, %b, padding = [[1, 1]] : (tensor<3x2x16xf32>, tensor<4x2x16xf32>) -> tensor<3x4x3xf32>`, "-,-,x -,-,x", ".", "x4", 2*3*(3*2*4) + 2*3*(3*4*3*4)},
	{"filter gradient, uneven", `convolution %a, %b, padding = [[1, 1]] : (tensor<3x2x30xf32>, tensor<4x2x30xf32>) -> tensor<3x4x3xf32>`, "-,-,x -,-,x", ".", "x4", 2*3*(3*2*4) + 2*3*(3*4*3*4)},
	{"max pool", `reduce_window max %a, window_dimensions = [1, 3], window_strides = [1, 2], padding = [[0, 0], [1, 1]] : (tensor<5x16xf32>) -> tensor<5x8xf32>`, "-,x", "-,x", "x4", 1 * 3 * (5 * 4)},
	{"min pool, uneven", `reduce_window min %a, window_dimensions = [1, 3], window_strides = [1, 1], padding = [[0, 0], [1, 1]] : (tensor<5x13xf32>) -> tensor<5x13xf32>`, "-,x", "-,x", "x4", 2 * 3 * (5 * 4)},
	{"sum pool without halo", `reduce_window add %a, window_dimensions = [2], window_strides = [2] : (tensor<16xi32>) -> tensor<8xi32>`, "x", "x", "x4", 0},
	{"gradient of a pool", `select_and_scatter max %a, %b, window_dimensions = [1, 2], window_strides = [1, 2] : (tensor<5x16xf32>, tensor<5x8xf32>) -> tensor<5x16xf32>`, "-,x -,x", "-,x", "x4", 0},
	{"gradient of a pool, uneven", `select_and_scatter min %a, %b, window_dimensions = [1, 2], window_strides = [1, 2] : (tensor<5x14xf32>, tensor<5x7xf32>) -> tensor<5x14xf32>`, "-,x -,x", "-,x", "x4", 0},
	{"gradient of a pool with overlaps", `select_and_scatter max %a, %b, window_dimensions = [1, 3], window_strides = [1, 2], padding = [[0, 0], [1, 1]] : (tensor<5x16xf32>, tensor<5x8xf32>) -> tensor<5x16xf32>`, "-,x -,x", "-,x", "x4", 2 * 3 * (5 * 4)},
	{"gradient of a pool in two dimensions, uneven", `select_and_scatter max %a, %b, window_dimensions = [3, 3], window_strides = [1, 1], padding = [[1, 1], [1, 1]] : (tensor<15x9xf32>, tensor<15x9xf32>) -> tensor<15x9xf32>`, "x,y x,y", "x,y", "x4 y2", 2 * 2 * 3 * (5 * 4) * 2},
	{"slice", `slice %a, start_indices = [0, 1], limit_indices = [5, 16] : (tensor<5x16xf32>) -> tensor<5x15xf32>`, "-,x", "-,x", "x4", 3 * (5 * 4)},
	{"slice with a stride", `slice %a, start_indices = [1], limit_indices = [14], strides = [3], dims = [1] : (tensor<5x16xf32>) -> tensor<5x5xf32>`, "-,x", "-,x", "x2", 0},
	{"pad", `pad %a, %b, low = [0, 1], high = [2, 3] : (tensor<5x12xf32>, tensor<f32>) -> tensor<7x16xf32>`, "-,x .", "-,x", "x4", 2 * 2 * (5 * 4)},
	{"pad between", `pad %a, %b, low = [1], high = [0], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>`, "x .", "x", "x4", 0},
}

// attending are attentions of b batches, h heads, k key heads, q queries, s keys, depth d and
// value depth e. The sum of what devices send follows from the blocks of keys and values that travel.
var attending = []struct {
	name, attrs, dims, mask, args, mesh string
	sent, grad                          int64
}{
	{"ring", "", "2 4 2 8 8 6 3", "", "x x x", "x4", 12 * block(2, 2, 2, 6, 3), 36 * block(2, 2, 2, 6, 3)},
	{"ring of two, scaled", ", scale = 0.7", "1 2 2 8 6 4 4", "", "x x x", "x2", 2 * block(1, 2, 3, 4, 4), 6 * block(1, 2, 3, 4, 4)},
	{"ring, uneven", "", "2 4 2 10 7 6 3", "", "x x x", "x3", 6 * block(2, 2, 3, 6, 3), 18 * block(2, 2, 3, 6, 3)},
	{"ring, causal: only to later queries", ", causal = true", "2 4 2 8 8 6 3", "", "x x x", "x4", (3 + 2 + 1) * block(2, 2, 2, 6, 3), 3 * (3 + 2 + 1) * block(2, 2, 2, 6, 3)},
	{"ring, causal, uneven", ", causal = true", "2 4 2 7 10 6 3", "", "x x x", "x3", 6 * block(2, 2, 4, 6, 3), (6 + 6 + 5) * block(2, 2, 4, 6, 3)},
	{"ring, causal, queries that see nothing", ", causal = true", "1 2 2 16 8 4 4", "", "x x x", "x4", (3 + 2 + 1) * block(1, 2, 2, 4, 4), -1},
	{"ring, mask", "", "2 4 2 8 8 6 3", "8x8", "x x x", "x4", 12 * block(2, 2, 2, 6, 3), 36 * block(2, 2, 2, 6, 3)},
	{"ring, causal, mask of keys", ", causal = true", "2 4 2 8 9 6 3", "1x1x9", "x x x", "x4", 6 * block(2, 2, 3, 6, 3), 18 * block(2, 2, 3, 6, 3)},
	{"ring, heads divided too", ", causal = true", "2 4 2 6 6 6 3", "", "y/x y/x y/x", "x3 y2", (2 + 1) * block(2, 2, 2, 6, 3), 3 * (2 + 1) * block(2, 2, 2, 6, 3)},
	{"few queries, which are gathered", ", causal = true", "1 2 2 8 16 4 4", "", "x x x", "x4", 3 * (1 * 2 * 8 * (4 + 4 + 4) * 4), -2},
	{"queries, causal", ", causal = true", "2 4 2 8 8 6 3", "", "x - -", "x4", 0, 2 * 3 * block(2, 2, 8, 6, 3)},
	{"queries, causal, mask, uneven", ", causal = true", "2 4 2 7 9 6 3", "7x1", "x - -", "x4", 0, 2 * 3 * block(2, 2, 9, 6, 3)},
	{"keys", "", "2 4 1 3 96 6 8", "", "- x x", "x4", 3 * 2 * (2 * 4 * 3 * (8 + 2) * 4), 3 * 2 * (2 * 4 * 3 * (8 + 2 + 6) * 4)},
	{"keys, causal, uneven, mask", ", causal = true", "2 4 1 3 95 6 8", "3x95", "- x x", "x4", 3 * 2 * (2 * 4 * 3 * (8 + 2) * 4), 3 * 2 * (2 * 4 * 3 * (8 + 2 + 6) * 4)},
}

// moved are ops that move elements along divided dimensions.
var moved = []struct {
	name, op, args, results, mesh string
	sent                          int64
}{
	{"reverse", `reverse %a, dims = [0, 1] : (tensor<8x12xf32>) -> tensor<8x12xf32>`, "-,x", "-,x", "x4", 8 * 12 * 4},
	{"reverse of three pieces", `reverse %a, dims = [1] : (tensor<8x12xf32>) -> tensor<8x12xf32>`, "-,x", "-,x", "x3", 2 * (8 * 4 * 4)},
	{"roll by less than a piece", `roll %a, shifts = [1], dims = [1] : (tensor<8x12xf32>) -> tensor<8x12xf32>`, "-,x", "-,x", "x4", 4 * (8 * 1 * 4)},
	{"roll back", `roll %a, shifts = [3, -1], dims = [0, 1] : (tensor<8x12xf32>) -> tensor<8x12xf32>`, "-,x", "-,x", "x4", 4 * (8 * 1 * 4)},
	{"roll by more", `roll %a, shifts = [16, 2], dims = [1, 0] : (tensor<8x12xf32>) -> tensor<8x12xf32>`, "-,x", "-,x", "x4", 4 * (8 * 3 * 4)},
	{"roll by pieces", `roll %a, shifts = [6], dims = [1] : (tensor<8x12xf32>) -> tensor<8x12xf32>`, "-,x", "-,x", "x4", 4 * (8 * 3 * 4)},
	// Of the first operand all but the first piece moves up, of the second all but the last down.
	{"concatenate", `concatenate %a, %b, dim = 1 : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x32xf32>`, "-,x -,x", "-,x", "x2", 2 * (3 * 8 * 4)},
	{"concatenate, uneven", `concatenate %a, %b, %c, dim = 0 : (tensor<5x3xf32>, tensor<1x3xf32>, tensor<7x3xf32>) -> tensor<13x3xf32>`, "x,- . x,-", "x,-", "x2", (2 + 3) * (3 * 4)},
	{"dynamic slice", `dynamic_slice %a, %b, %c, slice_sizes = [5, 2] : (tensor<5x14xf32>, tensor<i32>, tensor<i32>) -> tensor<5x2xf32>`, "-,x . .", ".", "x4", 2 * 3 * (5 * 2 * 4)},
	{"dynamic update", `dynamic_update_slice %a, %b, %c, %d : (tensor<5x14xf32>, tensor<3x4xf32>, tensor<i64>, tensor<i64>) -> tensor<5x14xf32>`, "y,x . . .", "y,x", "x4 y2", 0},
}

// block is the bytes of n keys and values.
func block(b, k, n, d, e int64) int64 { return b * k * n * (d + e) * 4 }

func lookup(rows string) string {
	return strings.ReplaceAll(`func.func @f(%t: tensor<Nx6xf32>, %s: tensor<5xi64>) -> tensor<5x6xf32> {
  %c = dm.constant dense<[-3, 40, 7, 22, 11]> : tensor<5xi64>
  %z = dm.sub %s, %s : tensor<5xi64>
  %i = dm.add %c, %z : tensor<5xi64>
  %y = dm.embedding %t, %i : (tensor<Nx6xf32>, tensor<5xi64>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}`, "N", rows)
}

func lookupGrad(rows, ids int) string {
	return strings.ReplaceAll(sized(`func.func @g(%t: tensor<Nx6xf32>, %i: tensor<Kxi64>) -> tensor<Kx6xf32> {
  %y = dm.embedding %t, %i : (tensor<Nx6xf32>, tensor<Kxi64>) -> tensor<Kx6xf32>
  return %y : tensor<Kx6xf32>
}
func.func @f(%t: tensor<Nx6xf32>, %i: tensor<Kxi64>, %dy: tensor<Kx6xf32>) -> tensor<Nx6xf32> {
  %y, %dt = dm.grad @g %t, %i, %dy, wrt = [0], cotangents = 1 : (tensor<Nx6xf32>, tensor<Kxi64>, tensor<Kx6xf32>) -> (tensor<Kx6xf32>, tensor<Nx6xf32>)
  return %dt : tensor<Nx6xf32>
}`, "", rows), "K", strconv.Itoa(ids))
}

func scatter(kind string, n int) string {
	text := sized(`func.func @f(%x: tensor<3x9x2xf32>, %j: tensor<3xNxi32>, %u: tensor<3xNx2xf32>) -> tensor<3x9x2xf32> {
  %two = dm.constant dense<2> : tensor<i32>
  %i = dm.mul %j, %two : (tensor<3xNxi32>, tensor<i32>) -> tensor<3xNxi32>
  %y = dm.scatter WHAT %x, %i, %u, dim = 1, batch_dims = 1 : (tensor<3x9x2xf32>, tensor<3xNxi32>, tensor<3xNx2xf32>) -> tensor<3x9x2xf32>
  return %y : tensor<3x9x2xf32>
}`, "", n)
	return strings.ReplaceAll(text, "WHAT", kind)
}

func entropy(attrs string, classes int) string {
	return sized(`func.func @f(%x: tensor<6xNxf32>, %l: tensor<6xi64>) -> tensor<f32> {
  %y = dm.cross_entropy %x, %lATTRS : (tensor<6xNxf32>, tensor<6xi64>) -> tensor<f32>
  return %y : tensor<f32>
}`, attrs, classes)
}

func entropyGrad(classes int) string {
	return sized(`func.func @g(%x: tensor<6xNxf32>, %l: tensor<6xi64>) -> tensor<f32> {
  %y = dm.cross_entropy %x, %l : (tensor<6xNxf32>, tensor<6xi64>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @f(%x: tensor<6xNxf32>, %l: tensor<6xi64>) -> tensor<6xNxf32> {
  %y, %dx = dm.grad @g %x, %l, wrt = [0] : (tensor<6xNxf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xNxf32>)
  return %dx : tensor<6xNxf32>
}`, "", classes)
}

func running(name string, n int, attrs string) string {
	return sized("func.func @f(%x: tensor<3xNxf32>) -> tensor<3xNxf32> {\n  %y = dm."+name+` %x, dim = 1ATTRS : tensor<3xNxf32>
  return %y : tensor<3xNxf32>
}`, attrs, n)
}

// topK searches values of which many are equal where name is sign.
func topK(name string, k int, largest bool, n int) string {
	attrs := fmt.Sprintf(", k = %d, largest = %v", k, largest)
	return strings.ReplaceAll(sized("func.func @f(%x: tensor<2xNxf32>) -> (tensor<2xKxf32>, tensor<2xKxi64>) {\n  %s = dm."+name+` %x : tensor<2xNxf32>
  %v, %i = dm.top_k %sATTRS : (tensor<2xNxf32>) -> (tensor<2xKxf32>, tensor<2xKxi64>)
  return %v, %i : tensor<2xKxf32>, tensor<2xKxi64>
}`, attrs, n), "K", strconv.Itoa(k))
}

func sized(text, attrs string, n int) string {
	return strings.NewReplacer("ATTRS", attrs, "N", strconv.Itoa(n)).Replace(text)
}

// TestExchange: devices that exchange what they lack compute what one device does, and send
// no more than the algorithm's formula states.
func TestExchange(t *testing.T) {
	for _, c := range exchanged {
		t.Run(c.name, func(t *testing.T) {
			others(t, c.text, "f", c.mesh, c.args, c.results)
			d := whole(t, c.text, "f")
			local, sent := d.run(t, grid(c.mesh), layouts(c.args), layouts(c.results))
			if sent["x"] != c.sent || len(sent) > 1 {
				t.Errorf("the devices send %v, not %d bytes\n%s", sent, c.sent, local)
			}
		})
	}
}

// TestHalo: where windows cross the borders of pieces, devices send no more than the halo.
func TestHalo(t *testing.T) {
	for _, c := range windowed {
		t.Run(c.name, func(t *testing.T) {
			others(t, oneOp(c.op), "f", c.mesh, c.args, c.results)
			d := whole(t, oneOp(c.op), "f")
			local, sent := d.run(t, grid(c.mesh), layouts(c.args), layouts(c.results))
			if sent["x"] != c.sent {
				t.Errorf("the devices send %v, not %d bytes\n%s", sent, c.sent, local)
			}
		})
	}
}

// TestMoves: devices send what leaves a piece.
func TestMoves(t *testing.T) {
	for _, c := range moved {
		t.Run(c.name, func(t *testing.T) {
			others(t, oneOp(c.op), "f", c.mesh, c.args, c.results)
			d := whole(t, oneOp(c.op), "f")
			local, sent := d.run(t, grid(c.mesh), layouts(c.args), layouts(c.results))
			if sent["x"] != c.sent {
				t.Errorf("the devices send %v, not %d bytes\n%s", sent, c.sent, local)
			}
		})
	}
}

// TestPartAnywhere: a part is taken and replaced across the borders of pieces, at the ends, and outside.
func TestPartAnywhere(t *testing.T) {
	for _, at := range []string{"-3", "0", "2", "3", "5", "10", "11", "40"} {
		text := strings.ReplaceAll(`func.func @f(%a: tensor<13x2xf32>, %u: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<13x2xf32>) {
  %i = dm.constant dense<AT> : tensor<i32>
  %z = dm.constant dense<0> : tensor<i32>
  %p = dm.dynamic_slice %a, %i, %z, slice_sizes = [4, 2] : (tensor<13x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  %y = dm.dynamic_update_slice %a, %u, %i, %z : (tensor<13x2xf32>, tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<13x2xf32>
  return %p, %y : tensor<4x2xf32>, tensor<13x2xf32>
}`, "AT", at)
		for _, m := range []string{"x2", "x3", "x4"} {
			d := whole(t, text, "f")
			d.run(t, grid(m), layouts("x,- ."), layouts(". x,-"))
		}
	}
}

// oneOp is the function of an op on its arguments %a, %b and so on.
func oneOp(line string) string {
	_, signature, _ := strings.Cut(line, " : (")
	in, out, _ := strings.Cut(signature, ") -> ")
	var args, results []string
	for i, t := range strings.Split(in, ">, ") {
		args = append(args, fmt.Sprintf("%%%c: %s>", 'a'+i, strings.TrimSuffix(t, ">")))
	}
	for i := range strings.Split(strings.Trim(out, "()"), ">, ") {
		results = append(results, fmt.Sprintf("%%r%d", i))
	}
	all := strings.Join(results, ", ")
	return "func.func @f(" + strings.Join(args, ", ") + ") -> " + out + " {\n  " + all + " = dm." + line + "\n  return " + all + " : " + strings.Trim(out, "()") + "\n}"
}

// attention is @f of an attention with its second result, and @grad of its gradients.
func attention(attrs, dims, mask string) string {
	var b, h, k, q, s, d, e int
	if _, err := fmt.Sscan(dims, &b, &h, &k, &q, &s, &d, &e); err != nil {
		panic(err)
	}
	tensor := func(shape ...int) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", "x") }
	operands, types := "%q, %k, %v", fmt.Sprintf("tensor<%sxf32>, tensor<%sxf32>, tensor<%sxf32>", tensor(b, h, q, d), tensor(b, k, s, d), tensor(b, k, s, e))
	args := fmt.Sprintf("%%q: tensor<%sxf32>, %%k: tensor<%sxf32>, %%v: tensor<%sxf32>", tensor(b, h, q, d), tensor(b, k, s, d), tensor(b, k, s, e))
	if mask != "" {
		operands, types, args = operands+", %m", types+", tensor<"+mask+"xf32>", args+", %m: tensor<"+mask+"xf32>"
	}
	y, lse := "tensor<"+tensor(b, h, q, e)+"xf32>", "tensor<"+tensor(b, h, q)+"xwide>"
	gradients := strings.Join(strings.SplitAfterN(types, ">, ", 4)[:3], "")
	gradients = strings.TrimSuffix(gradients, ", ")
	return fmt.Sprintf(`func.func @f(%s) -> (%[3]s, %[4]s) {
  %%y, %%l = dm.attention %[2]s%[5]s : (%[6]s) -> (%[3]s, %[4]s)
  return %%y, %%l : %[3]s, %[4]s
}
func.func @one(%[1]s) -> %[3]s {
  %%y = dm.attention %[2]s%[5]s : (%[6]s) -> %[3]s
  return %%y : %[3]s
}
func.func @grad(%[1]s, %%dy: %[3]s) -> (%[7]s) {
  %%y, %%dq, %%dk, %%dv = dm.grad @one %[2]s, %%dy, wrt = [0, 1, 2], cotangents = 1 : (%[6]s, %[3]s) -> (%[3]s, %[7]s)
  return %%dq, %%dk, %%dv : %[7]s
}`, args, operands, y, lse, attrs, types, gradients)
}

// others are the same programs in other element types, which are compared only.
func others(t *testing.T, text, name, mesh, args, results string) {
	for elem, coarse := range map[string]float64{"f64": 0, "f16": 0.02, "bf16": 0.15} {
		wide := map[string]string{"f64": "f64"}[elem]
		text := strings.NewReplacer("f32", elem, "wide", cmp.Or(wide, "f32")).Replace(text)
		d := whole(t, text, name)
		d.coarse = coarse
		d.run(t, grid(mesh), layouts(args), layouts(results))
	}
}

// TestRing: attention over divided keys and queries, and its gradient, in which the gradients of keys
// and values travel as well.
func TestRing(t *testing.T) {
	for _, c := range attending {
		text := attention(c.attrs, c.dims, c.mask)
		var in []string
		for _, part := range strings.Fields(c.args) {
			heads, seq, ok := strings.Cut(part, "/")
			if !ok {
				heads, seq = "-", part
			}
			in = append(in, "-,"+heads+","+seq+",-")
		}
		y, lse := in[0], strings.TrimSuffix(in[0], ",-")
		gradients := strings.Join(in, " ")
		if c.mask != "" {
			in = append(in, ".")
		}
		operands := strings.Join(in, " ")
		check := func(t *testing.T, name, args, results string, want int64) {
			others(t, text, name, c.mesh, args, results)
			d := whole(t, strings.ReplaceAll(text, "wide", "f32"), name)
			local, sent := d.run(t, grid(c.mesh), layouts(args), layouts(results))
			if sent["x"] != want && want >= 0 {
				t.Errorf("the devices send %v, not %d bytes\n%s", sent, want, local)
			}
		}
		t.Run(c.name, func(t *testing.T) { check(t, "f", operands, y+" "+lse, c.sent) })
		if c.grad != -1 { // a query that sees nothing has no gradient
			t.Run(c.name+", grad", func(t *testing.T) { check(t, "grad", operands+" "+y, gradients, c.grad) })
		}
	}
}
