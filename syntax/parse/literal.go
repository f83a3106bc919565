package parse

import "dmir/syntax/ast"

// literalReader reads the numbers inside dense<…> and array<…>. They can be
// millions, so they are read by hand into nodes that are allocated in bulk.
type literalReader struct {
	src  string
	cur  cursor
	slab []ast.AttrExpr
	err  *Error
}

// maxRank bounds how deep the lists of a literal nest.
const maxRank = 64

// all reads the literal of dense<…>: nothing, one scalar, or one list, which
// is the only element of the result.
func (r *literalReader) all() []*ast.AttrExpr {
	t := r.cur.next()
	if t.kind == kEOF {
		return nil
	}
	v := r.value(t, 0)
	if t = r.cur.next(); t.kind != kEOF && r.err == nil {
		r.fail(t, "expected the end of the literal")
	}
	if v == nil {
		return nil
	}
	return []*ast.AttrExpr{v}
}

func (r *literalReader) fail(t token, msg string) {
	if r.err == nil {
		found := "the end"
		if t.kind != kEOF {
			found = "`" + excerpt(r.src[t.start:t.end]) + "`"
		}
		r.err = newError("DM042", t.start, max(t.end, t.start+1), "%s, found %s", msg, found)
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
func (r *literalReader) value(t token, rank int) *ast.AttrExpr {
	start := t.start
	var a *ast.AttrExpr
	switch t.kind {
	case kLBrack, kLParen:
		if rank >= maxRank {
			r.fail(t, "lists are nested too deep")
			return nil
		}
		a = r.node()
		a.Kind = ast.AArray
		a.Elems = r.list(t.kind+1, rank+1)
		a.Text = r.src[start:r.cur.pos]
		return a
	case kNumber:
		a = r.number(t, start)
	case kOp:
		n := r.cur.next()
		if r.src[start] != '-' || n.kind != kNumber {
			r.fail(t, "expected a number")
			return nil
		}
		t.end = n.end
		a = r.number(t, start)
	case kString:
		a = r.node()
		a.Kind, a.Str = ast.AString, Unquote(r.src[start:t.end])
	case kIdent:
		w := r.src[start:t.end]
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
	a.Text = r.src[start:t.end]
	return a
}

func (r *literalReader) number(t token, start int) *ast.AttrExpr {
	a := r.node()
	if !number(a, r.src[start:t.end]) {
		r.fail(t, "expected a number")
	}
	return a
}

// list reads values up to the closing token.
func (r *literalReader) list(closing kind, rank int) []*ast.AttrExpr {
	var out []*ast.AttrExpr
	t := r.cur.next()
	for t.kind != closing && r.err == nil {
		v := r.value(t, rank)
		if v == nil {
			break
		}
		out = append(out, v)
		if t = r.cur.next(); t.kind == kComma {
			if t = r.cur.next(); t.kind == closing {
				r.fail(t, "expected a number")
			}
		} else if t.kind != closing {
			r.fail(t, "expected `,` between elements")
		}
	}
	return out
}
