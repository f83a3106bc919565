//go:build unix

package native

import (
	"os/exec"
	"syscall"
)

// together makes cmd and what it starts end together when cmd is cancelled.
func together(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
