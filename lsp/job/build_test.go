package job

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"dmir/lsp/connection"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
)

// TestMain makes the test binary a worker process that never answers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "hang" {
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// Cancelling a build kills its worker, unless another call waits for it as well.
func TestCancelBuild(t *testing.T) {
	const uri = "file:///t.dmir"
	ctx, end := context.WithCancel(t.Context())
	s := &session.Session{Conn: connection.New(ctx, eof{}, io.Discard)}
	s.Docs = workspace.New(ctx, workspace.Options{Publish: func(*workspace.Snapshot, []diag.Diagnostic) {}})
	j := New(s, Options{Worker: []string{os.Args[0], "hang"}, Timeout: time.Hour})
	defer func() { end(); j.Wait(); s.Docs.Wait() }()
	s.Docs.Open(workspace.Address{Key: uri, URI: uri, Path: "/t.dmir"}, 1, "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = dm.exp %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n")

	var cancel [2]context.CancelFunc
	var answers [2]chan error
	for i := range answers {
		answers[i] = make(chan error, 1)
		var call context.Context
		call, cancel[i] = context.WithCancel(ctx)
		go func() {
			_, err := j.BuildOf(call, uri, "f", false, nil)
			answers[i] <- err
		}()
	}
	until := func(what string, builds, waiting int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			j.builds.mu.Lock()
			n, w := len(j.builds.made), 0
			for _, b := range j.builds.made {
				w += b.waiting
			}
			j.builds.mu.Unlock()
			if n == builds && w == waiting {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s never happens", what)
			}
		}
	}
	until("one build for two calls", 1, 2)
	if err := s.Docs.Change(uri, 2, []workspace.Edit{{Text: "// the text changes\n"}}); err != nil {
		t.Fatal(err)
	}
	until("another build", 1, 2)
	for i, left := range []int{1, 0} {
		cancel[i]()
		if err := <-answers[i]; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		until("the end of a call", left, left)
	}
}

// eof is an input at its end.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
