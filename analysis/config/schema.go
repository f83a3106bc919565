package config

import (
	"encoding/json"
	"strings"
)

// schema is a JSON Schema, as far as dmir.toml needs it.
type schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"` // a word or a list of them
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  any                `json:"additionalProperties,omitempty"` // false or a schema
	Items       *schema            `json:"items,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
}

// Schema is the JSON Schema of dmir.toml, for editors that check TOML with one;
// rules are the lint rules that [lint] may name.
func Schema(rules []Choice) ([]byte, error) {
	s := root().schema(rules)
	s.Dialect, s.Title = "http://json-schema.org/draft-07/schema#", FileName
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

func (n node) schema(rules []Choice) *schema {
	s := &schema{Description: strings.ReplaceAll(n.doc, "`", "")}
	kinds, _ := n.kind()
	s.Type = kinds[0]
	if len(kinds) > 1 {
		s.Type = kinds
	}
	var names []string
	for _, c := range n.choices(rules) {
		names = append(names, c.Name)
	}
	// Names of one's own, prefixes of codes and other cases are valid as well.
	known := func() *schema { return &schema{AnyOf: []*schema{{Enum: names}, {Type: "string"}}} }
	switch {
	case n.open():
		s.Additional = n.entry().plain().schema(rules)
		if names != nil {
			s.Properties = map[string]*schema{}
			for _, name := range names {
				s.Properties[name] = n.entry().plain().schema(rules)
			}
			s.Additional = false
		}
	case n.table():
		s.Additional = false
		s.Properties = map[string]*schema{}
		for _, c := range n.children() {
			s.Properties[c.name] = c.schema(rules)
		}
	case kinds[0] == "array":
		s.Items = known()
	case kinds[0] == "integer":
		s.Minimum = new(int)
	case names != nil:
		s.Type, s.AnyOf = nil, known().AnyOf
	}
	return s
}

// plain is n without documentation, for where it is that of the table around it.
func (n node) plain() node {
	n.doc = ""
	return n
}
