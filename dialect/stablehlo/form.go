package stablehlo

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
)

// read takes the attributes and the types of the results from the text: from the
// dictionaries of the generic form, or from the clauses of the op's own form.
func (c *call) read() error {
	c.attrs = map[string]string{}
	for _, r := range c.o.Results {
		c.outs = append(c.outs, r.Type)
	}
	t := c.tree()
	if t == nil { // made by another conversion
		for _, a := range c.o.Attrs {
			c.attrs[a.Name] = a.Value.String()
		}
		return nil
	}
	if t.Form == ast.Generic {
		for _, at := range []ast.Rel{t.Attrs, {Start: t.Props.Start + 1, End: t.Props.End - 1}} {
			if !at.Empty() {
				if err := c.dictionary(t.Text(c.m.Src, at)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	text := c.m.Src.Slice(t.Span())
	end := len(text)
	if !t.Sig.Empty() {
		end = strings.LastIndexByte(text[:t.Sig.Start], ':')
		if err := c.signature(text[t.Sig.Start:t.Sig.End]); err != nil && !strings.HasPrefix(c.name, "global.") { // whose types are the global's
			return err
		}
	} else if len(t.Regions) > 0 {
		end = int(t.Regions[0].Open)
	}
	if !t.Loc.Empty() {
		end = min(end, int(t.Loc.Start))
	}
	if end < int(t.NameSpan.End) {
		return nil
	}
	return c.head(strings.TrimSpace(text[t.NameSpan.End:end]))
}

func (c *call) dictionary(text string) error {
	x, err := parse.Attr(text)
	if err != nil {
		return invalid("%v", err)
	}
	for _, e := range x.Entries {
		c.attrs[e.Key] = ""
		if e.Value != nil {
			c.attrs[e.Key] = e.Value.Text
		}
	}
	return nil
}

// signature reads the types behind the colon of an op's own form.
func (c *call) signature(text string) error {
	for _, word := range []string{" reducer", " cond", " attributes", "\n"} {
		if i := strings.Index(text, word); i >= 0 {
			text = text[:i]
		}
	}
	text = strings.TrimSpace(text)
	if in, out, found := strings.Cut(text, " -> "); found && !strings.HasPrefix(text, "(") {
		text = "(" + in + ") -> " + out // as CHLO writes one operand
	}
	sig, err := parse.Signature(text)
	if err != nil {
		return invalid("%v", err)
	}
	list := sig.Out
	if sig.List { // of the operands: the results have the last ones
		list = sig.In[max(0, len(sig.In)-len(c.o.Results)):]
	}
	if len(list) == 0 && len(c.outs) > 0 {
		return invalid("no type of the result")
	}
	for i := range c.outs {
		x := list[min(i, len(list)-1)]
		ty, err := types.FromExpr(x, c.m.Aliases)
		if err != nil {
			return unsupported("%v", err)
		}
		c.outs[i] = ty
	}
	return nil
}

// head reads what stands between the name and the types of an op's own form:
// operands, clauses `name = value`, and words.
func (c *call) head(text string) error {
	if strings.HasPrefix(text, "{") { // before a constant
		if end := closing(text); end > 0 {
			text = strings.TrimSpace(text[end+1:])
		}
	}
	if strings.HasSuffix(text, "}") { // the dictionary stands last
		if open := opening(text); open > 0 && !strings.HasSuffix(strings.TrimRight(text[:open], " "), "=") {
			if err := c.dictionary(text[open:]); err != nil {
				return err
			}
			text = strings.TrimSpace(text[:open])
		}
	}
	for _, part := range split(text) {
		name, value, found := strings.Cut(part, " = ")
		switch {
		case found && isName(name):
			c.attrs[name] = strings.TrimSpace(value)
		case part != "":
			c.words = append(c.words, part)
		}
	}
	return nil
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// opening is where the bracket opens that the last character of text closes.
func opening(text string) int {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case '}', ']', ')':
			depth++
		case '{', '[', '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// closing is where the bracket closes that the first character of text opens.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// split cuts text at the commas outside of brackets and strings.
func split(text string) []string {
	var out []string
	depth, start, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case quoted:
			if ch == '\\' {
				i++
			} else if ch == '"' {
				quoted = false
			}
		case ch == '"':
			quoted = true
		case ch == '(' || ch == '[' || ch == '{' || ch == '<':
			depth++
		case ch == ')' || ch == ']' || ch == '}' || ch == '>' && (i == 0 || text[i-1] != '-'):
			depth--
		case ch == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

// ints are the numbers of an attribute, however it is written; otherwise where it
// is absent.
func (c *call) ints(name string, otherwise []int) ([]int, error) {
	text, ok := c.attrs[name]
	if !ok {
		return otherwise, nil
	}
	return c.numbers(text)
}

// value is the attribute of a text.
func (c *call) value(text string) (types.Attr, error) {
	x, err := parse.Attr(text)
	if err != nil {
		return nil, invalid("%v", err)
	}
	a, err := types.AttrFromExpr(x, c.m.Aliases)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return a, nil
}

// numbers are the numbers of a text, those of nested lists one after the other.
func (c *call) numbers(text string) ([]int, error) {
	a, err := c.value(text)
	if err != nil {
		return nil, err
	}
	out, ok := flatten(nil, a)
	if !ok {
		return nil, invalid("%s is no list of numbers", text)
	}
	return out, nil
}

// flatten appends the numbers of a; ok is false where it has something else, or a
// number out of range.
func flatten(out []int, a types.Attr) (_ []int, ok bool) {
	var list []int64
	switch a := a.(type) {
	case types.Array:
		for _, e := range a {
			if out, ok = flatten(out, e); !ok {
				return nil, false
			}
		}
		return out, true
	case types.Int:
		list = []int64{a.V}
	case *types.Dense:
		list = a.Spread()
	case *types.ArrayOf:
		if !a.Elem.IsInt() {
			return nil, false
		}
		list = a.Ints()
	default:
		return nil, false
	}
	for _, n := range list {
		if n != int64(int(n)) {
			return nil, false
		}
		out = append(out, int(n))
	}
	return out, true
}

// int is the number of an attribute, otherwise where it is absent.
func (c *call) int(name string, otherwise int) (int, error) {
	list, err := c.ints(name, []int{otherwise})
	if err == nil && len(list) != 1 {
		err = invalid("%s is not one number", name)
	}
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

// fields are the parts `name = value` of a dialect's attribute, such as
// #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>.
func fields(text string) map[string]string {
	_, body, _ := strings.Cut(text, "<")
	out := map[string]string{}
	for _, part := range split(strings.TrimSuffix(strings.TrimSpace(body), ">")) {
		name, value, _ := strings.Cut(part, "=")
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out
}

// list reads a field as numbers; none where it is absent.
func (c *call) list(f map[string]string, name string) ([]int, error) {
	if f[name] == "" {
		return nil, nil
	}
	return c.numbers(f[name])
}

// word is the keyword of an attribute: LT of #stablehlo<comparison_direction LT>,
// or of the first word of an op's own form.
func (c *call) word(name string) string {
	if text, ok := c.attrs[name]; ok {
		text = strings.Trim(text, `"`)
		text = strings.TrimSuffix(text, ">")
		return text[strings.LastIndexAny(text, " <")+1:]
	}
	if len(c.words) > 0 {
		w, _, _ := strings.Cut(c.words[0], " ")
		return w
	}
	return ""
}

// out is the tensor type of result i as written.
func (c *call) out(i int) *types.Tensor {
	if i < len(c.outs) {
		if t, ok := c.outs[i].(*types.Tensor); ok {
			return t
		}
	}
	return nil
}

// one is a list of one value, as most conversions return.
func one(v *ir.Value) ([]*ir.Value, error) { return []*ir.Value{v}, nil }
