package program_test

import (
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// TestCallsOfSymbols: what is wrong with a call of a function with symbols is said once, at the call, with the sizes that
// the symbols have and where these come from.
func TestCallsOfSymbols(t *testing.T) {
	vec := func(size string) string { return "tensor<?xf32, #dm.at<dims = [" + size + "]>>" }
	mat := func(a, b string) string { return "tensor<?x?xf32, #dm.at<dims = [" + a + ", " + b + "]>>" }
	product := "func.func private @f(%x: " + mat("m", "k") + ", %w: " + mat("k", "n") + ") -> " + mat("m", "n") + " {\n" +
		"  %y = dm.matmul %x, %w : (" + mat("m", "k") + ", " + mat("k", "n") + ") -> " + mat("m", "n") + "\n  return %y : " + mat("m", "n") + "\n}\n"
	open := "func.func private @f(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>) -> tensor<?x?xf32> {\n" +
		"  %y = dm.matmul %x, %w : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>\n  return %y : tensor<?x?xf32>\n}\n"
	pairs := "func.func private @f(%x: " + vec("2*h") + ") -> " + vec("h") + " {\n" +
		"  %a = dm.reshape %x : (" + vec("2*h") + ") -> tensor<2x?xf32, #dm.at<dims = [h]>>\n" +
		"  %y = dm.reduce add %a, dims = [0] : (tensor<2x?xf32, #dm.at<dims = [h]>>) -> " + vec("h") + "\n  return %y : " + vec("h") + "\n}\n"
	outer := func(inner, t string) string {
		return inner + "func.func private @g(%x: " + t + ") -> tensor<?x?xf32> {\n" +
			"  %y = call @f(%x, %x) : (" + t + ", " + t + ") -> tensor<?x?xf32>\n  return %y : tensor<?x?xf32>\n}\n"
	}
	limits := "func.func private @f(%x: " + vec("n") + ") -> " + vec("n") + " attributes {dm.sizes = {n = {max = 8}}} {\n  return %x : " + vec("n") + "\n}\n"
	loop := "func.func private @f(%x: " + vec("n") + ") -> " + vec("n") + " {\n" +
		"  %p = dm.concatenate %x, %x, dim = 0 : (" + vec("n") + ", " + vec("n") + ") -> " + vec("2*n") + "\n" +
		"  %y = call @f(%p) : (" + vec("2*n") + ") -> " + vec("2*n") + "\n  return %x : " + vec("n") + "\n}\n"
	for _, c := range []struct{ name, callee, args, call, want, help string }{
		{"sizes agree", product, "%x: tensor<2x3xf32>, %w: tensor<3x4xf32>", "%r = call @f(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>", "", ""},
		{"the caller's symbols of the same names", product, "%x: " + mat("k", "m") + ", %w: " + mat("m", "m"),
			"%r = call @f(%x, %w) : (" + mat("k", "m") + ", " + mat("m", "m") + ") -> " + mat("k", "m"), "", ""},
		{"two sizes of a symbol", product, "%x: tensor<2x3xf32>, %w: tensor<5x4xf32>", "%r = call @f(%x, %w) : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>",
			"where k is 3, dimension 0 is 3, not 5", "dimension 1 of %x and dimension 0 of %w agree"},
		{"another result", product, "%x: tensor<2x3xf32>, %w: tensor<3x4xf32>", "%r = call @f(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x5xf32>",
			"returns tensor<2x4xf32> where k is 3, m is 2 and n is 4", "declare the result"},
		{"a number for a symbol's place", product, "%x: tensor<2xf32>, %w: tensor<3x4xf32>", "%r = call @f(%x, %w) : (tensor<2xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
			"%x has type tensor<2xf32>, but @f takes tensor<?x?xf32", ""},
		{"a formula", pairs, "%x: tensor<6xf32>", "%r = call @f(%x) : (tensor<6xf32>) -> tensor<3xf32>", "", ""},
		{"an odd size", pairs, "%x: tensor<7xf32>", "%r = call @f(%x) : (tensor<7xf32>) -> tensor<3xf32>", "no h makes 2*h equal to 7", "whose size here is 2*h"},
		{"sizes without names", open, "%x: tensor<2x3xf32>, %w: tensor<3x4xf32>", "%r = call @f(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>", "", ""},
		{"an op that does not work in these sizes", open, "%x: tensor<2x3xf32>, %w: tensor<5x4xf32>", "%r = call @f(%x, %w) : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>",
			"in @f: matmul of [2, 3] and [5, 4] contracts dimensions of sizes 3 and 5", "must be equal"},
		{"a result that follows from the body", open, "%x: tensor<2x3xf32>, %w: tensor<3x4xf32>", "%r = call @f(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x5xf32>",
			"%r is declared as tensor<2x5xf32>, but @f returns tensor<2x4xf32>", ""},
		{"a function between", outer(open, "tensor<?x?xf32>"), "%x: tensor<2x3xf32>", "%r = call @g(%x) : (tensor<2x3xf32>) -> tensor<2x2xf32>",
			"in @g: in @f: matmul of [2, 3] and [2, 3]", ""},
		{"a function between, wrong in any sizes", outer(open, mat("a", "b")), "%x: tensor<2x3xf32>", "%r = call @g(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
			"in @f: matmul of [a, b] and [a, b]", ""},
		{"a function between, which works", outer(open, "tensor<?x?xf32>"), "%x: tensor<3x3xf32>", "%r = call @g(%x) : (tensor<3x3xf32>) -> tensor<3x3xf32>", "", ""},
		{"limits", limits, "%x: tensor<9xf32>", "%r = call @f(%x) : (tensor<9xf32>) -> tensor<9xf32>", "the size n is 9, and the function is for sizes up to 8", ""},
		{"no end of instances", loop, "%x: tensor<2xf32>", "%r = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>", "", ""},
	} {
		text := c.callee + "func.func @main(" + c.args + ") {\n  " + c.call + "\n  return\n}\n"
		var errs []diag.Diagnostic
		p := program.Load(source.New("t.dmir", text), program.Options{})
		for _, d := range p.Diags {
			if d.Severity == diag.Error {
				errs = append(errs, d)
			}
		}
		switch {
		case c.want == "" && len(errs) == 0:
		case c.want == "":
			t.Errorf("%s: %s", c.name, errs[0].Message)
		case len(errs) != 1 || errs[0].Code != "DM188" || !strings.Contains(errs[0].Message, c.want) || !strings.Contains(errs[0].Help, c.help):
			t.Errorf("%s: %v, want %q, help %q\n%s", c.name, errs, c.want, c.help, text)
		case errs[0].Span.Start < strings.Index(text, "@main") && !strings.Contains(c.name, "any sizes"):
			t.Errorf("%s: not said at the call", c.name)
		}
	}
}
