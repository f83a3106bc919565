package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"dmir/base/sandbox"
)

// confined runs the same command in a sandbox, for machine code and C++ that somebody else has
// compiled: it has no network, and changes nothing but the folders that its flags name, temporary files
// and devices. Caches are not among them, since other runs execute what is in there.
func (c runCmd) confined(a *app) error {
	self, err := os.Executable()
	if err != nil {
		return &failure{"DM608", "--trust", reason(err), sandbox.Variable + "=off runs without a sandbox"}
	}
	write := []string{os.TempDir(), "/dev"}
	for _, dir := range []string{c.Output, c.Checkpoint} {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(dir); err != nil {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return cannotWrite(dir, err)
			}
			defer os.Remove(dir) // succeeds if the run wrote nothing
		}
		write = append(write, dir)
	}
	if c.Log != "" {
		write = append(write, filepath.Dir(c.Log))
	}
	cmd := exec.CommandContext(a.ctx, self, a.args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), sandbox.Variable+"=off") // it is in one
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout.w, a.stderr
	if o, ok := a.stderr.(*output); ok {
		cmd.Stderr = o.w
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := sandbox.Start(cmd, sandbox.Policy{Read: []string{"/"}, Write: write}); err != nil {
		return &failure{"DM608", "--trust", err.Error(), sandbox.Variable + "=off runs without a sandbox"}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case a.ctx.Err() != nil:
		return a.ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exitStatus(exit.ExitCode())
	case err != nil:
		return &failure{"DM618", c.File, err.Error(), "a fault of the file, or its program reached for what the sandbox denies; " + sandbox.Variable + "=off runs without one"}
	}
	return nil
}
