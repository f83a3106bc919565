package parse

import (
	"dmir/syntax/ast"
	"dmir/syntax/lex"
)

// literalReader reads the numbers inside dense<…> and array<…>. They can be
// millions, so they are read by hand into nodes that are allocated in bulk.
type literalReader struct {
	src  string
	cur  lex.Cursor
	slab []ast.AttrExpr
	err  *Error
}

// maxRank bounds how deep the lists of a literal nest.
const maxRank = 64

// all reads the literal of dense<…>: nothing, one scalar, or one list, which
// is the only element of the result.
func (r *literalReader) all() []*ast.AttrExpr {
	t := r.cur.Next()
	if t.Kind == lex.EOF {
		return nil
	}
	v := r.value(t, 0)
	if t = r.cur.Next(); t.Kind != lex.EOF && r.err == nil {
		r.fail(t, "expected the end of the literal")
	}
	if v == nil {
		return nil
	}
	return []*ast.AttrExpr{v}
}

func (r *literalReader) fail(t lex.Token, msg string) {
	if r.err == nil {
		found := "the end"
		if t.Kind != lex.EOF {
			found = "`" + excerpt(r.src[t.Start:t.End]) + "`"
		}
		r.err = newError("DM042", t.Start, max(t.End, t.Start+1), "%s, found %s", msg, found)
	}
}

func (r *literalReader) node() *ast.AttrExpr {
	if len(r.slab) == cap(r.slab) {
		r.slab = make([]ast.AttrExpr, 0, min(max(8, 2*cap(r.slab)), 1024))
	}
	r.slab = r.slab[:len(r.slab)+1]
	return &r.slab[len(r.slab)-1]
}

// value reads the scalar or list that begins with t; nil after an error.
func (r *literalReader) value(t lex.Token, rank int) *ast.AttrExpr {
	start := t.Start
	var a *ast.AttrExpr
	switch t.Kind {
	case lex.LBrack, lex.LParen:
		if rank >= maxRank {
			r.fail(t, "lists are nested too deep")
			return nil
		}
		a = r.node()
		a.Kind = ast.AArray
		a.Elems = r.list(t.Kind+1, rank+1)
		a.Text = r.src[start:r.cur.Pos]
		return a
	case lex.Number:
		a = r.number(t, start)
	case lex.Op:
		n := r.cur.Next()
		if r.src[start] != '-' || n.Kind != lex.Number && !ast.NotFinite(r.src[n.Start:n.End]) {
			r.fail(t, "expected a number")
			return nil
		}
		t.End = n.End
		a = r.number(t, start)
	case lex.String:
		a = r.node()
		a.Kind, a.Str = ast.AString, Unquote(r.src[start:t.End])
	case lex.Ident:
		w := r.src[start:t.End]
		if ast.NotFinite(w) {
			a = r.number(t, start)
			break
		}
		if w != "true" && w != "false" {
			r.fail(t, "expected a number")
			return nil
		}
		a = r.node()
		a.Kind, a.Bool = ast.ABool, w == "true"
	default:
		r.fail(t, "expected a number")
		return nil
	}
	a.Text = r.src[start:t.End]
	return a
}

func (r *literalReader) number(t lex.Token, start int) *ast.AttrExpr {
	a := r.node()
	if !number(a, r.src[start:t.End]) {
		r.fail(t, "expected a number")
	}
	return a
}

// list reads values up to the closing token.
func (r *literalReader) list(closing lex.Kind, rank int) []*ast.AttrExpr {
	var out []*ast.AttrExpr
	t := r.cur.Next()
	for t.Kind != closing && r.err == nil {
		v := r.value(t, rank)
		if v == nil {
			break
		}
		out = append(out, v)
		if t = r.cur.Next(); t.Kind == lex.Comma {
			if t = r.cur.Next(); t.Kind == closing {
				r.fail(t, "expected a number")
			}
		} else if t.Kind != closing {
			r.fail(t, "expected `,` between elements")
		}
	}
	return out
}
