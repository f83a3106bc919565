package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// maxDepth bounds nested scopes and operands, which real texts have two of.
const maxDepth = 64

// Parse reads a text as NVRTC writes it. The error, of a text that is none, is an
// *Error.
func Parse(text string) (*Module, error) {
	p := &parser{s: scanner{text: text, line: 1}}
	p.module, p.unit = &Module{}, newUnit()
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.module, nil
}

func newUnit() *Unit { return &Unit{Files: map[int]string{}, Vars: map[string]*Var{}} }

// parser looks one token ahead. A failure is a panic with an *Error, which parse
// recovers.
type parser struct {
	s      scanner
	t      token
	module *Module
	unit   *Unit
	depth  int
}

func (p *parser) parse() (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	p.step()
	for p.t.kind != 0 {
		p.item()
	}
	return nil
}

func (p *parser) step() token {
	was := p.t
	t, err := p.s.next()
	if err != nil {
		panic(err)
	}
	p.t = t
	return was
}

func (p *parser) fail(format string, args ...any) {
	panic(&Error{p.t.pos, fmt.Sprintf(format, args...)})
}

func (p *parser) shown() string {
	if p.t.kind == 0 {
		return "the end of the text"
	}
	return strconv.Quote(p.t.text)
}

// take takes a token of a kind.
func (p *parser) take(kind byte, what string) token {
	if p.t.kind != kind {
		p.fail("%s is expected, not %s", what, p.shown())
	}
	return p.step()
}

func (p *parser) has(kind byte) bool {
	if p.t.kind != kind {
		return false
	}
	p.step()
	return true
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("more than %d levels", maxDepth)
	}
}

// item reads what may stand outside of functions.
func (p *parser) item() {
	pos := p.t.pos
	if p.t.kind != 'w' || p.t.text[0] != '.' {
		p.fail("a directive is expected, not %s", p.shown())
	}
	switch p.t.text {
	case ".version", ".target", ".address_size", ".file", ".section":
		if p.t.text == ".version" {
			p.unit = newUnit()
		}
		p.module.Items = append(p.module.Items, p.line())
		return
	}
	var words []string
	for p.t.kind == 'w' && p.t.text[0] == '.' || p.t.kind == 'n' {
		w := p.step().text
		words = append(words, w)
		if w == ".entry" || w == ".func" {
			p.module.Items = append(p.module.Items, p.function(pos, words))
			return
		}
	}
	v := p.variable(pos, words)
	for _, n := range v.Names {
		p.unit.Vars[n.Name] = v
	}
	p.module.Items = append(p.module.Items, v)
}

// line reads a directive that ends with its line, or with what it holds in braces.
func (p *parser) line() *Directive {
	t := p.step()
	d := &Directive{Pos: t.pos, Name: t.text}
	for p.t.kind != 0 && !p.t.first && p.t.kind != '{' {
		d.Words = append(d.Words, p.step().text)
	}
	if d.Name == ".section" {
		if p.t.kind != '{' {
			p.fail("a brace is expected, not %s", p.shown())
		}
		p.step()
		d.Body = []string{}
		for p.t.kind != '}' {
			if p.t.kind == 0 {
				p.fail("the section has no end")
			}
			d.Body = append(d.Body, p.step().text)
		}
		p.step()
	}
	if d.Name == ".file" && len(d.Words) >= 2 {
		if n, err := strconv.Atoi(d.Words[0]); err == nil {
			p.unit.Files[n] = strings.Trim(d.Words[1], `"`)
		}
	}
	return d
}

// variable reads the names of a declaration, to its semicolon.
func (p *parser) variable(pos Pos, words []string) *Var {
	v := &Var{Pos: pos, Words: words}
	v.Names = append(v.Names, p.declared())
	for p.has(',') {
		v.Names = append(v.Names, p.declared())
	}
	if p.has('=') {
		v.Init = []string{}
		for p.t.kind != ';' && p.t.kind != 0 {
			v.Init = append(v.Init, p.step().text)
		}
	}
	p.take(';', "a semicolon")
	return v
}

func (p *parser) declared() Declared {
	d := Declared{Name: p.take('w', "a name").text}
	if p.has('<') {
		n := p.take('n', "a number")
		count, err := strconv.Atoi(n.text)
		if err != nil || count < 1 || count > 1<<24 {
			panic(&Error{n.pos, n.text + " registers are not possible"})
		}
		d.Count = count
		p.take('>', "a bracket")
	}
	for p.has('[') {
		size := ""
		if p.t.kind == 'n' || p.t.kind == 'w' {
			size = p.step().text
		}
		d.Dims = append(d.Dims, size)
		p.take(']', "a bracket")
	}
	return d
}

// params reads the parameters in parentheses.
func (p *parser) params() (out []*Var) {
	p.take('(', "a parenthesis")
	for p.t.kind != ')' {
		v := &Var{Pos: p.t.pos}
		for p.t.kind == 'w' && p.t.text[0] == '.' || p.t.kind == 'n' {
			v.Words = append(v.Words, p.step().text)
		}
		v.Names = []Declared{p.declared()}
		out = append(out, v)
		if !p.has(',') {
			break
		}
	}
	p.take(')', "a parenthesis")
	return out
}

func (p *parser) function(pos Pos, words []string) *Func {
	f := &Func{Pos: pos, Words: words, Unit: p.unit}
	if p.t.kind == '(' {
		f.Ret = p.params()
	}
	f.Name = p.take('w', "the name of a function").text
	if p.t.kind == '(' {
		f.Params = p.params()
	}
	for p.t.kind == 'w' && p.t.text[0] == '.' {
		t := p.step()
		d := &Directive{Pos: t.pos, Name: t.text}
		for p.t.kind == 'n' || p.t.kind == ',' || p.t.kind == 's' {
			d.Words = append(d.Words, p.step().text)
		}
		f.Attrs = append(f.Attrs, d)
	}
	if p.has(';') {
		f.Extern = true
		return f
	}
	p.take('{', "a brace")
	f.Body, f.End = p.body()
	return f
}

// body reads statements to the closing brace.
func (p *parser) body() (out []Stmt, end Pos) {
	p.enter()
	defer func() { p.depth-- }()
	for {
		switch {
		case p.t.kind == '}':
			return out, p.step().pos
		case p.t.kind == '{':
			s := &Scope{Pos: p.step().pos}
			s.Body, s.End = p.body()
			out = append(out, s)
		case p.t.kind == 'w' && p.t.text == ".loc":
			out = append(out, p.loc())
		case p.t.kind == 'w' && p.t.text[0] == '.':
			out = append(out, p.declaration())
		case p.t.kind == '@' || p.t.kind == 'w':
			out = append(out, p.instruction())
		case p.has(';'):
		default:
			p.fail("an instruction is expected, not %s", p.shown())
		}
	}
}

func (p *parser) declaration() Stmt {
	pos, name := p.t.pos, p.t.text
	switch name {
	case ".reg", ".shared", ".local", ".param", ".global", ".const":
		var words []string
		for p.t.kind == 'w' && p.t.text[0] == '.' || p.t.kind == 'n' {
			words = append(words, p.step().text)
		}
		return p.variable(pos, words)
	}
	d := &Directive{Pos: pos, Name: name, Ends: true}
	p.step()
	for p.t.kind != ';' {
		if p.t.kind == 0 || p.t.kind == '}' {
			p.fail("a semicolon is expected, not %s", p.shown())
		}
		d.Words = append(d.Words, p.step().text)
	}
	p.step()
	return d
}

// loc reads ".loc 1 4 3, function_name $L__info_string0, inlined_at 1 4 3".
func (p *parser) loc() *Loc {
	l := &Loc{Pos: p.step().pos}
	number := func() int {
		t := p.take('n', "a number")
		n, err := strconv.Atoi(t.text)
		if err != nil {
			panic(&Error{t.pos, t.text + " is no line"})
		}
		return n
	}
	l.File, l.Line, l.Col = number(), number(), number()
	for p.has(',') {
		switch w := p.take('w', "function_name or inlined_at"); w.text {
		case "function_name":
			l.Function = p.take('w', "a label").text
			if p.has('+') {
				l.Function += "+" + strconv.Itoa(number())
			}
		case "inlined_at":
			l.At = [3]int{number(), number(), number()}
		default:
			panic(&Error{w.pos, "function_name or inlined_at is expected"})
		}
	}
	return l
}

// instruction reads a label or an instruction.
func (p *parser) instruction() Stmt {
	i := &Instr{Pos: p.t.pos}
	if p.has('@') {
		i.Negate = p.has('!')
		i.Guard = p.take('w', "a predicate").text
	}
	op := p.take('w', "an instruction")
	if i.Guard == "" && p.has(':') {
		return &Label{op.pos, op.text}
	}
	i.Op = op.text
	for p.t.kind != ';' {
		i.Args = append(i.Args, p.operand())
		if !p.has(',') {
			break
		}
	}
	p.take(';', "a semicolon")
	return i
}

func (p *parser) operands(end byte, what string) (out []Operand) {
	for p.t.kind != end {
		out = append(out, p.operand())
		if !p.has(',') {
			break
		}
	}
	p.take(end, what)
	return out
}

func (p *parser) operand() Operand {
	p.enter()
	defer func() { p.depth-- }()
	o := p.single()
	if p.has('|') {
		o = Operand{Kind: Pair, Sub: []Operand{o, p.operand()}}
	}
	return o
}

func (p *parser) single() Operand {
	switch {
	case p.t.kind == 'w':
		o := Operand{Kind: Name, Text: p.step().text}
		if p.t.kind == '+' { // a variable's address
			p.step()
			o.Text += "+" + p.take('n', "a number").text
		}
		return o
	case p.t.kind == 'n':
		return Operand{Kind: Num, Text: p.step().text}
	case p.has('-'):
		return Operand{Kind: Num, Text: "-" + p.take('n', "a number").text}
	case p.has('!'):
		return Operand{Kind: Not, Sub: []Operand{p.operand()}}
	case p.has('{'):
		return Operand{Kind: Vec, Sub: p.operands('}', "a brace")}
	case p.has('('):
		return Operand{Kind: List, Sub: p.operands(')', "a parenthesis")}
	case p.has('['):
		return p.memory()
	}
	p.fail("an operand is expected, not %s", p.shown())
	return Operand{}
}

func (p *parser) memory() Operand {
	o := Operand{Kind: Mem}
	base := p.t
	if base.kind != 'w' && base.kind != 'n' {
		p.fail("an address is expected, not %s", p.shown())
	}
	p.step()
	o.Sub = []Operand{{Kind: map[byte]Kind{'w': Name, 'n': Num}[base.kind], Text: base.text}}
	if p.t.kind == '+' || p.t.kind == '-' {
		o.Off = p.step().text
		if o.Off == "+" && p.has('-') { // as NVRTC writes negative offsets
			o.Off = "+-"
		}
		o.Off += p.take('n', "a number").text
	}
	if p.has(',') {
		o.Sub = append(o.Sub, p.operands(']', "a bracket")...)
	} else {
		p.take(']', "a bracket")
	}
	return o
}

// number is the value of a literal: an integer, or the bits of a float.
func number(text string) (uint64, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	lower := strings.ToLower(digits)
	var v uint64
	var err error
	switch {
	case strings.HasPrefix(lower, "0f"), strings.HasPrefix(lower, "0d"):
		v, err = strconv.ParseUint(lower[2:], 16, 64)
	default:
		v, err = strconv.ParseUint(strings.TrimSuffix(lower, "u"), 0, 64)
	}
	if negative {
		v = -v
	}
	return v, err == nil
}
