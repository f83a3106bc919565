package server

import (
	"context"
	"time"
)

// watchParent calls gone when the process pid ends. Where there is no such
// process to begin with, as when the editor lives in another container, it does
// nothing: the end of the input ends the server then.
func watchParent(ctx context.Context, pid int, every time.Duration, gone func()) {
	if pid <= 0 || !alive(pid) {
		return
	}
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !alive(pid) {
					gone()
					return
				}
			}
		}
	}()
}
