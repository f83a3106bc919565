package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// A sparse tensor is no value in memory: its components are (types.Tensor.Components).
// An op on sparse tensors is written out, by package flatten, as dense ops on
// components, which is what runs; its cost is theirs.

func sparseTensors() []*Def {
	introductions[SparseTensors] = formatReference()
	einsumDef.Sparse, matmulDef.Sparse = products, products
	transposeDef.Sparse, reduceDef.Sparse, softmaxDef.Sparse = transposed, summed, normalized
	attentionDef.Sparse = attended
	sampleDef.Sparse, convertFormatDef.Sparse = sampledProduct, converted
	sliceDef.Sparse, concatenateDef.Sparse = slicedElements, concatenatedElements
	convertDef.Sparse, stopGradientDef.Sparse = eachStored, eachStored
	packDef.Sparse, unpackDef.Sparse = packed, unpacked
	pruneDef.Sparse, mergeDef.Sparse, filterDef.Sparse = pruned, merged, filtered
	return []*Def{sampleDef, convertFormatDef, pruneDef, mergeDef, filterDef, segmentProductDef, segmentDenseProductDef, segmentSampleDef}
}

// Sparse is how an op takes and gives sparse tensors.
type Sparse struct {
	// Doc says which operands may be sparse, and how the result is stored, in Markdown.
	Doc string
	// Infer changes the types that follow for dense operands to those of the results; nil:
	// they are dense.
	Infer func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem)
	// Assembles is set where the text states how many elements the result has room for.
	Assembles bool
	// Shares: all results store the same elements.
	Shares bool
	// Keeps reports whether the results store the elements that the first sparse operand does,
	// where alike says so of operands; nil: they do not.
	Keeps func(o *ir.Op, alike func(a, b *ir.Value) bool) bool

	lower func(l *lowering)
}

// IsSparse reports whether an operand or a result of o is a sparse tensor.
func IsSparse(o *ir.Op) bool {
	for _, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			if t, ok := v.Type.(*types.Tensor); ok && t.Format != nil {
				return true
			}
		}
	}
	return false
}

// Parts are new values for the dense tensors of v, a tuple or a sparse tensor, without
// uses and belonging to no op; v itself where it is dense.
func Parts(v *ir.Value) []*ir.Value {
	if !types.Compound(v.Type) {
		return []*ir.Value{v}
	}
	var out []*ir.Value
	for _, m := range types.Parts(v.Type) {
		out = append(out, &ir.Value{Name: MemberName(v.Name, m), Type: m.Tensor, Span: v.Span})
	}
	return out
}

// LowerSparse writes o, an op of which IsSparse, as dense ops at b, from the parts of its
// operands, and returns those of its results. Where costs is set it is asked what o costs: what keeps padding out of products is
// left out, which kernels do not compute either.
func LowerSparse(b *ir.Builder, o *ir.Op, in [][]*ir.Value, costs bool) ([][]*ir.Value, *Problem) {
	d := Of(o)
	if d == nil || d.Sparse == nil || !Valid(o) {
		return nil, refused(o)
	}
	if pieced(o) != nil && o.Name != Prefix+"transpose" {
		return lowerPieces(b, o, in)
	}
	return lowerWhole(b, o, in, o, costs)
}

// lowerWhole is LowerSparse of o, which stands for of.
func lowerWhole(b *ir.Builder, o *ir.Op, in [][]*ir.Value, of *ir.Op, costs bool) ([][]*ir.Value, *Problem) {
	d := Of(o)
	l := &lowering{Builder: NewBuilder(b, nil), o: o, of: of, in: in, costs: costs}
	for _, v := range o.Results {
		l.out = append(l.out, asTensor(v.Type))
	}
	l.results = make([][]*ir.Value, len(o.Results))
	if l.problem = supported(o); l.problem == nil {
		l.run(d.Sparse.lower)
	}
	if err := l.Err(); l.problem == nil && err != nil {
		l.problem = problem("DM134", -1, "%s cannot be written out for these formats: %s", o.Name, err).help("convert the operand: dm.convert_format")
	}
	if l.problem != nil {
		l.Undo()
		return nil, l.problem
	}
	return l.results, nil
}

// run calls lower until it ends or stops.
func (l *lowering) run(lower func(l *lowering)) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
		}
	}()
	lower(l)
}

// refused is why o, whose entry takes no sparse tensors, has one.
func refused(o *ir.Op) *Problem {
	for i, v := range o.Operands {
		if t, ok := v.Type.(*types.Tensor); ok && t.Format != nil {
			dense := &types.Tensor{Shape: t.Shape, Elem: t.Elem, At: t.At}
			return problem("DM134", i, "%s takes no sparse tensors, and %s is %s", o.Name, valueName(v), t).
				help("make it dense: dm.convert_format %s : (%s) -> %s, which writes %s bytes", valueName(v), t, dense, dense.Bytes())
		}
	}
	return problem("DM134", -1, "%s gives no sparse tensors", o.Name).help("convert the result: dm.convert_format")
}

// supported is why the formats of o's tensors have no code, nil where they have.
func supported(o *ir.Op) *Problem {
	for n, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		for i, v := range vs {
			t := asTensor(v.Type)
			if t == nil || t.Format == nil {
				continue
			}
			at := -1
			if n == 0 {
				at = i
			}
			for j, l := range t.Format.Levels {
				if l.NonOrdered {
					return problem("DM134", at, "the coordinates of level %d of %s are in no order, for which there is no code", j, valueName(v)).help("store it in order")
				}
			}
		}
	}
	return nil
}

// Written is an op on sparse tensors as the dense ops that it is written out as, for tools that ask what it does. Who asks several things
// keeps it, as long as the op does not change.
type Written struct {
	of      *ir.Op
	ops     []*ir.Op // in a block of their own
	in, out [][]*ir.Value
	problem *Problem
}

// WriteOut is o, an op of which IsSparse, written out.
func WriteOut(o *ir.Op) *Written {
	w := &Written{of: o}
	b := &ir.Builder{Block: &ir.Block{}, At: o, Loose: true}
	parts := map[*ir.Value][]*ir.Value{}
	for _, v := range o.Operands {
		if parts[v] == nil {
			parts[v] = Parts(v)
		}
		w.in = append(w.in, parts[v])
	}
	w.out, w.problem = LowerSparse(b, o, w.in, true)
	w.ops = b.Block.Ops
	return w
}

// Of is the op that w is.
func (w *Written) Of() *ir.Op { return w.of }

// patterns finds which values hand on what another stores, and visits each value once.
type patterns struct{ roots map[*ir.Value]*ir.Value }

// root is the value that says which elements of v, a sparse tensor, are stored: the first of
// those that hand it on.
func (p *patterns) root(v *ir.Value) *ir.Value {
	if r := p.roots[v]; r != nil {
		return r
	}
	p.roots[v] = v
	d := Of(v.Op)
	if d == nil || d.Sparse == nil {
		return v
	}
	if from := repacked(v.Op); from != nil {
		p.roots[v] = p.root(from)
		return p.roots[v]
	}
	if d.Sparse.Shares {
		p.roots[v] = v.Op.Results[0]
	}
	if d.Sparse.Keeps == nil {
		return p.roots[v]
	}
	if from := pattern(v.Op); from != nil && d.Sparse.Keeps(v.Op, p.alike) {
		p.roots[v] = p.root(from)
	}
	return p.roots[v]
}

func (p *patterns) alike(a, b *ir.Value) bool {
	s, t := asTensor(a.Type), asTensor(b.Type)
	return s.Format.Alike(t.Format) && s.Format.Full() || p.root(a) == p.root(b)
}

// SamePattern reports whether a and b, sparse tensors of one shape, store the same elements,
// because one of them, or both, hand on what a value stores, or because they store all.
func SamePattern(a, b *ir.Value) bool {
	p := &patterns{map[*ir.Value]*ir.Value{}}
	return p.alike(a, b)
}

// PatternsOf are, for each of vs, the value that says which elements it stores: of two that have the same one, what says where their
// elements are is in memory once. nil: it is not sparse.
func PatternsOf(vs []*ir.Value) []*ir.Value {
	p := &patterns{map[*ir.Value]*ir.Value{}}
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		if t := asTensor(v.Type); t != nil && t.Format != nil {
			out[i] = p.root(v)
		}
	}
	return out
}

// keptAlways is the Keeps of ops whose other sparse operands, if they have any, store the same.
func keptAlways(*ir.Op, func(a, b *ir.Value) bool) bool { return true }

// pattern is the first sparse operand of o.
func pattern(o *ir.Op) *ir.Value {
	for _, v := range o.Operands {
		if t := asTensor(v.Type); t != nil && t.Format != nil {
			return v
		}
	}
	return nil
}

// keptFormat is the Infer of ops whose result stores the elements that the first sparse
// operand does.
func keptFormat(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
	p := asTensor(pattern(o).Type)
	out := make([]types.Type, len(dense))
	for i, t := range dense {
		r := *asTensor(t)
		if !sameShape(r.Shape, p.Shape) {
			return nil, problem("DM134", -1, "the result of %s has the shape %s, which differs from that of the sparse operand, %s", o.Name, shapeText(r.Shape), shapeText(p.Shape)).
				help("a dense operand broadcasts to the shape of the sparse one, not beyond")
		}
		r.Format = p.Format
		out[i] = &r
	}
	return out, nil
}

// inferSparse gives the types of the results of o, which takes sparse tensors, from
// those for dense ones.
func inferSparse(o *ir.Op) ([]types.Type, *Problem) {
	d := Of(o)
	if d.Sparse == nil {
		return nil, refused(o)
	}
	ts, p := d.Infer(o)
	if p != nil {
		return nil, p
	}
	for i, t := range ts {
		if r, ok := t.(*types.Tensor); ok && r.Format != nil {
			s := *r
			s.Format = nil
			ts[i] = &s
		}
	}
	if d.Sparse.Infer == nil || pattern(o) == nil && !d.Sparse.Assembles {
		return ts, nil
	}
	return d.Sparse.Infer(o, ts)
}

// VerifySparse checks what the types of o, which has sparse tensors, do not show.
func VerifySparse(o *ir.Op) *Problem { return WriteOut(o).problem }

// FLOP and Traffic are the FLOP and the bytes of w: those of its dense ops, of which only what comes in and
// what goes out is in memory.
func (w *Written) FLOP() dim.Dim {
	var sum dim.Dim
	for _, p := range w.ops {
		sum = sum.Add(FLOP(p))
	}
	return sum
}

// Traffic is as TrafficOf has it.
func (w *Written) Traffic() (read []dim.Dim, written dim.Dim) {
	o, ops, in, out := w.of, w.ops, w.in, w.out
	read = make([]dim.Dim, len(o.Operands))
	most := map[*ir.Value]dim.Dim{}
	// What is repeated for each product is read once: one element after the other.
	repeats := func(at *ir.Value) bool {
		return at.Op != nil && at.Op.Name == Prefix+"segment_ids" && at.Op.Operands[0].Op != nil && slices.Contains(ops, at.Op.Operands[0].Op)
	}
	numbers := partNumbers(o, in)
	for _, p := range ops {
		if Of(p) == nil || IsView(p) { // a check, or nothing moves
			continue
		}
		r, _ := TrafficOf(p, false)
		if p.Name == Prefix+"gather" {
			r, _ = gatherTraffic(p, numbers(p.Operands[1]))
		}
		if p.Name == Prefix+"gather" && repeats(p.Operands[1]) {
			r[0] = asTensor(p.Operands[0].Type).Bytes()
		}
		for i, v := range p.Operands {
			from := Source(v)
			if i < len(r) && (from.Op == nil || !slices.Contains(ops, from.Op)) && r[i].AtLeast(most[from]) {
				most[from] = r[i]
			}
		}
	}
	counted := map[*ir.Value]bool{}
	for i, vs := range in {
		for _, v := range vs {
			if !counted[v] {
				counted[v] = true
				read[i] = read[i].Add(most[v])
			}
		}
	}
	stored := map[*ir.Value]bool{} // once, where results share it
	for _, vs := range out {
		for _, v := range vs {
			if from := Source(v); from.Op != nil && slices.Contains(ops, from.Op) && !stored[v] {
				stored[v] = true
				written = written.Add(asTensor(v.Type).Bytes())
			}
		}
	}
	return read, written
}

// HasTraffic reports whether TrafficOf says what o moves; other ops read their operands and
// write their results in full.
func HasTraffic(o *ir.Op) bool {
	d := Of(o)
	return d != nil && (d.Traffic != nil || d.Sparse != nil && IsSparse(o))
}

// formatReference says, on the reference page, how formats are written.
func formatReference() string {
	s := "A format is a list of levels, the outermost first, each of which walks a dimension, the blocks of one (`d0 floordiv 4`) or the places in a block (`d0 mod 4`). A level is `dense` (every coordinate has an entry), " +
		"`compressed` (the coordinates of the entries below each entry of the level before, with positions where these begin and end) or `singleton` (one coordinate for each entry) or `structured[n, m]` (n coordinates of each m neighbours) or `loose_compressed` (two positions for each entry of the level before, " +
		"which do not fall; what lies between two such ranges is in none). The values are those of the last level, in its order. (Chou, Kjolstad and Amarasinghe, *Format Abstraction for Sparse Tensor Algebra Compilers*, OOPSLA 2018; MLIR's `sparse_tensor`.)\n\n" +
		"MLIR's attribute, `#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>`, states a format; so do short names:\n\n| format | stores |\n|---|---|\n"
	for _, f := range types.Formats {
		s += "| `#dm." + f.Name + "<" + f.Args + ">` | " + f.Doc + " |\n"
	}
	return s + "\n`nnz` is how many entries a compressed level has room for, a number or a symbol that inputs bind; with several such levels a list, or one size for all. The last position says how many it has: " +
		"what lies beyond takes part in nothing. `dims` names sizes written as `?`. Positions and coordinates take 32 bits in short names and 64 in MLIR's attribute, or `posWidth` and `crdWidth`. " +
		"Coordinates are sorted and no element is stored twice. `pieces = 4`, which compilers write, is of a tensor that devices divide: as many parts of equally many coordinates along the outermost level, each stored as a tensor of its own; `pieces = [2, 2]` of a matrix that they divide along both dimensions.\n\n" +
		"An op on sparse tensors is written out as dense ops on their components before it runs: a product with compressed rows is a gather of rows, a multiplication and a [`segment_reduce`](#dmsegment_reduce), one kernel. " +
		"Its FLOP and bytes are theirs: of a dense operand it reads what the stored elements meet.\n"
}
