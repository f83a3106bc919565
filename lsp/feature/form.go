package feature

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/op"
	"dmir/dialect/types"
)

// part is a piece of an op's pretty form.
type part struct {
	kind     partKind
	name     string // of the operand or attribute
	text     string // as the form shows it
	doc      string // Markdown
	optional bool
	many     bool
}

type partKind uint8

const (
	leadPart partKind = iota
	operandPart
	clausePart
	typePart
	regionPart
	axesPart
)

// form is how d is written: the lead, operands, clauses, regions and type in
// the order of the text.
func form(d *op.Def) []part {
	var out []part
	if d.FullName() == op.Mesh { // the only op whose dictionary is its own
		a := d.Lead()
		return []part{
			{kind: leadPart, name: a.Name, text: valueForm(a), doc: attrDoc(a)},
			{kind: axesPart, name: "axes", text: "{axis = devices, …}", doc: "the axes and the number of devices along each, the outermost first"},
		}
	}
	if a := d.Lead(); a != nil {
		out = append(out, part{kind: leadPart, name: a.Name, text: valueForm(a), doc: attrDoc(a)})
	}
	for _, p := range d.Operands {
		text := "%" + p.Name
		if p.Variadic {
			text += ", …"
		}
		out = append(out, part{operandPart, p.Name, text, p.Doc + " (" + op.ElemsText(p.Elems) + ")", p.Optional, p.Variadic})
	}
	for i := range d.Attrs {
		if a := &d.Attrs[i]; !a.Lead {
			out = append(out, part{kind: clausePart, name: a.Name, text: a.Name + " = " + valueForm(a), doc: attrDoc(a), optional: a.Default != nil || a.Optional})
		}
	}
	types := part{kind: typePart, name: "type", text: typeForm(d), doc: "`(operands) -> results`, or one type where all operands and results share it"}
	if len(d.Operands) == 0 && len(d.Regions) > 0 {
		types.doc = "the types of the results"
	}
	before := strings.HasPrefix(types.text, "->") || len(d.Regions) > 0
	if before {
		out = append(out, types)
	}
	for _, r := range d.Regions {
		text := "{ … }"
		if r.Keyword != "" {
			text = r.Keyword + " " + text
		}
		out = append(out, part{kind: regionPart, name: r.Name, text: text, doc: r.Doc, optional: r.Optional})
	}
	if !before {
		out = append(out, types)
	}
	return out
}

// typeForm is the type as the form shows it, with what introduces it.
func typeForm(d *op.Def) string {
	if len(d.Operands) == 0 && len(d.Regions) > 0 {
		return "-> type"
	}
	if d.Is(op.Terminator) || len(d.Operands) == 0 || len(d.Operands) == 1 && len(d.Results) == 1 {
		return ": type"
	}
	return ": (types) -> type"
}

// valueForm is the kind of an attribute's value, or the words it may be.
func valueForm(a *op.AttrDef) string {
	if a.Enum != nil {
		return strings.Join(a.Enum, "|")
	}
	switch a.Kind {
	case op.KindString:
		return `"…"`
	case op.KindInts:
		return "[…]"
	case op.KindPairs:
		return "[[…]]"
	case op.KindDense:
		return "dense<…>"
	case op.KindStrings:
		return `["…"]`
	case op.KindSymbol, op.KindName:
		return "@symbol"
	case op.KindPlace:
		return "#dm.at<…>"
	}
	return string(a.Kind)
}

// attrDoc is an attribute's documentation and default.
func attrDoc(a *op.AttrDef) string {
	switch {
	case a.Default != nil:
		return fmt.Sprintf("%s; `%s` by default", a.Doc, defaultValue(a))
	case a.Optional:
		return a.Doc + "; optional"
	}
	return a.Doc
}

// glue is what stands before part i of those that are written.
func glue(parts []part, i int) string {
	if i > 0 && (parts[i].kind == clausePart || parts[i].kind == operandPart && parts[i-1].kind == operandPart) {
		return ", "
	}
	return " "
}

// defaultValue is the default of an attribute as it would be written.
func defaultValue(a *op.AttrDef) string {
	switch v := a.Default.(type) {
	case types.Float:
		return fmt.Sprintf("%g", v.V)
	case types.Int:
		return fmt.Sprint(v.V)
	default:
		return v.String()
	}
}

// snippet is an op's form with places to fill in: what must be written, and
// the first operand of those that may be many. f is what they hold, where it is known.
func snippet(d *op.Def, f filling) string {
	var b strings.Builder
	b.WriteString(d.FullName())
	parts := slices.DeleteFunc(form(d), func(p part) bool { return p.optional })
	operands := f.operands
	for i, p := range parts {
		b.WriteString(glue(parts, i))
		n := i + 1
		switch a := d.Attr(p.name); {
		case p.kind == operandPart:
			var names []string
			if len(operands) > 0 {
				names, operands = operands[0], operands[1:]
			}
			b.WriteString(pickHole(n, names, "%"+p.name))
		case p.kind == typePart:
			intro, _, _ := strings.Cut(p.text, " ")
			b.WriteString(intro + " " + pickHole(n, f.types, "type"))
		case p.kind == regionPart:
			if word, _, ok := strings.Cut(p.text, " {"); ok {
				b.WriteString(word + " ")
			}
			fmt.Fprintf(&b, "{\n  $%d\n}", n)
		case p.kind == axesPart:
			fmt.Fprintf(&b, "{${%d:data} = ${%d:8}}", n, n+1)
		case p.kind == clausePart:
			b.WriteString(p.name + " = " + hole(n, a))
		default:
			b.WriteString(hole(n, a))
		}
	}
	return b.String()
}

// hole is the place of a snippet for the value of an attribute.
func hole(n int, a *op.AttrDef) string {
	switch {
	case a.Enum != nil:
		return fmt.Sprintf("${%d|%s|}", n, strings.Join(a.Enum, ","))
	case a.Kind == op.KindString:
		return fmt.Sprintf(`"$%d"`, n)
	case a.Kind == op.KindInts:
		return fmt.Sprintf("[$%d]", n)
	case a.Kind == op.KindPairs:
		return fmt.Sprintf("[[$%d]]", n)
	case a.Kind == op.KindDense:
		return fmt.Sprintf("dense<$%d>", n)
	case a.Kind == op.KindStrings:
		return fmt.Sprintf(`["$%d"]`, n)
	case a.Kind == op.KindSymbol, a.Kind == op.KindName:
		return fmt.Sprintf("@$%d", n)
	case a.Kind == op.KindPlace:
		return fmt.Sprintf("#dm.at<$%d>", n)
	case a.Kind == op.KindBool:
		return fmt.Sprintf("${%d|true,false|}", n)
	}
	return fmt.Sprintf("$%d", n)
}
