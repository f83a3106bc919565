package onnx

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// step is what the conversion of a node made of sizes: the shape of an output, integers
// that it read at import, a branch that it took.
type step struct {
	p    *nodeProto
	list []int64
}

// maxNoted is the number of integers up to which a step has each.
const maxNoted = 64

// note adds a step to the trace of an import.
func (n *node) note(list ...int) {
	if !n.tracing {
		return
	}
	out := make([]int64, 0, min(len(list), maxNoted))
	if len(list) > maxNoted {
		h := fnv.New64a()
		fmt.Fprint(h, list)
		n.trace = append(n.trace, step{n.p, []int64{int64(len(list)), int64(h.Sum64() >> 1)}})
		return
	}
	for _, v := range list {
		out = append(out, int64(v))
	}
	n.trace = append(n.trace, step{n.p, out})
}

// samples is the number of programs that are compared. A formula has two or three numbers
// that are solved for, so that the others check it.
const samples = 6

// prober imports a model with numbers for the sizes that are open.
type prober struct {
	name   string
	p      *modelProto
	opts   Options
	sizes  []openSize
	brief  bool     // whether only the most likely configurations are tried
	failed []string // why imports with numbers failed
}

// config is what is tried for the sizes that are open.
type config struct {
	level    []int     // of each size: what range its numbers are from
	multiple []int64   // of each size: what divides it
	symbol   []string  // of each size: its own, or that of what a number times is it
	formula  []dim.Dim // of each size: its symbol times the number, or what others make it
}

// levels are the ranges that the numbers of samples are from. What a table limits, such as
// the number of positions, takes numbers from a later one.
var levels = [][2]int64{{101, 400}, {33, 76}, {9, 31}}

// numbers are those of the symbol of size k in all samples: primes, and multiples of 2, 4
// and 8.
func (c config) numbers(k int) []int64 {
	low, high := levels[c.level[k]][0], levels[c.level[k]][1]
	if m := c.multiple[k]; m > 1 {
		low, high = max(2, low/m), high/m+32
	}
	var lists [4][]int64
	var composite []int64
	for n := low; n <= high; n++ {
		switch {
		case n%8 == 0:
			lists[3] = append(lists[3], n)
		case n%4 == 0:
			lists[2] = append(lists[2], n)
		case n%2 == 0:
			lists[1] = append(lists[1], n)
		case prime(n):
			lists[0] = append(lists[0], n)
		default:
			composite = append(composite, n)
		}
	}
	lists[0] = append(lists[0], composite...)
	at := make([]int64, samples)
	for i := range at {
		list, place := lists[max(0, i-2)], k
		if i < 3 {
			place = 3*k + i
		}
		if len(list) == 0 {
			list = []int64{low + int64(i)}
		}
		at[i] = list[(place*(1+max(0, i-2)))%len(list)]
	}
	return at
}

func prime(n int64) bool {
	for d := int64(3); d*d <= n; d += 2 {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// free are the sizes that no others make.
func (c config) free() (out []int) {
	for k, s := range c.symbol {
		if c.formula[k].Equal(dim.Sym(s).Scale(c.multiple[k])) {
			out = append(out, k)
		}
	}
	return out
}

// sample are the numbers of the symbols in sample i.
func (r *prober) sample(c config, i int) map[string]int64 {
	at := map[string]int64{}
	for _, k := range c.free() {
		at[c.symbol[k]] = c.numbers(k)[i]
	}
	return at
}

// build is the import with numbers for the symbols. Its program is not yet raised.
func (r *prober) build(c config, at map[string]int64) (*importer, *Error) {
	opts := r.opts
	opts.Bind = maps.Clone(opts.Bind)
	if opts.Bind == nil {
		opts.Bind = map[string]int64{}
	}
	for k, o := range r.sizes {
		n, ok := c.formula[k].Eval(at).Int()
		if !ok || n < 0 {
			return nil, &Error{Code: invalidCode, Msg: fmt.Sprintf("the size %q is negative", o.name)}
		}
		opts.Bind[o.name] = n
	}
	x, err := build(r.name, r.p, opts, true)
	return x, As(err)
}

// multiples are the numbers that are tried as what divides a size.
var multiples = []int64{2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 10, 12, 14, 28, 56}

// configs are what is tried, the most likely first.
func (r *prober) configs() (list []config) {
	base := config{level: make([]int, len(r.sizes)), multiple: slices.Repeat([]int64{1}, len(r.sizes))}
	for _, o := range r.sizes {
		base.formula, base.symbol = append(base.formula, o.formula), append(base.symbol, o.symbol)
	}
	with := func(f func(c *config)) {
		c := config{slices.Clone(base.level), slices.Clone(base.multiple), slices.Clone(base.symbol), slices.Clone(base.formula)}
		f(&c)
		list = append(list, c)
	}
	times := func(c *config, k int, m int64) { // the others' formulas are in terms of it
		own := c.symbol[k]
		c.multiple[k], c.symbol[k] = m, fmt.Sprintf("%s_over_%d", own, m)
		by := map[string]dim.Dim{own: dim.Sym(c.symbol[k]).Scale(m)}
		for i := range c.formula {
			c.formula[i] = c.formula[i].Subst(by)
		}
	}
	with(func(*config) {})
	free := base.free()
	for l := 1; l < len(levels); l++ {
		for _, k := range free {
			with(func(c *config) { c.level[k] = l })
		}
		if len(free) > 1 {
			with(func(c *config) {
				for _, k := range free {
					c.level[k] = l
				}
			})
		}
	}
	for i, k := range free { // two that are the same, or one that is the sum of two
		for _, j := range free[:i] {
			with(func(c *config) { c.formula[k] = c.formula[j] })
		}
	}
	for _, k := range free {
		for i, a := range free {
			for _, b := range free[:i] {
				if a != k && b != k {
					with(func(c *config) { c.formula[k] = c.formula[a].Add(c.formula[b]) })
				}
			}
		}
	}
	if r.brief {
		return list
	}
	for _, m := range multiples {
		for i := range free { // one alone, then two, then all
			with(func(c *config) { times(c, free[i], m) })
		}
		for i := range free {
			for j := range i {
				with(func(c *config) { times(c, free[i], m); times(c, free[j], m) })
			}
		}
		if len(free) > 2 {
			with(func(c *config) {
				for _, k := range free {
					times(c, k, m)
				}
			})
		}
	}
	return list
}

// importOpen is the program of a model for all sizes that are open.
func importOpen(name string, p *modelProto, opts Options, open []openSize) (m *ir.Module, err error) {
	defer caught(&err)
	r := &prober{name: name, p: p, opts: opts, sizes: open}
	m, why := r.program()
	if m != nil {
		return m, nil
	}
	if r.whatever() {
		return nil, why
	}
	blamed := r.blamed()
	var bind []string
	for _, o := range blamed {
		bind = append(bind, o.name+"=1")
	}
	o := blamed[0]
	what := fmt.Sprintf("input %q: the size of dimension %d", o.input, o.dim)
	if len(blamed) > 1 {
		what = "the sizes " + strings.Join(mapped(blamed, func(o openSize) string { return o.name }), ", ")
	}
	return nil, &Error{Code: why.Code, Msg: fmt.Sprintf("%s cannot stay open (%s): --bind %s gives it", what, strings.TrimSuffix(why.Msg, ": the dialect has no equivalent"), strings.Join(bind, ","))}
}

// whatever reports whether every import with numbers failed for one reason, which then has
// to do with none of them.
func (r *prober) whatever() bool {
	return len(r.failed) > len(levels) && len(slices.Compact(slices.Clone(r.failed))) == 1
}

// blamed are the sizes of which giving one suffices, otherwise all.
func (r *prober) blamed() []openSize {
	for k := range r.sizes {
		one := *r
		one.brief = true
		one.sizes = slices.Delete(slices.Clone(r.sizes), k, k+1)
		one.opts.Bind = maps.Clone(r.opts.Bind)
		if one.opts.Bind == nil {
			one.opts.Bind = map[string]int64{}
		}
		for _, n := range []int64{1, 4, 224} {
			one.opts.Bind[r.sizes[k].name] = n
			if len(one.sizes) == 0 {
				break
			}
			if slices.ContainsFunc(one.sizes, func(o openSize) bool { return !one.knows(o) }) {
				break
			}
			if m, _ := one.program(); m != nil {
				return r.sizes[k : k+1]
			}
		}
	}
	return r.sizes
}

// knows reports whether the symbols of a size's formula are among the sizes.
func (r *prober) knows(o openSize) bool {
	return !slices.ContainsFunc(o.formula.Symbols(), func(s string) bool {
		return !slices.ContainsFunc(r.sizes, func(q openSize) bool { return q.symbol == s && q.formula.Equal(dim.Sym(s)) })
	})
}

// maxOpen is how many sizes may be open.
const maxOpen = 8

// program is the program for all sizes, or why there is none: what the import of the most
// likely configuration lacks.
func (r *prober) program() (m *ir.Module, why *Error) {
	if len(r.sizes) > maxOpen {
		return nil, &Error{Code: unsupportedCode, Msg: fmt.Sprintf("more than %d sizes are open", maxOpen)}
	}
	for i, c := range r.configs() {
		m, err := r.general(c)
		if m != nil {
			return m, nil
		}
		if i == 0 {
			why = err
		}
		if i > len(levels) && r.whatever() {
			break
		}
	}
	return nil, why
}

// general is the program for all sizes of a configuration, with its limits.
func (r *prober) general(c config) (m *ir.Module, why *Error) {
	defer func() {
		e := recover()
		if err, ok := e.(*Error); ok {
			m, why = nil, err
		} else if e != nil {
			panic(e)
		}
	}()
	g := &generalizer{values: make([]map[*ir.Value]*ir.Value, samples), formulas: map[[samples]int64]dim.Dim{}, divisors: map[string]int64{}}
	g.learn(dim.Const(1), slices.Repeat([]int64{1}, samples))
	for i := range samples {
		g.values[i] = map[*ir.Value]*ir.Value{}
		g.at = append(g.at, r.sample(c, i))
	}
	for _, k := range c.free() {
		g.learn(dim.Sym(c.symbol[k]), g.numbers(dim.Sym(c.symbol[k])))
	}
	for _, f := range c.formula {
		g.learn(f, g.numbers(f))
	}
	all := make([]*importer, samples)
	for k := range samples {
		i := (k + samples/2) * (samples - 1) % samples // odd and even ones in turn
		x, err := r.build(c, r.sample(c, i))
		if err != nil {
			r.failed = append(r.failed, err.Msg)
			return nil, err
		}
		if first := all[(samples/2)*(samples-1)%samples]; first != nil {
			aligned(first, x)
		}
		all[i] = x
	}
	var blocks []*ir.Block
	for _, x := range all {
		if err := x.finish(); err != nil {
			return nil, As(err)
		}
		blocks = append(blocks, x.module.Funcs[0].Body)
	}
	if failed := g.attempt(func() { g.block(blocks) }); failed != nil {
		g.trace(all) // names the node
		return nil, failed
	}
	want := g.trace(all)
	m = all[0].module
	m.Funcs[0].Retype()
	for _, d := range verify.Module(m) {
		if d.Severity == diag.Error {
			fail("%s", d.Message)
		}
	}
	op.SetLimits(m.Funcs[0].Op, r.limits(c, want, g.divisors))
	return m, nil
}

// aligned ends the import where two imports took other ways.
func aligned(x, y *importer) {
	for i, s := range x.trace {
		if i >= len(y.trace) || y.trace[i].p != s.p || len(y.trace[i].list) != len(s.list) {
			fail("what %s does depends on it", s.p.title())
		}
	}
	if len(x.trace) != len(y.trace) {
		fail("the program depends on it")
	}
}

// expected is a step with formulas.
type expected struct {
	p    *nodeProto
	list []dim.Dim
}

// trace is what all imports did, with formulas for what differs.
func (g *generalizer) trace(all []*importer) []expected {
	var out []expected
	for i, s := range all[0].trace {
		e := expected{s.p, make([]dim.Dim, len(s.list))}
		for j := range s.list {
			at := mapped(all, func(x *importer) int64 { return x.trace[i].list[j] })
			e.list[j] = dim.Const(at[0])
			if !varies(at) {
				continue
			}
			if err := g.attempt(func() { e.list[j] = g.explained(at) }); err != nil {
				fail("what %s makes of it, %s, follows no known formula", s.p.title(), strings.Trim(fmt.Sprint(at), "[]"))
			}
			g.learn(e.list[j], at)
		}
		out = append(out, e)
	}
	return out
}

// attempt is what ended f.
func (g *generalizer) attempt(f func()) (why *Error) {
	defer func() {
		e := recover()
		if err, ok := e.(*Error); ok {
			why = err
		} else if e != nil {
			panic(e)
		}
	}()
	f()
	return nil
}

// holds reports whether the import with numbers does what is expected of it.
func (r *prober) holds(c config, want []expected, at map[string]int64) bool {
	x, err := r.build(c, at)
	if err != nil || len(x.trace) != len(want) {
		return false
	}
	known := map[string]int64{}
	for i, s := range x.trace {
		if s.p != want[i].p || len(s.list) != len(want[i].list) {
			return false
		}
		for j, n := range s.list {
			d := want[i].list[j]
			k, ok := d.Int()
			if !ok {
				text := d.String()
				if k, ok = known[text]; !ok {
					if k, ok = d.Eval(at).Int(); !ok {
						return false
					}
					known[text] = k
				}
			}
			if k != n {
				return false
			}
		}
	}
	return true
}

// below and above are sizes at which programs tend to change: small ones, powers of two
// and those around them, round numbers.
var (
	below = []int64{97, 96, 80, 65, 64, 63, 50, 48, 40, 33, 32, 31, 25, 24, 20, 17, 16, 15, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	above = []int64{
		64, 77, 100, 127, 128, 129, 197, 224, 255, 256, 257, 384, 511, 512, 513, 640, 1000, 1023, 1024, 1025, 1500, 2000, 2047, 2048, 2049,
		4096, 4097, 8192, 16384, 32768, 65536, 131072,
	}
)

// minResidues is how many numbers one after the other a guessed quotient must be right for.
const minResidues = 8

// limits are the sizes for which the program holds: for each size what lies between the
// nearest numbers at which an import differs. All together they must hold too.
func (r *prober) limits(c config, want []expected, divisors map[string]int64) (all []op.Limits) {
	base := r.sample(c, 0)
	least := maps.Clone(base)
	for _, k := range c.free() {
		symbol, numbers, m := c.symbol[k], c.numbers(k), c.multiple[k]
		ok := func(n int64) bool {
			at := maps.Clone(base)
			at[symbol] = n
			return r.holds(c, want, at)
		}
		// last is the good number that is the nearest to a bad one.
		last := func(good, bad int64) int64 {
			for good+1 < bad || bad+1 < good {
				if mid := good + (bad-good)/2; ok(mid) {
					good = mid
				} else {
					bad = mid
				}
			}
			return good
		}
		if d := divisors[symbol]; d > 0 {
			for n := range max(d, minResidues) {
				if !ok(numbers[0] + n) {
					fail("what the model does at %s=%d follows no known formula", symbol, numbers[0]+n)
				}
			}
		}
		l := op.Limits{Symbol: symbol, Min: 1}
		good := slices.Min(numbers)
		for _, n := range below {
			if n = (n + m - 1) / m; n >= good {
				continue
			}
			if !ok(n) {
				l.Min = last(good, n)
				break
			}
			good = n
		}
		good = slices.Max(numbers)
		for _, n := range above {
			if n /= m; n <= good {
				continue
			}
			if !ok(n) {
				l.Max = last(good, n)
				break
			}
			good = n
		}
		least[symbol] = l.Min
		all = append(all, l)
	}
	equal := maps.Clone(base)
	for _, l := range all {
		equal[l.Symbol] = slices.Max(mapped(all, func(l op.Limits) int64 { return l.Min })) + 4
	}
	if len(all) > 1 && (!r.holds(c, want, least) || !r.holds(c, want, equal)) {
		fail("what the model does depends on several sizes together")
	}
	return all
}
