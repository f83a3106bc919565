package ptx

import (
	"fmt"
	"strings"
)

// String is the module as text, which Parse reads back as an equal module.
func (m *Module) String() string {
	p := &printer{}
	for _, i := range m.Items {
		switch i := i.(type) {
		case *Directive:
			p.directive(i)
		case *Var:
			p.variable(i)
		case *Func:
			p.function(i)
		}
	}
	return p.b.String()
}

type printer struct {
	b      strings.Builder
	indent int
}

func (p *printer) line(format string, args ...any) {
	p.b.WriteString(strings.Repeat("\t", p.indent))
	fmt.Fprintf(&p.b, format, args...)
	p.b.WriteByte('\n')
}

func (p *printer) directive(d *Directive) {
	text := strings.Join(append([]string{d.Name}, d.Words...), " ")
	if d.Body != nil {
		p.line("%s {", text)
		for len(d.Body) > 0 { // directives stand at the start of lines
			n := 1
			for n < len(d.Body) && d.Body[n][0] != '.' {
				n++
			}
			p.line("%s", strings.Join(d.Body[:n], " "))
			d = &Directive{Body: d.Body[n:]}
		}
		text = "}"
	}
	if d.Ends {
		text += ";"
	}
	p.line("%s", text)
}

func declaration(v *Var) string {
	var b strings.Builder
	for _, w := range v.Words {
		b.WriteString(w + " ")
	}
	for i, d := range v.Names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.Name)
		if d.Count > 0 {
			fmt.Fprintf(&b, "<%d>", d.Count)
		}
		for _, n := range d.Dims {
			fmt.Fprintf(&b, "[%s]", n)
		}
	}
	return b.String()
}

func (p *printer) variable(v *Var) {
	text := declaration(v)
	if v.Init != nil {
		text += " = " + strings.Join(v.Init, " ")
	}
	p.line("%s;", text)
}

func params(vs []*Var) string {
	var texts []string
	for _, v := range vs {
		texts = append(texts, declaration(v))
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

func (p *printer) function(f *Func) {
	text := strings.Join(f.Words, " ")
	if f.Ret != nil {
		text += " " + params(f.Ret)
	}
	p.line("%s %s%s", text, f.Name, params(f.Params))
	for _, a := range f.Attrs {
		p.line("%s %s", a.Name, strings.Join(a.Words, " "))
	}
	if f.Extern {
		p.line(";")
		return
	}
	p.line("{")
	p.body(f.Body)
	p.line("}")
}

func (p *printer) body(list []Stmt) {
	p.indent++
	for _, s := range list {
		switch s := s.(type) {
		case *Directive:
			p.directive(s)
		case *Var:
			p.variable(s)
		case *Label:
			p.line("%s:", s.Name)
		case *Loc:
			p.line("%s", s)
		case *Scope:
			p.line("{")
			p.body(s.Body)
			p.line("}")
		case *Instr:
			p.line("%s", s)
		}
	}
	p.indent--
}

// String is the directive without an end of line.
func (l *Loc) String() string {
	text := fmt.Sprintf(".loc %d %d %d", l.File, l.Line, l.Col)
	if l.Function != "" {
		text += ", function_name " + l.Function
	}
	if l.At != [3]int{} {
		text += fmt.Sprintf(", inlined_at %d %d %d", l.At[0], l.At[1], l.At[2])
	}
	return text
}

// String is the instruction with its semicolon.
func (i *Instr) String() string {
	var b strings.Builder
	if i.Guard != "" {
		b.WriteByte('@')
		if i.Negate {
			b.WriteByte('!')
		}
		b.WriteString(i.Guard + " ")
	}
	b.WriteString(i.Op)
	if len(i.Args) > 0 {
		b.WriteString(" " + join(i.Args))
	}
	return b.String() + ";"
}

func join(list []Operand) string {
	texts := make([]string, len(list))
	for i, o := range list {
		texts[i] = o.String()
	}
	return strings.Join(texts, ", ")
}

// String is the operand.
func (o Operand) String() string {
	switch o.Kind {
	case Mem:
		text := "[" + o.Sub[0].String() + o.Off
		if len(o.Sub) > 1 {
			text += ", " + join(o.Sub[1:])
		}
		return text + "]"
	case Vec:
		return "{" + join(o.Sub) + "}"
	case List:
		return "(" + join(o.Sub) + ")"
	case Pair:
		return o.Sub[0].String() + "|" + o.Sub[1].String()
	case Not:
		return "!" + o.Sub[0].String()
	}
	return o.Text
}
