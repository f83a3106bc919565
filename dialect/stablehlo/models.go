package stablehlo

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// Ops beside StableHLO's own in the programs that compilers hand on: constants of
// arith, globals of IREE's util dialect, custom calls of ByteIR, random numbers.

func typeOf(m *ir.Module, text string) (*types.Tensor, error) {
	x, perr := parse.Type(strings.TrimSpace(text))
	if perr != nil {
		return nil, invalid("%v", perr)
	}
	t, err := types.FromExpr(x, m.Aliases)
	if err != nil {
		return nil, unsupported("%v", err)
	}
	tensor, ok := t.(*types.Tensor)
	if !ok {
		return nil, unsupported("%s is no tensor", text)
	}
	return tensor, nil
}

// convertLoad is the constant that the loaded global has.
func convertLoad(c *call) ([]*ir.Value, error) {
	from := c.o
	if len(c.o.Operands) == 1 && c.in(0).Op != nil { // of an address
		from = c.in(0).Op
	}
	text := c.m.Src.Slice(from.Span)
	at := strings.IndexByte(text, '@')
	if at < 0 {
		return nil, unsupported("an address that is computed")
	}
	d := c.globals[symbol(text[at:])]
	if d == nil {
		return nil, unsupported("%s is no constant", symbol(text[at:]))
	}
	return one(c.make("constant", nil, named("value", types.Attr(d)), d.Type))
}

// convertRng draws numbers between two constants, or with a mean and a deviation.
// StableHLO leaves the algorithm open: it is the dialect's, with a seed for each op.
func convertRng(c *call) ([]*ir.Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	t := c.out(0)
	if t == nil {
		return nil, invalid("no type")
	}
	kind := strings.ToLower(c.word("rng_distribution"))
	if kind != "uniform" && kind != "normal" {
		return nil, invalid("no distribution")
	}
	c.seeds++
	v := c.make("rng", nil, named("distribution", kind, "seed", c.seeds), t)
	if kind == "uniform" {
		return one(c.b.Binary("add", c.in(0), c.b.Binary("mul", v, c.b.Binary("sub", c.in(1), c.in(0)))))
	}
	return one(c.b.Binary("add", c.in(0), c.b.Binary("mul", v, c.in(1))))
}

func convertBatchNormInference(c *call) ([]*ir.Value, error) {
	if err := c.need(5); err != nil {
		return nil, err
	}
	d, err := c.int("feature_index", 1)
	if err != nil {
		return nil, err
	}
	eps, err := c.float("epsilon", 0)
	if err != nil {
		return nil, err
	}
	return one(c.make("batch_norm", c.o.Operands, append(named("dim", d), types.Named{Name: "epsilon", Value: types.Float{V: eps}})))
}

// float is the number of an attribute, otherwise where it is absent.
func (c *call) float(name string, otherwise float64) (float64, error) {
	text, ok := c.attrs[name]
	if !ok {
		return otherwise, nil
	}
	a, err := c.value(text)
	if err != nil {
		return 0, err
	}
	v, ok := types.NumberOf(a)
	if !ok {
		return 0, invalid("%s is no number", name)
	}
	return v, nil
}

// byteir gives a custom call the attributes that ByteIR writes into one.
func byteir(f conversion) conversion {
	return func(c *call) ([]*ir.Value, error) {
		if text := c.attrs["byteir_attrs"]; text != "" {
			if err := c.dictionary(text); err != nil {
				return nil, err
			}
		}
		return f(c)
	}
}

func convertSoftmax(name string) conversion {
	return func(c *call) ([]*ir.Value, error) {
		d, err := c.int("axis", -1)
		if err != nil || c.need(1) != nil {
			return nil, join(err, c.need(1))
		}
		return one(c.make(name, c.o.Operands, named("dim", d)))
	}
}

func convertGelu(c *call) ([]*ir.Value, error) {
	var attrs []types.Named
	if strings.Trim(c.attrs["approximate"], `"`) == "tanh" {
		attrs = named("approximate", "tanh")
	}
	return one(c.make("gelu", c.o.Operands, attrs))
}

// convertLayerNorm gives the normalized value, the mean and 1/√(variance + epsilon).
func convertLayerNorm(c *call) ([]*ir.Value, error) {
	at, err := c.ints("axis", []int{-1})
	if err != nil {
		return nil, err
	}
	eps, err := c.float("epsilon", 1e-5)
	if err != nil {
		return nil, err
	}
	x := c.in(0)
	epsilon := types.Named{Name: "epsilon", Value: types.Float{V: eps}}
	out := []*ir.Value{c.make("layer_norm", c.o.Operands, append(named("dims", at), epsilon))}
	if len(c.o.Results) == 3 {
		keep := named("dims", at, "keep_dims", true)
		mean := c.make("mean", []*ir.Value{x}, keep)
		variance := c.make("variance", []*ir.Value{x}, keep)
		out = append(out, mean, c.b.Unary("rsqrt", c.b.Binary("add", variance, c.scalar(x.Elem(), eps))))
	}
	return out, nil
}

// convertNLL gives the mean of the negative logarithms of the probabilities of the
// right classes, and how many rows count.
func convertNLL(c *call) ([]*ir.Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	ignore, err := c.int("ignore_index", -100)
	if err != nil {
		return nil, err
	}
	// The operand holds logarithms of probabilities, of which the cross entropy's own
	// log-softmax changes nothing.
	loss := c.make("cross_entropy", c.o.Operands, named("ignore_index", ignore))
	counts := c.compare("ne", c.in(1), c.scalar(c.in(1).Elem(), float64(ignore)))
	total := c.make("reduce", []*ir.Value{c.b.Convert(counts, loss.Elem())}, named("kind", "add"))
	return []*ir.Value{loss, total}, nil
}
