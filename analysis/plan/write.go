package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// meshName is the mesh of a plan, with a number where the file has something of this name.
const meshName = "plan"

// Write is the text of the file with a plan of r in it: the mesh, shardings, stages and schedule. Nothing else
// changes.
func (r *Result) Write(p *Plan) (string, error) {
	return written(r.src, p.Edits()), nil
}

// written is the text of src with edits, which are in order.
func written(src *source.File, edits []diag.Edit) string {
	text := src.Text()
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(text[at:e.Span.Start])
		out.WriteString(e.Text)
		at = e.Span.End
	}
	out.WriteString(text[at:])
	return out.String()
}

// Edits are those of Write, in order.
func (p *Plan) Edits() []diag.Edit { return p.edits() }

// A writer makes the edits that write a plan into the text: its mesh in front of the functions, shardings of
// arguments and of values that would be divided otherwise, the first op of each stage, and what the
// step runs.
type writer struct {
	s       *search
	c       *candidate
	src     *source.File
	on      *mesh.Mesh
	axes    []string // of the grid, as the mesh calls them
	order   nesting
	shards  map[string]string      // attributes by their text: the alias
	used    map[string]int         // how often an attribute is written
	names   map[string]bool        // aliases
	made    []string               // attributes in the order in which they were made
	opAttrs map[*ir.Op][]attribute // of the text's ops
	argText map[int]string         // by argument of the text's function: the value of dm.sharding
	byRows  map[int]bool           // sparse arguments that the plan divides
	again   map[int]string         // by argument: the value of dm.regather, "" for one without a value
	values  []Value
	// gradients is how many the text states the shardings of, and leave is that it states none.
	gradients int
	leave     bool
}

type attribute struct{ name, value string }

func newWriter(s *search, c *candidate) *writer {
	w := &writer{
		s: s, c: c, order: c.nesting(), src: s.module.Src, on: &mesh.Mesh{Name: freshMesh(s.module)},
		shards: map[string]string{}, used: map[string]int{}, names: map[string]bool{}, opAttrs: map[*ir.Op][]attribute{}, argText: map[int]string{}, byRows: map[int]bool{}, again: map[int]string{},
	}
	for _, a := range c.Axes {
		w.on.Axes = append(w.on.Axes, mesh.Axis{Name: a.Name, Size: a.Size})
	}
	if s.given.mesh != nil {
		w.on = s.given.mesh
	}
	roles := c.roles()
	for a := range c.m.grid.axes {
		w.axes = append(w.axes, c.axisName(roles, a))
	}
	for _, o := range s.module.Ops {
		if t := origin.Tree(o); t != nil {
			w.names[strings.TrimPrefix(t.Name, "#")] = true
		}
	}
	if f := origin.File(s.module); f != nil {
		for _, t := range f.Items {
			if t.Form == ast.AttrAlias {
				w.names[strings.TrimPrefix(t.Name, "#")] = true
			}
		}
	}
	return w
}

// freshMesh is a name that no symbol of the file has.
func freshMesh(m *ir.Module) string {
	name := meshName
	taken := func(o *ir.Op) bool { return o.Str("sym_name") == name }
	for i := 2; slices.ContainsFunc(m.Ops, taken); i++ {
		name = fmt.Sprintf("%s%d", meshName, i)
	}
	return name
}

// write makes the edits.
func (w *writer) write() []diag.Edit {
	divided := w.s.o.Devices > 1
	if divided {
		w.arguments()
		w.between()
	}
	w.stages()
	w.recompute()
	var edits []diag.Edit
	if divided {
		edits = append(edits, w.head())
	}
	edits = append(edits, w.signature()...)
	edits = append(edits, w.saves()...)
	for o, list := range w.opAttrs {
		if e, ok := w.attach(o, list); ok {
			edits = append(edits, e)
		}
	}
	slices.SortFunc(edits, func(a, b diag.Edit) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return edits
}

// sharding is layout l of v as the text states it.
func (w *writer) sharding(v *value, l layout) string { return w.stated(w.typed(v, l)) }

// stated is how the text states s.
func (w *writer) stated(s *types.Sharding) string {
	name := ""
	for d, split := range s.Dims {
		for _, a := range split.Axes {
			name += fmt.Sprintf("_%s_%d", a.Name, d)
		}
	}
	if name == "" {
		name = "_whole"
	}
	place := types.Place{Placement: types.Placement{Space: types.HBM, Shard: s}}
	return w.alias(place.String(), fmt.Sprintf("%s%s_of_%d", w.on.Name, name, len(s.Dims)))
}

// alias is how an attribute is written that may be written often: its alias, "#name", or itself.
func (w *writer) alias(text, name string) string {
	if have, ok := w.shards[text]; ok {
		w.used[text]++
		return have
	}
	fresh := name
	for i := 2; w.names[fresh]; i++ {
		fresh = fmt.Sprintf("%s_%d", name, i)
	}
	w.names[fresh] = true
	w.shards[text] = "#" + fresh
	w.used[text]++
	w.made = append(w.made, text)
	return "#" + fresh
}

// arguments states how each argument lies.
func (w *writer) arguments() {
	m := w.c.m
	stored, again := map[*ir.Value]layout{}, map[*ir.Value]bool{}
	for i, n := range m.nodes {
		if n.o == nil {
			s := &m.vars[m.ofNode[i]].strategies[w.c.choice[m.ofNode[i]]]
			stored[n.arg], again[n.arg] = s.stored, s.again
		}
	}
	flat := 0
	for i, a := range w.s.text.Args {
		any := false
		var regathered []string // of its tensors
		var text func(t types.Type) string
		text = func(t types.Type) string {
			if of, ok := t.(*types.Tuple); ok {
				var list []string
				for _, member := range of.Of {
					list = append(list, text(member))
				}
				all := "[" + strings.Join(list, ", ") + "]"
				if len(list) > 2 {
					return w.alias(all, w.on.Name+"_tuple")
				}
				return all
			}
			ten, isTensor := t.(*types.Tensor)
			if isTensor && ten.Format != nil {
				regathered = append(regathered, "false")
				first := flat
				flat += len(ten.Components())
				s := w.rows(ten, m.fn.Args[first:flat], stored)
				if s == nil || w.c.set.form.of[i] == 0 {
					return "unit"
				}
				any, w.byRows[i] = true, true
				return w.stated(s)
			}
			v := m.fn.Args[flat]
			flat += m.pieces(flat)
			if w := m.like[v]; w != nil {
				v = w
			}
			regathered = append(regathered, fmt.Sprint(again[v]))
			l, ok := stored[v]
			if !ok || !isTensor || ten.Rank() == 0 || ten.At.Shard != nil {
				return "unit"
			}
			any = true
			return w.sharding(m.values[m.of[v]], l)
		}
		value := text(a.Type)
		if !any || op.SignatureAttr(w.s.text.Op, "arg_attrs", i, op.ShardingAttr) != nil {
			continue
		}
		w.argText[i] = value
		switch {
		case !slices.Contains(regathered, "true"):
		case slices.Contains(regathered, "false"):
			w.again[i] = "[" + strings.Join(regathered, ", ") + "]"
		default:
			w.again[i] = ""
		}
		w.values = append(w.values, Value{Name: a.Name, Line: lineOf(w.src, a.Span), Sharding: w.plain(value), Span: a.Span})
	}
}

// rows is how t lies, a sparse tensor of which parts are the components: as its pieces do. It is nil of one that is whole.
func (w *writer) rows(t *types.Tensor, parts []*ir.Value, stored map[*ir.Value]layout) *types.Sharding {
	for _, v := range parts {
		x, ok := w.c.m.of[v]
		if l := stored[v]; ok && w.c.m.values[x].pieces > 0 {
			s := &types.Sharding{Mesh: types.SymbolOf(w.on.Name), Dims: make([]types.Split, t.Rank())}
			s.Dims[t.Format.Outermost()] = w.typed(w.c.m.values[x], l).Dims[0]
			return s
		}
	}
	return nil
}

// plain is an attribute with its aliases written out.
func (w *writer) plain(value string) string {
	for _, text := range slices.Backward(w.made) {
		value = strings.ReplaceAll(value, w.shards[text], text)
	}
	return value
}

// stages marks the first op of each stage. The first one begins with the function that the others are in.
func (w *writer) stages() {
	if w.c.m.grid.pipe == 1 {
		return
	}
	if w.c.m.looped() {
		if o := w.s.textOps[w.c.m.loop]; o != nil {
			w.opAttrs[o] = append(w.opAttrs[o], attribute{op.StagesAttr, fmt.Sprint(w.c.m.grid.pipe)})
		}
		return
	}
	var before *ir.Op
	for k := range w.c.Stages {
		o := w.textOp(w.c.m.siteOf(w.c.m.layers.begin[w.c.st.first[k]]))
		if o == nil || k == 0 {
			continue
		}
		if before == nil {
			before = o.Parent.Ops[0]
			w.opAttrs[before] = append(w.opAttrs[before], attribute{op.StageAttr, "0"})
		}
		w.opAttrs[o] = append(w.opAttrs[o], attribute{op.StageAttr, fmt.Sprint(k)})
	}
}

// recompute marks what the backward pass computes again: the calls that are layers, or each op of them
// that is cheap.
func (w *writer) recompute() {
	marked := map[*ir.Op]bool{}
	mark := func(o *ir.Op) {
		if o != nil && !marked[o] {
			marked[o] = true
			w.opAttrs[o] = append(w.opAttrs[o], attribute{op.RecomputeAttr, ""})
		}
	}
	switch {
	case w.c.m.looped(): // see saves
	case w.c.Recompute == Full:
		for _, o := range w.c.m.layers.begin {
			mark(w.textOp(w.c.m.siteOf(o)))
		}
		for _, o := range w.c.m.calls {
			mark(w.textOp(o))
		}
	case w.c.Recompute == Selective:
		m := w.c.m
		for _, n := range m.nodes {
			if n.unit >= 0 && n.cheap {
				for _, o := range w.alike(n.o) {
					mark(o)
				}
			}
		}
	}
}

// saves states what the loop over layers keeps for the backward pass.
func (w *writer) saves() []diag.Edit {
	o := w.s.textOps[w.c.m.loop]
	if !w.c.m.looped() || o == nil {
		return nil
	}
	want := "contractions"
	if w.c.Recompute == Full {
		want = "carries"
	}
	if op.Str(o, "save") == want {
		return nil
	}
	if strings.Contains(w.src.Slice(o.Head), `"`) { // in generic form keywords are strings
		want = `"` + want + `"`
	}
	if o.Attr("save") != nil {
		return []diag.Edit{{Span: origin.AttrSpan(o, w.src, "save"), Text: want}}
	}
	at := origin.AttrSpan(o, w.src, "carries").End
	return []diag.Edit{{Span: source.Span{Start: at, End: at}, Text: ", save = " + want}}
}

// textOp is the op of the text that o was made of.
func (w *writer) textOp(o *ir.Op) *ir.Op { return w.s.textOps[o.Span] }

// head is the mesh and the aliases, in front of the first function and of the comment that belongs to it.
func (w *writer) head() diag.Edit {
	var text strings.Builder
	if w.s.given.mesh == nil {
		text.WriteString("dm.mesh @" + w.on.Name + " {")
		for i, a := range w.on.Axes {
			if i > 0 {
				text.WriteString(", ")
			}
			fmt.Fprintf(&text, "%s = %d", a.Name, a.Size)
		}
		text.WriteString("}\n\n")
	}
	n := 0
	for _, attr := range w.made {
		if w.used[attr] > 0 {
			fmt.Fprintf(&text, "%s = %s\n", w.shards[attr], attr)
			n++
		}
	}
	if n > 0 {
		text.WriteString("\n")
	}
	at := w.src.Len()
	for _, f := range w.s.module.Funcs {
		at = min(at, f.Op.Span.Start)
	}
	all := w.src.Text()
	at = strings.LastIndexByte(all[:at], '\n') + 1
	for at > 0 {
		before := strings.LastIndexByte(all[:at-1], '\n') + 1
		if !strings.HasPrefix(strings.TrimSpace(all[before:at]), "//") {
			break
		}
		at = before
	}
	return diag.Edit{Span: source.Span{Start: at, End: at}, Text: text.String()}
}

// signature gives the function its attributes, and arguments theirs.
func (w *writer) signature() []diag.Edit {
	t := origin.Tree(w.s.text.Op)
	if t == nil || t.Func == nil {
		return nil
	}
	var edits []diag.Edit
	for i, value := range w.argText {
		if i >= len(t.Func.Args) {
			continue
		}
		a := t.Func.Args[i]
		list := []attribute{{op.ShardingAttr, value}}
		if again, ok := w.again[i]; ok {
			list = append(list, attribute{op.RegatherAttr, again})
		}
		if !a.Attrs.Empty() {
			edits = append(edits, w.within(t, a.Attrs, list))
			continue
		}
		at := t.Abs(a.Type).End
		edits = append(edits, diag.Edit{Span: source.Span{Start: at, End: at}, Text: " {" + entries(list) + "}"})
	}
	var own []attribute
	state := func(name, value string) {
		if w.s.text.Op.Attr(name) == nil {
			own = append(own, attribute{name, value})
		}
	}
	if w.c.Microbatches > 1 || w.c.m.grid.pipe > 1 {
		state(op.MicrobatchesAttr, fmt.Sprint(w.c.Microbatches))
	}
	if w.c.m.grid.pipe > 1 {
		state(op.PipelineAttr, `"pipe"`)
		state(op.ScheduleAttr, fmt.Sprintf("%q", w.c.Schedule))
	}
	if len(own) > 0 {
		switch {
		case !t.Attrs.Empty():
			edits = append(edits, w.within(t, t.Attrs, own))
		case len(t.Regions) > 0:
			at := t.Off + int(t.Regions[0].Open)
			edits = append(edits, diag.Edit{Span: source.Span{Start: at, End: at}, Text: "attributes {" + entries(own) + "} "})
		}
	}
	return edits
}

func entries(list []attribute) string {
	var out []string
	for _, a := range list {
		if a.value == "" {
			out = append(out, a.name)
		} else {
			out = append(out, a.name+" = "+a.value)
		}
	}
	return strings.Join(out, ", ")
}

// within puts attributes into a dictionary of t, in front of what it has.
func (w *writer) within(t *ast.Op, dictionary ast.Rel, list []attribute) diag.Edit {
	at := t.Abs(dictionary).Start + 1
	comma := ", "
	if strings.TrimSpace(strings.Trim(t.Text(w.src, dictionary), "{}")) == "" {
		comma = ""
	}
	return diag.Edit{Span: source.Span{Start: at, End: at}, Text: entries(list) + comma}
}

// attach gives an op attributes: in its dictionary, or in a new one in front of its types.
func (w *writer) attach(o *ir.Op, list []attribute) (diag.Edit, bool) {
	t := origin.Tree(o)
	if t == nil {
		return diag.Edit{}, false
	}
	if !t.Attrs.Empty() {
		return w.within(t, t.Attrs, list), true
	}
	text := w.src.Text()
	at := t.Abs(t.Sig).Start
	if t.Sig.Empty() {
		at = t.Span().End
	} else {
		for at > t.Off && (text[at-1] == ' ' || text[at-1] == '\t' || text[at-1] == '\n' || text[at-1] == '\r' || text[at-1] == ':') {
			at--
		}
	}
	return diag.Edit{Span: source.Span{Start: at, End: at}, Text: " {" + entries(list) + "}"}, true
}
