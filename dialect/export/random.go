package export

import (
	"encoding/binary"
	"math"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/random"
	"dmir/dialect/types"
)

// counted is o, an op that draws random numbers, in integer arithmetic that gives the
// same numbers, inserted at b; nil for other ops and where sizes are no numbers.
func counted(b *ir.Builder, o *ir.Op) []*ir.Value {
	d := op.Of(o)
	if d == nil || !op.Valid(o) || len(o.Results) == 0 || o.Results[0].Tensor() == nil {
		return nil
	}
	t := o.Results[0].Tensor()
	n, ok := t.Elements().Int()
	if !ok {
		return nil
	}
	w := &writer{Builder: op.NewBuilder(b, nil), o: o, n: n}
	var out []*ir.Value
	switch d.Name {
	case "rng":
		out = []*ir.Value{w.Reshape(w.numbers(t.Elem), t.Shape...)}
	case "dropout":
		out = w.dropout(t)
	default:
		return nil
	}
	if w.Err() != nil {
		w.Undo()
		return nil
	}
	return out
}

type writer struct {
	*op.Builder
	o *ir.Op
	n int64 // elements of the result
}

// word is a constant of 64 bits.
func (w *writer) word(v uint64) *ir.Value {
	t := &types.Tensor{Elem: types.UI64}
	d := types.DenseOf(t, binary.LittleEndian.AppendUint64(nil, v))
	return w.Value(op.Constant, nil, []types.Named{{Name: "value", Value: d}}, t)
}

func (w *writer) float(e types.Elem, v float64) *ir.Value { return w.Splat(&types.Tensor{Elem: e}, v) }

// shifted is x shifted to the right.
func (w *writer) shifted(x *ir.Value, bits uint) *ir.Value {
	return w.Binary("div", x, w.word(1<<bits))
}

func (w *writer) mix(z *ir.Value) *ir.Value {
	z = w.Binary("mul", w.Binary("xor", z, w.shifted(z, 30)), w.word(random.MixFirst))
	z = w.Binary("mul", w.Binary("xor", z, w.shifted(z, 27)), w.word(random.MixSecond))
	return w.Binary("xor", z, w.shifted(z, 31))
}

// stream is a stream of a seed.
func (w *writer) stream(seed *ir.Value, stream uint64) *ir.Value {
	return w.mix(w.Binary("add", seed, w.word(random.Golden*(stream+1))))
}

// bits is 64 bits of a stream for each position.
func (w *writer) bits(stream, at *ir.Value) *ir.Value {
	return w.mix(w.Binary("add", stream, w.Binary("mul", w.Binary("add", at, w.word(1)), w.word(random.Golden))))
}

// seed is the op's seed, in a step that repeats that of the step.
func (w *writer) seed() *ir.Value {
	seed := w.word(uint64(op.Int(w.o, "seed")))
	if i := op.OperandNumber(w.o, "step"); i >= 0 {
		return w.bits(w.stream(seed, random.Step), w.Convert(w.o.Operands[i], types.UI64))
	}
	return seed
}

// positions are the numbers of the result's elements.
func (w *writer) positions() *ir.Value {
	if n := op.NumberingOf(w.o); n.First != nil {
		return w.part(n)
	}
	return w.Value("iota", nil, nil, &types.Tensor{Elem: types.UI64, Shape: []dim.Dim{dim.Const(w.n)}})
}

// part are the numbers of the elements of a part of a whole.
func (w *writer) part(n op.Numbering) *ir.Value {
	steps, _ := n.Steps()
	at := w.Convert(n.First, types.UI64)
	for d := range steps {
		count := w.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{V: int64(d)}}}, &types.Tensor{Elem: types.UI64, Shape: n.Shape})
		at = w.Binary("add", at, w.Binary("mul", count, w.word(uint64(steps[d]))))
	}
	return w.Reshape(at, dim.Const(w.n))
}

func (w *writer) compare(direction string, x, y *ir.Value) *ir.Value {
	return w.Value("compare", []*ir.Value{x, y}, []types.Named{{Name: "direction", Value: types.Keyword(direction)}})
}

func (w *writer) choose(p, x, y *ir.Value) *ir.Value {
	return w.Value("select", []*ir.Value{p, x, y}, nil)
}

func (w *writer) odd(at *ir.Value) *ir.Value {
	return w.compare("eq", w.Binary("rem", at, w.word(2)), w.word(1))
}

// halves is 32 bits for each position: two share 64.
func (w *writer) halves(stream uint64) *ir.Value {
	at := w.positions()
	b := w.bits(w.stream(w.seed(), stream), w.shifted(at, 1))
	return w.choose(w.odd(at), w.shifted(b, 32), w.Binary("rem", b, w.word(1<<32)))
}

// unit is the numbers in [0, 1) that 53 of the bits make.
func (w *writer) unit(b *ir.Value) *ir.Value {
	return w.Binary("mul", w.Convert(w.shifted(b, 11), types.F64), w.float(types.F64, 0x1p-53))
}

// numbers are those of a dm.rng, as a list.
func (w *writer) numbers(e types.Elem) *ir.Value {
	low, high := op.Float(w.o, "low"), op.Float(w.o, "high")
	at := w.positions()
	if op.Str(w.o, "distribution") == "normal" { // pairs, by Box and Muller
		s := w.stream(w.seed(), random.RNG)
		even := w.Binary("mul", w.shifted(at, 1), w.word(2))
		u := w.Binary("sub", w.float(types.F64, 1), w.unit(w.bits(s, even)))
		r := w.Unary("sqrt", w.Binary("mul", w.float(types.F64, -2), w.Unary("log", u)))
		turn := w.Binary("mul", w.float(types.F64, 2*math.Pi), w.unit(w.bits(s, w.Binary("add", even, w.word(1)))))
		v := w.Binary("mul", r, w.choose(w.odd(at), w.Unary("sin", turn), w.Unary("cos", turn)))
		v = w.Binary("add", w.float(types.F64, op.Float(w.o, "mean")), w.Binary("mul", w.float(types.F64, op.Float(w.o, "stddev")), v))
		return w.Convert(v, e)
	}
	c, u := types.F64, (*ir.Value)(nil)
	if e.IsFloat() && e.Bytes() <= 4 {
		c = types.F32
		u = w.Binary("mul", w.Convert(w.shifted(w.halves(random.RNG), 8), c), w.float(c, 0x1p-24))
	} else {
		u = w.unit(w.bits(w.stream(w.seed(), random.RNG), at))
	}
	if e.IsInt() {
		low, high = math.Ceil(low), math.Ceil(high)
	}
	v := w.Binary("add", w.float(c, low), w.Binary("mul", w.float(c, high-low), u))
	if e.IsInt() {
		v = w.Unary("floor", v)
	}
	v = w.Convert(v, e) // which may round up to the bound that is excluded
	first := w.Convert(w.float(c, low), e)
	return w.choose(w.compare("ge", w.Convert(v, c), w.float(c, high)), first, v)
}

func (w *writer) dropout(t *types.Tensor) []*ir.Value {
	rate := op.Float(w.o, "rate")
	keep := w.compare("ge", w.halves(random.Dropout), w.word(uint64(math.Ceil(rate*0x1p32))))
	keep = w.Reshape(keep, t.Shape...)
	scale := w.choose(keep, w.float(types.F64, 1/(1-rate)), w.float(types.F64, 0))
	y := w.Binary("mul", w.Convert(w.o.Operands[0], types.F64), scale) // 0 · NaN stays NaN
	if t.Elem.Bytes() < 4 {
		y = w.Convert(y, types.F32)
	}
	out := []*ir.Value{w.Convert(y, t.Elem)}
	if len(w.o.Results) > 1 {
		out = append(out, w.Convert(keep, w.o.Results[1].Elem()))
	}
	return out
}
