package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A request holds a server's times for one method.
type request struct {
	Method string  `json:"method"`
	When   string  `json:"when"` // "idle", or "edit" if sent together with an edit
	Times  figures `json:"times"`
	Bytes  int     `json:"bytes"` // of the largest response
	Error  string  `json:"error,omitempty"`
}

// A query is a request to measure: its parameters for an op on a line.
type query struct {
	method string
	times  int
	params func(d *document, line int) map[string]any
}

func onPlace(find string, behind int) func(d *document, line int) map[string]any {
	return func(d *document, line int) map[string]any {
		return map[string]any{"textDocument": document1, "position": place(line, strings.Index(d.lines[line], find)+behind)}
	}
}

func onText(*document, int) map[string]any { return map[string]any{"textDocument": document1} }

func onLines(around int) func(d *document, line int) map[string]any {
	return func(d *document, line int) map[string]any {
		return map[string]any{"textDocument": document1, "range": span(max(0, line-around), 0, min(len(d.lines)-1, line+around), 0)}
	}
}

func with(params func(*document, int) map[string]any, key string, value any) func(*document, int) map[string]any {
	return func(d *document, line int) map[string]any {
		p := params(d, line)
		p[key] = value
		return p
	}
}

// queries are sent to an idle server, at positions spread over the text.
// Those for the whole text are sent a few times, the others often.
func queries(n int) []query {
	few := min(n, 5)
	return []query{
		{"textDocument/hover", n, onPlace("dm.", 4)},
		{"textDocument/completion", n, onPlace(", %y", 4)},
		{"textDocument/signatureHelp", n, onPlace(", %y", 4)},
		{"textDocument/definition", n, onPlace(", %y", 4)},
		{"textDocument/references", n, with(onPlace("%value_", 3), "context", map[string]any{"includeDeclaration": true})},
		{"textDocument/documentHighlight", n, onPlace("%value_", 3)},
		{"textDocument/prepareRename", n, onPlace("%value_", 3)},
		{"textDocument/selectionRange", n, func(d *document, line int) map[string]any {
			return map[string]any{"textDocument": document1, "positions": []any{place(line, 10)}}
		}},
		{"textDocument/codeAction", n, with(onLines(0), "context", map[string]any{"diagnostics": []any{}})},
		{"textDocument/inlayHint", n, onLines(25)},
		{"textDocument/semanticTokens/range", n, onLines(25)},
		{"textDocument/semanticTokens/full", few, onText},
		{"textDocument/documentSymbol", few, onText},
		{"textDocument/codeLens", few, onText},
		{"textDocument/foldingRange", few, onText},
	}
}

// requests sends all queries to the idle server, then hovers and completions together
// with an edit, which the server must process first.
func (s *subject) requests(c *client, doc *document, n int, out *measured) error {
	places := &script{doc: doc}
	for _, q := range queries(n) {
		r := request{Method: q.method, When: "idle"}
		var took []float64
		for range q.times {
			t, a, err := c.timed(q.method, q.params(doc, places.opLine()))
			if err != nil {
				return err
			}
			if r.Error = a.err; r.Error != "" {
				break
			}
			took, r.Bytes = append(took, t), max(r.Bytes, a.bytes)
		}
		r.Times = summarize(took)
		out.Requests = append(out.Requests, r)
	}
	for _, method := range []string{"textDocument/hover", "textDocument/completion"} {
		r, err := c.withEdits(method, places, n)
		if err != nil {
			return err
		}
		out.Requests = append(out.Requests, r)
	}
	r, err := c.deltas(places, min(n, 10))
	if err != nil {
		return err
	}
	out.Requests = append(out.Requests, r)
	return nil
}

func (c *client) timed(method string, params any) (float64, *answer, error) {
	id, begin, err := c.send(method, params)
	if err != nil {
		return 0, nil, err
	}
	a, err := c.await(id)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", method, err)
	}
	return ms(a.at.Sub(begin)), a, nil
}

// withEdits types the last character of an operand and immediately sends a
// request for that position.
func (c *client) withEdits(method string, places *script, n int) (request, error) {
	r := request{Method: method, When: "edit"}
	doc := places.doc
	var took []float64
	for range n {
		at := places.opLine()
		col := strings.Index(doc.lines[at], ", %y") + len(", %y")
		was := doc.lines[at][col : col+1]
		if _, err := c.change(doc, edit{"", at, col, at, col + 1, "", false}); err != nil {
			return r, err
		}
		if _, err := c.diagnosed(doc.version); err != nil {
			return r, err
		}
		time.Sleep(20 * time.Millisecond)
		begin, err := c.change(doc, edit{"", at, col, at, col, was, false})
		if err != nil {
			return r, err
		}
		_, a, err := c.timed(method, map[string]any{"textDocument": document1, "position": place(at, col+1)})
		if err != nil {
			return r, err
		}
		if r.Error = a.err; r.Error != "" {
			break
		}
		took, r.Bytes = append(took, ms(a.at.Sub(begin))), max(r.Bytes, a.bytes)
		if _, err := c.diagnosed(doc.version); err != nil {
			return r, err
		}
	}
	r.Times = summarize(took)
	return r, nil
}

// deltas requests the semantic token delta after an edit.
func (c *client) deltas(places *script, n int) (request, error) {
	r := request{Method: "textDocument/semanticTokens/full/delta", When: "edit"}
	doc := places.doc
	_, a, err := c.timed("textDocument/semanticTokens/full", map[string]any{"textDocument": document1})
	if err != nil {
		return r, err
	}
	var took []float64
	for range n {
		id := resultID(a)
		if r.Error = a.err; r.Error == "" && id == "" {
			r.Error = "no resultId"
		}
		if r.Error != "" {
			break
		}
		at := places.opLine()
		col := strings.Index(doc.lines[at], " =")
		begin, err := c.change(doc, edit{"", at, col, at, col, "x", false})
		if err != nil {
			return r, err
		}
		_, a, err = c.timed(r.Method, map[string]any{"textDocument": document1, "previousResultId": id})
		if err != nil {
			return r, err
		}
		took, r.Bytes = append(took, ms(a.at.Sub(begin))), max(r.Bytes, a.bytes)
		if _, err := c.change(doc, edit{"", at, col, at, col + 1, "", false}); err != nil {
			return r, err
		}
		if _, err := c.diagnosed(doc.version); err != nil {
			return r, err
		}
	}
	r.Times = summarize(took)
	return r, nil
}

func resultID(a *answer) string {
	var r struct {
		ResultID string `json:"resultId"`
	}
	_ = json.Unmarshal(a.result, &r) // without an object there is no ID
	return r.ResultID
}
