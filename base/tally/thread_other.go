//go:build !linux

package tally

import "time"

// threadTime is zero where there is no clock of a thread.
func threadTime() func() time.Duration { return func() time.Duration { return 0 } }
