package microbatch

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// independent is the batch of a function of which nothing is known (unknown), as far as it shows: the dimension whose parts go
// through all contractions and need nothing of each other but numbers and statistics, as a loss and the variance of a batch.
// Those of weights meet in sums of activations, or leave contractions that do not have them. Where several do, as of a function
// that is a single product, it is the first dimension of what stands on the left of products. nil: there is none.
func independent(f *ir.Func) *candidate {
	given := initialized(f)
	behind := make([]int, len(f.Args))
	data := notWeights(f)
	for i, a := range f.Args {
		if !data[i] {
			behind[i] = 2
		}
		if !telling[strings.ToLower(strings.TrimPrefix(a.Name, "%"))] {
			behind[i]++
		}
	}
	tried := 0
	for _, c := range candidates(f, given, given, behind) {
		if tried++; tried > mostIndependent {
			break
		}
		b, problem := attempt(f, c, smallestFactor(c.size), given)
		if problem == nil && !b.sums() && shared(newWriter(f, b, 1)) == 0 {
			return &c
		}
	}
	return nil
}

// unknown reports whether neither f nor k says anything of what is no data but values that f initializes.
func unknown(f *ir.Func, k Known) bool {
	return k.Data == nil && !slices.Contains(k.Updated, true) && !markState(f, make([]bool, len(f.Args)))
}

// mostShared bounds the products that are not of one micro-batch: a part of all of them. Optimizers have such; where there are
// more, what is divided is a weight.
const mostShared = 8

// products is the FLOP of the contractions of f.
func products(f *ir.Func) (sum int64) {
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		if d := op.Of(o); d != nil && d.Family == op.Contraction && d.FLOP != nil {
			n, _ := d.FLOP(o).Int()
			sum += n
		}
		return true
	})
	return sum
}

// mostIndependent bounds how many candidates are divided to find one whose parts are independent.
const mostIndependent = 64

// telling are names of arguments that decide between two that could have the samples.
var telling = map[string]bool{
	"x": true, "xs": true, "input": true, "inputs": true, "input_ids": true, "ids": true, "tokens": true, "batch": true, "data": true, "images": true, "image": true,
}

// sums reports whether parts of the batch are added up to more than numbers and statistics, which begin with a reduction.
func (b *batch) sums() (some bool) {
	ir.Walk(b.Func.Body.Ops, func(o *ir.Op) bool {
		if o.Name == op.AllReduce && o.In(0) != nil && o.In(0).Rank() > 0 {
			from := o.Operands[0].Op
			some = some || from == nil || op.Of(from).Reduced == nil
		}
		return !some
	})
	return some
}

// isWeight reports whether v, and what is made of it alone, is used as weights are: on the right of products, as the table
// that indices read, as the factor or the bias of a larger value. Integers are numbers of rows or of classes.
func isWeight(v *ir.Value, seen map[*ir.Value]bool) bool {
	if seen[v] {
		return true
	}
	seen[v] = true
	if t := v.Tensor(); t != nil && !t.Elem.IsFloat() {
		return false
	}
	for _, u := range v.Uses {
		d := op.Of(u.Op)
		switch {
		case d == nil || u.Op.Name == op.Return:
			return false
		case d.Classes != nil && d.Family != op.Normalization: // a table that numbers of rows read
		case len(u.Op.Operands) == 1 && len(u.Op.Results) == 1:
			if !isWeight(u.Op.Results[0], seen) {
				return false
			}
		case d.Is(op.Pointwise):
			x, y := v.Tensor(), u.Op.Out(0)
			if x == nil || y == nil || x.Rank() >= y.Rank() && !broadcastBy(u.Op, v) {
				return false
			}
		case u.Index == 0:
			return false
		}
	}
	return len(v.Uses) > 0
}

// notWeights are the arguments of f that are used as something else than weights.
func notWeights(f *ir.Func) []bool {
	out := make([]bool, len(f.Args))
	for i, a := range f.Args {
		out[i] = !isWeight(a, map[*ir.Value]bool{})
	}
	return out
}

// broadcastBy reports whether v is repeated to the shape of the values that o, which is element-wise, takes beside it.
func broadcastBy(o *ir.Op, v *ir.Value) bool {
	return repeated(v) && slices.ContainsFunc(o.Operands, func(x *ir.Value) bool { return x != v && !repeated(x) })
}

// repeated reports whether v has more elements than the one value it is made of.
func repeated(v *ir.Value) bool {
	if v.Op == nil || len(v.Op.Operands) != 1 || v.Tensor() == nil || v.Op.In(0) == nil {
		return false
	}
	n, ok := v.Tensor().Elements().Int()
	m, known := v.Op.In(0).Elements().Int()
	return ok && known && m < n
}
