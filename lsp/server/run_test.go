package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/feature"
	"dmir/lsp/job"
)

const program = `func.func @f(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %s = dm.add %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %r = dm.relu %s : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
`

func runParams(extra string) string {
	return fmt.Sprintf(`{"command":"dmir.run","arguments":[{"uri":%q,"func":"@f"}]%s}`, testURI, extra)
}

// A run gives results, progress and a message, and its times stay beside the
// lines until the next edit.
func TestRun(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}},"window":{"workDoneProgress":true}}`, `{"run":{"device":"reference"}}`)
	e.open(program)
	var res job.RunResult
	e.must("workspace/executeCommand", runParams(""), &res)
	if !res.OK || res.Func != "f" || res.Device != "reference" || res.ElapsedNs <= 0 || len(res.Results) != 1 {
		t.Fatalf("result %+v", res)
	}
	if r := res.Results[0]; r.Name != "r" || r.Type != "tensor<4x8xf32>" || r.Summary == "" {
		t.Errorf("output %+v", r)
	}
	e.waitCall("window/workDoneProgress/create")
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), `"kind":"begin"`) })
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), `"kind":"end"`) })
	e.wait("window/showMessage", func(p json.RawMessage) bool { return strings.Contains(string(p), "@f ran in") })
	e.waitCall("workspace/inlayHint/refresh")
	measured := func() int {
		n := 0
		for _, l := range e.hints(0, 99) {
			if strings.Contains(l, feature.MarkMeasured) {
				n++
			}
		}
		return n
	}
	if n := measured(); n != 3 {
		t.Errorf("%d measured times, want those of the function and of two ops: %q", n, e.hints(0, 99))
	}
	e.change(2, edit(0, 0, 0, 0, "// edited\n"))
	if n := measured(); n != 0 {
		t.Errorf("%d measured times after an edit", n)
	}
}

// The progress of a token that came with the request.
func TestRunToken(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize("", "")
	e.open(program)
	e.must("workspace/executeCommand", runParams(`,"workDoneToken":"mine"`), nil)
	e.wait("$/progress", func(p json.RawMessage) bool {
		return strings.Contains(string(p), `"mine"`) && strings.Contains(string(p), `"end"`)
	})
}

type failingRun struct {
	worker, text, want, code string
	line                     int // of the diagnostic; 0: any
}

// timeouts are short only where they are what ends the run: a longer one where the worker said before no line that it was in.
func (c failingRun) timeouts() []time.Duration {
	if c.worker == "hang" {
		return []time.Duration{time.Second, 10 * time.Second, time.Minute, patient}
	}
	return []time.Duration{patient}
}

// What does not run explains why, in the answer and, where running showed it or the
// worker died, as a diagnostic until the next edit.
func TestRunFailures(t *testing.T) {
	for name, c := range map[string]failingRun{
		"crash":              {worker: "crash", want: "the worker process died", code: "DM720"},
		"leaves silently":    {worker: "leave", want: "ended without a result", code: "DM720"},
		"floods":             {worker: "flood", want: "wrote more than", code: "DM720"},
		"a line without end": {worker: "long line", want: "a line of more than", code: "DM720"},
		"noise":              {worker: "noise", want: "invalid message", code: "DM720"},
		"hangs":              {worker: "hang", want: ", in line 2", code: "DM721", line: 2},
		"program in error":   {worker: "sound", text: strings.Replace(program, "%s :", "%q :", 1), want: "line 3: %q is not defined"},
		"unbound size":       {worker: "sound", text: strings.ReplaceAll(program, "4x8xf32>", "?x8xf32, #dm.at<dims = [n]>>"), want: `"n"`, code: "DM701"},
		"no such function":   {worker: "sound", text: strings.ReplaceAll(program, "@f", "@g"), want: "no function @f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *editor
			var res job.RunResult
			for _, limit := range c.timeouts() {
				e = connect(t, Options{Worker: workerCommand(c.worker), RunTimeout: limit}, nil)
				e.initialize("", `{"lint":{"enabled":false}}`)
				e.open(or(c.text, program))
				e.must("workspace/executeCommand", runParams(""), &res)
				if strings.Contains(res.Message, c.want) || res.Message != "@f was stopped after "+limit.String() {
					break
				}
			}
			if res.OK || !strings.Contains(res.Message, c.want) {
				t.Errorf("answer %+v, want %q", res, c.want)
			}
			if c.code != "" {
				e.diagnostics(1, func(ds []protocol.Diagnostic) bool {
					return len(ds) > 0 && ds[0].Code == protocol.String(c.code) && (c.line == 0 || int(ds[0].Range.Start.Line) == c.line-1)
				})
				e.change(2, edit(0, 0, 0, 0, " "))
				e.diagnostics(2, func(ds []protocol.Diagnostic) bool { return len(ds) == 0 })
			}
		})
	}
}

// A worker that has answered but does not end is ended.
func TestLingeringWorker(t *testing.T) {
	t.Parallel()
	e := connect(t, Options{Worker: workerCommand("linger")}, nil)
	e.initialize("", "")
	e.open(program)
	var res job.RunResult
	e.must("workspace/executeCommand", runParams(""), &res)
	if !res.OK {
		t.Errorf("answer %+v", res)
	}
}

// Cancelling kills the worker; the answer is the protocol's.
func TestRunCancel(t *testing.T) {
	for name, cancel := range map[string]func(e *editor){
		"$/cancelRequest":    func(e *editor) { e.notify("$/cancelRequest", `{"id":2}`) },
		"progress cancelled": func(e *editor) { e.notify("window/workDoneProgress/cancel", `{"token":"mine"}`) },
		"trust withdrawn":    func(e *editor) { e.notify("dmir/trust", `{"trusted":false}`) },
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, Options{Worker: workerCommand("hang")}, nil)
			e.initialize("", "")
			e.open(program)
			done := make(chan error, 1)
			go func() {
				_, err := e.conn.Call(context.Background(), "workspace/executeCommand", jsonrpc2.RawMessage(runParams(`,"workDoneToken":"mine"`)), nil)
				done <- err
			}()
			e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), "line 2") })
			cancel(e)
			if err := <-done; codeOf(err) != protocol.CodeRequestCancelled {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The end of the session kills what runs.
func TestRunAtExit(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("hang")}, nil)
	e.initialize("", "")
	e.open(program)
	go func() {
		_, _ = e.conn.Call(context.Background(), "workspace/executeCommand", jsonrpc2.RawMessage(runParams(`,"workDoneToken":1`)), nil)
	}()
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), "line 2") })
	_ = e.toward.Close()
	select {
	case <-e.served:
	case <-time.After(patient):
		t.Error("the server waits for its worker")
	}
}

// Without trust nothing runs; granting it is enough.
func TestTrust(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize("", `{"trusted":false}`)
	e.open(program)
	var res job.RunResult
	e.must("workspace/executeCommand", runParams(""), &res)
	if res.OK || !strings.Contains(res.Message, "not trusted") {
		t.Errorf("answer %+v", res)
	}
	e.notify("dmir/trust", `{"trusted":true}`)
	e.must("workspace/executeCommand", runParams(""), &res)
	if !res.OK {
		t.Errorf("answer %+v", res)
	}
}
