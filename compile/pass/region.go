package pass

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// RegionAttr marks a region of control flow while it is a pass's unit.
const RegionAttr = "dm.region"

// inherited are the attributes of a function that its regions have too.
var inherited = []string{"dm.in_place"}

// Controls reports whether o decides which of its regions run, and how often:
// for passes such an op is one step, and each region a function of its own.
func Controls(o *ir.Op) bool { return o.Name == op.While || o.Name == op.If }

// IsRegion reports whether f is what Regions makes of a region.
func IsRegion(f *ir.Func) bool { return f.Op.Attr(RegionAttr) != nil }

// InRegions is p for a function and then, in the same way, for each region of
// its control flow.
func InRegions(p Pass) Pass {
	q := p
	q.Run = func(u *Unit) error {
		if err := p.Run(u); err != nil {
			return err
		}
		return Regions(u, q.Run)
	}
	return q
}

// Regions gives each region of the control flow in the body of u's function, not
// of that within regions, to run as a unit of its own; see Outlined. What run makes
// of the body is the region's afterwards.
func Regions(u *Unit, run func(*Unit) error) error {
	for _, o := range slices.Clone(u.Func.Body.Ops) {
		if !Controls(o) {
			continue
		}
		for n := range o.Regions {
			if o.Body(n) == nil {
				continue
			}
			err := Outlined(u.Func, o, n, func(f *ir.Func, _ []*ir.Value) error {
				v := *u
				v.Func = f
				err := run(&v)
				u.Warnings = v.Warnings
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Outlined calls use with region n of o, an op of the body of f, and the values
// that it captures. It comes as a function whose arguments are those of the
// region's block and then one for each captured value, and whose body is that
// block, which ends in its dm.yield. Afterwards the region uses the captured
// values themselves again.
func Outlined(f *ir.Func, o *ir.Op, n int, use func(region *ir.Func, captured []*ir.Value) error) error {
	r := o.Regions[n]
	if len(r.Blocks) != 1 {
		return Errorf(o, "DM804", "%s branches between blocks", o.Name)
	}
	b := r.Blocks[0]
	if t := b.Terminator(); t == nil || t.Name != op.Yield {
		return Errorf(o, "DM804", "a region of %s does not end in dm.yield", o.Name)
	}
	g := &ir.Func{Name: f.Name, Op: &ir.Op{Name: op.Func, Span: o.Span, Head: o.Head}, Body: b}
	for _, a := range f.Op.Attrs {
		if slices.Contains(inherited, a.Name) {
			g.Op.SetAttr(a.Name, a.Value)
		}
	}
	g.Op.SetAttr("sym_name", types.Str(f.Name))
	g.Op.SetAttr(RegionAttr, types.Bool(true))
	own := len(b.Args)
	carried := 0 // only the body of a loop may write over what it is given
	if o.Name == op.While && n == 1 {
		carried = own
	}
	g.Op.SetAttr(op.CarriedAttr, types.Int{V: int64(carried)})
	captured := capture(r, b)
	g.Op.Regions = []*ir.Region{{Op: g.Op, Blocks: r.Blocks}}
	b.Region = g.Op.Regions[0]
	g.Args = b.Args
	g.Retype()
	err := use(g, captured)
	b = g.Body
	outer := map[*ir.Value]*ir.Value{}
	for i, v := range captured {
		outer[g.Args[own+i]] = v
	}
	uses := map[*ir.Value][]ir.Use{}
	ir.Walk(b.Ops, func(p *ir.Op) bool {
		for i, v := range p.Operands {
			if w := outer[v]; w != nil {
				p.Operands[i] = w
				uses[w] = append(uses[w], ir.Use{Op: p, Index: i})
			}
		}
		return true
	})
	for _, v := range captured {
		v.AddUses(uses[v])
	}
	b.Args = b.Args[:own:own]
	b.Region, r.Blocks = r, []*ir.Block{b}
	return err
}

// capture makes arguments of b, the block of region r, for the values that its
// ops take from outside, and returns these.
func capture(r *ir.Region, b *ir.Block) []*ir.Value {
	captured := ir.CapturedValues(r)
	b.Args = slices.Clone(b.Args)
	arg := make(map[*ir.Value]*ir.Value, len(captured))
	for _, v := range captured {
		a := &ir.Value{Name: v.Name, Type: v.Type, Block: b, Index: len(b.Args), Span: v.Span}
		arg[v] = a
		b.Args = append(b.Args, a)
	}
	inside := map[*ir.Op]bool{}
	ir.Walk(b.Ops, func(p *ir.Op) bool {
		inside[p] = true
		for i, v := range p.Operands {
			if a := arg[v]; a != nil {
				p.Operands[i] = a
				a.Uses = append(a.Uses, ir.Use{Op: p, Index: i})
			}
		}
		return true
	})
	for _, v := range captured {
		v.Uses = slices.DeleteFunc(v.Uses, func(u ir.Use) bool { return inside[u.Op] })
	}
	return captured
}
