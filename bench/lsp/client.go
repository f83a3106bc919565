package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client is an editor's side of one connection: it frames messages, matches
// responses to requests, records when the diagnostics of each version arrived, and
// answers the server's requests.
type client struct {
	name string
	cmd  *exec.Cmd
	out  *bufio.Writer
	full bool // the server requests full document sync

	mu      sync.Mutex
	changed *sync.Cond
	writing sync.Mutex
	nextID  int
	answers map[int]*answer
	shown   map[int]shown // by version
	last    shown
	logged  []string // errors that the server logged
	ended   error
}

// answer is the response to one request.
type answer struct {
	at     time.Time // when the last byte of it was read
	bytes  int
	result json.RawMessage
	err    string
}

// shown is the first publication of the diagnostics of a version.
type shown struct {
	at    time.Time
	bytes int
	count int
}

// patience is the timeout of all waits.
const patience = 2 * time.Minute

var errPatience = errors.New("no answer in time")

// start starts a server and initializes a session.
func start(name string, argv []string) (*client, error) {
	c := &client{name: name, cmd: exec.Command(argv[0], argv[1:]...), answers: map[int]*answer{}, shown: map[int]shown{}}
	c.changed = sync.NewCond(&c.mu)
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewWriterSize(in, 1<<20)
	from, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	if name == "dmir" { // the peer writes its log there
		c.cmd.Stderr = &stderr
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := c.read(bufio.NewReaderSize(from, 1<<20))
		_ = c.cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if s := strings.TrimSpace(stderr.String()); s != "" {
			err = fmt.Errorf("%w: %s", err, s)
		}
		c.ended = fmt.Errorf("%s ended: %w", name, err)
		c.changed.Broadcast()
	}()
	a, err := c.ask("initialize", json.RawMessage(fmt.Sprintf(initializeParams, os.Getpid())))
	if err != nil {
		return nil, err
	}
	if c.full, err = wantsWhole(a.result); err != nil {
		return nil, err
	}
	_, err = c.notify("initialized", struct{}{})
	return c, err
}

// wantsWhole reports whether the server requests full document sync. The capability is
// a TextDocumentSyncKind, alone or in an object.
func wantsWhole(result json.RawMessage) (bool, error) {
	var r struct {
		Capabilities struct {
			Sync json.RawMessage `json:"textDocumentSync"`
		} `json:"capabilities"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return false, err
	}
	var options struct {
		Change int `json:"change"`
	}
	kind := json.Unmarshal(r.Capabilities.Sync, &options.Change)
	object := json.Unmarshal(r.Capabilities.Sync, &options)
	if kind != nil && object != nil || options.Change < 1 || options.Change > 2 {
		return false, fmt.Errorf("textDocumentSync is %s", r.Capabilities.Sync)
	}
	return options.Change == 1, nil
}

// change sends an edit of the document and returns the time at which it was sent.
func (c *client) change(d *document, e edit) (time.Time, error) {
	d.apply(e)
	content := map[string]any{"text": e.text, "range": span(e.line, e.col, e.end, e.ecol)}
	if c.full {
		content = map[string]any{"text": d.text()}
	}
	return c.sendChange(d, content)
}

// reset sends the whole text.
func (c *client) reset(d *document, text string) error {
	d.lines = strings.Split(text, "\n")
	d.version++
	if _, err := c.sendChange(d, map[string]any{"text": text}); err != nil {
		return err
	}
	_, err := c.diagnosed(d.version)
	return err
}

func (c *client) sendChange(d *document, content map[string]any) (time.Time, error) {
	return c.notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": uri, "version": d.version},
		"contentChanges": []any{content},
	})
}

// initializeParams are those of an editor such as VS Code: UTF-16 positions, and
// every part of the protocol that the measurements use.
const initializeParams = `{"processId":%d,"rootUri":null,"clientInfo":{"name":"bench/lsp"},"capabilities":{
"general":{"positionEncodings":["utf-16"]},
"workspace":{"configuration":true,"applyEdit":true,"workspaceEdit":{"documentChanges":true},"inlayHint":{"refreshSupport":true},"codeLens":{"refreshSupport":true},"semanticTokens":{"refreshSupport":true},"didChangeConfiguration":{"dynamicRegistration":true},"didChangeWatchedFiles":{"dynamicRegistration":true}},
"window":{"workDoneProgress":true},
"textDocument":{"publishDiagnostics":{"relatedInformation":true,"versionSupport":true,"codeDescriptionSupport":true,"dataSupport":true,"tagSupport":{"valueSet":[1,2]}},
"synchronization":{"didSave":true},"hover":{"contentFormat":["markdown","plaintext"]},"inlayHint":{"resolveSupport":{"properties":["tooltip"]}},
"completion":{"completionItem":{"snippetSupport":true,"documentationFormat":["markdown","plaintext"],"resolveSupport":{"properties":["documentation","detail"]}}},
"documentSymbol":{"hierarchicalDocumentSymbolSupport":true},"foldingRange":{"lineFoldingOnly":true},
"codeAction":{"codeActionLiteralSupport":{"codeActionKind":{"valueSet":["quickfix","refactor","source.fixAll"]}},"dataSupport":true,"resolveSupport":{"properties":["edit"]}},
"semanticTokens":{"requests":{"range":true,"full":{"delta":true}},"tokenTypes":["namespace","type","class","enum","interface","struct","typeParameter","parameter","variable","property","enumMember","event","function","method","macro","keyword","modifier","comment","string","number","regexp","operator","decorator","label"],"tokenModifiers":["declaration","definition","readonly","static","deprecated"],"formats":["relative"],"overlappingTokenSupport":false,"multilineTokenSupport":true}}}}`

// write sends one message and returns the time at which it was ready to be sent.
func (c *client) write(m any) (time.Time, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // like editors
	if err := enc.Encode(m); err != nil {
		return time.Time{}, err
	}
	ready := time.Now()
	fmt.Fprintf(c.out, "Content-Length: %d\r\n\r\n", body.Len())
	_, _ = c.out.Write(body.Bytes())
	return ready, c.out.Flush()
}

func (c *client) notify(method string, params any) (time.Time, error) {
	return c.write(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// send sends a request without waiting for the response.
func (c *client) send(method string, params any) (id int, at time.Time, err error) {
	c.mu.Lock()
	c.nextID++
	id = c.nextID
	c.mu.Unlock()
	at, err = c.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, at, err
}

// ask sends a request and waits for the response.
func (c *client) ask(method string, params any) (*answer, error) {
	id, _, err := c.send(method, params)
	if err != nil {
		return nil, err
	}
	a, err := c.await(id)
	if err == nil && a.err != "" {
		err = fmt.Errorf("%s: %s: %s", c.name, method, a.err)
	}
	return a, err
}

// await waits for the response to a request that was sent.
func (c *client) await(id int) (*answer, error) {
	var a *answer
	err := c.until(func() bool { a = c.answers[id]; return a != nil })
	c.mu.Lock()
	delete(c.answers, id)
	c.mu.Unlock()
	return a, err
}

// diagnosed waits for the diagnostics of a version or a later one.
func (c *client) diagnosed(version int) (s shown, err error) {
	err = c.until(func() bool {
		var ok bool
		s, ok = c.shown[version]
		return ok
	})
	return s, err
}

// until waits for a condition, which it evaluates with c.mu held.
func (c *client) until(met func() bool) error {
	late := time.AfterFunc(patience, c.changed.Broadcast)
	defer late.Stop()
	begin := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !met() {
		if c.ended != nil {
			return c.ended
		}
		if time.Since(begin) >= patience {
			return fmt.Errorf("%s: %w %s", c.name, errPatience, strings.Join(c.logged, "\n"))
		}
		c.changed.Wait()
	}
	return nil
}

// incoming is a received message of any kind.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// read receives messages until the server's output ends. It records the time when a
// message is complete, before it is decoded.
func (c *client) read(in *bufio.Reader) error {
	for {
		length := -1
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return err
			}
			line = strings.TrimRight(line, "\r\n")
			if line == "" {
				break
			}
			if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
				if length, err = strconv.Atoi(n); err != nil {
					return fmt.Errorf("header %q", line)
				}
			}
		}
		if length < 0 {
			return errors.New("a message without a length")
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		at := time.Now()
		var m incoming
		if err := json.Unmarshal(body, &m); err != nil {
			return fmt.Errorf("a message is not JSON: %w", err)
		}
		if err := c.take(m, at, length); err != nil {
			return err
		}
	}
}

func (c *client) take(m incoming, at time.Time, length int) error {
	switch {
	case m.Method != "" && m.ID != nil:
		_, err := c.write(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": reply(m)})
		return err
	case m.Method == "textDocument/publishDiagnostics":
		var p struct {
			Version     *int              `json:"version"`
			Diagnostics []json.RawMessage `json:"diagnostics"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return err
		}
		if p.Version == nil {
			return nil // for a closed document
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = shown{at, length, len(p.Diagnostics)}
		// A server may process several versions together; diagnostics of one version
		// apply to the earlier ones.
		for v := *p.Version; v > 0; v-- {
			if _, ok := c.shown[v]; ok {
				break
			}
			c.shown[v] = c.last
		}
		c.changed.Broadcast()
	case m.Method == "window/logMessage":
		var p struct {
			Type    int    `json:"type"`
			Message string `json:"message"`
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Type == 1 {
			c.mu.Lock()
			c.logged = append(c.logged, p.Message)
			c.mu.Unlock()
		}
	case m.Method == "":
		id, err := strconv.Atoi(string(m.ID))
		if err != nil {
			return fmt.Errorf("a response to unknown request %s", m.ID)
		}
		a := &answer{at: at, bytes: length, result: m.Result}
		if m.Error != nil {
			a.err = m.Error.Message
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answers[id] = a
		c.changed.Broadcast()
	}
	return nil
}

// reply is the response of an editor without settings to a server's request.
func reply(m incoming) any {
	if m.Method != "workspace/configuration" {
		return nil
	}
	var p struct {
		Items []json.RawMessage `json:"items"`
	}
	_ = json.Unmarshal(m.Params, &p) // without items there are no settings
	return make([]any, len(p.Items))
}

// stop shuts down the session and the process.
func (c *client) stop() error {
	_, err := c.ask("shutdown", nil)
	if err == nil {
		_, err = c.notify("exit", nil)
	}
	done := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer done.Stop()
	_ = c.until(func() bool { return c.ended != nil })
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && len(c.logged) > 0 {
		err = fmt.Errorf("%s logged an error: %s", c.name, c.logged[0])
	}
	return err
}
