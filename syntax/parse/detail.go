package parse

import (
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// detailer is the second stage: it fills in the details of one op. It is not safe
// for concurrent use; every worker has its own.
type detailer struct {
	lex     coarseLexer
	custom  customScan
	results []ast.Result // room for the next ops'
	uses    []ast.Use
	room    int // how many there was room for when it was last made
}

// more is how many results or uses room is made for: many at a time in a long
// text, and few where one op is read that will keep all of it.
func (d *detailer) more() int {
	d.room = min(max(2*d.room, 2), 256)
	return d.room
}

// op fills op from src, which begins with the op's text; what lies in op's
// regions is skipped and may be missing at the end of src.
func (d *detailer) op(op *ast.Op, src string) {
	switch op.Form {
	case ast.Split, ast.Resource:
	case ast.AttrAlias, ast.TypeAlias:
		d.alias(op, src)
	case ast.Custom, ast.Bad:
		d.custom.scan(op, src)
	default:
		if err := d.skeleton(op, src); err != nil {
			d.bad(op, src, err)
		}
	}
}

// bad turns op into a Bad op that still has its names and values.
func (d *detailer) bad(op *ast.Op, src string, err *Error) {
	*op = ast.Op{Off: op.Off, Len: op.Len, Form: ast.Bad, Parts: &ast.Parts{Regions: op.Regions, Diags: op.Diags}}
	if len(op.Diags) == 0 { // else this is its consequence
		diag := err.Diagnostic(0)
		diag.Span = clamp(diag.Span, len(src))
		op.Own().Diags = append(op.Diags, diag)
	}
	d.custom.scan(op, src)
}

// clamp keeps a span inside a text of n bytes and at least one byte wide.
func clamp(s source.Span, n int) source.Span {
	s.End = min(max(s.End, s.Start+1), n)
	s.Start = max(0, min(s.Start, s.End-1))
	return s
}

func (d *detailer) alias(op *ast.Op, src string) {
	c := lex.New(src, 0, len(src))
	name, eq := c.Next(), c.Next()
	op.Name, op.NameSpan = src[name.Start:name.End], rel(name.Start, name.End)
	if eq.Kind != lex.Eq || c.Peek().Kind == lex.EOF {
		d.bad(op, src, newError("DM028", name.Start, len(src), "expected `%s = …`", op.Name))
		return
	}
	value := rel(c.Peek().Start, len(src))
	if op.Form == ast.AttrAlias {
		op.Lead = value
	} else {
		op.Sig = value
	}
	if v := d.lex.gather(op, src, c); v.Kind == lex.Value {
		d.bad(op, src, newError("DM028", v.Start, v.End, "an alias names a type or an attribute, which cannot contain values such as %s", excerpt(src[v.Start:v.End])))
	}
}

// gather notes the symbols and aliases behind c and gives the first value there.
func (l *coarseLexer) gather(op *ast.Op, src string, c lex.Cursor) (value lex.Token) {
	l.src, l.op, l.cur = src, op, c
	for t := l.next(); t.Kind != lex.EOF; t = l.next() {
		if t.Kind == lex.Value && t.End > t.Start+1 && value.Kind == lex.EOF {
			value = t
		}
	}
	return value
}

// skeleton reads an op of a form in the grammar.
func (d *detailer) skeleton(op *ast.Op, src string) *Error {
	d.lex.lex(op, src)
	toks := d.lex.out
	s := shapeOf(toks)
	if s.bad >= 0 {
		return d.unexpected(op, src, toks, s)
	}
	span := func(p part) ast.Rel {
		if i := s.at[p]; i > 0 {
			return rel(toks[i-1].Start, toks[i-1].End)
		}
		return ast.Rel{}
	}
	text := func(p part) string { r := span(p); return src[r.Start:r.End] }

	op.NameSpan = span(pName)
	op.Name = text(pName)
	if op.Form == ast.Generic {
		op.Name = Unquote(op.Name)
	}
	var err *Error
	if r := span(pResults); !r.Empty() {
		if len(d.results) == 0 {
			d.results = make([]ast.Result, d.more())
		}
		if op.Results, err = parseResults(d.results[:0:1], src, int(r.Start), int(r.End)); err != nil {
			return err
		}
		d.results = d.results[1:]
	}
	op.Lead, op.Props, op.Attrs, op.Loc = span(pLead), span(pProps), span(pAttrs), span(pLoc)
	op.Sig = span(pTypes)
	if a := span(pArrow); !a.Empty() {
		op.Sig.Start = a.Start
	}
	if r := span(pOperands); !r.Empty() {
		if op.Operands, err = d.operands(src, int(r.Start), int(r.End)); err != nil {
			return err
		}
	}
	if r := span(pOperandParen); !r.Empty() {
		if op.Operands, err = d.operands(src, int(r.Start)+1, int(r.End)-1); err != nil {
			return err
		}
	}
	if r := span(pSuccs); !r.Empty() {
		if err = parseSuccs(op, src, int(r.Start)+1, int(r.End)-1); err != nil {
			return err
		}
	}
	for _, i := range s.clauses {
		c, err := parseClause(src, toks[i])
		if err != nil {
			return err
		}
		op.Own().Clauses = append(op.Clauses, c)
	}
	if d.lex.form == fFunc || d.lex.form == fModule {
		if r := span(pSymbol); !r.Empty() {
			for i := range op.Symbols {
				if op.Symbols[i].Span == r {
					op.Symbols[i].Def = true
				}
			}
		}
	}
	if d.lex.form == fFunc {
		return d.function(op, src, span)
	}
	if op.Name == "dm.mesh" && op.Form == ast.Pretty && len(op.Symbols) > 0 && op.Symbols[0].Span == op.Lead {
		op.Symbols[0].Def = true
	}
	return nil
}

// operands reads a list of uses; few of them stand in the room that is there.
func (d *detailer) operands(src string, start, end int) ([]ast.Use, *Error) {
	n := strings.Count(src[start:end], ",") + 1
	if n > 8 || start >= end {
		return parseUses(nil, src, start, end)
	}
	if len(d.uses) < n {
		d.uses = make([]ast.Use, max(n, d.more()))
	}
	out, err := parseUses(d.uses[:0:n], src, start, end)
	if len(out) == 0 {
		return nil, err
	}
	d.uses = d.uses[len(out):]
	return out, err
}

func (d *detailer) function(op *ast.Op, src string, span func(part) ast.Rel) *Error {
	visibility, name, params, results := span(pVisibility), span(pSymbol), span(pParams), span(pFuncResults)
	f := &ast.Func{Visibility: src[visibility.Start:visibility.End], NameSpan: name, Name: src[name.Start:name.End]}
	switch f.Visibility {
	case "", "private", "public", "nested":
	default:
		return newError("DM022", int(visibility.Start), int(visibility.End), "expected `private`, `public` or `nested` before the function's name, found `%s`", excerpt(f.Visibility))
	}
	var err *Error
	if f.Args, f.Variadic, err = parseArgs(src, int(params.Start)+1, int(params.End)-1); err != nil {
		return err
	}
	named := len(op.Regions) > 0 && len(op.Regions[0].Blocks) > 0 && len(op.Regions[0].Blocks[0].Args) == 0
	for _, a := range f.Args {
		switch {
		case a.Name != "":
			op.Own().Defs = append(op.Defs, a)
		case named:
			return newError("DM026", int(a.Type.Start), int(a.Type.End), "an argument of a function with a body has no name")
		}
	}
	if !results.Empty() {
		start, end := int(results.Start), int(results.End)
		if src[start] == '(' {
			// One pair of parentheses around all is the list's; (A) -> B is a type.
			c := lex.New(src, start, end)
			if group(&c, c.Next()) == end {
				start, end = start+1, end-1
			}
		}
		if f.Results, _, err = parseArgs(src, start, end); err != nil {
			return err
		}
	}
	op.Own().Func = f
	return nil
}

func parseClause(src string, t coarse) (ast.Clause, *Error) {
	c := lex.New(src, t.Start, t.End)
	name := c.Next()
	c.Next() // "="
	value := c.Next()
	if value.Kind == lex.EOF {
		return ast.Clause{}, newError("DM022", name.Start, t.End, "expected a value after `%s =`", src[name.Start:name.End])
	}
	return ast.Clause{Name: src[name.Start:name.End], NameSpan: rel(name.Start, name.End), Value: rel(value.Start, t.End)}, nil
}

// unexpected describes why the grammar refused toks.
func (d *detailer) unexpected(op *ast.Op, src string, toks []coarse, s *shape) *Error {
	want := s.want
	if s.bad >= len(toks) {
		if want == "" {
			want = "an operand or `name = value`" // only a comma of a dm op can be last
		}
		return newError("DM021", max(0, len(src)-1), len(src), "expected %s, but the op ends here", want)
	}
	t := toks[s.bad]
	text := src[t.Start:t.End]
	if d.lex.form == fDm {
		if n, ok := literalOperand(src, toks, s.bad); ok {
			return newError("DM023", n.Start, n.End, "expected an operand such as %%x, found the number `%s`", excerpt(src[n.Start:n.End]))
		}
	}
	switch {
	case t.Kind == tRegion:
		t.End = t.Start + 1
		text = "{"
	case t.Kind == tClause && want == "":
		want = "`,` before a clause"
	case t.Kind == tParen && d.lex.form == fDm && want == "":
		return newError("DM022", t.Start, t.End, "operands are written without parentheses, found `%s`", excerpt(text))
	}
	if want == "" {
		want = "the end of the op"
	}
	return newError("DM022", t.Start, t.End, "expected %s, found `%s`", want, excerpt(text))
}

// literalOperand is the number among the operands of an op of the dialect whose
// token number bad the grammar refuses, if that is why.
func literalOperand(src string, toks []coarse, bad int) (n coarse, ok bool) {
	n = toks[bad]
	if bad >= 2 && toks[bad-1].Kind == tComma && toks[bad-2].Kind == tLiteral { // %x in "dm.mul 2.0, %x"
		n = toks[bad-2]
	}
	var a ast.AttrExpr
	return n, n.Kind == tLiteral && number(&a, src[n.Start:n.End])
}
