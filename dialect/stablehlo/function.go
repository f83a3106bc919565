package stablehlo

import (
	"slices"
	"strings"

	"dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// signature is what callers know of a function.
type signature struct {
	name    string // without "@"
	private bool
	written []types.Type // the arguments as they are written
	in, out []types.Type // with the parts of compound values
	donated []bool       // of the arguments
	names   []string     // of the results, as JAX states them; "" where it does not
	own     []types.Dict // of the arguments: attributes of the dialect itself
	ownOut  []types.Dict // of the results
	// of the arguments that are numbers: the names that JAX gives these, and at import what they are
	constants []string
	fixed     map[int]int64
	args      []ast.BlockArg // with the names that they have here
	manual    *ast.Op        // the sdy.manual_computation that is the body
}

// declare reads the signature of a function, before any body.
func (c *importer) declare(t *ast.Op) {
	defer c.recovered(t, func() {
		c.refused[refusedName(t)] = true
	})
	n := &node{importer: c, t: t, name: op.Func, attrs: map[string]attr{}}
	n.dicts()
	s := n.signatureOf()
	s.split()
	if c.funcs[s.name] != nil || c.meshNames[s.name] {
		n.fail("DM142", "@%s is already defined", s.name)
	}
	s.manual = manualOf(t)
	c.opened[s.name] = c.dynamic && c.isOpen(t)
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
			t, x := n.typeAt(a.Type), n.attrAt(a.Attrs)
			s.in = append(s.in, n.stated(t, x, n.t.Abs(a.Attrs)))
			s.donated = append(s.donated, donates(x))
			s.constants = append(s.constants, constantName(x))
			s.own = append(s.own, n.own(x, t, n.t.Abs(a.Attrs)))
		}
		for _, r := range f.Results {
			t, x := n.typeAt(r.Type), n.attrAt(r.Attrs)
			s.out = append(s.out, n.stated(t, x, n.t.Abs(r.Attrs)))
			s.names = append(s.names, resultName(x))
			s.ownOut = append(s.ownOut, n.own(x, t, n.t.Abs(r.Attrs)))
		}
		return s
	}
	name, ok := n.value("sym_name").(types.Str)
	a := n.attrs["function_type"]
	if !ok || a.x == nil || a.x.Type == nil || a.x.Type.Kind != ast.TFunction {
		n.fail("DM142", "func.func needs the properties sym_name and function_type")
	}
	s := &signature{name: string(name), private: types.TextOf(n.value("sym_visibility")) == "private"}
	entry := func(name string, i int) (x *ast.AttrExpr, at source.Span) {
		if l := n.attrs[name]; l.x != nil && i < len(l.x.Elems) {
			return l.x.Elems[i], l.at
		}
		return nil, a.at
	}
	for i, x := range a.x.Type.In {
		attrs, at := entry("arg_attrs", i)
		s.in = append(s.in, n.stated(n.typeOf(x, a.at), attrs, at))
		s.donated = append(s.donated, donates(attrs))
		s.constants = append(s.constants, constantName(attrs))
		s.own = append(s.own, n.own(attrs, s.in[i], at))
	}
	for i, x := range a.x.Type.Out {
		attrs, at := entry("res_attrs", i)
		s.out = append(s.out, n.stated(n.typeOf(x, a.at), attrs, at))
		s.names = append(s.names, resultName(attrs))
		s.ownOut = append(s.ownOut, n.own(attrs, s.out[i], at))
	}
	return s
}

// own are the attributes of the dialect itself in the dictionary of an argument or a result of type t: how a step goes on
// (op.StateAttr) and begins (op.InitAttr).
func (n *node) own(x *ast.AttrExpr, t types.Type, at source.Span) types.Dict {
	var own types.Dict
	if x == nil {
		return nil
	}
	for _, e := range x.Entries {
		if !strings.HasPrefix(e.Key, op.Prefix) {
			continue
		}
		if isCompound(t) {
			n.failAt(Unsupported, at, "%s of a value that the dialect has in parts, a %s", e.Key, t)
		}
		var a types.Attr = types.Unit{}
		var err error
		tensor, is := t.(*types.Tensor)
		switch {
		case e.Value == nil:
		case is && e.Key == op.InitAttr && types.IsFile(e.Value):
			var f *types.File
			if f, err = types.FileFromExpr(e.Value, n.arrays); err == nil {
				a = types.InFile(tensor, f)
			}
		default:
			a, err = types.AttrFromExpr(e.Value, &n.env)
		}
		if err != nil {
			n.failError(at, err)
		}
		own = append(own, types.Named{Name: e.Key, Value: a})
	}
	return own
}

// stateOf is the argument whose next value a result with the attributes is, -1 for none.
func stateOf(own types.Dict) int {
	for _, a := range own {
		if n, ok := a.Value.(types.Int); ok && a.Name == op.StateAttr {
			return int(n.V)
		}
	}
	return -1
}

// split replaces what is compound by its parts.
func (s *signature) split() {
	s.written, s.names = s.in, splitNames(s.names, s.out)
	var donated []bool
	var own, ownOut []types.Dict
	var first []int // part of each argument
	for i := range s.in {
		first = append(first, len(own))
		for range splitTypes(s.in[i : i+1]) {
			donated, own = append(donated, s.donated[i]), append(own, s.own[i])
		}
	}
	for i, d := range s.ownOut {
		if k := stateOf(d); k >= 0 && k < len(first) {
			d = op.WithState(d, types.Int{V: int64(first[k]), Elem: types.I64})
			donated[first[k]] = false // it is by being state
		}
		for range splitTypes(s.out[i : i+1]) {
			ownOut = append(ownOut, d)
		}
	}
	s.donated, s.own, s.ownOut = donated, own, ownOut
	s.in, s.out = splitTypes(s.in), splitTypes(s.out)
}

// attrAt is the dictionary at a place inside the op, nil where there is none.
func (n *node) attrAt(at ast.Rel) *ast.AttrExpr {
	if at.Empty() {
		return nil
	}
	x, err := parse.Attr(n.t.Text(n.src, at))
	if err != nil {
		n.failError(n.t.Abs(at), err)
	}
	return x
}

// stated is t with the sharding that the dictionary of an argument or a result states.
func (n *node) stated(t types.Type, attrs *ast.AttrExpr, at source.Span) types.Type {
	x := attrs.Get(shardAttr)
	if n.hintGSPMD(attrs, at); x == nil {
		return t
	}
	a := attr{n.resolve(x, at), at}
	tensor, _ := t.(*types.Tensor)
	if x, ok := t.(compound); ok {
		tensor, _ = x.parts()[0].(*types.Tensor)
	}
	return withSharding(t, n.sharding(n.shardingAt(a), tensor, at))
}

// donates reports whether the dictionary of an argument let the program overwrite it,
// as JAX states that.
func donates(x *ast.AttrExpr) bool {
	return x.Get("tf.aliasing_output") != nil || x.Get("jax.buffer_donor") != nil
}

// constantName is the name of the number that an argument with the dictionary is, "" where it is none.
func constantName(x *ast.AttrExpr) string {
	if name := x.Get(globalConstant); name != nil {
		return name.Str
	}
	return ""
}

// resultName is the name of a result in its dictionary, which JAX states as a path: "result[1]['b1']"; "" where there
// is none, or the path is that of all results, which tells nothing.
func resultName(x *ast.AttrExpr) string {
	if info := x.Get("jax.result_info"); info != nil && info.Str != "result" {
		return escape.ValueName(info.Str)
	}
	return ""
}

// argumentName is what an argument is called: a number that JAX counts arguments by gives way to the name in its
// location, the path of the argument: loc("params['w']"). Names in taken have others already.
func (n *node) argumentName(a ast.BlockArg, taken map[string]bool) string {
	digits, counted := strings.CutPrefix(a.Name, "%arg")
	if counted && strings.Trim(digits, "0123456789") == "" && !a.Loc.Empty() {
		text := n.env.Expand(n.t.Text(n.src, a.Loc))
		for cut := true; cut; {
			text, cut = strings.CutPrefix(strings.TrimSpace(text), "loc(")
		}
		if end := parse.StringEnd(text); end > 0 && !strings.HasPrefix(text[end:], ":") {
			if name := "%" + escape.ValueName(parse.Unquote(text[:end])); name != "%" && !taken[name] {
				taken[name] = true
				return name
			}
		}
	}
	taken[a.Name] = true
	return a.Name
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
// and results stay; attributes of other dialects go.
func (c *importer) function(t *ast.Op) {
	s := c.sigs[t]
	var args []ast.BlockArg
	if t.Func != nil {
		args = t.Func.Args
	} else if len(t.Regions) > 0 && len(t.Regions[0].Blocks) > 0 {
		args = t.Regions[0].Blocks[0].Args
	}
	if s != nil && c.opened[s.name] {
		if s.private { // it is expanded where it is called
			return
		}
		s = c.bound(t, s, args)
	}
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
	s.attributes(o)
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
	n := &node{importer: c, t: t, name: op.Func}
	reported := c.reported
	defer func() {
		if c.reported > reported {
			o.Bad, o.Regions, fn.Body = true, nil, nil
		}
	}()
	defer c.recovered(t, func() {})
	n.must(len(args) == len(s.written)+len(s.fixed), "DM142", "the body of @%s has %d arguments, but its type has %d", s.name, len(args), len(s.written))
	defer c.enter()()
	if s.manual != nil {
		if i := slices.IndexFunc(s.written, isCompound); i >= 0 {
			n.unsupported("what runs on each device takes tensors of the dialect's own types, not a %s", s.written[i])
		}
		n.perDevice(fn, s, args, s.manual)
		return
	}
	taken, at := map[string]bool{}, 0
	for i, a := range args {
		if x, is := s.fixed[i]; is {
			c.scope.names[a.Name] = []*ir.Value{n.whole(c.sigs[t].written[i].(*types.Tensor).Elem, int(x))}
			continue
		}
		named := a
		if s.args != nil {
			named = s.args[i]
		}
		first := len(fn.Body.Args)
		c.scope.names[a.Name] = n.argument(fn, n.argumentName(named, taken), a, s.written[at:at+1])
		if !named.Loc.Empty() {
			from := c.locs.Read(n.t.Text(c.src, named.Loc))
			for _, v := range fn.Body.Args[first:] {
				v.Loc = from
			}
		}
		at++
	}
	fn.Args = fn.Body.Args
	vs := n.split(n.blocks(blocks))
	n.must(len(vs) == len(s.out), "DM142", "@%s returns %d values, but has %d results", s.name, len(vs), len(s.out))
	for i, v := range vs {
		if types.HasUnnamed(s.out[i]) {
			s.out[i] = plain(v.Type)
		}
		vs[i] = n.as(v, s.out[i])
		n.must(alike(v.Type, s.out[i]), "DM143", "result %d of @%s is a %s, but a %s is returned", i, s.name, s.out[i], v.Type)
	}
	c.b.Op(op.Return, vs, nil)
	if c.opened[s.name] {
		fn.Retype()
	}
}

// argument is the argument a of fn, of the type in written, by its name: one value, or the
// parts of a compound one.
func (n *node) argument(fn *ir.Func, name string, a ast.BlockArg, written []types.Type) []*ir.Value {
	var parts []*ir.Value
	names := splitNames([]string{name}, written)
	for k, t := range splitTypes(written) {
		v := fn.Body.AddArg(names[k], t)
		v.Span = n.t.Abs(a.Span)
		parts = append(parts, v)
	}
	return n.joined(parts, written)
}

// attributes states what holds of the arguments, and the names of the results.
func (s *signature) attributes(o *ir.Op) {
	set := func(list string, n int, of func(i int) types.Dict) {
		attrs, any := make(types.Array, n), false
		for i := range attrs {
			d := of(i)
			if len(d) == 0 {
				d = types.Dict{}
			}
			attrs[i], any = d, any || len(d) > 0
		}
		if any {
			o.SetAttr(list, attrs)
		}
	}
	set("arg_attrs", len(s.in), func(i int) types.Dict {
		d := s.own[i]
		if s.donated[i] && !has(d, op.DonatedAttr) {
			d = append(slices.Clone(d), types.Named{Name: op.DonatedAttr, Value: types.Unit{}})
		}
		return d
	})
	set("res_attrs", len(s.out), func(i int) types.Dict {
		d := s.ownOut[i]
		if s.names[i] != "" && !has(d, op.NameAttr) {
			d = append(types.Dict{{Name: op.NameAttr, Value: types.Str(s.names[i])}}, d...)
		}
		return d
	})
}

func has(d types.Dict, name string) bool {
	return slices.ContainsFunc(d, func(a types.Named) bool { return a.Name == name })
}

// blocks converts the blocks of a function: one, or those of a loop.
func (n *node) blocks(blocks []*ast.Block) []*ir.Value {
	if len(blocks) > 1 {
		return n.loop(blocks)
	}
	return n.block(blocks[0])
}
