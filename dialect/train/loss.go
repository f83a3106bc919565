package train

import (
	"encoding/binary"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// target is what the loss compares the output x with: its name and its type, nil where it needs none.
func (s *Spec) target(x *ir.Value) (name string, t *types.Tensor, err error) {
	out := x.Tensor()
	if out == nil || !out.Elem.IsFloat() {
		return "", nil, unfit("name another output with output=NAME", "the output is %s, and a loss is of floating-point numbers", x.Type)
	}
	switch s.Loss {
	case ownLoss:
		if out.Rank() != 0 {
			return "", nil, unfit("take a loss of the output, as loss=mse, or let the model return its loss", "loss=output takes an output that is a scalar, and this one is %s", out)
		}
		return "", nil, nil
	case "mse", "bce_with_logits":
		return "targets", plainType(out), nil
	}
	d, err := s.classes(out)
	if err != nil {
		return "", nil, err
	}
	shape := slices.Clone(out.Shape)
	return "labels", &types.Tensor{Elem: types.I64, Shape: slices.Delete(shape, d, d+1)}, nil
}

func plainType(t *types.Tensor) *types.Tensor { return &types.Tensor{Elem: t.Elem, Shape: t.Shape} }

// classes is the dimension of the classes: the last one of a matrix and of the logits of a sequence, [batch, place,
// class]; of images, [batch, class, y, x], the second.
func (s *Spec) classes(t *types.Tensor) (int, error) {
	rank := t.Rank()
	switch {
	case rank == 0:
		return 0, unfit("name another output with output=NAME", "the output is %s, and loss=%s takes a number for each class", t, s.Loss)
	case s.Dim == Auto && rank > 3:
		return 1, nil
	case s.Dim == Auto:
		return rank - 1, nil
	case s.Dim < -rank || s.Dim >= rank:
		return 0, unfit("", "dim=%d: the output, %s, has %d dimensions", s.Dim, t, rank)
	}
	return (s.Dim + rank) % rank, nil
}

// builder makes the ops of the loss and the update.
type builder struct{ *op.Builder }

func (b builder) number(t *types.Tensor, v float64) *ir.Value {
	return b.Value("constant", nil, []types.Named{{Name: "value", Value: types.SplatOf(t, v)}}, t)
}

// with is dm.name of x and a number.
func (b builder) with(name string, x *ir.Value, v float64) *ir.Value {
	return b.Binary(name, x, b.number(&types.Tensor{Elem: x.Elem()}, v))
}

// loss is the scalar for the output x and the target y.
func (b builder) loss(s *Spec, x, y *ir.Value) (*ir.Value, error) {
	switch s.Loss {
	case "cross_entropy":
		d, err := s.classes(x.Tensor())
		if d == x.Tensor().Rank()-1 {
			d = -1
		}
		return b.Value("cross_entropy", []*ir.Value{x, y}, stated("cross_entropy", named(
			"dim", types.Int{V: int64(d)}, "ignore_index", types.Int{V: s.IgnoreIndex},
			"label_smoothing", types.Float{V: s.LabelSmoothing}, "reduction", types.Keyword(s.Reduction)))), err
	case "nll":
		return b.likelihood(s, x, y)
	case "mse":
		d := b.Binary("sub", x, y)
		return b.reduced(s, b.Binary("mul", d, d)), nil
	case "bce_with_logits":
		return b.reduced(s, b.binaryCrossEntropy(x, y)), nil
	}
	return x, nil
}

// binaryCrossEntropy is (1 - y) · x + log(1 + exp(-x)), whose logarithm is taken behind the larger of its terms. The
// result does not depend on that shift m, and no gradient flows into it.
func (b builder) binaryCrossEntropy(x, y *ir.Value) *ir.Value {
	negative := b.Unary("neg", x)
	m := b.Unary("stop_gradient", b.with("max", negative, 0))
	sum := b.Binary("add", b.Unary("exp", b.Unary("neg", m)), b.Unary("exp", b.Binary("sub", negative, m)))
	rest := b.Binary("sub", b.number(&types.Tensor{Elem: y.Elem()}, 1), y)
	return b.Binary("add", b.Binary("mul", rest, x), b.Binary("add", m, b.Unary("log", sum)))
}

// reduced is the mean or the sum of all elements of x.
func (b builder) reduced(s *Spec, x *ir.Value) *ir.Value {
	rank := x.Tensor().Rank()
	if rank == 0 {
		return x
	}
	all := make([]int, rank)
	for i := range all {
		all[i] = i
	}
	if s.Reduction == "mean" {
		return b.Value("mean", []*ir.Value{x}, named("dims", op.IntList(all...)))
	}
	return b.Value("reduce", []*ir.Value{x}, named("dims", op.IntList(all...), "kind", types.Keyword("add")))
}

// likelihood is the negative of x, logarithms of probabilities, at the labels y: the cross entropy without the softmax.
func (b builder) likelihood(s *Spec, x, y *ir.Value) (*ir.Value, error) {
	t := x.Tensor()
	d, err := s.classes(t)
	if err != nil {
		return nil, err
	}
	var order []int
	var outer []dim.Dim
	rows := dim.Const(1)
	for i, size := range t.Shape {
		if i != d {
			order, outer, rows = append(order, i), append(outer, size), rows.Mul(size)
		}
	}
	flat := b.Reshape(b.Transpose(x, append(order, d)...), rows, t.Shape[d])
	taken := b.Value("gather", []*ir.Value{flat, b.Reshape(y, rows, dim.Const(1))}, named("dim", types.Int{V: 1}, "batch_dims", types.Int{V: 1}))
	loss := b.Unary("neg", b.Reshape(taken, outer...))
	ignored := b.Value("constant", nil, named("value", whole64(s.IgnoreIndex)), &types.Tensor{Elem: types.I64})
	counts := b.Value("compare", []*ir.Value{y, ignored}, named("direction", types.Keyword("ne")))
	loss = b.Value("select", []*ir.Value{counts, loss, b.number(&types.Tensor{Elem: t.Elem}, 0)}, nil)
	sum := *s
	sum.Reduction = "sum"
	total := b.reduced(&sum, loss)
	if s.Reduction == "sum" {
		return total, nil
	}
	return b.Binary("div", total, b.reduced(&sum, b.Convert(counts, t.Elem))), nil
}

// whole64 is the scalar v of i64.
func whole64(v int64) *types.Dense {
	return types.DenseOf(&types.Tensor{Elem: types.I64}, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// named are attributes, as name and value in turn.
func named(pairs ...any) []types.Named {
	var out []types.Named
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, types.Named{Name: pairs[i].(string), Value: pairs[i+1].(types.Attr)})
	}
	return out
}
