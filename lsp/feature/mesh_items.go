package feature

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/lex"
)

// meshes are those of the section.
func (s *statement) meshes() []*mesh.Mesh { return mesh.All(s.moduleAt()) }

// wantsMesh reports whether the word is the name of a mesh: behind split = in a placement, or
// behind dm.mesh = in the attributes of a function.
func (s *statement) wantsMesh() bool {
	n := len(s.before)
	return s.tok(n-1) == "=" && (s.tok(n-2) == "split" || s.tok(n-2) == op.MeshAttr)
}

// meshItems are the meshes, behind split = with the axes of each dimension left to write.
func (s *statement) meshItems() []Completion {
	split := s.tok(len(s.before)-2) == "split"
	dims := max(1, len(s.placed(s.place())))
	var out []Completion
	for _, m := range s.meshes() {
		name := types.SymbolOf(m.Name).String()
		c := Completion{Kind: SymbolItem, Label: name, Detail: fmt.Sprintf("%s: %s", plural(m.Devices(), "device"), m), Text: name}
		if split && !s.followedBy('[') {
			holes, empty := make([]string, dims), make([]string, dims)
			for i := range holes {
				holes[i], empty[i] = fmt.Sprintf("{$%d}", i+1), "{}"
			}
			c.Text = name + "[" + strings.Join(empty, ", ") + "]"
			c.Snippet = name + "[" + strings.Join(holes, ", ") + "]"
		}
		out = append(out, c)
	}
	return out
}

// followedBy reports whether b stands behind the place.
func (s *statement) followedBy(b byte) bool {
	text := s.p.Src.Text()
	return s.off < len(text) && text[s.off] == b
}

// axisItems are the axes of m that the tokens from first on do not name yet.
func (s *statement) axisItems(m *mesh.Mesh, first int, quote string) []Completion {
	var out []Completion
	for _, a := range m.Axes {
		written := slices.ContainsFunc(s.before[first:], func(t lex.Token) bool {
			name, _, _ := strings.Cut(strings.Trim(s.p.Src.Slice(t.Span), `"`), ":")
			return name == a.Name
		})
		if !written {
			out = append(out, Completion{Kind: WordItem, Label: a.Name, Detail: plural(a.Size, "device") + " of @" + m.Name, Text: quote + a.Name})
		}
	}
	return out
}

// splitAxes are the completions between the braces at in of a sharding: axes that it does not
// name yet and, in a dimension, the mark that leaves it open.
func (s *statement) splitAxes(in int) []Completion {
	last := s.tok(len(s.before) - 1)
	if last != "{" && last != "," {
		return nil
	}
	at := in
	for at > 0 && s.tok(at) != "split" {
		at--
	}
	name, _ := types.ParseSymbol(s.tok(at + 2)).Name()
	m := mesh.Find(s.moduleAt(), name)
	if m == nil {
		return nil
	}
	out := s.axisItems(m, at+3, "")
	if prev := s.tok(in - 1); prev == "[" || prev == "," {
		out = append(out, Completion{Kind: WordItem, Label: "?", Detail: "open: propagation may add axes", Text: "?"})
	}
	return out
}

// partials begin the axes along which a value is partial, with their reduction.
func partials() []Completion {
	out := make([]Completion, len(types.Reductions))
	for i, word := range types.Reductions {
		r, _ := types.ReductionOf(word)
		out[i] = Completion{Kind: WordItem, Label: word, Detail: "the value is the " + reductionNoun(r) + " of the parts", Text: word + "{}", Snippet: word + "{$1}"}
	}
	return out
}

// functionAxes are the axes that the list at in, of a collective, does not name yet, each with
// its quotes or, where the first is written, up to the second.
func (s *statement) functionAxes(in int) []Completion {
	if in < 0 || s.tok(in) != "[" || s.tok(in-1) != "=" || s.tok(in-2) != "axes" || s.block == nil {
		return nil
	}
	name := ""
	for b := s.block; b != nil && b.Region != nil && b.Region.Op != nil; b = b.Region.Op.Parent {
		if o := b.Region.Op; o.Name == op.Func {
			name = o.Str(op.MeshAttr)
		}
	}
	m := mesh.Find(s.moduleAt(), name)
	if m == nil {
		return nil
	}
	out := s.axisItems(m, in, `"`)
	if s.typed() == "" {
		for i := range out {
			out[i].Text += `"`
		}
	}
	return out
}

// pipelineAxes are the axes that dm.pipeline may name.
func (s *statement) pipelineAxes() []Completion {
	var out []Completion
	for _, m := range s.meshes() {
		for _, a := range m.Axes {
			text := types.Str(a.Name).String()
			out = append(out, Completion{Kind: WordItem, Label: text, Detail: plural(a.Size, "device") + " of @" + m.Name, Text: text})
		}
	}
	return out
}

// quoted are words as strings.
func quoted(words []string, detail string) []Completion {
	out := make([]Completion, len(words))
	for i, w := range words {
		text := types.Str(w).String()
		out[i] = Completion{Kind: WordItem, Label: text, Detail: detail, Text: text}
	}
	return out
}
