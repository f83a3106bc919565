package models

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A model is the text of one as it is written.
type model struct {
	Config
	aliases   []string          // lines
	types     map[string]string // of an alias, the type; of a type, its alias
	wides     map[string]string // of an alias of a tuple, that of its f32 form
	learned   bool              // positions
	turned    int               // size of what rotary positions turn; 0: none
	functions []string          // texts of private functions, in order
	turns     []string          // texts of functions for rotary positions
	turning   map[string]bool   // types that have one
}

func newModel(c Config) *model {
	m := &model{Config: c, types: map[string]string{}, wides: map[string]string{}, turning: map[string]bool{}}
	m.alias("ids", "i32", "batch, sequence", c.Batch, c.Sequence)
	m.alias("x", c.Element, "batch, sequence, hidden", c.Batch, c.Sequence, c.Hidden)
	return m
}

// alias is the name of a tensor type, which it states under this name if it is new.
func (m *model) alias(name, element, comment string, shape ...int) string {
	var t strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&t, "%dx", n)
	}
	return m.named(name, "tensor<"+t.String()+element+">", comment)
}

func (m *model) named(name, typ, comment string) string {
	if a := m.types[typ]; a != "" {
		return a
	}
	a := "!" + name
	for n := 2; m.types[a] != ""; n++ {
		a = "!" + name + strconv.Itoa(n)
	}
	m.types[typ], m.types[a] = a, typ
	line := a + " = " + typ
	if comment != "" {
		line += " // " + comment
	}
	m.aliases = append(m.aliases, line)
	return a
}

// wide is the f32 type of the master weights and moments of a parameter of type a, a tensor.
func (m *model) wide(a string) string {
	if m.Element == "f32" {
		return a
	}
	t := m.types[a]
	i := strings.LastIndexByte(t, 'x')
	return m.named(a[1:]+"_f32", t[:i+1]+"f32>", "")
}

func (m *model) positions() { m.learned = true }

func (m *model) rotary(size int) {
	m.turned = size
	m.alias("angles", m.Element, "cosines or sines of the rotary positions: sequence, pair", m.Sequence, size/2)
}

// A parameter is a parameter of a function that the model learns.
type parameter struct{ name, typ string }

// A body is a function as it is written: its parameters and ops.
type body struct {
	m               *model
	name            string
	weights, scales []parameter
	lines           []string
	types           map[string]string // of values
}

func (m *model) layer(name string) *body {
	b := &body{m: m, name: name, types: map[string]string{"x": "!x"}}
	if m.turned > 0 {
		b.types["cos"], b.types["sin"] = "!angles", "!angles"
	}
	return b
}

// weight is a parameter that starts as random numbers; scale one that starts as 1.
func (b *body) weight(name, comment string, shape ...int) string {
	t := b.m.alias(name, b.m.Element, comment, shape...)
	b.weights, b.types[name] = append(b.weights, parameter{name, t}), t
	return name
}

func (b *body) scale(name string, size int) string {
	t := b.m.alias("per_"+strconv.Itoa(size), b.m.Element, "scale or bias", size)
	b.scales, b.types[name] = append(b.scales, parameter{name, t}), t
	return name
}

// note is a comment between ops.
func (b *body) note(text string) { b.lines = append(b.lines, "", "  // "+text) }

// op writes an op with one result. call is its name and leading attribute, and after a comma the other ones.
func (b *body) op(result, typ, call string, operands ...string) string {
	head, attributes, _ := strings.Cut(call, ", ")
	if attributes != "" {
		attributes = ", " + attributes
	}
	types := make([]string, len(operands))
	for i, o := range operands {
		types[i], operands[i] = b.types[o], "%"+o
	}
	signature := "(" + strings.Join(types, ", ") + ") -> " + typ
	if !slices.ContainsFunc(types, func(t string) bool { return t != typ }) && !strings.HasPrefix(call, "dm.einsum") {
		signature = typ
	}
	b.lines = append(b.lines, "  %"+result+" = "+head+" "+strings.Join(operands, ", ")+attributes+" : "+signature)
	b.types[result] = typ
	return result
}

// call writes a call of a function.
func (b *body) call(result, typ, callee string, operands ...string) string {
	types := make([]string, len(operands))
	for i, o := range operands {
		types[i], operands[i] = b.types[o], "%"+o
	}
	b.lines = append(b.lines, fmt.Sprintf("  %%%s = func.call @%s(%s) : (%s) -> %s",
		result, callee, strings.Join(operands, ", "), strings.Join(types, ", "), typ))
	b.types[result] = typ
	return result
}

// constant writes a scalar.
func (b *body) constant(result, typ, value string) string {
	b.lines = append(b.lines, "  %"+result+" = dm.constant dense<"+value+"> : "+typ)
	b.types[result] = typ
	return result
}

func (b *body) residual(result, x, y string) string { return b.op(result, "!x", "dm.add", x, y) }

// done ends a layer.
func (b *body) done(result string) {
	m := b.m
	var text strings.Builder
	args, unpack := []string{"%x: !x"}, ""
	if m.turned > 0 {
		args = append(args, "%cos: !angles", "%sin: !angles")
	}
	for _, g := range b.groups() {
		args = append(args, "%"+g.name+": "+g.typ)
		unpack += unpacked(g)
	}
	fmt.Fprintf(&text, "func.func private @%s(%s) -> !x {\n%s%s\n  return %%%s : !x\n}\n",
		b.name, strings.Join(args, ", "), unpack, strings.Join(b.lines, "\n"), result)
	m.functions = append(m.functions, text.String())
}

// A group is a tuple of parameters.
type group struct {
	name, typ, wide string
	members         []parameter
}

func (b *body) groups() []group {
	w := group{name: "weights", members: b.weights}
	s := group{name: "scales", members: b.scales}
	w.typ, w.wide = b.m.tuple(b.name, b.weights)
	s.typ, s.wide = b.m.tuple(b.name+"_scales", b.scales)
	return []group{w, s}
}

// tuple is the names of the tuple of parameters and of their f32 forms.
func (m *model) tuple(name string, ps []parameter) (typ, wide string) {
	var types, wides []string
	for _, p := range ps {
		types = append(types, p.typ)
		w := m.wides[p.typ]
		if w == "" {
			w = m.wide(p.typ)
		}
		wides = append(wides, w)
	}
	typ = m.named(name, "tuple<"+strings.Join(types, ", ")+">", "")
	wide = typ
	if m.Element != "f32" {
		wide = m.named(name+"_f32", "tuple<"+strings.Join(wides, ", ")+">", "")
	}
	m.wides[typ] = wide
	return typ, wide
}

func unpacked(g group) string {
	var names, types []string
	for _, p := range g.members {
		names, types = append(names, "%"+p.name), append(types, p.typ)
	}
	return fmt.Sprintf("  %s = dm.unpack %%%s : (%s) -> (%s)\n", strings.Join(names, ", "), g.name, g.typ, strings.Join(types, ", "))
}

// step is the text of the model: layer repeated after so many layers of another form.
func (m *model) step(layer *body, layers int, first *body, firsts int, last func(s *body, x string) string) string {
	// The loss
	s := m.layer("model")
	s.types["ids"], s.types["labels"] = "!ids", "!ids"
	x := s.op("embedded", "!x", "dm.embedding", s.weight("embed", "vocabulary, hidden", m.Vocabulary, m.Hidden), "ids")
	if m.learned {
		x = s.op("x0", "!x", "dm.add", x, s.weight("positions", "sequence, hidden", m.Sequence, m.Hidden))
	}
	for i := range firsts + layers {
		l, n := layer, strconv.Itoa(i+1)
		if i < firsts {
			l = first
		}
		gs := l.groups()
		s.weights, s.types[l.name+n] = append(s.weights, parameter{l.name + n, gs[0].typ}), gs[0].typ
		s.scales, s.types["scales"+n] = append(s.scales, parameter{"scales" + n, gs[1].typ}), gs[1].typ
		operands := []string{x}
		if m.turned > 0 {
			operands = append(operands, "cos", "sin")
		}
		x = s.call("x"+n, "!x", l.name, append(operands, l.name+n, "scales"+n)...)
	}
	x = last(s, x)
	head := "embed"
	if !m.Tied {
		head = s.weight("head", "vocabulary, hidden", m.Vocabulary, m.Hidden)
	}
	logits := m.alias("logits", "f32", "batch, sequence, vocabulary", m.Batch, m.Sequence, m.Vocabulary)
	s.op("logits", logits, `dm.einsum "bse,ve->bsv"`, x, head)
	s.op("sum", "tensor<f32>", "dm.cross_entropy, reduction = sum", "logits", "labels")
	s.constant("count", "tensor<f32>", strconv.Itoa(m.Batch*m.Sequence)+".0")
	s.op("loss", "tensor<f32>", "dm.div", "sum", "count")

	groups := s.groups()
	inputs, types := []string{"ids", "labels"}, []string{"!ids", "!ids"}
	if m.turned > 0 {
		inputs, types = append(inputs, "cos", "sin"), append(types, "!angles", "!angles")
	}
	var args, unpack string
	for i, n := range inputs {
		args += "%" + n + ": " + types[i] + ", "
	}
	train := m.train(groups, inputs, types)
	for _, g := range groups {
		unpack += unpacked(g)
	}
	loss := fmt.Sprintf(`// The mean negative logarithm of the probability of each next token
func.func private @loss(%s%%weights: %s, %%scales: %s) -> tensor<f32> {
%s%s
  return %%loss : tensor<f32>
}
`, args, groups[0].typ, groups[1].typ, unpack, strings.Join(s.lines, "\n"))
	return strings.Join(m.aliases, "\n") + "\n\n" + train + "\n" + loss + "\n" + strings.Join(append(m.functions, m.turns...), "\n")
}

// train is the function that is the step.
func (m *model) train(groups []group, inputs, types []string) string {
	args, results, returned := "", "tensor<f32>", "%loss"
	for i, n := range inputs {
		args += "%" + n + ": " + types[i] + ", "
	}
	args = strings.TrimSuffix(args, " ")
	var updates strings.Builder
	operands, wrt, gradients, gradientTypes := "%"+strings.Join(inputs, ", %"), "", "", ""
	for i, g := range groups {
		init, decay := "{dm.stddev = 0.02}", ", weight_decay = 0.1"
		if g.name == "scales" {
			init, decay = "{dm.init = 1.0}", ""
		}
		master, n := g.name, g.name
		args += fmt.Sprintf("\n    %%%s: %s %s", n, g.typ, init)
		if m.Element != "f32" {
			master = n + "_master"
			args += fmt.Sprintf(", %%%s: %s %s", master, g.wide, init)
		}
		args += fmt.Sprintf(", %%%[1]s_m: %[2]s {dm.init = 0.0}, %%%[1]s_v: %[2]s {dm.init = 0.0},", n, g.wide)
		operands += ", %" + n
		gradients += ", %d_" + n
		gradientTypes += ", " + g.typ
		wrt += ", " + strconv.Itoa(len(inputs)+i)
		half, halfType := "", ""
		state := func(n, typ string) {
			results += fmt.Sprintf(", %s {dm.state = %q}", typ, n)
			returned += ", %" + n + "_next"
		}
		if m.Element != "f32" {
			half, halfType = ", %"+n+"_next", ", "+g.typ
			state(n, g.typ)
		}
		state(master, g.wide)
		state(n+"_m", g.wide)
		state(n+"_v", g.wide)
		fmt.Fprintf(&updates, "  %%%[1]s_next, %%%[2]s_m_next, %%%[2]s_v_next%[3]s"+
			" = dm.adam %%%[1]s, %%d_%[2]s, %%%[2]s_m, %%%[2]s_v, %%step, lr = %[4]s%[5]s\n",
			master, n, half, strconv.FormatFloat(m.Rate, 'f', -1, 64), decay)
		fmt.Fprintf(&updates, "      : (%[1]s, %[2]s, %[1]s, %[1]s, tensor<i32>) -> (%[1]s, %[1]s, %[1]s%[3]s)\n", g.wide, g.typ, halfType)
	}
	var returns []string
	for _, r := range strings.Split(results, ", ") {
		t, _, _ := strings.Cut(r, " ")
		returns = append(returns, t)
	}
	return fmt.Sprintf(`func.func @train(
    %s
    %%step: tensor<i32> {dm.init = 1})
    -> (%s, tensor<i32> {dm.state = "step"}) {
  %%loss%s = dm.grad @loss %s, wrt = [%s]
      : (%s%s) -> (tensor<f32>%s)
%s  %%one = dm.constant dense<1> : tensor<i32>
  %%step_next = dm.add %%step, %%one : tensor<i32>
  return %s, %%step_next : %s, tensor<i32>
}
`, args, results, gradients, operands, wrt[2:], strings.Join(types, ", "), gradientTypes, gradientTypes,
		updates.String(), returned, strings.Join(returns, ", "))
}
