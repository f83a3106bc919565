package stablehlo

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Shardings are those of Shardy's dialect, sdy, as JAX prints them. The names of a mesh and of
// axes that are no bare identifiers are renamed, and a mesh without axes, on which everything is
// whole, is none here. Priorities, lists of replicated axes and sharding groups, which only guide
// Shardy's propagation, are not kept.

// shardAttr is the attribute of arguments, results and ops.
const shardAttr = "sdy.sharding"

// imported is a mesh of the program.
type imported struct {
	*mesh.Mesh                   // nil of one without axes
	axes       map[string]string // the names that they have here
	permuted   bool              // its devices are not in their order
}

// shardings are the conversions of ops that state how values are divided, and of those that only
// guide Shardy.
func shardings() map[string]conversion {
	m := map[string]conversion{
		"sdy.sharding_constraint": constraint("sharding"), "sdy.reshard": constraint("sharding"),
		"sdy.propagation_barrier": same, "sdy.data_flow_edge": same, "sdy.constant": constant,
		"sdy.sharding_group":    func(*node) []*ir.Value { return nil },
		"sdy.named_computation": func(n *node) []*ir.Value { return n.run(0, n.in) },
		"sdy.manual_computation": func(n *node) []*ir.Value {
			n.report(n.t, Unsupported, n.t.Head(), "sdy.manual_computation is supported only as the whole body of a function").
				Help = "give shard_map a function of its own: a function of the dialect works on whole tensors, or is what one device runs"
			panic(bailout{})
		},
	}
	for _, name := range []string{"all_gather", "all_slice", "all_to_all", "all_reduce", "reduce_scatter", "collective_permute"} {
		m["sdy."+name] = constraint("out_sharding") // its value is the operand's
	}
	return m
}

// constraint is an op whose result is the operand, divided as an attribute states.
func constraint(name string) conversion {
	return func(n *node) []*ir.Value {
		n.takes(1)
		a, ok := n.attrs[name]
		n.must(ok, "DM141", "%s needs the attribute %s", n.name, name)
		return []*ir.Value{n.divided(n.in[0], n.sharding(n.shardingAt(a), n.in[0].Tensor(), a.at))}
	}
}

// divided is v with a sharding; nil states none.
func (n *node) divided(v *ir.Value, s *types.Sharding) *ir.Value {
	if s == nil {
		return v
	}
	return n.make("reshard", []*ir.Value{v}, nil, withSharding(v.Type, s)).Results[0]
}

// as is v with the sharding of type t.
func (n *node) as(v *ir.Value, t types.Type) *ir.Value {
	if types.Equal(v.Type, t) || !alike(v.Type, t) {
		return v
	}
	return n.make("reshard", []*ir.Value{v}, nil, t).Results[0]
}

func withSharding(t types.Type, s *types.Sharding) types.Type {
	if x, ok := t.(compound); ok && s != nil {
		parts := x.parts()
		for i, p := range parts {
			parts[i] = withSharding(p, s)
		}
		return x.with(parts)
	}
	x, ok := t.(*types.Tensor)
	if !ok || s == nil {
		return t
	}
	r := *x
	r.At.Shard = s
	return &r
}

// plain is t without its sharding, which is no part of what StableHLO's types say.
func plain(t types.Type) types.Type {
	if x, ok := t.(compound); ok {
		parts := x.parts()
		for i, p := range parts {
			parts[i] = plain(p)
		}
		return x.with(parts)
	}
	if x, ok := t.(*types.Tensor); ok && x.At.Shard != nil {
		r := *x
		r.At.Shard = nil
		return &r
	}
	return t
}

// alike reports whether two types are the same but for shardings; a size that is open may be any.
func alike(a, b types.Type) bool {
	if x, ok := a.(compound); ok {
		y, ok := b.(compound)
		return ok && x.elem() == y.elem() && slices.EqualFunc(x.parts(), y.parts(), alike)
	}
	return types.Compatible(plain(a), plain(b))
}

// hintGSPMD says once that shardings of GSPMD, where attrs has one, are not read.
func (n *node) hintGSPMD(attrs *ast.AttrExpr, at source.Span) {
	if n.hinted || attrs.Get("mhlo.sharding") == nil {
		return
	}
	n.importer.hinted = true
	n.m.Diags = append(n.m.Diags, diag.New(gspmd, diag.Hint, at, "mhlo.sharding is not read: the program is imported as one for one device"))
}

// shardingAt is the sharding that a holds.
func (n *node) shardingAt(a attr) sdySharding {
	var s sdySharding
	n.sdy(a, func(r *sdyReader) { s = r.sharding() })
	return s
}

func (n *node) sdy(a attr, read func(r *sdyReader)) {
	text := a.x.Text
	if a.x.Kind == ast.AUnit {
		text = ""
	}
	if err := sdyRead(text, read); err != nil {
		n.failAt("DM141", a.at, "the sharding cannot be read: %s", err)
	}
}

// sharding is s for a tensor of type t; nil on a mesh without axes.
func (n *node) sharding(s sdySharding, t *types.Tensor, at source.Span) *types.Sharding {
	bad := func(format string, args ...any) { n.failAt("DM141", at, format, args...) }
	m := n.meshes[s.mesh]
	switch {
	case n.refusedMesh[s.mesh]:
		panic(bailout{})
	case m == nil:
		bad("there is no mesh @%s", s.mesh)
	case t == nil:
		bad("only tensors are divided")
	case len(s.dims) != t.Rank():
		bad("the sharding has %d dimensions, and %s has %d", len(s.dims), plain(t), t.Rank())
	case m.Mesh == nil:
		return nil
	}
	axes := func(list []sdyAxis) (out []types.Axis) {
		for _, a := range list {
			name, ok := m.axes[a.name]
			if !ok {
				bad("mesh @%s has no axis %q", s.mesh, a.name)
			}
			if a.size != 0 && a.pre < 1 || a.size == 1 || a.size == 0 && a.pre != 0 {
				bad("(%d)%d is no part of axis %q", a.pre, a.size, a.name)
			}
			out = append(out, types.Axis{Name: name, Pre: a.pre, Size: a.size})
		}
		return out
	}
	r := &types.Sharding{Mesh: types.SymbolOf(m.Name), Dims: make([]types.Split, len(s.dims)), Partial: axes(s.unreduced)}
	for i, d := range s.dims {
		r.Dims[i] = types.Split{Axes: axes(d.axes), Open: d.open}
	}
	if p := m.Problem(r); p != "" {
		bad("%s", p)
	}
	if err := r.CheckAxes(); err != nil {
		bad("%s", err)
	}
	return r
}

// annotate gives the results of an op the shardings that its attribute states: their types have them,
// of a value that another op has computed a reshard.
func (n *node) annotate(vs []*ir.Value) {
	a, ok := n.attrs[shardAttr]
	if !ok || n.batch != nil || n.bare {
		return
	}
	var list []sdySharding
	n.sdy(a, func(r *sdyReader) { list = r.shardings() })
	if len(list) != len(vs) {
		n.failAt("DM141", a.at, "%s has %d results, and shardings of %d", n.name, len(vs), len(list))
	}
	taken := n.split(n.in)
	one := func(s sdySharding, v *ir.Value) *ir.Value {
		shard := n.sharding(s, v.Tensor(), a.at)
		switch {
		case shard == nil:
		case v.Op == nil || len(v.Uses) > 0 || v.Tensor().At.Shard != nil || n.kept[v] || slices.Contains(taken, v):
			return n.divided(v, shard)
		default:
			v.Type = withSharding(v.Type, shard)
		}
		return v
	}
	for i, s := range list {
		x, ok := vs[i].Type.(compound)
		if !ok {
			vs[i] = one(s, vs[i])
			continue
		}
		parts := slices.Clone(n.parts[vs[i]])
		for k, p := range parts {
			parts[k] = one(s, p)
		}
		vs[i] = n.compounded(x, parts...)
	}
}

// sdyMesh reads a mesh and defines it.
func (c *importer) sdyMesh(t *ast.Op) {
	name := ""
	n := &node{importer: c, t: t, name: t.Name, attrs: map[string]attr{}}
	defer c.recovered(t, func() { c.refusedMesh[name] = true })
	if len(t.Symbols) > 0 {
		name, _ = types.ParseSymbol(t.Symbols[0].Name).Name()
	}
	a := attr{&ast.AttrExpr{Kind: ast.AStrided}, t.Head()}
	if t.Form == ast.Custom {
		text := t.Text(c.src, ast.Rel{Start: t.NameSpan.End, End: t.Len})
		if _, rest, ok := strings.Cut(text, "="); ok {
			a.x.Text = angled(rest)
		}
	} else {
		n.dicts()
		if s, ok := n.value("sym_name").(types.Str); ok {
			name = string(s)
		}
		var ok bool
		a, ok = n.attrs["mesh"]
		n.must(ok, "DM141", "sdy.mesh needs the attributes mesh and sym_name")
	}
	var m sdyMesh
	n.sdy(a, func(r *sdyReader) { m = r.mesh() })
	n.must(name != "" && c.meshes[name] == nil, "DM142", "@%s is already defined", name)
	if len(m.axes) == 0 && m.ids != nil {
		n.unsupported("a mesh of one device that is chosen by its number is not supported")
	}
	c.meshes[name] = n.mesh(name, m)
}

// angled is the text from "<" to the ">" that closes it.
func angled(text string) string {
	start := strings.IndexByte(text, '<')
	depth, quoted := 0, false
	for i := max(start, 0); i < len(text); i++ {
		switch {
		case text[i] == '"' && (i == 0 || text[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case text[i] == '<':
			depth++
		case text[i] == '>':
			if depth--; depth == 0 {
				return text[start : i+1]
			}
		}
	}
	return strings.TrimSpace(text)
}

// mesh adds a mesh to the program.
func (n *node) mesh(name string, m sdyMesh) *imported {
	r := &imported{axes: map[string]string{}}
	if len(m.axes) == 0 {
		return r
	}
	taken := map[string]bool{}
	r.Mesh = &mesh.Mesh{Name: bare(name, "mesh", n.meshNames)}
	for i, a := range m.axes {
		n.must(r.axes[a] == "", "DM142", "axis %q stands in mesh @%s twice", a, name)
		own := bare(a, "axis", taken)
		r.axes[a] = own
		r.Axes = append(r.Axes, mesh.Axis{Name: own, Size: int(m.sizes[i])})
		n.must(m.sizes[i] > 0, "DM142", "axis %q has no devices", a)
	}
	if err := r.Check(); err != nil {
		n.fail("DM142", "this is no mesh: %s", err)
	}
	for i, id := range m.ids {
		r.permuted = r.permuted || id != int64(i)
	}
	n.must(m.ids == nil || len(m.ids) == r.Devices(), "DM142", "device_ids has %d entries for %d devices", len(m.ids), r.Devices())
	o := r.Op()
	o.Span, o.Head = n.t.Span(), n.t.Head()
	n.m.Ops = append(n.m.Ops, o)
	return r
}

// bare is name as a bare identifier that is not taken: other characters are "_".
func bare(name, otherwise string, taken map[string]bool) string {
	b := []byte(name)
	for i, c := range b {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '$' && c != '.' {
			b[i] = '_'
		}
	}
	name = string(b)
	if strings.Trim(name, "_") == "" || strings.IndexByte("0123456789$.", name[0]) >= 0 {
		name = otherwise + name
	}
	own := name
	for i := 1; taken[own]; i++ {
		own = name + "_" + strconv.Itoa(i)
	}
	taken[own] = true
	return own
}
