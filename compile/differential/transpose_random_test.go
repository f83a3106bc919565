package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// transposes writes programs that permute dimensions among other moves and element-wise
// ops, with sizes around those of vectors and tiles.
type transposes struct {
	scatters
	results, types []string
}

// shape draws one of at most so many elements.
func (w *transposes) shape(most int) []int {
	for {
		shape := make([]int, pick(&w.scatters, 2, 2, 3, 3, 4, 5))
		for d := range shape {
			shape[d] = pick(&w.scatters, 1, 2, 3, 5, 8, 16, 24, 31, 32, 33, 48, 64, 65, 96, 128, 130, 200)
		}
		if n := elements(shape); n <= most && n > most/20 {
			return shape
		}
	}
}

// moved is x of that shape after a move that keeps its rank.
func (w *transposes) moved(x string, shape []int) (string, []int) {
	to, n, d := slices.Clone(shape), w.name(), w.IntN(len(shape))
	switch w.IntN(7) {
	case 0:
		zeros := make([]int, len(shape))
		if to[d] == 1 {
			return x, shape
		}
		from := slices.Clone(zeros)
		from[d] = 1
		to[d]--
		w.line("%s = dm.slice %s, start_indices = %s, limit_indices = %s : (%s) -> %s", n, x, list(from), list(shape), shaped(shape, w.elem), shaped(to, w.elem))
	case 1:
		w.line("%s = dm.reverse %s, dims = [%d] : %s", n, x, d, shaped(shape, w.elem))
	case 2:
		to[d] = pick(&w.scatters, 1, 16, 40, 64)
		if elements(to) > 40000 {
			return x, shape
		}
		w.line("%s_at = dm.rng uniform, seed = 3, low = 0, high = %d : tensor<%dxi32>", n, shape[d], to[d])
		w.line("%[1]s = dm.gather %[2]s, %[1]s_at, dim = %[3]d : (%[4]s, tensor<%[5]dxi32>) -> %[6]s", n, x, d, shaped(shape, w.elem), to[d], shaped(to, w.elem))
	case 3:
		zero := "0"
		if w.elem == "i1" {
			zero = "false"
		} else if strings.Contains(w.elem, "f") {
			zero = "0.0"
		}
		low, high := make([]int, len(shape)), make([]int, len(shape))
		low[d], high[d] = w.IntN(9), w.IntN(9)
		to[d] += low[d] + high[d]
		w.line("%s_of = dm.constant dense<%s> : tensor<%s>", n, zero, w.elem)
		w.line("%[1]s = dm.pad %[2]s, %[1]s_of, low = %[3]s, high = %[4]s : (%[5]s, tensor<%[6]s>) -> %[7]s", n, x, list(low), list(high), shaped(shape, w.elem), w.elem, shaped(to, w.elem))
	default:
		return x, shape
	}
	return n, to
}

// joined is x followed by another operand, permuted as well, along some dimension.
func (w *transposes) joined(x string, shape []int) (string, []int) {
	d, order, n := w.IntN(len(shape)), w.Perm(len(shape)), w.name()
	part, to, from := slices.Clone(shape), slices.Clone(shape), make([]int, len(shape))
	part[d] = pick(&w.scatters, 1, 8, 16, 33)
	to[d] += part[d]
	for k, at := range order {
		from[at] = part[k]
	}
	y := w.argument(shaped(from, w.elem), "")
	w.line("%s_part = dm.transpose %s, dims = %s : (%s) -> %s", n, y, list(order), shaped(from, w.elem), shaped(part, w.elem))
	w.line("%[1]s = dm.concatenate %[2]s, %[1]s_part, dim = %[3]d : (%[4]s, %[5]s) -> %[6]s", n, x, d, shaped(shape, w.elem), shaped(part, w.elem), shaped(to, w.elem))
	return n, to
}

// permuted is x with its dimensions in another order, the last one before others.
func (w *transposes) permuted(x string, shape []int) (string, []int) {
	order, n := w.Perm(len(shape)), w.name()
	for order[len(order)-1] == len(order)-1 {
		order = w.Perm(len(shape))
	}
	to := make([]int, len(shape))
	for d, from := range order {
		to[d] = shape[from]
	}
	w.line("%s = dm.transpose %s, dims = %s : (%s) -> %s", n, x, list(order), shaped(shape, w.elem), shaped(to, w.elem))
	return n, to
}

func (w *transposes) result(x string, shape []int, elem string) {
	w.results, w.types = append(w.results, x), append(w.types, shaped(shape, elem))
}

// some writes an operand that is permuted, and what is computed of it.
func (w *transposes) some() {
	w.elem = pick(&w.scatters, "f32", "f16", "bf16", "f64", "i8", "ui16", "i32", "i64", "i1")
	own := w.shape(20000)
	x := w.argument(shaped(own, w.elem), "")
	y, shape := w.moved(x, own)
	y, shape = w.permuted(y, shape)
	switch w.IntN(6) {
	case 0, 1:
		y, shape = w.moved(y, shape)
	case 2:
		y, shape = w.joined(y, shape)
	}
	if w.elem != "i1" && w.IntN(2) == 0 {
		other := slices.Clone(shape)
		z, order := w.name(), w.Perm(len(shape))
		if w.IntN(2) == 0 { // in its own order
			z = w.argument(shaped(shape, w.elem), "")
		} else {
			for d, to := range order {
				other[to] = shape[d]
			}
			from := w.argument(shaped(other, w.elem), "")
			w.line("%s = dm.transpose %s, dims = %s : (%s) -> %s", z, from, list(order), shaped(other, w.elem), shaped(shape, w.elem))
		}
		n := w.name()
		w.line("%s = dm.max %s, %s : %s", n, y, z, shaped(shape, w.elem))
		y = n
	}
	if w.IntN(3) == 0 {
		n := w.name()
		w.line("%s = dm.reshape %s : (%s) -> %s", n, y, shaped(shape, w.elem), shaped([]int{elements(shape)}, w.elem))
		y, shape = n, []int{elements(shape)}
	}
	w.result(y, shape, w.elem)
	if to := pick(&w.scatters, "", "f32", "f64", "i64", "ui8"); to != "" && to != w.elem && w.elem != "i1" && to[0] != 'u' {
		n := w.name()
		w.line("%s = dm.convert %s : (%s) -> %s", n, y, shaped(shape, w.elem), shaped(shape, to))
		w.result(n, shape, to)
	}
	if w.elem != "i1" && w.IntN(4) == 0 {
		n := w.name()
		w.line("%s = dm.max %s, %s : %s", n, x, x, shaped(own, w.elem))
		w.result(n, own, w.elem)
	}
}

func (w *transposes) program() string {
	for range 3 {
		w.some()
	}
	types := strings.Join(w.types, ", ")
	return fmt.Sprintf("func.func @main(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(w.args, ", "), types, &w.b, strings.Join(w.results, ", "), types)
}

// Random transpositions, fused with what surrounds them, agree with the reference.
func TestRandomTransposes(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	var cases []Case
	for seed := range *transposed {
		w := &transposes{scatters: scatters{Rand: rand.New(rand.NewPCG(*first+seed, 31))}}
		cases = append(cases, Case{Name: fmt.Sprintf("transposes, seed %d", *first+seed), Text: w.program(), Seed: 7})
	}
	for _, f := range found(t, cases) {
		report(t, f)
	}
}
