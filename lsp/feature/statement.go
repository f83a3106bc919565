package feature

import (
	"sort"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// statement is the op that is being written at a place, finished or not, as
// far as the place: what completion and signature help go by.
type statement struct {
	p      *program.Program
	off    int
	module *ir.Module
	block  *ir.Block // that holds it; nil at top level
	ops    []*ir.Op  // those before it in its block
	op     *ir.Op    // what the program made of it; nil where nothing is written yet

	before []lex.Token // its tokens before the one that is being typed
	word   source.Span // the token that is being typed, as far as off; empty where none is
	name   int         // index of the op's name in before, or len(before) where none is written yet; -1 where none can stand
}

// statementAt finds the statement at off; nil inside a comment.
func statementAt(p *program.Program, off int) *statement {
	s := &statement{p: p, off: off}
	ops := s.section()
	start := s.p.Src.LineStart(s.p.Src.Pos(off).Line)
	for ops != nil {
		i := sort.Search(len(ops), func(i int) bool { return ops[i].Span.Start >= off }) - 1
		if i < 0 {
			s.ops = nil
			break
		}
		if b := s.blockAt(ops[i]); b != nil {
			s.block, ops, s.ops = b, b.Ops, nil
			continue
		}
		s.ops = ops[:i+1]
		if s.belongs(ops[i]) {
			s.op, s.ops, start = ops[i], ops[:i], ops[i].Span.Start
		} else {
			start = max(start, min(ops[i].Span.End, off))
		}
		break
	}
	if s.op == nil && s.block != nil {
		start = max(start, s.opening())
	}
	return s.read(start)
}

// section finds the module that off lies in and returns its ops.
func (s *statement) section() []*ir.Op {
	for _, m := range s.p.Modules {
		if s.module == nil || len(origin.File(m).Items) > 0 && origin.File(m).Items[0].Off <= s.off {
			s.module = m
		}
	}
	if s.module == nil {
		return nil
	}
	return s.module.Ops
}

// blockAt is the block of one of o's regions that off lies in, nil where it
// lies in none. A brace on the line of off behind "attributes", or behind an op
// that has no regions, opens a dictionary, whatever the parser took it for.
func (s *statement) blockAt(o *ir.Op) *ir.Block {
	if origin.Tree(o) == nil {
		return nil
	}
	for i, r := range origin.Tree(o).Regions {
		first, last := origin.Tree(o).Off+int(r.Open), origin.Tree(o).Off+int(r.Close)
		if r.Close < 0 {
			last = o.Span.End
		}
		if s.off <= first || s.off > last || i >= len(o.Regions) {
			continue
		}
		dictionary := strings.HasSuffix(strings.TrimRight(s.p.Src.Text()[:first], " "), "attributes")
		if d := op.Of(o); (d != nil && len(d.Regions) == 0 || dictionary) && !strings.Contains(s.p.Src.Text()[first:s.off], "\n") {
			return nil
		}
		in := &ir.Block{Region: o.Regions[i]} // where the region is empty
		for j, b := range r.Blocks {
			if j < len(o.Regions[i].Blocks) && (j == 0 || origin.Tree(o).Off+int(b.Span.Start) < s.off) {
				in = o.Regions[i].Blocks[j]
			}
		}
		return in
	}
	return nil
}

// opening is the offset behind the brace that opens the region of s.block.
func (s *statement) opening() int {
	o := s.block.Region.Op
	for i, r := range o.Regions {
		if r == s.block.Region && origin.Tree(o) != nil && i < len(origin.Tree(o).Regions) {
			return min(origin.Tree(o).Off+int(origin.Tree(o).Regions[i].Open)+1, s.off)
		}
	}
	return 0
}

// belongs reports whether off, which lies behind the start of o, still belongs
// to o: inside it, behind it on its line, or behind a line that asks for more.
func (s *statement) belongs(o *ir.Op) bool {
	if s.off <= o.Span.End {
		return true
	}
	text := s.p.Src.Text()
	gap := text[o.Span.End:s.off]
	if strings.TrimSpace(gap) != "" && !strings.HasPrefix(strings.TrimSpace(gap), "//") {
		return false
	}
	return !strings.Contains(gap, "\n") || strings.ContainsRune(",:=(<[", rune(text[o.Span.End-1]))
}

// read takes the tokens apart. It gives nil where off lies in a comment.
func (s *statement) read(start int) *statement {
	text := s.p.Src.Text()
	toks := lex.Tokens(text[:s.off], source.Span{Start: start, End: s.off})
	end := start
	if n := len(toks); n > 0 {
		end = toks[n-1].End
	}
	line := text[end:s.off]
	if strings.Contains(line[strings.LastIndexByte(line, '\n')+1:], "//") {
		return nil
	}
	s.before, s.word = toks, source.Span{Start: s.off, End: s.off}
	if n := len(toks); n > 0 && toks[n-1].End == s.off && wordLike(text[toks[n-1].Start]) {
		s.before, s.word = toks[:n-1], toks[n-1].Span
	}
	s.name = s.nameIndex()
	return s
}

// wordLike reports whether a token that begins with c is one that people type
// letter by letter.
func wordLike(c byte) bool {
	return wordByte(c) || strings.IndexByte(`%@#!^"`, c) >= 0
}

// nameIndex skips the results.
func (s *statement) nameIndex() int {
	if len(s.before) == 0 {
		return 0
	}
	if c := s.tok(0)[0]; c != '%' {
		if c == '"' || wordByte(c) {
			return 0
		}
		return -1
	}
	for i := range s.before {
		switch c := s.tok(i)[0]; {
		case c == '=':
			return i + 1
		case c != '%' && c != ',' && c != ':' && (c < '0' || c > '9'):
			return -1
		}
	}
	return -1
}

// tok is the text of a token before the word; "" outside of them.
func (s *statement) tok(i int) string {
	if i < 0 || i >= len(s.before) {
		return ""
	}
	return s.p.Src.Slice(s.before[i].Span)
}

// tokens are the texts of the tokens before the word.
func (s *statement) tokens() []string {
	out := make([]string, len(s.before))
	for i := range out {
		out[i] = s.tok(i)
	}
	return out
}

// typed is the text of the word.
func (s *statement) typed() string { return s.p.Src.Slice(s.word) }

// opName is the name of the op, "" where none is written.
func (s *statement) opName() string {
	if s.name < 0 {
		return ""
	}
	return strings.Trim(s.tok(s.name), `"`)
}

// place is what surrounds the word: the brackets that are open, and what
// the op has written so far.
type place struct {
	open     []int // indices of the open brackets, the outermost first
	typed    bool  // behind the op's ":" or "->"
	colon    int   // index of the op's ":", -1 where it has none yet
	operands int   // values behind the name
	commas   int   // at depth 0
	clause   string
}

// place reads the tokens behind the op's name.
func (s *statement) place() place {
	l := place{colon: -1}
	for i := max(s.name, -1) + 1; i < len(s.before); i++ {
		t := s.tok(i)
		switch t[0] {
		case '(', '[', '{', '<':
			l.open = append(l.open, i)
		case ')', ']', '}', '>':
			if n := len(l.open); n > 0 {
				l.open = l.open[:n-1]
			}
		case '%':
			if !l.typed {
				l.operands++
			}
		case ',':
			if len(l.open) == 0 {
				l.commas++
				l.clause = ""
			}
		case '=':
			if len(l.open) == 0 {
				l.clause = s.tok(i - 1)
			}
		case ':', '-':
			if len(l.open) == 0 && (t == ":" || t == "->") {
				if t == ":" && l.colon < 0 {
					l.colon = i
				}
				l.typed, l.clause = true, ""
			}
		}
	}
	return l
}

// inside is the index of the innermost open bracket, -1 where none is open.
func (l place) inside() int {
	if len(l.open) == 0 {
		return -1
	}
	return l.open[len(l.open)-1]
}

// written are the attributes that the op has, before the place and behind it.
func (s *statement) written() map[string]bool {
	out := map[string]bool{}
	for i := max(s.name, -1) + 2; i < len(s.before); i++ {
		if s.tok(i) == "=" {
			out[s.tok(i-1)] = true
		}
	}
	if s.op == nil || origin.Tree(s.op) == nil {
		return out
	}
	t := origin.Tree(s.op)
	for _, c := range t.Clauses {
		if t.Off+int(c.NameSpan.Start) != s.word.Start {
			out[c.Name] = true
		}
	}
	for _, a := range s.op.Attrs {
		if at := origin.AttrSpan(s.op, s.p.Src, a.Name); at != s.op.Head && t.Form != ast.Bad {
			out[a.Name] = true
		}
	}
	return out
}
