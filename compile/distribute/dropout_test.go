package distribute_test

import (
	"strings"
	"testing"
)

// dropping are attentions with dropout of b batches, h heads, k key heads, q queries, s keys, depth d and value depth e, with the
// shardings of q and of k and v. Where the numbers of a score differ from those of one device, the results do.
var dropping = []struct {
	name, attrs, dims, mask, q, k, mesh string
	sent                                bool // the gradient sums what queries and heads add to keys
}{
	{"batch", "", "4 2 2 5 6 3 7", "", "x,-,-,-", "x,-,-,-", "x4", false},
	{"heads", "", "2 4 4 5 7 3 4", "", "-,x,-,-", "-,x,-,-", "x4", false},
	{"batch and heads", ", scale = 0.7", "2 4 2 5 6 3 4", "4x1x6", "x,y,-,-", "x,y,-,-", "x2 y2", false},
	{"heads, then batch", "", "4 2 2 3 6 3 4", "", "y,x,-,-", "y,x,-,-", "x2 y2", false},
	{"uneven heads", "", "2 5 5 5 6 3 4", "", "-,x,-,-", "-,x,-,-", "x3", false},
	{"uneven batch", ", causal = true", "3 2 1 6 6 3 4", "3x1x6x6", "x,-,-,-", "x,-,-,-", "x2", false},
	{"more devices than batches", "", "3 2 2 5 6 3 4", "", "x,-,-,-", "x,-,-,-", "x4", false},
	{"heads of one key head", "", "2 4 1 5 6 3 4", "", "-,x,-,-", ".", "x2", true},
	{"queries", "", "2 2 1 6 8 3 4", "6x1", "-,-,x,-", ".", "x2", true},
	{"uneven queries, and heads", "", "2 4 4 7 5 3 4", "7x5", "-,y,x,-", "-,y,-,-", "x3 y2", true},
	{"two axes of a batch", ", causal = true", "4 2 1 7 7 3 4", "", "y+x,-,-,-", "y+x,-,-,-", "x2 y2", false},
}

// TestDropout: divided attentions drop the probabilities that one device drops, and send nothing for it.
func TestDropout(t *testing.T) {
	for _, c := range dropping {
		text := strings.ReplaceAll(attention(c.attrs+", dropout = 0.4, seed = 9", c.dims, c.mask), "wide", "f32")
		mask := ""
		if c.mask != "" {
			mask = " ."
		}
		operands := c.q + " " + c.k + " " + c.k + mask
		lse := c.q[:strings.LastIndexByte(c.q, ',')]
		check := func(t *testing.T, name, args, results string, sends bool) {
			for _, elem := range []string{"f64", "f32"} {
				local, sent := whole(t, strings.ReplaceAll(text, "f32", elem), name).run(t, grid(c.mesh), layouts(args), layouts(results))
				if len(sent) > 0 != sends || !strings.Contains(local, "dm.attention") || !strings.Contains(local, "whole = [") {
					t.Errorf("the devices send %v, and it is\n%s", sent, local)
				}
			}
		}
		t.Run(c.name, func(t *testing.T) { check(t, "f", operands, c.q+" "+lse, false) })
		t.Run(c.name+", grad", func(t *testing.T) {
			check(t, "grad", operands+" "+c.q, c.q+" "+c.k+" "+c.k, c.sent)
		})
	}
}

// parts are programs with dropout in a part of a whole, and how their arguments and results are divided.
var parts = []struct{ name, text, args, results, mesh string }{
	{
		"attention of a part, in a step", `func.func @f(%q: tensor<2x4x5x3xf64>, %k: tensor<2x2x6x3xf64>, %s: tensor<i32> {dm.init = 3}, %n: tensor<i32> {dm.init = 131}) -> tensor<2x4x5x3xf64> {
  %y = dm.attention %q, %k, %k, %s, %n, dropout = 0.4, seed = 9, whole = [3, 7, 8] : (tensor<2x4x5x3xf64>, tensor<2x2x6x3xf64>, tensor<2x2x6x3xf64>, tensor<i32>, tensor<i32>) -> tensor<2x4x5x3xf64>
  return %y : tensor<2x4x5x3xf64>
}`, "x,y,-,- x,y,-,- . .", "x,y,-,-", "x2 y2",
	},
	{
		"dropout of a part, in a step", `func.func @f(%x: tensor<4x5x6xf64>, %s: tensor<i32> {dm.init = 3}, %n: tensor<i32> {dm.init = 59}) -> (tensor<4x5x6xf64>, tensor<4x5x6xi1>) {
  %y, %m = dm.dropout %x, %s, %n, rate = 0.4, seed = 9, whole = [5, 7, 8] : (tensor<4x5x6xf64>, tensor<i32>, tensor<i32>) -> (tensor<4x5x6xf64>, tensor<4x5x6xi1>)
  return %y, %m : tensor<4x5x6xf64>, tensor<4x5x6xi1>
}`, "x,-,y . .", "x,-,y x,-,y", "x2 y3",
	},
	{
		// Causal queries are divided as rows of scores, whose mask is that of the whole too.
		"causal queries of a part", `func.func @f(%q: tensor<2x4x6x3xf64>, %k: tensor<2x2x6x3xf64>, %n: tensor<i64> {dm.init = 90}) -> tensor<2x4x6x3xf64> {
  %y = dm.attention %q, %k, %k, %n, causal = true, dropout = 0.4, whole = [4, 5, 9] : (tensor<2x4x6x3xf64>, tensor<2x2x6x3xf64>, tensor<2x2x6x3xf64>, tensor<i64>) -> tensor<2x4x6x3xf64>
  return %y : tensor<2x4x6x3xf64>
}`, "-,-,x,- . .", "-,-,x,-", "x2",
	},
}

// TestDropoutOfParts: pieces of parts drop what the wholes of these drop.
func TestDropoutOfParts(t *testing.T) {
	for _, c := range parts {
		t.Run(c.name, func(t *testing.T) {
			local, sent := whole(t, c.text, "f").run(t, grid(c.mesh), layouts(c.args), layouts(c.results))
			if len(sent) > 0 || !strings.Contains(local, "whole = [") {
				t.Errorf("the devices send %v, and it is\n%s", sent, local)
			}
		})
	}
}
