//go:build !unix

package regular

import "os"

// Mapped is nil: no file is mapped on this system.
func Mapped(*os.File, int64) []byte { return nil }
