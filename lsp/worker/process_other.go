//go:build !unix

package worker

import "os/exec"

func isolate(*exec.Cmd) {}

// kill ends the process.
func kill(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil
	}
	return cmd.Process.Kill()
}
