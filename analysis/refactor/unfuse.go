package refactor

import (
	"strings"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// offerUnfuse offers to take the ops out of the kernel at the cursor.
func offerUnfuse(s *selection) []Action {
	k := s.kernel()
	if k == nil {
		return nil
	}
	a := Action{ID: "unfuse", Kind: Inline, Title: "Unfuse the kernel"}
	if b := k.Body(0); b != nil && len(b.Ops) > maxListed {
		return []Action{a}
	}
	if err := s.openable(k); err != nil {
		a.Disabled = err.Error()
		return []Action{a}
	}
	body := k.Body(0)
	added := []*cost.Entry{}
	seen := map[*ir.Value]bool{}
	for _, v := range body.Terminator().Operands {
		if seen[v] || v.Op == nil || v.Op.Parent != body {
			return []Action{a} // those who use the result read another value then
		}
		seen[v] = true
	}
	for _, o := range body.Ops[:len(body.Ops)-1] {
		added = append(added, s.entry(o))
	}
	return []Action{s.promised(k.Parent, []*cost.Entry{s.entry(k)}, added).on(a)}
}

// kernel is the kernel that is selected, at whose head the cursor stands, or in
// which the selection lies.
func (s *selection) kernel() *ir.Op {
	if s.fn == nil || s.block == nil {
		return nil
	}
	if o := s.one(); o != nil && o.Name == op.Kernel {
		return o
	}
	if k := s.block.Region.Op; k.Name == op.Kernel && s.cursor && s.one() == k.Body(0).Terminator() {
		return k
	}
	return nil
}

func (s *selection) openable(k *ir.Op) error {
	if err := s.flawed([]*ir.Op{k}); err != nil {
		return err
	}
	return opened(k)
}

func applyUnfuse(s *selection, _ string) (*Change, error) {
	k := s.kernel()
	if k == nil {
		return nil, refuse("there is no kernel here")
	}
	if err := s.openable(k); err != nil {
		return nil, err
	}
	body := k.Body(0)
	n := s.allNames(k)
	inner, results := renaming{}, renaming{}
	for i, v := range body.Terminator().Operands {
		r := k.Results[i]
		_, named := inner[v]
		if !named && r.Name != "" && v.Op != nil && v.Op.Parent == body && !strings.Contains(v.Name+r.Name, "#") {
			inner[v] = r.Name // the value takes the name of the result
		}
	}
	inner.inside(body.Ops, n.fresh)
	results.stand(k.Results, body.Terminator().Operands, inner)
	return s.open(k, k, 0, inner, results), nil
}

// stand makes the values of by stand for those of vs where these are used.
func (r renaming) stand(vs, by []*ir.Value, names renaming) {
	for i, v := range by {
		if to := names.of(v); to != spelled(vs[i]) {
			r[vs[i]] = to
		}
	}
}

// open puts the ops of region n of holder in the place of o, their values named
// by inner, with the edits more. Uses of o's results take the names in results.
func (s *selection) open(o, holder *ir.Op, n int, inner, results renaming, more ...diag.Edit) *Change {
	edits := append(inner.edits(holder.Regions[n].Blocks[0].Ops), more...)
	raw := s.opened(holder, n, edits)
	if o != holder {
		raw = comments(s.src.Text(), origin.Tree(o).Span()) + strings.Trim(s.body(holder, n, edits), blanks)
	}
	return s.swap(o, raw, results)
}

// swap puts the ops in raw in the place of o.
func (s *selection) swap(o *ir.Op, raw string, results renaming) *Change {
	text, span := s.src.Text(), origin.Tree(o).Span()
	if strings.TrimSpace(raw) == "" {
		edits := append(results.uses(nil, nil), removal(text, span))
		return &Change{Edits: edits}
	}
	raw = strings.Trim(raw, "\n")
	if end := source.Behind(text, span.End); end > span.End { // the comment behind o comes last
		glue := " "
		if lastIsComment(raw) {
			glue = "\n"
		}
		raw += glue + strings.TrimLeft(text[span.End:end], blanks)
		span.End = end
	}
	after := s.write(raw, o.Parent, span.Start)
	if strings.TrimSpace(restOfLine(text, span.End)) != "" {
		after += s.eol() + indentAt(text, span.Start)
	}
	return &Change{Edits: append(replace(text, span, after), results.uses(nil, nil)...)}
}

// lastIsComment reports whether text ends in a comment.
func lastIsComment(text string) bool {
	text = strings.TrimRight(text, blanks)
	i := strings.LastIndexByte(text, '\n') + 1
	return comments(text, source.Span{Start: i, End: len(text)}) != ""
}
