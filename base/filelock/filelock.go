// Package filelock lets one process at a time hold a file or folder. The system gives the
// lock back when the process ends, however it ends.
package filelock

import "errors"

// ErrHeld reports that another process, or another open file of this one, holds the lock.
var ErrHeld = errors.New("another process uses it")
