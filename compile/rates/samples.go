package rates

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// sample is an op that is measured on arguments of its own.
type sample struct {
	name    string   // of the op
	kind    string   // in front of its operands: "add"
	args    []string // their types
	attrs   string
	results []string
	whole   bool             // it reduces whole rows, whose elements count
	taps    int64            // of a window, which count for each element of the result
	rows    int64            // what a row takes is measured, of so many; 0: what an element takes
	longer  bool             // the rows are longer than those of the sample before, so that an element has a rate of its own
	uneven  float64          // how many of the rows are of another length than the one before, where those of the sample before are even
	made    []string         // lines of ops whose results operands are, as positions have to rise
	given   []string         // by operand: the result of these lines that it is; "" and absent: an argument
	product *machine.Product // the rates of products are measured
}

// elements is about how many elements of a result a thread computes: enough for a task, few enough for what all samples
// have to stay in the caches.
const elements = row * each / 4

// short is the length of a short row.
const short = 16

// ofType is the type of a tensor.
func ofType(elem string, sizes ...int) string {
	var b strings.Builder
	for _, n := range sizes {
		fmt.Fprintf(&b, "%dx", n)
	}
	return "tensor<" + b.String() + elem + ">"
}

// opSamples are ops on numbers of type e.
func opSamples(m *machine.Machine, e types.Elem) (all []sample) {
	f := e.String()
	n := elements * m.SMs
	wide, lines := ofType(f, n/row, row), n/row
	flat := ofType(f, n)
	add := func(s sample) { all = append(all, s) }

	add(sample{name: "argmax", whole: true, args: []string{wide}, attrs: "dim = 1", results: []string{ofType("i64", lines)}})
	add(sample{name: "reduce", kind: "add", whole: true, args: []string{wide}, attrs: "dims = [1]", results: []string{ofType(f, lines)}})
	add(sample{name: "cross_entropy", whole: true, args: []string{wide, ofType("i64", lines)}, results: []string{ofType(f)}})
	for _, s := range []sample{
		{name: "reduce", kind: "add", whole: true, attrs: "dims = [1]", results: []string{ofType(f, n/short)}},
		{name: "softmax", attrs: "dim = 1"},
		{name: "log_softmax", attrs: "dim = 1"},
		{name: "layer_norm"},
		{name: "rms_norm"},
		{name: "argmax", whole: true, attrs: "dim = 1", results: []string{ofType("i64", n/short)}},
	} {
		s.args, s.rows = []string{ofType(f, n/short, short)}, int64(n/short)
		if s.results == nil {
			s.results = s.args
		}
		add(s)
	}
	add(sample{name: "dropout", args: []string{flat}, attrs: "rate = 0.1, seed = 1", results: []string{flat, ofType("i1", n)}})
	add(sample{name: "compare", kind: "lt", args: []string{flat, flat}, results: []string{ofType("i1", n)}})
	add(sample{name: "select", args: []string{ofType("i1", n), flat, flat}, results: []string{flat}})
	add(sample{name: "adam", args: []string{flat, flat, flat, flat, ofType("i64")}, attrs: "lr = 0.1", results: []string{flat, flat, flat}})
	add(sample{name: "momentum", args: []string{flat, flat, flat}, attrs: "lr = 0.1", results: []string{flat, flat}})
	add(sample{name: "transpose", args: []string{ofType(f, 16*m.SMs, 32, 32, 64)}, attrs: "dims = [3, 0, 2, 1]", results: []string{ofType(f, 64, 16*m.SMs, 32, 32)}})
	add(sample{name: "embedding", args: []string{ofType(f, 512, 64), ofType("i64", n/64)}, results: []string{ofType(f, n/64, 64)}})
	image := ofType(f, 1, n/784, 28, 28)
	add(sample{name: "reduce_window", kind: "max", taps: 9, args: []string{image}, attrs: "window_dimensions = [1, 1, 3, 3], padding = [[0, 0], [0, 0], [1, 1], [1, 1]]", results: []string{image}})

	return append(all, sparseSamples(m, e)...)
}

// sparseSamples are what sparse tensors are computed by: rows that are read by their numbers, sums of short rows, of one length and of lengths that no
// processor foresees, the walk over them, attention to few and to more keys, and a product of two matrices.
func sparseSamples(m *machine.Machine, e types.Elem) []sample {
	const (
		mean  = 3
		wide  = 4 // elements of a row of a matrix
		least = 1 << 15
		table = 512 // rows that are read by their numbers, which stay in the caches
		head  = 64  // elements of a key
		keys  = 32  // that stay in the first cache
		few   = 4   // keys of a query
		more  = 32
	)
	f, rows := e.String(), least*m.SMs
	lengths, ends := ofType("i32", rows), ofType("i32", rows+1)
	size := rows / 4
	grid, starts, columns := ofType("i32", size, wide), ofType("i32", size+1), ofType("i32", size*wide)
	one, products := ofType("i32"), size*wide*wide
	queries, read := rows/32, rows/4
	query, key, bounds := ofType(f, 1, queries, head), ofType(f, 1, keys, head), ofType("i32", queries+1)
	steps := func(name string, each int, of string) []string { // positions of segments of one length
		return []string{
			fmt.Sprintf("%%%s_numbers = dm.iota dim = 0 : %s", name, of),
			fmt.Sprintf("%%%s_length = dm.constant dense<%d> : %s", name, each, one),
			fmt.Sprintf("%%%s = dm.mul %%%[1]s_numbers, %%%[1]s_length : (%s, %s) -> %[2]s", name, of, one),
		}
	}
	attention := func(name string, seen int) sample {
		seenKeys := ofType("i32", queries*seen)
		return sample{
			name: "segment_attention", rows: int64(queries), attrs: "scale = 0.125",
			args: []string{query, key, key, bounds, seenKeys}, results: []string{query},
			made:  append(steps(name+"_bounds", seen, bounds), fmt.Sprintf("%%%s_keys = dm.rng uniform, seed = 4, high = %d.0 : %s", name, keys, seenKeys)),
			given: []string{"", "", "", "%" + name + "_bounds", "%" + name + "_keys"},
		}
	}
	long := attention("more", more)
	long.longer = true
	all := []sample{
		{
			name: "gather", rows: int64(read), attrs: "dim = 0",
			args: []string{ofType(f, table, short), ofType("i32", read)}, results: []string{ofType(f, read, short)},
			made:  []string{fmt.Sprintf("%%row_numbers = dm.rng uniform, seed = 3, high = %d.0 : %s", table, ofType("i32", read))},
			given: []string{"", "%row_numbers"},
		},
		attention("few", few), long,
		{
			name: "segment_reduce", kind: "add", rows: int64(rows),
			args: []string{ofType(f, mean*rows), ends}, results: []string{ofType(f, rows)},
			made: steps("even", mean, ends), given: []string{"", "%even"},
		},
		{
			name: "segment_reduce", kind: "add", rows: int64(rows), uneven: float64(rows) * (1 - 1.0/(2*mean+1)),
			args: []string{ofType(f, (mean+1)*rows), ends}, results: []string{ofType(f, rows)},
			made: []string{
				fmt.Sprintf("%%lengths = dm.rng uniform, seed = 1, high = %d.0 : %s", 2*mean+1, lengths),
				"%no_length = dm.constant dense<0> : " + ofType("i32", 1),
				fmt.Sprintf("%%all_lengths = dm.concatenate %%no_length, %%lengths, dim = 0 : (%s, %s) -> %s", ofType("i32", 1), lengths, ends),
				"%ends = dm.cumsum %all_lengths, dim = 0 : " + ends,
			},
			given: []string{"", "%ends"},
		},
		{ // four elements in each row of both, one in each quarter
			name: "segment_product", attrs: fmt.Sprintf("columns = %d, products = %d", size, products),
			args:    []string{starts, columns, ofType(f, size*wide), starts, columns, ofType(f, size*wide)},
			results: []string{starts, ofType("i32", products), ofType(f, products)},
			made: []string{
				"%numbers = dm.iota dim = 0 : " + starts,
				fmt.Sprintf("%%wide = dm.constant dense<%d> : %s", wide, one),
				fmt.Sprintf("%%starts = dm.mul %%numbers, %%wide : (%s, %s) -> %[1]s", starts, one),
				fmt.Sprintf("%%within = dm.rng uniform, seed = 2, high = %d.0 : %s", size/wide, grid),
				"%quarters = dm.iota dim = 1 : " + grid,
				fmt.Sprintf("%%quarter = dm.constant dense<%d> : %s", size/wide, one),
				fmt.Sprintf("%%begins = dm.mul %%quarters, %%quarter : (%s, %s) -> %[1]s", grid, one),
				"%placed = dm.add %begins, %within : " + grid,
				fmt.Sprintf("%%columns = dm.reshape %%placed : (%s) -> %s", grid, columns),
			},
			given: []string{"%starts", "%columns", "", "%starts", "%columns", ""},
		},
	}
	if e == types.F32 { // integers are counted with these
		all = append(all, sample{
			name: "segment_ids", rows: int64(rows), args: []string{ends}, results: []string{ofType("i32", mean*rows)},
			made: steps("ids", mean, ends), given: []string{"%ids"},
		})
	}
	return all
}

// productSamples are products of numbers of type e: dense ones, and convolutions.
func productSamples(m *machine.Machine, e types.Elem) (all []sample) {
	f := e.String()
	add := func(s sample) { all = append(all, s) }
	product := func(batch, rows, cols, depth int) {
		p := &machine.Product{Batch: int64(batch), Rows: int64(rows), Cols: int64(cols), Depth: int64(depth), Elem: e}
		add(sample{
			name: "einsum", kind: `"bmk,bkn->bmn"`, args: []string{ofType(f, batch, rows, depth), ofType(f, batch, depth, cols)},
			results: []string{ofType(f, batch, rows, cols)}, product: p,
		})
	}
	for _, s := range [][3]int{{512, 512, 512}, {256, 256, 256}, {128, 128, 128}, {64, 64, 64}, {64, 1024, 512}, {512, 1024, 64}, {1024, 64, 512}, {32, 512, 1024}, {1024, 512, 256}} {
		product(m.SMs, s[0], s[1], s[2])
	}
	window := func(channels, size, features, taps, stride, groups int) {
		out := (size + stride - 1) / stride
		pad, reach := taps/2, int64((taps-1)/stride)
		p := &machine.Product{
			Batch: int64(groups), Rows: int64(features / groups), Cols: int64(m.SMs * out * out), Depth: int64(channels / groups * taps * taps), Elem: e,
			Window: machine.Window{
				Taps: int64(taps * taps), Images: int64(m.SMs), Lines: int64(out), Outputs: int64(out),
				Reach: reach, Span: reach * int64(out+1), Planes: int64(min(taps, stride) * min(taps, stride)),
			},
		}
		add(sample{
			name: "convolution", args: []string{ofType(f, m.SMs, channels, size, size), ofType(f, features, channels/groups, taps, taps)},
			attrs:   fmt.Sprintf("window_strides = [%[1]d, %[1]d], padding = [[%[2]d, %[2]d], [%[2]d, %[2]d]], feature_group_count = %[3]d", stride, pad, groups),
			results: []string{ofType(f, m.SMs, features, out, out)}, product: p,
		})
	}
	window(64, 28, 64, 3, 1, 1)
	window(16, 28, 32, 5, 1, 1)
	window(128, 14, 128, 3, 1, 1)
	window(256, 14, 256, 1, 1, 1)
	window(64, 14, 256, 1, 1, 1)
	window(256, 7, 256, 3, 1, 1)
	window(64, 28, 64, 3, 2, 1)
	window(64, 28, 64, 3, 1, 64)
	window(512, 14, 512, 3, 1, 512)
	return all
}

// line is s with its results called after number n and its operands as they are called.
func (s sample) line(n int, operands []string) string {
	var results []string
	for i := range s.results {
		results = append(results, fmt.Sprintf("%%y%d_%d", n, i))
	}
	text := strings.Join(results, ", ") + " = " + op.Prefix + s.name + " "
	if s.kind != "" {
		text += s.kind + " "
	}
	text += strings.Join(operands, ", ")
	if s.attrs != "" {
		text += ", " + s.attrs
	}
	to := strings.Join(s.results, ", ")
	if len(s.results) > 1 {
		to = "(" + to + ")"
	}
	return text + " : (" + strings.Join(s.args, ", ") + ") -> " + to
}

// textOf is a program of samples on numbers of type e, and the line of each. What an op computes is used at once and then dies,
// so that results lie in memory that stays in the caches, as those of other programs do. Each op stands twice, since threads may
// still sleep when it first runs, and the second one is measured.
func textOf(all []sample, e types.Elem) (text string, at []int) {
	var args, types []string
	one := ofType(e.String())
	body := []string{"%used0 = dm.constant dense<0.0> : " + one, "%no = dm.constant dense<false> : tensor<i1>"}
	for i, s := range all {
		var operands []string
		body = append(body, s.made...)
		for k, a := range s.args {
			if k < len(s.given) && s.given[k] != "" {
				operands = append(operands, s.given[k])
				continue
			}
			at := slices.Index(types, a)
			if at < 0 {
				at = len(types)
				types = append(types, a)
				args = append(args, fmt.Sprintf("%%a%d: %s", at, a))
			}
			operands = append(operands, fmt.Sprintf("%%a%d", at))
		}
		body = append(body, s.line(2*i, operands), s.line(2*i+1, operands))
		at = append(at, len(body)+1)
		result, shape := fmt.Sprintf("%%y%d_0", 2*i+1), s.results[0]
		body = append(body, fmt.Sprintf("%%both%d = dm.select %%no, %%y%d_0, %s : (tensor<i1>, %[4]s, %[4]s) -> %[4]s", i, 2*i, result, shape))
		result = fmt.Sprintf("%%both%d", i)
		if elem := shape[strings.LastIndexAny(shape, "<x")+1 : len(shape)-1]; elem != e.String() {
			to := strings.TrimSuffix(shape, elem+">") + e.String() + ">"
			body = append(body, fmt.Sprintf("%%as%d = dm.convert %s : (%s) -> %s", i, result, shape, to))
			result, shape = fmt.Sprintf("%%as%d", i), to
		}
		if shape != one {
			body = append(body, fmt.Sprintf("%%max%d = dm.reduce max %s : (%s) -> %s", i, result, shape, one))
			result = fmt.Sprintf("%%max%d", i)
		}
		body = append(body, fmt.Sprintf("%%used%d = dm.max %%used%d, %s : %s", i+1, i, result, one))
	}
	last := fmt.Sprintf("%%used%d", len(all))
	return function("samples", strings.Join(args, ", "), body, []string{last}, []string{one}), at
}
