package op_test

import (
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// first is the first op called name in text.
func first(t *testing.T, text, name string) (*ir.Module, *ir.Op) {
	t.Helper()
	ms := lower.File(parse.File(source.New("test.dmir", text)))
	var found *ir.Op
	ir.Walk(ms[0].Ops, func(o *ir.Op) bool {
		if o.Name == name && found == nil {
			found = o
		}
		return found == nil
	})
	if found == nil {
		t.Fatalf("no %s: %v", name, ms[0].Diags)
	}
	return ms[0], found
}

func TestRegionCost(t *testing.T) {
	cases := []struct{ name, text, flop string }{
		{"dm.map", op.Lookup("dm.map").Example, "12"},                                          // add and mul for each of 2·3
		{"dm.kernel", op.Lookup("dm.kernel").Example, "8"},                                     // add on 2·4
		{"dm.scan", op.Lookup("dm.scan").Example, "0"},                                         // max counts none
		{"dm.scan", strings.Replace(op.Lookup("dm.scan").Example, "dm.max", "dm.add", 1), "6"}, // three times 2
		{"dm.while", op.Lookup("dm.while").Example, "2"},                                       // one round: add on 2
		{"dm.if", op.Lookup("dm.if").Example, "2"},                                             // exp on 2, the more expensive branch
		{"dm.reduce", op.Lookup("dm.reduce").Example, "4"},                                     // 2·3 - 2
		{"dm.yield", op.Lookup("dm.kernel").Example, "0"},                                      //
		{"dm.reduce", strings.ReplaceAll(`func.func @f(%x: tensor<2x3xf32>, %i: tensor<f32>) -> tensor<2xf32> {
  %r = dm.reduce %x, %i, dims = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = dm.exp %a : f32
    %d = dm.add %c, %b : f32
    dm.yield %d : f32
  }
  return %r : tensor<2xf32>
}`, "\t", ""), "12"}, // exp and add for each of 2·3
	}
	for _, c := range cases {
		_, o := first(t, c.text, c.name)
		if got := op.FLOP(o); got.String() != c.flop {
			t.Errorf("%s: %s FLOP, want %s", c.name, got, c.flop)
		}
		if read, _ := op.Traffic(o); len(read) != len(o.Operands) {
			t.Errorf("%s: bytes read of %d operands, it has %d", c.name, len(read), len(o.Operands))
		}
	}
}

func TestRegionProblems(t *testing.T) {
	example := func(name, old, to string) string {
		text := op.Lookup("dm." + name).Example
		if !strings.Contains(text, old) {
			t.Fatalf("%s: no %q in its example", name, old)
		}
		return strings.Replace(text, old, to, 1)
	}
	cases := []struct{ name, text, code, message string }{
		{"dm.map", example("map", "%b: f32)", "%b: f64)"), "DM126", "(f32, f64), but the op passes (f32, f32)"},
		{"dm.while", example("while", "dm.yield %more : tensor<i1>", "dm.yield %i : tensor<i64>"), "DM127", "(tensor<i64>) where (tensor<i1>)"},
		{"dm.while", example("while", "dm.yield %next, %w : tensor<i64>, tensor<2xf32>", "dm.yield %next : tensor<i64>"), "DM127", "(tensor<i64>) where (tensor<i64>, tensor<2xf32>)"},
		{"dm.while", example("while", "trip_count = 3", "trip_count = -1"), "DM115", "-1"},
		{"dm.while", example("while", "trip_count = 3", "max_trips = -1"), "DM115", "-1"},
		{"dm.scan", example("scan", "carries = 1", "carries = 3"), "DM115", "carries = 3, but scan has 2 operands"},
		{"dm.scan", example("scan", "carries = 1", "carries = 2"), "DM115", "its number of iterations is unknown"},
		{"dm.scan", example("scan", "carries = 1", "carries = 1, length = -3"), "DM115", "length = -3 is negative"},
		{"dm.scan", example("scan", "carries = 1", "carries = 1, length = 4"), "DM122", "scan runs 4 times, but the first dimension of tensor<3x2xf32> has size 3"},
		{"dm.scan", example("scan", "carries = 1", "carries = 0"), "DM122", "scan runs 2 times, but the first dimension of tensor<3x2xf32> has size 3"},
		{"dm.scan", example("scan", "%x: tensor<2xf32>", "%x: tensor<3x2xf32>"), "DM126", "(tensor<2xf32>, tensor<3x2xf32>), but the op passes (tensor<2xf32>, tensor<2xf32>)"},
		{"dm.scan", example("scan", "dm.yield %next, %next : tensor<2xf32>, tensor<2xf32>", "dm.yield"), "DM127", "yields 0 values, but scan carries 1"},
		{"dm.scan", "func.func @f(%x: tensor<f32>) {\n  %y = dm.scan %x, carries = 0 : (tensor<f32>) -> tensor<2xf32> {\n  ^bb0(%a: tensor<f32>):\n    dm.yield %a : tensor<f32>\n  }\n  return\n}", "DM117", "a stack"},
		{"dm.scan", "func.func @f(%x: tensor<f32>, %xs: tensor<2xf64>) {\n  %y = dm.scan %x, %xs, carries = 1 : (tensor<f32>, tensor<2xf64>) -> tensor<f32> {\n  ^bb0(%a: tensor<f32>, %b: tensor<f64>):\n    dm.yield %b : tensor<f64>\n  }\n  return\n}", "DM127", "(tensor<f64>) where (tensor<f32>)"},
		{"dm.if", example("if", "dm.yield %x : tensor<2xf32>", "dm.yield %c : tensor<i1>"), "DM127", "(tensor<i1>) where (tensor<2xf32>)"},
		{"dm.if", "func.func @f(%c: tensor<i1>, %x: tensor<2xf32>) {\n  %y = dm.if %c : (tensor<i1>) -> tensor<2xf32> {\n    dm.yield %x : tensor<2xf32>\n  }\n  return\n}", "DM127", "no else"},
		{"dm.reduce", "func.func @f(%x: tensor<2xf32>) {\n  %y = dm.reduce add %x : (tensor<2xf32>) -> tensor<f32> {\n  ^bb0(%a: f32, %b: f32):\n    dm.yield %a : f32\n  }\n  return\n}", "DM129", "has a region as well"},
		{"dm.reduce", "func.func @f(%x: tensor<2xf32>) {\n  %y = dm.reduce %x : (tensor<2xf32>) -> tensor<f32> {\n  ^bb0(%a: f32, %b: f32):\n    dm.yield %a : f32\n  }\n  return\n}", "DM129", "no initial value"},
		{"dm.reduce", "func.func @f(%x: tensor<2xf32>) {\n  %y = dm.reduce %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32> {\n  ^bb0(%a: f32, %b: f32):\n    dm.yield %a : f32\n  }\n  return\n}", "DM122", "not tensor<f32>"},
	}
	for _, c := range cases {
		_, o := first(t, c.text, c.name)
		p := verify.Op(o)
		if p == nil || p.Code != c.code || !strings.Contains(p.Msg, c.message) {
			t.Errorf("%s: %+v, want %s with %q\n%s", c.name, p, c.code, c.message, c.text)
		}
	}
}
