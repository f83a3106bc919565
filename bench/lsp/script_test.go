package main

import (
	"fmt"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// The script restores each text, and its breaks flags are correct: dmir
// finds errors after exactly those edits.
func TestScript(t *testing.T) {
	for _, f := range []form{generic, pretty} {
		for _, perFunc := range []int{100, 300} {
			t.Run(fmt.Sprint(f.name, perFunc), func(t *testing.T) {
				text := f.program(300, perFunc)
				doc := newDocument(text)
				s := &script{doc: doc}
				n := 0
				do := func(e edit) error {
					n++
					doc.apply(e)
					if n%7 != 0 && n > 200 { // a sample
						return nil
					}
					if bad := inError(doc.text()); bad != e.breaks {
						t.Fatalf("edit %d, %+v: text has an error: %v", n, e, bad)
					}
					return nil
				}
				if inError(text) {
					t.Fatal("the text has an error")
				}
				var sessions []session
				for range 8 {
					sessions = append(sessions, s.next()...)
				}
				// Except the function's new name, which is an error only for its callers.
				for i, play := range append(sessions, s.farReaching()...) {
					if err := play(do); err != nil {
						t.Fatal(err)
					}
					if doc.text() != text {
						t.Fatalf("session %d does not restore the text", i)
					}
				}
				t.Log(n, "edits")
			})
		}
	}
}

func inError(text string) bool {
	for _, d := range program.Load(source.New("t.mlir", text), program.Options{}).Diags {
		if d.Severity == diag.Error {
			return true
		}
	}
	return false
}
