package stablehlo

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// layout is where the dimensions of a tensor of a convolution are: two named ones,
// then the spatial ones.
type layout struct {
	first, second int
	spatial       []int
}

func (l layout) order() []int { return append([]int{l.first, l.second}, l.spatial...) }

// convolution transposes its operands to the layout of dm.convolution and the result
// back, and writes what that has no attribute for as ops of their own.
func convolution(n *node) []*ir.Value {
	n.takes(2)
	x, w, to := n.in[0], n.in[1], n.result(0)
	rank := len(n.shape(x))
	n.must(rank >= 2 && len(n.shape(w)) == rank && to.Rank() == rank, "DM142", "%s takes operands with as many dimensions, at least two, not %s and %s", n.name, x.Type, w.Type)
	in, filter, out := n.layouts(rank)
	k := rank - 2
	groups, batches := n.intOr("feature_group_count", 1), n.intOr("batch_group_count", 1)
	strides := n.intsOr("window_strides", k, 1)
	padding := n.pairs("padding", k)
	dilated, distance := n.intsOr("lhs_dilation", k, 1), n.intsOr("rhs_dilation", k, 1)
	reversal := n.intsOr("window_reversal", k, 0)
	for i := range k {
		n.must(strides[i] > 0 && dilated[i] > 0 && distance[i] > 0, "DM141", "strides and dilations of %s are positive", n.name)
	}
	elem := commonElem(x.Elem(), w.Elem(), to.Elem)
	x = n.transpose(n.convert(x, elem), in.order())
	w = n.transpose(n.convert(w, elem), filter.order()) // O, I, spatial
	var back []int
	for i := range k {
		if reversal[i] != 0 {
			back = append(back, 2+i)
		}
	}
	w = n.reversed(w, back)
	n.must(groups > 0 && batches > 0 && (groups == 1 || batches == 1), "DM141", "%s has the groups %d and %d, of which one is 1", n.name, groups, batches)
	exact := n.exact && elem.IsFloat() && elem == to.Elem && product(n.shape(w))*product(n.sizes(to)) <= maxInOrder*maxKnown
	covered := batches > 1 && k < 3 && n.shape(w)[1] > 0 && !exact
	if batches > 1 {
		x, groups = n.batchGroups(x, batches), batches
	}
	if covered {
		// The channels, which of the gradient of a filter are the samples, are a dimension that the window covers instead:
		// it can be divided, channels between which the groups stand cannot.
		xs, ws := n.shape(x), n.shape(w)
		n.must(xs[1] == batches*ws[1], "DM142", "%s: filters of %s do not fit %d groups of %d channels", n.name, n.in[1].Type, batches, xs[1]/batches)
		x = n.reshape(x, append([]int{xs[0], batches, ws[1]}, xs[2:]...)...)
		w = n.reshape(w, append([]int{ws[0], 1, ws[1]}, ws[2:]...)...)
		strides, dilated, distance, padding = append([]int{1}, strides...), append([]int{1}, dilated...), append([]int{1}, distance...), append([][2]int{{}}, padding...)
	}
	if k == 0 && !covered {
		x, w = n.reshape(x, append(n.shape(x), 1)...), n.reshape(w, append(n.shape(w), 1)...)
		strides, padding, dilated, distance = ones(1), make([][2]int, 1), ones(1), ones(1)
	}
	if exact {
		y := n.convolvedInOrder(x, w, in, strides, padding, dilated, distance, groups)
		if len(in.spatial) == 0 {
			s := n.shape(y)
			y = n.reshape(y, s[:2]...)
		}
		return []*ir.Value{n.transpose(y, op.Inverse(out.order()))}
	}
	n.must(k <= 3, Unsupported, "a convolution over %d spatial dimensions is not supported", k)
	x = n.cut(x, padding, dilated)
	y := n.convolved(x, w, to.Elem, strides, padding, dilated, distance, groups)
	if s := n.shape(y); k == 0 || covered {
		y = n.reshape(y, append(s[:2:2], s[3:]...)...)
	}
	return []*ir.Value{n.convert(n.transpose(y, op.Inverse(out.order())), to.Elem)}
}

// convolvedInOrder is the convolution of x and w, whose sums are rounded after each product in the order in
// which the layout of x has channels and positions in the window, as StableHLO's interpreter does.
func (n *node) convolvedInOrder(x, w *ir.Value, in layout, strides []int, padding [][2]int, dilated, distance []int, groups int) *ir.Value {
	k := len(strides)
	low, high, interior := make([]int, 2+k), make([]int, 2+k), make([]int, 2+k)
	for i := range k {
		low[2+i], high[2+i], interior[2+i] = padding[i][0], padding[i][1], dilated[i]-1
	}
	x = n.padded(x, n.fill(x.Elem(), 0), low, high, interior)
	shape, kernel := n.shape(x), n.shape(w)
	channels, size := kernel[1], make([]int, k)
	for i := range k {
		if span := shape[2+i] - (kernel[2+i]-1)*distance[i] - 1; span >= 0 && kernel[2+i] > 0 {
			size[i] = span/strides[i] + 1
		}
	}
	// The dimensions of a window, 0 for channels, in the order of the layout.
	at := counting(1+k, 1+k)
	slices.SortFunc(at, func(a, b int) int {
		place := func(d int) int {
			return either(d == 0 || len(in.spatial) == 0, in.second, append(in.spatial, 0)[max(0, d-1)])
		}
		return place(a) - place(b)
	})
	window := append([]int{channels}, kernel[2:]...)
	steps, spots := product(window), product(size)
	var places, weights []int64
	for step := range steps {
		part, rest := make([]int, 1+k), step
		for _, d := range slices.Backward(at) {
			part[d], rest = rest%window[d], rest/window[d]
		}
		weight := part[0]
		for i := range k {
			weight = weight*kernel[2+i] + part[1+i]
		}
		weights = append(weights, int64(weight))
		for g := range groups {
			for spot := range spots {
				place, scale, rest := 0, 1, spot
				for i := k - 1; i >= 0; i-- {
					place += (rest%size[i]*strides[i] + part[1+i]*distance[i]) * scale
					rest, scale = rest/size[i], scale*shape[2+i]
				}
				places = append(places, int64(place+(g*channels+part[0])*scale))
			}
		}
	}
	batch, features := shape[0], kernel[0]
	if steps == 0 || spots == 0 || batch*features == 0 {
		return n.filled(x.Elem(), 0, append([]int{batch, features}, size...)...)
	}
	values := n.gather(n.reshape(x, batch, product(shape[1:])), n.constant(literal(tensorOf(types.I64, len(places)), places)), 1, 0)
	values = n.transpose(n.reshape(values, batch, steps, groups, 1, spots), []int{1, 0, 2, 3, 4})
	factors := n.gather(n.reshape(w, features, steps), n.constant(literal(tensorOf(types.I64, steps), weights)), 1, 0)
	factors = n.reshape(n.transpose(factors, []int{1, 0}), steps, groups, features/groups, 1)
	y := n.scan(nil, []*ir.Value{n.filled(x.Elem(), 0, batch, groups, features/groups, spots)}, []*ir.Value{values, factors}, func(now, next []*ir.Value) []*ir.Value {
		return []*ir.Value{n.binary("add", now[0], n.binary("mul", next[0], next[1]))}
	})[0]
	return n.reshape(y, append([]int{batch, features}, size...)...)
}

// batchGroups moves the groups of the batch in front of the channels, so that each of
// them is convolved with its own filters.
func (n *node) batchGroups(x *ir.Value, groups int) *ir.Value {
	s := n.shape(x)
	n.must(s[0]%groups == 0, "DM142", "%s cannot divide a batch of %d into %d groups", n.name, s[0], groups)
	x = n.reshape(x, append([]int{groups, s[0] / groups}, s[1:]...)...)
	order := counting(len(s)+1, len(s)+1)
	order[0], order[1] = 1, 0
	x = n.transpose(x, order)
	return n.reshape(x, append([]int{s[0] / groups, groups * s[1]}, s[2:]...)...)
}

// cut removes what negative padding takes away, and leaves zeros in its place there.
func (n *node) cut(x *ir.Value, padding [][2]int, dilated []int) *ir.Value {
	for i := range padding {
		if padding[i][0] >= 0 && padding[i][1] >= 0 {
			continue
		}
		rank := len(n.shape(x))
		low, high, interior := make([]int, rank), make([]int, rank), make([]int, rank)
		low[2+i], high[2+i], interior[2+i] = min(0, padding[i][0]), min(0, padding[i][1]), dilated[i]-1
		var zero *ir.Value
		if interior[2+i] > 0 {
			zero = n.fill(x.Elem(), 0)
		}
		x = n.padded(x, zero, low, high, interior)
		padding[i], dilated[i] = [2]int{max(0, padding[i][0]), max(0, padding[i][1])}, 1
	}
	return x
}

func (n *node) convolved(x, w *ir.Value, elem types.Elem, strides []int, padding [][2]int, dilated, distance []int, groups int) *ir.Value {
	k := len(strides)
	var attrs []types.Named
	list := func(name string, l []int) {
		if !slices.Equal(l, ones(k)) {
			attrs = append(attrs, intsAttr(name, l))
		}
	}
	list("window_strides", strides)
	if !slices.Equal(padding, make([][2]int, k)) {
		p := make(types.Array, k)
		for i, e := range padding {
			p[i] = intsAttr("", e[:]).Value
		}
		attrs = append(attrs, named("padding", p))
	}
	list("lhs_dilation", dilated)
	list("rhs_dilation", distance)
	if groups != 1 {
		attrs = append(attrs, intAttr("feature_group_count", groups))
	}
	xs, ws := n.shape(x), n.shape(w)
	n.must(groups > 0 && xs[1]%groups == 0 && ws[0]%groups == 0 && xs[1]/groups == ws[1], "DM142", "%s: filters of %s do not fit %d groups of %d channels", n.name, n.in[1].Type, groups, xs[1])
	shape := []int{xs[0], ws[0]}
	for i := range k {
		d := xs[2+i]
		if d > 0 {
			d = (d-1)*dilated[i] + 1
		}
		span := d + padding[i][0] + padding[i][1] - (ws[2+i]-1)*distance[i] - 1
		shape = append(shape, either(span >= 0 && ws[2+i] > 0, span/strides[i]+1, 0))
	}
	n.sizesAre(shape)
	if product(shape)*product(xs)*product(ws) == 0 { // nothing is summed
		return n.trailing(n.fill(elem, 0), shape)
	}
	if e := x.Elem(); narrower(elem, e) {
		elem = e
	}
	return n.make("convolution", []*ir.Value{x, w}, attrs, tensorOf(elem, shape...)).Results[0]
}

// layouts reads [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], or the fields of generic form.
func (n *node) layouts(rank int) (in, filter, out layout) {
	a, ok := n.attrs["dim_numbers"]
	if !ok {
		a, ok = n.attrs["dimension_numbers"]
	}
	n.must(ok, "DM141", "%s needs the attribute dimension_numbers", n.name)
	text := a.x.Body
	if fields, raw := strings.CutPrefix(strings.TrimSpace(text), "raw"); raw {
		return n.rawLayouts(fields, rank)
	}
	sides, result, ok1 := strings.Cut(text, "->")
	lhs, rhs, ok2 := strings.Cut(sides, "x")
	n.must(ok1 && ok2, "DM141", "the dimension numbers of %s are not of the form [b, 0, f]x[0, i, o]->[b, 0, f]", n.name)
	return n.layout(lhs, "b", "f", rank), n.layout(rhs, "o", "i", rank), n.layout(result, "b", "f", rank)
}

// layout reads one list of letters and numbers.
func (n *node) layout(text, first, second string, rank int) layout {
	l := layout{-1, -1, make([]int, rank-2)}
	words := strings.Split(strings.Trim(strings.TrimSpace(text), "[]"), ",")
	n.must(len(words) == rank, "DM141", "the dimension numbers of %s name %d dimensions of a tensor with %d", n.name, len(words), rank)
	seen := map[string]bool{}
	for at, word := range words {
		word = strings.TrimSpace(word)
		i, err := strconv.Atoi(word)
		switch {
		case word == first:
			l.first = at
		case word == second:
			l.second = at
		case err == nil && i >= 0 && i < rank-2:
			l.spatial[i] = at
		default:
			n.fail("DM141", "the dimension numbers of %s contain %q", n.name, word)
		}
		n.must(!seen[word], "DM141", "the dimension numbers of %s contain %s twice", n.name, word)
		seen[word] = true
	}
	return l
}

// rawLayouts reads the fields input_batch_dimension = 0 and so on.
func (n *node) rawLayouts(text string, rank int) (in, filter, out layout) {
	x, err := parse.Attr("{" + text + "}")
	n.must(err == nil, "DM141", "the dimension numbers of %s cannot be read", n.name)
	for _, e := range x.Entries {
		n.attrs["conv."+e.Key] = attr{e.Value, n.t.Head()}
	}
	side := func(prefix, first, second string) layout {
		l := layout{n.int("conv." + prefix + first), n.int("conv." + prefix + second), n.ints("conv." + prefix + "spatial_dimensions")}
		order := l.order()
		n.must(len(order) == rank && slices.Equal(pick(order, sortedBy(order)), counting(rank, rank)), "DM141", "the dimension numbers of %s are no permutation of the dimensions", n.name)
		return l
	}
	return side("input_", "batch_dimension", "feature_dimension"), side("kernel_", "output_feature_dimension", "input_feature_dimension"), side("output_", "batch_dimension", "feature_dimension")
}
