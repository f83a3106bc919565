//go:build unix

package server

import (
	"errors"
	"syscall"
)

// alive reports whether there is a process pid; one that we may not signal is one.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
