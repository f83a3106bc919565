package linalg

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

// value is what stands for a value of the text: v, or a tensor of t of which nothing but one
// number is known, which is only built where it is read.
type value struct {
	v      *ir.Value
	t      *types.Tensor
	number float64
	index  bool // a size, which nothing but shapes depends on
}

// function is the import of one.
type function struct {
	*importer
	b      *op.Builder
	sizes  *sizes
	values map[string]*value
	// pattern is the tensor at whose stored elements a region computes; nil: at all.
	pattern *term
	parts   map[*ir.Value][]*ir.Value // the components of sparse tensors that were asked for
}

func (c *importer) function(o *ast.Op) error {
	if o.Func == nil || len(o.Regions) == 0 { // declared: nothing that is imported calls it
		return nil
	}
	blocks := o.Regions[0].Blocks
	if len(blocks) != 1 {
		return unsupported(o, "a body of %d blocks is not imported", len(blocks))
	}
	x := &function{importer: c, sizes: &sizes{of: map[string][]dim.Dim{}, same: map[string]dim.Dim{}}, values: map[string]*value{}, parts: map[*ir.Value][]*ir.Value{}}
	var args []*types.Tensor
	for _, a := range o.Func.Args {
		t, err := c.typed(o.Text(c.src, a.Type))
		if err != nil {
			return err
		}
		tensor, ok := t.(*types.Tensor)
		if !ok || tensor.Enc != "" || tensor.Elem == types.InvalidElem {
			return unsupported(o, "the argument %s, %s, is not imported", a.Name, t)
		}
		args = append(args, tensor)
		x.sizes.of[a.Name] = x.sizes.fresh(tensor)
	}
	for _, p := range blocks[0].Ops {
		if err := c.learn(x.sizes, p); err != nil {
			return err
		}
	}
	f := &ir.Func{Op: &ir.Op{Name: op.Func, Span: o.Span(), Head: o.Head()}, Name: strings.TrimPrefix(o.Func.Name, "@")}
	f.Op.SetAttr("sym_name", types.Str(f.Name))
	f.Body = f.Op.AddRegion()
	for i, a := range o.Func.Args {
		t := &types.Tensor{Elem: args[i].Elem, Shape: x.shape(a.Name), Format: args[i].Format}
		if t.Format != nil {
			t.Format = x.counted(t.Format, strings.TrimPrefix(a.Name, "%"))
		}
		x.values[a.Name] = &value{v: f.Body.AddArg(a.Name, t), t: t}
	}
	f.Args = f.Body.Args
	why := ""
	x.b = op.NewBuilder(&ir.Builder{Block: f.Body}, func(o *ir.Op) *op.Problem {
		p := verify.Op(o)
		if p != nil {
			why = p.Msg
		}
		return p
	})
	for _, p := range blocks[0].Ops {
		problem := x.op(p)
		if err := x.b.Err(); err != nil {
			problem = unsupported(p, "%s is not imported: %s", p.Name, cmp.Or(why, err.Error()))
		}
		if problem != nil {
			return problem
		}
	}
	if f.Body.Terminator() == nil {
		return unsupported(o, "the body does not return")
	}
	op.RemoveDead(f.Body)
	f.Retype()
	c.m.Ops = append(c.m.Ops, f.Op)
	if !c.m.AddFunc(f) {
		return unsupported(o, "there are two functions of this name")
	}
	return nil
}

// counted is f with a symbol for how many elements of the argument called name are stored,
// one for each level that has positions.
func (x *function) counted(f *types.Format, name string) *types.Format {
	g := *f
	g.Stored = slices.Clone(f.Stored)
	for i := range g.Stored {
		s := "nnz_" + name
		if len(g.Stored) > 1 {
			s += "_" + strconv.Itoa(i)
		}
		g.Stored[i] = x.symbol(s)
	}
	return &g
}

// shape is the shape of the value called name.
func (x *function) shape(name string) []dim.Dim {
	out := make([]dim.Dim, len(x.sizes.of[name]))
	for i, d := range x.sizes.of[name] {
		if out[i] = x.sizes.find(d); !out[i].IsConst() {
			out[i] = x.symbol(out[i].String())
		}
	}
	return out
}

// of is what stands for operand i of o.
func (x *function) of(o *ast.Op, i int) (*value, error) {
	if i >= len(o.Operands) {
		return nil, unsupported(o, "%s has no operand %d", o.Name, i)
	}
	v := x.values[o.Operands[i].Name]
	if v == nil || o.Operands[i].Index > 0 {
		return nil, unsupported(o, "%s is not imported", o.Operands[i].Name)
	}
	return v, nil
}

// tensor is what stands for operand i of o, a tensor.
func (x *function) tensor(o *ast.Op, i int) (*value, error) {
	v, err := x.of(o, i)
	if err == nil && v.t == nil {
		err = unsupported(o, "%s with %s, which is no tensor, is not imported", o.Name, o.Operands[i].Name)
	}
	return v, err
}

// built is v as a value of the program.
func (x *function) built(v *value) *ir.Value {
	if v.v == nil {
		v.v = x.b.Splat(v.t, v.number)
	}
	return v.v
}

func (x *function) set(o *ast.Op, v *value) {
	name := o.Results[0].Name
	if _, err := strconv.Atoi(strings.TrimPrefix(name, "%")); err != nil && v.v != nil && v.v.Op != nil && v.v.Name == "" {
		v.v.Name = name
	}
	x.values[name] = v
}

// op imports one op of a function's body.
func (x *function) op(o *ast.Op) error {
	if o.Name == "bufferization.dealloc_tensor" {
		return nil
	}
	ends := o.Name == "return" || o.Name == op.Return
	if !ends && (len(o.Results) != 1 || o.Results[0].Count != 1) {
		return unsupported(o, "%s is not imported", diag.Name(o.Name))
	}
	switch {
	case ends:
		var out []*ir.Value
		for i := range o.Operands {
			v, err := x.of(o, i)
			switch {
			case err != nil:
				return err
			case v.index || v.t == nil:
				return unsupported(o, "%s is no tensor, and is not returned", o.Operands[i].Name)
			}
			out = append(out, x.built(v))
		}
		x.b.Op(op.Return, out, nil)
		return nil
	case o.Name == "arith.constant":
		return x.constant(o)
	case o.Name == "tensor.dim":
		x.set(o, &value{index: true})
		return nil
	case o.Name == "tensor.empty", o.Name == "bufferization.alloc_tensor" && !strings.Contains(x.text(o), "copy("):
		t := x.resultType(o)
		if t == nil || t.Enc != "" {
			return unsupported(o, "%s of this type is not imported", o.Name)
		}
		x.set(o, &value{t: x.sized(o, t)})
		return nil
	case o.Name == "linalg.fill":
		v, err := x.of(o, 0)
		to, err2 := x.tensor(o, 1)
		if err != nil || err2 != nil || v.t != nil || v.index {
			return unsupported(o, "linalg.fill with what is no constant is not imported")
		}
		x.set(o, &value{t: to.t, number: v.number})
		return nil
	case o.Name == "sparse_tensor.convert" || o.Name == "tensor.cast":
		v, err := x.tensor(o, 0)
		t := x.resultType(o)
		if err != nil || t == nil || t.Enc != "" || t.Rank() != v.t.Rank() || t.Elem != v.t.Elem {
			return unsupported(o, "%s of this type is not imported", o.Name)
		}
		x.set(o, &value{v: x.stored(x.built(v), t.Format), t: x.sized(o, t)})
		return nil
	case o.Name == "linalg.transpose":
		v, err := x.tensor(o, 0)
		dims := integers(x.attrs(o)["permutation"])
		if err != nil || len(dims) != v.t.Rank() {
			return unsupported(o, "linalg.transpose without a permutation is not imported")
		}
		y := x.b.Transpose(x.built(v), dims...)
		to, err := x.tensor(o, 1)
		if err != nil || to.t.Rank() != v.t.Rank() {
			return unsupported(o, "linalg.transpose into this type is not imported")
		}
		y = x.stored(y, to.t.Format)
		x.set(o, &value{v: y, t: y.Tensor()})
		return nil
	case named[o.Name] != "" || o.Name == "linalg.generic":
		return x.generic(o)
	}
	return unsupported(o, "%s is not imported", diag.Name(o.Name))
}

// sized is t with the sizes of o's result.
func (x *function) sized(o *ast.Op, t *types.Tensor) *types.Tensor {
	return &types.Tensor{Elem: t.Elem, Shape: x.shape(o.Results[0].Name), Format: t.Format}
}

// constant is a number, or a tensor of them.
func (x *function) constant(o *ast.Op) error {
	var a types.Attr
	text := ""
	if o.Form == ast.Custom {
		text = x.text(o)[o.NameSpan.End:]
		if rest, ok := strings.CutPrefix(strings.TrimSpace(text), "dense"); !ok && rest != "" {
			text, _, _ = strings.Cut(text, ":")
		}
	} else if v := x.attrs(o)["value"]; v != nil {
		text = v.Text
	}
	e, err := parse.Attr(strings.TrimSpace(text))
	if err == nil {
		a, err = types.AttrFromExpr(e, &x.env)
	}
	if err != nil {
		return unsupported(o, "this constant is not imported")
	}
	if d, ok := a.(*types.Dense); ok {
		if d.Splat && d.Elem.IsFloat() && len(e.Elems) == 1 { // only built where something reads it
			if n, err := strconv.ParseFloat(e.Elems[0].Text, 64); err == nil {
				x.set(o, &value{t: d.Type, number: n})
				return nil
			}
		}
		x.set(o, &value{v: x.b.Value("constant", nil, []types.Named{{Name: "value", Value: d}}, d.Type), t: d.Type})
		return nil
	}
	n, ok := types.NumberOf(a)
	if !ok {
		return unsupported(o, "this constant is not imported")
	}
	x.set(o, &value{number: n})
	return nil
}

// stored is v in the format f; nil: dense.
func (x *function) stored(v *ir.Value, f *types.Format) *ir.Value {
	t := v.Tensor()
	if x.b.Err() != nil || f.Alike(t.Format) {
		return v
	}
	to := &types.Tensor{Elem: t.Elem, Shape: t.Shape}
	if f != nil {
		to.Format = room(t, f)
	}
	return x.b.Value("convert_format", []*ir.Value{v}, nil, to)
}

// room is f with room for all that t may store: its own elements, where it is sparse without
// blocks, else every one.
func room(t *types.Tensor, f *types.Format) *types.Format {
	g := *f
	g.Stored = nil
	blocks := slices.ContainsFunc(f.Levels, func(l types.Level) bool { return l.Div > 0 })
	if t.Format != nil {
		blocks = blocks || slices.ContainsFunc(t.Format.Levels, func(l types.Level) bool { return l.Div > 0 })
	}
	n := dim.Const(1)
	for i, l := range f.Levels {
		n = n.Mul(l.Size(t.Shape))
		if !l.HasPositions() {
			continue
		}
		all := n
		for _, m := range f.Levels[i+1:] {
			if m.Kind != types.SingletonLevel {
				break
			}
			all = all.Mul(m.Size(t.Shape))
		}
		if t.Format != nil && !blocks {
			e := t.Entries()
			all = e[len(e)-1]
		}
		g.Stored = append(g.Stored, all)
	}
	return &g
}
