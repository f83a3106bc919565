package randprog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// SparsePairs is how many results a program of Sparse has of each kind.
const SparsePairs = 3

// Sparse is a program on a random sparse tensor of 1 to 3 dimensions, in random formats,
// none, few, half or all of whose elements are stored. Its first SparsePairs results are computed with it, and
// the others are the same on dense tensors.
func Sparse(seed uint64) string {
	g := &sparse{rng: rand.New(rand.NewPCG(seed, 41))}
	rank := 1 + g.rng.IntN(3)
	g.shape = []int{4, 6, 8}[:rank]
	g.rng.Shuffle(rank, func(i, j int) { g.shape[i], g.shape[j] = g.shape[j], g.shape[i] })
	if rank == 2 && g.rng.IntN(2) == 0 {
		g.shape[0] *= 1 + g.rng.IntN(4)
	}
	dense := g.of(g.shape, "")
	for i, least := range [2]float64{[]float64{9, 2, 1, 0, -9}[g.rng.IntN(5)], []float64{9, 1.5, 0.5, 0}[g.rng.IntN(4)]} {
		g.line("%%c%d = dm.constant dense<%.1f> : tensor<f64>", i, least)
		g.line("%%m%d = dm.compare ge %%x%[1]d, %%c%[1]d : (%s, tensor<f64>) -> %s", i, dense, strings.Replace(dense, "f64", "i1", 1))
		g.line("%%f%d = dm.convert %%m%[1]d : (%s) -> %s", i, strings.Replace(dense, "f64", "i1", 1), dense)
		g.line("%%d%d = dm.mul %%f%[1]d, %%x%[1]d : %s", i, dense)
	}
	format := g.format()
	g.line("%%s = dm.convert_format %%d0 : (%s) -> %s", dense, g.of(g.shape, format))
	v := pair{"%s", "%d0", g.shape, format}
	for range g.rng.IntN(5) {
		v = g.step(v)
	}
	var results, ts []string
	var twins []string
	for range SparsePairs {
		y := g.end(v)
		results, twins, ts = append(results, y.sparse), append(twins, y.dense), append(ts, g.of(y.shape, ""))
	}
	all := strings.Join(append(ts, ts...), ", ")
	return fmt.Sprintf("func.func @f(%%x0: %s, %%x1: %[1]s) -> (%s) {\n%s  return %s : %[2]s\n}\n", dense, all, g.b.String(), strings.Join(append(results, twins...), ", "))
}

// pair is a value of the same shape on both sides; format is that of sparse.
type pair struct {
	sparse, dense string
	shape         []int
	format        string
}

type sparse struct {
	rng   *rand.Rand
	b     strings.Builder
	n     int
	shape []int
}

func (g *sparse) line(format string, args ...any) { fmt.Fprintf(&g.b, "  "+format+"\n", args...) }

func (g *sparse) name() string {
	g.n++
	return fmt.Sprintf("%%v%d", g.n)
}

// of is the type of a tensor, with room for all elements.
func (g *sparse) of(shape []int, format string) string {
	s, n := "tensor<", 1
	for _, d := range shape {
		s += fmt.Sprintf("%dx", d)
		n *= d
	}
	if format == "" {
		return s + "f64>"
	}
	return s + "f64, " + strings.ReplaceAll(format, "E", fmt.Sprint(n+3)) + ">"
}

// format is a random one of the shape's rank: the dimensions in a random order, of which the
// levels from some on may be compressed, in coordinates or in blocks.
func (g *sparse) format() string {
	rank := len(g.shape)
	order := g.rng.Perm(rank)
	dims, levels := make([]string, rank), make([]string, rank)
	for d := range dims {
		dims[d] = fmt.Sprintf("d%d", d)
	}
	var inner []string
	first := g.rng.IntN(rank + 1) // that is compressed
	if first == rank && g.rng.IntN(4) > 0 {
		first = rank - 1
	}
	coordinates, compressed := g.rng.IntN(4) == 0, 0
	for i, d := range order {
		switch {
		case i < first:
			levels[i] = dims[d] + " : dense"
		case coordinates && i == first && i < rank-1:
			levels[i] = dims[d] + " : compressed(nonunique)"
			compressed++
		case coordinates && i > first && i < rank-1:
			levels[i] = dims[d] + " : singleton(nonunique)"
		case coordinates && i > first:
			levels[i] = dims[d] + " : singleton"
		default:
			levels[i] = dims[d] + []string{" : compressed", " : compressed", " : compressed", " : loose_compressed"}[g.rng.IntN(4)]
			compressed++
		}
	}
	if !coordinates && g.rng.IntN(4) == 0 { // blocks, with all of their elements or some
		within := "dense"
		if first < rank && g.rng.IntN(3) == 0 {
			within = "compressed"
			compressed += rank
		}
		for i, d := range order {
			kind := levels[i][strings.IndexByte(levels[i], ':'):]
			levels[i] = dims[d] + " floordiv 2 " + kind
			inner = append(inner, dims[d]+" mod 2 : "+within)
		}
	}
	s := "#dm.sparse<map = (" + strings.Join(dims, ", ") + ") -> (" + strings.Join(append(levels, inner...), ", ") + ")"
	if compressed > 0 {
		s += ", nnz = E"
	}
	return s + []string{"", ", posWidth = 64", ", crdWidth = 16", ", posWidth = 64, crdWidth = 8"}[g.rng.IntN(4)] + ">"
}

// step is a sparse value of v.
func (g *sparse) step(v pair) pair {
	t, dense := g.of(v.shape, v.format), g.of(v.shape, "")
	w := pair{g.name(), g.name(), v.shape, v.format}
	both := func(op string) pair {
		g.line("%s = dm.%s %s : %s", w.sparse, op, v.sparse, t)
		g.line("%s = dm.%s %s : %s", w.dense, op, v.dense, dense)
		return w
	}
	two := func(op string) pair {
		if strings.Contains(v.format, "structured") { // another pattern may not fit
			return both("neg")
		}
		other := g.name()
		g.line("%s = dm.convert_format %s : (%s) -> %s", other, g.other(v, false), dense, t)
		g.line("%s = dm.%s %s, %s : %s", w.sparse, op, v.sparse, other, t)
		g.line("%s = dm.%s %s, %s : %s", w.dense, op, v.dense, g.other(v, false), dense)
		return w
	}
	switch k := g.rng.IntN(14); {
	case k >= 12 && len(v.shape) > 0: // a part, and twice as much
		return g.moved(v, k == 12)
	case k >= 10:
		return g.pruned(v)
	case k < 2:
		return both([]string{"neg", "tanh", "abs", "relu", "sin"}[g.rng.IntN(5)])
	case k < 4:
		return two([]string{"add", "sub", "max", "min", "mul"}[g.rng.IntN(5)])
	case k == 4:
		x := g.other(v, true)
		g.line("%s = dm.mul %s, %s : (%s, %s) -> %s", w.sparse, v.sparse, x, t, dense, t)
		g.line("%s = dm.mul %s, %s : %s", w.dense, v.dense, x, dense)
		return w
	case k == 5 && len(v.shape) > 1:
		to := g.rng.Perm(len(v.shape))
		w.shape = make([]int, len(to))
		for i, d := range to {
			w.shape[i] = v.shape[d]
		}
		w.format = transposed(v.format, to)
		dims := strings.ReplaceAll(fmt.Sprint(to), " ", ", ")
		g.line("%s = dm.transpose %s, dims = %s : (%s) -> %s", w.sparse, v.sparse, dims, t, g.of(w.shape, w.format))
		g.line("%s = dm.transpose %s, dims = %s : (%s) -> %s", w.dense, v.dense, dims, dense, g.of(w.shape, ""))
		return w
	case k == 9: // sampled where v stores elements, which decides about v's zeros alone
		x := g.other(v, true)
		own := g.name()
		g.line("%s = dm.sample %s, %s : (%s, %s) -> %s", own, v.sparse, x, t, dense, t)
		g.line("%s = dm.mul %s, %s : %s", w.sparse, own, v.sparse, t)
		g.line("%s = dm.mul %s, %s : %s", w.dense, v.dense, x, dense)
		return w
	case k == 7 && !strings.Contains(v.format, "structured") && strings.Contains(v.format, "nnz"): // brought to one pattern
		other, x, y := g.name(), g.name(), g.name()
		g.line("%s = dm.convert_format %s : (%s) -> %s", other, g.other(v, false), dense, t)
		g.line("%s, %s, %s_of = dm.merge union %s, %s : (%s, %[6]s) -> (%[6]s, %[6]s, %[7]s)", x, y, x, v.sparse, other, t, strings.Replace(t, "f64", "i8", 1))
		g.line("%s = dm.sub %s, %s : %s", w.sparse, x, y, t)
		g.line("%s = dm.sub %s, %s : %s", w.dense, v.dense, g.other(v, false), dense)
		return w
	case k == 8 && len(v.shape) > 0:
		return g.filtered(v)
	case k == 6:
		own := g.name() // of the same pattern
		g.line("%s = dm.tanh %s : %s", own, v.sparse, t)
		g.line("%s = dm.sub %s, %s : %s", w.sparse, own, v.sparse, t)
		g.line("%sd = dm.tanh %s : %s", own, v.dense, dense)
		g.line("%s = dm.sub %sd, %s : %s", w.dense, own, v.dense, dense)
		return w
	}
	shape := g.shape
	g.shape = v.shape
	w.format = g.format()
	g.shape = shape
	g.line("%s = dm.convert_format %s : (%s) -> %s", w.sparse, v.sparse, t, g.of(w.shape, w.format))
	w.dense = v.dense
	return w
}

// moved is a part of v, or a part of it behind v, in v's format or another one.
func (g *sparse) moved(v pair, cut bool) pair {
	t, dense := g.of(v.shape, v.format), g.of(v.shape, "")
	w := pair{g.name(), g.name(), slices.Clone(v.shape), v.format}
	if strings.Contains(v.format, "nnz") && g.rng.IntN(2) == 0 {
		shape := g.shape
		g.shape = v.shape
		if f := g.format(); strings.Contains(f, "nnz") {
			w.format = f
		}
		g.shape = shape
	}
	if !strings.Contains(v.format, "nnz") {
		return v
	}
	d := g.rng.IntN(len(v.shape))
	from, to, step := g.rng.IntN(v.shape[d]/2)*2, v.shape[d], 1+g.rng.IntN(2)
	if !cut {
		w.shape[d] *= 2
		g.line("%s = dm.concatenate %s, %s, dim = %d : (%s, %s) -> %s", w.sparse, v.sparse, v.sparse, d, t, t, g.of(w.shape, w.format))
		g.line("%s = dm.concatenate %s, %s, dim = %d : (%s, %s) -> %s", w.dense, v.dense, v.dense, d, dense, dense, g.of(w.shape, ""))
		v, t, dense = w, g.of(w.shape, w.format), g.of(w.shape, "")
		w = pair{g.name(), g.name(), slices.Clone(v.shape), v.format}
		step = 2
		from, to = g.rng.IntN(2), v.shape[d]
	}
	if w.shape[d] = (to - from + step - 1) / step; w.shape[d]%2 != 0 { // blocks would not divide it
		from, step = 0, 1
		w.shape[d] = to
	}
	text := func(x, t, y, u string) {
		g.line("%s = dm.slice %s, dims = [%d], start_indices = [%d], limit_indices = [%d], strides = [%d] : (%s) -> %s", y, x, d, from, to, step, t, u)
	}
	// There is room for all elements, as many as there were.
	whole := g.of(v.shape, w.format)
	number := whole[strings.LastIndex(whole, "f64"):]
	sized := g.of(w.shape, w.format)
	text(v.sparse, t, w.sparse, sized[:strings.LastIndex(sized, "f64")]+number)
	text(v.dense, dense, w.dense, g.of(w.shape, ""))
	if sized == sized[:strings.LastIndex(sized, "f64")]+number {
		return w
	}
	own := g.name()
	g.line("%s = dm.convert_format %s : (%s) -> %s", own, w.sparse, sized[:strings.LastIndex(sized, "f64")]+number, sized)
	w.sparse = own
	return w
}

// filtered is the elements of v above a number, in coordinates.
func (g *sparse) filtered(v pair) pair {
	dims, levels := make([]string, len(v.shape)), make([]string, len(v.shape))
	vector := fmt.Sprintf("tensor<%dx", elements(v.shape)+3)
	x := g.name()
	names, ts := []string{x + "_p"}, []string{"tensor<2xi32>"}
	for d := range dims {
		dims[d], levels[d] = fmt.Sprintf("d%d", d), fmt.Sprintf("d%d : singleton", d)
		if d == 0 {
			levels[d] = "d0 : compressed"
		}
		if d < len(dims)-1 {
			levels[d] += "(nonunique)"
		}
		names, ts = append(names, fmt.Sprintf("%s_c%d", x, d)), append(ts, vector+"i32>")
	}
	w := pair{g.name(), g.name(), v.shape, "#dm.sparse<map = (" + strings.Join(dims, ", ") + ") -> (" + strings.Join(levels, ", ") + "), nnz = E>"}
	t, dense := g.of(v.shape, w.format), g.of(v.shape, "")
	mask := strings.Replace(dense, "f64", "i1", 1)
	g.line("%s = dm.convert_format %s : (%s) -> %s", x, v.sparse, g.of(v.shape, v.format), t)
	g.line("%s, %s_v = dm.unpack %[2]s : (%[3]s) -> (%[4]s, %[5]sf64>)", strings.Join(names, ", "), x, t, strings.Join(ts, ", "), vector)
	g.line("%s_l = dm.constant dense<0.25> : tensor<f64>", x)
	g.line("%s_m = dm.compare gt %[1]s_v, %[1]s_l : (%[2]sf64>, tensor<f64>) -> %[2]si1>", x, vector)
	g.line("%s = dm.filter %s, %[2]s_m : (%[3]s, %[4]si1>) -> %[3]s", w.sparse, x, t, vector)
	g.line("%s_d = dm.compare gt %s, %[1]s_l : (%[3]s, tensor<f64>) -> %[4]s", x, v.dense, dense, mask)
	g.line("%s_f = dm.convert %[1]s_d : (%[2]s) -> %[3]s", x, mask, dense)
	g.line("%s = dm.mul %s_f, %s : %s", w.dense, x, v.dense, dense)
	return w
}

// pruned is v as a tensor that stores 1 of 2 neighbours, and that as v is stored.
func (g *sparse) pruned(v pair) pair {
	t, dense := g.of(v.shape, v.format), g.of(v.shape, "")
	dims, levels := make([]string, len(v.shape)), make([]string, len(v.shape))
	for i, d := range g.rng.Perm(len(v.shape)) {
		dims[i] = fmt.Sprintf("d%d", i)
		levels[i] = fmt.Sprintf("d%d : dense", d)
	}
	last := &levels[len(levels)-1]
	*last = strings.Replace(*last, "dense", "structured[1, 2]", 1)
	format := "#dm.sparse<map = (" + strings.Join(dims, ", ") + ") -> (" + strings.Join(levels, ", ") + "), crdWidth = 32>"
	x, y, z, u := g.name(), g.name(), g.name(), g.of(v.shape, format)
	g.line("%s = dm.convert_format %s : (%s) -> %s", x, v.sparse, t, dense)
	g.line("%s = dm.prune %s : (%s) -> %s", y, x, dense, u)
	g.line("%s = dm.convert_format %s : (%s) -> %s", z, y, u, dense)
	return pair{y, z, v.shape, format}
}

// other is the second argument in the shape of v: as it is, or with zeros.
func (g *sparse) other(v pair, whole bool) string {
	name := "%d1"
	if whole {
		name = "%x1"
	}
	if slices.Equal(v.shape, g.shape) {
		return name
	}
	r := g.name()
	if elements(v.shape) != elements(g.shape) {
		g.line("%s = dm.rng uniform, seed = 77 : %s", r, g.of(v.shape, ""))
		return r
	}
	g.line("%s = dm.reshape %s : (%s) -> %s", r, name, g.of(g.shape, ""), g.of(v.shape, ""))
	return r
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// transposed is a format of a tensor of which dimension i was dimension to[i].
func transposed(format string, to []int) string {
	head, levels, _ := strings.Cut(format, "->")
	for i, d := range to {
		levels = strings.ReplaceAll(levels, fmt.Sprintf("d%d ", d), fmt.Sprintf("@%d ", i))
	}
	return head + "->" + strings.ReplaceAll(levels, "@", "d")
}

// rows is the product of v, a matrix, with another one, all three in formats that are rows or become them: the whole product, or where a third
// matrix stores, times what it stores.
func (g *sparse) rows(v pair) pair {
	var formats [3]string
	for i := range formats {
		formats[i] = []string{"#dm.csr<nnz = E>", "#dm.csr<nnz = E>", "#dm.csc<nnz = E>", "#dm.coo<nnz = E>", "#dm.dcsr<nnz = E>"}[g.rng.IntN(5)]
	}
	first, second, format := formats[0], formats[1], formats[2]
	by, shape := []int{v.shape[1], 5}, []int{v.shape[0], 5}
	w := pair{g.name(), g.name(), shape, ""}
	a, b, half, c, y := g.name(), g.name(), g.name(), g.name(), g.name()
	g.line("%s = dm.convert_format %s : (%s) -> %s", a, v.sparse, g.of(v.shape, v.format), g.of(v.shape, first))
	g.line("%s = dm.rng normal, seed = %d : %s", b, g.n, g.of(by, ""))
	g.line("%s = dm.relu %s : %s", half, b, g.of(by, ""))
	g.line("%s = dm.convert_format %s : (%s) -> %s", c, half, g.of(by, ""), g.of(by, second))
	whole, t := g.of(shape, ""), g.of(shape, format)
	if g.rng.IntN(2) == 0 {
		if g.n/6%2 == 0 { // every other one is dense at once
			g.line("%s = dm.matmul %s, %s, products = 20000 : (%s, %s) -> %s", w.sparse, a, c, g.of(v.shape, first), g.of(by, second), whole)
		} else {
			g.line("%s = dm.matmul %s, %s, products = 20000 : (%s, %s) -> %s", y, a, c, g.of(v.shape, first), g.of(by, second), t)
			g.line("%s = dm.convert_format %s : (%s) -> %s", w.sparse, y, t, whole)
		}
		g.line("%s = dm.matmul %s, %s : (%s, %s) -> %s", w.dense, v.dense, half, g.of(v.shape, ""), g.of(by, ""), whole)
		return w
	}
	x, r, m, times, all := g.name(), g.name(), g.name(), g.name(), g.name()
	g.line("%s = dm.rng normal, seed = %d : %s", x, g.n, whole)
	g.line("%s = dm.relu %s : %s", r, x, whole)
	g.line("%s = dm.convert_format %s : (%s) -> %s", m, r, whole, t)
	g.line("%s = dm.sample \"ik,kj->ij\" %s, %s, %s, products = 20000 : (%s, %s, %s) -> %s", y, m, a, c, t, g.of(v.shape, first), g.of(by, second), t)
	g.line("%s = dm.mul %s, %s : %s", times, y, m, t)
	g.line("%s = dm.convert_format %s : (%s) -> %s", w.sparse, times, t, whole)
	g.line("%s = dm.matmul %s, %s : (%s, %s) -> %s", all, v.dense, half, g.of(v.shape, ""), g.of(by, ""), whole)
	g.line("%s = dm.mul %s, %s : %s", w.dense, all, r, whole)
	return w
}

// end is a dense value of v: an Einstein summation with dense operands, a sum, or all elements.
func (g *sparse) end(v pair) pair {
	t, dense := g.of(v.shape, v.format), g.of(v.shape, "")
	w := pair{g.name(), g.name(), nil, ""}
	rank := len(v.shape)
	letters := "ijk"[:rank]
	if rank == 2 && g.n%6 == 0 {
		return g.rows(v)
	}
	if g.rng.IntN(5) == 0 { // reduced
		d := g.rng.IntN(rank)
		op := []string{"reduce max", "reduce min", "reduce mul", "mean"}[g.rng.IntN(4)]
		w.shape = slices.Delete(slices.Clone(v.shape), d, d+1)
		g.line("%s = dm.%s %s, dims = [%d] : (%s) -> %s", w.sparse, op, v.sparse, d, t, g.of(w.shape, ""))
		g.line("%s = dm.%s %s, dims = [%d] : (%s) -> %s", w.dense, op, v.dense, d, dense, g.of(w.shape, ""))
		return w
	}
	if g.rng.IntN(5) == 0 {
		w.shape = v.shape
		g.line("%s = dm.convert_format %s : (%s) -> %s", w.sparse, v.sparse, t, dense)
		w.dense = v.dense
		return w
	}
	size := map[byte]int{'l': 4, 'm': 5}
	for d := range rank {
		size[letters[d]] = v.shape[d]
	}
	var terms, names, ts []string
	seen := letters
	for range g.rng.IntN(3) {
		term := ""
		for _, c := range []byte(letters + "lm") {
			if g.rng.IntN(3) == 0 {
				term += string(c)
			}
		}
		if term == "" {
			term = letters[:1]
		}
		var shape []int
		for i := range term {
			shape = append(shape, size[term[i]])
			if !strings.Contains(seen, term[i:i+1]) {
				seen += term[i : i+1]
			}
		}
		x := g.name()
		g.line("%s = dm.rng normal, seed = %d : %s", x, g.n, g.of(shape, ""))
		terms, names, ts = append(terms, term), append(names, x), append(ts, g.of(shape, ""))
	}
	denses, dts := slices.Clone(names), slices.Clone(ts)
	products := false
	for i := range names { // some of them sparse as well, with half of their elements
		if g.rng.IntN(3) > 0 {
			continue
		}
		var own []int
		for k := range terms[i] {
			own = append(own, size[terms[i][k]])
		}
		if slices.ContainsFunc(own, func(n int) bool { return n%2 != 0 }) { // blocks do not divide it
			continue
		}
		shape := g.shape
		g.shape = own
		half, x := g.name(), g.name()
		g.line("%s = dm.relu %s : %s", half, names[i], dts[i])
		t := g.of(own, g.format())
		g.shape = shape
		g.line("%s = dm.convert_format %s : (%s) -> %s", x, half, dts[i], t)
		denses[i], names[i], ts[i], products = half, x, t, true
	}
	out := ""
	for i := range seen {
		if g.rng.IntN(2) == 0 {
			out += seen[i : i+1]
			w.shape = append(w.shape, size[seen[i]])
		}
	}
	at := g.rng.IntN(len(terms) + 1)
	terms, names, ts = slices.Insert(terms, at, letters), slices.Insert(names, at, v.sparse), slices.Insert(ts, at, t)
	denses, dts = slices.Insert(denses, at, v.dense), slices.Insert(dts, at, dense)
	eq := strings.Join(terms, ",") + "->" + out
	bound, whole := "", g.of(w.shape, "")
	if products && g.rng.IntN(2) == 0 {
		bound = ", products = 200000"
	}
	if bound != "" && out != "" && strings.Contains(t, "nnz") && g.rng.IntN(2) == 0 && !slices.ContainsFunc(w.shape, func(n int) bool { return n%2 != 0 }) && len(out) < 4 {
		shape := g.shape
		g.shape = w.shape
		to := g.of(w.shape, g.format())
		g.shape = shape
		own := g.name()
		g.line("%s = dm.einsum %q %s%s : (%s) -> %s", own, eq, strings.Join(names, ", "), bound, strings.Join(ts, ", "), to)
		g.line("%s = dm.convert_format %s : (%s) -> %s", w.sparse, own, to, whole)
	} else {
		g.line("%s = dm.einsum %q %s%s : (%s) -> %s", w.sparse, eq, strings.Join(names, ", "), bound, strings.Join(ts, ", "), whole)
	}
	g.line("%s = dm.einsum %q %s : (%s) -> %s", w.dense, eq, strings.Join(denses, ", "), strings.Join(dts, ", "), whole)
	return w
}
