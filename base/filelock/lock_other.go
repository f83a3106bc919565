//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// Supported reports whether this system has such locks.
const Supported = false

// Lock reports that it is not supported.
func Lock(*os.File, bool) error { return errors.ErrUnsupported }
