// Package stablehlo turns programs in StableHLO, CHLO and MHLO into the ops of the
// data-movement dialect.
//
// A text is lowered as any other: functions, calls, returns and the names of values
// are read then, and ops of the three dialects are kept as they are written. Convert
// replaces these ops in place, one after another, each by ops that compute the same,
// which take over its position in the text and the names of its results. One table by
// name has a conversion for each op; package comments of the files tell what they
// cover.
package stablehlo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

// dialects are the prefixes of the ops that make a program one to convert.
var dialects = []string{"stablehlo.", "mhlo.", "chlo."}

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{Code: "DM198", Name: "unsupported-import", Doc: "The op, its element type or one of its attributes has no equivalent in the data-movement dialect, or a size that a model leaves open is not given.", Help: "leave the op out of what is imported"},
	{Code: "DM199", Name: "invalid-import", Doc: "An op of another dialect, or a model in ONNX, is not valid: an attribute is missing or malformed, types do not fit, or the file is damaged.", Help: "correct the op"},
})

// Unsupported reports whether d states that a valid program cannot be expressed.
func Unsupported(d diag.Diagnostic) bool { return d.Code == "DM198" }

// has reports whether m has ops of the dialects.
func has(m *ir.Module) bool {
	found := false
	ir.Walk(m.Ops, func(o *ir.Op) bool {
		found = found || slices.ContainsFunc(dialects, func(d string) bool { return strings.HasPrefix(o.Name, d) })
		return !found
	})
	return found
}

// others are the ops of further dialects that have a conversion, in a program that has
// ops of these.
var others = map[string]string{
	"arith.constant": "constant", "util.global.load": "global.load", "util.global.load.indirect": "global.load.indirect",
	"util.unfoldable_constant": "constant",
}

// foreign is the name of o without its dialect, "" for an op that stays.
func foreign(o *ir.Op) string {
	if name := others[o.Name]; name != "" {
		return name
	}
	for _, d := range dialects {
		if name, ok := strings.CutPrefix(o.Name, d); ok {
			return name
		}
	}
	return ""
}

// Convert replaces the ops of m. The diagnostics say which ops it could not replace;
// m is of no use then.
func Convert(m *ir.Module) []diag.Diagnostic {
	c := &converter{m: m}
	inlineCalls(m)
	var err error
	if c.globals, err = globals(m); err != nil {
		c.report(m.Ops[0], err)
		return c.diags
	}
	for _, f := range m.Funcs {
		clean(f)
		switch {
		case f.Body == nil:
		case len(f.Op.Regions[0].Blocks) > 1:
			c.report(f.Op, unsupported("branches between the blocks of @%s: dm.while and dm.if have regions", f.Name))
		default:
			c.block(f.Body)
		}
	}
	if len(c.diags) == 0 {
		m.Outer = nil // a module's name and attributes are those of the tool that wrote it
		m.Ops = slices.DeleteFunc(m.Ops, func(o *ir.Op) bool { return o.Name == "util.global" })
		for _, f := range m.Funcs {
			if f.Body != nil {
				tidy(f.Body)
			}
		}
	}
	return c.diags
}

// clean removes the attributes of other dialects from a function.
func clean(f *ir.Func) {
	for _, name := range []string{"arg_attrs", "res_attrs"} {
		list, ok := f.Op.Attr(name).(types.Array)
		if !ok {
			continue
		}
		kept, any := make(types.Array, len(list)), false
		for i, a := range list {
			d, _ := a.(types.Dict)
			var own types.Dict
			for _, n := range d {
				if strings.HasPrefix(n.Name, op.Prefix) {
					own, any = append(own, n), true
				}
			}
			kept[i] = own
		}
		f.Op.RemoveAttr(name)
		if any {
			f.Op.SetAttr(name, kept)
		}
	}
	for _, a := range slices.Clone(f.Op.Attrs) {
		if dialect, _, found := strings.Cut(a.Name, "."); found && dialect+"." != op.Prefix {
			f.Op.RemoveAttr(a.Name)
		}
	}
	if f.Op.Str("sym_visibility") == "public" {
		f.Op.RemoveAttr("sym_visibility") // the default
	}
}

type converter struct {
	m       *ir.Module
	diags   []diag.Diagnostic
	globals map[string]*types.Dense
	seeds   int // of the ops so far that draw numbers
}

// maxDiags is how many ops are reported at most.
const maxDiags = 20

// block replaces the ops of b in their order.
func (c *converter) block(b *ir.Block) {
	for i := 0; i < len(b.Ops) && len(c.diags) < maxDiags; {
		i += c.op(b, i)
	}
}

// op replaces op i of b and returns how many ops stand in its place.
func (c *converter) op(b *ir.Block, i int) int {
	o := b.Ops[i]
	name := foreign(o)
	if name == "" && !strings.HasPrefix(o.Name, "check.") {
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				c.block(inner)
			}
		}
		c.retype(o)
		return 1
	}
	before := len(b.Ops)
	x := &call{converter: c, o: o, name: name}
	builder := op.NewBuilder(&ir.Builder{Block: b, Index: i, At: o}, verify.Op)
	x.b = builder
	out, err := x.convert()
	if err == nil {
		err = builder.Err()
		if err != nil {
			err = unsupported("%v", err)
		}
	}
	if err == nil && len(out) != len(o.Results) {
		err = invalid("%s has %d results, not %d", o.Name, len(out), len(o.Results))
	}
	if err != nil {
		if err != errSilent {
			c.report(o, err)
		}
		return len(b.Ops) - before + 1
	}
	for j, r := range o.Results {
		v := out[j]
		if v.Name == "" && v.Op != nil && v.Op.Parent == b {
			v.Name = strings.ReplaceAll(r.Name, "#", "_")
		}
		ir.ReplaceUses(r, v)
	}
	ir.EraseAll(o)
	return len(b.Ops) - before + 1
}

// retype gives the results of a call or of another op that stays the types that
// they have by its own definition, where the text did not say.
func (c *converter) retype(o *ir.Op) {
	if o.Name != op.Call {
		return
	}
	callee, _ := types.ParseSymbol(o.Attr("callee").String()).Name()
	if f := c.m.Func(callee); f != nil && len(f.Results) == len(o.Results) {
		for i, r := range o.Results {
			r.Type = f.Results[i]
		}
	}
}

func (c *converter) report(o *ir.Op, err error) {
	code := "DM199"
	var f *failure
	if errors.As(err, &f) && f.unsupported {
		code = "DM198"
	}
	c.diags = append(c.diags, diag.New(code, diag.Error, o.Head, err.Error()))
}

// failure is why an op is not replaced.
type failure struct {
	unsupported bool // the op is valid
	msg         string
}

// errSilent is for an op that only has operands from ops that were reported.
var errSilent = errors.New("an operand could not be converted")

func (f *failure) Error() string { return f.msg }

func unsupported(format string, args ...any) error {
	return &failure{true, fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return &failure{false, fmt.Sprintf(format, args...)}
}

// call is the conversion of one op.
type call struct {
	*converter
	o     *ir.Op
	name  string // without its dialect
	b     *op.Builder
	attrs map[string]string
	words []string // of the op's own form, those that are neither operands nor named
	outs  []types.Type
}

// conversion computes what an op does by ops at c.b.
type conversion func(c *call) ([]*ir.Value, error)

func (c *call) convert() (out []*ir.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, invalid("internal error: %v", r)
		}
	}()
	if err := c.read(); err != nil {
		return nil, err
	}
	if c.name == "" {
		return c.check(strings.TrimPrefix(c.o.Name, "check."))
	}
	f := conversions[c.name]
	if f == nil {
		return nil, unsupported("%s has no equivalent", c.o.Name)
	}
	least, listed := operands[c.name]
	if !listed {
		least = 1
	}
	if len(c.o.Operands) < least {
		return nil, invalid("%s takes %d operands or more, not %d", c.o.Name, least, len(c.o.Operands))
	}
	if len(c.o.Results) == 0 && !resultless[c.name] {
		return nil, invalid("%s has a result", c.o.Name)
	}
	for _, v := range c.o.Operands {
		if (v.Type == nil || v.Type == types.Unknown) && !strings.HasPrefix(c.name, "global.") {
			if len(c.diags) > 0 {
				return nil, errSilent
			}
			return nil, invalid("the type of %s is not known", v.Name)
		}
	}
	for _, t := range append(ir.Types(c.o.Operands), c.outs...) {
		if c.name != "constant" && !strings.HasPrefix(c.name, "global.") && !known(t) {
			return nil, unsupported("%s has no equivalent", t)
		}
	}
	return f(c)
}

// known reports whether the dialect has values of t.
func known(t types.Type) bool {
	switch t := t.(type) {
	case *types.Tensor:
		return t.Elem != types.InvalidElem
	case types.Scalar:
		return true
	case *types.Tuple:
		return !slices.ContainsFunc(t.Of, func(m types.Type) bool { return !known(m) })
	}
	return false
}

func (c *call) tree() *ast.Op { return origin.Tree(c.o) }

// in is operand i.
func (c *call) in(i int) *ir.Value { return c.o.Operands[i] }

// need reports an op with other than n operands.
func (c *call) need(n int) error {
	if len(c.o.Operands) != n {
		return invalid("%s takes %d operands, not %d", c.o.Name, n, len(c.o.Operands))
	}
	return nil
}

// shapeOf is the sizes of a value in numbers.
func shapeOf(v *ir.Value) ([]int, error) {
	t := v.Tensor()
	if t == nil {
		if _, ok := v.Type.(types.Scalar); ok {
			return nil, nil
		}
		return nil, unsupported("%s is no tensor", v.Type)
	}
	return sizes(t)
}

func sizes(t *types.Tensor) ([]int, error) {
	out := make([]int, len(t.Shape))
	for i, d := range t.Shape {
		n, ok := d.Int()
		if !ok {
			return nil, unsupported("a dynamic size in %s", t)
		}
		out[i] = int(n)
	}
	return out, nil
}
