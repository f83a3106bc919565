package parse

import (
	"strconv"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// The lists of values, arguments and successors inside one coarse token are
// regular and hot, so they are read by hand.

// parseResults reads "%a:2, %b =", appending to out.
func parseResults(out []ast.Result, src string, start, end int) ([]ast.Result, *Error) {
	c := lex.New(src, start, end)
	for {
		t := c.Next()
		if t.Kind != lex.Value {
			return out, newError("DM024", t.Start, t.End, "expected a result such as %%x, found `%s`", excerpt(src[t.Start:t.End]))
		}
		r := ast.Result{Name: src[t.Start:t.End], Count: 1, Span: rel(t.Start, t.End)}
		if i := strings.IndexByte(r.Name, '#'); i >= 0 {
			return out, newError("DM024", t.Start, t.End, "a result is named without `#`; write %s:n for n values", r.Name[:i])
		}
		t = c.Next()
		if t.Kind == lex.Colon {
			t = c.Next()
			n, err := strconv.ParseInt(src[t.Start:t.End], 10, 32)
			if err != nil || n < 1 {
				return out, newError("DM024", t.Start, t.End, "expected how many values %s stands for, found `%s`", r.Name, excerpt(src[t.Start:t.End]))
			}
			r.Count = int32(n)
			t = c.Next()
		}
		out = append(out, r)
		switch t.Kind {
		case lex.Comma:
		case lex.Eq, lex.EOF:
			return out, nil
		default:
			return out, newError("DM024", t.Start, t.End, "expected `,` or `=` after the result %s", r.Name)
		}
	}
}

func makeUse(src string, t lex.Token) ast.Use {
	u := ast.Use{Name: src[t.Start:t.End], Index: -1, Span: rel(t.Start, t.End)}
	if i := strings.IndexByte(u.Name, '#'); i >= 0 {
		n, err := strconv.ParseInt(u.Name[i+1:], 10, 32)
		if err != nil {
			n = 1<<31 - 1 // no op has as many results: the verifier reports it
		}
		u.Name, u.Index = u.Name[:i], int32(n)
	}
	return u
}

// parseUses reads "%a, %b#1", appending to out.
func parseUses(out []ast.Use, src string, start, end int) ([]ast.Use, *Error) {
	c := lex.New(src, start, end)
	t := c.Next()
	if t.Kind == lex.EOF {
		return out, nil
	}
	if out == nil {
		n := 1
		for i := start; i < end; i++ {
			if src[i] == ',' {
				n++
			}
		}
		out = make([]ast.Use, 0, n)
	}
	for {
		if t.Kind != lex.Value {
			what := ""
			if sign := t; t.Kind == lex.Number || src[t.Start:t.End] == "-" && c.Peek().Kind == lex.Number {
				if t.Kind != lex.Number {
					t = c.Next()
				}
				t.Start, what = sign.Start, "the number "
			}
			return out, newError("DM023", t.Start, t.End, "expected an operand such as %%x, found %s`%s`", what, excerpt(src[t.Start:t.End]))
		}
		out = append(out, makeUse(src, t))
		switch t = c.Next(); t.Kind {
		case lex.EOF:
			return out, nil
		case lex.Comma:
			t = c.Next()
		default:
			return out, newError("DM023", t.Start, t.End, "expected `,` between operands, found `%s`", excerpt(src[t.Start:t.End]))
		}
	}
}

// parseSuccs reads "^a, ^b(%x : f32)".
func parseSuccs(op *ast.Op, src string, start, end int) *Error {
	c := lex.New(src, start, end)
	for t := c.Next(); t.Kind != lex.EOF; t = c.Next() {
		if t.Kind != lex.Label {
			return newError("DM022", t.Start, t.End, "expected a successor such as ^bb1, found `%s`", excerpt(src[t.Start:t.End]))
		}
		s := ast.Successor{Name: src[t.Start:t.End], Span: rel(t.Start, t.End)}
		t = c.Next()
		if t.Kind == lex.LParen {
			inner, colon := t.End, -1
			for t.Kind != lex.RParen && t.Kind != lex.EOF {
				if t = c.Next(); t.Kind == lex.Colon && colon < 0 {
					colon = t.Start
				}
			}
			stop := t.Start
			if colon >= 0 {
				stop = colon
			}
			uses, err := parseUses(nil, src, inner, stop)
			if err != nil {
				return err
			}
			s.Args = uses
			op.Operands = append(op.Operands, uses...)
			t = c.Next()
		}
		op.Own().Succs = append(op.Succs, s)
		if t.Kind != lex.Comma {
			if t.Kind != lex.EOF {
				return newError("DM022", t.Start, t.End, "expected `,` between successors")
			}
			return nil
		}
	}
	return nil
}

// parseArgs reads "%a: type {attrs} loc(…), type, …": the arguments of a block
// or function, or a function's results. variadic is set by a final "...".
func parseArgs(src string, start, end int) (args []ast.BlockArg, variadic bool, err *Error) {
	c := lex.New(src, start, end)
	t := c.Next()
	for t.Kind != lex.EOF {
		if t.Kind == lex.Op && src[t.Start] == '.' {
			return args, true, nil
		}
		var a ast.BlockArg
		if t.Kind == lex.Value {
			a.Name, a.Span = src[t.Start:t.End], rel(t.Start, t.End)
			if t = c.Next(); t.Kind != lex.Colon {
				return args, false, newError("DM026", int(a.Span.Start), int(a.Span.End), "expected `: type` after the argument %s", a.Name)
			}
			t = c.Next()
		}
		none := lex.Token{Span: source.Span{Start: -1}}
		first, last, before := t, none, none
		var br brackets
		for ; t.Kind != lex.EOF; t = c.Next() {
			if t.Kind == lex.Value && last.Kind == lex.Comma { // no type has values: a bracket of it was forgotten
				last = before
				break
			}
			if br.depth() == 0 && (t.Kind == lex.Comma || t.Kind == lex.LBrace || t.Kind == lex.Value || isLoc(&c, t)) {
				break
			}
			br.track(t)
			before, last = last, t
		}
		if last.Start < 0 {
			return args, false, newError("DM026", first.Start, first.End, "expected a type, found `%s`", excerpt(src[first.Start:first.End]))
		}
		a.Type = rel(first.Start, last.End)
		if t.Kind == lex.LBrace {
			a.Attrs = rel(t.Start, group(&c, t))
			t = c.Next()
		}
		if isLoc(&c, t) {
			paren := c.Next()
			a.Loc = rel(t.Start, group(&c, paren))
			t = c.Next()
		}
		args = append(args, a)
		if (a.Name == "") != (args[0].Name == "") {
			return args, false, newError("DM026", first.Start, last.End, "some arguments have names and some have none")
		}
		switch comma := t; {
		case t.Kind == lex.Value && br.depth() > 0: // behind the comma
		case t.Kind == lex.Comma:
			if t = c.Next(); t.Kind == lex.EOF {
				return args, false, newError("DM026", comma.Start, comma.End, "expected an argument after `,`")
			}
		case t.Kind == lex.EOF:
		default:
			return args, false, newError("DM026", t.Start, t.End, "expected `,` between arguments, found `%s`", excerpt(src[t.Start:t.End]))
		}
	}
	return args, false, nil
}

// isLoc reports whether t is the word of "loc(…)"; c stands behind t.
func isLoc(c *lex.Cursor, t lex.Token) bool {
	return t.Kind == lex.Ident && t.End-t.Start == 3 && c.Text[t.Start:t.End] == "loc" && c.Peek().Kind == lex.LParen
}

// group moves c behind the bracket that closes open and returns that offset.
func group(c *lex.Cursor, open lex.Token) int {
	var br brackets
	br.push(open)
	end := open.End
	for br.depth() > 0 {
		t := c.Next()
		if t.Kind == lex.EOF {
			break
		}
		br.track(t)
		end = t.End
	}
	return end
}
