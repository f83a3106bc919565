package stablehlo

import (
	"encoding/binary"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// maxKnown bounds the elements of the integers that are computed at import: shapes, and numbers
// that they are made of.
const maxKnown = 64

// maxFolded bounds the elements of constants that stand for such integers: shapes do, and tables that a
// program counts up do not become constants.
const maxFolded = 8

// known are the integers that v holds whatever the arguments are, nil where that cannot be told: v
// is computed from constants by arithmetic, comparisons and moves. Truth values are 0 and 1. It is
// for programs with open sizes, whose shapes are computed so; of others nothing is known.
func (c *importer) known(v *ir.Value) []int64 {
	t := v.Tensor()
	if !c.dynamic || t == nil || !t.Elem.IsInt() || t.Elem == types.UI64 || v.Op == nil {
		return nil
	}
	if ns, is := c.integers[v]; is {
		return ns
	}
	n, ok := t.Elements().Int()
	if !ok || n > maxKnown {
		return nil
	}
	ns := c.evaluated(v.Op, t)
	if int64(len(ns)) != n {
		ns = nil
	}
	for i, x := range ns {
		ns[i] = types.IntOf(tensorOf(t.Elem), x).Int(0) // as the type wraps it
		if t.Elem == types.I1 {
			ns[i] = x & 1
		}
	}
	c.integers[v] = ns
	return ns
}

// evaluated are the elements of the result of o, of type t; nil where they are not known.
func (c *importer) evaluated(o *ir.Op, t *types.Tensor) []int64 {
	if o.Name == op.Constant {
		d, ok := o.Attr("value").(*types.Dense)
		if !ok || d.File() != nil {
			return nil
		}
		return slices.Clone(d.Spread())
	}
	in := make([][]int64, len(o.Operands))
	for i, v := range o.Operands {
		if in[i] = c.known(v); in[i] == nil {
			return nil
		}
	}
	switch o.Name {
	case "dm.reshape":
		return slices.Clone(in[0])
	case "dm.convert":
		out := slices.Clone(in[0])
		for i, x := range out {
			if t.Elem == types.I1 && x != 0 {
				out[i] = 1
			}
		}
		return out
	case "dm.broadcast":
		if len(in[0]) == 1 {
			return repeated64(in[0][0], t)
		}
	case "dm.concatenate":
		d, _ := op.Dim(o, "dim", t.Rank())
		outer, _ := dim.Prod(t.Shape[:d]...).Int()
		var out []int64
		for i := range int(outer) {
			for _, x := range in {
				part := len(x) / int(outer)
				out = append(out, x[i*part:(i+1)*part]...)
			}
		}
		return out
	case "dm.slice":
		start, limit, strides := op.Ints(o, "start_indices"), op.Ints(o, "limit_indices"), op.Ints(o, "strides")
		if t.Rank() == 1 && op.Attr(o, "dims") == nil {
			step := int64(1)
			if len(strides) == 1 {
				step = strides[0]
			}
			var out []int64
			for i := start[0]; i < limit[0] && i < int64(len(in[0])); i += step {
				out = append(out, in[0][i])
			}
			return out
		}
	case "dm.iota":
		if start, step := op.Float(o, "start"), op.Float(o, "step"); t.Rank() == 1 && start == float64(int64(start)) && step == float64(int64(step)) {
			out := repeated64(int64(start), t)
			for i := range out {
				out[i] += int64(i) * int64(step)
			}
			return out
		}
	default:
		f := integerFunctions[o.Name]
		if f == nil {
			return nil
		}
		out := repeated64(0, t)
		for i := range out {
			args := make([]int64, len(in))
			for k, x := range in {
				switch {
				case len(x) == 1:
					args[k] = x[0]
				case len(x) == len(out):
					args[k] = x[i]
				default:
					return nil
				}
			}
			x, ok := f(o, args)
			if !ok {
				return nil
			}
			out[i] = x
		}
		return out
	}
	return nil
}

func repeated64(x int64, t *types.Tensor) []int64 {
	n, _ := t.Elements().Int()
	return slices.Repeat([]int64{x}, int(n))
}

// integerFunctions compute one element of a result from those of the operands; ok is false where
// that is not defined.
var integerFunctions = map[string]func(o *ir.Op, x []int64) (y int64, ok bool){
	"dm.add": func(_ *ir.Op, x []int64) (int64, bool) { return x[0] + x[1], true },
	"dm.sub": func(_ *ir.Op, x []int64) (int64, bool) { return x[0] - x[1], true },
	"dm.mul": func(_ *ir.Op, x []int64) (int64, bool) { return x[0] * x[1], true },
	"dm.div": func(_ *ir.Op, x []int64) (int64, bool) {
		if x[1] == 0 || x[1] == -1 {
			return -x[0], x[1] != 0
		}
		return x[0] / x[1], true
	},
	"dm.rem": func(_ *ir.Op, x []int64) (int64, bool) {
		if x[1] == 0 || x[1] == -1 {
			return 0, x[1] != 0
		}
		return x[0] % x[1], true
	},
	"dm.max":  func(_ *ir.Op, x []int64) (int64, bool) { return max(x[0], x[1]), true },
	"dm.min":  func(_ *ir.Op, x []int64) (int64, bool) { return min(x[0], x[1]), true },
	"dm.and":  func(_ *ir.Op, x []int64) (int64, bool) { return x[0] & x[1], true },
	"dm.or":   func(_ *ir.Op, x []int64) (int64, bool) { return x[0] | x[1], true },
	"dm.xor":  func(_ *ir.Op, x []int64) (int64, bool) { return x[0] ^ x[1], true },
	"dm.not":  func(_ *ir.Op, x []int64) (int64, bool) { return ^x[0], true },
	"dm.neg":  func(_ *ir.Op, x []int64) (int64, bool) { return -x[0], true },
	"dm.abs":  func(_ *ir.Op, x []int64) (int64, bool) { return max(x[0], -x[0]), true },
	"dm.sign": func(_ *ir.Op, x []int64) (int64, bool) { return min(1, max(-1, x[0])), true },
	"dm.clamp": func(_ *ir.Op, x []int64) (int64, bool) {
		return min(max(x[0], x[1]), x[2]), true
	},
	"dm.select": func(_ *ir.Op, x []int64) (int64, bool) { return either(x[0] != 0, x[1], x[2]), true },
	"dm.compare": func(o *ir.Op, x []int64) (int64, bool) {
		holds, ok := false, true
		switch op.Str(o, "direction") {
		case "eq":
			holds = x[0] == x[1]
		case "ne":
			holds = x[0] != x[1]
		case "lt":
			holds = x[0] < x[1]
		case "le":
			holds = x[0] <= x[1]
		case "gt":
			holds = x[0] > x[1]
		case "ge":
			holds = x[0] >= x[1]
		default:
			ok = false
		}
		return either(holds, int64(1), 0), ok
	},
}

// folded has constants in place of the integers among vs that are known, so that shapes and trip
// counts follow from what the text says.
func (n *node) folded(vs []*ir.Value) []*ir.Value {
	out := vs
	for i, v := range vs {
		if v.Op == nil || v.Op.Name == op.Constant {
			continue
		}
		ns := n.known(v)
		if ns == nil || len(ns) > maxFolded {
			continue
		}
		if &out[0] == &vs[0] {
			out = slices.Clone(vs)
		}
		if v.Tensor().Rank() == 0 {
			out[i] = n.number(types.IntOf(v.Tensor(), ns[0]))
			continue
		}
		out[i] = n.constant(literal(v.Tensor(), ns))
	}
	return out
}

// literal is the constant of type t with the elements ns.
func literal(t *types.Tensor, ns []int64) *types.Dense {
	var data []byte
	for _, x := range ns {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))[:len(data)+int(t.Elem.Bytes())]
	}
	return types.DenseOf(t, data)
}
