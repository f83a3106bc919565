//go:build !linux && !darwin

package native

const supported = false

func model() string { return "CPU" }

// hugePages does nothing: the system chooses the pages.
func hugePages([]byte) {}
