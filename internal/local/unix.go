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

// lock waits until no other process holds the folder, and holds it until f is
// closed or the process ends; without wait it fails at once.
func lock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

const canLock = true
