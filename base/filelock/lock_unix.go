//go:build unix

package filelock

import (
	"os"
	"syscall"
)

// Supported reports whether this system has such locks.
const Supported = true

// Lock holds the file or folder until f is closed or the process ends. It waits until no
// other process holds it; without wait it is ErrHeld then. Another error says that the file
// system has no locks.
func Lock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); err {
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return ErrHeld
		default:
			return err
		}
	}
}
