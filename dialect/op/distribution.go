package op

import (
	"fmt"

	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// A program for many devices is written in one of two forms. In a global function
// values have the shapes of the whole, and placements state how their pieces lie on the
// devices of a mesh. A function with the attribute MeshAttr is what one device runs: values have
// the shapes of its pieces, and collectives move data between devices. Package partition
// leads from one to the other.

// MeshAttr names the mesh whose devices run a function, each for its own pieces.
const MeshAttr = "dm.mesh"

// GlobalAttr is the type, with its sharding, of the whole tensor that an argument or a
// result of a function with MeshAttr is a piece of: {dm.global = tensor<8x4xf32, #dm.at<…>>}.
const GlobalAttr = "dm.global"

// StackedAttr, of an argument or a result of a function in stages, is the size of the whole along the first dimension, which
// is in pieces of one size, the last one padded, that belong to the stages in their order: the value is one of them, and the
// next ones are beside it, or, of a function of the devices of one position along the axis of a pipeline, on the devices of
// the other positions. See package stacks.
const StackedAttr = "dm.stacked"

// PositionAttr marks an argument of a function with MeshAttr that callers leave out: it is the
// position of the device along these axes, as dm.partition_id is.
const PositionAttr = "dm.position"

func distributions() []*Def {
	return []*Def{
		meshDef, reshardDef, allReduceDef, reduceScatterDef, allGatherDef, allToAllDef, collectivePermuteDef,
		sendDef, recvDef, partitionIDDef,
	}
}

var meshDef = &Def{
	Name: "mesh", Family: Distribution, Class: ClassMovement,
	Summary: "devices arranged along named axes",
	Foreign: []Foreign{{Names: "device_mesh init_device_mesh"}},
	Doc: "Stands at the top level of a file. The axes are named in the order of the text; devices are numbered row-major, so that those along the last axis are next to each other. " +
		"Placements name the mesh and its axes: `#dm.at<split = @pod[{data}, {}, {model}]>` divides the first dimension of a tensor over `data` and the last over `model`.\n\n" +
		"The generic form, whose dictionaries have no order, lists the axes and their sizes. Shardy's `sdy.mesh @pod = <[\"data\"=16, \"model\"=8]>` is the same. Costs nothing.",
	Example: `dm.mesh @pod {data = 2, model = 2}
func.func @example(%x: tensor<8x4xf32, #dm.at<split = @pod[{data}, {model}]>>) -> tensor<8x4xf32> {
  %y = dm.relu %x : (tensor<8x4xf32, #dm.at<split = @pod[{data}, {model}]>>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}`,
	Attrs: []AttrDef{
		{Name: "sym_name", Kind: KindName, Lead: true, Doc: "the name of the mesh"},
		{Name: "axes", Kind: KindStrings, Doc: "the names of the axes; in pretty form the keys of `{data = 16, model = 8}`"},
		{Name: "sizes", Kind: KindInts, Doc: "how many devices there are along each; in pretty form the values"},
	},
	Traits:     Pure,
	Infer:      noResults,
	Kernel:     Structure,
	Derivative: flat("It computes nothing, so that no gradient flows."),
}

const collectiveDoc = "Stands in a function that one device runs, whose attribute `dm.mesh` names the mesh. The devices of a group, those that differ only in their position along `axes`, run it together. "

var axesAttr = AttrDef{Name: "axes", Kind: KindStrings, Doc: "the axes of the mesh, the outermost first; a part of one is written `\"data:(2)4\"`"}

var reductionAttr = AttrDef{
	Name: "reduction", Kind: KindKeyword, Lead: true, Enum: types.Reductions, Doc: "how the parts are combined",
}

const wideReduction = "f16 and bf16 are reduced in f32 and rounded once. The order of a floating-point reduction is that of the library that runs it; in one process it is that of the devices."

var reshardDef = &Def{
	Name: "reshard", Family: Distribution, Class: ClassMovement,
	Summary: "the same tensor, divided in another way",
	Foreign: []Foreign{{Names: "with_sharding_constraint sharding_constraint redistribute to_global boxing"}},
	Doc: "The result is the operand with the sharding of the result's type; on one device it is the operand. The partitioner writes the cheapest sequence of collectives in its place, found by search, which never sends more than these (OneFlow's boxing costs, " +
		"Yuan et al., arXiv 2110.15032, summed over the devices): split to broadcast T·(p-1), split to another split T·(p-1)/p, partial to split T·(p-1), partial to broadcast 2·T·(p-1), broadcast to split nothing.\n\n" +
		"A placement without a sharding leaves it to propagation.",
	Example: `dm.mesh @pod {data = 2}
func.func @example(%x: tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>) -> tensor<8x4xf32, #dm.at<split = @pod[{}, {data}]>> {
  %y = dm.reshard %x : (tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>) -> tensor<8x4xf32, #dm.at<split = @pod[{}, {data}]>>
  return %y : tensor<8x4xf32, #dm.at<split = @pod[{}, {data}]>>
}`,
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's shape, with the sharding written"}},
	Traits:   Pure,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Traffic:    movesNothing,
	Kernel:     Structure,
	Derivative: reshardDerivative,
}

var allReduceDef = &Def{
	Name: "all_reduce", Family: Distribution, Class: ClassMovement,
	Summary: "the reduction of a tensor over devices, on each of them",
	Foreign: []Foreign{{Names: "psum", Form: "add"}, {Names: "pmax", Form: "max"}, {Names: "pmin", Form: "min"}, {Names: "allreduce"}},
	Doc:     collectiveDoc + "Each gets the reduction of their operands.\n\n" + wideReduction + "\n\n" + sent("2·T·(p-1)"),
	Example: example(`  %y = dm.all_reduce add %x, axes = ["data"] : tensor<4x4xf32>
  return %y : tensor<4x4xf32>`, "tensor<4x4xf32>"),
	Operands: []Param{{Name: "x", Elems: ordered, Doc: "any shape, the same on all devices"}},
	Results:  []Param{{Name: "y", Elems: ordered, Doc: "x's type"}},
	Attrs:    []AttrDef{reductionAttr, axesAttr},
	Traits:   Pure | Collective,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Verify:     reductionElems,
	Kernel:     Structure,
	Derivative: allReduceDerivative,
}

var reduceScatterDef = &Def{
	Name: "reduce_scatter", Family: Distribution, Class: ClassMovement,
	Summary: "the reduction of a tensor over devices, a piece on each",
	Foreign: []Foreign{{Names: "psum_scatter", Form: "add"}, {Names: "reducescatter"}},
	Doc: collectiveDoc + "The reduction of their operands is cut along `dim` into as many equal pieces as the group has devices, and each device gets that of its position.\n\n" +
		wideReduction + "\n\n" + sent("T·(p-1)"),
	Example: example(`  %y = dm.reduce_scatter add %x, dim = 0, axes = ["data"] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>`, "tensor<2x4xf32>"),
	Operands:   []Param{{Name: "x", Elems: ordered, Doc: "any shape, the same on all devices"}},
	Results:    []Param{{Name: "y", Elems: ordered, Doc: "x's shape with a piece of `dim`, as written"}},
	Attrs:      []AttrDef{reductionAttr, {Name: "dim", Kind: KindInt, Doc: "the dimension that is cut"}, axesAttr},
	Traits:     Pure | Collective,
	Infer:      func(o *ir.Op) ([]types.Type, *Problem) { return cut(o, "dim", "") },
	Verify:     reductionElems,
	Kernel:     Structure,
	Derivative: reduceScatterDerivative,
}

var allGatherDef = &Def{
	Name: "all_gather", Family: Distribution, Class: ClassMovement,
	Summary: "the pieces of all devices as one tensor, on each of them",
	Foreign: []Foreign{{Names: "allgather"}},
	Doc:     collectiveDoc + "Each gets their operands concatenated along `dim` in the order of their positions.\n\n" + sent("T·(p-1)"),
	Example: example(`  %y = dm.all_gather %x, dim = 1, axes = ["data"] : (tensor<4x4xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>`, "tensor<4x8xf32>"),
	Operands:   []Param{{Name: "x", Elems: storable, Doc: "any shape, the same on all devices"}},
	Results:    []Param{{Name: "y", Elems: storable, Doc: "x's shape with a multiple of `dim`, as written"}},
	Attrs:      []AttrDef{{Name: "dim", Kind: KindInt, Doc: "the dimension that is put together"}, axesAttr},
	Traits:     Pure | Collective,
	Infer:      func(o *ir.Op) ([]types.Type, *Problem) { return cut(o, "", "dim") },
	Kernel:     Structure,
	Derivative: allGatherDerivative,
}

var allToAllDef = &Def{
	Name: "all_to_all", Family: Distribution, Class: ClassMovement,
	Summary: "a piece of each device for each device",
	Foreign: []Foreign{{Names: "alltoall"}},
	Doc: collectiveDoc + "Each cuts its operand along `split` into as many equal pieces as the group has devices, gives the piece of position i to the device of position i, and concatenates those that it gets along `concat`.\n\n" +
		sent("T·(p-1)/p"),
	Example: example(`  %y = dm.all_to_all %x, split = 0, concat = 1, axes = ["data"] : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>`, "tensor<2x8xf32>"),
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape, the same on all devices"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's shape with a piece of `split` and a multiple of `concat`, as written"}},
	Attrs: []AttrDef{
		{Name: "split", Kind: KindInt, Doc: "the dimension that is cut"},
		{Name: "concat", Kind: KindInt, Doc: "the dimension along which the pieces are put together"},
		axesAttr,
	},
	Traits:     Pure | Collective,
	Infer:      func(o *ir.Op) ([]types.Type, *Problem) { return cut(o, "split", "concat") },
	Kernel:     Structure,
	Derivative: allToAllDerivative,
}

var collectivePermuteDef = &Def{
	Name: "collective_permute", Family: Distribution, Class: ClassMovement,
	Summary: "a tensor handed from device to device",
	Foreign: []Foreign{{Names: "ppermute"}},
	Doc: collectiveDoc + "For each pair the device of the first position gives its operand to that of the second. A device stands in at most one pair on each side; one that gets nothing has zeros.\n\n" +
		"Sends the bytes of the operand for each pair of two devices. Counts no FLOP.",
	Example: example(`  %y = dm.collective_permute %x, pairs = [[0, 1], [1, 0]], axes = ["data"] : tensor<4x4xf32>
  return %y : tensor<4x4xf32>`, "tensor<4x4xf32>"),
	Operands: []Param{{Name: "x", Elems: storable, Doc: "any shape, the same on all devices"}},
	Results:  []Param{{Name: "y", Elems: storable, Doc: "x's type"}},
	Attrs:    []AttrDef{{Name: "pairs", Kind: KindPairs, Doc: "positions along the axes, from and to"}, axesAttr},
	Traits:   Pure | Collective,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		x := in(o, 0)
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Verify: func(o *ir.Op) *Problem {
		var from, to []int64
		for _, p := range Pairs(o, "pairs") {
			if p[0] < 0 || p[1] < 0 || slices.Contains(from, p[0]) || slices.Contains(to, p[1]) {
				return attrProblem("DM115", "pairs", "the pair [%d, %d] is negative, or repeats a device on its side", p[0], p[1]).
					help("a device gives to at most one other, and gets from at most one")
			}
			from, to = append(from, p[0]), append(to, p[1])
		}
		return nil
	},
	Kernel:     Structure,
	Derivative: collectivePermuteDerivative,
}

var sendDef = &Def{
	Name: "send", Family: Distribution, Class: ClassMovement,
	Summary: "a tensor given to one other device",
	Doc: collectiveDoc + "The device of position `from` makes its operand ready for that of position `to`, which `dm.recv` with the same `channel` fetches; on others it does nothing.\n\n" +
		"Sends the bytes of the operand. Counts no FLOP.",
	Example: example(`  dm.send %x, from = 0, to = 1, channel = 1, axes = ["data"] : (tensor<4x4xf32>) -> ()
  %y = dm.recv from = 0, to = 1, channel = 1, axes = ["data"] : tensor<4x4xf32>
  return %y : tensor<4x4xf32>`, "tensor<4x4xf32>"),
	Operands:   []Param{{Name: "x", Elems: storable, Doc: "any shape"}},
	Attrs:      pointAttrs(),
	Traits:     Collective,
	Infer:      noResults,
	Verify:     pointProblem,
	Kernel:     Structure,
	Derivative: sendDerivative,
}

var recvDef = &Def{
	Name: "recv", Family: Distribution, Class: ClassMovement,
	Summary: "a tensor taken from one other device",
	Doc: collectiveDoc + "The device of position `to` gets what the `dm.send` of the same `channel` before it made ready; others get zeros.\n\n" +
		"Moves the result; what is sent counts at `dm.send`. Counts no FLOP.",
	Example: example(`  dm.send %x, from = 1, to = 0, channel = 2, axes = ["data"] : (tensor<4x4xf32>) -> ()
  %y = dm.recv from = 1, to = 0, channel = 2, axes = ["data"] : tensor<4x4xf32>
  return %y : tensor<4x4xf32>`, "tensor<4x4xf32>"),
	Results: []Param{{Name: "y", Elems: storable, Doc: "the type written, that of what was sent"}},
	Attrs:   pointAttrs(),
	Traits:  Collective,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) == 0 {
			return nil, noResult("recv")
		}
		return one(out(o, 0)), nil
	},
	Verify:     pointProblem,
	Kernel:     Structure,
	Derivative: recvDerivative,
}

var partitionIDDef = &Def{
	Name: "partition_id", Family: Distribution, Class: ClassMovement,
	Summary: "the position of the device along axes of the mesh",
	Foreign: []Foreign{{Names: "axis_index replica_id"}},
	Doc:     "Stands in a function that one device runs, whose attribute `dm.mesh` names the mesh. Counts from 0, along the last axis fastest. Moves nothing; counts no FLOP.",
	Example: `dm.mesh @pair {data = 2}
func.func @example() -> tensor<i64> attributes {dm.mesh = @pair} {
  %i = dm.partition_id axes = ["data"] : tensor<i64>
  return %i : tensor<i64>
}`,
	Results: []Param{{Name: "i", Elems: []types.Elem{types.I64}, Doc: "`tensor<i64>`"}},
	Attrs:   []AttrDef{axesAttr},
	Traits:  Pure,
	Infer: func(*ir.Op) ([]types.Type, *Problem) {
		return one(&types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}), nil
	},
	Traffic: movesNothing,
	Kernel:  Structure,
}

func noResults(*ir.Op) ([]types.Type, *Problem) { return nil, nil }

func sent(bytes string) string {
	return "Sends at least " + bytes + " bytes in a group of p devices, for T bytes of the whole tensor. Counts no FLOP."
}

// example is a function that two devices run.
func example(body, result string) string {
	return "dm.mesh @pair {data = 2}\nfunc.func @example(%x: tensor<4x4xf32>) -> " + result + " attributes {dm.mesh = @pair} {\n" + body + "\n}"
}

func pointAttrs() []AttrDef {
	return []AttrDef{
		{Name: "from", Kind: KindInt, Doc: "the position that gives"},
		{Name: "to", Kind: KindInt, Doc: "the position that gets"},
		{Name: "channel", Kind: KindInt, Default: types.Int{}, Doc: "tells apart what travels between the same devices"},
		axesAttr,
	}
}

// Point is what a dm.send and its dm.recv have in common, o being one of them.
func Point(o *ir.Op) string {
	return fmt.Sprint(Strings(o, "axes"), Int(o, "from"), Int(o, "to"), Int(o, "channel"))
}

func pointProblem(o *ir.Op) *Problem {
	for _, name := range []string{"from", "to"} {
		if n := Int(o, name); n < 0 {
			return attrProblem("DM115", name, "%s = %d is no position", name, n)
		}
	}
	if Int(o, "from") == Int(o, "to") {
		return attrProblem("DM115", "to", "a device does not send to itself")
	}
	return nil
}

// reductionElems checks that the element type has the reduction.
func reductionElems(o *ir.Op) *Problem {
	word, e := Str(o, "reduction"), in(o, 0).Elem
	logic := word == "and" || word == "or"
	if logic && e.IsFloat() || !logic && e == types.I1 {
		return attrProblem("DM115", "reduction", "elements of %s are not reduced by %s", e, word).
			help("and and or are for integers and i1, the others for numbers")
	}
	return nil
}

// cut infers a result that has a piece of one of the operand's dimensions and a multiple of
// another, whose attributes are named; the sizes are those written, which package verify
// compares with the mesh.
func cut(o *ir.Op, split, concat string) ([]types.Type, *Problem) {
	x, y := in(o, 0), out(o, 0)
	shape := slices.Clone(x.Shape)
	for _, name := range []string{split, concat} {
		if name == "" {
			continue
		}
		d, p := dimOf(o, name, x.Shape)
		if p != nil {
			return nil, p
		}
		if y.Rank() == x.Rank() {
			shape[d] = y.Shape[d]
		}
	}
	if split != "" && concat != "" && Int(o, split) == Int(o, concat) {
		shape = slices.Clone(x.Shape)
	}
	return one(tensor(x, x.Elem, shape...)), nil
}

// PerDevice reports whether the function f is what one device of a mesh runs: it computes
// only together with the others.
func PerDevice(f *ir.Op) bool { return f.Attr(MeshAttr) != nil }

// MeshOf is the symbol of the mesh whose devices run the function that o stands in, "" where
// it is none that one device runs. Ops by which functions with OnlyAttr work together stand in those
// of whole tensors too.
func MeshOf(o *ir.Op) string {
	f := funcOf(o)
	switch {
	case f == nil:
		return ""
	case (o.Name == Send || o.Name == Recv) && !PerDevice(f):
		if only := OnlyOf(f); only != nil {
			return only.Mesh
		}
		return ""
	}
	return f.Str(MeshAttr)
}

// PositionOf is the axes in PositionAttr of argument i of the function f; ok is false where it
// has none.
func PositionOf(f *ir.Op, i int) (axes []string, ok bool) {
	a := SignatureAttr(f, "arg_attrs", i, PositionAttr)
	list, _ := a.(types.Array)
	for _, s := range list {
		axes = append(axes, types.TextOf(s))
	}
	return axes, a != nil
}

// GlobalType is the type in GlobalAttr of argument or result i of the function f, whose
// dictionaries are in the attribute attrs; stated is false where there is none, and t is nil
// where it is no tensor.
func GlobalType(f *ir.Op, attrs string, i int) (t *types.Tensor, stated bool) {
	a := SignatureAttr(f, attrs, i, GlobalAttr)
	ty, _ := a.(types.TypeAttr)
	t, _ = ty.T.(*types.Tensor)
	return t, a != nil
}
