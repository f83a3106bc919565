package tally

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime keeps the goroutine in its thread until the result, which is how long that
// has computed meanwhile, is called.
func threadTime() func() time.Duration {
	runtime.LockOSThread()
	start := threadClock()
	return func() time.Duration {
		defer runtime.UnlockOSThread()
		return threadClock() - start
	}
}

func threadClock() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
