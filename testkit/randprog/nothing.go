package randprog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dmir/dialect/op"
)

var (
	shapes = regexp.MustCompile(`tensor<(\d+x)+`)
	digits = regexp.MustCompile(`\b\d+\b`)
	lists  = regexp.MustCompile(`(\[[\d, ]*\]|= \d+)`)
	stored = regexp.MustCompile(`([<x]0x[^#>]*#dm\.\w+<nnz = )\d+`) // in a sparse tensor without elements
)

// emptied are the forms of an example with one size, and all equal ones, replaced by 0: in
// the types alone, and in lists and other attributes as well.
func emptied(text string) (out []string) {
	var sizes []string
	for _, s := range shapes.FindAllString(text, -1) {
		for _, n := range digits.FindAllString(strings.ReplaceAll(s, "x", " "), -1) {
			if !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
	}
	for _, n := range sizes {
		in := func(s string) string {
			return regexp.MustCompile(`([<x])`+n+`x`).ReplaceAllString(regexp.MustCompile(`([<x])`+n+`x`).ReplaceAllString(s, "${1}0x"), "${1}0x")
		}
		types := shapes.ReplaceAllStringFunc(text, in)
		attrs := lists.ReplaceAllStringFunc(types, func(s string) string { return regexp.MustCompile(`\b`+n+`\b`).ReplaceAllString(s, "0") })
		for _, t := range []string{types, attrs} {
			t = stored.ReplaceAllString(t, "${1}0")
			t = regexp.MustCompile(`dense<\[.*\]>( : tensor<[^>]*\b0x)`).ReplaceAllString(t, "dense<[]>$1")
			if t != text && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// cutAt are the types and clauses of ops whose examples have no such form.
var cutAt = map[string][]string{
	"reshape": {"", "0x6", "0x2x3"},
	"slice":   {"start_indices = [1, 0], limit_indices = [1, 6], strides = [1, 2]", "4x6", "0x3"},
	"pad":     {"low = [2, 0], high = [1, 1], interior = [3, 1]", "0x3", "3x6"},
}

// lookedUp are the arguments that a form cannot have, since an element of them is looked up, or the scale is 1/√0.
var lookedUp = map[string]string{
	"cross_entropy": "%logits: tensor<3x0x", "argmax": "%x: tensor<2x0x", "gather": "%x: tensor<0x", "embedding": "%table: tensor<0x",
	"attention_grad": "x3x0x",
}

// WithoutElements are forms of the example of d with a dimension of size 0; some are not
// valid.
func WithoutElements(d *op.Def) []string {
	out := slices.DeleteFunc(emptied(d.Example), func(text string) bool {
		argument := lookedUp[d.Name]
		return argument != "" && strings.Contains(text, argument)
	})
	c := cutAt[d.Name]
	if c == nil {
		return out
	}
	x, y := "tensor<"+c[1]+"xf32>", "tensor<"+c[2]+"xf32>"
	line, in := "dm."+d.Name+" %x", x
	if len(d.Operands) > 1 {
		line, in = line+", %zero", x+", tensor<f32>"
	}
	if c[0] != "" {
		line += ", " + c[0]
	}
	return append(out, fmt.Sprintf("func.func @example(%%x: %s) -> %s {\n  %%zero = dm.constant dense<0.5> : tensor<f32>\n  %%y = %s : (%s) -> %s\n  return %%y : %s\n}\n", x, y, line, in, y, y))
}
