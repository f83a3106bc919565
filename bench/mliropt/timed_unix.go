//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// timed runs a command and returns its wall time in ms and its peak memory in MiB.
func timed(argv []string) (wall, peak float64, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall = float64(time.Since(start).Microseconds()) / 1e3
	if err != nil {
		return 0, 0, fmt.Errorf("%v: %w\n%.400s", argv, err, out)
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = float64(u.Maxrss) / 1024
		if runtime.GOOS == "darwin" { // bytes on macOS, KiB on other systems
			peak /= 1024
		}
	}
	return wall, peak, nil
}
