package ast

import (
	"strings"
	"testing"

	"dmir/syntax/source"
)

func TestWalk(t *testing.T) {
	leaf := func(name string) *Op { return &Op{Name: name, Parts: NoParts} }
	inner := leaf("if")
	inner.Own().Regions = []*Region{
		{Blocks: []*Block{{Ops: []*Op{leaf("a")}}, {Ops: []*Op{leaf("b")}}}},
		{Blocks: []*Block{{Ops: []*Op{leaf("c")}}}},
	}
	ops := []*Op{leaf("first"), inner, leaf("last")}
	for skip, want := range map[string]string{"": "first if a b c last", "if": "first if last", "b": "first if a b c last"} {
		var got []string
		Walk(ops, func(o *Op) bool {
			got = append(got, o.Name)
			return o.Name != skip
		})
		if s := strings.Join(got, " "); s != want {
			t.Errorf("skipping %q: visited %s, want %s", skip, s, want)
		}
	}
}

func TestRanges(t *testing.T) {
	src := source.New("x", "  %0 = dm.add %a, %b : f32")
	op := &Op{Off: 2, Len: 24, NameSpan: Rel{5, 11}}
	if got := op.Text(src, op.NameSpan); got != "dm.add" {
		t.Errorf("the name is %q", got)
	}
	if got := src.Slice(op.Head()); got != "%0 = dm.add" {
		t.Errorf("the head is %q", got)
	}
	if got := src.Slice(op.Span()); got != src.Text()[2:] {
		t.Errorf("the op is %q", got)
	}
	if !(Rel{3, 3}).Empty() || (Rel{3, 4}).Empty() {
		t.Error("Empty is wrong")
	}
}

func TestGet(t *testing.T) {
	v := &AttrExpr{Kind: AInt, Int: 3}
	d := &AttrExpr{Kind: ADict, Entries: []Entry{{Key: "k", Value: v}}}
	if d.Get("k") != v || d.Get("x") != nil || (*AttrExpr)(nil).Get("k") != nil {
		t.Error("Get is wrong")
	}
}
