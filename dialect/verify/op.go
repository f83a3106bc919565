package verify

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

// Problem.Operand where the op's head is underlined.
const head = -1

func problem(code string, operand int, help, format string, args ...any) *op.Problem {
	return &op.Problem{Code: code, Operand: operand, Msg: fmt.Sprintf(format, args...), Help: help}
}

// counts checks how many operands and results there are.
func counts(o *ir.Op, def *op.Def) *op.Problem {
	if least, most := bounds(def.Operands); len(o.Operands) < least || most >= 0 && len(o.Operands) > most {
		at := head
		if most >= 0 && len(o.Operands) > most {
			at = most
		}
		return problem("DM124", at, signatureHelp(def), "%s takes %s, but has %d", o.Name, countText(least, most, "operand"), len(o.Operands))
	}
	if least, most := bounds(def.Results); len(o.Results) < least || most >= 0 && len(o.Results) > most {
		return problem("DM125", head, signatureHelp(def), "%s returns %s, but %s written", o.Name, countText(least, most, "result"), diag.CountAre(len(o.Results), "result"))
	}
	return nil
}

// bounds is the least and the greatest number of values that params stand for;
// most is -1 where there is no limit.
func bounds(params []op.Param) (least, most int) {
	for _, p := range params {
		switch {
		case p.Variadic:
			most = -1
			return least, most
		case !p.Optional:
			least++
		}
		most++
	}
	return least, most
}

func countText(least, most int, what string) string {
	switch {
	case most < 0:
		return fmt.Sprintf("at least %s", diag.Count(least, what))
	case least == most:
		return diag.Count(least, what)
	}
	return fmt.Sprintf("%d to %s", least, diag.Count(most, what))
}

func signatureHelp(def *op.Def) string {
	names := func(params []op.Param) string {
		s := make([]string, len(params))
		for i, p := range params {
			s[i] = p.Name
			switch {
			case p.Variadic:
				s[i] += "…"
			case p.Optional:
				s[i] += "?"
			}
		}
		return strings.Join(s, ", ")
	}
	return fmt.Sprintf("the op is (%s) -> (%s)", names(def.Operands), names(def.Results))
}

// attributes checks that required ones are there and that all have their kinds.
func attributes(o *ir.Op, def *op.Def) *op.Problem {
	for i := range def.Attrs {
		a := &def.Attrs[i]
		v := o.Attr(a.Name)
		if v == nil {
			if a.Default == nil && !a.Optional {
				return &op.Problem{Code: "DM181", Operand: head, Msg: fmt.Sprintf("%s needs the attribute %s", o.Name, a.Name), Help: missingHelp(o, a)}
			}
			continue
		}
		if !isKind(v, a) {
			return &op.Problem{Code: "DM180", Attr: a.Name, Operand: head, Msg: fmt.Sprintf("%s of %s is %s, not %s", a.Name, o.Name, kindPhrase(a.Kind), clip(v.String())), Help: "write " + kindExample(a)}
		}
		if k, ok := v.(types.Keyword); ok && len(a.Enum) > 0 && !slices.Contains(a.Enum, string(k)) {
			_, help := keyword(string(k), a)
			return &op.Problem{Code: "DM182", Attr: a.Name, Operand: head, Msg: fmt.Sprintf("%s of %s cannot be %s", a.Name, o.Name, diag.Name(clip(string(k)))), Help: help}
		}
	}
	return nil
}

// keyword is the word of a that a wrong one stands for, "" where there is none that
// is all of it, and what to do.
func keyword(wrong string, a *op.AttrDef) (word, help string) {
	help = "expected one of " + strings.Join(a.Enum, ", ")
	m, ok := op.Means(wrong)
	switch s := diag.Suggest(wrong, a.Enum); {
	case ok && slices.Contains(a.Enum, m.Form) && m.Rest != "":
		return "", fmt.Sprintf("%s is %s %s; %s", wrong, m.Form, m.Rest, help)
	case ok && slices.Contains(a.Enum, m.Form):
		return m.Form, fmt.Sprintf("%s is %s in this dialect; %s", wrong, m.Form, help)
	case ok && m.Form == "" && m.Def.Reduced != nil:
		return "", fmt.Sprintf("%s is an op of its own, %s; %s", wrong, m, help)
	case s != "":
		return s, "did you mean " + s + "? " + help
	}
	return "", help
}

func missingHelp(o *ir.Op, a *op.AttrDef) string {
	if a.Lead {
		return fmt.Sprintf("write it before the operands: %s %s …", o.Name, strings.TrimPrefix(kindExample(a), a.Name+" = "))
	}
	return "add " + kindExample(a)
}

func isKind(v types.Attr, a *op.AttrDef) bool {
	switch a.Kind {
	case op.KindInt:
		n, ok := v.(types.Int)
		return ok && n.Elem != types.Index
	case op.KindFloat:
		_, ok := v.(types.Float)
		return ok
	case op.KindBool:
		_, ok := v.(types.Bool)
		return ok
	case op.KindString:
		_, ok := v.(types.Str)
		return ok
	case op.KindKeyword:
		_, ok := v.(types.Keyword)
		return ok
	case op.KindInts:
		return areInts(v)
	case op.KindPairs:
		l, ok := v.(types.Array)
		return ok && !slices.ContainsFunc(l, func(p types.Attr) bool {
			pair, ok := p.(types.Array)
			return !ok || len(pair) != 2 || !areInts(pair)
		})
	case op.KindDense:
		switch v.(type) {
		case *types.Dense, types.Float, types.Int, types.Bool:
			return true
		}
		return false
	case op.KindSymbol:
		_, ok := v.(types.Symbol)
		return ok
	case op.KindName:
		_, ok := v.(types.Str)
		return ok
	case op.KindStrings:
		l, ok := v.(types.Array)
		return ok && !slices.ContainsFunc(l, func(e types.Attr) bool { _, ok := e.(types.Str); return !ok })
	case op.KindPlace:
		_, ok := v.(types.Place)
		return ok
	case op.KindSize:
		_, ok := op.SizeOf(v)
		return ok
	}
	return true
}

func areInts(v types.Attr) bool {
	l, ok := v.(types.Array)
	return ok && !slices.ContainsFunc(l, func(e types.Attr) bool { _, ok := e.(types.Int); return !ok })
}

func kindPhrase(k op.AttrKind) string {
	switch k {
	case op.KindInt:
		return "an integer"
	case op.KindFloat:
		return "a number"
	case op.KindBool:
		return "true or false"
	case op.KindString:
		return "a string"
	case op.KindKeyword:
		return "a word"
	case op.KindInts:
		return "a list of integers"
	case op.KindPairs:
		return "a list of pairs"
	case op.KindDense:
		return "dense<…>"
	case op.KindSymbol, op.KindName:
		return "a symbol"
	case op.KindStrings:
		return "a list of strings"
	case op.KindSize:
		return "a size, a number or a formula in quotes"
	}
	return "a placement"
}

func kindExample(a *op.AttrDef) string {
	value := ""
	switch a.Kind {
	case op.KindInt:
		value = "1"
	case op.KindSize:
		value = "1000000"
	case op.KindFloat:
		value = "0.5"
	case op.KindBool:
		value = "true"
	case op.KindString:
		value = `"…"`
	case op.KindKeyword:
		value = strings.Join(a.Enum, " | ")
	case op.KindInts:
		value = "[0, 1]"
	case op.KindPairs:
		value = "[[0, 1], [0, 1]]"
	case op.KindDense:
		value = "dense<…>"
	case op.KindSymbol, op.KindName:
		value = "@f"
	case op.KindStrings:
		value = `["data"]`
	default:
		value = "#dm.at<hbm>"
	}
	return a.Name + " = " + value
}

// regions checks how many there are, that each is one block, and the words
// that introduce them in the pretty form.
func regions(o *ir.Op, def *op.Def) *op.Problem {
	least := 0
	for _, r := range def.Regions {
		if !r.Optional {
			least++
		}
	}
	if n := len(o.Regions); n < least || n > len(def.Regions) {
		help := ""
		if n < least {
			r := def.Regions[n]
			help = fmt.Sprintf("add the %s region: %s", r.Name, strings.TrimSpace(r.Keyword+" { … }"))
		}
		return problem("DM185", head, help, "%s takes %s, but has %d", o.Name, countText(least, len(def.Regions), "region"), n)
	}
	for i, r := range o.Regions {
		if len(r.Blocks) > 1 {
			return problem("DM185", head, "regions of dm ops cannot branch between blocks; use dm.if and dm.while", "the %s region of %s has %d blocks instead of one", def.Regions[i].Name, o.Name, len(r.Blocks))
		}
	}
	return nil
}

// sparseTensors checks that o takes those that it has.
func sparseTensors(o *ir.Op, def *op.Def) *op.Problem {
	if !op.IsSparse(o) || op.PassesOn(o) {
		return nil
	}
	return op.VerifySparse(o)
}

// operandTypes checks that operands are tensors, or all bare element types
// where the op works element by element, and the element types.
func operandTypes(o *ir.Op, def *op.Def) *op.Problem {
	scalars := 0
	for i, v := range o.Operands {
		p := op.OperandParam(o, i)
		if p == nil || p.Elems == nil {
			continue
		}
		var elem types.Elem
		switch t := v.Type.(type) {
		case *types.Tensor:
			elem = t.Elem
			if t.Enc != "" {
				return problem("DM183", i, "write a placement as #dm.at<…>", "%s has the encoding %s of another dialect", operandName(p, v), clip(t.Enc))
			}
		case types.Scalar:
			elem = t.Elem
			scalars++
		case *types.Tuple:
			if q := tupleOperand(o, def, p, i); q != nil {
				return q
			}
			continue
		default:
			return noTensor(i, fmt.Sprintf("%s of %s", operandName(p, v), o.Name), v.Type)
		}
		if !slices.Contains(p.Elems, elem) {
			return problem("DM183", i, elemHelp(p.Elems), "%s of %s cannot be %s", operandName(p, v), o.Name, v.Type)
		}
	}
	if scalars == 0 || scalars == len(o.Operands) && def.Is(op.Pointwise) && len(def.Regions) == 0 {
		return nil
	}
	for i, v := range o.Operands {
		if s, ok := v.Type.(types.Scalar); ok {
			return problem("DM183", i, fmt.Sprintf("write tensor<%s> for a single value", s), "%s of %s is %s, not a tensor", operandName(op.OperandParam(o, i), v), o.Name, s)
		}
	}
	return nil
}

// noTensor is why operand i, which is called what, is no tensor of the dialect.
func noTensor(i int, what string, t types.Type) *op.Problem {
	if x, err := parse.Type(t.String()); err == nil && x.Kind == ast.TTensor && x.Unranked {
		return problem("DM183", i, "write the shape, with ? for sizes that are not known", "%s is %s, which has no shape", what, clip(x.Text))
	}
	return problem("DM183", i, "dm ops work on tensors such as tensor<8x512xf16>", "%s is %s, not a tensor", what, clip(t.String()))
}

// foreignElements reports whether o has tensors of elements that the dialect does
// not have, such as i2. An operand that is another op's result is reported there.
func foreignElements(o *ir.Op) (p *op.Problem, foreign bool) {
	unsupported := func(i int, what string, t types.Type, elem string) *op.Problem {
		elems := make([]string, 0, types.Index)
		for e := types.InvalidElem + 1; e <= types.Index; e++ {
			elems = append(elems, e.String())
		}
		return problem("DM183", i, "supported are "+strings.Join(elems, ", ")+"; hold smaller integers in i8", "%s is %s, whose element type %s is not supported", what, clip(t.String()), clip(elem))
	}
	for i, v := range o.Operands {
		if elem := types.ForeignElem(v.Type); elem != "" {
			if op.Of(v.Op) != nil {
				return nil, true
			}
			return unsupported(i, operandName(op.OperandParam(o, i), v)+" of "+o.Name, v.Type, elem), true
		}
	}
	for _, r := range o.Results {
		if elem := types.ForeignElem(r.Type); elem != "" {
			return unsupported(head, resultName(r), r.Type, elem), true
		}
	}
	return nil, false
}

// tupleOperand checks operand i of o, a tuple, in the place of p.
func tupleOperand(o *ir.Op, def *op.Def, p *op.Param, i int) *op.Problem {
	v := o.Operands[i]
	if !p.Tuples && !def.Is(op.Memberwise) {
		return problem("DM183", i, "unpack it: "+unpacked(v), "%s of %s is a tuple, not a tensor", operandName(p, v), o.Name)
	}
	for _, m := range types.Members(v.Type) {
		name := op.MemberName(operandName(p, v), m)
		if m.Tensor.Enc != "" {
			return problem("DM183", i, "write a placement as #dm.at<…>", "%s has the encoding %s of another dialect", name, clip(m.Tensor.Enc))
		}
		if !slices.Contains(p.Elems, m.Tensor.Elem) {
			return problem("DM183", i, elemHelp(p.Elems), "%s of %s cannot be %s", name, o.Name, m.Tensor)
		}
	}
	return nil
}

// unpacked is the text of the op that gives the members of v, a tuple.
func unpacked(v *ir.Value) string {
	t, _ := v.Type.(*types.Tuple)
	names := make([]string, 0, 3)
	for i := range t.Of {
		if i == 2 && len(t.Of) > 3 {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%%%c", 'a'+i))
	}
	return strings.Join(names, ", ") + " = dm.unpack " + operandName(&op.Param{Name: "t"}, v)
}

// param is what stands for operand or result i; nil beyond the last.
func param(params []op.Param, i int) *op.Param {
	switch {
	case i < len(params):
		return &params[i]
	case len(params) > 0 && params[len(params)-1].Variadic:
		return &params[len(params)-1]
	}
	return nil
}

func operandName(p *op.Param, v *ir.Value) string {
	if v.Name == "" {
		return "operand " + p.Name
	}
	return v.Name
}

func elemHelp(elems []types.Elem) string {
	names := make([]string, len(elems))
	for i, e := range elems {
		names[i] = e.String()
	}
	return "it works on " + strings.Join(names, ", ") + "; convert with dm.convert"
}

// spaces checks that operands lie in one memory space; dm.copy and ops with
// regions, which hand their operands on, may mix them.
func spaces(o *ir.Op, def *op.Def) *op.Problem {
	if len(def.Regions) > 0 || def.Is(op.Terminator) || def.Is(op.Cast) {
		return nil
	}
	if members := op.Split(o); members != nil {
		for _, m := range members {
			if p := spaces(m, def); p != nil {
				return p
			}
		}
		return nil
	}
	for i := 1; i < len(o.Operands); i++ {
		a, b := o.In(0), o.In(i)
		if a != nil && b != nil && a.At.In() != b.At.In() {
			return problem("DM190", i, fmt.Sprintf("copy one of them: dm.copy %s : (%s) -> …", o.Operands[i].Name, b), "%s is in %s, but %s is in %s", o.Operands[i].Name, b.At.In(), o.Operands[0].Name, a.At.In())
		}
	}
	return nil
}

// resultTypes compares the types as written with those that follow.
func resultTypes(o *ir.Op, def *op.Def) *op.Problem {
	if def.Infer != nil {
		inferred, p := op.Infer(o)
		if p != nil {
			return p
		}
		if len(inferred) != len(o.Results) {
			return problem("DM125", head, "", "%s returns %s here, but %s written", o.Name, diag.Count(len(inferred), "result"), diag.CountAre(len(o.Results), "result"))
		}
		for i, t := range inferred {
			if r := o.Results[i]; !op.Compatible(t, r.Type) {
				return problem("DM184", head, "write "+t.String(), "%s is declared as %s, but %s returns %s", resultName(r), r.Type, o.Name, t)
			}
		}
	}
	for i, r := range o.Results {
		p := param(def.Results, i)
		if p == nil || p.Elems == nil {
			continue
		}
		elems := []types.Elem{types.ElemOf(r.Type)}
		if types.IsTuple(r.Type) {
			if !p.Tuples && !def.Is(op.Memberwise) {
				return problem("DM184", head, "return its members", "%s of %s cannot be a tuple", resultName(r), o.Name)
			}
			elems = elems[:0]
			for _, m := range types.Members(r.Type) {
				elems = append(elems, m.Tensor.Elem)
			}
		}
		for _, elem := range elems {
			if !slices.Contains(p.Elems, elem) {
				return problem("DM184", head, "the op returns "+strings.TrimPrefix(strings.TrimSuffix(elemHelp(p.Elems), "; convert with dm.convert"), "it works on "), "%s of %s cannot be %s", resultName(r), o.Name, r.Type)
			}
		}
	}
	return nil
}

func resultName(v *ir.Value) string {
	if v.Name == "" {
		return "the result"
	}
	return v.Name
}

// clip shortens a text for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}
