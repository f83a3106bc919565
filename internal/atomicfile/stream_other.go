//go:build !unix

package atomicfile

import "os"

func isDescriptor(string) bool { return false }

func openStream(path string) (*os.File, error) { return os.OpenFile(path, os.O_WRONLY, 0) }
