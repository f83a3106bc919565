package types

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/syntax/ast"
)

// maxCached is the length up to which an Env remembers attribute texts; longer
// ones are literals that hardly repeat.
const maxCached = 256

// AttrFromExpr is the value of an attribute text. Forms that the dialect does
// not look into are Raw with their aliases expanded. Errors are *Error.
func AttrFromExpr(x *ast.AttrExpr, env *Env) (Attr, error) {
	if env == nil {
		env = &Env{}
	}
	if len(x.Text) <= maxCached {
		if a, ok := env.attrs[x.Text]; ok && x.Text != "" {
			return a, nil
		}
	}
	a, err := env.attrOf(x)
	if err != nil {
		return nil, err
	}
	if x.Text != "" && len(x.Text) <= maxCached {
		if env.attrs == nil {
			env.attrs = map[string]Attr{}
		}
		env.attrs[x.Text] = a
	}
	return a, nil
}

func (e *Env) attrOf(x *ast.AttrExpr) (Attr, error) {
	switch x.Kind {
	case ast.AUnit:
		return Unit{}, nil
	case ast.ABool:
		return Bool(x.Bool), nil
	case ast.AInt:
		return e.intOf(x)
	case ast.AFloat:
		return e.floatOf(x)
	case ast.AString:
		if x.Type != nil {
			break
		}
		return Str(x.Str), nil
	case ast.AKeyword:
		return Keyword(x.Str), nil
	case ast.ASymbol:
		return ParseSymbol(x.Str), nil
	case ast.AArray:
		return e.arrayOf(x)
	case ast.ADict:
		return e.dictOf(x)
	case ast.AType:
		t, err := FromExpr(x.Type, e)
		return TypeAttr{t}, err
	case ast.ADense:
		if x.Type == nil {
			break
		}
		t, err := FromExpr(x.Type, e)
		if err != nil {
			return nil, err
		}
		tensor, ok := t.(*Tensor)
		if !ok {
			break
		}
		return DenseFromExpr(x, tensor)
	case ast.AArrayOf:
		return e.arrayOfNumbers(x)
	case ast.AAlias:
		def, ok := e.attrAlias[x.Name]
		if !ok {
			return nil, e.noAttrAlias(x.Name)
		}
		leave, err := e.enter(x.Name)
		if err != nil {
			return nil, err
		}
		defer leave()
		a, err := AttrFromExpr(def, e)
		if err != nil {
			return nil, err
		}
		if _, literal := a.(*Dense); literal {
			return a, nil // long, but holds no aliases
		}
		return a, fits(x.Name, a.String())
	case ast.ADialect:
		if x.Name == "dm.at" {
			p, err := parsePlacement(x.Body)
			return Place{p.placement()}, err
		}
	}
	return Raw(e.foreign(x.Text)), nil
}

// scalarElem is the element type written behind a number, InvalidElem where
// none is, and false where it is one that dmir has no arithmetic for.
func (e *Env) scalarElem(x *ast.AttrExpr) (Elem, bool) {
	if x.Type == nil {
		return InvalidElem, true
	}
	t := e.resolve(x.Type)
	if t.Kind != ast.TScalar {
		return InvalidElem, false
	}
	return ElemByName(t.Name)
}

func (e *Env) intOf(x *ast.AttrExpr) (Attr, error) {
	elem, known := e.scalarElem(x)
	switch {
	case !known:
		return Raw(e.foreign(x.Text)), nil
	case elem.IsFloat():
		return e.floatOf(x)
	case x.Big:
		if elem != UI64 || strings.HasPrefix(x.Text, "-") {
			return nil, outOfRange(x.Text, orElse(elem, I64))
		}
		return Raw(x.Text), nil
	}
	if least, greatest := intRange(orElse(elem, I64)); x.Int < least || x.Int > greatest {
		return nil, outOfRange(x.Text, elem)
	}
	return Int{wrapInt(x.Int, elem), elem}, nil
}

func outOfRange(text string, e Elem) error {
	number, _, _ := strings.Cut(text, ":")
	return &Error{Code: "DM155", Msg: fmt.Sprintf("%s does not fit into %s", strings.TrimSpace(number), e)}
}

func (e *Env) floatOf(x *ast.AttrExpr) (Attr, error) {
	elem, known := e.scalarElem(x)
	if !known || elem != InvalidElem && !elem.IsFloat() {
		return Raw(e.foreign(x.Text)), nil
	}
	v, err := floatValue(x, orElse(elem, F64))
	if err != nil {
		return nil, err
	}
	return Float{v, elem}, nil
}

// floatValue is the value of a literal in e: a decimal, or e's bits in hexadecimal.
func floatValue(x *ast.AttrExpr, e Elem) (float64, error) {
	number, _, _ := strings.Cut(x.Text, ":")
	number = strings.TrimSpace(number)
	if ast.NotFinite(number) {
		return 0, notFinite(number, x.Float, e)
	}
	digits, isHex := strings.CutPrefix(strings.TrimPrefix(number, "-"), "0x")
	if !isHex {
		if x.Kind == ast.AInt {
			return 0, &Error{Code: "DM154", Msg: fmt.Sprintf("%s is an integer where %s is expected", number, e), Help: "write " + number + ".0"}
		}
		return Round(x.Float, e), nil
	}
	b, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || b>>(8*e.Bytes()-1)>>1 != 0 || strings.HasPrefix(number, "-") {
		return 0, &Error{Code: "DM155", Msg: fmt.Sprintf("%s is not the bits of a value of %s", number, e), Help: fmt.Sprintf("write %d hexadecimal digits", 2*e.Bytes())}
	}
	return FromBits(b, e), nil
}

// notFinite tells how to write an infinity or NaN of e: MLIR has no words for them.
func notFinite(text string, v float64, e Elem) error {
	err := &Error{Code: "DM154", Msg: fmt.Sprintf("%s as %s is written by its bits in MLIR", text, e), Part: text}
	if f, narrow := formats[e]; narrow && !f.inf && math.IsInf(v, 0) {
		err.Msg, err.Help = fmt.Sprintf("%s has no infinity", e), fmt.Sprintf("the largest value is %s", FloatText(math.Copysign(f.max(), v), e))
		return err
	}
	err.Write = FloatText(v, e)
	err.Help = fmt.Sprintf("write %s, which is %s as %s", err.Write, text, e)
	return err
}

func (e *Env) arrayOf(x *ast.AttrExpr) (Attr, error) {
	out := make(Array, len(x.Elems))
	for i, elem := range x.Elems {
		a, err := AttrFromExpr(elem, e)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

func (e *Env) arrayOfNumbers(x *ast.AttrExpr) (Attr, error) {
	elem, known := e.scalarElem(x)
	if !known || elem == InvalidElem {
		return Raw(e.foreign(x.Text)), nil
	}
	// The list is read as a literal of a vector of that many elements.
	d := &Dense{Type: &Tensor{Elem: elem, Shape: []dim.Dim{dim.Const(int64(len(x.Elems)))}}, Elements: Elements{Elem: elem}}
	if err := d.fromList(&ast.AttrExpr{Kind: ast.AArray, Elems: x.Elems}, 0); err != nil {
		return nil, err
	}
	return &ArrayOf{d.Elements}, nil
}

func (e *Env) dictOf(x *ast.AttrExpr) (Attr, error) {
	out := make(Dict, len(x.Entries))
	for i, entry := range x.Entries {
		out[i] = Named{Name: entry.Key, Value: Unit{}}
		if entry.Value == nil {
			continue
		}
		a, err := AttrFromExpr(entry.Value, e)
		if err != nil {
			return nil, err
		}
		out[i].Value = a
	}
	return out, nil
}

// FloatText is v as MLIR reads it back to the same bits: a decimal with a
// point, or the bits in hexadecimal for infinities and NaN, which have no
// decimal form (and are then only readable with the type behind them).
func FloatText(v float64, e Elem) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		e = orElse(e, F64)
		return fmt.Sprintf("0x%0*X", 2*e.Bytes(), ToBits(v, e))
	}
	bits := 64
	if _, narrow := formats[e]; narrow && float64(float32(v)) == v {
		bits = 32
	}
	s := strconv.FormatFloat(v, 'g', -1, bits)
	mantissa, exp, hasExp := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if hasExp {
		return mantissa + "e" + exp
	}
	return mantissa
}
