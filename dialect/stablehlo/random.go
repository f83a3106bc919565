package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func randoms() map[string]conversion {
	return map[string]conversion{"rng": rng, "rng_uniform": rng, "rng_normal": rng, "rng_bit_generator": bitGenerator}
}

// rng draws numbers between two bounds, or of a mean and a deviation. Its algorithm is
// the implementation's choice: dm.rng, with another seed for each op.
func rng(n *node) []*ir.Value {
	n.takes(3)
	to := n.result(0)
	e := to.Elem
	kind := n.keyword("rng_distribution")
	if kind == "" {
		kind = either(n.name == "stablehlo.rng_normal", "NORMAL", "UNIFORM")
	}
	normal := kind == "NORMAL"
	n.must(normal || kind == "UNIFORM", "DM141", "rng_distribution of %s is UNIFORM or NORMAL, not %s", n.name, kind)
	n.draws++
	distribution := []types.Named{named("distribution", types.Keyword(either(normal, "normal", "uniform"))), named("seed", types.Int{V: n.draws})}
	a, b := constantOf(n.in[0]), constantOf(n.in[1])
	draw := func(attrs ...types.Named) *ir.Value {
		return n.make("rng", nil, append(distribution, attrs...), to).Results[0]
	}
	if a != nil && b != nil && a.Len() == 1 && b.Len() == 1 {
		names := either(normal, [2]string{"mean", "stddev"}, [2]string{"low", "high"})
		defaults := [2]float64{0, 1}
		var attrs []types.Named
		for i, d := range []*types.Dense{a, b} {
			if v := d.Float(0); v != defaults[i] {
				attrs = append(attrs, named(names[i], types.Float{V: v}))
			}
		}
		return []*ir.Value{draw(attrs...)}
	}
	n.must(e.IsFloat(), Unsupported, "%s of integers between bounds that are not constant is not supported", n.name)
	scale := n.in[1]
	if !normal {
		scale = n.binary("sub", n.in[1], n.in[0])
	}
	return []*ir.Value{n.binary("add", n.in[0], n.binary("mul", scale, draw()))}
}

// bitGenerator draws random bits by one of the counter-based algorithms of Salmon et
// al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011). The state is a key and a
// counter, which the result goes on from.
func bitGenerator(n *node) []*ir.Value {
	n.takes(1)
	n.must(len(n.out) == 2, "DM142", "%s has two results", n.name)
	state, to := n.in[0], n.result(1)
	algorithm := n.keyword("rng_algorithm")
	shape := n.sizes(to)
	count := product(shape)
	bits := int(to.Elem.Bits())
	n.must(to.Elem.IsInt() && to.Elem != types.I1 && bits >= 8, Unsupported, "%s of %s is not supported", n.name, to.Elem)
	words := (count*max(bits, 32) + 31) / 32 // of 32 bits; narrower numbers take a word each
	s := n.shape(state)
	n.must(state.Elem() == types.UI64 && len(s) == 1, Unsupported, "%s with a state of %s is not supported", n.name, state.Type)
	part := func(i int) *ir.Value { return n.slice(state, 0, i, i+1) }
	var random, next *ir.Value
	switch {
	case (algorithm == "THREE_FRY" || algorithm == "DEFAULT" && s[0] == 2) && s[0] == 2:
		blocks := (words + 1) / 2
		counter := n.binary("add", part(1), n.iota(types.UI64, 0, blocks))
		a, b := n.threefry(part(0), counter)
		random = n.concatenated([]*ir.Value{n.reshape(a, blocks, 1), n.reshape(b, blocks, 1)}, 1)
		next = n.concatenated([]*ir.Value{part(0), n.binary("add", part(1), n.constant(types.IntOf(tensorOf(types.UI64), int64(blocks))))}, 0)
	case (algorithm == "PHILOX" || algorithm == "DEFAULT") && (s[0] == 2 || s[0] == 3):
		blocks := (words + 3) / 4
		low := n.binary("add", part(1), n.iota(types.UI64, 0, blocks))
		high := n.fill64(0)
		if s[0] == 3 {
			high = part(2)
		}
		carry := n.convert(n.compare("lt", low, part(1)), types.UI64)
		four := n.philox(part(0), low, n.binary("add", high, carry), blocks)
		for i, v := range four {
			four[i] = n.reshape(v, blocks, 1)
		}
		random = n.concatenated(four, 1)
		after := n.binary("add", part(1), n.constant(types.IntOf(tensorOf(types.UI64), int64(blocks))))
		parts := []*ir.Value{part(0), after}
		if s[0] == 3 {
			parts = append(parts, n.binary("add", part(2), n.convert(n.compare("lt", after, part(1)), types.UI64)))
		}
		next = n.concatenated(parts, 0)
	default:
		n.unsupported("%s by the algorithm %s with a state of %d numbers is not supported", n.name, algorithm, s[0])
	}
	random = n.reshape(random, product(n.shape(random)))
	random = n.slice(random, 0, 0, words)
	if bits == 64 {
		pairs := n.convert(n.reshape(random, count, 2), types.UI64)
		low, high := n.slice(pairs, 1, 0, 1), n.slice(pairs, 1, 1, 2)
		random = n.reshape(n.binary("or", low, n.binary("shift_left", high, n.fill64(32))), count)
	}
	random = n.bitcast(n.convert(random, intOfSize(to.Elem.Bytes(), false)), to.Elem)
	return []*ir.Value{next, n.reshape(random, shape...)}
}

func (n *node) fill64(v int) *ir.Value { return n.whole(types.UI64, v) }

func (n *node) fill32(v uint32) *ir.Value {
	return n.constant(types.IntOf(tensorOf(types.UI32), int64(v)))
}

// words are the low and the high half of 64 bits.
func (n *node) words32(x *ir.Value) (low, high *ir.Value) {
	return n.convert(x, types.UI32), n.convert(n.binary("shift_right_logical", x, n.fill64(32)), types.UI32)
}

// hashed is Threefry-2x32 as JAX calls it on a GPU: two words of a key, and two of counters.
func hashed(n *node) []*ir.Value {
	n.takes(4)
	for _, v := range n.in {
		n.must(v.Elem() == types.UI32, "DM142", "%s takes ui32, not %s", n.name, v.Elem())
	}
	wide := func(low, high *ir.Value) *ir.Value {
		return n.binary("or", n.convert(low, types.UI64), n.binary("shift_left", n.convert(high, types.UI64), n.fill64(32)))
	}
	a, b := n.threefry(wide(n.in[0], n.in[1]), wide(n.in[2], n.in[3]))
	return []*ir.Value{a, b}
}

// threefry is Threefry-2x32 with 20 rounds, of a key and counters.
func (n *node) threefry(key, counter *ir.Value) (a, b *ir.Value) {
	k0, k1 := n.words32(key)
	keys := []*ir.Value{k0, k1, n.binary("xor", n.binary("xor", k0, k1), n.fill32(0x1BD11BDA))}
	a, b = n.words32(counter)
	a, b = n.binary("add", a, keys[0]), n.binary("add", b, keys[1])
	rotations := [][]int{{13, 15, 26, 6}, {17, 29, 16, 24}}
	for round := range 5 {
		for _, r := range rotations[round%2] {
			a = n.binary("add", a, b)
			left := n.binary("shift_left", b, n.fill32(uint32(r)))
			right := n.binary("shift_right_logical", b, n.fill32(uint32(32-r)))
			b = n.binary("xor", n.binary("or", left, right), a)
		}
		a = n.binary("add", a, keys[(round+1)%3])
		b = n.binary("add", n.binary("add", b, keys[(round+2)%3]), n.fill32(uint32(round+1)))
	}
	return a, b
}

// philox is Philox-4x32 with 10 rounds, of a key and counters of 128 bits.
func (n *node) philox(key, low, high *ir.Value, blocks int) []*ir.Value {
	k0, k1 := n.words32(key)
	x0, x1 := n.words32(low)
	x2, x3 := n.words32(high)
	multiply := func(x *ir.Value, m uint32) (low, high *ir.Value) {
		return n.words32(n.binary("mul", n.convert(x, types.UI64), n.constant(types.IntOf(tensorOf(types.UI64), int64(m)))))
	}
	for range 10 {
		l0, h0 := multiply(x0, 0xD2511F53)
		l1, h1 := multiply(x2, 0xCD9E8D57)
		x0, x1, x2, x3 = n.binary("xor", n.binary("xor", h1, x1), k0), l1, n.binary("xor", n.binary("xor", h0, x3), k1), l0
		k0, k1 = n.binary("add", k0, n.fill32(0x9E3779B9)), n.binary("add", k1, n.fill32(0xBB67AE85))
	}
	out := []*ir.Value{x0, x1, x2, x3}
	for i, v := range out {
		out[i] = n.trailing(v, []int{blocks})
	}
	return slices.Clone(out)
}
