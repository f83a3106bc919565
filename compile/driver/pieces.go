package driver

import (
	"context"
	"errors"
	"slices"

	"dmir/compile/devices"
	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// sparsely tells l which arguments and results of the job's function store sparse tensors.
func (j Job) sparsely(l *distribute.Layout) {
	sizes := j.sizes()
	flat, _ := flatten.Func(j.Fn)
	_, divided, _ := flatten.Divided(j.Module, j.Fn, j.Program.Bind)
	var formats []*types.Format // of the sparse arguments, then the results
	for _, t := range slices.Concat(ir.Types(divided.Args), divided.Results) {
		for _, m := range types.Members(t) {
			if f := m.Tensor.Format; f != nil {
				formats = append(formats, f)
			}
		}
	}
	for i, g := range interp.SparseArgs(flat) {
		l.SparseArgs = append(l.SparseArgs, distribute.Stored{First: g.First, Type: g.Type.Bound(sizes), Pieces: formats[i].Pieces, ByEntries: formats[i].ByEntries})
	}
	for i, r := range sparseResults(j.Fn, sizes) {
		f := formats[len(l.SparseArgs)+i]
		l.SparseResults = append(l.SparseResults, distribute.Stored{First: r.first, Type: r.t, Pieces: f.Pieces, ByEntries: f.ByEntries})
	}
}

// roomy is the job with the room that the pieces of each sparse argument need which devices divide, where the text states none:
// that of the largest. args are the job's arguments; nil: those that it would be given are made.
func (j Job) roomy(ctx context.Context, args []*tensor.Tensor) (Job, error) {
	divided := func(fn *ir.Func, i int) *types.Sharding {
		v := fn.Args[i]
		if t := v.Tensor(); t == nil || t.Format == nil || op.ArgAttr(fn, i, op.PieceRoomAttr) != nil {
			return nil
		}
		return op.StatedSharding(v)
	}
	found := false
	for i := range j.Fn.Args {
		found = found || divided(j.Fn, i) != nil
	}
	if !found || !j.together() {
		return j, nil
	}
	if args == nil {
		var err error
		if args, err = interp.Inputs(ctx, j.Fn, j.Program.Bind, j.Seed, j.Inputs); err != nil {
			return j, err
		}
	}
	sizes := j.sizes()
	flat, _ := flatten.Func(j.Fn)
	m := j.Module.Clone()
	if err := devices.Mesh(m, j.On.Mesh); err != nil {
		return j, err
	}
	fn := m.Func(j.Fn.Name)
	for i, v := range fn.Args {
		if divided(fn, i) == nil {
			continue
		}
		for _, g := range interp.SparseArgs(flat) {
			if g.Name != v.Name {
				continue
			}
			x := &sparse.Tensor{Type: g.Type.Bound(sizes), Parts: args[g.First:][:len(g.Type.Components())]}
			if x.Type = x.Held(); x.Type == nil {
				continue
			}
			room, err := PieceRoom(m, fn, i, x)
			if err != nil {
				return j, notCut(err)
			}
			if room != nil {
				op.SetArgAttr(fn, i, op.PieceRoomAttr, room)
			}
		}
	}
	j.Module, j.Fn = m, fn
	return j, nil
}

// PieceRoom is the room that the pieces of argument i of fn, a function of m, need where it is x: that of the largest one, as
// op.PieceRoomAttr states it. It is nil where the text states the room, or no sharding that can be; dividing tells why.
func PieceRoom(m *ir.Module, fn *ir.Func, i int, x *sparse.Tensor) (types.Attr, error) {
	s := op.StatedSharding(fn.Args[i])
	if s == nil || op.ArgAttr(fn, i, op.PieceRoomAttr) != nil {
		return nil, nil
	}
	name, _ := s.Mesh.Name()
	on := mesh.Find(m, name)
	if on == nil || on.Problem(s) != "" {
		return nil, nil
	}
	pieces, byEntries, problem, _ := op.ArgumentPieces(fn, i, x.Type, s, on.Count)
	if problem != "" {
		return nil, nil
	}
	most, err := x.Largest(pieces, byEntries)
	if err != nil || len(most) == 0 {
		return nil, err
	}
	room := make(types.Array, len(most))
	for k, n := range most {
		room[k] = types.Int{V: max(n, 1)}
	}
	return room, nil
}

// notCut is err, that a sparse argument cannot be cut, as an error of the run.
func notCut(err error) error {
	var bad *sparse.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &interp.Error{Code: "DM712", Msg: bad.Error(), Help: bad.Help}
}
