package cuda

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// The boxes that an epilogue's warp has the copy engine store, as the prelude's store_bulk writes them.
const (
	boxRows = 16
	boxCols = 32
	boxSwap = 64 // bytes of a row, in which chunks are exchanged
	// boxSlots is the most instructions for an element of an epilogue that is written out for each.
	boxSlots = 8
)

// bulkBoxes are the dimensions of the tensor map by which the copy engine can store t's result: one of 16-bit numbers, whose strides are
// multiples of 16 bytes, and whose epilogue reads nothing by element, as threads compute pairs of neighbours. It is nil where it cannot.
func bulkBoxes(t *kernel.Tiled, outs []kernel.Out, flat kernel.Flat) []boxDim {
	if g := t.Grouping(); g != nil && g.Rows { // a box has rows of the next group
		return nil
	}
	if slotsOf(outs, flat) > boxSlots || t.Reduces || len(outs) != 1 || len(outs[0].If) > 0 || flat.N == nil || flat.M == nil {
		return nil
	}
	o := outs[0]
	if elem := o.Value.Elem(); !elem.IsFloat() || elem.Bytes() != 2 {
		return nil
	}
	reads := false
	kernel.Walk(o.X, func(x *kernel.Expr) {
		reads = reads || x.Op == kernel.Load && x.DependsOn(flat.M) && x.DependsOn(flat.N)
	})
	stored := &kernel.Expr{Op: kernel.Load, Elem: o.Value.Elem(), At: o.At}
	lines := flat
	lines.K = flat.N
	dims, along, ok := boxesOf(stored, lines, flat.M, o.Value.Elem(), boxCols, boxRows)
	if reads || !ok || !along {
		return nil
	}
	return dims
}

// bulk makes the copy engine store the result, if it can: the tensor map, which becomes a parameter in ns in place of the result.
func (r *results) bulk(ns *names) bool {
	p := r.contraction
	if !p.c.Path.bulk() || p.c.Splits > 1 {
		return false
	}
	outs, _, flat, err := p.t.Results(1)
	if err != nil {
		return false
	}
	dims := bulkBoxes(p.t, outs, flat)
	if dims == nil {
		return false
	}
	v := outs[0].Value
	plain := slices.IndexFunc(ns.params, func(q assemble.Param) bool { return q.Value == v && q.Mode == artifact.Out })
	if plain < 0 { // it is written over an operand
		return false
	}
	m := tensorMap(v.Elem(), dims)
	m.Swizzle = boxSwap
	r.store = &assemble.Param{Name: string(ns.free(string(ns.of[v]) + "_map")), Elem: v.Elem(), Mode: artifact.Map, Value: v, Map: m}
	r.boxes, r.place = dims, flat
	kernel.Walk(outs[0].X, func(x *kernel.Expr) { r.reads = r.reads || x.Op == kernel.Load })
	ns.params[plain] = *r.store
	return true
}

// writeBulk writes the functions of an epilogue whose result the copy engine stores.
func (r *results) writeBulk(t *text) {
	const from, at, m, n ident = "from", "at", "m", "n"
	u := t.before
	e := t.emitter(u)
	e.bind(r.place.Z, cpp("%s", batch))
	e.bind(r.place.M, cpp("%s", m))
	e.bind(r.place.N, cpp("%s", n))
	var coordinates []code
	for _, d := range r.boxes {
		coordinates = append(coordinates, plus(e.atom(d.atom), d.from))
	}
	u.enter(block, "DM_FN void store(dm::Shared<Result> %s, dm::i32 %s, dm::i32 %s, dm::i32 %s, dm::i32 %s) const", def(from), def(at), def(batch), def(m), def(n))
	u.line("dm::tile_store(%s, %s, %s, %s)", ident(r.store.Name), from, at, coordinates)
	u.leave()
}
