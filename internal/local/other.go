//go:build !unix

package local

import (
	"errors"
	"io/fs"
	"os"
)

// Windows keeps a user's folders from others by their lists of access, which
// modes do not show.
func owned(fs.FileInfo) bool           { return true }
func writableByOwner(fs.FileInfo) bool { return true }
func secret(fs.FileInfo) bool          { return true }

func lock(*os.File, bool) error { return errors.ErrUnsupported }

const canLock = false
