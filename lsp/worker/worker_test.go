package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

const text = `func.func @f(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = dm.exp %a : tensor<64x64xf32>
  %k = dm.kernel -> tensor<64x64xf32> { %n = dm.neg %e : tensor<64x64xf32>
    dm.yield %n : tensor<64x64xf32>
  }
  return %k : tensor<64x64xf32>
}
`

// answer runs one request through Main and takes its messages apart.
func answer(t *testing.T, req Request) (notes []string, res *Result) {
	t.Helper()
	line, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	go func() { _, _ = feed.Write(append(line, '\n')) }()
	defer feed.Close()
	var out bytes.Buffer
	if err := Main(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var m message
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.Result != nil {
			res = m.Result
		} else if m.Progress.Note != "" {
			notes = append(notes, m.Progress.Note)
		}
	}
	if res == nil {
		t.Fatal("no result")
	}
	return notes, res
}

func TestRequest(t *testing.T) {
	notes, res := answer(t, Request{Path: "f.dmir", Text: text, Func: "f", Seed: 1, Device: "reference"})
	if !res.OK || len(res.Results) != 1 || res.Results[0].Name != "k" || !strings.Contains(res.Results[0].Summary, "mean") {
		t.Errorf("result %+v", res)
	}
	if got := strings.Join(notes, ", "); got != "creating the inputs, reading the results" {
		t.Errorf("notes %s", got)
	}
	// The kernel's op stands on the kernel's line and does not count twice.
	lines := map[int]int64{}
	for _, o := range res.Ops {
		lines[o.Line] += o.Ns
	}
	if len(lines) != 2 || len(res.Ops) != 2 || lines[2] <= 0 || lines[3] <= 0 {
		t.Errorf("times %+v", res.Ops)
	}
	_, again := answer(t, Request{Path: "f.dmir", Text: text, Func: "@f", Seed: 1, Device: "reference"})
	_, other := answer(t, Request{Path: "f.dmir", Text: text, Func: "f", Seed: 2, Device: "reference"})
	if res.Results[0].Summary != again.Results[0].Summary || res.Results[0].Summary == other.Results[0].Summary {
		t.Errorf("seeds 1, 1, 2 gave %q, %q, %q", res.Results[0].Summary, again.Results[0].Summary, other.Results[0].Summary)
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		req  Request
		want string
		code string
	}{
		"device":   {Request{Text: text, Func: "f", Device: "abacus"}, "abacus", ""},
		"function": {Request{Text: text, Func: "g"}, "@g", ""},
		"syntax":   {Request{Text: strings.Replace(text, "%e :", "%missing :", 1), Func: "f"}, "line 3: %missing", "DM160"},
		"header":   {Request{Text: strings.Replace(text, "%a:", "%a;", 1), Func: "f"}, "line 1: ", "DM026"},
		"size":     {Request{Text: strings.ReplaceAll(text, "64x64xf32>", "?xf32, #dm.at<dims = [n]>>"), Func: "f"}, `"n"`, "DM701"},
	} {
		t.Run(name, func(t *testing.T) {
			_, res := answer(t, c.req)
			if res.OK || !strings.Contains(res.Message, c.want) || res.Code != c.code {
				t.Errorf("result %+v, want %q and code %q", res, c.want, c.code)
			}
		})
	}
	for name, in := range map[string]string{"nothing": "", "half a line": `{"text":`, "no JSON": "x\n"} {
		if err := Main(t.Context(), strings.NewReader(in), io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What is wrong elsewhere does not keep a function from running.
func TestErrorElsewhere(t *testing.T) {
	broken := strings.NewReplacer("@f", "@broken", "%e :", "%missing :").Replace(text)
	if _, res := answer(t, Request{Text: text + broken, Func: "f"}); !res.OK {
		t.Errorf("result %+v", res)
	}
	if _, res := answer(t, Request{Text: text + broken, Func: "broken"}); res.OK || res.Code != "DM160" {
		t.Errorf("result %+v", res)
	}
}

// The end of the input ends the run.
func TestEndOfInput(t *testing.T) {
	loop := `func.func @f(%a: tensor<i1>) -> tensor<i1> {
  %r = dm.while %a : (tensor<i1>) -> tensor<i1> {
  ^bb0(%x: tensor<i1>):
    %t = dm.constant dense<true> : tensor<i1>
    dm.yield %t : tensor<i1>
  } do {
  ^bb0(%y: tensor<i1>):
    dm.yield %y : tensor<i1>
  }
  return %r : tensor<i1>
}
`
	line, err := json.Marshal(Request{Text: loop, Func: "f"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Main(t.Context(), strings.NewReader(string(line)+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"ok":false`) {
		t.Errorf("an endless loop ended with %s", out.String())
	}
}

// A worker that is asked to end writes no result.
func TestKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	line, err := json.Marshal(Request{Text: text, Func: "f"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Main(ctx, strings.NewReader(string(line)+"\n"), &out); !errors.Is(err, context.Canceled) || strings.Contains(out.String(), "result") {
		t.Errorf("got %v, %s", err, out.String())
	}
}

// However fast progress is, the last of it is sent even if no more comes.
func TestLastProgress(t *testing.T) {
	r, w := io.Pipe()
	replies := &replyWriter{enc: json.NewEncoder(w)}
	go func() {
		for line := range 20 {
			replies.progress(Progress{Done: line, Total: 20, Line: line + 1})
		}
	}()
	dec := json.NewDecoder(r)
	for last := 0; last != 20; {
		var m message
		if err := dec.Decode(&m); err != nil || m.Progress == nil || m.Progress.Line <= last {
			t.Fatalf("after line %d: %+v, %v", last, m.Progress, err)
		}
		last = m.Progress.Line
	}
}
