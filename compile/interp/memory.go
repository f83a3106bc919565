package interp

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// storageBytes is the host memory of n elements.
func storageBytes(elem types.Elem, n int) int64 {
	switch tensor.KindOf(elem) {
	case tensor.KindF32:
		return 4 * int64(n)
	case tensor.KindBool:
		return int64(n)
	}
	return 8 * int64(n)
}

var machineMemory = sync.OnceValue(func() int64 {
	const otherwise = 16 << 30
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return otherwise
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			if kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return otherwise
})

// memoryLimit is limit, or three quarters of the machine's memory for 0; 12 GiB
// where the machine's memory is not known.
func memoryLimit(limit int64) int64 {
	if limit > 0 {
		return limit
	}
	return machineMemory() / 4 * 3
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
