package stablehlo

import (
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

// conversion builds what an op computes and returns its results.
type conversion func(n *node) []*ir.Value

// conversions has a row for each op that can be imported, by its name without
// "stablehlo." or with the name of another dialect.
var conversions map[string]conversion

// pointwise are the conversions of ops that compute elements one by one, which also
// work inside reductions.
var pointwise map[string]conversion

func init() {
	pointwise = merged(elementwise(), numeric(), specials(), map[string]conversion{
		"constant": constant, "arith.constant": constant, "optimization_barrier": same,
		"broadcast_in_dim": scalar, "reshape": scalar, "func.call": inlined, "bitcast_convert": bitcastScalar,
	})
	conversions = merged(pointwise, shapes(), contractions(), reductions(), indexing(), controls(), dynamics(), customs(), randoms(), normalizations(), solvers(), shardings(), collectives(), complexes())
	conversions["broadcast_in_dim"], conversions["reshape"], conversions["bitcast_convert"] = broadcastInDim, reshape, bitcastConvert
}

func merged(tables ...map[string]conversion) map[string]conversion {
	all := map[string]conversion{}
	for _, t := range tables {
		for name, f := range t {
			all[name] = f
		}
	}
	return all
}

// scalar passes on a value of rank 0, which the op leaves as it is.
func scalar(n *node) []*ir.Value {
	n.takes(1)
	n.must(n.result(0).Rank() == 0, "DM142", "%s in the region of a reduction works on scalars", n.name)
	return n.in
}

// same passes on the operands.
func same(n *node) []*ir.Value { return n.in }

// convert converts one op and defines its results. Those of an op with a problem are
// defined as nil.
func (c *importer) convert(t *ast.Op) {
	outer := c.b.At
	defer func() { c.b.At = outer }()
	defer c.recovered(t, func() {
		for _, r := range t.Results {
			c.scope.names[r.Name] = make([]*ir.Value, min(max(1, r.Count), 1<<10))
		}
	})
	if t.Form == ast.Bad || c.poisoned(t) {
		panic(bailout{})
	}
	n := c.read(t)
	if c.batch == nil && !c.bare { // else it is that of the op with the region
		at := c.positionOf(t)
		if c.held {
			at.Span, at.Head = outer.Span, outer.Head
		}
		c.b.At = at
	}
	short := strings.TrimPrefix(n.name, "stablehlo.")
	table := conversions
	if c.batch != nil || c.bare {
		table = pointwise
	}
	f := table[short]
	if n.hasCompounds() {
		f = n.compoundConversion(short, f)
	}
	switch {
	case f == nil && conversions[short] != nil:
		n.unsupported("%s is not supported inside the region of a reduction", t.Name)
	case f == nil:
		n.unsupported("%s has no equivalent in the dialect", diag.Name(t.Name))
	}
	vs := f(n)
	if c.dynamic && c.batch == nil && !c.bare {
		vs = n.folded(vs)
	}
	n.annotate(vs)
	n.must(len(vs) >= len(n.out), "DM142", "%s has %d results, but %d are written", n.name, len(vs), len(n.out))
	if c.batch == nil && !c.bare {
		for i, want := range n.out {
			if !alike(vs[i].Type, want) {
				n.fail("DM143", "the result of %s is a %s, but is written as %s", n.name, vs[i].Type, want)
			}
		}
	}
	c.define(t.Results, vs)
}

// positionOf is where ops that come from t stand.
func (c *importer) positionOf(t *ast.Op) *ir.Op {
	at := &ir.Op{Span: t.Span(), Head: t.Head(), Loc: c.caller}
	if !t.Loc.Empty() {
		at.Loc = loc.Called(c.locs.Read(t.Text(c.src, t.Loc)), c.caller)
	}
	return at
}

// poisoned reports whether t reads a result of an op whose problem has been reported.
func (c *importer) poisoned(t *ast.Op) bool {
	for _, u := range t.Operands {
		if vs, i := c.scope.lookup(u.Name), max(0, int(u.Index)); i < len(vs) && vs[i] == nil {
			return true
		}
	}
	return false
}

// define makes the names of results stand for values, and gives these the names where
// they have none from the text.
func (c *importer) define(results []ast.Result, vs []*ir.Value) {
	at := 0
	for _, r := range results {
		count := min(int(r.Count), len(vs)-at)
		group := vs[at : at+count]
		at += count
		c.scope.names[r.Name] = group
		for i, v := range group {
			if x, ok := v.Type.(compound); ok && count == 1 {
				for k, p := range c.parts[v] {
					if p.Op != nil && !c.kept[p] {
						c.kept[p], p.Name = true, r.Name+x.suffixes()[k]
					}
				}
				continue
			}
			if v.Op == nil || c.kept[v] {
				continue
			}
			c.kept[v] = true
			switch {
			case count == 1:
				v.Name = r.Name
			case v.Op == group[0].Op && len(v.Op.Results) == count && v.Index == i:
				v.Name = r.Name + "#" + strconv.Itoa(i)
			}
		}
	}
}

// enter opens a scope of its own for a region.
func (c *importer) enter() (leave func()) {
	outer := c.scope
	c.scope = &scope{outer: outer, names: map[string][]*ir.Value{}}
	return func() { c.scope = outer }
}

// block converts the ops of b and returns what its terminator passes on.
func (n *node) block(b *ast.Block) []*ir.Value {
	for i, t := range b.Ops {
		switch canonical(t.Name) {
		case "func.return", "stablehlo.return", "sdy.return":
			r := &node{importer: n.importer, t: t, name: canonical(t.Name)}
			r.must(i == len(b.Ops)-1, "DM142", "ops follow this return")
			for _, u := range t.Operands {
				r.in = append(r.in, r.use(u, nil))
			}
			if n.batch == nil && !n.bare && !n.held { // the terminator that follows has the place of this one
				n.b.At = n.positionOf(t)
				if ops := n.b.Block.Ops; len(ops) > 0 && ops[len(ops)-1].Head.Start > t.Off { // of a call's body that ends the function
					n.b.At = &ir.Op{Span: ops[len(ops)-1].Span, Head: ops[len(ops)-1].Head}
				}
			}
			return r.in
		}
		n.importer.convert(t)
	}
	n.fail("DM142", "the body of %s does not end in return", n.name)
	return nil
}
