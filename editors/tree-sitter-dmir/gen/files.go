package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Words of MLIR's builtin dialect, which is not in dmir's registry.
var (
	builtinTypes = []string{"none", "tf32"}
	shapedTypes  = []string{"complex", "memref", "tensor", "tuple", "vector"}
	otherFloats  = `f[0-9]+E[0-9]+M[0-9]+[A-Z]*`
	structure    = []string{"func.call", "func.func", "func.return", "call", "func", "module", "builtin.module", "return"}
	modifiers    = []string{"nested", "private", "public"}
	keywords     = []string{"affine_map", "affine_set", "array", "attributes", "dense", "dense_resource", "loc", "sparse"}
)

// copies are the folders that queries are copied to, by the query's name: each editor has a folder of its own.
var copies = map[string][]string{
	"folds.scm":  {"../nvim/queries/dmir"},
	"locals.scm": {"../nvim/queries/dmir", "../helix/runtime/queries/dmir"},
}

// files are the generated files by their path below the grammar's folder.
func files(folder string) (map[string]string, error) {
	w := collect()
	highlights := w.highlights()
	out := map[string]string{
		"src/facts.json":                               w.facts(),
		"queries/highlights.scm":                       highlights,
		"../nvim/queries/dmir/highlights.scm":          highlights,
		"../helix/runtime/queries/dmir/highlights.scm": highlights,
	}
	for name, places := range copies {
		text, err := os.ReadFile(filepath.Join(folder, "queries", name))
		if err != nil {
			return nil, err
		}
		for _, place := range places {
			out[place+"/"+name] = string(text)
		}
	}
	return out, nil
}

// words are the names in the registry, each list sorted and without duplicates.
type words struct {
	elements  []string // element types
	regions   []string // ops that always hold a region, or end one, by full name
	plain     []string // the other ops of the dialect
	constants []string // values of attributes that are words, memory spaces among them
	joints    []string // words between an op's regions
}

func collect() words {
	var w words
	for e := types.InvalidElem + 1; ; e++ {
		w.elements = append(w.elements, e.String())
		if e == types.Index {
			break
		}
	}
	for _, d := range op.All() {
		holds := slices.ContainsFunc(d.Regions, func(r op.RegionDef) bool { return !r.Optional })
		if holds || d.Is(op.Terminator) {
			w.regions = append(w.regions, d.FullName())
		} else {
			w.plain = append(w.plain, d.FullName())
		}
		for _, a := range d.Attrs {
			w.constants = append(w.constants, a.Enum...)
		}
		for _, r := range d.Regions {
			if r.Keyword != "" {
				w.joints = append(w.joints, r.Keyword)
			}
		}
	}
	for _, s := range types.Spaces {
		w.constants = append(w.constants, string(s))
	}
	for _, list := range []*[]string{&w.elements, &w.regions, &w.plain, &w.constants, &w.joints} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return w
}

// facts are the words that grammar.js builds tokens from.
func (w words) facts() string {
	text, err := json.MarshalIndent(map[string]any{
		"elements": w.elements,
		"floats":   otherFloats,
		"types":    builtinTypes,
		"shaped":   shapedTypes,
	}, "", "  ")
	if err != nil {
		panic(err) // maps and slices of strings always encode
	}
	return string(text) + "\n"
}

// highlights is the query for syntax highlighting. If several patterns match, the last one applies.
func (w words) highlights() string {
	var s strings.Builder
	s.WriteString(`; Written by go generate ./editors/tree-sitter-dmir/gen from dmir's registry of ops; do not edit.

(value) @variable
(result) @variable
(symbol) @function
(block_label) @label
(successor) @label
(alias_name) @constant.macro
(attribute_alias) @constant.macro
(type_alias) @type
(type_name) @type.builtin
(builtin_type) @type.builtin
(dimensions) @number
(integer) @number
(float) @number.float
(boolean) @boolean
(string) @string
(attribute_name) @property
(resources) @comment.documentation
(operator) @operator
["->" "=" "==" ">=" "<=" ":" "::"] @operator
"," @punctuation.delimiter
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
(arguments ["<" ">"] @punctuation.bracket)

; Ops of the registry and of the builtin dialects, then those of all others. A name with our prefix that is not in the
; registry stays plain.
`)
	s.WriteString(condition("(op_name)", "@function.builtin", "any-of?", append(quoted(w.plain), w.plain...)))
	s.WriteString(condition("(op_name)", "@keyword", "any-of?", slices.Concat(quoted(w.regions), w.regions, structure)))
	s.WriteString(condition("(op_name)", "@function.call", "not-match?", []string{`^("?dm\.|func\.|(builtin\.)?module$|func$|call$|return$)`}))
	s.WriteString("\n; Keywords between the items of an op: those of MLIR, and those of the attributes of the registry's ops.\n")
	s.WriteString(condition("(identifier)", "@keyword", "any-of?", append(w.joints, keywords...)))
	s.WriteString(condition("(identifier)", "@keyword.modifier", "any-of?", modifiers))
	s.WriteString(condition("(identifier)", "@constant.builtin", "any-of?", w.constants))
	s.WriteString(`
((operation
  name: (op_name) @keyword
  (parenthesized (value) @variable.parameter))
  (#eq? @keyword "func.func"))
(block
  arguments: (parenthesized (value) @variable.parameter))

; Findings that are silenced and the mark between two programs of one file stand out from other comments.
`)
	special := []string{`^//( *dmir: *ignore| -----)`}
	s.WriteString(condition("(comment)", "@comment", "not-match?", special))
	s.WriteString(condition("(comment)", "@keyword.directive", "match?", special))
	return s.String()
}

// condition is a pattern for the nodes whose text satisfies the predicate.
func condition(node, capture, predicate string, words []string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "(%s %s\n  (#%s %s", node, capture, predicate, capture)
	column := 1000
	for _, w := range words {
		text := fmt.Sprintf(" %q", w)
		if column+len(text) > 118 {
			s.WriteString("\n   ")
			column = 3
		}
		s.WriteString(text)
		column += len(text)
	}
	s.WriteString("))\n")
	return s.String()
}

// quoted are names in the form of generic ops.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = `"` + n + `"`
	}
	return out
}
