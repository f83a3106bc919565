package verify

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// mesh checks a dm.mesh; package scope reports two of one name.
func (v *verifier) mesh(o *ir.Op) {
	if o.Parent != nil {
		v.report("DM193", o.Head, "the mesh stands inside another op").Help = "move it to the top level of the file"
		return
	}
	if _, err := mesh.Of(o); err != nil {
		v.report("DM193", o.Head, "this is no mesh: %s", err).Help = "write dm.mesh @pod {data = 16, model = 8}"
	}
}

// find is the mesh called name, nil where the file has none or it has an error.
func (v *verifier) find(name string) *mesh.Mesh {
	if v.meshes == nil {
		v.meshes = map[string]*mesh.Mesh{}
		for _, o := range v.m.Ops {
			if name := o.Str("sym_name"); o.Name == op.Mesh && v.meshes[name] == nil {
				m, err := mesh.Of(o)
				if err != nil {
					m = nil
				}
				v.meshes[name] = m
			}
		}
		v.unread()
	}
	return v.meshes[name]
}

// unread notes the meshes that the parser could not read, so that their uses are no mistakes.
func (v *verifier) unread() {
	f := origin.File(v.m)
	if f == nil {
		return
	}
	for _, o := range f.Items {
		if o.Form != ast.Bad || o.Name != op.Mesh {
			continue
		}
		for _, s := range o.Symbols {
			if name, flat := types.ParseSymbol(s.Name).Name(); flat && v.meshes[name] == nil {
				v.meshes[name] = nil
			}
		}
	}
}

// broken reports whether the file has a mesh called name that has an error, as is reported there.
func (v *verifier) broken(name string) bool {
	m, defined := v.meshes[name]
	return defined && m == nil
}

// sharded checks the sharding of a type; where gives the place of a finding.
func (v *verifier) sharded(t types.Type, where func() source.Span) {
	if !v.unseen(t) {
		return
	}
	x := t.(*types.Tensor)
	if inPieces(x) {
		v.report("DM147", where(), "%s is in pieces, which only a text that was divided has", x).Help = "take pieces away, and state how devices divide the argument: dm.sharding = #dm.at<split = @pod[{data}, {}]>"
		return
	}
	v.meshed(x.At.Shard, where)
}

// inPieces reports whether t is a sparse tensor in pieces.
func inPieces(t *types.Tensor) bool { return t.Format != nil && t.Format.Pieces.Count() > 0 }

// meshed checks that s is a sharding on a mesh of the file; false where it is none, which is
// reported at the place that where gives.
func (v *verifier) meshed(s *types.Sharding, where func() source.Span) bool {
	name, _ := s.Mesh.Name()
	m := v.find(name)
	if m == nil {
		if v.broken(name) {
			return false
		}
		v.report("DM194", where(), "there is no mesh %s in this file", s.Mesh).Help = "define it at the top level: dm.mesh " + s.Mesh.String() + " {data = 8}"
		return false
	}
	if p := m.Problem(s); p != "" {
		v.report("DM194", where(), "%s", p)
		return false
	}
	v.lastShard = s // values often have it again
	return true
}

// shardings checks those of o's results.
func (v *verifier) shardings(o *ir.Op) {
	for _, r := range o.Results {
		if v.unseen(r.Type) {
			v.sharded(r.Type, func() source.Span { return v.written(o, resultType(o, v.m.Src), r.Type, o.Head) })
		}
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			for _, a := range b.Args {
				if v.unseen(a.Type) {
					v.sharded(a.Type, func() source.Span { return v.written(o, argumentType(o, a), a.Type, a.Span) })
				}
			}
		}
	}
}

// unseen reports whether t has a sharding that is not the one that was right last.
func (v *verifier) unseen(t types.Type) bool {
	x, ok := t.(*types.Tensor)
	return ok && (inPieces(x) || x.At.Shard != nil && x.At.Shard != v.lastShard)
}

// resultType is where the type of the results of o is written; empty where it is not known.
func resultType(o *ir.Op, src *source.File) ast.Rel {
	tree := origin.Tree(o)
	if tree == nil {
		return ast.Rel{}
	}
	at := tree.Sig
	if i := strings.LastIndex(tree.Text(src, at), "->"); i > 0 {
		at.Start += int32(i)
	}
	return at
}

// argumentType is where the type of the block argument a of o is written; empty where it is not known.
func argumentType(o *ir.Op, a *ir.Value) ast.Rel {
	tree := origin.Tree(o)
	if tree == nil {
		return ast.Rel{}
	}
	find := func(args []ast.BlockArg) ast.Rel {
		for _, x := range args {
			if tree.Off+int(x.Span.Start) == a.Span.Start {
				return x.Type
			}
		}
		return ast.Rel{}
	}
	at := find(tree.Defs)
	for _, r := range tree.Regions {
		for _, b := range r.Blocks {
			if at.Empty() {
				at = find(b.Args)
			}
		}
	}
	return at
}

// written is where the type t, which stands in o at the place given, names its mesh; otherwise
// where it does not, as where an alias stands for the type.
func (v *verifier) written(o *ir.Op, at ast.Rel, t types.Type, otherwise source.Span) source.Span {
	if at.Empty() {
		return otherwise
	}
	x, tree := t.(*types.Tensor), origin.Tree(o)
	for _, s := range tree.Symbols {
		if s.Span.Start >= at.Start && s.Span.End <= at.End && types.ParseSymbol(s.Name) == x.At.Shard.Mesh {
			return tree.Abs(s.Span)
		}
	}
	return otherwise
}

// collective checks an op that the devices of a mesh run together, and dm.partition_id.
func (v *verifier) collective(o *ir.Op) {
	name := op.MeshOf(o)
	if name == "" {
		v.report("DM195", o.Head, "%s stands in a function without the attribute dm.mesh, which works on whole tensors", o.Name).
			Help = "write dm.reshard there; or give the function, whose values then are the pieces of one device, the attribute dm.mesh = @pod"
		return
	}
	m := v.find(name)
	if m == nil {
		return // reported at the function
	}
	for up := o.Parent; up != nil && up.Region != nil; up = up.Region.Op.Parent {
		if k := up.Region.Op; k.Name == op.Kernel && (k != o.Parent.Region.Op || !v.isBucket(k)) {
			v.report("DM195", o.Head, "%s stands inside dm.kernel, and one kernel runs on one device", o.Name).Help = "move it out of the kernel; one that holds nothing but collectives of the same kind, reduction, element type and axes runs them together"
			return
		}
	}
	axes, err := m.ParseAxes(op.Strings(o, "axes"))
	if err != nil {
		v.report("DM195", origin.AttrSpan(o, v.m.Src, "axes"), "%s", err).Help = "name axes of the mesh, each once"
		return
	}
	if p := collectiveProblem(o, m.Count(axes)); p != nil {
		v.problem(o, p)
	}
}

// isBucket reports whether a kernel is an op.Bucket; of the kernel asked for last it is known.
func (v *verifier) isBucket(k *ir.Op) bool {
	if v.lastKernel != k {
		v.lastKernel, v.lastBucket = k, op.Bucket(k) != nil
	}
	return v.lastBucket
}

// collectiveProblem is what is wrong with a collective of n devices.
func collectiveProblem(o *ir.Op, n int) *op.Problem {
	ratio := func(attr string, whole, piece *types.Tensor) *op.Problem {
		d, ok := op.Dim(o, attr, whole.Rank())
		if !ok || whole.Rank() != piece.Rank() || whole.Shape[d].Equal(piece.Shape[d].Scale(int64(n))) {
			return nil
		}
		return &op.Problem{
			Code: "DM195", Operand: head, Attr: attr, Help: "the size as a whole is that on each, times the number of devices",
			Msg: fmt.Sprintf("%s over %s: dimension %d is %s as a whole and %s on each", o.Name, diag.Count(n, "device"), d, whole.Shape[d], piece.Shape[d]),
		}
	}
	switch o.Name {
	case op.ReduceScatter:
		return ratio("dim", o.In(0), o.Out(0))
	case op.AllGather:
		return ratio("dim", o.Out(0), o.In(0))
	case op.AllToAll:
		split, _ := op.Dim(o, "split", o.In(0).Rank())
		concat, _ := op.Dim(o, "concat", o.In(0).Rank())
		if split == concat {
			if size, ok := o.In(0).Shape[split].Int(); ok && size%int64(n) != 0 {
				return ratio("split", o.In(0), o.Out(0))
			}
			return nil
		}
		if p := ratio("split", o.In(0), o.Out(0)); p != nil {
			return p
		}
		return ratio("concat", o.Out(0), o.In(0))
	case op.CollectivePermute:
		for _, p := range op.Pairs(o, "pairs") {
			if p[0] >= int64(n) || p[1] >= int64(n) {
				return &op.Problem{Code: "DM195", Operand: head, Attr: "pairs", Help: positions(n), Msg: fmt.Sprintf("the pair [%d, %d] has a position that %s do not have", p[0], p[1], diag.Count(n, "device"))}
			}
		}
	case op.Send, op.Recv:
		for _, name := range []string{"from", "to"} {
			if at := op.Int(o, name); at >= int64(n) {
				return &op.Problem{Code: "DM195", Operand: head, Attr: name, Help: positions(n), Msg: fmt.Sprintf("%s = %d is no position of %s", name, at, diag.Count(n, "device"))}
			}
		}
	}
	return nil
}

func positions(n int) string { return fmt.Sprintf("positions along the axes are 0 … %d", n-1) }

// declared checks the shardings of a function's signature where it has no body, whose values
// have them otherwise.
func (v *verifier) declared(o *ir.Op) {
	ta, _ := o.Attr("function_type").(types.TypeAttr)
	sig, ok := ta.T.(*types.Func)
	if !ok || len(o.Regions) > 0 && len(o.Regions[0].Blocks) > 0 {
		return
	}
	for _, t := range append(slices.Clone(sig.In), sig.Out...) {
		v.sharded(t, func() source.Span { return o.Head })
	}
}

// only checks the attribute dm.only of a function.
func (v *verifier) only(o *ir.Op) {
	a := o.Attr(op.OnlyAttr)
	if a == nil {
		return
	}
	where := origin.AttrSpan(o, v.m.Src, op.OnlyAttr)
	only := op.OnlyOf(o)
	if only == nil {
		v.report("DM195", where, "dm.only is %s, which names no mesh and a position along one of its axes", clip(a.String())).
			Help = "write dm.only = [@pod, {pipe = 0}]"
		return
	}
	m := v.find(only.Mesh)
	switch {
	case m == nil && v.broken(only.Mesh):
	case m == nil:
		v.report("DM195", where, "dm.only names @%s, which is no mesh of this file", only.Mesh).Help = "name a mesh of the file"
	case m.Size(types.Axis{Name: only.Axis}) <= only.Position:
		v.report("DM195", where, "mesh @%s (%s) has no position %s = %d", m.Name, m, only.Axis, only.Position).Help = "name an axis of the mesh and a position along it, from 0"
	case o.Attr(op.MeshAttr) != nil && o.Str(op.MeshAttr) != only.Mesh:
		v.report("DM195", where, "dm.only names @%s, and dm.mesh @%s", only.Mesh, o.Str(op.MeshAttr)).Help = "name one mesh"
	}
}

// perDevice checks the attribute dm.mesh of a function and dm.global of its arguments and
// results.
func (v *verifier) perDevice(o *ir.Op) {
	a := o.Attr(op.MeshAttr)
	if a == nil {
		return
	}
	name, ok := a.(types.Symbol)
	m := v.find(o.Str(op.MeshAttr))
	if m == nil && ok && v.broken(o.Str(op.MeshAttr)) {
		return
	}
	if !ok || m == nil {
		v.report("DM195", origin.AttrSpan(o, v.m.Src, op.MeshAttr), "dm.mesh of the function is %s, which is no mesh of this file", clip(a.String())).
			Help = "write dm.mesh = @pod with the name of a mesh"
		return
	}
	ta, _ := o.Attr("function_type").(types.TypeAttr)
	sig, ok := ta.T.(*types.Func)
	if !ok {
		return
	}
	for i, t := range sig.In {
		v.global(o, m, name, "argument", "arg_attrs", i, t)
		axes, stated := op.PositionOf(o, i)
		if _, err := m.ParseAxes(axes); stated && len(axes) > 0 && (err != nil || !types.Equal(t, index)) {
			v.report("DM195", o.Head, "argument %d is %s with dm.position, which is the number of a device along axes of @%s", i, t, m.Name).
				Help = "write %i: tensor<i64> {dm.position = [\"" + m.Axes[0].Name + "\"]}"
		}
	}
	for i, t := range sig.Out {
		v.global(o, m, name, "result", "res_attrs", i, t)
	}
}

var index = &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}

// global checks that the type of an argument or a result is that of a piece of the whole
// that dm.global gives.
func (v *verifier) global(o *ir.Op, m *mesh.Mesh, name types.Symbol, what, attrs string, i int, t types.Type) {
	whole, _ := op.GlobalType(o, attrs, i)
	if whole == nil { // none, or reported as no type of a tensor
		return
	}
	piece, isTensor := t.(*types.Tensor)
	if !isTensor || whole.At.Shard == nil || whole.At.Shard.Mesh != name || m.Problem(whole.At.Shard) != "" {
		v.report("DM195", o.Head, "dm.global of %s %d is not the type of a whole tensor with a sharding on @%s", what, i, m.Name).
			Help = "write dm.global = tensor<8x4xf32, #dm.at<split = @" + m.Name + "[{data}, {}]>>"
		return
	}
	if local, ok := m.Local(whole, whole.At.Shard); ok && !op.Compatible(local, piece) {
		v.report("DM195", o.Head, "%s %d is %s, but the piece of %s is %s", what, i, piece, whole, local).Help = "write " + local.String()
	}
}
