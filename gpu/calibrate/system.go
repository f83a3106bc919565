package calibrate

import (
	"cmp"
	"slices"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// processor is what the system says about this machine's.
type processor struct {
	memory int64   // bytes; 0: not known
	caches []cache // of data, by level
}

type cache struct {
	level int
	size  int64 // of one thread's where each has its own, else of all
	own   bool
}

// large is a working set that lies in the memory: larger than the last cache, and small
// enough to be there.
func (p processor) large() int64 {
	size := int64(256 * mib)
	if n := len(p.caches); n > 0 {
		size = max(size, 2*p.caches[n-1].size)
	}
	size = min(size, 1024*mib)
	if p.memory > 0 {
		size = min(size, p.memory/8)
	}
	return size &^ (mib - 1)
}

// found is a cache as the system lists it: one of instances of a size, that so many
// processors share, of all.
type found struct {
	level           int
	size            int64
	sharing, across int
}

// cachesOf are the caches of a list. Processors that share one in twos are threads of one
// core, of which each has a half.
func cachesOf(list []found) []cache {
	var out []cache
	for _, f := range list {
		f.sharing = max(1, f.sharing)
		c := cache{level: f.level, size: f.size / int64(f.sharing), own: true}
		if f.sharing > 2 {
			c.size, c.own = f.size*int64(max(1, f.across/f.sharing)), false
		}
		if c.size > 0 && !slices.ContainsFunc(out, func(o cache) bool { return o.level == c.level }) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b cache) int { return cmp.Compare(a.level, b.level) })
	return out
}
