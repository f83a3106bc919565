package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// An interrupt of repeated steps ends them after the current one, with a checkpoint
// from which the run goes on to the same bits.
func TestInterruptedSteps(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.dmir")
	text := `func.func @f(%x: tensor<2xf32>, %s: tensor<2xf32>) -> (tensor<2xf32> {dm.state = "s"}) {
  %t = dm.tanh %s : tensor<2xf32>
  %u = dm.add %t, %x : tensor<2xf32>
  return %u : tensor<2xf32>
}`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, stdout io.Writer, f stepFlags, out string) (string, error) {
		var stderr strings.Builder
		a := &app{ctx: ctx, stdout: newOutput(stdout), stderr: &stderr}
		c := runCmd{stepFlags: f, Device: "reference", OutputFormat: "text", File: file, Output: filepath.Join(dir, out)}
		err := c.Run(a)
		return stderr.String(), err
	}
	ctx, cancel := context.WithCancel(t.Context())
	lines := writerFunc(func(b []byte) (int, error) {
		if strings.HasPrefix(string(b), "   3") {
			cancel()
		}
		return len(b), nil
	})
	saved := stepFlags{Steps: new(9), Checkpoint: filepath.Join(dir, "ck")}
	stderr, err := run(ctx, lines, saved, "cut")
	if err != exitStatus(exitCanceled) || stderr != "random: %x, %s\ndmir: interrupted after step 3 of 9; --resume goes on from there\n" {
		t.Fatalf("%v: %q", err, stderr)
	}
	saved.Resume = true
	if stderr, err := run(t.Context(), io.Discard, saved, "parts"); err != nil {
		t.Fatal(err, stderr)
	}
	if stderr, err := run(t.Context(), io.Discard, stepFlags{Steps: new(9)}, "whole"); err != nil {
		t.Fatal(err, stderr)
	}
	parts, err := os.ReadFile(filepath.Join(dir, "parts", "u.npy"))
	whole, err2 := os.ReadFile(filepath.Join(dir, "whole", "u.npy"))
	if err != nil || err2 != nil || string(parts) != string(whole) {
		t.Errorf("resumed after step 3, the state is not that of an uninterrupted run: %v, %v", err, err2)
	}
}

// An interrupt of a search ends it without an answer.
func TestInterruptedPlan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel) // of a search for much longer
	var stdout, stderr strings.Builder
	a := &app{ctx: ctx, stdin: strings.NewReader(""), stdout: newOutput(&stdout), stderr: &stderr}
	err := planCmd{Devices: "2..4096", Top: 10, OutputFormat: "text", File: filepath.Join("..", "examples", "transformer_train.dmir")}.Run(a)
	if !errors.Is(err, context.Canceled) || stdout.Len() > 0 {
		t.Errorf("%v: %s", err, &stdout)
	}
	if status := a.status(err); status != exitCanceled {
		t.Errorf("exit status %d", status)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
