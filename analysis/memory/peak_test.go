package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
)

// Peaks worked out by hand. T is 1,000 bytes, U is 2,000, S is 4·n bytes and R
// is 4·m bytes.
func TestPeak(t *testing.T) {
	cases := []struct{ name, args, results, body, want string }{
		{"nothing but arguments", "%x: T, %y: T", "", "", "2000"},
		{"a chain holds operand and result", "%x: T", "T", `
  %a = dm.exp %x : T
  %b = dm.exp %a : T
  %c = dm.exp %b : T
  return %c : T`, "3000"},
		{"a value waits for its last use", "%x: T", "T", `
  %a = dm.exp %x : T
  %b = dm.exp %x : T
  %c = dm.exp %b : T
  %d = dm.add %a, %c : T
  return %d : T`, "4000"},
		{"a value without uses lives while it is made", "%x: T", "T", `
  %a = dm.exp %x : T
  %b = dm.exp %x : T
  %c = dm.exp %a : T
  return %c : T`, "3000"},
		{"a view takes nothing and keeps its operand", "%x: T", "T", `
  %a = dm.exp %x : T
  %v = dm.reshape %a : (T) -> tensor<25x10xf32>
  %b = dm.exp %x : T
  %w = dm.reshape %v : (tensor<25x10xf32>) -> T
  %c = dm.add %w, %b : T
  return %c : T`, "4000"},
		{"the inside of a kernel takes nothing", "%x: T", "T", `
  %y = dm.kernel -> T {
    %a = dm.exp %x : T
    %b = dm.exp %a : T
    %c = dm.add %a, %b : T
    dm.yield %c : T
  }
  return %y : T`, "2000"},
		{"a kernel that uses a value last frees it", "%x: T", "T", `
  %a = dm.exp %x : T
  %y = dm.kernel -> T {
    %b = dm.exp %a : T
    dm.yield %b : T
  }
  %z = dm.exp %y : T
  return %z : T`, "3000"},
		{"an update takes over what nothing uses any more", "%x: T, %i: tensor<i64>, %r: tensor<1xf32>", "T", `
  %a = dm.exp %x : T
  %b = dm.dynamic_update_slice %a, %r, %i : (T, tensor<1xf32>, tensor<i64>) -> T
  %c = dm.exp %b : T
  return %c : T`, "3012"},
		{"an update copies what is used again", "%x: T, %i: tensor<i64>, %r: tensor<1xf32>", "T", `
  %a = dm.exp %x : T
  %b = dm.dynamic_update_slice %a, %r, %i : (T, tensor<1xf32>, tensor<i64>) -> T
  %c = dm.add %a, %b : T
  return %c : T`, "4012"},
		{"host memory is not the device's", "%x: tensor<250xf32, #dm.at<host>>", "T", `
  %a = dm.copy %x : (tensor<250xf32, #dm.at<host>>) -> T
  return %a : T`, "1000"},
		{"branches hold their own values, one at a time", "%p: tensor<i1>, %x: T", "T", `
  %y = dm.if %p : (tensor<i1>) -> T {
    %a = dm.exp %x : T
    dm.yield %a : T
  } else {
    %a = dm.concatenate %x, %x, dim = 0 : (T, T) -> U
    %b = dm.slice %a, start_indices = [0], limit_indices = [250] : (U) -> T
    dm.yield %b : T
  }
  return %y : T`, "5001"},
		{"a value used last inside a branch is kept for all of it, not longer", "%p: tensor<i1>, %x: T", "T", `
  %v = dm.exp %x : T
  %y = dm.if %p : (tensor<i1>) -> T {
    %a = dm.exp %v : T
    %b = dm.exp %a : T
    dm.yield %b : T
  } else {
    dm.yield %x : T
  }
  %z = dm.concatenate %y, %y, dim = 0 : (T, T) -> U
  %s = dm.slice %z, start_indices = [0], limit_indices = [250] : (U) -> T
  return %s : T`, "5001"},
		{"which of two is larger depends on the sizes", "%x: S, %y: R", "S, R", `
  %a = dm.exp %x : S
  %b = dm.exp %a : S
  %c = dm.exp %y : R
  %d = dm.exp %c : R
  return %b, %d : S, R`, "4*m + 12*n | 12*m + 8*n"},
	}
	types := strings.NewReplacer(
		"T", "tensor<250xf32>", "U", "tensor<500xf32>",
		"S", "tensor<?xf32, #dm.at<dims = [n]>>", "R", "tensor<?xf32, #dm.at<dims = [m]>>",
	)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := c.body
			if body == "" {
				body = "\n  return"
			}
			text := types.Replace("func.func @f(" + c.args + ") -> (" + c.results + ") {" + body + "\n}\n")
			p := program.Load(source.New("in.dmir", text), program.Options{})
			for _, d := range p.Diags {
				t.Errorf("%s: %s", d.Code, d.Message)
			}
			var got []string
			for _, d := range p.Funcs[0].Peaks() {
				got = append(got, d.String())
			}
			if s := strings.Join(got, " | "); s != c.want {
				t.Errorf("peak %s, want %s", s, c.want)
			}
		})
	}
}

// For a function with very many symbolic sizes the search for a peak formula ends
// early, without a formula.
func TestTooManySizes(t *testing.T) {
	var text strings.Builder
	const n = 3000
	text.WriteString("func.func @f() {\n")
	for i := range n {
		fmt.Fprintf(&text, "  %%%d = dm.iota dim = 0 : tensor<?xf32, #dm.at<dims = [s%d]>>\n", i, i)
	}
	for i := range n {
		fmt.Fprintf(&text, "  %%e%d = dm.exp %%%d : tensor<?xf32, #dm.at<dims = [s%d]>>\n", i, i, i)
	}
	text.WriteString("  return\n}\n")
	p := program.Load(source.New("in.dmir", text.String()), program.Options{})
	for _, d := range p.Diags {
		t.Fatalf("%s: %s", d.Code, d.Message)
	}
	if f := p.Funcs[0]; f.Peaks() != nil || len(f.Unbound()) != n {
		t.Errorf("%d candidates for the peak, %d symbols", len(f.Peaks()), len(f.Unbound()))
	}
}
