package onnx

import (
	"slices"

	"dmir/dialect/ir"
)

// Losses.

func init() {
	register(map[string]conversion{"NegativeLogLikelihoodLoss": convertNLL, "SoftmaxCrossEntropyLoss": convertCrossEntropy})
}

func (n *node) reductionName() string {
	r := n.str("reduction", "mean")
	if !slices.Contains([]string{"mean", "sum", "none"}, r) {
		fail("reduction %q", r)
	}
	return r
}

func convertNLL(n *node) []*ir.Value { return one(n.likelihood(n.in(0), n.in(1), n.opt(2))) }

// convertCrossEntropy is dm.cross_entropy where classes have no weights and the
// logarithms of the probabilities are not asked for.
func convertCrossEntropy(n *node) []*ir.Value {
	x, labels := n.in(0), n.in(1)
	if n.rank(x) < 2 || len(n.p.outputs) == 0 {
		fail("%d dimensions, %d outputs", n.rank(x), len(n.p.outputs))
	}
	ignored := n.attr("ignore_index")
	inside := ignored != nil && ignored.i >= 0 && ignored.i < int64(n.shape(x)[1])
	if rank, ok := n.ranks[n.p.outputs[0]]; ok && rank == n.rank(x) && n.reductionName() != "none" {
		// Deeploy's form: the logarithms of the probabilities are the one output.
		return one(n.make("log_softmax", []*ir.Value{x}, named("dim", 1)))
	}
	if n.opt(2) == nil && !n.has(1) && !inside {
		attrs := named("dim", 1, "reduction", n.reductionName())
		if ignored != nil {
			attrs = append(attrs, named("ignore_index", int(ignored.i))...)
		}
		return one(n.make("cross_entropy", []*ir.Value{x, n.index(labels)}, attrs))
	}
	p := n.make("log_softmax", []*ir.Value{x}, named("dim", 1))
	return []*ir.Value{n.likelihood(p, labels, n.opt(2)), p}
}

// likelihood is the negative of p, [N, C, …], at the labels, times the weights of the
// classes.
func (n *node) likelihood(p, labels, weights *ir.Value) *ir.Value {
	shape, s := n.shape(p), n.shape(labels)
	if len(shape) < 2 || !slices.Equal(slices.Delete(slices.Clone(shape), 1, 2), s) {
		fail("labels of shape %v for %v", s, shape)
	}
	classes := shape[1]
	e := p.Elem()
	labels = n.index(labels)
	var counts *ir.Value // where the label is not the one to ignore
	if a := n.attr("ignore_index"); a != nil {
		i := n.scalar(labels.Elem(), float64(a.i))
		counts = n.compare("ne", labels, i) // what a gather takes for the others does not count
	}
	rows := product(s)
	order := append(slices.Delete(axesFrom(len(shape)), 1, 2), 1)
	flat := n.reshape(n.transpose(p, order...), rows, classes)
	loss := n.make("gather", []*ir.Value{flat, n.reshape(labels, rows, 1)}, named("dim", 1, "batch_dims", 1))
	loss = n.unary("neg", n.reshape(loss, s...))
	var w *ir.Value
	if weights != nil {
		w = n.gather(weights, labels, 0)
		loss = n.binary("mul", loss, w)
	}
	zero := n.scalar(e, 0)
	if counts != nil {
		loss = n.choose(counts, loss, zero)
		if w == nil {
			w = n.convertTo(counts, e)
		} else {
			w = n.choose(counts, w, zero)
		}
	}
	all := axesFrom(len(s))
	switch n.reductionName() {
	case "sum":
		return n.reduce("add", loss, all, false)
	case "mean":
		if w == nil {
			return n.mean(loss, all, false)
		}
		return n.binary("div", n.reduce("add", loss, all, false), n.reduce("add", w, all, false))
	}
	return loss
}
