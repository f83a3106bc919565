//go:build unix

package regular

import (
	"os"
	"syscall"
)

// Mapped is the content of a regular file of at most limit bytes, of which only what is looked at takes
// memory; nil where it cannot be mapped. It stays mapped. What is read of a file that has become shorter
// meanwhile is a fault.
func Mapped(f *os.File, limit int64) []byte {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > limit {
		return nil
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return data
}
