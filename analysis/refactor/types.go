package refactor

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

// offerTypes offers the types that follow from the operands where the selected
// ops, or those of the function at whose head the cursor stands, have none, or
// leave sizes open.
func offerTypes(s *selection) []Action {
	small := 0
	ir.Walk(s.ops, func(*ir.Op) bool {
		small++
		return small < maxListed
	})
	if small >= maxListed || s.cursor && !s.onHead(s.ops[0]) || len(s.infer()) == 0 {
		return nil
	}
	return []Action{{ID: "types", Kind: Rewrite, Title: "Write the inferred types"}}
}

func applyTypes(s *selection, _ string) (*Change, error) {
	edits := s.infer()
	if len(edits) == 0 {
		return nil, refuse("every type that can be inferred is already written")
	}
	return &Change{Edits: edits}, nil
}

// retyping is the better types of values, and the ops whose text names them.
type retyping struct {
	s        *selection
	now      map[*ir.Value]types.Type
	affected []*ir.Op
	seen     map[*ir.Op]bool
}

// infer finds the types op by op, so that one helps the next.
func (s *selection) infer() []diag.Edit {
	r := &retyping{s: s, now: map[*ir.Value]types.Type{}, seen: map[*ir.Op]bool{}}
	ir.Walk(s.ops, func(o *ir.Op) bool {
		r.op(o)
		return true
	})
	var edits []diag.Edit
	for _, o := range r.affected {
		edits = append(edits, r.write(o)...)
	}
	return edits
}

func (r *retyping) op(o *ir.Op) {
	def := op.Of(o)
	tree := origin.Tree(o)
	if def == nil || def.Infer == nil || def.Is(op.Terminator) || tree == nil || len(tree.Operands) != len(o.Operands) || len(o.Results) == 0 {
		return
	}
	missing := tree.Sig.Empty()
	if o.Bad && !missing {
		return
	}
	inferred, ok := verify.Infer(r.copied(o))
	if !ok || len(inferred) != len(o.Results) {
		return
	}
	if missing {
		if op.Of(o).Is(op.Cast) || slices.ContainsFunc(inferred, unwritable) || slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return unwritable(r.of(v)) }) {
			return
		}
		for i, v := range o.Results {
			r.now[v] = inferred[i]
		}
		r.affect(o)
		return
	}
	for i, v := range o.Results {
		if t := known(v.Type, inferred[i]); t != nil && r.respellable(v, t) {
			r.now[v] = t
			r.affect(o)
			for _, u := range v.Uses {
				if !op.Ends(u.Op) {
					r.affect(u.Op)
				}
			}
		}
	}
}

// copied is o with its operands as they are now, without the mark that its type
// is missing.
func (r *retyping) copied(o *ir.Op) *ir.Op {
	c := *o
	c.Bad = false
	c.Operands = make([]*ir.Value, len(o.Operands))
	for i, v := range o.Operands {
		c.Operands[i] = v
		if t := r.now[v]; t != nil {
			w := *v
			w.Type = t
			c.Operands[i] = &w
		}
	}
	return &c
}

func (r *retyping) of(v *ir.Value) types.Type {
	if t := r.now[v]; t != nil {
		return t
	}
	return v.Type
}

func (r *retyping) affect(o *ir.Op) {
	if !r.seen[o] {
		r.seen[o] = true
		r.affected = append(r.affected, o)
	}
}

func unwritable(t types.Type) bool { return t == nil || t == types.Type(types.Unknown) }

// known is written with the sizes that only inferred has, nil where
// there are none.
func known(written, inferred types.Type) types.Type {
	w, ok := written.(*types.Tensor)
	f, ok2 := inferred.(*types.Tensor)
	if !ok || !ok2 || w.Rank() != f.Rank() {
		return nil
	}
	t := *w
	t.Shape = slices.Clone(w.Shape)
	better := false
	for i, d := range w.Shape {
		if d.IsUnnamed() && !f.Shape[i].IsUnnamed() {
			t.Shape[i], better = f.Shape[i], true
		}
	}
	if !better {
		return nil
	}
	return &t
}

// respellable reports whether every op that uses v writes its type in a place of
// its own, or already writes t: the type of a value that a function returns or a
// region yields is written elsewhere too.
func (r *retyping) respellable(v *ir.Value, t types.Type) bool {
	return !slices.ContainsFunc(v.Uses, func(u ir.Use) bool {
		def := op.Of(u.Op)
		if origin.Tree(u.Op) == nil || origin.Tree(u.Op).Sig.Empty() || u.Op.Bad {
			return true
		}
		if op.Ends(u.Op) {
			sig, err := parse.Signature(origin.Tree(u.Op).Text(r.s.src, origin.Tree(u.Op).Sig))
			return err != nil || len(sig.In) != len(u.Op.Operands) || r.s.m.Aliases.Expand(sig.In[u.Index].Text) != t.String()
		}
		return def == nil || len(u.Op.Regions) > 0
	})
}

// write is the edit that gives o its types as they are now.
func (r *retyping) write(o *ir.Op) []diag.Edit {
	t, s := origin.Tree(o), r.s
	spell := func(v *ir.Value, written string) string {
		if r.now[v] == nil {
			return written
		}
		return s.withAliases(r.of(v).String(), o)
	}
	if !t.Sig.Empty() {
		text, ok := s.signature(o, spell)
		if !ok {
			return nil
		}
		return replace(s.src.Text(), t.Abs(t.Sig), text)
	}
	in, out := make([]string, len(o.Operands)), make([]string, len(o.Results))
	for i, v := range o.Operands {
		in[i] = spell(v, s.typeText(v))
	}
	for i, v := range o.Results {
		out[i] = spell(v, s.typeText(v))
	}
	return []diag.Edit{s.signatureEdit(o, in, out)}
}

// signature is that of o with each type as spell returns it, which is passed how it
// is written now; ok is false where it cannot be read.
func (s *selection) signature(o *ir.Op, spell func(v *ir.Value, written string) string) (text string, ok bool) {
	tree := origin.Tree(o)
	sig, err := parse.Signature(tree.Text(s.src, tree.Sig))
	if err != nil {
		return "", false
	}
	list := func(vs []*ir.Value, ts []*ast.TypeExpr) []string {
		out := make([]string, len(vs))
		for i, v := range vs {
			switch {
			case sig.Single && len(ts) > 0:
				out[i] = spell(v, ts[0].Text)
			case len(ts) == len(vs):
				out[i] = spell(v, ts[i].Text)
			default:
				out[i] = spell(v, s.typeText(v))
			}
		}
		return out
	}
	in, out := list(o.Operands, sig.In), list(o.Results, sig.Out)
	switch {
	case len(out) == 0 && tree.Form == ast.Pretty:
		return strings.Join(in, ", "), true
	case len(in) == 0 && len(out) == 1 && sig.Single:
		return out[0], true
	}
	return shortest(in, out, tree.Form == ast.Generic || len(tree.Regions) > 0 && len(in) > 0 || o.Name == op.Call), true
}

// shortest is a signature in the form that people write: one type where all are
// the same, an arrow where there are no operands.
func shortest(in, out []string, generic bool) string {
	to := strings.Join(out, ", ")
	if len(out) != 1 {
		to = "(" + to + ")"
	}
	if !generic {
		all := slices.Concat(in, out)
		if len(out) > 0 && len(in) > 0 && !slices.ContainsFunc(all, func(t string) bool { return t != all[0] }) {
			return all[0]
		}
		if len(in) == 0 {
			return "-> " + to
		}
	}
	return "(" + strings.Join(in, ", ") + ") -> " + to
}

// signatureEdit writes the signature of an op that has none where its form has
// its place: in front of regions, or at the end.
func (s *selection) signatureEdit(o *ir.Op, in, out []string) diag.Edit {
	t := origin.Tree(o)
	text := shortest(in, out, t.Form == ast.Generic)
	colon := ": "
	if strings.HasPrefix(text, "->") {
		if len(t.Regions) == 0 && len(out) == 1 {
			text = out[0] // dm.constant dense<0> : tensor<i64>
		} else {
			colon = ""
		}
	}
	end := int(t.Len)
	switch {
	case len(t.Regions) > 0 && t.Form == ast.Pretty:
		end = int(t.Regions[0].Open)
	case !t.Loc.Empty():
		end = int(t.Loc.Start)
	}
	head := strings.TrimRight(s.src.Slice(t.Span())[:end], blanks)
	return diag.Edit{Span: empty(t.Off + len(head)), Text: " " + colon + text}
}
