package lower

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// canonical is the full name of the ops that may be written without a dialect.
func canonical(name string) string {
	switch name {
	case "return":
		return "func.return"
	case "call":
		return "func.call"
	case "module":
		return "builtin.module"
	}
	return name
}

func (l *lowerer) newOp(t *ast.Op, parent *ir.Block) *ir.Op {
	o := l.slab.op()
	*o = ir.Op{Name: canonical(t.Name), Parent: parent, Span: t.Span(), Head: t.Head(), Verbatim: t.Form == ast.Custom, Origin: t}
	if o.Head.End <= o.Head.Start {
		o.Head = o.Span
	}
	if !t.Loc.Empty() {
		o.Loc = l.locs.Read(t.Text(l.src, t.Loc))
	}
	return o
}

// op lowers one item; nil for those that are no ops.
func (l *lowerer) op(t *ast.Op, parent *ir.Block) *ir.Op {
	switch t.Form {
	case ast.AttrAlias, ast.TypeAlias, ast.Split, ast.Resource:
		return nil
	}
	o := l.newOp(t, parent)
	o.Bad = t.Form == ast.Bad
	if o.Name == "func.func" && t.Func != nil {
		l.function(o, t)
		return o
	}
	def := op.Lookup(o.Name)
	l.known(o, t, def)
	sig := l.signature(o, t)
	l.operands(o, t, sig)
	switch t.Form {
	case ast.Generic, ast.Pretty:
		l.attributes(o, t, def)
	case ast.Custom:
		l.expected(o, t)
	}
	l.successors(o, t)
	if isolates(o, def) {
		l.isolated(o, func() { l.regions(o, t, def) })
	} else {
		l.regions(o, t, def)
	}
	l.results(o, t, def, sig)
	l.literals(o)
	l.refine(o, def)
	switch o.Name {
	case "func.func":
		l.genericFunction(o, t)
	case "builtin.module":
		l.moduleName(o, t)
	}
	return o
}

func isolates(o *ir.Op, def *op.Def) bool {
	return o.Name == "func.func" || o.Name == "builtin.module" || def.Is(op.Isolated)
}

// known notes ops of unknown dialects.
func (l *lowerer) known(o *ir.Op, t *ast.Op, def *op.Def) {
	if def != nil || t.Form == ast.Bad {
		return
	}
	if strings.HasPrefix(o.Name, op.Prefix) {
		return // package verify reports it
	}
	dialect, _, _ := strings.Cut(o.Name, ".")
	if dialect == "func" || dialect == "builtin" || l.seen[o.Name] != nil {
		return
	}
	l.unknown(t, o.Name)
}

// unknown notes the first op of its name, which dmir does not know.
func (l *lowerer) unknown(t *ast.Op, name string) {
	l.seen[name] = t
	d := l.report(nil, "DM167", t.Abs(t.NameSpan), "unknown op %s: it is kept unchanged, and its cost is not counted", diag.Name(name))
	d.Severity = diag.Hint
	// A name such as torch.aten.sum.default may begin and end with what is no op.
	parts := strings.Split(name, ".")
	for _, part := range slices.Backward(parts[1:]) {
		if m, ok := op.Means(part); ok {
			d.Help = "the op of this dialect is " + m.String()
			return
		}
	}
}

// operands resolves the uses and compares their types with those written.
func (l *lowerer) operands(o *ir.Op, t *ast.Op, sig *signature) {
	n := len(t.Operands)
	o.Operands = l.slab.list(n)
	if sig.counts(n) {
		l.report(o, "DM163", sig.span(t), "%s, but %s written", diag.Count(n, "operand"), diag.CountAre(len(sig.in), "operand type"))
	}
	for i, u := range t.Operands {
		o.Operands[i] = l.use(o, i, u, sig.operand(i, n), t)
	}
}

// use resolves operand i of o, or leaves a value of unknown type for it until
// a definition comes.
func (l *lowerer) use(o *ir.Op, i int, u ast.Use, want types.Type, t *ast.Op) *ir.Value {
	e, span := l.scope.lookup(u.Name), t.Abs(u.Span)
	if e.values == nil {
		l.scope.waiting++
		p := pendingUse{number: l.scope.waiting, op: o, operand: i, name: u.Name, index: u.Index, want: want, span: span, form: t.Form}
		if l.unreadable > 0 {
			p.form = ast.Bad
		}
		switch p.hidden = l.scope.hides(u.Name); {
		case t.Form == ast.Custom:
			p.own = l.inside(t)[u.Name]
		case p.form != ast.Bad && !p.hidden:
			p.guess = l.guess(u.Name)
			if p.guess != "" && u.Index >= 0 {
				p.guess += "#" + strconv.Itoa(int(u.Index))
			}
		}
		l.scope.pending[u.Name] = append(l.scope.pending[u.Name], p)
		l.loose = true
		v := l.slab.value()
		*v = ir.Value{Name: u.Name, Type: types.Unknown, Span: span}
		return v
	}
	return l.connect(o, i, e.values, u.Index, want, span)
}

// inside are the names that the regions of t define. An op in a form of its own
// may repeat them in its text.
func (l *lowerer) inside(t *ast.Op) map[string]bool {
	if l.insideOf != t {
		names := map[string]bool{}
		args := func(list []ast.BlockArg) {
			for _, a := range list {
				names[a.Name] = true
			}
		}
		args(t.Defs)
		for _, r := range t.Regions {
			for _, b := range r.Blocks {
				args(b.Args)
				for _, o := range b.Ops {
					for _, res := range o.Results {
						names[res.Name] = true
					}
				}
			}
		}
		l.insideOf, l.insideNames = t, names
	}
	return l.insideNames
}

// connect makes operand i of o the value numbered index among values.
func (l *lowerer) connect(o *ir.Op, i int, values []*ir.Value, index int32, want types.Type, span source.Span) *ir.Value {
	v := values[0]
	there := int(index) < len(values)
	if index > 0 && there {
		v = values[index]
	}
	if v.Uses == nil {
		v.Uses = l.slab.use()
	}
	v.AddUse(ir.Use{Op: o, Index: i})
	if last := v.Uses[len(v.Uses)-1]; v.Guessed && last.Op != o {
		l.outrun = append(l.outrun, v)
	}
	switch {
	case !there:
		l.report(o, "DM160", span, "%s refers to %s; there is no #%d", l.src.Slice(v.Span), diag.Count(len(values), "value"), index).
			Help = "use a smaller number, or name more results: %x:3 = …"
	case want == nil || want == v.Type:
	case v.Type == types.Type(types.Unknown):
		v.Type, v.Guessed = types.Distinct(want, v.Name), true
		l.guessed = append(l.guessed, v)
	case !types.Compatible(v.Type, want):
		d := l.report(o, "DM164", span, "%s has type %s, but is used as %s", l.src.Slice(span), v.Type, want)
		d.Related = []diag.Related{{Span: v.Span, Message: "defined here with type " + v.Type.String()}}
	}
	return v
}

// define makes name stand for values and connects the uses that waited for it.
func (l *lowerer) define(name string, values []*ir.Value, span source.Span) {
	if name == "" || len(values) == 0 {
		return
	}
	if taken := l.scope.define(name, values); taken != nil {
		l.redefined(name, span, taken.Span)
		return
	}
	// What waits since the region began waits inside it; uses before it, or
	// behind regions that ended, cannot see the value.
	waiting := l.scope.pending[name]
	first := len(waiting)
	for first > 0 && waiting[first-1].number > l.began {
		first--
	}
	for _, p := range waiting[first:] {
		l.late(p, values, span)
	}
	if first < len(waiting) {
		l.scope.pending[name] = waiting[:first]
	}
}

// redefined reports a second definition of a value.
func (l *lowerer) redefined(name string, at, first source.Span) {
	d := l.report(nil, "DM161", at, "%s is already defined", name)
	d.Related = []diag.Related{{Span: first, Message: "first defined here"}}
}

// late connects a use with the definition that came after it.
func (l *lowerer) late(p pendingUse, values []*ir.Value, span source.Span) {
	p.op.Operands[p.operand] = l.connect(p.op, p.operand, values, p.index, p.want, p.span)
	if l.ordered() && sameBlock(p.op, values[0]) {
		d := l.report(p.op, "DM162", p.span, "%s is used before it is defined", p.name)
		d.Related = []diag.Related{{Span: span, Message: "defined here"}}
	}
}

// sameBlock reports whether v's op stands in the block of o or of an op around o.
func sameBlock(o *ir.Op, v *ir.Value) bool {
	if v.Op == nil {
		return false
	}
	for b := o.Parent; b != nil; b = b.Region.Op.Parent {
		if b == v.Op.Parent {
			return true
		}
	}
	return false
}

// ordered reports whether ops of the current region run in the order of the
// text: in functions and in the regions of dm ops.
func (l *lowerer) ordered() bool {
	if l.region == nil {
		return false
	}
	o := l.region.Op
	return o.Name == "func.func" || op.Lookup(o.Name) != nil
}

func (l *lowerer) successors(o *ir.Op, t *ast.Op) {
	for _, s := range t.Succs {
		b := l.blocks[s.Name]
		if b == nil {
			o.Bad = o.Bad || t.Form != ast.Custom
			continue
		}
		o.Succs = append(o.Succs, b)
	}
}

// isolated runs lower with names of its own.
func (l *lowerer) isolated(o *ir.Op, lower func()) {
	s := l.spare
	if l.spare = nil; s == nil {
		s = &scope{}
	}
	outer := l.scope
	l.scope = s.renew(outer, nameCount(origin.Tree(o)))
	lower()
	l.unresolved()
	l.scope, l.spare = outer, l.scope
}

// nameCount is about how many names the regions of an op define for themselves.
func nameCount(t *ast.Op) int {
	n := len(t.Defs)
	for _, r := range t.Regions {
		for _, b := range r.Blocks {
			n += len(b.Args) + len(b.Ops)
		}
	}
	return n
}

func (l *lowerer) regions(o *ir.Op, t *ast.Op, def *op.Def) {
	if t.Form == ast.Bad { // what it defines for its regions is not known
		l.unreadable++
		defer func() { l.unreadable-- }()
	}
	for _, r := range t.Regions {
		o.Regions = append(o.Regions, &ir.Region{Op: o})
		l.fill(o.Regions[len(o.Regions)-1], r, t, def)
	}
}

func (l *lowerer) fill(r *ir.Region, tree *ast.Region, t *ast.Op, def *op.Def) {
	region, blocks, barrier, mark, began := l.region, l.blocks, l.scope.barrier, l.scope.mark(), l.began
	l.region, l.blocks, l.began = r, nil, l.scope.waiting
	if def == nil && !isolates(r.Op, def) {
		l.scope.barrier = mark
	}
	defer func() {
		l.scope.release(mark)
		l.region, l.blocks, l.scope.barrier, l.began = region, blocks, barrier, began
	}()
	if len(tree.Blocks) == 1 && isEmpty(tree.Blocks[0]) && r.Op.Name != "builtin.module" {
		return // {} is a region without blocks, but a module has one
	}
	r.Blocks = make([]*ir.Block, len(tree.Blocks))
	for i, b := range tree.Blocks {
		r.Blocks[i] = &ir.Block{Label: b.Label, Region: r}
		if b.Label == "" {
			continue
		}
		if l.blocks[b.Label] != nil {
			r.Op.Bad = true
		}
		if l.blocks == nil {
			l.blocks = map[string]*ir.Block{}
		}
		l.blocks[b.Label] = r.Blocks[i]
	}
	for i, b := range tree.Blocks {
		block := r.Blocks[i]
		args := b.Args
		if i == 0 && len(args) == 0 {
			args = t.Defs
		}
		l.arguments(block, args, t)
		if len(b.Ops) > 0 {
			block.Ops = make([]*ir.Op, 0, len(b.Ops))
		}
		for _, inner := range b.Ops {
			if o := l.op(inner, block); o != nil {
				block.Ops = append(block.Ops, o)
			}
		}
	}
}

func isEmpty(b *ast.Block) bool { return b.Label == "" && len(b.Args)+len(b.Ops) == 0 }

// arguments defines the arguments of a block.
func (l *lowerer) arguments(b *ir.Block, args []ast.BlockArg, t *ast.Op) {
	b.Args = l.slab.list(len(args))
	for i, a := range args {
		v := l.slab.value()
		*v = ir.Value{Name: a.Name, Type: types.Unknown, Block: b, Index: i, Span: t.Abs(a.Span)}
		if !a.Type.Empty() {
			v.Type = types.Distinct(l.typeAt(b.Region.Op, t, a.Type), a.Name)
		}
		if !a.Loc.Empty() {
			v.Loc = l.locs.Read(t.Text(l.src, a.Loc))
		}
		b.Args[i] = v
		l.define(a.Name, b.Args[i:i+1], v.Span)
	}
}

// results makes the values that the op gives and their names.
func (l *lowerer) results(o *ir.Op, t *ast.Op, def *op.Def, sig *signature) {
	named := 0
	for _, r := range t.Results {
		named += int(r.Count)
	}
	l.untyped += max(0, named-max(len(t.Results), len(sig.out)))
	n := named
	if named == 0 {
		n = sig.results(def)
	}
	switch {
	case l.untyped > maxUntyped:
		l.report(o, "DM163", o.Head, "with this op more than %d results have neither a name nor a type of their own", maxUntyped)
		n, named = 0, 0
	case named > 0 && sig.full() && named != len(sig.out):
		l.report(o, "DM163", o.Head, "%s named, but %s written", diag.CountAre(named, "result"), diag.CountAre(len(sig.out), "result type"))
	case named > 0 && sig.absent() && (t.Form == ast.Pretty || t.Form == ast.Generic) && def != nil && !o.Bad:
		l.missingTypes(o, t, named)
	}
	o.Results = l.slab.list(n)
	for i := range o.Results {
		v := l.slab.value()
		*v = ir.Value{Type: types.Unknown, Op: o, Index: i, Span: o.Head}
		if ty := sig.result(i); ty != nil {
			v.Type = ty
		}
		o.Results[i] = v
	}
	at := 0
	for _, r := range t.Results {
		if named == 0 {
			break
		}
		count := int(r.Count)
		values := o.Results[at : at+count : at+count]
		for i, v := range values {
			v.Name, v.Span = r.Name, t.Abs(r.Span)
			if count > 1 {
				v.Name += "#" + strconv.Itoa(i)
			}
			v.Type = types.Distinct(v.Type, v.Name)
		}
		at += count
		l.define(r.Name, values, t.Abs(r.Span))
	}
}

// maxUntyped bounds the values of a section that are only counted, so that a
// few lines of "%x:65536 = …" do not fill the memory.
const maxUntyped = 1 << 16
