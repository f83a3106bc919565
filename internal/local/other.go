//go:build !unix

package local

import (
	"errors"
	"io/fs"
	"os"
)

// On Windows access-control lists protect a user's folders; file modes do not show
// them.
func owned(fs.FileInfo) bool           { return true }
func writableByOwner(fs.FileInfo) bool { return true }
func secret(fs.FileInfo) bool          { return true }

func lock(*os.File, bool) error { return errors.ErrUnsupported }

const canLock = false
