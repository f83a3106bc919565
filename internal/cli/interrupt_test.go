package cli

import (
	"context"
	"errors"
	"io"
	"testing"
)

// An interrupt ends a command that waits for its input.
func TestInterruptedRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, terminal := io.Pipe()
	defer terminal.Close()
	a := &app{ctx: ctx, stdin: in}
	done := make(chan error)
	go func() {
		_, err := a.read("-")
		done <- err
	}()
	if _, err := io.WriteString(terminal, "func.func"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
