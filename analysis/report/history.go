package report

import (
	"dmir/analysis/cost"
	"dmir/analysis/diff"
	"dmir/analysis/program"
)

// History is the code actions that were applied to a document since it was opened.
type History struct {
	Applied []Applied `json:"applied"` // the last one first
}

// The states of an applied action.
const (
	StateApplied  = "applied"  // the text has it
	StateReverted = "reverted" // the text has again what stood there before
	StateEdited   = "edited"   // what it wrote was edited since
)

// Applied is a code action that was applied.
type Applied struct {
	ID    int    `json:"id"`
	Title string `json:"title"` // without what it promised to save: Saved is what it saved
	At    string `json:"at"`    // the time of day: "14:02:31"
	State string `json:"state"`
	Place        // of its first change in the text of now
	Lines string `json:"lines"` // of all its changes: "lines 3–5, 9"
	Note  string `json:"note"`  // why it cannot be reverted; "" where it can be
	Saved []Gain `json:"saved"` // by function, of those whose costs it changed; null while these are computed
}

// Gain is what an action changed in a function.
type Gain struct {
	Function string `json:"function"`
	Moved    Delta  `json:"moved_bytes"`
	Time     Delta  `json:"time_ns"`
	Peak     Delta  `json:"peak_bytes"`
}

// Gains compares the totals of the functions that two versions have, and lists
// those that differ.
func Gains(old, new *program.Program) []Gain {
	out := []Gain{}
	for _, f := range diff.Functions(old, new) {
		if f.Old == nil || f.New == nil {
			continue
		}
		g := Gain{
			Function: f.New.Func.Name,
			Moved:    delta(funcSide(f.Old, bytesLabel, (*cost.Func).Moved), funcSide(f.New, bytesLabel, (*cost.Func).Moved), bytesLabel),
			Time:     timeDelta(funcTime(f.Old, old), funcTime(f.New, new)),
			Peak:     delta(peakSide(f.Old), peakSide(f.New), bytesLabel),
		}
		if g.Moved.changed() || g.Time.changed() || g.Peak.changed() {
			out = append(out, g)
		}
	}
	return out
}
