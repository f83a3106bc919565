package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An interrupt ends a command during work without a context.
func TestInterruptedWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	_, err := await(ctx, func() (int, error) {
		cancel()
		<-release
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n, err := await(t.Context(), func() (int, error) { return 1, io.EOF }); n != 1 || err != io.EOF {
		t.Errorf("got %d, %v", n, err)
	}
}

// Long work goes through await: no command loads a program itself.
func TestAnalysisIsAwaited(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasSuffix(file, "_test.go") || !strings.Contains(line, "program.Load(") {
				continue
			}
			if loads++; !strings.Contains(line, "await(") && !strings.Contains(line, "func(") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
	if loads == 0 {
		t.Error("nothing loads a program")
	}
}

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
