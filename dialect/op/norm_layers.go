package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var layerNormDef = &Def{
	Name: "layer_norm", Family: Normalization, Class: ClassNormalization,
	Summary: "normalization to mean 0 and variance 1 over the features, then scale and bias",
	Foreign: []Foreign{{Names: "layer_normalization native_layer_norm"}},
	Doc: "`y = (x - mean) / √(variance + epsilon) · scale + bias`, with mean and (biased) variance over `dims`. " + wideDoc + "\n\n" +
		"Counts 7 FLOP an element: sum, subtraction, square, sum of squares, division by the deviation, scale, bias; by definition also where scale or bias is absent. " +
		"Source: Ba, Kiros and Hinton, arXiv 1607.06450.",
	Example: `func.func @example(%x: tensor<2x4xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = dm.layer_norm %x, %s, %b, epsilon = 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: floats, Doc: "at least one dimension"},
		{Name: "scale", Elems: floats, Optional: true, Doc: "x's sizes at `dims`; x's element type or f32"},
		{Name: "bias", Elems: floats, Optional: true, Doc: "as scale"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs:   []AttrDef{featureDims, epsilonAttr},
	Traits:  Pure,
	Factors: rowsOf(reducedDims),
	Divides: "The dimensions of x that `dims` does not name.",
	Infer:   inferFeatureNorm,
	FLOP:    perElement(7),
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		return featureNorm(b, o, func(w *Builder, x *ir.Value, dims []int, n float64) *ir.Value {
			y, _, _ := w.standardize(x, dims, n, Float(o, "epsilon"))
			return y
		})
	},
	Reduced:    reducedDims,
	Derivative: layerNormDerivative,
}

var rmsNormDef = &Def{
	Name: "rms_norm", Family: Normalization, Class: ClassNormalization,
	Summary: "division by the root mean square over the features, then scale",
	Foreign: []Foreign{{Names: "rms_normalization"}},
	Doc: "`y = x / √(mean x² + epsilon) · scale`, with the mean over `dims`. " + wideDoc + "\n\n" +
		"Counts 4 FLOP an element: square, sum, division by the root, scale; by definition also where scale is absent. " +
		"Source: Zhang and Sennrich, arXiv 1910.07467.",
	Example: `func.func @example(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = dm.rms_norm %x, %s : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: floats, Doc: "at least one dimension"},
		{Name: "scale", Elems: floats, Optional: true, Doc: "x's sizes at `dims`; x's element type or f32"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs:   []AttrDef{featureDims, epsilonAttr},
	Traits:  Pure,
	Factors: rowsOf(reducedDims),
	Divides: "The dimensions of x that `dims` does not name.",
	Infer:   inferFeatureNorm,
	FLOP:    perElement(4),
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		return featureNorm(b, o, func(w *Builder, x *ir.Value, dims []int, n float64) *ir.Value {
			square := w.scale(w.reduce("add", w.Binary("mul", x, x), dims...), 1/n)
			return w.Binary("mul", x, w.Unary("rsqrt", w.plus(square, Float(o, "epsilon"))))
		})
	},
	Reduced:    reducedDims,
	Derivative: rmsNormDerivative,
}

var featureDims = AttrDef{
	Name: "dims", Kind: KindInts, Default: types.Array{types.Int{V: -1}},
	Doc: "dimensions that are normalized together",
}

// parameters checks that operands from first on have the sizes of x at dims and
// x's element type or the one it is computed in.
func parameters(o *ir.Op, first int, dims []int) *Problem {
	x := in(o, 0)
	want := make([]dim.Dim, len(dims))
	for i, d := range dims {
		want[i] = x.Shape[d]
	}
	for i := first; i < len(o.Operands); i++ {
		t := in(o, i)
		if !sameShape(t.Shape, want) {
			return problem("DM122", i, "x %s normalized over %v needs parameters %s, but this one has shape %s", shapeText(x.Shape), dims, shapeText(want), shapeText(t.Shape)).
				help("scale and bias have x's sizes at the dimensions named")
		}
		if t.Elem != x.Elem && t.Elem != wide(x.Elem) {
			return problem("DM111", i, "x has element type %s, the parameter %s", x.Elem, t.Elem).help("parameters have x's element type or f32")
		}
	}
	return nil
}

func inferFeatureNorm(o *ir.Op) ([]types.Type, *Problem) {
	x := in(o, 0)
	dims, p := dimsOf(o, "dims", x.Shape)
	if p == nil {
		p = parameters(o, 1, dims)
	}
	if p != nil {
		return nil, p
	}
	return one(tensor(x, x.Elem, x.Shape...)), nil
}

// standardize gives (x - mean) / √(variance + epsilon) over dims, which hold n
// elements, the mean and the variance; the latter two keep their dims as 1.
func (w *Builder) standardize(x *ir.Value, dims []int, n, epsilon float64) (y, mean, variance *ir.Value) {
	mean = w.scale(w.reduce("add", x, dims...), 1/n)
	c := w.Binary("sub", x, mean)
	variance = w.scale(w.reduce("add", w.Binary("mul", c, c), dims...), 1/n)
	return w.Binary("mul", c, w.Unary("rsqrt", w.plus(variance, epsilon))), mean, variance
}

// affine applies scale and bias, operands first and first+1 of o, whose
// dimensions are those of x named by dims.
func (w *Builder) affine(o *ir.Op, x *ir.Value, first int, dims []int) *ir.Value {
	xt := asTensor(x.Type)
	for i, name := range []string{"mul", "add"} {
		if first+i >= len(o.Operands) {
			break
		}
		x = w.Binary(name, x, w.along(o.Operands[first+i], xt, dims))
	}
	return x
}

// along converts p to x's element type and spreads its dimensions over those of
// x named by dims, with 1 elsewhere, so that it broadcasts.
func (w *Builder) along(p *ir.Value, x *types.Tensor, dims []int) *ir.Value {
	order := make([]int, len(dims))
	shape := make([]dim.Dim, x.Rank())
	for i := range shape {
		shape[i] = dim.Const(1)
	}
	sorted := true
	for i, d := range dims {
		shape[d] = x.Shape[d]
		for j, e := range dims {
			if e < d {
				order[i]++
			}
			sorted = sorted && (j <= i || e > d)
		}
	}
	v := w.Convert(p, x.Elem)
	if !sorted {
		v = w.Value("transpose", []*ir.Value{v}, []types.Named{{Name: "dims", Value: IntList(Inverse(order)...)}})
	}
	return w.Reshape(v, shape...)
}

func featureNorm(b *ir.Builder, o *ir.Op, body func(w *Builder, x *ir.Value, dims []int, n float64) *ir.Value) []*ir.Value {
	dims, ok := Dims(o, "dims", in(o, 0).Rank())
	n := dim.Const(1)
	for _, d := range dims {
		n = n.Mul(in(o, 0).Shape[d])
	}
	count, known := n.Int()
	if !ok || !known || count == 0 {
		return nil
	}
	return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
		return w.affine(o, body(w, x, dims, float64(count)), 1, dims)
	})
}

var channelDim = AttrDef{Name: "dim", Kind: KindInt, Default: types.Int{V: 1}, Doc: "dimension of the channels"}

var batchNormDef = &Def{
	Name: "batch_norm", Family: Normalization, Class: ClassNormalization,
	Summary: "normalization of every channel over the batch, or with given statistics",
	Foreign: []Foreign{{Names: "batch_normalization batch_norm_training batch_norm_inference"}},
	Doc: "`y = (x - mean) / √(variance + epsilon) · scale + bias` for every channel. With three operands mean and (biased) variance are the batch's, over all dimensions but `dim`, " +
		"and are available as second and third result; with five they are given, as in inference. " + wideDoc + "\n\n" +
		"Counts 7 FLOP an element as `dm.layer_norm`; with given statistics 4. Source: Ioffe and Szegedy, arXiv 1502.03167.",
	Example: `func.func @example(%x: tensor<2x3x4xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %y, %mean, %var = dm.batch_norm %x, %s, %b : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y, %mean, %var : tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: floats, Doc: "`[N, C, …]`"},
		{Name: "scale", Elems: floats, Doc: "`[C]`; x's element type or f32"},
		{Name: "bias", Elems: floats, Doc: "`[C]`"},
		{Name: "mean", Elems: floats, Optional: true, Doc: "`[C]`: given statistics"},
		{Name: "variance", Elems: floats, Optional: true, Doc: "`[C]`, with mean"},
	},
	Results: []Param{
		{Name: "y", Elems: floats, Doc: "x's type"},
		{Name: "batch_mean", Elems: floats, Optional: true, Doc: "`[C]`, scale's type; only without given statistics"},
		{Name: "batch_variance", Elems: floats, Optional: true, Doc: "`[C]`, scale's type, with batch_mean"},
	},
	Attrs:   []AttrDef{channelDim, epsilonAttr},
	Traits:  Pure,
	Factors: batchNormFactors,
	Divides: "The channels; with given statistics every dimension.",
	Infer:   inferBatchNorm,
	FLOP: func(o *ir.Op) dim.Dim {
		if len(o.Operands) == 5 {
			return in(o, 0).Elements().Scale(4)
		}
		return in(o, 0).Elements().Scale(7)
	},
	Row: func(o *ir.Op) []int {
		d, ok := Dim(o, "dim", in(o, 0).Rank())
		if !ok || len(o.Operands) == 5 {
			return nil // with given statistics it is element-wise
		}
		all := identity(in(o, 0).Rank())
		return slices.Delete(all, d, d+1)
	},
	Expand:     expandBatchNorm,
	Derivative: batchNormDerivative,
}

func inferBatchNorm(o *ir.Op) ([]types.Type, *Problem) {
	x := in(o, 0)
	d, p := dimOf(o, "dim", x.Shape)
	if p == nil {
		p = parameters(o, 1, []int{d})
	}
	if p != nil {
		return nil, p
	}
	if len(o.Operands) == 4 {
		return nil, problem("DM124", 3, "batch_norm has a mean without a variance").help("give both, or neither to use the batch's own")
	}
	ts := one(tensor(x, x.Elem, x.Shape...))
	switch n := len(o.Results); {
	case n == 2 || n > 1 && len(o.Operands) == 5:
		return nil, problem("DM125", -1, "batch_norm of %s does not have %s", diag.Count(len(o.Operands), "operand"), diag.Count(n, "result")).
			help("write one result, or with the batch's own statistics three: y, mean, variance")
	case n > 2:
		s := tensor(in(o, 1), in(o, 1).Elem, x.Shape[d])
		ts = append(ts, s, s)
	}
	return ts, nil
}

func expandBatchNorm(b *ir.Builder, o *ir.Op) []*ir.Value {
	xt := in(o, 0)
	d, ok := Dim(o, "dim", xt.Rank())
	if !ok {
		return nil
	}
	over := append(identity(xt.Rank())[:d:d], identity(xt.Rank())[d+1:]...)
	n, known := dim.Prod(without(xt.Shape, d)...).Int()
	w := NewBuilder(b, nil)
	x := w.Convert(o.Operands[0], wide(xt.Elem))
	t := asTensor(x.Type)
	var y, mean, variance *ir.Value
	if len(o.Operands) == 5 {
		mean, variance = w.along(o.Operands[3], t, []int{d}), w.along(o.Operands[4], t, []int{d})
		y = w.Binary("mul", w.Binary("sub", x, mean), w.Unary("rsqrt", w.plus(variance, Float(o, "epsilon"))))
		return w.done(w.Convert(w.affineTwo(o, y, d), xt.Elem))
	}
	w.failed = w.failed || !known
	y, mean, variance = w.standardize(x, over, float64(n), Float(o, "epsilon"))
	vs := []*ir.Value{w.Convert(w.affineTwo(o, y, d), xt.Elem)}
	if len(o.Results) == 3 {
		for _, s := range []*ir.Value{mean, variance} {
			vs = append(vs, w.Convert(w.Reshape(s, xt.Shape[d]), in(o, 1).Elem))
		}
	}
	return w.done(vs...)
}

// affineTwo applies operands 1 and 2, scale and bias of the channels at d.
func (w *Builder) affineTwo(o *ir.Op, x *ir.Value, d int) *ir.Value {
	t := asTensor(x.Type)
	x = w.Binary("mul", x, w.along(o.Operands[1], t, []int{d}))
	return w.Binary("add", x, w.along(o.Operands[2], t, []int{d}))
}

var groupNormDef = &Def{
	Name: "group_norm", Family: Normalization, Class: ClassNormalization,
	Summary: "normalization over groups of channels, then scale and bias",
	Foreign: []Foreign{{Names: "group_normalization"}},
	Doc: "The channels, dimension 1, are divided into `groups`; every sample's group is normalized to mean 0 and variance 1 over its channels and all further dimensions, then scaled and biased " +
		"by channel. One group is layer normalization of an image, as many groups as channels is instance normalization. " + wideDoc + "\n\n" +
		"Counts 7 FLOP an element as `dm.layer_norm`. Source: Wu and He, arXiv 1803.08494.",
	Example: `func.func @example(%x: tensor<2x4x3xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4x3xf32> {
  %y = dm.group_norm %x, %s, %b, groups = 2 : (tensor<2x4x3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x3xf32>
  return %y : tensor<2x4x3xf32>
}`,
	Operands: []Param{
		{Name: "x", Elems: floats, Doc: "`[N, C, …]`"},
		{Name: "scale", Elems: floats, Optional: true, Doc: "`[C]`; x's element type or f32"},
		{Name: "bias", Elems: floats, Optional: true, Doc: "`[C]`"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "x's type"}},
	Attrs: []AttrDef{
		{Name: "groups", Kind: KindInt, Doc: "number of groups; divides the number of channels"},
		epsilonAttr,
	},
	Traits:  Pure,
	Factors: groupNormFactors, Piece: groupNormPiece,
	Divides: "The batch and the groups.",
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		if p := rankAtLeast(o, 0, 2, "group_norm"); p != nil {
			return nil, p.help("x is [batch, channels, …]")
		}
		g := Int(o, "groups")
		if g < 1 {
			return nil, attrProblem("DM115", "groups", "groups is %d; the minimum is 1", g)
		}
		if n, ok := x.Shape[1].Int(); ok && n%g != 0 {
			return nil, attrProblem("DM123", "groups", "the %d channels of %s cannot be divided into %d groups", n, shapeText(x.Shape), g)
		}
		if p := parameters(o, 1, []int{1}); p != nil {
			return nil, p
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	FLOP: perElement(7),
	Row:  func(o *ir.Op) []int { return identity(in(o, 0).Rank())[1:] },
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		xt := in(o, 0)
		g := dim.Const(Int(o, "groups"))
		per, ok := xt.Shape[1].Div(g)
		n, known := dim.Prod(append([]dim.Dim{per}, xt.Shape[2:]...)...).Int()
		if !ok || !known || n == 0 {
			return nil
		}
		return inWide(b, o, func(w *Builder, x *ir.Value) *ir.Value {
			split := append([]dim.Dim{xt.Shape[0], g, per}, xt.Shape[2:]...)
			y, _, _ := w.standardize(w.Reshape(x, split...), identity(len(split))[2:], float64(n), Float(o, "epsilon"))
			return w.affine(o, w.Reshape(y, xt.Shape...), 1, []int{1})
		})
	},
	Derivative: groupNormDerivative,
}
