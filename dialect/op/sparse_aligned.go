package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// mergeKinds are the sets of elements that dm.merge keeps of two tensors, and merges what each has: what both store, what the first one
// alone stores, and what the second one alone stores.
var (
	mergeKinds = []string{"union", "intersection", "difference", "symmetric_difference", "first"}
	merges     = [][3]bool{{true, true, true}, {true, false, false}, {false, true, false}, {false, true, true}, {true, true, false}}
)

// MergeCodes are what the third result of dm.merge has where both operands store an element, the first one alone, and the second one alone.
var MergeCodes = [3]float64{3, 1, 2}

// Merges reports whether dm.merge of a kind keeps the elements that both operands store, the first one alone, and the second one alone.
func Merges(kind string) [3]bool { return merges[slices.Index(mergeKinds, kind)] }

// MergeKind is the kind of which Merges is keeps, "" where there is none.
func MergeKind(keeps [3]bool) string {
	if i := slices.Index(merges, keeps); i >= 0 {
		return mergeKinds[i]
	}
	return ""
}

// mergeDef brings two sparse tensors to one pattern.
var mergeDef = &Def{
	Name: "merge", Family: SparseTensors, Class: ClassMovement,
	Summary: "two sparse tensors as tensors of one pattern, and which of them stores each element",
	Doc: "The results store the same elements: of the `union` of what the operands store, the `intersection`, the `difference` (what the second one does not store), the `symmetric_difference` " +
		"(what one of them alone stores), or all of the `first`. The first result has there the values of the first operand, the second those of the second one, and 0 where that stores nothing; " +
		"the third is 1 where the first operand alone stores the element, 2 where the second one alone does, and 3 where both do.\n\n" +
		"So any function of elements is one of two sparse tensors, a semiring's operation among them: ops of elements of tensors with one pattern compute what is stored, and others " +
		"compute the vectors of values that `dm.unpack` gives. [`dm.filter`](#dmfilter) drops elements.\n\nCounts no FLOP.",
	Example: `!s = tensor<4x6xf32, #dm.csr<nnz = 8>>
!u = tensor<4x6xf32, #dm.csr<nnz = 16>>
func.func @example(%a: !s, %b: !s) -> !u {
  %x, %y, %of = dm.merge union %a, %b : (!s, !s) -> (!u, !u, tensor<4x6xi8, #dm.csr<nnz = 16>>)
  %far = dm.max %x, %y : !u
  return %far : !u
}`,
	Operands: []Param{
		{Name: "a", Elems: numeric, Doc: "a sparse tensor"},
		{Name: "b", Elems: numeric, Doc: "another one of its shape and element type, in any format"},
	},
	Results: []Param{
		{Name: "x", Elems: numeric, Doc: "a's shape and element type, the format as written"},
		{Name: "y", Elems: numeric, Doc: "the same type"},
		{Name: "of", Elems: []types.Elem{types.I8}, Doc: "the same shape and format"},
	},
	Attrs:  []AttrDef{{Name: "kind", Kind: KindKeyword, Lead: true, Enum: mergeKinds, Doc: "which elements are kept"}},
	Traits: Pure | Cast,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) != 3 || asTensor(o.Results[0].Type) == nil {
			return nil, problem("DM125", -1, "the three result types of merge must be written").help("write the values of both operands and which of them stores each element: -> (T, T, T of i8)")
		}
		if p := sameElems(o, 0); p != nil {
			return nil, p
		}
		for i, v := range o.Operands {
			if !compressed(v) {
				return nil, problem("DM134", i, "%s stores every element, and dm.merge takes tensors that store some", valueName(v)).help("give it a format, such as #dm.csr: dm.convert_format")
			}
		}
		a := in(o, 0)
		if !sameShape(a.Shape, in(o, 1).Shape) {
			return nil, problem("DM122", 1, "the shapes %s and %s differ", shapeText(a.Shape), shapeText(in(o, 1).Shape)).help("both operands have one shape")
		}
		t := tensor(a, a.Elem, unify(a.Shape, in(o, 1).Shape)...)
		return []types.Type{t, t, tensor(t, types.I8, t.Shape...)}, nil
	},
	Whole:  "The elements that are stored are numbered throughout.",
	Kernel: Structure,
}

var merged = &Sparse{
	Doc:       "Two, in any formats. The results are in the format written, one for all; the written `nnz` is how many elements they have room for, and it is an error if there are more.",
	Assembles: true, Shares: true,
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		f := out(o, 0).Format
		if f == nil || f.Full() {
			return nil, problem("DM134", -1, "the results of dm.merge store elements, and %s stores every one", out(o, 0)).help("write a format, such as #dm.csr<nnz = e>")
		}
		var ts []types.Type
		for _, t := range dense {
			r := *asTensor(t)
			r.Format = f
			ts = append(ts, &r)
		}
		return ts, nil
	},
	lower: func(l *lowering) { l.merge(l.out[0], Str(l.o, "kind")) },
}

// merge gives the operands as tensors of one pattern, as to stores it.
func (l *lowering) merge(to *types.Tensor, kind string) {
	a, b := l.keysOf(0, to), l.keysOf(1, to)
	e := l.entriesOf(to, nil)
	n := e.count(e.core)
	nA, nB := asTensor(a.key.Type).Shape[0], asTensor(b.key.Type).Shape[0]
	inside := func(k keys) *ir.Value { return l.compared("lt", k.key, l.constant(k.key.Elem(), k.end)) }
	before, both := l.find(a, b)
	not := func(x *ir.Value) *ir.Value { return l.Unary("not", x) }

	own := inside(a) // the entries of a that are kept
	switch kind {
	case "intersection":
		own = both
	case "difference", "symmetric_difference":
		own = l.Binary("and", own, not(both))
	}
	more := kind == "union" || kind == "symmetric_difference" // those of b alone are
	at := l.counted(own)
	if more { // behind those of b before it, less those that a has as well
		at = l.Binary("add", at, l.Binary("sub", before, l.counted(both)))
	}
	at = l.placed(own, at)

	zero := l.Splat(&types.Tensor{Elem: a.values.Elem()}, 0)
	end := l.constant(a.key.Elem(), a.end)
	code := func(x float64) *ir.Value { return l.Splat(&types.Tensor{Elem: types.I8}, x) }
	k := keys{end: a.end, key: l.moved(a.key, at, n, end), values: l.moved(a.values, at, n, zero)}
	y := l.moved(l.where(both, l.take(b.values, before), 0), at, n, zero)
	which := l.moved(l.Value("select", []*ir.Value{both, code(MergeCodes[0]), code(MergeCodes[1])}, nil, l.vector(types.I8, nA)), at, n, code(0))
	places, most := at, nA
	if more {
		beforeB, bothB := l.find(b, a)
		alone := l.Binary("and", inside(b), not(bothB))
		up := beforeB
		if kind == "symmetric_difference" {
			up = l.Binary("sub", up, l.counted(bothB))
		}
		atB := l.placed(alone, l.Binary("add", l.counted(alone), up))
		set := func(base, x *ir.Value) *ir.Value {
			return l.Value("scatter", []*ir.Value{base, atB, x}, append(named("kind", types.Keyword("set")), named("dim", intAttr(0))...))
		}
		k.key, y = set(k.key, b.key), set(y, b.values)
		which = set(which, l.Value("broadcast", []*ir.Value{code(MergeCodes[2])}, nil, l.vector(types.I8, nB)))
		places, most = l.Value("concatenate", []*ir.Value{at, atB}, named("dim", intAttr(0))), nA.Add(nB)
	}
	l.fit(places, most, n)
	l.assemble(to, k)
	pattern := l.results[0][:len(l.results[0])-1]
	if inner := e.inner(); len(inner) > 0 { // an element of an entry is stored as the entry is
		ones := slices.Repeat([]dim.Dim{dim.Const(1)}, len(inner))
		which = l.Reshape(which, append([]dim.Dim{n}, ones...)...)
		which = l.Value("broadcast", []*ir.Value{which}, nil, &types.Tensor{Shape: append([]dim.Dim{n}, inner...), Elem: types.I8})
	}
	l.results[1] = append(slices.Clone(pattern), e.flat(y))
	l.results[2] = append(slices.Clone(pattern), e.flat(which))
}

// filterDef drops elements that a sparse tensor stores.
var filterDef = &Def{
	Name: "filter", Family: SparseTensors, Class: ClassMovement,
	Summary: "those of the stored elements for which a mask holds",
	Foreign: []Foreign{{Names: "eliminate_zeros coalesce", Rest: "with a mask of the values"}},
	Doc: "The mask has an element for each value that the operand stores, in the order of its values, as `dm.unpack` gives them: `dm.compare` of these makes one. What it does not hold for is not stored any more; " +
		"of a block that has an element to keep the others become 0.\n\nCounts no FLOP.",
	Example: `!stored = tensor<4x6xf32, #dm.csr<nnz = 8>>
func.func @example(%a: !stored, %least: tensor<f32>) -> !stored {
  %p, %c, %v = dm.unpack %a : (!stored) -> (tensor<5xi32>, tensor<8xi32>, tensor<8xf32>)
  %large = dm.compare ge %v, %least : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>
  %y = dm.filter %a, %large : (!stored, tensor<8xi1>) -> !stored
  return %y : !stored
}`,
	Operands: []Param{
		{Name: "x", Elems: numeric, Doc: "a sparse tensor"},
		{Name: "mask", Elems: []types.Elem{types.I1}, Doc: "a vector as long as x's values"},
	},
	Results: []Param{{Name: "y", Elems: numeric, Doc: "x's shape and element type, the format as written"}},
	Traits:  Pure | Cast,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) == 0 || asTensor(o.Results[0].Type) == nil {
			return nil, noResult("filter")
		}
		x := in(o, 0)
		if !compressed(o.Operands[0]) {
			return nil, problem("DM134", 0, "%s stores every element, and dm.filter takes a tensor that stores some", valueName(o.Operands[0])).help("choose elements of a dense tensor with dm.select")
		}
		if want := []dim.Dim{x.Values()}; !sameShape(in(o, 1).Shape, want) {
			return nil, problem("DM122", 1, "the mask has the shape %s, but %s stores %s values", shapeText(in(o, 1).Shape), valueName(o.Operands[0]), x.Values()).
				help("compute it of the values that dm.unpack gives")
		}
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Whole:  "The elements that are stored are numbered throughout.",
	Kernel: Structure,
}

var filtered = &Sparse{
	Doc:       "The first operand. The result is stored in the format written; the written `nnz` is how many elements it has room for, and it is an error if there are more.",
	Assembles: true,
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		r := *asTensor(dense[0])
		if r.Format = out(o, 0).Format; r.Format == nil || r.Format.Full() {
			return nil, problem("DM134", -1, "the result of dm.filter stores elements, and %s stores every one", out(o, 0)).help("write a format, such as #dm.csr<nnz = e>")
		}
		return one(&r), nil
	},
	lower: func(l *lowering) {
		from, to := asTensor(l.o.Operands[0].Type), l.out[0]
		whole := !sameLevels(from.Format, to.Format)
		j, c := l.elements(0, whole)
		is := l.in[1][0]
		if inner := l.entries(0).inner(); !whole && len(inner) > 0 {
			each := l.Reshape(is, asTensor(c.x.v.Type).Shape...)
			c.x.v = l.Value("select", []*ir.Value{each, c.x.v, l.Splat(&types.Tensor{Elem: c.x.v.Elem()}, 0)}, nil)
			var dims []int
			for d := range inner {
				dims = append(dims, d+1)
			}
			is = l.reduce("or", each, dims...)
		}
		c.is = l.both(c.is, is)
		l.assemble(to, j.stored(c, to))
	},
}
