package lower

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// function lowers func.func's own form. Its attributes are those of the generic
// form: sym_name, function_type, sym_visibility, arg_attrs and res_attrs.
func (l *lowerer) function(o *ir.Op, t *ast.Op) {
	f := t.Func
	fn := &ir.Func{Op: o, Name: symbolName(f.Name), Private: f.Visibility == "private"}
	ty := &types.Func{In: make([]types.Type, len(f.Args)), Out: make([]types.Type, len(f.Results))}
	for i, a := range f.Args {
		ty.In[i] = l.typeAt(o, t, a.Type)
	}
	for i, r := range f.Results {
		ty.Out[i] = l.typeAt(o, t, r.Type)
	}
	fn.Results = ty.Out
	if !t.Attrs.Empty() {
		l.dictionary(o, t, nil, t.Attrs, false)
	}
	o.SetAttr("sym_name", types.Str(fn.Name))
	o.SetAttr("function_type", types.TypeAttr{T: ty})
	if f.Visibility != "" {
		o.SetAttr("sym_visibility", types.Str(f.Visibility))
	}
	l.argAttrs(o, t, "arg_attrs", f.Args)
	l.argAttrs(o, t, "res_attrs", f.Results)
	l.isolated(o, func() { l.regions(o, t, nil) })
	l.addFunc(fn)
	defer func() { op.NumberState(o, fn.Args) }()
	if fn.Body = o.Body(0); fn.Body != nil {
		fn.Args = fn.Body.Args
		return
	}
	if len(o.Regions) > 0 {
		l.report(o, "DM174", t.Abs(f.NameSpan), "the body of @%s is empty", fn.Name).Help = "end it with return, or leave the body out to declare the function"
	}
	first := map[string]source.Span{}
	for i, a := range f.Args {
		span := t.Abs(a.Span)
		if a.Name == "" {
			span = t.Abs(a.Type)
		} else if at, taken := first[a.Name]; taken {
			l.redefined(a.Name, span, at)
		} else {
			first[a.Name] = span
		}
		fn.Args = append(fn.Args, &ir.Value{Name: a.Name, Type: types.Distinct(ty.In[i], a.Name), Index: i, Span: span})
	}
}

// argAttrs collects the dictionaries of arguments or results, if any has one.
func (l *lowerer) argAttrs(o *ir.Op, t *ast.Op, name string, args []ast.BlockArg) {
	any := false
	out := make(types.Array, len(args))
	for i, a := range args {
		out[i] = types.Dict{}
		if a.Attrs.Empty() {
			continue
		}
		v := l.attr(t.Text(l.src, a.Attrs))
		if v.err != nil {
			l.reportParse(o, t, a.Attrs, v.err)
			continue
		}
		if d, ok := v.value.(types.Dict); ok && len(d) > 0 {
			out[i], any = d, true
		}
	}
	if !any {
		return
	}
	if name == "arg_attrs" {
		l.initialArrays(o, out)
	}
	o.SetAttr(name, out)
}

// initialArrays reads the files that arguments of the function o begin with: each has the argument's type.
// own has the dictionaries of the arguments, of which it replaces some.
func (l *lowerer) initialArrays(o *ir.Op, own types.Array) {
	a, _ := o.Attr("function_type").(types.TypeAttr)
	ty, _ := a.T.(*types.Func)
	for i := range own {
		d, _ := own[i].(types.Dict)
		at := slices.IndexFunc(d, func(a types.Named) bool { return a.Name == op.InitAttr })
		if at < 0 || ty == nil || i >= len(ty.In) {
			continue
		}
		text, isText := d[at].Value.(types.Raw)
		t, isTensor := ty.In[i].(*types.Tensor)
		if !isText || !isTensor {
			continue
		}
		x, err := parse.Attr(string(text))
		if err != nil || !types.IsFile(x) {
			continue
		}
		f, err := types.FileFromExpr(x, l.arrays)
		if err != nil {
			_, value := origin.SignatureEntry(o, l.src, "arg_attrs", i, op.InitAttr)
			l.reportType(o, value, err)
			continue
		}
		d = slices.Clone(d)
		d[at].Value = types.InFile(t, f)
		own[i] = d
	}
}

// genericFunction reads a function from the attributes of its generic form.
func (l *lowerer) genericFunction(o *ir.Op, t *ast.Op) {
	name, ok := o.Attr("sym_name").(types.Str)
	a, _ := o.Attr("function_type").(types.TypeAttr)
	ty, ok2 := a.T.(*types.Func)
	if !ok || !ok2 {
		if !o.Bad {
			l.report(o, "DM174", o.Head, "func.func needs the properties sym_name and function_type")
		}
		return
	}
	vis := o.Str("sym_visibility")
	if vis == "public" { // the default
		o.Attrs = deleteAttr(o.Attrs, "sym_visibility")
	}
	fn := &ir.Func{Op: o, Name: string(name), Private: vis == "private", Results: ty.Out, Body: o.Body(0)}
	l.addFunc(fn)
	if fn.Body == nil {
		if len(o.Regions) > 0 {
			o.Regions = nil // ({}) is how generic form writes a declaration
		}
		for i, in := range ty.In {
			fn.Args = append(fn.Args, &ir.Value{Type: types.Distinct(in, ""), Index: i, Span: o.Head})
		}
		return
	}
	fn.Args = fn.Body.Args
	if own, ok := o.Attr("arg_attrs").(types.Array); ok {
		own = slices.Clone(own)
		l.initialArrays(o, own)
		o.SetAttr("arg_attrs", own)
	}
	op.NumberState(o, fn.Args)
	match := len(fn.Args) == len(ty.In)
	for i := 0; match && i < len(ty.In); i++ {
		match = types.Compatible(fn.Args[i].Type, ty.In[i])
	}
	if !match {
		l.report(o, "DM174", o.Head, "the arguments of the body are not those of the function's type %s", ty)
	}
}

func deleteAttr(attrs []types.Named, name string) []types.Named {
	for i := range attrs {
		if attrs[i].Name == name {
			return append(attrs[:i:i], attrs[i+1:]...)
		}
	}
	return attrs
}

// addFunc registers a function of the section's top level; one of a module of its
// own is no callee for others. The second function of a name is Bad.
func (l *lowerer) addFunc(f *ir.Func) {
	if f.Op.Parent == nil && !l.m.AddFunc(f) {
		f.Op.Bad = true
	}
}

// moduleName gives a module written as "module @name" its sym_name.
func (l *lowerer) moduleName(o *ir.Op, t *ast.Op) {
	if t.Form != ast.Pretty {
		return
	}
	for _, s := range t.Symbols {
		if s.Def {
			o.SetAttr("sym_name", types.Str(symbolName(s.Name)))
		}
	}
}

// symbolName is the name in "@name", without quotes.
func symbolName(text string) string {
	name, _ := types.ParseSymbol(text).Name()
	return name
}
