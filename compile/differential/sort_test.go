package differential

import (
	"fmt"
	"strings"
	"testing"

	"dmir/testkit/need"
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

// Lines of lengths around those at which sorts take another form, of elements with zeros of both signs, NaN, infinities and many equal
// ones; those that are equal all, that are in order, and in the opposite one.
func TestSortedLengths(t *testing.T) {
	agree(t, []Case{
		{Name: "short lines", Seed: 7, Text: lengths(
			lengthCase{"f32", "3x1", 1, ""}, lengthCase{"f32", "300x2", 1, ""}, lengthCase{"f32", "9x31", 1, ""}, lengthCase{"f64", "5x32", 1, ""}, lengthCase{"f32", "5x33x3", 1, ""}, lengthCase{"bf16", "3x128x9", 1, ""},
			lengthCase{"f16", "3x129", 1, ""}, lengthCase{"f32", "2x257", 1, ""}, lengthCase{"f64", "2x600x2", 1, ""}, lengthCase{"i64", "1023", 0, ""}, lengthCase{"i8", "1025", 0, ""}, lengthCase{"f32", "2x2049", 1, ""}, lengthCase{"f64", "4096", 0, ""}, lengthCase{"f32", "8192", 0, ""},
		)},
		{Name: "long lines", Seed: 7, Text: lengths(
			lengthCase{"f32", "8193", 0, ""}, lengthCase{"f64", "4097", 0, ""}, lengthCase{"i16", "2x9000x2", 1, ""}, lengthCase{"ui8", "140000", 0, ""}, lengthCase{"f16", "100000", 0, ", k = 40"}, lengthCase{"f32", "2x40000", 1, ", k = 1"},
		)},
		{Name: "lines of several tiles", Seed: 7, SMs: 1, Text: lengths(
			lengthCase{"f16", "2x20000", 1, ""}, lengthCase{"f32", "60001", 0, ", k = 1024"}, lengthCase{"f32", "3x20000x2", 1, ", k = 17"}, lengthCase{"f32", "20000", 0, ", k = 3000"},
		)},
		{Name: "numbers in order", Seed: 7, SMs: 11, Text: `func.func @f() -> (tensor<20000xi32>, tensor<20000xi32>, tensor<20000xi32>, tensor<20000xi32>, tensor<20000xi32>, tensor<100xi32>, tensor<100xi32>, tensor<100xi32>, tensor<700xi32>, tensor<700xi32>) {
  %u = dm.iota : tensor<20000xi32>
  %d = dm.neg %u : tensor<20000xi32>
  %e = dm.compare lt %u, %u : (tensor<20000xi32>, tensor<20000xi32>) -> tensor<20000xi1>
  %z = dm.convert %e : (tensor<20000xi1>) -> tensor<20000xi32>
  %a, %ai = dm.sort %u : (tensor<20000xi32>) -> (tensor<20000xi32>, tensor<20000xi32>)
  %b, %bi = dm.sort %d : (tensor<20000xi32>) -> (tensor<20000xi32>, tensor<20000xi32>)
  %c, %ci = dm.sort %z, descending = true : (tensor<20000xi32>) -> (tensor<20000xi32>, tensor<20000xi32>)
  %g, %gi = dm.top_k %u, k = 100 : (tensor<20000xi32>) -> (tensor<100xi32>, tensor<100xi32>)
  %h, %hi = dm.top_k %z, k = 100 : (tensor<20000xi32>) -> (tensor<100xi32>, tensor<100xi32>)
  %l = dm.slice %d, start_indices = [0], limit_indices = [700] : (tensor<20000xi32>) -> tensor<700xi32>
  %k, %ki = dm.sort %l : (tensor<700xi32>) -> (tensor<700xi32>, tensor<700xi32>)
  return %a, %b, %bi, %c, %ci, %g, %hi, %gi, %k, %ki : tensor<20000xi32>, tensor<20000xi32>, tensor<20000xi32>, tensor<20000xi32>, tensor<20000xi32>, tensor<100xi32>, tensor<100xi32>, tensor<100xi32>, tensor<700xi32>, tensor<700xi32>
}
`},
	})
}

// What sorts read and write grows with the lines as the lines do, of every form: no element is compared with all others of its line.
func TestSortReads(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	grown := []struct {
		name string
		few  lengthCase // and lines four times as long
		n    int64
		each int64 // bytes of an element at most
	}{
		{"teams", lengthCase{"i32", "40x32", 1, ""}, 32, 4 + 12},
		{"blocks", lengthCase{"i32", "3x2048", 1, ""}, 2048, 4 + 12},
		{"digits", lengthCase{"i16", "9000", 0, ""}, 9000, 2*(2+2+6) + 4 + 13},
		{"selections", lengthCase{"i32", "10000", 0, ", k = 16"}, 10000, 4 + 1},
	}
	var cases []Case
	for _, g := range grown {
		more := g.few
		more.sizes = strings.Replace(more.sizes, fmt.Sprint(g.n), fmt.Sprint(4*g.n), 1)
		cases = append(cases, Case{Name: g.name, Text: lengths(g.few), Seed: 7}, Case{Name: g.name, Text: lengths(more), Seed: 7})
	}
	results := emulated(t, cases)
	for i, g := range grown {
		var requested, longest [2]int64
		for j := range requested {
			for _, s := range results[2*i+j].Steps {
				requested[j], longest[j] = requested[j]+s.Requested, max(longest[j], s.Longest)
			}
		}
		lines := int64(1)
		if !strings.HasPrefix(g.few.sizes, fmt.Sprint(g.n)) {
			fmt.Sscanf(g.few.sizes, "%dx", &lines)
		}
		t.Logf("%s: %d bytes of lines of %d, %d of longer ones; %d and %d accesses of a thread", g.name, requested[0], g.n, requested[1], longest[0], longest[1])
		if requested[1] > 9*requested[0]/2 {
			t.Errorf("%s: %d bytes are requested, of lines of a fourth %d", g.name, requested[1], requested[0])
		}
		if most := g.each * lines * 4 * g.n; requested[1] > most {
			t.Errorf("%s: %d bytes are requested, %d are enough", g.name, requested[1], most)
		}
		if longest[1] > 5*longest[0] {
			t.Errorf("%s: a thread makes %d accesses, of lines of a fourth %d", g.name, longest[1], longest[0])
		}
	}
}

// lengthCase is the elements and sizes of a tensor that is sorted along dim, or of which the first are taken.
type lengthCase struct {
	elem, sizes string
	dim         int
	k           string
}

// lengths is a program of them, in turn rising and falling.
func lengths(cases ...lengthCase) string {
	var args, body, values, kinds []string
	for i, c := range cases {
		x, sizes := of(c.sizes, c.elem), strings.Split(c.sizes, "x")
		y := fmt.Sprintf("%%x%d", i)
		args = append(args, y+": "+x)
		if strings.HasPrefix(c.elem, "f") || c.elem == "bf16" {
			y = fmt.Sprintf("%%y%d", i)
			args = append(args, fmt.Sprintf("%%z%d: %s", i, x))
			body = append(body, fmt.Sprintf("%%r%d = dm.round %%x%[1]d : %[2]s", i, x), fmt.Sprintf("%%q%d = dm.round %%z%[1]d : %[2]s", i, x), fmt.Sprintf("%s = dm.div %%r%d, %%q%[2]d : %[3]s", y, i, x))
		}
		name, order := "sort", "descending"
		if c.k != "" {
			name, order, sizes[c.dim] = "top_k", "largest", strings.TrimPrefix(c.k, ", k = ")
		}
		sorted, index := of(strings.Join(sizes, "x"), c.elem), of(strings.Join(sizes, "x"), []string{"i64", "i32"}[i/2%2])
		body = append(body, fmt.Sprintf("%%s%d, %%i%[1]d = dm.%s %s%s, dim = %d, %s = %t : (%s) -> (%s, %s)", i, name, y, c.k, c.dim, order, i%2 == 1, x, sorted, index))
		if i%3 != 2 { // else places alone
			values, kinds = append(values, fmt.Sprintf("%%s%d", i)), append(kinds, sorted)
		}
		if i%4 != 3 || i%3 == 2 { // else elements alone
			values, kinds = append(values, fmt.Sprintf("%%i%d", i)), append(kinds, index)
		}
	}
	return fmt.Sprintf("func.func @f(%s) -> (%s) {\n  %s\n  return %s : %s\n}\n", strings.Join(args, ", "), strings.Join(kinds, ", "), strings.Join(body, "\n  "), strings.Join(values, ", "), strings.Join(kinds, ", "))
}
