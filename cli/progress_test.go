package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"dmir/gpu/device"
)

// A run that takes long says so before it starts, once for all its steps; a short
// one says nothing.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name     string
		expected time.Duration
		rounds   int
		want     string
	}{
		{"short", 2 * time.Second, 1, ""},
		{"long", 38 * time.Minute, 1, "about 38 minutes: 340 GFLOP at 600 MFLOP/s and 2.00 GB at 150 MB/s\n    = help: use smaller sizes\n"},
		{"hours", 5 * time.Hour, 1, "about 5 hours: 340"},
		{"steps", time.Second, 100, "about 1 s for each of 100 steps: 340"},
		{"short steps", time.Millisecond, 100, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var errs bytes.Buffer
			a := &app{stderr: &errs}
			watch := a.watch(newProgress(&errs), c.rounds, "use smaller sizes")
			for range c.rounds {
				watch(device.Progress{Of: 2, Expected: c.expected, FLOP: 340e9, FLOPPerSecond: 6e8, Bytes: 2e9, BytesPerSecond: 15e7})
				watch(device.Progress{Step: "k", At: 2, Of: 2, Done: 0.5, Expected: c.expected})
			}
			if got := errs.String(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") || strings.Count(got, "about") > 1 {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
