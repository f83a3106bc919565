package verify

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// discardables checks the attributes with the dialect's prefix of o and, where it is a function, of its arguments
// and results. It looks at nothing else of o, so that it costs what o's own text does.
func (v *verifier) discardables(o *ir.Op) {
	if o.Verbatim {
		return
	}
	for _, a := range o.Attrs {
		if site := op.SiteOf(o); !stands(a, site) {
			v.wrong(a, site, origin.AttrNameSpan(o, v.m.Src, a.Name), origin.AttrSpan(o, v.m.Src, a.Name))
		} else if a.Name == op.StagesAttr && !o.Bad {
			v.cut(o, int(o.Int(a.Name, 1)))
		}
	}
	if o.Name != op.Func {
		return
	}
	f, _ := o.Attr("function_type").(types.TypeAttr)
	sig, _ := f.T.(*types.Func)
	for _, list := range []struct {
		attr string
		site op.Sites
	}{{"arg_attrs", op.OnArgument}, {"res_attrs", op.OnResult}} {
		all, _ := o.Attr(list.attr).(types.Array)
		for i := range all {
			own, _ := all[i].(types.Dict)
			fit := true
			for _, a := range own {
				if !stands(a, list.site) {
					fit = false
					key, value := origin.SignatureEntry(o, v.m.Src, list.attr, i, a.Name)
					v.wrong(a, list.site, key, value)
				}
			}
			if fit && list.site == op.OnArgument && sig != nil && i < len(sig.In) {
				v.initial(o, i, own, sig.In[i])
			}
		}
	}
}

// stands reports whether a may stand on a site: an attribute of another dialect, or one that is declared for it, with
// a value that it may have.
func stands(a types.Named, site op.Sites) bool {
	if !strings.HasPrefix(a.Name, op.Prefix) {
		return true
	}
	d := op.LookupAttr(a.Name)
	return d != nil && d.On&site != 0 && (d.Is == nil || d.Is(a.Value))
}

// wrong reports why a may not stand on a site; key and value are where it is written.
func (v *verifier) wrong(a types.Named, site op.Sites, key, value source.Span) {
	d := op.LookupAttr(a.Name)
	switch {
	case d == nil:
		v.unknownAttr(a.Name, key, site)
	case d.On&site == 0:
		r := v.report("DM132", key, "%s is an attribute of %s, and this is %s", a.Name, d.On, site.Name())
		r.Help = placeHelp(d)
	default:
		code := d.Code
		if code == "" {
			code = "DM133"
		}
		r := v.report(code, value, "%s is %s, not %s", a.Name, clip(a.Value.String()), d.Want)
		r.Help = "write " + d.Form()
		if d.Example == "" {
			r.Message, r.Help = a.Name+" takes no value", "write {"+a.Name+"}"
		}
		write := func(text string, safe bool) {
			if v.text(value) == a.Value.String() {
				r.Fixes = []diag.Fix{{Title: "Write " + text, Safe: safe, Edits: []diag.Edit{{Span: value, Text: text}}}}
			}
		}
		text, isText := a.Value.(types.Str)
		if d.Enum != nil {
			r.Help = "the values are " + strings.Join(d.Enum, ", ")
			if near := diag.Suggest(string(text), d.Enum); near != "" {
				r.Help = "did you mean " + near + "? " + r.Help
				write(types.Str(near).String(), true)
			}
		} else if isText && d.Is(attr(string(text))) { // a number in quotes
			r.Help = "write it without quotes: " + d.Name + " = " + string(text)
			write(string(text), true)
		}
	}
}

// text is what stands at a place, "" where the module comes from no text.
func (v *verifier) text(at source.Span) string {
	if v.m.Src == nil {
		return ""
	}
	return v.m.Src.Slice(at)
}

// placeHelp is how d is written where it may stand.
func placeHelp(d *op.Discardable) string {
	form := "{" + d.Form() + "}"
	switch {
	case d.On&op.OnResult != 0 && d.On&op.OnArgument != 0:
		return "write it behind the type of an argument or a result: tensor<4xf32> " + form
	case d.On&op.OnResult != 0:
		return "write it behind the type of a result: -> (tensor<4xf32> " + form + ")"
	case d.On&op.OnArgument != 0:
		return "write it behind the type of an argument: %x: tensor<4xf32> " + form
	case d.On&op.OnFunction != 0:
		return "write it behind the signature of a function: attributes " + form
	}
	return "write it on an op or a call in a function: dm.relu %x " + form + " : tensor<4xf32>"
}

// unknownAttr reports an attribute of the dialect's prefix that there is not. One that may stand on
// the site is proposed first.
func (v *verifier) unknownAttr(name string, at source.Span, site op.Sites) {
	r := v.report("DM131", at, "there is no attribute %s", diag.Name(name))
	var here, elsewhere []string
	for _, d := range op.Discardables {
		switch {
		case d.On&site == 0:
			elsewhere = append(elsewhere, strings.TrimPrefix(d.Name, op.Prefix))
		case !d.Made:
			here = append(here, strings.TrimPrefix(d.Name, op.Prefix))
		}
	}
	if r.Help = site.Name() + " has none that begins with " + op.Prefix; len(here) > 0 {
		r.Help = "those of " + site.Name() + " are " + op.Prefix + strings.Join(here, ", "+op.Prefix)
	}
	bare := strings.TrimPrefix(name, op.Prefix)
	if near := diag.Suggest(bare, here); near != "" {
		near = op.Prefix + near
		r.Help = "did you mean " + near + "?"
		if written := v.text(at); written == name || written == parse.Quote(name) {
			r.Fixes = []diag.Fix{{Title: "Write " + near, Edits: []diag.Edit{{Span: at, Text: strings.Replace(written, name, near, 1)}}}}
		}
	} else if near := diag.Suggest(bare, elsewhere); near != "" {
		r.Help = "did you mean " + op.Prefix + near + ", an attribute of " + op.LookupAttr(op.Prefix+near).On.String() + "? " + r.Help
	}
}

// initial checks how argument i of f, of type t, is initialized: own are its attributes.
func (v *verifier) initial(f *ir.Op, i int, own types.Dict, t types.Type) {
	var first *types.Named
	part := slices.ContainsFunc(own, func(a types.Named) bool { return a.Name == op.ComponentAttr }) // of a sparse tensor
	for k := range own {
		a := &own[k]
		ofStored := a.Name == op.PatternAttr || a.Name == op.DivideByAttr
		if a.Name != op.InitAttr && a.Name != op.StddevAttr && (!ofStored || part) {
			continue
		}
		key, value := origin.SignatureEntry(f, v.m.Src, "arg_attrs", i, a.Name)
		if why := op.Unfit(*a, t); why != "" {
			r := v.report("DM133", value, "%s is %s, but the argument, %s, %s", a.Name, clip(a.Value.String()), t, why)
			switch r.Help = "write a number that is one of its elements"; a.Name {
			case op.StddevAttr:
				r.Help = "remove it, or write " + op.LookupAttr(op.InitAttr).Form() + " for a value"
			case op.InitAttr:
				if _, number := types.NumberOf(a.Value); !number {
					r.Help = "write a number, or give the matrix to the run: --input a=FILE.npz"
				}
			case op.PatternAttr, op.DivideByAttr:
				r.Help = "remove it, or give the argument a format: #dm.csr<nnz = e>"
			}
			return
		}
		if ofStored {
			continue
		}
		if first != nil {
			r := v.report("DM133", key, "%s and %s stand together: all elements are one number, or they are random", first.Name, a.Name)
			r.Help = "remove one of them"
			_, other := origin.SignatureEntry(f, v.m.Src, "arg_attrs", i, first.Name)
			r.Related = []diag.Related{{Span: other, Message: "the other attribute"}}
			return
		}
		first = a
	}
}

// bound checks that the names in dm.bind of the function o are those of sizes: of its signature or, which is asked
// for a name that this lacks, of its body.
func (v *verifier) bound(o *ir.Op, bind types.Dict) bool {
	if len(bind) == 0 {
		return true
	}
	have := map[string]bool{}
	var names []string
	add := func(t types.Type) {
		for _, m := range types.Members(t) {
			for _, d := range m.Tensor.Sizes() {
				for _, s := range d.Symbols() {
					if !have[s] && !dim.Sym(s).IsUnnamed() {
						have[s] = true
						names = append(names, s)
					}
				}
			}
		}
	}
	f, _ := o.Attr("function_type").(types.TypeAttr)
	sig, _ := f.T.(*types.Func)
	if sig == nil {
		return true
	}
	for _, t := range sig.In {
		add(t)
	}
	for _, t := range sig.Out {
		add(t)
	}
	have[op.TripsSymbol] = true
	inside := false
	for _, e := range bind {
		if !have[e.Name] && !inside && o.Body(0) != nil {
			inside = true
			ir.WalkValues(o.Body(0).Ops, func(x *ir.Value) { add(x.Type) })
		}
		if have[e.Name] {
			continue
		}
		at := origin.AttrSpan(o, v.m.Src, op.BindAttr)
		r := v.report("DM191", at, "%s gives a size to %s, which no dimension of the function is called", op.BindAttr, e.Name)
		if r.Help = "none of its dimensions has a name: remove " + op.BindAttr; len(names) > 0 {
			r.Help = "its dimensions are " + clip(strings.Join(names, ", "))
		}
		if near := diag.Suggest(e.Name, names); near != "" {
			r.Help = "did you mean " + near + "? " + r.Help
		}
		return false
	}
	return true
}
