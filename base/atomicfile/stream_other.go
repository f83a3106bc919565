//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// IsDescriptor reports whether path refers to an open file of a process.
func IsDescriptor(string) bool { return false }

func linked(fs.FileInfo) bool { return false }

func openStream(path string) (*os.File, error) { return os.OpenFile(path, os.O_WRONLY, 0) }
