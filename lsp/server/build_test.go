package server

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/compile/driver"
	"dmir/compile/pipeline"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/lsp/feature"
	"dmir/lsp/job"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

func command(name, more string) string {
	return fmt.Sprintf(`{"command":%q,"arguments":[{"uri":%q,"func":"@f"%s}]}`, name, testURI, more)
}

// Compile describes what came of it: kernels, bytes, and why there is no machine code.
func TestCompileCommand(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"window":{"workDoneProgress":true}}`, "")
	e.open(program)
	var res job.CompileResult
	e.must("workspace/executeCommand", command("dmir.compile", ""), &res)
	if !res.OK || !strings.HasPrefix(res.Arch, "sm_") || len(res.Kernels) != 1 || res.MovedBytes != res.MinimumBytes || res.AsWrittenBytes <= res.MovedBytes {
		t.Fatalf("result %+v", res)
	}
	if k := res.Kernels[0]; len(k.Lines) != 2 || k.Lines[0] != 2 || k.Lines[1] != 3 || k.First == 0 {
		t.Errorf("kernel %+v", k)
	}
	_, missing := nvrtc.Find()
	if want := map[bool]string{true: "no spills", false: "no machine code: "}[missing == nil]; !strings.Contains(res.Message, want) {
		t.Errorf("message %q, want %q", res.Message, want)
	}
	for _, want := range []string{"@f compiled for " + res.Arch + " in ", ": 1 kernel moves 288 B (544 B as written, minimum 288 B), ", " predicted on h200"} {
		if !strings.Contains(res.Message, want) {
			t.Errorf("message %q lacks %q", res.Message, want)
		}
	}
	e.waitCall("window/workDoneProgress/create")
	// Of the reports between, those that wait while newer ones come are not sent.
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), `"kind":"begin"`) })
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), `"kind":"end"`) })
	e.wait("window/showMessage", func(p json.RawMessage) bool { return strings.Contains(string(p), "@f compiled for") })
}

// Errors of the compiler are reported at their places until the next edit; the
// views have them in their text.
func TestCompileCommandFails(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"workspace":{"textDocumentContent":{}},"window":{"showDocument":{"support":true}}}`, `{"lint":{"enabled":false}}`)
	e.open(strings.ReplaceAll(program, "4x8xf32>", "?x8xf32, #dm.at<dims = [n]>>"))
	var res job.CompileResult
	e.must("workspace/executeCommand", command("dmir.compile", ""), &res)
	if res.OK || !strings.Contains(res.Message, "n") || len(res.Kernels) != 0 {
		t.Fatalf("result %+v", res)
	}
	e.diagnostics(1, func(ds []protocol.Diagnostic) bool { return len(ds) == 1 && ds[0].Code == protocol.String("DM801") })
	at := session.ViewAddress("after-plan", testURI, "f")
	if got := e.content(at); !strings.HasPrefix(got, "// This function cannot be compiled: ") {
		t.Errorf("view:\n%s", got)
	}
	e.change(2, `{"text":`+quote(program)+`}`)
	if asked := e.asked("workspace/textDocumentContent/refresh", 1); !strings.Contains(asked, at) {
		t.Errorf("refreshed %s", asked)
	}
	if got := e.content(at); !strings.Contains(got, "dm.workspace") {
		t.Errorf("view:\n%s", got)
	}
	e.diagnostics(2, func(ds []protocol.Diagnostic) bool { return len(ds) == 0 })
}

// The program after each pass, its kernels and their machine code, as documents
// that follow the text; kernels lead to their lines and lines to their kernels.
func TestBuiltViews(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"workspace":{"textDocumentContent":{}},"window":{"showDocument":{"support":true}}}`, `{"lint":{"enabled":false}}`)
	e.open(program)
	for _, pass := range pipeline.Names() {
		got := e.content(session.ViewAddress("after-"+pass, testURI, "f"))
		if !strings.HasPrefix(got, "// @f after "+pass+": ") || len(parse.File(source.New("", got)).Diags) > 0 {
			t.Errorf("after %s:\n%s", pass, got)
		}
	}
	if got := e.content(session.ViewAddress("after-fuse", testURI, "f")); !strings.Contains(got, "dm.kernel") {
		t.Errorf("after fuse:\n%s", got)
	}
	if _, err := nvrtc.Find(); err == nil {
		if got := e.content(session.ViewAddress("ptx", testURI, "f")); !strings.Contains(got, ".entry") {
			t.Errorf("ptx:\n%s", got)
		}
	} else if got := e.content(session.ViewAddress("ptx", testURI, "f")); !strings.HasPrefix(got, "// ") {
		t.Errorf("ptx:\n%s", got)
	}

	// From a line to its kernel.
	var shown struct {
		URI       string
		Selection *protocol.Range
	}
	e.command("dmir.view", fmt.Sprintf(`{"uri":%q,"view":"cuda","line":2}`, testURI), &shown)
	at := session.ViewAddress("cuda", testURI, "f")
	if asked := e.asked("window/showDocument", 1); shown.URI != at || shown.Selection == nil || !strings.Contains(asked, `"selection"`) {
		t.Fatalf("%+v, asked to show %s", shown, asked)
	}
	text := strings.Split(e.content(at), "\n")
	chosen := strings.Join(text[shown.Selection.Start.Line:shown.Selection.End.Line], "\n")
	if !strings.Contains(chosen, "DM_KERNEL") {
		t.Errorf("selected:\n%s", chosen)
	}
	e.command("dmir.view", fmt.Sprintf(`{"uri":%q,"view":"cuda","line":0}`, testURI), &shown)
	if strings.Contains(e.asked("window/showDocument", 2), `"selection"`) {
		t.Error("the head of the function is part of a kernel")
	}

	// And from a kernel to its lines.
	titles, lenses := e.lenses(at)
	if len(lenses) != 1 || !strings.HasPrefix(titles[0], "lines 2–3 of the program · ") || lenses[0].Range.Start.Line != shownKernel(text) {
		t.Fatalf("lenses %+v", lenses)
	}
	e.command(lenses[0].Command.Command, string(lenses[0].Command.Arguments[0]), &struct{}{})
	if asked := e.asked("window/showDocument", 3); !strings.Contains(asked, testURI) || !strings.Contains(asked, `"line":1`) || !strings.Contains(asked, `"line":3`) {
		t.Errorf("asked to show %s", asked)
	}
	var links []protocol.DocumentLink
	e.must("textDocument/documentLink", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, at), &links)
	if len(links) == 0 || !strings.HasPrefix(string(*links[0].Target), testURI+"#L") {
		t.Errorf("links %+v", links)
	}
	for _, bad := range []string{`{"uri":"","first":0,"last":0}`, `{"uri":"file:///x","first":-1,"last":0}`, `{"uri":"file:///x","first":3,"last":2}`, `7`} {
		if err := e.call("workspace/executeCommand", `{"command":"dmir.reveal","arguments":[`+bad+`]}`, nil); codeOf(err) != jsonrpc2.InvalidParams {
			t.Errorf("%s: %v", bad, err)
		}
	}

	// The editor may open it; it is no program.
	e.openAs(at, strings.Join(text, "\n"))
	e.notify("textDocument/didClose", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, at))
	if titles, _ := e.lenses(at); len(titles) != 1 {
		t.Errorf("lenses %q", titles)
	}
}

// shownKernel is the line of the first kernel's first line.
func shownKernel(text []string) uint32 {
	for i, l := range text {
		if strings.HasPrefix(l, "// ") && strings.Contains(l, "from line") {
			return uint32(i)
		}
	}
	return 0
}

// An editor that knows no virtual documents gets the text and what to select.
func TestBuiltViewAsText(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize("", "")
	e.open(program)
	var shown struct {
		Text      string
		Selection *protocol.Range
	}
	e.command("dmir.view", fmt.Sprintf(`{"uri":%q,"view":"cuda","func":"@f","line":1}`, testURI), &shown)
	if !strings.Contains(shown.Text, "DM_KERNEL") || shown.Selection == nil {
		t.Errorf("%+v", shown)
	}
	e.notify("dmir/trust", `{"trusted":false}`)
	e.command("dmir.view", fmt.Sprintf(`{"uri":%q,"view":"cuda","func":"f"}`, testURI), &shown)
	if !strings.HasPrefix(shown.Text, "// Functions are compiled only in a workspace that is trusted") {
		t.Errorf("without trust: %+v", shown)
	}
}

// Views that wait for trust come when it is given.
func TestBuiltViewAfterTrust(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"workspace":{"textDocumentContent":{}},"window":{"showDocument":{"support":true}}}`, `{"trusted":false}`)
	e.open(program)
	at := session.ViewAddress("cuda", testURI, "f")
	if got := e.content(at); !strings.Contains(got, "trusted") {
		t.Errorf("view:\n%s", got)
	}
	for _, name := range []string{"dmir.compile", "dmir.profile"} {
		var res job.CompileResult
		e.must("workspace/executeCommand", command(name, ""), &res)
		if !strings.Contains(res.Message, "the workspace is not trusted") {
			t.Errorf("%s: %q", name, res.Message)
		}
	}
	e.notify("dmir/trust", `{"trusted":true}`)
	if asked := e.asked("workspace/textDocumentContent/refresh", 1); !strings.Contains(asked, at) {
		t.Errorf("refreshed %s", asked)
	}
	if got := e.content(at); !strings.Contains(got, "DM_KERNEL") {
		t.Errorf("view:\n%s", got)
	}
}

// Without a GPU a profile is of the emulator, whose bytes stand behind the lines.
func TestProfileCommand(t *testing.T) {
	need.OK(t, emulator.Check())
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}}}`, "")
	e.open(program)
	var res job.RunResult
	e.must("workspace/executeCommand", command("dmir.profile", `,"device":"emulator"`), &res)
	if !res.OK || res.Device != "emulator" || len(res.Kernels) != 1 || !res.Kernels[0].Counted ||
		!strings.Contains(res.Message, "@f on the emulator, which measures no times: 288 B moved by 1 kernel, as predicted") {
		t.Fatalf("result %+v", res)
	}
	e.waitCall("workspace/inlayHint/refresh")
	got := strings.Join(e.hints(0, 99), "\n")
	if !strings.Contains(got, feature.MarkCounted+"288B") || strings.Contains(got, feature.MarkMeasured) {
		t.Errorf("hints:\n%s", got)
	}
	// Without a GPU and a compiler for the processor the reference executor runs it.
	t.Setenv("DMIR_CLANG", filepath.Join(t.TempDir(), "none"))
	if d, _, err := driver.Choose("auto"); err == nil && d == nil {
		e.must("workspace/executeCommand", command("dmir.run", ""), &res)
		if !strings.Contains(res.Message, "on reference (") || !strings.Contains(res.Message, "clang") {
			t.Errorf("message %q", res.Message)
		}
	}
}

// A profile that takes too long for the person is given up, with the processes
// that the worker has started.
func TestCancelProfile(t *testing.T) {
	need.OK(t, emulator.Check())
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize("", `{"lint":{"enabled":false}}`)
	e.open(`func.func @f(%a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %c = dm.matmul %a, %b : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %c : tensor<4096x4096xf32>
}
`)
	done := make(chan error, 1)
	go func() {
		profile := strings.TrimSuffix(command("dmir.profile", `,"device":"emulator"`), "}") + `,"workDoneToken":"mine"}`
		_, err := e.conn.Call(context.Background(), "workspace/executeCommand", jsonrpc2.RawMessage(profile), nil)
		done <- err
	}()
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), "creating the inputs") })
	e.notify("window/workDoneProgress/cancel", `{"token":"mine"}`)
	select {
	case err := <-done:
		if codeOf(err) != protocol.CodeRequestCancelled {
			t.Errorf("got %v", err)
		}
	case <-time.After(patient):
		t.Error("the profile goes on")
	}
}

// Times that are far from what was predicted are a note on the kernel's line, as
// long as both are of one machine.
func TestDifferences(t *testing.T) {
	for how, want := range map[string]int{"slow": 1, "slow elsewhere": 0} {
		t.Run(how, func(t *testing.T) {
			e := connect(t, Options{Worker: workerCommand(how)}, nil)
			e.initialize("", `{"lint":{"enabled":false}}`)
			e.open(program)
			var res job.RunResult
			e.must("workspace/executeCommand", command("dmir.profile", ""), &res)
			if !strings.HasPrefix(res.Message, "@f takes 15.0 µs on NVIDIA H200, predicted 10.0 µs; 2 kernels, the slowest k0 with 10.0 µs") {
				t.Errorf("message %q", res.Message)
			}
			if want == 0 {
				if got := strings.Join(e.hints(0, 99), "\n"); !strings.Contains(got, "1: 10.0µs"+feature.MarkMeasured) {
					t.Errorf("hints:\n%s", got)
				}
				return
			}
			ds := e.diagnostics(1, func(ds []protocol.Diagnostic) bool { return len(ds) > 0 })
			if len(ds) != want || ds[0].Code != protocol.String("DM723") || ds[0].Severity != protocol.DiagnosticSeverityInformation || ds[0].Range.Start != (protocol.Position{Line: 1, Character: 2}) ||
				!strings.Contains(string(ds[0].Message.(protocol.String)), "kernel k0 takes 10.0 µs on NVIDIA H200, 100 % more than the 5.00 µs predicted; 40 % of the roofline") {
				t.Errorf("diagnostics %+v", ds)
			}
			if got := strings.Join(e.hints(0, 99), "\n"); !strings.Contains(got, "1: 10.0µs"+feature.MarkMeasured) {
				t.Errorf("hints:\n%s", got)
			}
			e.change(2, edit(0, 0, 0, 0, " "))
			e.diagnostics(2, func(ds []protocol.Diagnostic) bool { return len(ds) == 0 })
		})
	}
}

// misbehaveOnDevice are workers that tell of devices that are not here.
func misbehaveOnDevice(how string) int {
	res := worker.Result{OK: true, Device: "cuda", Title: "NVIDIA H200", ElapsedNs: 15_000, Results: []worker.Output{}, Ops: []worker.OpTime{}}
	switch how {
	case "slow", "slow elsewhere":
		res.Foreign = how != "slow"
		res.Kernels = []worker.Kernel{
			{Name: "k0", Lines: []int{2}, PredictedNs: 5000, RoofNs: 4000, MeasuredNs: 10_000},
			{Name: "k1", Lines: []int{3}, PredictedNs: 5000, RoofNs: 4000, MeasuredNs: 5000},
		}
	case "fault":
		start := strings.Index(program, "%r = dm.relu")
		res = worker.Result{
			Device: "cuda", Results: []worker.Output{}, Ops: []worker.OpTime{}, Code: "DM860",
			Message: "kernel k0_r reads outside of its memory, line 3", Start: start, End: start + 5,
		}
	default:
		return 0
	}
	raw, err := json.Marshal(map[string]any{"result": res})
	if err != nil {
		return 1
	}
	fmt.Println(string(raw))
	return 0
}

// A kernel that does what no kernel may is a problem on its line; the server
// goes on.
func TestKernelFault(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("fault")}, nil)
	e.initialize("", `{"lint":{"enabled":false}}`)
	e.open(program)
	for version := 1; version <= 2; version++ {
		var res job.RunResult
		e.must("workspace/executeCommand", command("dmir.profile", ""), &res)
		if res.OK || !strings.Contains(res.Message, "k0_r") {
			t.Errorf("answer %+v", res)
		}
		ds := e.diagnostics(int32(version), func(ds []protocol.Diagnostic) bool { return len(ds) == 1 })
		if ds[0].Code != protocol.String("DM860") || ds[0].Range.Start.Line != 2 {
			t.Errorf("diagnostics %+v", ds)
		}
		e.change(version+1, edit(0, 0, 0, 0, ""))
	}
}

// A worker that compiles and hangs, dies or is cancelled leaves an answer, and a
// server that goes on.
func TestBadBuilds(t *testing.T) {
	for how, want := range map[string]string{"crash": "// @f was not compiled: the worker process died", "hang": "// @f was stopped after", "noise": "invalid message"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e := connect(t, Options{Worker: workerCommand(how), RunTimeout: failingRun{worker: how}.timeouts()[0]}, nil)
			e.initialize(`{"workspace":{"textDocumentContent":{}}}`, `{"lint":{"enabled":false}}`)
			e.open(program)
			if got := e.content(session.ViewAddress("cuda", testURI, "f")); !strings.Contains(got, want) {
				t.Errorf("view:\n%s", got)
			}
			var res job.CompileResult
			e.must("workspace/executeCommand", command("dmir.compile", ""), &res)
			if res.OK || !strings.Contains("// "+res.Message, want) {
				t.Errorf("result %+v", res)
			}
			e.diagnostics(1, func(ds []protocol.Diagnostic) bool { return len(ds) == 1 })
		})
	}
}
