package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dmir/testkit/edittest"
)

// changeTo sends a step as an editor does.
func (w *wire) changeTo(version int, text string, s edittest.Step) (after string) {
	after, edits := s.Apply(text)
	if s.Whole {
		w.change(version, `{"text":`+quote(after)+`}`)
		return after
	}
	var changes []string
	for _, e := range edits {
		l0, c0 := edittest.Position(text, e.Start, true)
		l1, c1 := edittest.Position(text, e.End, true)
		changes = append(changes, edit(l0, c0, l1, c1, e.Text))
		text = e.Apply(text)
	}
	w.change(version, strings.Join(changes, ","))
	return after
}

// TestTenThousandEdits types while others ask and cancel, and findings come and
// are given up. Every request is answered, the server has no fault, and in the
// end what it shows and answers is what a server shows and answers that has just opened the
// text.
func TestTenThousandEdits(t *testing.T) {
	small := ffn + program
	w := dial(t, Options{Pause: 2 * time.Millisecond, Worker: workerCommand("leave")})
	w.listen()
	w.begin()
	w.open(small)
	writer := edittest.NewWriter(11, small, []string{small, brokenTexts[len(brokenTexts)-3], strings.ReplaceAll(ffn, "\n", "\r\n")})
	writer.Limit = 3000
	pace := 8 // edits between two looks at what is shown
	if testing.Short() {
		writer.Limit, pace = 1500, 40
	}

	// Those who ask look at the text that the writer had not long ago, so some of
	// the places are none of the text that they ask about.
	var text atomic.Value
	text.Store(small)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for seed := range uint64(3) {
		asking.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 5))
			methods := everyMethod()
			for {
				select {
				case <-stop:
					return
				default:
				}
				now := text.Load().(string)
				line, col := edittest.Position(now, edittest.Edit{Start: rnd.IntN(len(now) + 1)}.Fit(now).Start, true)
				params := fmt.Sprintf(anything, testURI, line, col, line+rnd.IntN(5), []string{"dmir.cost", "dmir.targets", "dmir.run"}[min(2, rnd.IntN(60)/20)])
				method := methods[rnd.IntN(len(methods))]
				if method == "workspace/executeCommand" && rnd.IntN(20) > 0 {
					continue
				}
				id := w.request(method, params)
				if rnd.IntN(2) == 0 {
					time.Sleep(time.Duration(rnd.IntN(300)) * time.Microsecond)
					w.notify("$/cancelRequest", fmt.Sprintf(`{"id":%d}`, id))
				}
				if rnd.IntN(10) == 0 {
					w.until("an answer", func() bool { return !w.waiting[id] })
				}
				time.Sleep(200 * time.Microsecond) // three who ask, beside one who types
			}
		})
	}
	const edits = 10_000
	model := small
	for v := 2; v < edits+2; v++ {
		model = w.changeTo(v, model, writer.Step())
		text.Store(model)
		if v%pace == 0 {
			w.until("diagnostics", func() bool { return w.version >= v })
		}
	}
	close(stop)
	asking.Wait()
	w.until("every answer", func() bool { return len(w.waiting) == 0 })
	// The error of a failed run is reported for the text that ran, until the next edit.
	const last = edits + 2
	w.change(last, `{"text":`+quote(model)+`}`)

	f := dial(t, Options{Pause: time.Millisecond})
	f.listen()
	f.begin()
	f.open("")
	f.change(last, `{"text":`+quote(model)+`}`)
	for _, method := range []string{
		"textDocument/inlayHint", "textDocument/documentSymbol", "textDocument/foldingRange", "textDocument/codeLens", "textDocument/semanticTokens/full",
	} {
		params := fmt.Sprintf(anything, testURI, 0, 0, 9999, "")
		got, want := w.ask(method, params), f.ask(method, params)
		if got, want = withoutIDs(got), withoutIDs(want); got != want {
			t.Errorf("%s:\n got %.1000s\nwant %.1000s", method, got, want)
		}
	}
	deadline := time.Now().Add(patient)
	for {
		w.mu.Lock()
		got := w.version == last
		shown := string(w.shown)
		w.mu.Unlock()
		f.mu.Lock()
		want := string(f.shown)
		f.mu.Unlock()
		if got && shown == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("diagnostics of %q:\n got %.1000s\nwant %.1000s", model, shown, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.sound()
	for code, n := range w.errors {
		t.Logf("%d answers with error %d", n, code)
	}
}

// withoutIDs leaves out the numbers of answers, which are a server's own.
func withoutIDs(answer string) string {
	var v map[string]json.RawMessage
	if json.Unmarshal([]byte(answer), &v) != nil {
		return answer
	}
	delete(v, "resultId")
	out, err := json.Marshal(v)
	if err != nil {
		return answer
	}
	return string(out)
}

// resources are what a process holds.
type resources struct {
	heap       uint64 // live bytes
	goroutines int
	files      int // 0 where that is not known
}

// within reports whether r is no more than what was held before, and heap bytes
// and two goroutines beyond it.
func (r resources) within(before resources, heap int64) bool {
	return int64(r.heap)-int64(before.heap) <= heap && r.goroutines <= before.goroutines+2 && r.files <= before.files
}

func hold() resources {
	var m runtime.MemStats
	for range 3 { // what finalizers and pools let go of goes with a later one
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return resources{m.HeapAlloc, runtime.NumGoroutine(), len(files)}
}

// Memory, goroutines and open files after 10,000 edits are what they were. The
// tolerance is 1 MB of live heap, a hundred bytes an edit, two goroutines that
// are about to end, and no file. Where every edit brings names, types,
// attributes and comments that were never seen before, caches may grow to their
// bounds; then it is 3 kB an edit.
func TestNothingLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has a memory of its own")
	}
	for _, c := range []struct {
		name            string
		edits, variants int
		heap            int64
	}{
		{"seen before", 10_000, 300, 1 << 20},
		{"never seen before", 3_000, 1 << 30, 3_000 * 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			typist := newTypist(t, c.variants)
			typist.edit(1000)
			before := hold()
			typist.edit(c.edits)
			// What is under way still ends and lets go; what leaks stays.
			var after resources
			for deadline := time.Now().Add(patient); ; {
				after = hold()
				if after.within(before, c.heap) || time.Now().After(deadline) {
					break
				}
			}
			t.Logf("before %+v, after %+v", before, after)
			if !after.within(before, c.heap) {
				t.Errorf("after %d edits the server holds %+v, before them %+v", c.edits, after, before)
			}
			typist.sound()
		})
	}
}

// typist rewrites lines of a document for as long as one likes.
type typist struct {
	*wire
	text              string
	version, variants int
	written           int
}

const typistFuncs = 8

func newTypist(t *testing.T, variants int) *typist {
	var b strings.Builder
	for i := range typistFuncs {
		fmt.Fprintf(&b, "func.func @f%d(%%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n  %%y = dm.exp %%x {note = \"n\"} : tensor<4x8xf32> // c\n  %%z = dm.neg %%y : tensor<4x8xf32>\n  return %%z : tensor<4x8xf32>\n}\n", i)
	}
	w := &typist{wire: dial(t, Options{Pause: time.Millisecond, Worker: workerCommand("leave")}), text: b.String(), version: 1, variants: variants}
	w.listen()
	w.begin()
	w.open(w.text)
	return w
}

// edit makes n edits, asks for this and that in between, and leaves the text
// as it was.
func (w *typist) edit(n int) {
	for i := range n {
		line := 1 + 5*(i%typistFuncs)
		w.written++
		w.version++
		k := w.written % w.variants
		w.change(w.version, edit(line, 0, line+1, 0, fmt.Sprintf("  %%y%d = dm.exp %%x {note = \"n%d\", k%d = %d : i64} : tensor<%dx8xf32> // c%d\n", k, k, k, k, k+1, k)))
		switch i % 100 {
		case 10:
			_ = w.ask("textDocument/semanticTokens/full", doc)
		case 20:
			_ = w.ask("textDocument/inlayHint", fmt.Sprintf(anything, testURI, 0, 0, 999, ""))
		case 30:
			_ = w.ask("textDocument/codeAction", fmt.Sprintf(anything, testURI, 0, 0, 999, ""))
		case 40:
			w.notify("textDocument/didClose", doc)
			w.open(w.text)
			w.version = 1
		case 50:
			_ = w.ask("textDocument/completion", at(line, 5))
		}
		if i%5 == 0 { // typing does not outrun the server
			w.shownVersion()
		}
	}
	w.version++
	w.change(w.version, `{"text":`+quote(w.text)+`}`)
	w.shownVersion()
	time.Sleep(200 * time.Millisecond) // the findings, too
}

// shownVersion waits for the diagnostics of the version that was sent last.
func (w *typist) shownVersion() {
	w.until("diagnostics", func() bool { return w.wire.version == w.version })
}
