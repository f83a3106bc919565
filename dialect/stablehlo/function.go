package stablehlo

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
)

// signature is what callers know of a function.
type signature struct {
	name    string // without "@"
	private bool
	in, out []types.Type
	donated []bool // of the arguments
}

// declare reads the signature of a function, before any body.
func (c *importer) declare(t *ast.Op) {
	defer c.recovered(t, func() {
		c.refused[refusedName(t)] = true
	})
	n := &node{importer: c, t: t, name: op.Func, attrs: map[string]attr{}}
	if !t.Props.Empty() {
		n.dict(ast.Rel{Start: t.Props.Start + 1, End: t.Props.End - 1})
	}
	if !t.Attrs.Empty() {
		n.dict(t.Attrs)
	}
	s := n.signatureOf()
	if c.funcs[s.name] != nil {
		n.fail("DM142", "@%s is already defined", s.name)
	}
	c.funcs[s.name], c.sigs[t], c.trees[s.name] = s, s, t
}

// refusedName is the name of a function whose signature has a problem, where it has one.
func refusedName(t *ast.Op) string {
	if len(t.Symbols) == 0 {
		return ""
	}
	name, _ := types.ParseSymbol(t.Symbols[0].Name).Name()
	return name
}

// recovered calls then if a problem ended the conversion of t. It has been reported,
// unless it is a mistake of this package: a file that an editor has open must not end
// the server.
func (c *importer) recovered(t *ast.Op, then func()) {
	if r := recover(); r != nil {
		if _, ok := r.(bailout); !ok {
			c.report(t, "DM142", t.Head(), "internal error: %v", r)
		}
		then()
	}
}

// signatureOf is the signature of a function in either form.
func (n *node) signatureOf() *signature {
	if f := n.t.Func; f != nil {
		s := &signature{private: f.Visibility == "private"}
		s.name, _ = types.ParseSymbol(f.Name).Name()
		for _, a := range f.Args {
			s.in = append(s.in, n.typeAt(a.Type))
			s.donated = append(s.donated, n.donates(a.Attrs))
		}
		for _, r := range f.Results {
			s.out = append(s.out, n.typeAt(r.Type))
		}
		return s
	}
	name, ok := n.value("sym_name").(types.Str)
	a := n.attrs["function_type"]
	if !ok || a.x == nil || a.x.Type == nil || a.x.Type.Kind != ast.TFunction {
		n.fail("DM142", "func.func needs the properties sym_name and function_type")
	}
	s := &signature{name: string(name), private: types.TextOf(n.value("sym_visibility")) == "private"}
	for _, x := range a.x.Type.In {
		s.in = append(s.in, n.typeOf(x, a.at))
		s.donated = append(s.donated, false)
	}
	for _, x := range a.x.Type.Out {
		s.out = append(s.out, n.typeOf(x, a.at))
	}
	return s
}

// donates reports whether the attributes of an argument let the program overwrite it,
// as JAX states that.
func (n *node) donates(at ast.Rel) bool {
	if at.Empty() {
		return false
	}
	x, err := parse.Attr(n.t.Text(n.src, at))
	return err == nil && (x.Get("tf.aliasing_output") != nil || x.Get("jax.buffer_donor") != nil)
}

// typeAt is the type written at a place inside the op.
func (n *node) typeAt(at ast.Rel) types.Type {
	x, err := parse.Type(n.t.Text(n.src, at))
	if err != nil {
		n.failError(n.t.Abs(at), err)
	}
	return n.typeOf(x, n.t.Abs(at))
}

// function converts one function. Its name, visibility and the names of its arguments
// stay; attributes of other dialects go.
func (c *importer) function(t *ast.Op) {
	s := c.sigs[t]
	if s == nil { // declare has reported it
		s = &signature{name: refusedName(t)}
		o := &ir.Op{Name: op.Func, Span: t.Span(), Head: t.Head(), Bad: true}
		o.SetAttr("sym_name", types.Str(s.name))
		c.m.Ops = append(c.m.Ops, o)
		c.m.AddFunc(&ir.Func{Op: o, Name: s.name, Private: t.Func != nil && t.Func.Visibility == "private"})
		return
	}
	o := &ir.Op{Name: op.Func, Span: t.Span(), Head: t.Head()}
	o.SetAttr("sym_name", types.Str(s.name))
	o.SetAttr("function_type", types.TypeAttr{T: &types.Func{In: s.in, Out: s.out}})
	fn := &ir.Func{Op: o, Name: s.name, Results: s.out, Private: s.private}
	if s.private {
		o.SetAttr("sym_visibility", types.Str("private"))
	}
	s.donations(o)
	c.m.Ops = append(c.m.Ops, o)
	c.m.AddFunc(fn)
	if len(t.Regions) == 0 || len(t.Regions[0].Blocks) == 0 {
		for i, ty := range s.in {
			fn.Args = append(fn.Args, &ir.Value{Type: ty, Index: i, Span: o.Head})
		}
		return
	}
	fn.Body = o.AddRegion()
	c.b, c.kept = &ir.Builder{Block: fn.Body}, map[*ir.Value]bool{}
	blocks := t.Regions[0].Blocks
	args := blocks[0].Args
	if t.Func != nil {
		args = t.Func.Args
	}
	n := &node{importer: c, t: t, name: op.Func}
	reported := c.reported
	defer func() {
		if c.reported > reported {
			o.Bad, o.Regions, fn.Body = true, nil, nil
		}
	}()
	defer c.recovered(t, func() {})
	n.must(len(args) == len(s.in), "DM142", "the body of @%s has %d arguments, but its type has %d", s.name, len(args), len(s.in))
	defer c.enter()()
	for i, a := range args {
		v := fn.Body.AddArg(a.Name, s.in[i])
		v.Span = t.Abs(a.Span)
		c.scope.names[a.Name] = []*ir.Value{v}
	}
	fn.Args = fn.Body.Args
	vs := n.blocks(blocks)
	n.must(len(vs) == len(s.out), "DM142", "@%s returns %d values, but has %d results", s.name, len(vs), len(s.out))
	for i, v := range vs {
		n.must(types.Equal(v.Type, s.out[i]), "DM143", "result %d of @%s is a %s, but a %s is returned", i, s.name, s.out[i], v.Type)
	}
	c.b.Op(op.Return, vs, nil)
}

// donations marks the arguments that may be overwritten.
func (s *signature) donations(o *ir.Op) {
	attrs, any := make(types.Array, len(s.in)), false
	for i := range s.in {
		d := types.Dict{}
		if s.donated[i] {
			d, any = types.Dict{{Name: "dm.donated", Value: types.Unit{}}}, true
		}
		attrs[i] = d
	}
	if any {
		o.SetAttr("arg_attrs", attrs)
	}
}

// blocks converts the blocks of a function: one, or those of a loop.
func (n *node) blocks(blocks []*ast.Block) []*ir.Value {
	if len(blocks) > 1 {
		return n.loop(blocks)
	}
	return n.block(blocks[0])
}
