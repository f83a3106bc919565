//go:build unix

package local

import (
	"io/fs"
	"os"
	"syscall"
)

func owned(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

func writableByOwner(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 == 0 }

// secret reports whether others cannot read the file.
func secret(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
