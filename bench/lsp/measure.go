package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const uri = "file:///bench/model.mlir"

// figures summarizes a sample of times in ms.
type figures struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func summarize(ms []float64) figures {
	if len(ms) == 0 {
		return figures{}
	}
	s := slices.Sorted(slices.Values(ms))
	at := func(q float64) float64 { // nearest rank
		return s[min(len(s)-1, max(0, int(q*float64(len(s))+0.999999)-1))]
	}
	return figures{len(s), at(0.5), at(0.9), at(0.99), s[len(s)-1]}
}

// measured holds the results of one server for one text.
type measured struct {
	OpenMs      figures            `json:"open"`
	OpenCPU     figures            `json:"open_processor_time"`           // of all threads, independent of other processes
	Edit        figures            `json:"edit_to_diagnostics_and_hints"` // for the peer: to diagnostics
	Valid       figures            `json:"edit_to_valid_text"`            // of these, the edits that leave no error
	Diagnostics figures            `json:"edit_to_diagnostics"`
	Hints       figures            `json:"edit_to_hints"`
	Kinds       map[string]figures `json:"edit_by_kind"`
	Far         map[string]figures `json:"far_reaching_edit_by_kind"` // not part of edit_…
	Requests    []request          `json:"requests"`
	Idle        memory             `json:"memory_after_open"`
	End         memory             `json:"memory_after_edits"`
	Shown       int                `json:"diagnostics_after_open"`
}

// subject is a server to measure.
type subject struct {
	name  string
	argv  []string
	hints bool // request inlay hints of the visible range after each edit
	prof  *profile
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// open starts the server, opens the text and waits for its diagnostics.
func (s *subject) open(text string) (c *client, wall, busy float64, err error) {
	c, err = start(s.name, s.argv)
	if err != nil {
		return nil, 0, 0, err
	}
	before := c.busy()
	begin, err := c.notify("textDocument/didOpen", map[string]any{
		"textDocument": map[string]any{"uri": uri, "languageId": "mlir", "version": 1, "text": text},
	})
	if err != nil {
		return nil, 0, 0, err
	}
	d, err := c.diagnosed(1)
	return c, ms(d.at.Sub(begin)), c.busy() - before, err
}

// opens measures opening in new processes, alternating the servers, and returns
// the last process of each.
func opens(subjects []*subject, text string, times int, out []*measured) ([]*client, error) {
	last := make([]*client, len(subjects))
	took, busy := make([][]float64, len(subjects)), make([][]float64, len(subjects))
	for range times {
		for i, s := range subjects {
			if last[i] != nil {
				if err := last[i].stop(); err != nil {
					return nil, err
				}
			}
			c, t, b, err := s.open(text)
			if err != nil {
				return nil, err
			}
			last[i] = c
			took[i] = append(took[i], t)
			busy[i] = append(busy[i], b)
		}
	}
	for i, c := range last {
		c.settle()
		out[i].OpenMs, out[i].OpenCPU = summarize(took[i]), summarize(busy[i])
		out[i].Idle = c.memory()
		out[i].Shown = c.last.count
	}
	return last, nil
}

// player sends edits and measures the responses.
type player struct {
	*subject
	c    *client
	doc  *document
	pace pace
	rnd  *rand.Rand
	left int // remaining edits

	all, valid, diags, hint []float64
	kinds                   map[string][]float64
}

// pace is the timing of the edits.
type pace struct {
	gap  time.Duration // between the answer to one edit and the next edit
	rest time.Duration // at most, between sessions of edits; at least a third of it
}

var errEnough = errors.New("enough edits")

// edit sends one edit and, if the server provides hints, requests those of the
// fifty lines around it immediately, as an editor does. The time ends when both
// the diagnostics of this version and the hints have arrived.
func (p *player) edit(e edit) error {
	if p.left == 0 {
		return errEnough
	}
	p.left--
	time.Sleep(p.pace.gap)
	begin, err := p.c.change(p.doc, e)
	if err != nil {
		return err
	}
	var hintMs float64
	if p.hints {
		first, end := max(0, e.line-25), min(len(p.doc.lines)-1, e.line+25)
		id, _, err := p.c.send("textDocument/inlayHint", map[string]any{"textDocument": document1, "range": span(first, 0, end, 0)})
		if err != nil {
			return err
		}
		a, err := p.c.await(id)
		if err == nil && a.err != "" {
			err = fmt.Errorf("inlayHint after %+v: %s", e, a.err)
		}
		if err != nil {
			return err
		}
		hintMs = ms(a.at.Sub(begin))
	}
	d, err := p.c.diagnosed(p.doc.version)
	if err != nil {
		return fmt.Errorf("after %+v: %w", e, err)
	}
	took := max(ms(d.at.Sub(begin)), hintMs)
	p.kinds[e.kind] = append(p.kinds[e.kind], took)
	if verbose {
		fmt.Printf("%-12s line %6d  diagnostics %8.2f ms  hints %8.2f ms  %d shown, %d bytes\n", e.kind, e.line+1, ms(d.at.Sub(begin)), hintMs, d.count, d.bytes)
	}
	p.all = append(p.all, took)
	if !e.breaks {
		p.valid = append(p.valid, took)
	}
	p.diags = append(p.diags, ms(d.at.Sub(begin)))
	if p.hints {
		p.hint = append(p.hint, hintMs)
	}
	return nil
}

var document1 = map[string]any{"uri": uri}

// play runs sessions with a pause after each, so that the idle work of a server
// is in progress when the next edit arrives.
func (p *player) play(sessions []session) error {
	for _, s := range sessions {
		if err := s(p.edit); err != nil {
			return err
		}
		if r := p.pace.rest; r > 0 {
			time.Sleep(r/3 + time.Duration(p.rnd.Int64N(int64(r)*2/3+1)))
		}
	}
	return nil
}

func byKind(samples map[string][]float64) map[string]figures {
	out := map[string]figures{}
	for kind, s := range samples {
		out[kind] = summarize(s)
	}
	return out
}

// edits plays the script on an open document, then the edits that change whole
// functions. It restores the document.
func (s *subject) edits(c *client, text string, n int, pace pace, out *measured) (*document, error) {
	p := &player{subject: s, c: c, doc: newDocument(text), pace: pace, rnd: rand.New(rand.NewPCG(1, 2)), left: n, kinds: map[string][]float64{}}
	script := &script{doc: p.doc}
	if err := s.prof.begin(c); err != nil {
		return nil, err
	}
	for p.left > 0 {
		if err := p.play(script.next()); err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
	}
	if err := s.prof.end(c); err != nil {
		return nil, err
	}
	out.Edit, out.Valid, out.Diagnostics, out.Hints = summarize(p.all), summarize(p.valid), summarize(p.diags), summarize(p.hint)
	out.Kinds = byKind(p.kinds)
	c.settle()
	out.End = c.memory()

	// The count may have truncated a session, so restore the original text.
	if err := c.reset(p.doc, text); err != nil {
		return nil, err
	}
	p.kinds, p.left = map[string][]float64{}, 1000
	for range 3 {
		if err := p.play(script.farReaching()); err != nil {
			return nil, err
		}
	}
	out.Far = byKind(p.kinds)
	return p.doc, nil
}
