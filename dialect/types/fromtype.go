package types

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/syntax/ast"
)

// maxBytes bounds the size of a tensor so that sums of sizes stay exact.
const maxBytes = 1 << 62

// maxRank bounds the dimensions of a tensor.
const maxRank = 64

// FromExpr is the meaning of a type text. Types that the dialect does not look
// into are Opaque with their aliases expanded. A "?" without a name becomes a
// symbol made from its place in the shape; see Distinct. Errors are *Error.
func FromExpr(x *ast.TypeExpr, env *Env) (Type, error) {
	if env == nil {
		env = &Env{}
	}
	if t, ok := env.types[x.Text]; ok {
		return t, nil
	}
	t, err := env.typeOf(x)
	if err != nil {
		return nil, err
	}
	if env.types == nil {
		env.types = map[string]Type{}
	}
	env.types[x.Text] = t
	return t, nil
}

// Distinct is t as the type of one value: its dimensions without a name become
// symbols of their own, made from place, the value's name.
func Distinct(t Type, place string) Type {
	if !HasUnnamed(t) {
		return t
	}
	return Each(t, func(m Member) Type {
		return m.Tensor.resized(func(i int, d dim.Dim) dim.Dim {
			if !d.IsUnnamed() {
				return d
			}
			return dim.Unnamed(place + m.Path + "." + strconv.Itoa(i))
		})
	})
}

func (e *Env) typeOf(x *ast.TypeExpr) (Type, error) {
	switch x.Kind {
	case ast.TScalar:
		if elem, ok := ElemByName(x.Name); ok {
			return Scalar{elem}, nil
		}
	case ast.TTensor:
		return e.tensorOf(x)
	case ast.TTuple:
		return e.tupleOf(x)
	case ast.TFunction:
		f := &Func{In: make([]Type, len(x.In)), Out: make([]Type, len(x.Out))}
		for i, in := range x.In {
			t, err := FromExpr(in, e)
			if err != nil {
				return nil, err
			}
			f.In[i] = t
		}
		for i, out := range x.Out {
			t, err := FromExpr(out, e)
			if err != nil {
				return nil, err
			}
			f.Out[i] = t
		}
		return f, nil
	case ast.TAlias:
		def, ok := e.typeAlias[x.Name]
		if !ok {
			return nil, &Error{Code: UnknownAlias, Msg: "the type alias " + x.Name + " is not defined"}
		}
		leave, err := e.enter(x.Name)
		if err != nil {
			return nil, err
		}
		defer leave()
		t, err := FromExpr(def, e)
		if err != nil {
			return nil, err
		}
		return t, fits(x.Name, t.String())
	}
	return Opaque{Text: e.foreign(x.Text)}, nil
}

// resolve follows aliases of an element type.
func (e *Env) resolve(x *ast.TypeExpr) *ast.TypeExpr {
	for range len(e.typeAlias) {
		if x == nil || x.Kind != ast.TAlias {
			break
		}
		def, ok := e.typeAlias[x.Name]
		if !ok {
			break
		}
		x = def
	}
	return x
}

func (e *Env) tensorOf(x *ast.TypeExpr) (Type, error) {
	elemExpr := e.resolve(x.Elem)
	if x.Unranked || elemExpr == nil {
		return Opaque{Text: e.foreign(x.Text)}, nil
	}
	elem, ok := ElemByName(elemExpr.Name)
	if elemExpr.Kind != ast.TScalar || !ok {
		return Opaque{e.foreign(x.Text), e.foreign(elemExpr.Text)}, nil
	}
	if len(x.Shape) > maxRank {
		return Opaque{Text: e.foreign(x.Text)}, nil
	}
	t := &Tensor{Elem: elem, Shape: make([]dim.Dim, len(x.Shape)), At: Placement{Space: HBM}}
	dynamic := 0
	for i, n := range x.Shape {
		if n == ast.Dynamic {
			dynamic++
			t.Shape[i] = dim.Unnamed(strconv.Itoa(i))
			continue
		}
		t.Shape[i] = dim.Const(n)
	}
	if err := e.encode(t, x.Encoding, dynamic); err != nil {
		if bad, ok := err.(*Error); ok && bad.Part == "" {
			bad.Part = x.Encoding.Text
		}
		return nil, err
	}
	if size := t.Bytes(); size.Overflow() || size.Largest() > maxBytes {
		return nil, &Error{Code: "DM153", Msg: fmt.Sprintf("the size of %s exceeds 2^62 bytes", x.Text), Help: "check the dimensions; no memory can hold such a tensor"}
	}
	return t, nil
}

// encode reads the encoding of t: the placement, or another dialect's kept as it is.
func (e *Env) encode(t *Tensor, enc *ast.AttrExpr, dynamic int) error {
	for hops := 0; enc != nil && enc.Kind == ast.AAlias; hops++ {
		def, ok := e.attrAlias[enc.Name]
		if !ok {
			return e.noAttrAlias(enc.Name)
		}
		if hops > len(e.attrAlias) {
			return &Error{Code: "DM152", Msg: "the alias " + enc.Name + " is defined in terms of itself"}
		}
		enc = def
	}
	switch {
	case enc == nil:
		return nil
	case enc.Kind == ast.ADialect && (enc.Name == sparseEncoding || strings.HasPrefix(enc.Name, "dm.") && enc.Name != "dm.at"):
		return e.format(t, enc, dynamic)
	case enc.Kind != ast.ADialect || enc.Name != "dm.at":
		t.Enc = e.foreign(enc.Text)
		return nil
	}
	p, err := parsePlacement(enc.Body)
	if err != nil {
		return err
	}
	if p.order != nil && len(p.order) != len(t.Shape) {
		return badPlacement("order has %d entries for %d dimensions", len(p.order), len(t.Shape))
	}
	if p.shard != nil && len(p.shard.Dims) != len(t.Shape) {
		return badPlacement("split has %d entries for %d dimensions", len(p.shard.Dims), len(t.Shape))
	}
	if p.dims != nil && len(p.dims) != dynamic {
		return badPlacement("dims names %d sizes, but the shape has %d of unknown size (\"?\")", len(p.dims), dynamic)
	}
	t.At = p.placement()
	t.name(p.dims)
	return nil
}

// name gives the dimensions of t of unknown size their names, if there are any.
func (t *Tensor) name(dims []dim.Dim) {
	n := 0
	for i, d := range t.Shape {
		if d.IsUnnamed() && dims != nil {
			if !dims[n].IsUnnamed() {
				t.Shape[i] = dims[n]
			}
			n++
		}
	}
}

// format reads the encoding of t, a sparse tensor.
func (e *Env) format(t *Tensor, enc *ast.AttrExpr, dynamic int) error {
	f, dims, understood, err := parseFormat(enc.Name, enc.Body, t.Shape)
	switch {
	case err != nil:
		return err
	case !understood:
		t.Enc = e.foreign(enc.Text)
		return nil
	case dims != nil && len(dims) != dynamic:
		return badFormat("dims names %d sizes, but the shape has %d of unknown size (\"?\")", len(dims), dynamic)
	}
	t.Format = f
	t.name(dims)
	return nil
}

func (e *Env) noAttrAlias(name string) error {
	return &Error{Code: UnknownAlias, Msg: "the attribute alias " + name + " is not defined"}
}
