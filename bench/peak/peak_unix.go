//go:build unix

package peak

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Of is the peak memory in bytes of a command that has ended; 0 if it is not known.
func Of(cmd *exec.Cmd) int64 {
	u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin": // bytes on macOS, KiB on other systems
		return u.Maxrss
	}
	return u.Maxrss << 10
}
