package stablehlo

import (
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// clauses are the names that pretty forms have for attributes, by op.
var clauses = map[string]map[string]string{
	"broadcast_in_dim":         {"dims": "broadcast_dimensions"},
	"dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
	"broadcast":                {"sizes": "broadcast_sizes"},
	"transpose":                {"dims": "permutation"},
	"reverse":                  {"dims": "dimensions"},
	"concatenate":              {"dim": "dimension"},
	"iota":                     {"dim": "iota_dimension"},
	"dynamic_iota":             {"dim": "iota_dimension"},
	"get_dimension_size":       {"dim": "dimension"},
	"set_dimension_size":       {"dim": "dimension"},
	"dynamic_slice":            {"sizes": "slice_sizes"},
	"fft":                      {"type": "fft_type", "length": "fft_length"},
	"pad":                      {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
	"rng":                      {"distribution": "rng_distribution"},
	"rng_bit_generator":        {"algorithm": "rng_algorithm"},
}

// pretty reads an op in a form of its own and returns the text of its types. The forms
// have these parts, outside of brackets:
//
//	%a, (%a init: %b)      operands, which the parser has found
//	name = value           attributes under a name of the form's own
//	LT, @f, "name", add    words
//	dense<…>, [0:2, 1:4]   a literal, a list behind an operand
//	{…}                    other attributes
//	: types
func (n *node) pretty() string {
	t := n.t
	text := t.Text(n.src, ast.Rel{Start: 0, End: t.Len})
	from := int(t.NameSpan.End)
	_, short, _ := strings.Cut(n.name, ".")
	s := &scanner{cur: lex.New(text, from, len(text)), text: text}
	s.next()
	at := func(start, end int) source.Span { return source.Span{Start: t.Off + start, End: t.Off + end} }
	for s.tok.Kind != lex.EOF {
		switch s.tok.Kind {
		case lex.Colon:
			if s.parens > 0 { // behind "init"
				s.next()
				continue
			}
			s.next()
			return n.prettyTypes(s, at)
		case lex.LParen:
			s.parens++
			s.next()
		case lex.RParen:
			s.parens--
			s.next()
		case lex.LBrace:
			start := s.tok.Start
			if len(t.Regions) > 0 && (strings.HasPrefix(n.name, "sdy.") || strings.HasPrefix(strings.TrimSpace(text[start+1:]), "^")) { // the region
				s.skip()
				continue
			}
			n.dict(ast.Rel{Start: int32(start), End: int32(s.skip())})
		case lex.LAngle: // the sharding behind an operand of sdy.reshard
			start := s.tok.Start
			end := s.skip()
			if _, ok := n.attrs["sharding"]; !ok && strings.HasPrefix(n.name, "sdy.") {
				n.raw("sharding", at(start, end))
			}
		case lex.LBrack:
			start := s.tok.Start
			n.words = append(n.words, text[start:s.skip()])
		case lex.Symbol, lex.String:
			n.words = append(n.words, s.word())
			s.next()
		case lex.Ident:
			start, word := s.tok.Start, s.word()
			s.next()
			switch {
			case s.tok.Kind == lex.Eq:
				s.next()
				if strings.HasPrefix(n.name, "sdy.") { // one list, behind which the next name stands
					start := s.tok.Start
					n.raw(word, at(start, s.skip()))
					continue
				}
				if n.name == "chlo.scan" { // a number, behind which a word or the region stands
					start := s.tok.Start
					n.setAttr(word, at(start, s.skip()))
					continue
				}
				start, end := s.value()
				n.clause(short, word, at(start, end))
			case word == "loc" && s.tok.Kind == lex.LParen:
				if s.parens > 0 { // of an argument of the region
					s.skip()
					continue
				}
				return ""
			case s.tok.Kind == lex.LAngle:
				end := s.skip()
				if s.tok.Kind == lex.Colon { // the type belongs to the literal as well
					s.next()
					types := n.prettyTypes(s, at)
					n.literal(at(start, end), types)
					return types
				}
				n.literal(at(start, end), "")
			default:
				n.words = append(n.words, word)
			}
		default:
			s.next()
		}
	}
	return ""
}

// clause reads "name = value".
func (n *node) clause(op, name string, span source.Span) {
	if generic, ok := clauses[op][name]; ok {
		name = generic
	}
	value := n.src.Slice(span)
	switch {
	case op == "dot_general" && strings.HasSuffix(name, "_dims"):
		kind := strings.TrimSuffix(name, "_dims") + "_dimensions"
		lhs, rhs, ok := strings.Cut(value, "x")
		n.must(ok, "DM141", "%s = %s: expected [0] x [0]", name, value)
		n.field("lhs_"+kind, strings.TrimSpace(lhs), span)
		n.field("rhs_"+kind, strings.TrimSpace(rhs), span)
	case op == "convolution" && name == "dim_numbers", name == "algorithm":
		n.raw(name, span)
	case op == "convolution" && name == "window":
		n.window(span)
	case op == "reduce_precision" && name == "format":
		e, m, ok := strings.Cut(strings.TrimPrefix(value, "e"), "m")
		n.must(ok, "DM141", "format = %s: expected a format such as e5m10", value)
		n.field("exponent_bits", e, span)
		n.field("mantissa_bits", m, span)
	case name == "precision" || name == "precision_config":
	default:
		n.setAttr(name, span)
	}
}

// raw is an attribute that is kept as it is written.
func (n *node) raw(name string, span source.Span) {
	text := n.src.Slice(span)
	n.attrs[name] = attr{&ast.AttrExpr{Kind: ast.AStrided, Text: text, Body: text}, span}
}

// field is an attribute with a text of its own.
func (n *node) field(name, text string, span source.Span) {
	x, err := parse.Attr(text)
	if err != nil {
		n.failAt("DM141", span, "%s cannot be read", name)
	}
	n.attrs[name] = attr{x, span}
}

// window reads {stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = …}.
func (n *node) window(span source.Span) {
	x, err := parse.Attr(n.src.Slice(span))
	if err != nil {
		n.failError(span, err)
	}
	names := map[string]string{"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation", "reverse": "window_reversal"}
	for _, e := range x.Entries {
		name, ok := names[e.Key]
		n.must(ok && e.Value != nil, "DM141", "a window has no %s", e.Key)
		n.attrs[name] = attr{e.Value, span}
	}
}

// literal is the constant at span; its type stands behind it.
func (n *node) literal(span source.Span, types string) {
	x, err := parse.Attr(n.src.Slice(span))
	if err != nil {
		n.failError(span, err)
	}
	if types != "" && x.Type == nil {
		if ty, err := parse.Type(types); err == nil {
			typed := *x
			typed.Type = ty
			x = &typed
		}
	}
	n.attrs["value"] = attr{x, span}
}

// prettyTypes is the text of the types that begin at the current token, up to the
// regions. A dictionary may follow them.
func (n *node) prettyTypes(s *scanner, at func(start, end int) source.Span) string {
	start, end := s.tok.Start, s.tok.Start
	for s.tok.Kind != lex.EOF {
		switch s.tok.Kind {
		case lex.LBrace:
			text := strings.TrimSpace(s.text[start:end])
			if len(n.t.Regions) == 0 {
				from := s.tok.Start
				n.dict(ast.Rel{Start: int32(from), End: int32(s.skip())})
			}
			return text
		case lex.RParen:
			if s.parens > 0 {
				s.parens--
				text := strings.TrimSpace(s.text[start:end])
				s.next()
				if s.tok.Kind == lex.Colon { // (%x, dense<…> : T) : T
					s.next()
				}
				return text
			}
			return strings.TrimSpace(s.text[start:end])
		case lex.Ident:
			switch s.word() {
			case "attributes":
				text := strings.TrimSpace(s.text[start:end])
				if s.next(); s.tok.Kind == lex.LBrace {
					from := s.tok.Start
					n.dict(ast.Rel{Start: int32(from), End: int32(s.skip())})
				}
				return text
			case "cond", "reducer", "loc":
				return strings.TrimSpace(s.text[start:end])
			}
		}
		switch s.tok.Kind {
		case lex.LParen, lex.LAngle, lex.LBrack:
			end = s.skip()
		default:
			end = s.tok.End
			s.next()
		}
	}
	return strings.TrimSpace(s.text[start:end])
}

// scanner walks over the tokens of a pretty form.
type scanner struct {
	cur    lex.Cursor
	text   string
	tok    lex.Token
	parens int // that are open
}

func (s *scanner) next() { s.tok = s.cur.Next() }

func (s *scanner) word() string {
	w := s.text[s.tok.Start:s.tok.End]
	if s.tok.Kind == lex.String {
		return parse.Unquote(w)
	}
	return w
}

// skip passes over the bracket at the current token and all in it, and returns where
// it ends.
func (s *scanner) skip() int {
	depth := 0
	for s.tok.Kind != lex.EOF {
		switch s.tok.Kind {
		case lex.LParen, lex.LBrack, lex.LBrace, lex.LAngle:
			depth++
		case lex.RParen, lex.RBrack, lex.RBrace, lex.RAngle:
			depth--
		}
		end := s.tok.End
		s.next()
		if depth <= 0 {
			return end
		}
	}
	return len(s.text)
}

// value passes over the value of a clause, up to a comma, a colon or a dictionary
// behind it.
func (s *scanner) value() (start, end int) {
	start, end = s.tok.Start, s.tok.Start
	for s.tok.Kind != lex.EOF {
		switch s.tok.Kind {
		case lex.Comma, lex.Colon, lex.RParen:
			return start, end
		case lex.LBrace:
			if end > start {
				return start, end
			}
			return start, s.skip()
		case lex.LParen, lex.LBrack, lex.LAngle:
			end = s.skip()
		default:
			end = s.tok.End
			s.next()
		}
	}
	return start, end
}
