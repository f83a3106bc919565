package feature

import (
	"fmt"
	"strings"

	"dmir/analysis/program"
	esc "dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Generic is the program in MLIR's generic form, which mlir-opt reads. While the
// program has errors it is a comment that reports where.
func Generic(p *program.Program) string {
	return printed(p, func(m *ir.Module) (string, error) { return print.Generic(m) })
}

// Expanded is the program with every composite (softmax, layer_norm, attention …)
// as the simpler ops that it stands for. Composites that need the size of a
// symbol stay.
func Expanded(p *program.Program) string {
	return printed(p, func(m *ir.Module) (string, error) {
		c := m.Clone()
		expand(c)
		text, err := print.Pretty(c)
		if err != nil {
			return "", err
		}
		return format.File(parse.File(source.New(p.Src.Path, text))), nil
	})
}

func printed(p *program.Program, one func(*ir.Module) (string, error)) string {
	return unlessBroken(p, func() (string, error) {
		var b strings.Builder
		for i, m := range p.Modules {
			text, err := one(m)
			if err != nil {
				return "", err
			}
			if i > 0 {
				b.WriteString("// -----\n")
			}
			b.WriteString(text)
		}
		return b.String(), nil
	})
}

// unlessBroken is the text that show gives, or a comment with the reason why there is
// none.
func unlessBroken(p *program.Program, show func() (string, error)) string {
	if p.HasErrors() {
		var b strings.Builder
		b.WriteString("// This program has errors; it is shown once they are fixed.\n")
		for _, d := range p.Diags {
			if d.Severity == diag.Error {
				line, col := p.Src.Human(d.Span.Start)
				fmt.Fprintf(&b, "// %d:%d: %s\n", line, col, esc.Comment(d.Message))
			}
		}
		return b.String()
	}
	text, err := show()
	if err != nil {
		return fmt.Sprintf("// This program cannot be shown: %s\n", esc.Comment(err.Error()))
	}
	return text
}

// maxExpansions bounds how deep composites may consist of composites.
const maxExpansions = 8

// expand puts the expansion of each composite of m in its place, those of the
// expansions too.
func expand(m *ir.Module) {
	for _, o := range m.Ops {
		expandInside(o)
	}
}

func expandInside(o *ir.Op) {
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			var ops []*ir.Op
			for _, p := range b.Ops {
				ops = appendExpanded(ops, p, maxExpansions)
			}
			for _, p := range ops {
				p.Parent = b
			}
			b.Ops = ops
		}
	}
}

// appendExpanded appends o, or the ops that it stands for, which take its
// results' names. They are made in a block of their own: a block with many
// composites must not be shifted for each.
func appendExpanded(to []*ir.Op, o *ir.Op, depth int) []*ir.Op {
	expandInside(o)
	d := op.Of(o)
	if d == nil || d.Expand == nil || depth == 0 || !op.Valid(o) {
		return append(to, o)
	}
	aside := &ir.Block{Region: o.Parent.Region}
	b := &ir.Builder{Block: aside, At: o}
	values := d.Expand(b, o)
	if len(values) == 0 || len(values) != len(o.Results) {
		return append(to, o)
	}
	values = op.KeepShardings(b, o, values)
	for i, r := range o.Results {
		if values[i].Name == "" {
			values[i].Name = r.Name
		}
		ir.ReplaceUses(r, values[i])
	}
	o.Parent = &ir.Block{Ops: []*ir.Op{o}}
	ir.Erase(o)
	for _, p := range aside.Ops {
		to = appendExpanded(to, p, depth-1)
	}
	return to
}
