package program_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
)

// What is wrong in one function keeps those from running that lead to it.
func TestErrorsOf(t *testing.T) {
	const bad = "%z = dm.exp %nowhere : tensor<2xf32>"
	function := func(name string, lines ...string) string {
		return "func.func @" + name + "(%x: tensor<2xf32>) -> tensor<2xf32> {\n  " + strings.Join(lines, "\n  ") + "\n  return %x : tensor<2xf32>\n}\n"
	}
	call := func(name string) string {
		return "%" + name + " = func.call @" + name + "(%x) : (tensor<2xf32>) -> tensor<2xf32>"
	}
	for name, c := range map[string]struct {
		text string
		want string // how many errors keep each function from running
	}{
		"own":            {function("f", bad) + function("g"), "f 1, g 0"},
		"of a callee":    {function("f", call("g")) + function("g", bad), "f 1, g 1"},
		"far away":       {function("f", call("g")) + function("g", call("h")) + function("h", bad) + function("i", call("i")), "f 1, g 1, h 1, i 0"},
		"in a circle":    {function("f", call("g")) + function("g", call("f"), bad), "f 1, g 1"},
		"half an op":     {function("f", "%z = dm.exp %x :") + function("g"), "f 1, g 0"},
		"in no function": {function("f") + "#a = <<\n" + function("g"), "f 1, g 1"},
		"unclosed":       {function("f") + "func.func @g(%x: tensor<2xf32>) {\n  return\n", "f 0, g 1"},
		"twice":          {function("f") + function("f") + function("g"), "f 1, g 1"},
		"other module":   {"module {\n" + function("f", bad) + "}\n// -----\nmodule {\n" + function("g", bad, bad) + "}\n", "f 1, g 3"},
		"warnings":       {function("f", "%z = dm.exp %x : tensor<2xf32>"), "f 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := program.Load(source.New("f.dmir", c.text), program.Options{})
			var got []string
			for _, m := range p.Modules {
				for _, f := range m.Funcs {
					got = append(got, fmt.Sprintf("%s %d", f.Name, len(p.ErrorsOf(m, f))))
				}
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
				for _, d := range p.Diags {
					t.Logf("%+v", d)
				}
			}
		})
	}
}
