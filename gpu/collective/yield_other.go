//go:build !linux

package collective

import "runtime"

// yield lets other goroutines run.
func yield() { runtime.Gosched() }
