// Package refactor changes programs as a person would by hand: a selection of
// the text becomes a kernel, a function, the expansion of a composite. An
// action is one file. Listing what can be done looks at the selection and what
// lies close to it; the edits are made only when an action is chosen.
//
// Every action keeps the function that the program computes (an expansion may
// round in another place), the comments, and the layout of whatever it does not
// touch; what it writes is laid out as package format would.
package refactor

import (
	"fmt"

	"dmir/analysis/program"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Kind is the family of an action, spelled as editors ask for it.
type Kind string

// The kinds.
const (
	Extract Kind = "refactor.extract"
	Inline  Kind = "refactor.inline"
	Rewrite Kind = "refactor.rewrite"
)

// Action is a change that is offered for a selection.
type Action struct {
	ID       string // what Apply takes
	Kind     Kind
	Title    string // imperative, with what it saves where that is known
	Short    string // Title without what it saves; "" where Title has nothing of that
	Disabled string // why it cannot be applied; "" where it can

	// SavesBytes and SavesNs are what the function's cost loses; negative where
	// it grows, zero where that is not known.
	SavesBytes int64
	SavesNs    float64
}

// Change is the outcome of an action.
type Change struct {
	Edits []diag.Edit // sorted by Start, not overlapping
	Name  string      // of the function that it defined, with "@"; "" where none
}

// Refusal explains why an action cannot be applied, as a message for the user.
type Refusal string

func (r Refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// action is an entry of the table: offer lists what can be done with a
// selection and apply does what offer called id.
type action struct {
	name  string // of the IDs: "name" or "name:detail"
	offer func(*selection) []Action
	apply func(s *selection, detail string) (*Change, error)
}

// table has the actions in the order in which they are offered.
func table() []action {
	return []action{
		{"fuse", offerFuse, applyFuse},
		{"unfuse", offerUnfuse, applyUnfuse},
		{"expand", offerExpand, applyExpand},
		{"inline", offerInline, applyInline},
		{"extract", offerExtract, applyExtract},
		{"types", offerTypes, applyTypes},
		{"form", offerForm, applyForm},
		{"lines", offerLines, applyLines},
		{"budget", offerBudget, applyBudget},
		{"bind", offerBind, applyBind},
	}
}

// Actions lists what can be done with the text in span, which is empty where
// only a cursor stands there. An action that is meant for the selection but
// cannot be applied is listed with the reason.
func Actions(p *program.Program, span source.Span) []Action {
	s := find(p, span)
	if s == nil {
		return nil
	}
	var out []Action
	for _, a := range table() {
		out = append(out, a.offer(s)...)
	}
	return out
}

// Apply makes the edits of the action that Actions listed as id for the same
// program and span. Its errors are Refusals.
func Apply(p *program.Program, span source.Span, id string) (*Change, error) {
	s := find(p, span)
	if s == nil {
		return nil, refuse("there is no op in the selection")
	}
	name, detail := id, ""
	for i := range id {
		if id[i] == ':' {
			name, detail = id[:i], id[i+1:]
			break
		}
	}
	for _, a := range table() {
		if a.name == name {
			c, err := a.apply(s, detail)
			if err != nil {
				return nil, err
			}
			c.Edits = tidy(c.Edits)
			return c, nil
		}
	}
	return nil, refuse("there is no action %q", id)
}
