//go:build !unix

package local

import "io/fs"

// On Windows access-control lists protect a user's folders; file modes do not show
// them.
func owned(fs.FileInfo) bool           { return true }
func writableByOwner(fs.FileInfo) bool { return true }
func secret(fs.FileInfo) bool          { return true }
