package job

import (
	"strings"
	"testing"

	"dmir/lsp/worker"
)

// The message of a run names values as the program does where their names are
// numbers, and ends where it grows long.
func TestAnnouncement(t *testing.T) {
	res := RunResult{Message: "@f ran", Results: []worker.Output{{Name: "y", Summary: "min 0"}, {Name: "1", Summary: "min 2"}}}
	if got, want := announcement(res), "@f ran; y = min 0; %1 = min 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 100 {
		res.Results = append(res.Results, worker.Output{Name: "z", Summary: "min 3"})
	}
	if got := announcement(res); len(got) > 330 || !strings.HasSuffix(got, " more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
