package differential

import (
	"fmt"
	"strings"
	"testing"
)

// Orders in every element type, with zeros of both signs, NaN, infinities, equal elements and digits that all have alike: of short
// lines, and of lines that a processor sorts by digits.
func TestOrders(t *testing.T) {
	agree(t, []Case{
		{Name: "emulator", Text: orders(15), Seed: 7},
		{Name: "processor", Text: orders(15), Seed: 7, Device: "cpu"},
		{Name: "processor, long lines", Text: orders(150), Seed: 7, Device: "cpu"},
	})
}

// orders is a program that sorts lines of 4n elements, rising and falling, and takes the n/2 least and greatest.
func orders(n int) string {
	shape := func(n int, elem string) string { return of(fmt.Sprintf("2x%dx2", n), elem) }
	var body, args, results, values []string
	for i, e := range []string{"f64", "f32", "f16", "i64", "i32", "i8", "ui64", "ui16", "bf16"} {
		args = append(args, "%x@: !x")
		parts := "%x@, %x@, %x@, %x@"
		if strings.Contains(e, "f") {
			parts = "%r@, %m@, %q@, %n@"
			body = append(body, "%r@ = dm.round %x@ : !x", "%m@ = dm.neg %r@ : !x", "%q@ = dm.div %x@, %r@ : !x", "%n@ = dm.div %r@, %r@ : !x")
		}
		body = append(body, "%y@ = dm.concatenate "+parts+", dim = 1 : (!x, !x, !x, !x) -> !y")
		for j, falling := range []bool{false, true} {
			body = append(body, fmt.Sprintf("%%s%d@, %%i%[1]d@ = dm.sort %%y@, dim = 1, descending = %v : (!y) -> (!y, tensor<2x%dx2xi32>)", j, falling, 4*n),
				fmt.Sprintf("%%k%d@, %%p%[1]d@ = dm.top_k %%y@, k = %[3]d, dim = 1, largest = %[2]v : (!y) -> (!k, tensor<2x%[3]dx2xi64>)", j, falling, n/2))
			values = append(values, fmt.Sprintf("%%s%d@, %%i%[1]d@, %%k%[1]d@, %%p%[1]d@", j))
			results = append(results, fmt.Sprintf("!y, tensor<2x%dx2xi32>, !k, tensor<2x%dx2xi64>", 4*n, n/2))
		}
		names := strings.NewReplacer("@", fmt.Sprintf("_%d", i), "!x", shape(n, e), "!y", shape(4*n, e), "!k", shape(n/2, e))
		for _, all := range [][]string{args, body, values, results} {
			for k := range all {
				all[k] = names.Replace(all[k])
			}
		}
	}
	types := strings.Join(results, ", ")
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n  %s\n  return %s : %s\n}\n", strings.Join(args, ", "), types, strings.Join(body, "\n  "), strings.Join(values, ", "), types)
}
