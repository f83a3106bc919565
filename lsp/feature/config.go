package feature

import (
	"sync"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/syntax/source"
)

// CompleteConfig is what can be written at off in a dmir.toml.
func CompleteConfig(src *source.File, off int) Completions {
	found, span := config.Complete(src, off, rules())
	out := Completions{Span: span}
	for _, c := range found {
		kind := AttrItem
		if c.Value {
			kind = WordItem
		}
		out.Items = append(out.Items, Completion{Kind: kind, Label: c.Label, Doc: c.Doc, Text: c.Text})
	}
	return out
}

// HoverConfig documents the key at off in a dmir.toml, nil where there is none.
func HoverConfig(src *source.File, off int) *Hover {
	text, span := config.Hover(src, off)
	if text == "" {
		return nil
	}
	return &Hover{span, text}
}

// rules are the lint rules as choices of a dmir.toml.
var rules = sync.OnceValue(lint.Choices)
