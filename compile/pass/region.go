package pass

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Body is the block of ops that a pass works on: the body of a function, or of a
// region of its control flow.
type Body struct {
	*ir.Block
	Func *ir.Func // that the block lies in
}

// BodyOf is the body of fn; its block is nil for a declaration.
func BodyOf(fn *ir.Func) Body { return Body{fn.Body, fn} }

// RegionOf is region n of o, an op of fn that Controls. It must be one block
// that ends in dm.yield.
func RegionOf(fn *ir.Func, o *ir.Op, n int) (Body, error) {
	r := o.Regions[n]
	if len(r.Blocks) != 1 {
		return Body{}, Errorf(o, "DM804", "%s branches between blocks", o.Name)
	}
	b := Body{r.Blocks[0], fn}
	if t := b.Terminator(); t == nil || t.Name != op.Yield {
		return Body{}, Errorf(o, "DM804", "a region of %s does not end in dm.yield", o.Name)
	}
	return b, nil
}

// IsRegion reports whether b is a region of control flow.
func (b Body) IsRegion() bool { return b.Block != b.Func.Body }

// OneBlock reports whether b is all of its function or region.
func (b Body) OneBlock() bool { return b.Block != nil && len(b.Region.Blocks) == 1 }

// Inputs are the values that b takes: the arguments of its block, and those that
// a region captures.
func (b Body) Inputs() []*ir.Value {
	if !b.IsRegion() {
		return b.Args
	}
	return slices.Concat(b.Args, ir.CapturedValues(b.Region))
}

// Defines reports whether v is the result of an op of b, not of one in a region.
func (b Body) Defines(v *ir.Value) bool { return v.Op != nil && v.Op.Parent == b.Block }

// Controls reports whether o decides which of its regions run, and how often:
// for passes such an op is one step, and each region a body of its own.
func Controls(o *ir.Op) bool { return o.Name == op.While || o.Name == op.If }

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

// Regions runs run on each region of the control flow in u's body, not of that
// within regions, as the body of a unit.
func Regions(u *Unit, run func(*Unit) error) error {
	for _, o := range slices.Clone(u.Body().Ops) {
		if !Controls(o) {
			continue
		}
		for n := range o.Regions {
			if o.Body(n) == nil {
				continue
			}
			b, err := RegionOf(u.Func, o, n)
			if err != nil {
				return err
			}
			v := *u
			v.region = b.Block
			err = run(&v)
			u.Warnings, u.Gaps = v.Warnings, v.Gaps
			if err != nil {
				return err
			}
		}
	}
	return nil
}
