package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// The versions of the format and of the operator sets that are read.
const (
	newestFormat = 14
	newestOpset  = 28
)

func key(domain, name, overload string) string { return domain + ":" + name + ":" + overload }

// checkModel checks what holds of a model as a whole.
func checkModel(p *modelProto) {
	if p.version < 1 || p.version > newestFormat {
		fail("version %d of the format is not known: versions 1 to %d are", p.version, newestFormat)
	}
	if v, ok := p.opsets[""]; ok && (v < 1 || v > newestOpset) {
		fail("version %d of the operator set is not known: versions 1 to %d are", v, newestOpset)
	}
	if len(p.opsets) == 0 {
		if p.version >= 3 {
			fail("the model imports no operator set")
		}
		p.opsets[""] = 1
	}
}

// scope is the values of a graph, those of the graphs around it behind them.
type scope struct {
	*importer
	outer  *scope
	values map[string]*ir.Value
	ranks  map[string]int // that the graph declares
	opsets map[string]int64
	attrs  map[string]*attributeProto // those of the function that is inlined
	b      *op.Builder
}

// constants defines the initializers of g, and what g declares.
func (s *scope) constants(g *graphProto) {
	s.ranks = map[string]int{}
	for _, v := range append(slices.Clone(g.inner), g.outputs...) {
		if v.known {
			s.ranks[v.name] = len(v.shape)
		}
	}
	for _, t := range g.constants {
		d := t.dense(s.opts)
		if t.name == "" {
			fail("an initializer has no name")
		}
		if v := s.trained(t, d); v != nil {
			s.define(t.name, v)
			continue
		}
		s.define(t.name, s.literal(d))
	}
	for _, p := range g.sparse {
		v := s.sparse(p)
		if p.values.name == "" {
			fail("an initializer has no name")
		}
		s.define(p.values.name, v)
	}
}

// literal is a constant.
func (s *scope) literal(d *types.Dense) *ir.Value {
	return s.b.Value("constant", nil, named("value", types.Attr(d)), d.Type)
}

// define gives v a name, which the graph has once.
func (s *scope) define(name string, v *ir.Value) {
	if _, taken := s.values[name]; taken {
		fail("%q is defined twice", name)
	}
	s.values[name] = v
	if v.Name == "" {
		v.Name = s.fresh(name)
	}
}

// find is the value called name, nil where there is none.
func (s *scope) find(name string) *ir.Value {
	for ; s != nil; s = s.outer {
		if v := s.values[name]; v != nil {
			return v
		}
	}
	return nil
}

// read is the value called name.
func (s *scope) read(name string) *ir.Value {
	v := s.find(name)
	if v == nil {
		fail("%q is not defined", name)
	}
	return v
}

// title names a node in messages.
func (p *nodeProto) title() string {
	name := p.op
	if p.domain != "" {
		name = p.domain + "." + name
	}
	if p.name != "" {
		return fmt.Sprintf("node %q (%s)", p.name, name)
	}
	if len(p.outputs) > 0 {
		return fmt.Sprintf("the node of %q (%s)", p.outputs[0], name)
	}
	return "a node (" + name + ")"
}

// nodes converts nodes, each after those whose outputs it or a graph in it reads. The
// order of the file stays where it can.
func (s *scope) nodes(ps []*nodeProto) {
	by := map[string]int{}
	for i, p := range ps {
		for _, out := range p.outputs {
			if out == "" {
				continue
			}
			if _, taken := by[out]; taken {
				fail("%q is defined twice", out)
			}
			by[out] = i
		}
	}
	const begun, done = 1, 2
	state := make([]byte, len(ps))
	type visit struct {
		at    int
		reads []string
	}
	for i := range ps {
		if state[i] == done {
			continue
		}
		state[i] = begun
		stack := []visit{{i, ps[i].reads(nil)}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.reads) == 0 {
				s.node(ps[top.at])
				state[top.at] = done
				stack = stack[:len(stack)-1]
				continue
			}
			next, defined := by[top.reads[0]]
			top.reads = top.reads[1:]
			switch {
			case !defined || state[next] == done:
			case state[next] == begun:
				fail("%s reads what depends on it: the graph has a cycle", ps[top.at].title())
			default:
				state[next] = begun
				stack = append(stack, visit{next, ps[next].reads(nil)})
			}
		}
	}
}

// reads appends the names that a node reads, those that only the graphs in it define
// among them.
func (p *nodeProto) reads(list []string) []string {
	list = append(list, p.inputs...)
	for _, a := range p.attrs {
		if a.g == nil {
			continue
		}
		for _, q := range a.g.nodes {
			list = q.reads(list)
		}
		for _, out := range a.g.outputs {
			list = append(list, out.name)
		}
	}
	return list
}

// node converts a node and defines its outputs.
func (s *scope) node(p *nodeProto) {
	defer func() {
		r := recover()
		if e, ok := r.(*Error); ok && !strings.Contains(e.Msg, "node ") {
			e.Msg, e.Loc = p.title()+": "+e.Msg, s.stackOf(p)
		}
		if r != nil {
			panic(r)
		}
	}()
	defer s.locate(p)()
	n := &node{scope: s, p: p}
	for _, name := range p.inputs {
		if name == "" {
			n.ins = append(n.ins, nil)
		} else {
			n.ins = append(n.ins, s.read(name))
		}
	}
	outs := n.convert()
	if err := s.b.Err(); err != nil {
		fail("%v", err)
	}
	for i, name := range p.outputs {
		if name == "" {
			continue
		}
		if i >= len(outs) || outs[i] == nil {
			unsupported("output %d", i)
		}
		if t := outs[i].Tensor(); t != nil && t.Elements().Overflow() {
			fail("%s has too many elements", t)
		}
		s.define(name, outs[i])
		if outs[i].Tensor() != nil {
			n.note(n.shape(outs[i])...)
		}
	}
}

// maxInlined is the number of nodes that calls of functions may become, and maxNested
// how deep functions may call each other.
const (
	maxInlined = 1 << 16
	maxNested  = 64
)

// inline converts the nodes of a function in place of the node that calls it.
func (n *node) inline(f *functionProto) []*ir.Value {
	if n.depth++; n.depth > maxNested {
		fail("functions call each other more than %d deep", maxNested)
	}
	defer func() { n.depth-- }()
	if n.inlined += len(f.nodes); n.inlined > maxInlined {
		fail("its functions have more than %d nodes", maxInlined)
	}
	if len(n.ins) > len(f.inputs) {
		fail("%d inputs, the function has %d", len(n.ins), len(f.inputs))
	}
	opsets := maps.Clone(n.opsets)
	maps.Copy(opsets, f.opsets)
	inner := &scope{importer: n.importer, values: map[string]*ir.Value{}, opsets: opsets, attrs: map[string]*attributeProto{}, b: n.b}
	for i, name := range f.inputs {
		if i < len(n.ins) && n.ins[i] != nil {
			inner.define(name, n.ins[i])
		}
	}
	for _, a := range f.defaults {
		inner.attrs[a.name] = a
	}
	for _, a := range n.p.attrs {
		inner.attrs[a.name] = n.resolve(a)
	}
	body := slices.Clone(f.nodes)
	for i, p := range body { // inputs that the call leaves out are left out inside
		q := *p
		q.inputs = slices.Clone(p.inputs)
		for k, name := range q.inputs {
			if at := slices.Index(f.inputs, name); at >= 0 && inner.values[name] == nil {
				q.inputs[k] = ""
			}
		}
		body[i] = &q
	}
	inner.nodes(body)
	var outs []*ir.Value
	for i, name := range f.outputs {
		if i >= len(n.p.outputs) || n.p.outputs[i] == "" {
			outs = append(outs, nil)
			continue
		}
		outs = append(outs, inner.read(name))
	}
	return outs
}

// resolve is the attribute that a refers to, itself where it refers to none; nil where
// the call gives none.
func (s *scope) resolve(a *attributeProto) *attributeProto {
	if a == nil || a.ref == "" {
		return a
	}
	for t := s; t != nil; t = t.outer {
		if t.attrs != nil {
			return t.attrs[a.ref]
		}
	}
	return nil
}

// Inputs are the names of a model's inputs, without those that have a default.
func Inputs(data []byte) (names []string, err error) {
	defer caught(&err)
	p := readModel(data)
	constant := map[string]bool{}
	for _, t := range p.graph.constants {
		constant[t.name] = true
	}
	for _, in := range p.graph.inputs {
		if !constant[in.name] {
			names = append(names, in.name)
		}
	}
	return names, nil
}

// Outputs are the names of a model's outputs.
func Outputs(data []byte) (names []string, err error) {
	defer caught(&err)
	p := readModel(data)
	for _, out := range p.graph.outputs {
		names = append(names, out.name)
	}
	return names, nil
}

// Sizes are the names of the sizes that a model leaves open.
func Sizes(data []byte) (names []string, err error) {
	defer caught(&err)
	p := readModel(data)
	for _, in := range p.graph.inputs {
		for i, s := range in.shape {
			for _, name := range []string{in.size(i), symbolOf(in.size(i))} {
				if !s.known && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, nil
}

// size is the name of a size: of one without a name the input's and its number.
func (v *valueProto) size(i int) string {
	if name := v.shape[i].name; name != "" {
		return name
	}
	return fmt.Sprintf("%s.%d", v.name, i)
}
