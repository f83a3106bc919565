package calibrate

import (
	"runtime"

	"golang.org/x/sys/unix"
)

func system() processor {
	var p processor
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil {
		p.memory = int64(n)
	}
	var list []found
	for level, names := range [][2]string{{"hw.perflevel0.l1dcachesize", "hw.l1dcachesize"}, {"hw.perflevel0.l2cachesize", "hw.l2cachesize"}, {"", "hw.l3cachesize"}} {
		for _, name := range names {
			var size uint64
			switch n, err := unix.SysctlUint64(name); {
			case err == nil:
				size = n
			default:
				n, err := unix.SysctlUint32(name)
				if err != nil {
					continue
				}
				size = uint64(n)
			}
			f := found{level + 1, int64(size), 1, runtime.NumCPU()}
			if level > 0 { // of a cluster of cores
				f.sharing = runtime.NumCPU()
			}
			list = append(list, f)
			break
		}
	}
	p.caches = cachesOf(list)
	return p
}
