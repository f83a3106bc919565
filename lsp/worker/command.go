package worker

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// Command runs the command of a person in a folder and waits for it. It and what it started are killed when ctx ends. said is
// the end of what it wrote.
func Command(ctx context.Context, command []string, dir string) (said string, err error) {
	if len(command) == 0 {
		return "", errors.New("no command")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	isolate(cmd)
	cmd.Dir = dir
	cmd.Cancel = func() error { return kill(cmd) }
	cmd.WaitDelay = 2 * time.Second
	out := &tail{max: keptError}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return string(out.buf), err
}
