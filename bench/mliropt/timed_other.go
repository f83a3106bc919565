//go:build !unix

package main

import (
	"fmt"
	"os/exec"
	"time"
)

// timed runs a command and returns its wall time in ms; the peak memory is not
// known on this platform.
func timed(argv []string) (wall, peak float64, err error) {
	start := time.Now()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("%v: %w\n%.400s", argv, err, out)
	}
	return float64(time.Since(start).Microseconds()) / 1e3, 0, nil
}
