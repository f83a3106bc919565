package parse

import (
	"strconv"
	"strings"

	"dmir/syntax/ast"
)

// The lists of values, arguments and successors inside one coarse token are
// regular and hot, so they are read by hand.

// parseResults reads "%a:2, %b =", appending to out.
func parseResults(out []ast.Result, src string, start, end int) ([]ast.Result, *Error) {
	c := newCursor(src, start, end)
	for {
		t := c.next()
		if t.kind != kValue {
			return out, newError("DM024", t.start, t.end, "expected a result such as %%x, found `%s`", excerpt(src[t.start:t.end]))
		}
		r := ast.Result{Name: src[t.start:t.end], Count: 1, Span: rel(t.start, t.end)}
		if i := strings.IndexByte(r.Name, '#'); i >= 0 {
			return out, newError("DM024", t.start, t.end, "a result is named without `#`; write %s:n for n values", r.Name[:i])
		}
		t = c.next()
		if t.kind == kColon {
			t = c.next()
			n, err := strconv.ParseInt(src[t.start:t.end], 10, 32)
			if err != nil || n < 1 {
				return out, newError("DM024", t.start, t.end, "expected how many values %s stands for, found `%s`", r.Name, excerpt(src[t.start:t.end]))
			}
			r.Count = int32(n)
			t = c.next()
		}
		out = append(out, r)
		switch t.kind {
		case kComma:
		case kEq, kEOF:
			return out, nil
		default:
			return out, newError("DM024", t.start, t.end, "expected `,` or `=` after the result %s", r.Name)
		}
	}
}

func makeUse(src string, t token) ast.Use {
	u := ast.Use{Name: src[t.start:t.end], Index: -1, Span: rel(t.start, t.end)}
	if i := strings.IndexByte(u.Name, '#'); i >= 0 {
		n, err := strconv.ParseInt(u.Name[i+1:], 10, 32)
		if err != nil {
			n = 1<<31 - 1 // no op has as many results: the verifier will say so
		}
		u.Name, u.Index = u.Name[:i], int32(n)
	}
	return u
}

// parseUses reads "%a, %b#1", appending to out.
func parseUses(out []ast.Use, src string, start, end int) ([]ast.Use, *Error) {
	c := newCursor(src, start, end)
	t := c.next()
	if t.kind == kEOF {
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
		if t.kind != kValue {
			return out, newError("DM023", t.start, t.end, "expected an operand such as %%x, found `%s`", excerpt(src[t.start:t.end]))
		}
		out = append(out, makeUse(src, t))
		switch t = c.next(); t.kind {
		case kEOF:
			return out, nil
		case kComma:
			t = c.next()
		default:
			return out, newError("DM023", t.start, t.end, "expected `,` between operands, found `%s`", excerpt(src[t.start:t.end]))
		}
	}
}

// parseSuccs reads "^a, ^b(%x : f32)".
func parseSuccs(op *ast.Op, src string, start, end int) *Error {
	c := newCursor(src, start, end)
	for t := c.next(); t.kind != kEOF; t = c.next() {
		if t.kind != kLabel {
			return newError("DM022", t.start, t.end, "expected a successor such as ^bb1, found `%s`", excerpt(src[t.start:t.end]))
		}
		s := ast.Successor{Name: src[t.start:t.end], Span: rel(t.start, t.end)}
		t = c.next()
		if t.kind == kLParen {
			inner, colon := t.end, -1
			for t.kind != kRParen && t.kind != kEOF {
				if t = c.next(); t.kind == kColon && colon < 0 {
					colon = t.start
				}
			}
			stop := t.start
			if colon >= 0 {
				stop = colon
			}
			uses, err := parseUses(nil, src, inner, stop)
			if err != nil {
				return err
			}
			s.Args = uses
			op.Operands = append(op.Operands, uses...)
			t = c.next()
		}
		op.Succs = append(op.Succs, s)
		if t.kind != kComma {
			if t.kind != kEOF {
				return newError("DM022", t.start, t.end, "expected `,` between successors")
			}
			return nil
		}
	}
	return nil
}

// parseArgs reads "%a: type {attrs} loc(…), type, …": the arguments of a block
// or function, or a function's results. variadic is set by a final "...".
func parseArgs(src string, start, end int) (args []ast.BlockArg, variadic bool, err *Error) {
	c := newCursor(src, start, end)
	t := c.next()
	for t.kind != kEOF {
		if t.kind == kOp && src[t.start] == '.' {
			return args, true, nil
		}
		var a ast.BlockArg
		if t.kind == kValue {
			a.Name, a.Span = src[t.start:t.end], rel(t.start, t.end)
			if t = c.next(); t.kind != kColon {
				return args, false, newError("DM026", int(a.Span.Start), int(a.Span.End), "expected `: type` after the argument %s", a.Name)
			}
			t = c.next()
		}
		first, last := t, token{start: -1}
		var br brackets
		for ; t.kind != kEOF; t = c.next() {
			if br.depth() == 0 && (t.kind == kComma || t.kind == kLBrace || t.kind == kValue || isLoc(&c, t)) {
				break
			}
			br.track(t)
			last = t
		}
		if last.start < 0 {
			return args, false, newError("DM026", first.start, first.end, "expected a type, found `%s`", excerpt(src[first.start:first.end]))
		}
		a.Type = rel(first.start, last.end)
		if t.kind == kLBrace {
			a.Attrs = rel(t.start, group(&c, t))
			t = c.next()
		}
		if isLoc(&c, t) {
			paren := c.next()
			a.Loc = rel(t.start, group(&c, paren))
			t = c.next()
		}
		args = append(args, a)
		if (a.Name == "") != (args[0].Name == "") {
			return args, false, newError("DM026", first.start, last.end, "some arguments have names and some have none")
		}
		switch comma := t; t.kind {
		case kComma:
			if t = c.next(); t.kind == kEOF {
				return args, false, newError("DM026", comma.start, comma.end, "expected an argument behind `,`")
			}
		case kEOF:
		default:
			return args, false, newError("DM026", t.start, t.end, "expected `,` between arguments, found `%s`", excerpt(src[t.start:t.end]))
		}
	}
	return args, false, nil
}

// isLoc reports whether t is the word of "loc(…)"; c stands behind t.
func isLoc(c *cursor, t token) bool {
	return t.kind == kIdent && t.end-t.start == 3 && c.text[t.start:t.end] == "loc" && c.peek().kind == kLParen
}

// group moves c behind the bracket that closes open and returns that offset.
func group(c *cursor, open token) int {
	var br brackets
	br.push(open)
	end := open.end
	for br.depth() > 0 {
		t := c.next()
		if t.kind == kEOF {
			break
		}
		br.track(t)
		end = t.end
	}
	return end
}
