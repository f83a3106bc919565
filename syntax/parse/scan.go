package parse

import (
	"slices"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/lex"
)

// maxDepth bounds how deep regions nest before they are kept as text.
const maxDepth = 1000

// scanner is the first stage: it cuts a text into ops, regions and blocks in
// one pass, looking only at brackets, line starts and a few tokens ahead. The
// details of ops are left to the second stage, which can then run on all ops at once.
type scanner struct {
	cur    lex.Cursor
	tok    lex.Token // the next token, unread
	ops    []*ast.Op
	done   func(*ast.Op) // takes each op once it is cut out; the scanner does not look at it again
	slab   []ast.Op
	stacks [][]lex.Token // of brackets, free for the next op
	depth  int
	noDef  int   // no value before this offset begins a list of results
	inFunc bool  // inside a func.func, where no other func.func can begin
	custom bool  // inside an op of another dialect, which may have short names for its ops
	short  bool  // an op of the region that is being read has such a name
	forced []int // offsets of braces to come that open regions, see reopen
	indent int   // of the line that the next token is on
	flat   bool  // the ops of the outermost region, no func.func, are not indented
	askew  int   // offset of the first "{" in this function whose "}" is indented otherwise, -1 if none

	crooked  bool  // a region is not closed, and a "}" in it is indented otherwise than its "{"
	byIndent bool  // regions end where the indentation says so: the second reading of a crooked text
	columns  []int // of the ops whose regions are open, with byIndent
}

// head is what is known of an op while its text is being cut out.
type head struct {
	op     *ast.Op
	form   form
	br     brackets
	prev   lex.Token // the last token that belongs to the op
	name   lex.Token
	sig    bool // a ":" or "->" has been seen outside of brackets
	symbol bool // an @name has been seen
	column int  // how far the op is indented, -1 if something is before it on its line
	brace  brace
}

// brace is the outermost "{" that is open in an op's header, with what the
// scanner knew before it.
type brace struct {
	tok, prev     lex.Token
	indent, depth int
	regions       int
	symbol        bool
}

// form is the grammar that an op's text goes by.
type form uint8

const (
	fCustom form = iota
	fGeneric
	fDm
	fFunc
	fModule
	fCall
	fReturn
	fAlias
	fBad
)

// builtins are the ops that dmir's grammar reads besides dm.*, by every name
// they are written with.
var builtins = map[string]form{
	"func.func": fFunc, "func.call": fCall, "call": fCall, "func.return": fReturn, "return": fReturn,
	"module": fModule, "builtin.module": fModule,
}

// shortNames are the ops that go without the prefix of their dialect in a func.func
// or at the top.
var shortNames = map[string]bool{
	"call": true, "call_indirect": true, "constant": true, "return": true, "module": true, cast: true,
}

// cast is the one op of the dialect builtin besides the module.
const cast = "unrealized_conversion_cast"

func formOf(name string) form {
	if len(name) > 3 && name[:3] == "dm." {
		return fDm
	}
	return builtins[name]
}

func newScanner(text string) *scanner {
	s := &scanner{cur: lex.New(text, 0, len(text)), askew: -1, done: func(*ast.Op) {}}
	s.cur.Mode = lex.Splits
	s.advance()
	return s
}

func (s *scanner) advance() {
	s.tok = s.read(&s.cur)
	if s.tok.First {
		s.indent = 0
		for i := s.tok.Start; i > 0 && (s.cur.Text[i-1] == ' ' || s.cur.Text[i-1] == '\t'); i-- {
			s.indent++
		}
	}
}

// read is the next token of c. A split line in a region ends the region if what
// follows is not indented, but ops of the region are; otherwise it is a comment
// that draws a line.
func (s *scanner) read(c *lex.Cursor) lex.Token {
	for {
		t := c.Next()
		if t.Kind != lex.Split || s.depth == 0 {
			return t
		}
		n := c.Peek()
		if n.Kind == lex.EOF || !(s.flat && s.depth == 1) && c.Text[n.Start-1] == '\n' && n.Kind != lex.RBrace && n.Kind != lex.Label {
			return t
		}
	}
}

func (s *scanner) slice(t lex.Token) string { return s.cur.Text[t.Start:t.End] }

// items reads the whole text.
func (s *scanner) items() []*ast.Op {
	var ops []*ast.Op
	for s.tok.Kind != lex.EOF {
		op := s.op()
		ops = append(ops, op)
		s.done(op)
	}
	return ops
}

func (s *scanner) newOp(off int) *ast.Op {
	if len(s.slab) == cap(s.slab) {
		s.slab = make([]ast.Op, 0, min(256, 8+2*len(s.ops)))
	}
	s.slab = s.slab[:len(s.slab)+1]
	op := &s.slab[len(s.slab)-1]
	op.Off, op.Parts = off, ast.NoParts
	s.ops = append(s.ops, op)
	return op
}

// op cuts out the op or other item that begins at the next token.
func (s *scanner) op() *ast.Op {
	h := &head{op: s.newOp(s.tok.Start), prev: s.tok, form: fBad}
	if n := len(s.stacks); n > 0 {
		h.br.open, s.stacks = s.stacks[n-1], s.stacks[:n-1]
	}
	first := s.tok
	h.column = -1
	if first.First {
		h.column = s.indent
	}
	switch first.Kind {
	case lex.Split:
		h.op.Form = ast.Split
		s.advance()
		return s.finish(h)
	case lex.Resource:
		h.op.Form = ast.Resource
		if text := s.slice(first); len(text) < len("{-##-}") || text[len(text)-3:] != "#-}" {
			s.report(h, "DM014", first.Start, first.Start+3, "this `{-#` section is never closed")
		}
		s.advance()
		return s.finish(h)
	case lex.Hash, lex.Bang:
		h.form = fAlias
		h.op.Form = ast.AttrAlias
		if first.Kind == lex.Bang {
			h.op.Form = ast.TypeAlias
		}
		h.name = first
	case lex.Value:
		if s.def(first) == noDef {
			s.report(h, "DM020", first.Start, first.End, "expected an op, found the value %s", excerpt(s.slice(first)))
			break
		}
		for s.tok.Kind != lex.Eq {
			s.advance()
		}
		h.prev = s.tok
		s.advance()
		h.form = s.named(h, true)
	case lex.String, lex.Ident:
		h.form = s.named(h, false)
	case lex.RBrace, lex.RParen, lex.RBrack:
		s.report(h, "DM011", first.Start, first.End, "this `%s` has no opening bracket", s.slice(first))
	case lex.BadString:
		s.report(h, "DM013", first.Start, first.End, "this string is not closed on its line")
	default:
		s.report(h, "DM020", first.Start, first.End, "expected an op, found `%s`", excerpt(s.slice(first)))
	}
	if h.form == fBad {
		h.op.Form = ast.Bad
		if h.prev == s.tok {
			s.advance()
		}
	} else if h.form == fAlias {
		s.advance()
	}
	s.header(h)
	return s.finish(h)
}

// named reads an op's name and tells the form by it.
func (s *scanner) named(h *head, results bool) form {
	t := s.tok
	switch t.Kind {
	case lex.String:
		h.prev, h.name = t, t
		s.advance()
		return fGeneric
	case lex.Ident:
		name := s.slice(t)
		code := ""
		switch {
		case strings.HasSuffix(name, "."):
			code = "DM021"
			s.report(h, code, t.Start, t.End, "expected an op's name after `%s`", excerpt(name))
		case !dotted(name) && !s.custom && (!shortNames[name] || name == cast && s.inFunc):
			code = "DM027"
			s.report(h, code, t.Start, t.End, "`%s` is not an op", excerpt(name))
		}
		if code != "" {
			if results {
				h.prev = t
				s.advance()
			}
			return fBad
		}
		h.prev, h.name = t, t
		s.short = s.short || s.custom && !dotted(name)
		s.advance()
		f := formOf(name)
		if s.custom && (name == "return" || name == "call") {
			f = fCustom // of the dialect around it
		}
		if f == fCustom {
			h.op.Form = ast.Custom
		} else {
			h.op.Form = ast.Pretty
		}
		return f
	}
	if t.Kind == lex.BadString {
		s.report(h, "DM013", t.Start, t.End, "this string is not closed on its line")
	} else {
		s.report(h, "DM021", h.op.Off, h.prev.End, "expected an op's name after `=`")
	}
	return fBad
}

// header goes on to the end of the op, through its regions.
func (s *scanner) header(h *head) {
	for {
		t := s.tok
		switch {
		case t.Kind == lex.EOF || t.Kind == lex.Split || t.Kind == lex.Resource:
			s.unclosed(h)
			return
		case h.br.depth() == 0:
			if t.Kind == lex.RBrace || s.endsBefore(h, t) {
				return
			}
		case t.First && s.strongStart(t) && !s.alone(h, t):
			if s.reopen(h) {
				continue
			}
			s.unclosed(h)
			return
		}
		switch t.Kind {
		case lex.LBrace:
			if s.isRegion(h, t) {
				s.region(h)
				continue
			}
			if !h.br.has(lex.LBrace) {
				h.brace = brace{t, h.prev, s.indent, h.br.depth(), len(h.op.Regions), h.symbol}
			}
			h.br.push(t)
		case lex.LParen, lex.LBrack, lex.LAngle:
			h.br.push(t)
		case lex.RParen, lex.RBrack, lex.RBrace, lex.RAngle:
			_, crossed, ok := h.br.pop(t)
			switch {
			case crossed.Kind != lex.EOF:
				s.report(h, "DM010", crossed.Start, crossed.End, "this `%s` is never closed", s.slice(crossed))
			case ok || t.Kind == lex.RAngle:
			case t.Kind == lex.RBrace:
				s.unclosed(h)
				return
			default:
				s.report(h, "DM011", t.Start, t.End, "this `%s` has no opening bracket", s.slice(t))
			}
		case lex.BadString:
			s.report(h, "DM013", t.Start, t.End, "this string is not closed on its line")
		case lex.Colon, lex.Arrow:
			h.sig = h.sig || h.br.depth() == 0
		case lex.Symbol:
			h.symbol = true
		}
		h.prev = t
		s.advance()
	}
}

// reopen goes back to the outermost brace that is open in an op of another
// dialect, since the next token begins an op: what a dialect writes in front of
// its ops, as in "match %x { case a(%y) { … } }", hides that the brace opens a
// region, and so does each brace in it that is open here. On the second reading
// all of these are known, so that it comes to the op without going back once
// more: no text is read a third time.
func (s *scanner) reopen(h *head) bool {
	b := &h.brace
	if h.form != fCustom || h.op.Form == ast.Bad || !h.br.has(lex.LBrace) || len(h.op.Regions) > b.regions || !s.mayHoldOps(h, b.depth) {
		return false
	}
	s.forced = s.forced[:0]
	for i := b.depth; i < h.br.depth(); i++ {
		if h.br.open[i].Kind == lex.LBrace && s.mayHoldOps(h, i) {
			s.forced = append(s.forced, h.br.open[i].Start)
		}
	}
	h.br.drop(b.depth)
	h.prev, h.symbol = b.prev, b.symbol
	s.cur.Pos, s.cur.Line = b.tok.End, false
	s.tok, s.indent = b.tok, b.indent
	return true
}

// alone reports whether t is all that stands in braces: a unit attribute, even
// where an op has the same name.
func (s *scanner) alone(h *head, t lex.Token) bool {
	return h.prev.Kind == lex.LBrace && s.after(t).Kind == lex.RBrace
}

// mayHoldOps reports whether the i-th open bracket, a brace, is neither part of
// an attribute's body nor begins like a dictionary.
func (s *scanner) mayHoldOps(h *head, i int) bool {
	return (i == 0 || h.br.open[i-1].Kind != lex.LAngle) && !s.isDict(h.br.open[i])
}

// isForced reports whether the brace t is known to open a region.
func (s *scanner) isForced(t lex.Token) bool {
	for len(s.forced) > 0 && s.forced[0] < t.Start {
		s.forced = s.forced[1:]
	}
	return len(s.forced) > 0 && s.forced[0] == t.Start
}

// unclosed reports the outermost bracket that is still open where the op ends.
func (s *scanner) unclosed(h *head) {
	for _, o := range h.br.open {
		if o.Kind != lex.LAngle || h.form != fCustom {
			s.report(h, "DM010", o.Start, o.End, "this `%s` is never closed", s.slice(o))
			break
		}
	}
	h.br.reset()
}

func (s *scanner) finish(h *head) *ast.Op {
	h.op.Len = int32(h.prev.End - h.op.Off)
	s.stacks = append(s.stacks, h.br.open[:0])
	return h.op
}

// report adds a diagnostic to the op, which becomes Bad. One op has one
// diagnostic: what follows a first mistake is mostly its consequence.
func (s *scanner) report(h *head, code string, start, end int, format string, args ...any) {
	if h.op.Form == ast.Bad {
		return
	}
	h.op.Form = ast.Bad
	s.note(h, newDiag(code, start, end, format, args...))
}

// note adds a diagnostic that leaves the op readable.
func (s *scanner) note(h *head, d diag.Diagnostic) {
	h.op.Own().Diags = append(h.op.Diags, shift(d, -h.op.Off))
}

// region reads the region whose "{" is the next token, with its blocks.
func (s *scanner) region(h *head) {
	open, indent := s.tok, s.indent
	column := h.column
	if column < 0 {
		column = indent
	}
	r := &ast.Region{Open: int32(open.Start - h.op.Off), Close: -1}
	if h.prev.Kind == lex.Ident && h.prev != h.name && h.br.depth() == 0 && !isScalar(s.slice(h.prev)) {
		r.Keyword = rel(h.prev.Start-h.op.Off, h.prev.End-h.op.Off)
	}
	h.op.Own().Regions = append(h.op.Regions, r)
	h.prev = open
	s.flat = s.flat && s.depth > 0
	s.depth++
	s.advance()
	if s.depth > maxDepth {
		s.note(h, newDiag("DM002", open.Start, open.End, "regions are nested more than %d deep", maxDepth))
		s.skipRegion(h, r)
		s.depth--
		return
	}
	inFunc, custom, short := s.inFunc, s.custom, s.short
	s.short = false
	switch h.form {
	case fFunc:
		s.inFunc, s.custom = true, false
		s.askew = -1
	case fModule:
		s.inFunc, s.custom = false, false
	case fCustom:
		s.custom = true
	}
	s.columns = append(s.columns, column)
	s.blocks(h, r)
	s.columns = s.columns[:len(s.columns)-1]
	s.inFunc, s.custom, s.short = inFunc, custom, short
	s.depth--
	if s.tok.Kind != lex.RBrace || s.outer(column) {
		s.note(h, newDiag("DM012", open.Start, open.End, "this `{` is never closed"))
		// Braces are matched from the inside out, so the one that was forgotten may
		// belong to an inner region that took its "}" from this one.
		s.crooked = s.crooked || s.askew > open.Start
		h.br.reset()
		return
	}
	if s.tok.First && s.indent != column && s.askew < 0 {
		s.askew = open.Start
	}
	s.closeRegion(h, r)
}

// nextRegion reports whether the next tokens introduce another region of a dm op, so
// that the one before has ended.
func (s *scanner) nextRegion(h *head) bool {
	return h.form == fDm && s.tok.Kind == lex.Ident && (s.slice(s.tok) == "do" || s.slice(s.tok) == "else") && s.after(s.tok).Kind == lex.LBrace
}

// outer reports whether the indentation of the next token, a "}", is that of an op
// around the one at column, so that it closes the region of that.
func (s *scanner) outer(column int) bool {
	return s.byIndent && s.tok.First && s.indent < column && slices.Contains(s.columns, s.indent)
}

// dedented reports whether the next token begins a line that is indented no more
// than the op whose region is being read, so that the region has ended before.
func (s *scanner) dedented() bool {
	n := len(s.columns)
	return s.byIndent && n > 1 && s.tok.First && s.tok.Kind != lex.Label && s.indent <= s.columns[n-1] && s.columns[n-1] > s.columns[n-2]
}

func (s *scanner) closeRegion(h *head, r *ast.Region) {
	r.Close = int32(s.tok.Start - h.op.Off)
	h.prev = lex.Token{Span: s.tok.Span, Kind: lex.Region}
	s.advance()
}

// blocks reads up to the "}" of the region, or to where it must have ended.
func (s *scanner) blocks(h *head, r *ast.Region) {
	b := &ast.Block{}
	r.Blocks = append(r.Blocks, b)
	for {
		t := s.tok
		switch {
		case t.Kind == lex.RBrace || t.Kind == lex.EOF || t.Kind == lex.Split:
			return
		case s.inFunc && t.First && t.Kind == lex.Ident && s.slice(t) == "func.func" || s.dedented() || s.nextRegion(h):
			return
		case t.Kind == lex.Label:
			if b.Label != "" || len(b.Ops) > 0 {
				b = &ast.Block{}
				r.Blocks = append(r.Blocks, b)
			}
			s.label(h, b)
		default:
			if s.depth == 1 && !s.inFunc && len(r.Blocks) == 1 && len(b.Ops) == 0 {
				s.flat = t.First && s.indent == 0
			}
			op := s.op()
			b.Ops = append(b.Ops, op)
			h.prev = lex.Token{Span: op.Span(), Kind: lex.Region}
			s.done(op)
		}
	}
}

// skipRegion goes to the region's "}" without looking inside.
func (s *scanner) skipRegion(h *head, r *ast.Region) {
	for deep := 0; s.tok.Kind != lex.EOF && s.tok.Kind != lex.Split; s.advance() {
		switch s.tok.Kind {
		case lex.LBrace:
			deep++
		case lex.RBrace:
			if deep == 0 {
				s.closeRegion(h, r)
				return
			}
			deep--
		}
		h.prev = s.tok
	}
}

// label reads "^name(%arg: type, …):" into b.
func (s *scanner) label(h *head, b *ast.Block) {
	t := s.tok
	off := h.op.Off
	b.Label = s.slice(t)
	b.Span = rel(t.Start-off, t.End-off)
	h.prev = t
	s.advance()
	if s.tok.Kind == lex.LParen {
		open := s.tok
		var br brackets
		br.push(open)
		h.prev = open
		s.advance()
		for br.depth() > 0 && s.tok.Kind != lex.EOF && !(s.tok.First && s.strongStart(s.tok)) {
			if s.tok.Kind == lex.RBrace && !br.has(lex.LBrace) {
				break
			}
			br.track(s.tok)
			h.prev = s.tok
			s.advance()
		}
		args, _, err := parseArgs(s.cur.Text[off:h.prev.End-1], open.End-off, h.prev.End-1-off) // without the ")" or, where it is missing, the ":"
		b.Args = args
		switch {
		case br.depth() > 0:
			s.note(h, newDiag("DM010", open.Start, open.End, "this `(` is never closed"))
			return
		case err != nil:
			s.note(h, err.Diagnostic(off))
		}
	}
	if s.tok.Kind != lex.Colon {
		s.note(h, newDiag("DM025", t.Start, h.prev.End, "expected `:` after the block label %s", b.Label))
		return
	}
	h.prev = s.tok
	s.advance()
}
