package feature

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// filling is what the holes of an op's form hold at a place, the best first.
type filling struct {
	operands [][]string // of each operand that the form has
	types    []string
}

// The bounds of what a filling tries: values that may be an operand, choices of a hole, and
// operands by which the others are chosen.
const (
	maxFilled  = 64
	maxChoices = 8
	maxTried   = 4
)

// fill puts what the text before the place suggests into the holes of the forms of items.
func (s *statement) fill(items []Completion) []Completion {
	var near []*ir.Value
	for v := range s.visible() {
		if len(near) == maxFilled {
			break
		}
		near = append(near, v)
	}
	typed := strings.ToLower(s.typed())
	out := slices.Clone(items)
	for i := range out {
		c := &out[i]
		switch {
		case !subsequence(typed, strings.ToLower(c.Label+c.Filter)): // the editor leaves it out
		case c.Text == "return":
			c.Snippet = s.returned(near)
		case c.Snippet != "" && c.Op != "":
			if d := op.Lookup(c.Op); d != nil {
				c.Snippet = snippet(d, s.filling(d, near))
			}
		}
	}
	return out
}

// subsequence reports whether text has the letters of part in their order, by which
// editors compare.
func subsequence(part, text string) bool {
	for _, r := range part {
		i := strings.IndexRune(text, r)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}

// filling is what d may have as operands among the values that are near, the nearest first,
// and the types that follow.
func (s *statement) filling(d *op.Def, near []*ir.Value) filling {
	var f filling
	fits := fitting(d, near)
	if chosen, ok := choose(d, fits); ok {
		for i, v := range chosen {
			fits[i] = append([]*ir.Value{v}, slices.DeleteFunc(slices.Clone(fits[i]), func(o *ir.Value) bool { return o == v })...)
		}
		for _, first := range fits[0][:min(len(fits[0]), maxTried)] {
			operands := append([]*ir.Value{first}, chosen[1:]...)
			if text := s.typesOf(d, operands); text != "" && !slices.Contains(f.types, text) {
				f.types = append(f.types, text)
			}
		}
	}
	for _, fit := range fits {
		var names []string
		for _, v := range fit[:min(len(fit), maxChoices)] {
			names = append(names, v.Name)
		}
		f.operands = append(f.operands, names)
	}
	return f
}

// fitting are the values that fit each operand that must be written.
func fitting(d *op.Def, near []*ir.Value) (fits [][]*ir.Value) {
	for _, p := range d.Operands {
		if p.Optional {
			continue
		}
		w := want{elems: p.Elems}
		if len(fits) > 0 && len(fits[0]) > 0 && d.Is(op.Pointwise) {
			w.like, w.shape = fits[0][0].Type, true
		}
		var fit, again []*ir.Value
		for _, v := range near {
			switch {
			case w.fit(v) != 0:
			case slices.ContainsFunc(fits, func(other []*ir.Value) bool { return len(other) > 0 && other[0] == v }):
				again = append(again, v) // rather one that is no operand yet
			default:
				fit = append(fit, v)
			}
		}
		fits = append(fits, append(fit, again...))
	}
	return fits
}

// choose takes the first operands that d can have together; ok is false where none fit.
func choose(d *op.Def, fits [][]*ir.Value) (chosen []*ir.Value, ok bool) {
	if len(fits) == 0 || slices.ContainsFunc(fits, func(fit []*ir.Value) bool { return len(fit) == 0 }) {
		return nil, false
	}
	for _, fit := range fits {
		chosen = append(chosen, fit[0])
	}
	first := slices.Clone(chosen)
	for _, a := range fits[0][:min(len(fits[0]), maxTried)] {
		last := fits[len(fits)-1]
		for _, b := range last[:min(len(last), maxTried)] {
			if chosen[0], chosen[len(chosen)-1] = a, b; len(chosen) == 1 {
				chosen[0] = a
			}
			if _, ok := inferredOf(d, chosen); ok {
				return chosen, true
			}
		}
	}
	return first, true
}

// inferredOf are the types of the results of d with such operands, and the first words of
// attributes that it needs.
func inferredOf(d *op.Def, operands []*ir.Value) ([]types.Type, bool) {
	o := &ir.Op{Name: d.FullName(), Operands: operands}
	for range d.Results {
		o.Results = append(o.Results, &ir.Value{Type: types.Unknown})
	}
	for i := range d.Attrs {
		if a := &d.Attrs[i]; a.Default == nil && !a.Optional && len(a.Enum) > 0 {
			o.SetAttr(a.Name, types.Keyword(a.Enum[0]))
		}
	}
	return verify.Infer(o)
}

// typesOf is the type of d with such operands as it is written, "" where it is not known.
func (s *statement) typesOf(d *op.Def, operands []*ir.Value) string {
	if d.Is(op.Terminator) {
		return s.spelled(list(operands))
	}
	results, ok := inferredOf(d, operands)
	if !ok || slices.Contains(results, types.Type(types.Unknown)) {
		return ""
	}
	return s.spelled(signatureText(operands, results))
}

// spelled is a type with the aliases that the text has for tensors.
func (s *statement) spelled(text string) string {
	for _, a := range s.aliases('!') {
		if strings.HasPrefix(a.Detail, "tensor<") {
			text = strings.ReplaceAll(text, a.Detail, a.Label)
		}
	}
	return text
}

// returned is the form of return with values of the types that the function has.
func (s *statement) returned(near []*ir.Value) string {
	if s.block == nil {
		return ""
	}
	owner := s.block.Region.Op
	i := slices.IndexFunc(s.module.Funcs, func(f *ir.Func) bool { return f.Op == owner })
	if i < 0 || len(s.module.Funcs[i].Results) == 0 {
		return ""
	}
	results := s.module.Funcs[i].Results
	holes, texts := make([]string, len(results)), make([]string, len(results))
	for k, t := range results {
		var names []string
		for _, v := range near {
			if len(names) < maxChoices && (want{exact: t}).fit(v) == 0 {
				names = append(names, v.Name)
			}
		}
		holes[k], texts[k] = pickHole(k+1, names, "%value"), t.String()
	}
	return "return " + strings.Join(holes, ", ") + " : " + pickHole(len(results)+1, []string{s.spelled(strings.Join(texts, ", "))}, "")
}

var (
	inHole   = strings.NewReplacer(`\`, `\\`, "$", `\$`, "}", `\}`)
	inChoice = strings.NewReplacer(`\`, `\\`, "$", `\$`, "}", `\}`, ",", `\,`, "|", `\|`)
)

// pickHole is the place of a snippet for one of the words, the first by default; for otherwise
// where there are none.
func pickHole(n int, words []string, otherwise string) string {
	if len(words) > 1 {
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = inChoice.Replace(w)
		}
		return fmt.Sprintf("${%d|%s|}", n, strings.Join(list, ","))
	}
	return fmt.Sprintf("${%d:%s}", n, inHole.Replace(append(words, otherwise)[0]))
}
