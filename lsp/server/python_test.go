package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// pythonEditor has model.py of a workspace like testdata/traced open; change may edit the workspace before.
func pythonEditor(t *testing.T, change func(dir string), options string) (e *editor, dir, document string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/traced")); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(dir)
	}
	e = connect(t, Options{}, nil)
	e.initialize(`{"workspace":{"inlayHint":{"refreshSupport":true}}}`, options)
	path := filepath.Join(dir, "model.py")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	address := string(uri.File(path))
	e.notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"python","version":1,"text":%s}}`, address, quote(string(text))))
	return e, dir, address
}

// settled waits until what is known of traces has been published twice: as written, and as compiled.
func (e *editor) settled() {
	e.t.Helper()
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool { return strings.Contains(string(p), "DM201") })
}

func (e *editor) pythonHints(document string) string {
	e.t.Helper()
	var got []struct {
		Position protocol.Position `json:"position"`
		Label    string            `json:"label"`
	}
	e.must("textDocument/inlayHint", fmt.Sprintf(`{"textDocument":{"uri":%q},"range":{"start":{"line":0,"character":0},"end":{"line":99,"character":0}}}`, document), &got)
	var lines []string
	for _, h := range got {
		lines = append(lines, fmt.Sprintf("%d %s", h.Position.Line+1, h.Label))
	}
	return strings.Join(lines, "\n")
}

func (e *editor) pythonLenses(document string) string {
	e.t.Helper()
	var got []protocol.CodeLens
	e.must("textDocument/codeLens", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, document), &got)
	var lines []string
	for _, l := range got {
		lines = append(lines, fmt.Sprintf("%d %s", l.Range.Start.Line+1, l.Command.Title))
	}
	return strings.Join(lines, "\n")
}

// A Python file with a trace has hints, lenses, hovers, findings and a way to the traced program; figures move with edits, and lines
// that changed show nothing.
func TestPython(t *testing.T) {
	e, dir, doc := pythonEditor(t, nil, "")
	e.settled()
	if got, want := e.pythonHints(doc), "6 1.41µs 33kB\n7 5.03µs 228kB\n14 10.2µs 634kB\n15 9.65µs 501kB\n21 1.38µs 100kB\n27 4.29µs 309kB"; got != want {
		t.Errorf("hints are\n%s\nnot\n%s", got, want)
	}
	var column []columnHint
	e.must("dmir/hints", fmt.Sprintf(`{"textDocument":{"uri":%q},"ranges":[%s,%s]}`, doc, lineRange(5, 6), lineRange(6, 13)), &column)
	if len(column) != 3 || column[2].Label != "10.2µs 634kB" || column[2].Level == nil || *column[2].Level <= *column[0].Level {
		t.Errorf("the column is %+v", column)
	}
	lenses := e.pythonLenses(doc)
	for _, want := range []string{"1 step: 31.9 µs · 1.81 MB moved, as compiled", "1 Trace again", "10 19.8 µs · 62.1 % of the program", "13 19.8 µs"} {
		if !strings.Contains(lenses, want) {
			t.Errorf("no lens %q in\n%s", want, lenses)
		}
	}
	var hover protocol.Hover
	at := func(line int) string {
		return fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":%d,"character":9}}`, doc, line-1)
	}
	e.must("textDocument/hover", at(14), &hover)
	text := fmt.Sprint(hover.Contents)
	for _, want := range []string{"**10.2 µs**, 31.9 % of the program", "| backward | 7.00 µs |", "| as written | 20.1 µs |", "bound by tail", "at the peak", "`dm.matmul` ×3 (line 20)", "jax 0.10.2"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var report protocol.RelatedFullDocumentDiagnosticReport
	if e.must("textDocument/diagnostic", at(14), &report); len(report.Items) > 0 {
		t.Errorf("a Python file is taken for a program: %v", report.Items)
	}
	var places []protocol.Location
	e.must("textDocument/implementation", at(14), &places)
	if len(places) == 0 || places[0].URI != uri.File(filepath.Join(dir, ".dmir/traces/step.mlir")) || places[0].Range.Start.Line != 19 {
		t.Errorf("the traced program is at %+v", places)
	}
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[%s,%s]}`, doc, edit(0, 0, 0, 0, "# new\n"), edit(7, 0, 7, 0, " ")))
	if got, want := e.pythonHints(doc), "7 1.41µs 33kB\n15 10.2µs 634kB\n16 9.65µs 501kB\n22 1.38µs 100kB\n28 4.29µs 309kB"; got != want {
		t.Errorf("after an edit hints are\n%s\nnot\n%s", got, want)
	}
	if lenses := e.pythonLenses(doc); strings.Count(lenses, "the file has changed since") != 1 {
		t.Errorf("one mark says that the trace is older:\n%s", lenses)
	}
	e.wait("textDocument/publishDiagnostics", func(p json.RawMessage) bool {
		return strings.Contains(string(p), `"version":2`) && strings.Contains(string(p), "DM201") && !strings.Contains(string(p), `"line":7,`)
	})
}

// What is wrong with traces is one sentence in the file, and none of it is fatal.
func TestPythonWithoutTrace(t *testing.T) {
	trace := func(dir, name string) string { return filepath.Join(dir, ".dmir/traces", name) }
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		change func(dir string)
		lens   string // "" for none
	}{
		"no traces":           {func(dir string) { _ = os.RemoveAll(filepath.Join(dir, ".dmir")) }, ""},
		"damaged":             {func(dir string) { write(trace(dir, "step.json"), `{"dmir_trace": 1,`) }, "1 dmir: step.json: it is no description of a trace: unexpected end of JSON input"},
		"its program is gone": {func(dir string) { _ = os.Remove(trace(dir, "step.mlir")) }, "1 dmir: step.json: its program step.mlir cannot be read: no such file or directory"},
		"its program is none": {func(dir string) { write(trace(dir, "step.mlir"), "func.func @f() { stablehlo.nothing }") }, "1 dmir: step.json: step.mlir:1:"},
		"two traces of a file": {func(dir string) {
			write(trace(dir, "old.json"), strings.NewReplacer(`"name": "step"`, `"name": "old"`, "2026-11-28T", "2025-11-28T").Replace(read(trace(dir, "step.json"))))
		}, "older traces of this file are not shown: old"},
		"named in pyproject.toml": {func(dir string) {
			if err := os.Rename(filepath.Join(dir, ".dmir/traces"), filepath.Join(dir, "perf")); err != nil {
				t.Error(err)
			}
			_ = os.RemoveAll(filepath.Join(dir, ".dmir"))
			write(filepath.Join(dir, "pyproject.toml"), "[tool.dmir]\ntraces = [\"perf\"]\n")
		}, "step: "},
		"a loss that is trained": {func(dir string) {
			write(trace(dir, "step.json"), strings.Replace(read(trace(dir, "step.json")), "{", `{"train": {"loss": "output", "optimizer": "adamw", "parameters": "w"},`, 1))
			write(trace(dir, "step.mlir"), `func.func public @main(%w: tensor<3x2xf32>, %x: tensor<4x3xf32>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32> loc("`+filepath.Join(dir, "model.py")+`":7:0)
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}`)
		}, "1 step: 7.30 µs · 356 B moved"},
		"trained wrongly": {func(dir string) {
			write(trace(dir, "step.json"), strings.Replace(read(trace(dir, "step.json")), "{", `{"train": {"loss": "output", "optimizer": "adamw"},`, 1))
		}, "1 dmir: step.json: is missing: the program does not tell which of its arguments are parameters"},
		"named outside": {func(dir string) {
			write(filepath.Join(dir, "dmir.toml"), "traces = [\"../step.json\"]\n")
		}, `dmir: dmir.toml names the trace "../step.json", which is not in the workspace`},
	} {
		t.Run(name, func(t *testing.T) {
			e, _, doc := pythonEditor(t, c.change, "")
			if c.lens == "" {
				if got := e.pythonLenses(doc) + e.pythonHints(doc); got != "" {
					t.Errorf("without a trace there is %s", got)
				}
				return
			}
			for start := time.Now(); time.Since(start) < patient; time.Sleep(5 * time.Millisecond) {
				if strings.Contains(e.pythonLenses(doc), c.lens) {
					return
				}
			}
			t.Errorf("no %q in\n%s", c.lens, e.pythonLenses(doc))
		})
	}
}

// The command of a trace runs where the editor says that the workspace is trusted, and where it says nothing only if the person agrees.
func TestTraceAgain(t *testing.T) {
	tracing := func(command string) func(string) {
		return func(dir string) {
			path := filepath.Join(dir, ".dmir/traces/step.json")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			var trace map[string]any
			if err := json.Unmarshal(text, &trace); err != nil {
				t.Error(err)
			}
			trace["command"] = []string{"sh", "-c", command}
			if text, err = json.Marshal(trace); err == nil {
				err = os.WriteFile(path, text, 0o644)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		command, options string
		ok               bool
		message          string
		ran              bool
	}{
		"trusted":             {"touch ran", `{"trusted":true}`, true, "step is traced", true},
		"not trusted":         {"touch ran", `{"trusted":false}`, false, "step was not traced: the workspace is not trusted", false},
		"nothing said":        {"touch ran", "", false, "step was not traced", false},
		"the script fails":    {"touch ran; echo 'ValueError: no shapes' >&2; exit 3", `{"trusted":true}`, false, "step was not traced: ValueError: no shapes", true},
		"there is no program": {"exec /nowhere/python", `{"trusted":true}`, false, "step was not traced: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			e, dir, doc := pythonEditor(t, tracing(c.command), c.options)
			e.settled()
			var got struct {
				OK      bool   `json:"ok"`
				Message string `json:"message"`
			}
			e.must("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.traceAgain","arguments":[{"uri":%q}]}`, doc), &got)
			if got.OK != c.ok || !strings.HasPrefix(got.Message, c.message) {
				t.Errorf("the answer is %+v", got)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); (err == nil) != c.ran {
				t.Errorf("that it ran is %v", err == nil)
			}
		})
	}
}

// A server for Python files alone, beside a person's own, offers nothing that the other does.
func TestPythonOnly(t *testing.T) {
	e := connect(t, Options{}, nil)
	can := e.initialize("", `{"python":true}`).Capabilities
	if can.DocumentFormattingProvider != nil || can.RenameProvider != nil || can.CompletionProvider != nil || can.HoverProvider == nil || can.InlayHintProvider == nil {
		t.Errorf("it can %+v", can)
	}
}
