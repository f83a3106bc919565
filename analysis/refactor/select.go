package refactor

import (
	"sort"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// selection is the ops of one block that a span of the text touches.
type selection struct {
	p      *program.Program
	src    *source.File
	m      *ir.Module
	span   source.Span
	cursor bool      // nothing is selected: the one op is that at the cursor
	block  *ir.Block // nil at the top level of the module
	ops    []*ir.Op  // in order, at least one
	fn     *ir.Func  // around the block; nil outside of functions
}

// find is the innermost run of ops that span touches, nil where it touches
// none. It searches by position and visits no op beside the way.
func find(p *program.Program, span source.Span) *selection {
	if p.Imported {
		return nil
	}
	n := p.Src.Len()
	span.Start, span.End = min(max(span.Start, 0), n), min(max(span.End, 0), n)
	if span.End < span.Start {
		span.Start, span.End = span.End, span.Start
	}
	text := p.Src.Slice(span)
	s := &selection{p: p, src: p.Src, cursor: strings.TrimSpace(text) == ""}
	if s.cursor {
		span.Start = onLine(p.Src, span.Start)
		span.End = span.Start
	} else {
		span.Start += len(text) - len(strings.TrimLeft(text, blanks))
		span.End -= len(text) - len(strings.TrimRight(text, blanks))
	}
	s.span = span
	for _, m := range p.Modules {
		if ops := touched(m.Ops, span); len(ops) > 0 {
			s.m, s.ops = m, ops
			break
		}
	}
	if s.m == nil {
		return nil
	}
	for len(s.ops) == 1 {
		b, ops := into(s.ops[0], span)
		if len(ops) == 0 {
			break
		}
		s.block, s.ops = b, ops
	}
	for _, o := range s.ops {
		if origin.Tree(o) == nil {
			return nil
		}
	}
	s.fn = function(s.m, s.block)
	return s
}

// onLine is off, or, in front of the first word of a line, where that begins.
func onLine(src *source.File, off int) int {
	at := src.Pos(off)
	text := src.Line(at.Line)
	if indent := len(text) - len(strings.TrimLeft(text, blanks)); at.Col < indent && indent < len(text) {
		return off + indent - at.Col
	}
	return off
}

const blanks = " \t\r\n"

// touched are the ops that span touches; the end of an op counts to it.
func touched(ops []*ir.Op, span source.Span) []*ir.Op {
	first := sort.Search(len(ops), func(i int) bool { return ops[i].Span.End >= span.Start })
	last := sort.Search(len(ops), func(i int) bool { return ops[i].Span.Start > span.End })
	if span.Len() > 0 { // an op that only meets the selection is not selected
		for first < last && ops[first].Span.End == span.Start {
			first++
		}
		for first < last && ops[last-1].Span.Start == span.End {
			last--
		}
	} else if last-first > 1 { // between two ops: the one that begins there
		first = last - 1
	}
	if first >= last {
		return nil
	}
	return ops[first:last]
}

// into is the block of one of o's regions that span lies in, with the ops of it
// that span touches.
func into(o *ir.Op, span source.Span) (*ir.Block, []*ir.Op) {
	tree := origin.Tree(o)
	if tree == nil || len(tree.Regions) < len(o.Regions) {
		return nil, nil
	}
	for i, r := range o.Regions {
		t := tree.Regions[i]
		end := o.Span.End
		if t.Close >= 0 {
			end = tree.Off + int(t.Close)
		}
		if span.Start <= tree.Off+int(t.Open) || span.End > end {
			continue
		}
		at := sort.Search(len(r.Blocks), func(i int) bool {
			ops := r.Blocks[i].Ops
			return len(ops) > 0 && ops[len(ops)-1].Span.End >= span.Start
		})
		if at < len(r.Blocks) {
			if ops := touched(r.Blocks[at].Ops, span); len(ops) > 0 {
				return r.Blocks[at], ops
			}
		}
	}
	return nil, nil
}

// function is the function around b, nil where there is none. One that the
// module does not list, because it lies in a module of its own, is made up.
func function(m *ir.Module, b *ir.Block) *ir.Func {
	for ; b != nil; b = b.Region.Op.Parent {
		if o := b.Region.Op; o.Name == op.Func {
			return asFunc(m, o)
		}
	}
	return nil
}

func asFunc(m *ir.Module, o *ir.Op) *ir.Func {
	if f := m.Func(o.Str("sym_name")); f != nil && f.Op == o {
		return f
	}
	return &ir.Func{Op: o, Name: o.Str("sym_name"), Body: o.Body(0)}
}

// one is the op at the cursor, or the only one selected; nil where there are more.
func (s *selection) one() *ir.Op {
	if len(s.ops) == 1 {
		return s.ops[0]
	}
	return nil
}

// around is the innermost op called name that is o or holds it, nil where none is.
func around(o *ir.Op, name string) *ir.Op {
	for o != nil {
		if o.Name == name {
			return o
		}
		if o.Parent == nil || o.Parent.Region == nil {
			return nil
		}
		o = o.Parent.Region.Op
	}
	return nil
}

// onHead reports whether the selection lies in front of o's regions: who stands
// in a function's body does not ask for something about the function.
func (s *selection) onHead(o *ir.Op) bool {
	return len(origin.Tree(o).Regions) == 0 || s.span.Start <= origin.Tree(o).Off+int(origin.Tree(o).Regions[0].Open)
}

// flawed explains why ops, which follow each other in the text, cannot be edited,
// nil where they can: there is an error in one, or one has no place of its own.
func (s *selection) flawed(ops []*ir.Op) error {
	if !s.clean(source.Span{Start: ops[0].Span.Start, End: ops[len(ops)-1].Span.End}) {
		return refuse("there is an error in %s", describe(ops[0]))
	}
	var err error
	ir.Walk(ops, func(o *ir.Op) bool {
		if err != nil {
			return false
		}
		tree := origin.Tree(o)
		if o.Bad || tree == nil || tree.Form == ast.Bad || len(tree.Operands) != len(o.Operands) || len(tree.Regions) < len(o.Regions) {
			err = refuse("%s cannot be read", describe(o))
			return false
		}
		for _, r := range tree.Regions {
			if r.Close < 0 {
				err = refuse("a region of %s is not closed", describe(o))
			}
		}
		return err == nil
	})
	return err
}

// clean reports whether no error begins in span.
func (s *selection) clean(span source.Span) bool {
	ds := s.p.Diags
	i := sort.Search(len(ds), func(i int) bool { return ds[i].Span.Start >= span.Start })
	for ; i < len(ds) && ds[i].Span.Start < span.End; i++ {
		if ds[i].Severity == diag.Error {
			return false
		}
	}
	return true
}

// typed explains why the type of v cannot be written elsewhere, nil where it can.
func (s *selection) typed(v *ir.Value) error {
	bad := v.Type == nil || v.Type == types.Type(types.Unknown) || v.Op != nil && v.Op.Bad
	if a := s.argument(v); a != nil {
		bad = bad || !s.clean(origin.Tree(v.Block.Region.Op).Abs(a.Type))
	}
	if bad {
		return refuse("the type of %s is not known", spelled(v))
	}
	return nil
}

// describe names an op as people do: by its first result, or by what it is.
func describe(o *ir.Op) string {
	if len(o.Results) > 0 && o.Results[0].Name != "" {
		name, _, _ := strings.Cut(o.Results[0].Name, "#")
		return name
	}
	return o.Name
}

// index is o's place among the ops of its block, found by position.
func index(o *ir.Op) int {
	ops := o.Parent.Ops
	i := sort.Search(len(ops), func(i int) bool { return ops[i].Span.Start >= o.Span.Start })
	for i < len(ops) && ops[i] != o {
		i++
	}
	return i
}
