package feature

import (
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// ItemKind is the kind of an item.
type ItemKind uint8

// The kinds of completions.
const (
	OpItem ItemKind = iota
	ValueItem
	AttrItem
	WordItem // one of the values of an attribute
	TypeItem
	AliasItem
	PlaceItem
	SymbolItem
	LabelItem
)

// Completion is a text that may be written at a place.
type Completion struct {
	Kind    ItemKind
	Label   string
	Detail  string
	Doc     string // Markdown, short
	Text    string // what replaces Completions.Span
	Filter  string // what is compared with what has been typed; "": the label
	Snippet string // Text with places to fill in, in the LSP's syntax; "" where there are none
	Op      string // the op whose documentation belongs to it; see Documentation
}

// Completions are what fits at a place, the best first.
type Completions struct {
	Span  source.Span // what has been typed of it, which ends at the place
	End   int         // of the word that the place is in, which may go on behind it
	Items []Completion
	More  bool // there are more than these; typing on may bring them
}

// maxValues bounds how many values are offered at once.
const maxValues = 200

// Complete is what can be written at off.
func Complete(p *program.Program, off int) Completions {
	if off < 0 || off > p.Src.Len() {
		return Completions{}
	}
	if p.Imported { // ops of the dialect have no place there
		return Completions{Span: source.Span{Start: off, End: off}}
	}
	s := statementAt(p, off)
	if s == nil {
		return Completions{Span: source.Span{Start: off, End: off}}
	}
	out := Completions{Span: s.word, End: s.wordEnd()}
	typed := s.typed()
	first := byte(0)
	if typed != "" {
		first = typed[0]
	}
	switch {
	case first == '"':
		switch open := len(typed) == 1 || typed[len(typed)-1] != '"'; {
		case open && len(s.before) == s.name:
			out.Items = quotedOps()
		case open && s.inEquation():
			out.Items = s.equation(&out.Span)
		case open:
			out.Items = s.functionAxes(s.place().inside())
		}
	case s.name == 0 && len(s.before) == 0 && strings.IndexByte(`%@#!^`, first) >= 0:
		// a name that is being given
	case first == '%':
		if s.opName() != op.Func && s.name >= 0 {
			out.Items, out.More = s.values()
		}
	case first == '@' && s.wantsMesh():
		out.Items = s.meshItems()
	case first == '@':
		out.Items, out.More = s.symbols()
	case first == '^':
		out.Items = s.labels()
	case first == '!':
		out.Items = s.aliases('!')
	case first == '#':
		switch l := s.place(); {
		case l.inside() >= 0 && (s.inPlacement(l) || s.inFormat(l) >= 0):
		case l.inside() >= 0 && s.tok(l.inside()) == "<" && shaped(s.tok(l.inside()-1)):
			out.Items = slices.Concat(placements(), s.aliases('#'), encodings(s.encoded(l.inside())))
		case s.name < 0:
			out.Items = slices.Concat(placements(), s.aliases('#'), encodings(-1))
		default:
			out.Items = append(placements(), s.aliases('#')...)
		}
	case s.name >= 0 && len(s.before) == s.name:
		out.Items, out.More = append(slices.Clip(opItems()), foreignItems(typed)...), true
		if s.followed() {
			out.Items = names(out.Items)
		} else {
			out.Items = s.fill(out.Items)
		}
	case s.name < 0:
		out.Items = s.definition()
	default:
		out.Items, out.More = s.within(&out.Span)
	}
	return out
}

// Documentation returns the registry's documentation of an op, in Markdown; "" where it
// does not know it.
func Documentation(name string) string {
	if d := op.Lookup(name); d != nil {
		return d.Markdown()
	}
	return ""
}

// wordEnd is where the word that is being typed ends, which the place may be inside of.
func (s *statement) wordEnd() int {
	if s.word.Len() == 0 || strings.HasPrefix(s.typed(), `"`) {
		return s.off
	}
	text, line := s.p.Src.Text(), s.p.Src.Pos(s.off).Line
	toks := lex.Tokens(text, source.Span{Start: s.word.Start, End: s.p.Src.LineStart(line) + len(s.p.Src.Line(line))})
	if len(toks) == 0 {
		return s.off
	}
	return max(s.off, toks[0].End)
}

// followed reports whether there is more on the line than what closes brackets.
func (s *statement) followed() bool {
	line := s.p.Src.Line(s.p.Src.Pos(s.off).Line)
	rest := line[min(s.wordEnd()-s.p.Src.LineStart(s.p.Src.Pos(s.off).Line), len(line)):]
	rest, _, _ = strings.Cut(rest, "//")
	return strings.Trim(rest, " \t}") != ""
}

// names are the items without their forms, for ops whose operands are there
// already.
func names(items []Completion) []Completion {
	out := slices.Clone(items)
	for i := range out {
		out[i].Snippet = ""
	}
	return out
}

// definition are the items in the definition of an alias or in a label's
// arguments.
func (s *statement) definition() []Completion {
	switch first := s.tok(0); {
	case first == "":
		return nil
	case first[0] == '!' && s.tok(1) == "=" || first[0] == '^' && s.place().inside() >= 0:
		return s.types(s.place())
	case first[0] == '#' && s.tok(1) == "=":
		l := s.place()
		if s.inPlacement(l) {
			return s.placeItems(l)
		}
		if open := s.inFormat(l); open >= 0 {
			return s.formatItems(l, open)
		}
		return append(placements(), encodings(-1)...)
	}
	return nil
}

// within are the items after the name of the op.
func (s *statement) within(span *source.Span) ([]Completion, bool) {
	l, name := s.place(), s.opName()
	def := op.Lookup(name)
	last := s.tok(len(s.before) - 1)
	switch in := l.inside(); {
	case s.inPlacement(l):
		return s.placeItems(l), false
	case s.inFormat(l) >= 0:
		return s.formatItems(l, s.inFormat(l)), false
	case in >= 0 && s.tok(in) == "<" && shaped(s.tok(in-1)):
		if last == "," {
			return slices.Concat(placements(), s.aliases('#'), encodings(s.encoded(in))), false
		}
		return s.elements(span), false
	case in >= 0 && s.tok(in) == "[":
		return s.listed(def, in), false
	case in >= 0 && s.tok(in) == "{":
		if last == "=" {
			switch s.tok(len(s.before) - 2) {
			case op.StateAttr:
				return s.stateNames(), false
			case op.MeshAttr:
				return s.meshItems(), false
			case op.ShardingAttr, op.GradientShardingAttr:
				return stated(), false
			case op.PipelineAttr:
				return s.pipelineAxes(), false
			}
			if d := op.LookupAttr(s.tok(len(s.before) - 2)); d != nil && d.Enum != nil {
				return quoted(d.Enum, strings.TrimPrefix(d.Name, op.Prefix)), false
			}
			return attrValues(def.Attr(s.tok(len(s.before) - 2))), false
		}
		if last == "{" || last == "," {
			if name == op.Func && s.tok(in-1) == "attributes" {
				return attrsOn(op.OnFunction, s.written()), false
			}
			if name == op.Func {
				return s.signatureAttrs(), false
			}
			return append(s.attrs(def, false), s.opAttrs(def)...), false
		}
		return nil, false
	case name == op.Func && in >= 0:
		if last == ":" {
			return s.types(l), false
		}
		return nil, false
	case l.typed:
		if in >= 0 && s.tok(in) != "(" {
			return nil, false
		}
		if last == ":" || last == "->" || last == "(" || last == "," {
			return filteredBy(s.placeholder(), s.types(l)), false
		}
		return nil, false
	case in >= 0:
		if s.tok(in) == "(" && (last == "(" || last == ",") && s.typed() == "" {
			return s.values()
		}
		return nil, false
	case last == "=":
		return attrValues(def.Attr(l.clause)), false
	}
	return s.operandsOrAttrs(def, l, last)
}

// placeholder is the word, if it is what a snippet writes for a type that is not known.
func (s *statement) placeholder() string {
	if w := s.typed(); w == "type" || w == "types" {
		return w
	}
	return ""
}

// filteredBy are the items for an editor that compares them with word, which each of them
// may replace.
func filteredBy(word string, items []Completion) []Completion {
	if word != "" {
		for i := range items {
			items[i].Filter = word
		}
	}
	return items
}

// operandsOrAttrs is what may stand at the top level of an op before its type.
func (s *statement) operandsOrAttrs(def *op.Def, l place, last string) ([]Completion, bool) {
	lead := def.Lead()
	atStart := len(s.before) == s.name+1
	switch {
	case atStart && lead != nil:
		return attrValues(lead), false
	case last != "," && !atStart && (def == nil || len(def.Operands) == 0 || lead == nil || len(s.before) != s.name+2):
		return nil, false
	}
	var items []Completion
	var more bool
	if s.typed() == "" && wants(def, l.operands) && len(s.written()) == 0 {
		items, more = s.values()
	}
	if last == "," || def != nil && len(def.Operands) == 0 {
		items = append(items, s.attrs(def, true)...)
	}
	return items, more
}

// wants reports whether an op with n operands may have another.
func wants(def *op.Def, n int) bool {
	return def == nil || n < len(def.Operands) || len(def.Operands) > 0 && def.Operands[len(def.Operands)-1].Variadic
}

// shaped reports whether name begins a type with a shape.
func shaped(name string) bool { return name == "tensor" || name == "memref" || name == "vector" }

// inPlacement reports whether the place lies in #dm.at<…>.
func (s *statement) inPlacement(l place) bool {
	for _, i := range l.open {
		if s.tok(i) == "<" && s.tok(i-1) == "#dm.at" {
			return true
		}
	}
	return false
}
