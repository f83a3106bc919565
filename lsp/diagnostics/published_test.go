package diagnostics

import (
	"testing"

	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// An editor that has pulled the diagnostics of a text is asked to pull again if there
// are others, found before the answer was recorded or after it; and only then.
func TestStaleAnswers(t *testing.T) {
	text := func() *workspace.Snapshot {
		return &workspace.Snapshot{Address: workspace.Address{Key: "f"}, Src: source.New("f.dmir", "")}
	}
	errors, all := []diag.Diagnostic{{Code: "DM160"}}, []diag.Diagnostic{{Code: "DM160"}, {Code: "DM207"}}
	for name, play := range map[string]struct {
		stale bool
		play  func(p *published, snap *workspace.Snapshot) bool
	}{
		"found after the answer": {true, func(p *published, snap *workspace.Snapshot) bool {
			p.put(snap, errors)
			return !p.answer(p.docs["f"]) && p.put(snap, all)
		}},
		"found while the answer was made": {true, func(p *published, snap *workspace.Snapshot) bool {
			p.put(snap, errors)
			told := p.docs["f"]
			return !p.put(snap, all) && p.answer(told)
		}},
		"found again": {false, func(p *published, snap *workspace.Snapshot) bool {
			p.put(snap, all)
			told := p.docs["f"]
			return p.put(snap, all) || p.answer(told) || p.put(snap, all)
		}},
		"of a newer text": {false, func(p *published, snap *workspace.Snapshot) bool {
			p.put(snap, errors)
			told := p.docs["f"]
			newer := text()
			return p.put(newer, all) || p.answer(told) || p.put(newer, errors)
		}},
		"closed": {false, func(p *published, snap *workspace.Snapshot) bool {
			p.put(snap, errors)
			told := p.docs["f"]
			p.forget("f")
			return p.answer(told)
		}},
		"broken down": {false, func(p *published, snap *workspace.Snapshot) bool {
			p.put(snap, errors)
			told := p.docs["f"]
			p.fail("f")
			return p.answer(told)
		}},
	} {
		if got := play.play(new(published), text()); got != play.stale {
			t.Errorf("%s: stale %v, want %v", name, got, play.stale)
		}
	}
}
