package raise

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Cross entropy is the negative logarithm of the softmax at the label, or the logarithm
// of the sum of exponentials less the logit there. dm.cross_entropy takes the nearest
// class for a label outside, as dm.gather does; programs that give NaN there choose it
// for each row, and so does what they are raised to.

// quiet is the NaN that printers write.
var quiet = math.Float64frombits(0x7FF8_0000_0000_0000)

// losses are the cross entropies that o may end.
func losses(o *ir.Op) (out []*guess) {
	var gathers []*ir.Op
	guards := []*ir.Value{nil}         // where rows have a loss, of those that are NaN otherwise
	ignored := []int64{op.IgnoresNone} // labels of rows that do not count
	queue := []*ir.Op{o}
	for i := 0; i < len(queue); i++ {
		p := queue[i]
		switch {
		case p.Name == "dm.gather":
			gathers = append(gathers, p)
			continue
		case p.Name == "dm.select":
			if n, is := numberOf(p.Operands[2]); is && math.IsNaN(n) {
				guards = append(guards, base(p.Operands[0]))
			} else if c := base(p.Operands[0]).Op; c != nil && c.Name == "dm.compare" && op.Str(c, "direction") == "ne" {
				if r := rangeOf(c.Operands[1], maxRange); r.known && r.low == r.high {
					ignored = append(ignored, r.low)
				}
			}
		}
		for _, v := range p.Operands {
			if q := v.Op; q != nil && v.Elem().IsFloat() && !slices.Contains(queue, q) && len(queue) < maxNear && onTheWay(q) {
				queue = append(queue, q)
			}
		}
	}
	for _, g := range gathers[:min(2, len(gathers))] {
		for _, x := range logits(g) {
			for _, guard := range guards[:min(3, len(guards))] {
				for _, i := range ignored[:min(2, len(ignored))] {
					out = append(out, crossEntropies(o, g, x, guard, i)...)
				}
			}
		}
	}
	return out
}

// onTheWay reports whether o may stand between a gather of logits and the end of a loss.
func onTheWay(o *ir.Op) bool {
	d := op.Of(o)
	if d == nil || len(o.Results) != 1 || len(o.Regions) > 0 {
		return false
	}
	switch o.Name {
	case "dm.gather", "dm.reduce", "dm.mean", "dm.logsumexp", "dm.reshape", "dm.transpose", "dm.broadcast":
		return true
	}
	return d.Is(op.Pointwise)
}

// logits are the values that g may take the logits, or what is computed from them, of.
func logits(g *ir.Op) (out []*ir.Value) {
	v := g.Operands[0]
	for range 4 {
		v = unconverted(v)
		if len(shapeOf(v)) > 0 && !slices.Contains(out, v) {
			out = append(out, v)
		}
		if v.Op == nil || v.Op.Name != "dm.log_softmax" && v.Op.Name != "dm.sub" {
			break
		}
		v = v.Op.Operands[0]
	}
	slices.Reverse(out)
	return out
}

// crossEntropies are those of logits x and the indices of g that o may be. Rows where
// guard, if any, is false are NaN; those with the label ignored do not count.
func crossEntropies(o, g *ir.Op, x, guard *ir.Value, ignored int64) (out []*guess) {
	result := o.Results[0].Tensor()
	gd, ok := op.Dim(g, "dim", g.In(0).Rank())
	if !ok || !x.Elem().IsFloat() {
		return nil
	}
	labels := base(g.Operands[1])
	usual := op.Lookup(op.Prefix + "cross_entropy").Attr("ignore_index").Default.(types.Int).V
	implied := ignored == usual || ignored == op.IgnoresNone && !canBe(labels, usual, guard)
	for d := len(shapeOf(x)) - 1; d >= 0; d-- {
		if !shapeOf(x)[d].Equal(g.In(0).Shape[gd]) {
			continue
		}
		rows := slices.Delete(slices.Clone(shapeOf(x)), d, d+1)
		if !labels.Tensor().Elements().Equal(dim.Prod(rows...)) {
			continue
		}
		for _, reduction := range []string{"none", "mean", "sum"} {
			if one := isScalar(result); one == (reduction == "none") && !(one && len(rows) == 0) {
				continue
			}
			guess := &guess{
				name: "cross_entropy", operands: []*ir.Value{x, labels}, shapes: [][]dim.Dim{rows}, wide: reduction != "none", finite: true,
				implied: attrs("ignore_index", types.Int{V: ignored}),
			}
			each := reduction
			if guard != nil {
				each = "none"
				guess.also = []*ir.Value{guard}
			}
			if d != len(shapeOf(x))-1 {
				guess.attrs = attrs("dim", types.Int{V: int64(d)})
			}
			if each != "mean" {
				guess.attrs = append(guess.attrs, attrs("reduction", types.Keyword(each))...)
			}
			if !implied {
				guess.attrs, guess.implied = append(guess.attrs, guess.implied...), nil
			}
			guess.then = func(b *op.Builder, v *ir.Value) *ir.Value {
				if guard != nil {
					v = over(b, chosen(b, guard, v), reduction)
				}
				return b.Reshape(v, result.Shape...)
			}
			out = append(out, guess)
		}
	}
	return out
}

// chosen is v where cond, of another shape, holds, NaN elsewhere.
func chosen(b *op.Builder, cond, v *ir.Value) *ir.Value {
	t := v.Tensor().With()
	nan := b.Value("constant", nil, attrs("value", types.SplatOf(t, quiet)), t)
	nan.Name = "%nan"
	return b.Value("select", []*ir.Value{b.Reshape(cond, v.Tensor().Shape...), v, nan}, nil)
}

// over is the losses of rows as a reduction combines them.
func over(b *op.Builder, losses *ir.Value, reduction string) *ir.Value {
	switch reduction {
	case "mean":
		return b.Value("mean", []*ir.Value{losses}, nil)
	case "sum":
		return b.Value("reduce", []*ir.Value{losses}, attrs("kind", types.Keyword("add")))
	}
	return losses
}

func isScalar(t *types.Tensor) bool {
	n, known := t.Elements().Int()
	return known && n == 1
}

// canBe reports whether a label of a row that guard, if any, does not make NaN can be n:
// not if it lies outside of what labels can be, or guard is false for it.
func canBe(labels *ir.Value, n int64, guard *ir.Value) bool {
	if r := rangeOf(labels, maxRange); r.known && (n < r.low || n > r.high) {
		return false
	}
	return guard == nil || !implies(guard, labels, n, maxRange)
}

// implies reports whether guard, a conjunction of comparisons of labels with numbers in
// their order, is false where the label is n.
func implies(guard, labels *ir.Value, n int64, depth int) bool {
	o := unshaped(guard).Op
	if o == nil || depth == 0 || !sameSize(guard, labels) {
		return false
	}
	switch o.Name {
	case "dm.and":
		return implies(o.Operands[0], labels, n, depth-1) || implies(o.Operands[1], labels, n, depth-1)
	case "dm.compare":
		holds, known := decided(op.Str(o, "direction"), span{n, n, true}, rangeOf(o.Operands[1], maxRange))
		return known && holds == 0 && unshaped(o.Operands[0]) == unshaped(labels)
	}
	return false
}

func sameSize(v, w *ir.Value) bool {
	return v.Tensor() != nil && v.Tensor().Elements().Equal(w.Tensor().Elements())
}
