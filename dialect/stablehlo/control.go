package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// move converts a region of o and moves its block into a region of to, ended by
// dm.yield.
func (c *call) move(r *ir.Region, to *ir.Op, args []*ir.Value) error {
	if len(r.Blocks) != 1 || len(r.Blocks[0].Args) != len(args) {
		return invalid("a region of %s has not %d arguments", c.o.Name, len(args))
	}
	b := r.Blocks[0]
	for i, a := range b.Args {
		a.Type = args[i].Type
	}
	if err := c.nested(func() { c.block(b) }); err != nil {
		return err
	}
	if last := b.Terminator(); last == nil || last.Name != op.Yield {
		return invalid("a region of %s does not return", c.o.Name)
	}
	region := &ir.Region{Op: to, Blocks: []*ir.Block{b}}
	b.Region = region
	to.Regions = append(to.Regions, region)
	return nil
}

// convertReturn ends a region.
func convertReturn(c *call) ([]*ir.Value, error) {
	c.b.Builder.Op(op.Yield, slices.Clone(c.o.Operands), nil)
	return nil, nil
}

func convertWhile(c *call) ([]*ir.Value, error) {
	if len(c.o.Regions) != 2 {
		return nil, invalid("a loop needs a condition and a body")
	}
	inits := c.o.Operands
	regions := c.o.Regions
	o := c.b.Builder.Op(op.Prefix+"while", slices.Clone(inits), nil, ir.Types(inits)...)
	c.o.Regions = nil
	for _, r := range regions {
		if err := c.move(r, o, inits); err != nil {
			return nil, err
		}
	}
	return o.Results, nil
}

func convertIf(c *call) ([]*ir.Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	if len(c.o.Regions) != 2 {
		return nil, invalid("if needs two regions")
	}
	regions := c.o.Regions
	c.o.Regions = nil
	o := c.b.Builder.Op(op.Prefix+"if", []*ir.Value{c.in(0)}, nil, c.outs...)
	for _, r := range regions {
		if err := c.move(r, o, nil); err != nil {
			return nil, err
		}
	}
	return o.Results, nil
}

// convertCase is an if for each branch but the last, which also an index out of range
// takes.
func convertCase(c *call) ([]*ir.Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	regions := c.o.Regions
	switch {
	case len(regions) == 0:
		return nil, invalid("case needs a branch")
	case len(regions) == 1 && len(regions[0].Blocks) == 1:
		return c.inline(regions[0].Blocks[0], nil)
	}
	c.o.Regions = nil
	return c.branch(regions, 0)
}

// branch is the choice between the branches from number i on.
func (c *call) branch(regions []*ir.Region, i int) ([]*ir.Value, error) {
	index := c.in(0)
	o := c.b.Builder.Op(op.Prefix+"if", []*ir.Value{c.compare("eq", index, c.scalar(index.Elem(), float64(i)))}, nil, c.outs...)
	if err := c.move(regions[i], o, nil); err != nil {
		return nil, err
	}
	if i == len(regions)-2 {
		return o.Results, c.move(regions[i+1], o, nil)
	}
	outer := c.b
	c.b = builder(o.AddRegion(), c.o)
	inner, err := c.branch(regions, i+1)
	c.b.Builder.Op(op.Yield, inner, nil)
	if err == nil {
		err = c.b.Err()
	}
	c.b = outer
	return o.Results, err
}

// convertComposite calls the function that a composite decomposes into.
func convertComposite(c *call) ([]*ir.Value, error) {
	callee := c.attrs["decomposition"]
	if callee == "" {
		return nil, invalid("no decomposition")
	}
	o := c.b.Builder.Op(op.Call, slices.Clone(c.o.Operands), []types.Named{{Name: "callee", Value: types.ParseSymbol(callee)}}, c.outs...)
	return o.Results, nil
}
