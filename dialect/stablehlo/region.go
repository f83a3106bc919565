package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// entry is the only block of region i, which takes count values: its arguments, or the
// parts of those that are compound. The types of the arguments tell which these are; there
// are none where no value is compound.
func (n *node) entry(i, count int) (b *ast.Block, ts []types.Type) {
	n.must(i < len(n.t.Regions) && len(n.t.Regions[i].Blocks) == 1, "DM142", "%s needs a region of one block", n.name)
	b = n.t.Regions[i].Blocks[0]
	args := n.args(b)
	takes := len(args)
	if len(n.parts) > 0 && takes > 0 {
		ts = make([]types.Type, len(args))
		for k, a := range args {
			if a.Type.Empty() && k < len(n.kinds) {
				ts[k] = n.kinds[k]
			} else if !a.Type.Empty() {
				ts[k] = n.typeAt(a.Type)
			}
		}
		takes = len(splitTypes(ts))
	}
	n.must(takes == count, "DM142", "the region of %s takes %d values; expected %d", n.name, takes, count)
	return b, ts
}

// args are the arguments of a block, which a pretty form may write in front of it; that
// of reductions has the two for each operand beside each other.
func (n *node) args(b *ast.Block) []ast.BlockArg {
	args := b.Args
	if len(args) == 0 {
		args = n.t.Defs
	}
	if len(args) == 0 && n.t.Func != nil {
		args = n.t.Func.Args
	}
	k := len(args) / 2
	if len(b.Args) > 0 || !slices.Contains(n.words, "init") || len(args) != 2*k {
		return args
	}
	generic := make([]ast.BlockArg, 2*k)
	for i := range k {
		generic[i], generic[k+i] = args[2*i], args[2*i+1]
	}
	return generic
}

// run converts the ops of region i with values as its arguments, where the builder
// stands, and returns what the region passes on.
func (n *node) run(i int, values []*ir.Value) []*ir.Value {
	b, ts := n.entry(i, len(values))
	defer n.enter()()
	if n.name == "stablehlo.sort" {
		values = n.pairwise(values)
	}
	values = n.joined(values, ts)
	for k, a := range n.args(b) {
		n.scope.names[a.Name] = []*ir.Value{values[k]}
	}
	return n.split(n.block(b))
}

// runFor is run for many elements at once: values have the sizes of batch or none, and
// so have the results.
func (n *node) runFor(i int, batch []int, values []*ir.Value) []*ir.Value {
	outer := n.importer.batch
	n.importer.batch = batch
	defer func() { n.importer.batch = outer }()
	out := slices.Clone(n.run(i, values))
	for k, v := range out {
		out[k] = n.trailing(v, batch)
	}
	return out
}

// oneFor is runFor of a region that passes on one value.
func (n *node) oneFor(i int, batch []int, values []*ir.Value) *ir.Value {
	out := n.runFor(i, batch, values)
	n.must(len(out) == 1, "DM142", "the region of %s passes on %d values; expected one", n.name, len(out))
	return out[0]
}

// inRegion builds in a new region of o, whose arguments have the types and names of
// likes.
func (n *node) inRegion(o *ir.Op, likes []*ir.Value, build func(args []*ir.Value) []*ir.Value) {
	b := o.AddRegion(likes...)
	for _, a := range b.Args {
		a.Type = plain(a.Type)
	}
	outer := n.b
	n.b = &ir.Builder{Block: b, At: outer.At}
	defer func() { n.b = outer }()
	vs := slices.Clone(build(b.Args))
	for i, v := range vs {
		vs[i] = n.as(v, plain(v.Type))
	}
	n.open("yield", vs, nil)
}

// body is region i of an op on scalars, built only to be looked at: what it passes on,
// and its arguments. The types of these are elems.
func (n *node) body(i int, elems ...types.Elem) (results, args []*ir.Value) {
	host := &ir.Op{Name: "func.func"}
	var likes []*ir.Value
	for _, e := range elems {
		likes = append(likes, &ir.Value{Type: tensorOf(e)})
		if n.side > 0 { // complex numbers, of which one part is looked at
			likes = append(likes, &ir.Value{Type: tensorOf(e)})
		}
	}
	b := host.AddRegion(likes...)
	outer, batch, bare, loose := n.b, n.importer.batch, n.bare, n.loose
	n.importer.b, n.importer.batch, n.bare, n.loose = &ir.Builder{Block: b, At: outer.At, Loose: true}, nil, false, true
	defer func() { n.importer.b, n.importer.batch, n.bare, n.loose = outer, batch, bare, loose }()
	results = n.run(i, b.Args)
	if n.side == 0 {
		return results, b.Args
	}
	side := func(vs []*ir.Value) (out []*ir.Value) {
		for k := n.side - 1; k < len(vs); k += 2 {
			out = append(out, vs[k])
		}
		return out
	}
	return side(results), side(b.Args)
}

// combiners are the ops that combine two values, and the named reductions they are.
var combiners = map[string]string{"dm.add": "add", "dm.mul": "mul", "dm.max": "max", "dm.min": "min", "dm.and": "and", "dm.or": "or", "dm.xor": "xor"}

// combiner is the name of the function that region i applies to two values of type e:
// one of combiners, "set" for the second value; "" for others.
func (n *node) combiner(i int, e types.Elem) string {
	results, args := n.body(i, e, e)
	n.must(len(results) == 1, "DM142", "the region of %s passes on %d values; expected one", n.name, len(results))
	return combinerOf(results[0], args)
}

func combinerOf(v *ir.Value, args []*ir.Value) string {
	if v == args[1] {
		return "set"
	}
	v = narrow(v)
	if v.Op == nil || len(v.Op.Operands) != 2 {
		return ""
	}
	x, y := narrow(v.Op.Operands[0]), narrow(v.Op.Operands[1])
	if x == args[0] && y == args[1] || x == args[1] && y == args[0] {
		return combiners[v.Op.Name]
	}
	return ""
}

// narrow is what v converts from an element type to its wider one or back.
func narrow(v *ir.Value) *ir.Value {
	if v.Op != nil && v.Op.Name == "dm.convert" {
		if x := v.Op.Operands[0]; widened(x.Elem()) == v.Elem() || widened(v.Elem()) == x.Elem() {
			return x
		}
	}
	return v
}

// reduction is the named reduction of numbers of type e that a combiner is, and the
// reductions of i1 that and and or are.
func reduction(combiner string, e types.Elem) string {
	switch combiner {
	case "add", "mul", "max", "min":
		return combiner
	case "or":
		if e == types.I1 {
			return "max"
		}
	case "and":
		if e == types.I1 {
			return "min"
		}
	}
	return ""
}

// isNeutral reports whether v is a constant that the combiner leaves all values of its
// type as they are with.
func isNeutral(combiner string, v *ir.Value) bool {
	d := constantOf(v)
	if d == nil || d.Len() == 0 || !d.Splat && d.Len() != 1 {
		return false
	}
	want, ok := neutral(combiner, v.Elem())
	if !ok {
		return false
	}
	if v.Elem().IsFloat() {
		return d.Float(0) == want.Float(0)
	}
	return d.Int(0) == want.Int(0)
}

// neutral is the number that the combiner leaves all numbers of type e as they are
// with.
func neutral(combiner string, e types.Elem) (*types.Dense, bool) {
	t := tensorOf(e)
	low, high := limits(e)
	switch {
	case combiner == "add", combiner == "or", combiner == "xor":
		return types.SplatOf(t, 0), true
	case combiner == "mul":
		return types.SplatOf(t, 1), true
	case combiner == "and" && e == types.I1:
		return types.SplatOf(t, 1), true
	case combiner == "and":
		return types.IntOf(t, -1), true
	case combiner == "max":
		return low, true
	case combiner == "min":
		return high, true
	}
	return nil, false
}

// constantOf is the literal that v is, nil where it is none.
func constantOf(v *ir.Value) *types.Dense {
	for v.Op != nil && (v.Op.Name == "dm.reshape" || v.Op.Name == "dm.broadcast") {
		v = v.Op.Operands[0]
	}
	if v.Op == nil || v.Op.Name != "dm.constant" {
		return nil
	}
	d, _ := v.Op.Attr("value").(*types.Dense)
	return d
}
