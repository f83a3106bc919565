package interp

import (
	"dmir/base/hostmem"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// StorageBytes is the host memory of n elements.
func StorageBytes(elem types.Elem, n int) int64 {
	switch tensor.KindOf(elem) {
	case tensor.KindF32:
		return 4 * int64(n)
	case tensor.KindBool:
		return int64(n)
	}
	return 8 * int64(n)
}

// memoryLimit is limit, or for 0 three quarters of the memory that the process may use.
func memoryLimit(limit int64) int64 {
	if limit > 0 {
		return limit
	}
	return hostmem.Limit() / 4 * 3
}

// lastUses lists for every op of a block the values of the block whose last use
// it is, so that their memory can be freed.
func lastUses(b *ir.Block) [][]*ir.Value {
	last := map[*ir.Value]int{}
	for _, a := range b.Args {
		last[a] = 0
	}
	for i, o := range b.Ops {
		for _, r := range o.Results {
			last[r] = i
		}
		ir.Walk([]*ir.Op{o}, func(inner *ir.Op) bool {
			for _, v := range inner.Operands {
				if _, here := last[v]; here {
					last[v] = i
				}
			}
			return true
		})
	}
	dying := make([][]*ir.Value, len(b.Ops))
	for v, i := range last {
		if len(b.Ops) > 0 {
			dying[i] = append(dying[i], v)
		}
	}
	return dying
}
