package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"

	"dmir/testkit/edittest"
	"dmir/testkit/need"
)

// anything holds parameters for every method about a place of a document: each
// reads what it knows. The address, the place (twice: a range is one, to its
// right and down or up), the line where it ends, a name.
const anything = `{"textDocument":{"uri":%[1]q,"version":1},"uri":%[1]q,"kind":"graph","by":"time","position":{"line":%[2]d,"character":%[3]d},"positions":[{"line":%[2]d,"character":%[3]d}],
"range":{"start":{"line":%[2]d,"character":%[3]d},"end":{"line":%[4]d,"character":%[3]d}},"context":{"includeDeclaration":true,"diagnostics":[],"triggerKind":1},
"newName":"%%renamed","query":"f","ch":"}","options":{"tabSize":2,"insertSpaces":true},"previousResultId":"0","previousResultIds":[],"identifier":"dmir",
"label":"dm.relu","title":"x","data":{"uri":%[1]q,"version":1},
"item":{"name":"f","kind":12,"uri":%[1]q,"range":{"start":{"line":%[2]d,"character":%[3]d},"end":{"line":%[2]d,"character":%[3]d}},"selectionRange":{"start":{"line":%[2]d,"character":%[3]d},"end":{"line":%[2]d,"character":%[3]d}}},
"command":%[5]q,"arguments":[{"uri":%[1]q,"func":"f","function":"f","kind":"graph","view":"generic","device":"none","setting":"hints"}]}`

// everyMethod is each method that can be asked at any time, from the server's
// own table, so that a new one is asked without being named here.
func everyMethod() []string {
	var out []string
	for _, m := range slices.Sorted(maps.Keys(calls)) {
		if m != "initialize" && m != "shutdown" {
			out = append(out, m)
		}
	}
	return out
}

// brokenTexts are texts as they are while someone types, and worse.
var brokenTexts = []string{
	"", "%", "\"dm.", "dm.", "#a = #dm.at<", "!t = ", "}", "{", "// dmir: ignore[", "\ufeff\x00😀", "^bb(", "-----", "{-#",
	"func.func @f(%x: tensor<4x", "func.func @f() -> ", "module {\n  d",
	"func.func @f(%x: tensor<4xf32>) {\n  %y = dm.add %x, \n  return\n}\n",
	"func.func @f(%x: !t) {\r\n  %é:2 = \"dm.top_k\"(%x) <{\r\n  // 😀\r\n^\r}\n// -----\n!t = \nfunc.func @g(%é: !t) { dm.\n",
	"// %c = fu\nnc.call @addfunc.func @f(%x: ten\"sor9xf32>) \r\n// }\n",
	"dm.dm.dm. : : -> -> = = , , ( [ { < \" ' @ ^ # ! % > } ] )",
	"// \x00\nfunc.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = dm.exp %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n",
	"%a = dm.if %c : (tensor<i1>) -> tensor<4xf32> {\n  dm.yield %\n} else {\n  dm.yield \n}\n",
}

// Every request can be asked at every place of every text, and what is
// answered lies inside the text. Nothing of it breaks the server down. The places of the broken texts take turns.
func TestEveryRequestEverywhere(t *testing.T) {
	e := connect(t, Options{Pause: time.Hour, Worker: workerCommand("leave")}, nil)
	res := e.initialize(wishes, `{"lint":{"enabled":true}}`)
	rnd := rand.New(rand.NewPCG(3, 4))
	version := 1
	e.open("")
	visit := func(text string, places []int) {
		version++
		e.change(version, `{"text":`+quote(text)+`}`)
		lines := len(lineLengths(text))
		for _, off := range places {
			line, col := edittest.Position(text, off, true)
			for _, method := range everyMethod() {
				if strings.HasPrefix(method, "workspace/") && off != places[0] {
					continue // these are about no place
				}
				for _, command := range commandsFor(method, res.Capabilities.ExecuteCommandProvider.Commands) {
					last := line + rnd.IntN(3)
					if rnd.IntN(2) == 0 {
						last = rnd.IntN(lines + 1) // anywhere, before the start too
					}
					e.holds(method, text, fmt.Sprintf(anything, testURI, line, col, last, command))
				}
			}
		}
	}
	sample, step := 8, 1
	if testing.Short() {
		sample, step = 1, 20
	}
	for i, text := range brokenTexts {
		var places []int
		for off := i % step; off <= len(text); off += step {
			if (edittest.Edit{Start: off}).Fit(text).Start == off && (step > 1 || need.Turn(t, off, 3)) {
				places = append(places, off)
			}
		}
		visit(text, append(places, len(text)))
	}
	hostile, err := filepath.Glob("../../cli/testdata/hostile/*.dmir")
	if err != nil || len(hostile) == 0 {
		t.Fatalf("%v, %v", hostile, err)
	}
	for _, name := range hostile {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		visit(string(text), []int{0, len(text) / 2})
	}
	for _, text := range append(examples(t), strings.ReplaceAll(ffn, "\n", "\r\n")) {
		var places []int
		for range sample {
			places = append(places, edittest.Edit{Start: rnd.IntN(len(text) + 1)}.Fit(text).Start)
		}
		visit(text, places)
	}
}

// wishes are the capabilities of an editor that takes all there is.
const wishes = `{"workspace":{"workspaceEdit":{"documentChanges":true},"textDocumentContent":{}},"textDocument":{
"documentSymbol":{"hierarchicalDocumentSymbolSupport":true},"publishDiagnostics":{"relatedInformation":true,"versionSupport":true,"tagSupport":{"valueSet":[1,2]}},
"completion":{"completionItem":{"snippetSupport":true}},"diagnostic":{}}}`

func commandsFor(method string, commands []string) []string {
	if method == "workspace/executeCommand" {
		return commands
	}
	return []string{""}
}

// examples are the programs of the examples folder.
func examples(t testing.TB) (texts []string) {
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// holds asks and checks the answer: no internal error, and every position of
// it is one of the text.
func (e *editor) holds(method, text, params string) {
	e.t.Helper()
	var raw jsonrpc2.RawMessage
	err := e.call(method, params, &raw)
	if codeOf(err) == jsonrpc2.InternalError || codeOf(err) == jsonrpc2.MethodNotFound {
		e.t.Fatalf("%s\nwith %s\nin %q:\n%v", method, params, text, err)
	}
	if err != nil || len(raw) == 0 || strings.HasSuffix(strings.ToLower(method), "resolve") {
		return // what is resolved comes back with the places that it was asked with
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		e.t.Fatalf("%s: answer %q: %v", method, raw, err)
	}
	if bad := outside(v, lineLengths(text)); bad != "" {
		e.t.Fatalf("%s\nwith %s\nin %q:\n%s of %s is not in the text", method, params, text, bad, raw)
	}
}

// lineLengths are those of the lines of a text in UTF-16 units.
func lineLengths(text string) []int {
	var out []int
	start := 0
	for i := 0; i <= len(text); i++ {
		end := i == len(text) || text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n')
		if !end {
			continue
		}
		stop := i
		if i < len(text) && text[i] == '\n' && i > start && text[i-1] == '\r' {
			stop--
		}
		n := 0
		for _, r := range text[start:stop] {
			n++
			if r > 0xFFFF {
				n++
			}
		}
		out, start = append(out, n), i+1
	}
	return out
}

// outside finds a position in an answer that the text does not have.
func outside(v any, lines []int) string {
	switch v := v.(type) {
	case map[string]any:
		line, isLine := v["line"].(float64)
		char, isChar := v["character"].(float64)
		if isLine && isChar && len(v) == 2 && (int(line) >= len(lines) || int(char) > lines[int(line)]) {
			return fmt.Sprintf("%v:%v", line, char)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if bad := outside(v[key], lines); bad != "" {
				return bad
			}
		}
	case []any:
		for _, x := range v {
			if bad := outside(x, lines); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// FuzzRequests asks everything at a place of a text: the server answers every
// request, none with an internal error, and reports none.
func FuzzRequests(f *testing.F) {
	for i, text := range brokenTexts {
		f.Add(text, uint32(i), uint32(i*3))
	}
	f.Add(ffn, uint32(2), uint32(9))
	f.Fuzz(func(t *testing.T, text string, line, char uint32) {
		var in bytes.Buffer
		send := func(body string) { fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(body), body) }
		send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":` + wishes + `}}`)
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"languageId":"dmir","version":1,"text":%s}}}`, testURI, quote(text)))
		methods := everyMethod()
		for i, method := range methods {
			command := []string{"dmir.cost", "dmir.targets"}[i%2]
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i+1, method, fmt.Sprintf(anything, testURI, line, char, int64(line)+2, command)))
		}
		answered := newAnswers(len(methods) + 1)
		done := make(chan error, 1)
		go func() {
			done <- Serve(context.Background(), io.MultiReader(&in, answered.hold()), answered, Options{Pause: time.Hour, Worker: workerCommand("leave")})
		}()
		select {
		case err := <-done:
			if !errors.Is(err, ErrNoShutdown) {
				t.Error(err)
			}
		case <-time.After(patient):
			t.Fatal("not every request was answered")
		}
		if bad := answered.bad(); bad != "" {
			t.Errorf("at %d:%d of %q: %s", line, char, text, bad)
		}
	})
}

// answers reads what a server sends and ends its input when a number of
// requests have been answered.
type answers struct {
	io.Writer
	end   *io.PipeReader
	found chan string
	wrote *io.PipeWriter
}

func newAnswers(n int) *answers {
	from, to := io.Pipe()
	end, ended := io.Pipe()
	a := &answers{Writer: to, end: end, found: make(chan string, 1), wrote: to}
	go func() {
		defer func() { _, _ = io.Copy(io.Discard, from) }()
		bad := ""
		for in := bufio.NewReader(from); n > 0; {
			body, err := readFrame(in)
			if err != nil {
				bad = err.Error()
				break
			}
			var m struct {
				ID     *int   `json:"id"`
				Method string `json:"method"`
				Error  *struct {
					Code int `json:"code"`
				} `json:"error"`
			}
			if err := json.Unmarshal(body, &m); err != nil {
				bad = err.Error()
			}
			if m.ID != nil && m.Method == "" {
				n--
			}
			if m.Error != nil && m.Error.Code == int(jsonrpc2.InternalError) || bytes.Contains(body, []byte("internal error")) {
				bad = string(body)
			}
		}
		a.found <- bad
		_ = ended.Close()
	}()
	return a
}

// hold is an input that ends with the last answer.
func (a *answers) hold() io.Reader { return a.end }

func (a *answers) bad() string {
	_ = a.wrote.Close()
	return <-a.found
}

// readFrame reads one message.
func readFrame(in *bufio.Reader) ([]byte, error) {
	length := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(line) == "" {
			body := make([]byte, length)
			_, err := io.ReadFull(in, body)
			return body, err
		}
		_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
	}
}
