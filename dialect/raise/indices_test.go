package raise_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/dialect/op"
	"dmir/dialect/raise"
)

// drawn is a program on integers in the forms in which printers check indices, most of
// whose checks the ranges decide.
type drawn struct {
	strings.Builder
	r     *rand.Rand
	elem  string
	ints  []string // values of type 6xelem
	bools []string
	n     int
}

func (d *drawn) add(list *[]string, format string, args ...any) {
	v := fmt.Sprintf("%%v%d", d.n)
	d.n++
	fmt.Fprintf(&d.Builder, "  %s = dm.%s\n", v, fmt.Sprintf(format, args...))
	*list = append(*list, v)
}

func (d *drawn) int() string  { return d.ints[d.r.IntN(len(d.ints))] }
func (d *drawn) bool() string { return d.bools[d.r.IntN(len(d.bools))] }

func (d *drawn) number() int {
	n := []int{0, 1, 2, 5, 6, 7, 12, 100, 127, -1, -6, -128}[d.r.IntN(12)]
	if strings.HasPrefix(d.elem, "u") && n < 0 {
		n += 129
	}
	return n
}

func (d *drawn) step() {
	t, b := "tensor<6x"+d.elem+">", "tensor<6xi1>"
	switch d.r.IntN(13) {
	case 0:
		d.add(&d.ints, "constant dense<%d> : %s", d.number(), t)
	case 1:
		d.add(&d.ints, "iota start = %d.0, step = %d.0 : %s", d.r.IntN(3), d.r.IntN(3), t)
	case 2, 3:
		d.add(&d.bools, "compare %s %s, %s : (%s, %s) -> %s", []string{"lt", "le", "gt", "ge", "eq", "ne"}[d.r.IntN(6)], d.int(), d.int(), t, t, b)
	case 4:
		d.add(&d.ints, "select %s, %s, %s : (%s, %s, %s) -> %s", d.bool(), d.int(), d.int(), b, t, t, t)
	case 5:
		d.add(&d.bools, "%s %s, %s : %s", []string{"and", "or"}[d.r.IntN(2)], d.bool(), d.bool(), b)
	case 6:
		d.add(&d.ints, "clamp %s, %s, %s : (%s, %s, %s) -> %s", d.int(), d.int(), d.int(), t, t, t, t)
	case 7, 8:
		d.add(&d.ints, "%s %s, %s : %s", []string{"add", "sub", "mul", "min", "max"}[d.r.IntN(5)], d.int(), d.int(), t)
	case 9:
		var two []string
		d.add(&two, "concatenate %s, %s, dim = 0 : (%s, %s) -> tensor<12x%s>", d.int(), d.int(), t, t, d.elem)
		from := []int{0, 3, 6}[d.r.IntN(3)]
		d.add(&d.ints, "slice %s, start_indices = [%d], limit_indices = [%d] : (tensor<12x%s>) -> %s", two[0], from, from+6, d.elem, t)
	case 10:
		if strings.HasSuffix(d.elem, "8") {
			return
		}
		d.add(&d.ints, "gather %%x, %s : (%s, %s) -> %s", d.int(), t, t, t)
	case 12: // two numbers, which may be equal
		var two []string
		for range 2 {
			d.add(&two, "constant dense<%d> : %s", d.r.IntN(2), t)
		}
		d.add(&d.bools, "compare %s %s, %s : (%s, %s) -> %s", []string{"eq", "ne", "le", "gt"}[d.r.IntN(4)], two[0], two[1], t, t, b)
	case 11: // element i·6 + j of a matrix
		if strings.HasSuffix(d.elem, "8") {
			return
		}
		var parts []string
		d.add(&parts, "iota : %s", t)
		d.add(&parts, "constant dense<%d> : tensor<%s>", 5+d.r.IntN(3), d.elem)
		d.add(&parts, "mul %s, %s : (%s, tensor<%s>) -> %s", parts[0], parts[1], t, d.elem, t)
		d.add(&parts, "add %s, %s : %s", d.int(), parts[2], t)
		d.add(&parts, "reshape %%m : (tensor<6x6x%s>) -> tensor<36x%s>", d.elem, d.elem)
		d.add(&d.ints, "gather %s, %s : (tensor<36x%s>, %s) -> %s", parts[4], parts[3], d.elem, t, t)
	}
}

// What ranges decide computes the same, wrapping included.
func TestIndices(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	ran, simpler := 0, 0
	for range 3000 {
		d := &drawn{r: r, elem: []string{"i32", "i64", "i8", "ui8", "ui32"}[r.IntN(5)], ints: []string{"%x", "%y"}, bools: []string{"%b"}}
		for range 4 + r.IntN(12) {
			d.step()
		}
		v := "tensor<6x" + d.elem + ">"
		results := []string{d.ints[len(d.ints)-1], d.int(), d.bools[len(d.bools)-1]}
		text := fmt.Sprintf("func.func @f(%%x: %[1]s, %%y: %[1]s, %%b: tensor<6xi1>, %%m: tensor<6x6x%[2]s>) -> (%[1]s, %[1]s, tensor<6xi1>) {\n%[3]s  return %[4]s : %[1]s, %[1]s, tensor<6xi1>\n}\n",
			v, d.elem, d.String(), strings.Join(results, ", "))
		before, after := load(text), load(text)
		if before == nil {
			t.Fatalf("not valid:\n%s", text)
		}
		raise.Module(after)
		op.RemoveDead(before.Funcs[0].Body)
		if len(after.Funcs[0].Body.Ops) < len(before.Funcs[0].Body.Ops) {
			simpler++
		}
		for _, edges := range [][]float64{nil, edgeValues} {
			want, got := run(t, before, edges), run(t, after, edges)
			if want == nil || len(got) != len(want) {
				t.Fatalf("%d results became %d:\n%s", len(want), len(got), text)
			}
			ran++
			for i := range want {
				for j := range want[i].Len() {
					if x, y := want[i].Float(j), got[i].Float(j); x != y {
						t.Fatalf("result %d, element %d: %g became %g\n%s", i, j, x, y, text)
					}
				}
			}
		}
	}
	t.Logf("%d runs, %d programs became shorter", ran, simpler)
	if simpler < 300 {
		t.Errorf("only %d programs became shorter", simpler)
	}
}
