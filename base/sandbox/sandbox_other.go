//go:build !linux

package sandbox

import "os/exec"

// Kernel is what this system enforces a policy with; empty for nothing.
func Kernel() string { return "" }

func start(cmd *exec.Cmd, _ Policy) error { return cmd.Start() }

// Libraries are the folders of the system's shared libraries.
func Libraries(string) []string { return nil }
