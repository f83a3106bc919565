package workspace

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"dmir/syntax/diag"
)

// Where memory runs out, a deep diagnosis ends without findings and the analyses of other
// documents go; with memory again, both are there as before.
func TestPressure(t *testing.T) {
	var used atomic.Int64
	type published struct {
		key   string
		diags []diag.Diagnostic
	}
	news := make(chan published, 100)
	ctx, cancel := context.WithCancel(t.Context())
	w := New(ctx, Options{
		Pause:   time.Millisecond,
		Publish: func(s *Snapshot, ds []diag.Diagnostic) { news <- published{s.Key, ds} },
		Failed:  func(uri string, p any) { t.Errorf("%s: %v", uri, p) },
	})
	w.pressure = pressure{1000, used.Load}
	found := func(key string) int {
		for p := range news {
			if p.key == key && len(p.diags) > 0 {
				return len(p.diags)
			}
		}
		return 0
	}
	w.Open(Address{Key: "other", Path: "other.dmir"}, 1, text)
	want := found("other")
	loaded := func(key string) bool {
		a := w.Snapshot(key).analysis
		a.mu.RLock()
		defer a.mu.RUnlock()
		return a.l != nil
	}
	if !loaded("other") {
		t.Fatal("an open document has no analysis")
	}

	used.Store(901)
	w.Open(Address{Key: "f", Path: "f.dmir"}, 1, text)
	for p := range news {
		if p.key == "f" {
			break
		}
	}
	if loaded("other") {
		t.Error("the analysis of another document is kept")
	}
	used.Store(900)
	if !w.Snapshot("other").With(func(v *View) { want -= len(v.Findings(t.Context())) }) || want != 0 {
		t.Errorf("analysed again, there are %d findings fewer", want)
	}

	used.Store(901)
	deep, stop := context.WithCancel(t.Context())
	w.mu.Lock()
	d := w.docs["f"]
	w.mu.Unlock()
	defer w.watch(d, stop)()
	<-deep.Done() // a deep diagnosis that goes on is a test that hangs
	cancel()
	w.Wait()
}
