package cuda

import (
	"fmt"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
)

// A block of a dm.segment_dense_product has up to so many warps, and as many bytes of sums as each block has without asking for more.
const (
	productWarps = 8
	productBytes = 48 << 10
)

// joiners are the prelude's functions of kinds of reductions.
var joiners = map[string]string{"add": "Sum", "mul": "Product", "max": "Max", "min": "Min"}

// denseProduct is the sizes of a dm.segment_dense_product.
type denseProduct struct{ rows, elements, others, entries, columns int64 }

// denseProductOf is that of o; ok is false where there is no kernel: for half precision, whose sums are wider, and where something is empty.
func denseProductOf(o *ir.Op) (p denseProduct, ok bool) {
	length := func(i int) int64 {
		shape, _ := kernel.ShapeOf(o.Operands[i])
		return kernel.Product(shape)
	}
	d, _ := op.Size(o, op.ColumnsAttr)
	n, _ := d.Int()
	p = denseProduct{length(0) - 1, length(1), length(3) - 1, length(4), n}
	return p, min(p.rows, p.elements, p.others, p.entries, p.columns) > 0 && o.Operands[2].Elem().Bytes() >= 4
}

// segmentDenseProduct has a warp for each row, whose sums are in shared memory.
func segmentDenseProduct(f *kernel.Form) (scheme, error) {
	o := f.Main
	p, ok := denseProductOf(o)
	if !ok {
		return nil, fmt.Errorf("no kernel for a segment_dense_product of %s with %d columns", o.Operands[2].Type, p.columns)
	}
	n, elem := p.columns, o.Operands[2].Elem()
	chunk := min(n, productBytes/elem.Bytes())
	warps := min(productWarps, productBytes/(chunk*elem.Bytes()))
	ns := namesOf(f.Inputs, f.Outputs, arena)
	kind, combine := op.Str(o, op.ReductionAttr), op.Str(o, op.CombineAttr)
	num, integer := kernel.Identity(kind, elem)
	none := number(&kernel.Expr{Op: kernel.Number, Elem: elem, Num: num, Int: integer})
	l := &launch{
		Launch: assemble.Launch{
			Class: string(f.Class), Block: artifact.Block{Threads: int(32 * warps), Shared: int(warps * chunk * elem.Bytes())},
			Grid: [3]int{int(ceil(p.rows, warps)), int(ceil(n, chunk)), 1}, Params: ns.params,
		},
		named: ns.of, include: "segment_product.cuh",
	}
	l.write = func(t *text) error {
		u := t.before
		u.enter(closed, "struct %s", geometry)
		u.line("static constexpr dm::i64 rows = %d, others = %d, elements = %d, entries = %d, columns = %d", p.rows, p.others, p.elements, p.entries, n)
		u.line("static constexpr dm::i32 warps = %d, chunk = %d", warps, chunk)
		u.leave()
		t.body.line("DM_ARENA(%s)", def(arena))
		var names []code
		for _, v := range append(o.Operands[:6:6], o.Results[0]) {
			names = append(names, cpp("%s", ns.of[v]))
		}
		t.body.line("dm::segment_dense_product<%s, dm::detail::%s, dm::detail::%s>(%s, %s, %s)", geometry, joiners[kind], joiners[combine], arena, names, none)
		return nil
	}
	return singleLaunch{l}, nil
}
