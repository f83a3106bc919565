package op

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Prefix is the dialect's prefix of op names.
const Prefix = "dm."

var (
	all    []*Def
	byName = map[string]*Def{}
)

// The table is filled here and not in a variable's initialiser because the
// entries' own functions look other entries up.
func init() {
	for _, family := range [][]*Def{
		contractions(), elementwise(), normalizations(), attentions(),
		movements(), sources(), controls(), kernels(), trainings(), groups(), sparseTensors(), distributions(),
	} {
		for _, d := range family {
			all = append(all, d)
			byName[d.Name] = d
		}
	}
}

// All is every op, ordered by family as in the level-1 table. The slice is the
// registry's own and must not be changed.
func All() []*Def { return all }

// Lookup is the op called name ("dm.add"), nil where there is none.
func Lookup(name string) *Def {
	short, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return nil
	}
	return byName[short]
}

// Of is o's entry, nil for ops of other dialects and unknown ones.
func Of(o *ir.Op) *Def {
	if o == nil {
		return nil
	}
	return Lookup(o.Name)
}

// FullName is the name with the dialect: "dm.add".
func (d *Def) FullName() string { return Prefix + d.Name }

// ExampleLine is the line of the Example with the op, the first of several.
func (d *Def) ExampleLine() string {
	for line := range strings.Lines(d.Example) {
		if slices.Contains(strings.Fields(line), d.FullName()) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// OperandParam is what operand i of o stands for, nil beyond the last. Where several
// are optional, the operand's element type tells which of them it is, and an attribute
// that states so makes the last operand that of Param.With.
func OperandParam(o *ir.Op, i int) *Param {
	d := Of(o)
	if d == nil || i >= len(o.Operands) {
		return nil
	}
	at := 0
	for n := range o.Operands {
		if at >= len(d.Operands) {
			return nil
		}
		if d.Operands[at].Optional {
			last := n == len(o.Operands)-1 && slices.ContainsFunc(d.Operands, func(p Param) bool { return p.With != "" && o.Attr(p.With) != nil })
			takes := func(p Param) bool { return slices.Contains(p.Elems, in(o, n).Elem) && (p.With != "") == last }
			at += max(slices.IndexFunc(d.Operands[at:], takes), 0)
		}
		if n == i || d.Operands[at].Variadic {
			return &d.Operands[at]
		}
		at++
	}
	return nil
}

// OperandNumber is the number of the operand that stands for the parameter name;
// -1 where it is left out.
func OperandNumber(o *ir.Op, name string) int {
	for i := range o.Operands {
		if p := OperandParam(o, i); p != nil && p.Name == name {
			return i
		}
	}
	return -1
}

// operandNamed is the operand that stands for the parameter name; nil where it is left out.
func operandNamed(o *ir.Op, name string) *ir.Value {
	if i := OperandNumber(o, name); i >= 0 {
		return o.Operands[i]
	}
	return nil
}

// Attr is the definition of attribute name, nil where the op has none of that name.
func (d *Def) Attr(name string) *AttrDef {
	if d == nil {
		return nil
	}
	for i := range d.Attrs {
		if d.Attrs[i].Name == name {
			return &d.Attrs[i]
		}
	}
	return nil
}

// Lead is the attribute written before the operands, nil where there is none.
func (d *Def) Lead() *AttrDef {
	if d == nil {
		return nil
	}
	for i := range d.Attrs {
		if d.Attrs[i].Lead {
			return &d.Attrs[i]
		}
	}
	return nil
}

// Attr is o's attribute called name, or its default; nil where it has neither.
func Attr(o *ir.Op, name string) types.Attr {
	if a := o.Attr(name); a != nil {
		return a
	}
	if d := Of(o).Attr(name); d != nil {
		return d.Default
	}
	return nil
}

// Int is an integer attribute or its default; 0 where there is neither.
func Int(o *ir.Op, name string) int64 {
	a, _ := Attr(o, name).(types.Int)
	return a.V
}

// Size is an attribute that is a size, at least 0; ok is false where it is absent or none.
func Size(o *ir.Op, name string) (d dim.Dim, ok bool) { return SizeOf(Attr(o, name)) }

// SizeOf is a, an attribute, as a size.
func SizeOf(a types.Attr) (d dim.Dim, ok bool) {
	switch a := a.(type) {
	case types.Int:
		return dim.Const(a.V), a.V >= 0
	case types.Str:
		d, err := dim.Parse(string(a))
		n, number := d.Int()
		return d, err == nil && (!number || n >= 0)
	}
	return d, false
}

// Float is a floating-point attribute or its default; 0 where there is neither.
func Float(o *ir.Op, name string) float64 {
	v, _ := types.NumberOf(Attr(o, name))
	return v
}

// Str is a string, a keyword or the name of a symbol, or its default, else "".
func Str(o *ir.Op, name string) string { return types.TextOf(Attr(o, name)) }

// Bool is a boolean attribute or its default, else false; a unit attribute is true.
func Bool(o *ir.Op, name string) bool { return types.TruthOf(Attr(o, name)) }

// Strings is a list of strings; nil where it is absent or something else.
func Strings(o *ir.Op, name string) []string {
	l, _ := Attr(o, name).(types.Array)
	var out []string
	for _, e := range l {
		s, ok := e.(types.Str)
		if !ok {
			return nil
		}
		out = append(out, string(s))
	}
	return out
}

// Ints is a list of integers or its default; nil where there is neither, and
// an empty non-nil slice for [].
func Ints(o *ir.Op, name string) []int64 { return types.IntegersOf(Attr(o, name)) }

// Pairs is a list of pairs ([[0, 1], [2, 3]]), nil where absent or malformed.
func Pairs(o *ir.Op, name string) [][2]int64 {
	a, ok := Attr(o, name).(types.Array)
	if !ok {
		return nil
	}
	out := make([][2]int64, len(a))
	for i, e := range a {
		p, ok := e.(types.Array)
		if !ok || len(p) != 2 {
			return nil
		}
		for j := range p {
			n, ok := p[j].(types.Int)
			if !ok {
				return nil
			}
			out[i][j] = n.V
		}
	}
	return out
}

// Dim is the dimension number in attribute name, counted from the front;
// negative values in the text count from the back. ok is false outside the rank.
func Dim(o *ir.Op, name string, rank int) (d int, ok bool) {
	return wrapDim(Int(o, name), rank)
}

// Dims is the list of dimension numbers in attribute name, counted from the
// front, in the order written; every dimension where the attribute is absent.
// ok is false if one is outside the rank or named twice.
func Dims(o *ir.Op, name string, rank int) (ds []int, ok bool) {
	if Attr(o, name) == nil {
		ds = make([]int, rank)
		for i := range ds {
			ds[i] = i
		}
		return ds, true
	}
	seen := make([]bool, rank)
	for _, n := range Ints(o, name) {
		d, ok := wrapDim(n, rank)
		if !ok || seen[d] {
			return nil, false
		}
		seen[d] = true
		ds = append(ds, d)
	}
	return ds, true
}

func wrapDim(n int64, rank int) (int, bool) {
	if n < 0 {
		n += int64(rank)
	}
	if n < 0 || n >= int64(rank) {
		return 0, false
	}
	return int(n), true
}

// FLOP is the floating-point operations of one execution of o, 0 for ops that are
// not in the registry and ops that are not Valid. Def.FLOP defines what is counted
// of regions.
func FLOP(o *ir.Op) dim.Dim {
	switch d := Of(o); {
	case d == nil:
		return dim.Dim{}
	case d.Sparse != nil && IsSparse(o) && Valid(o):
		return WriteOut(o).FLOP()
	case d.FLOP == nil:
		return dim.Dim{}
	case Grouped(o):
		return groupFLOP(o)
	case Valid(o):
		return d.FLOP(o)
	}
	return dim.Dim{}
}

// Reduces reports whether o joins the elements along whole dimensions by a kind of
// sum or by its region, as dm.reduce does.
func Reduces(o *ir.Op) bool {
	d := Of(o)
	return d != nil && d.Reduced != nil && d.Attr("kind") != nil
}

// PerElement reports whether o computes each element of its results from the same element
// of its largest operand, and from no other: pointwise ops, and normalizations with given
// statistics.
func PerElement(o *ir.Op) bool {
	d := Of(o)
	return d != nil && (d.Is(Pointwise) || d.Row != nil && len(d.Row(o)) == 0)
}

// wholeTraffic is what an op reads of each operand and writes whose entry has no
// Traffic of its own.
func wholeTraffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	read = make([]dim.Dim, len(o.Operands))
	for i, v := range o.Operands {
		if t := v.Tensor(); t != nil {
			read[i] = t.Bytes()
		}
	}
	return read, resultBytes(o)
}

func resultBytes(o *ir.Op) dim.Dim {
	var w dim.Dim
	for _, v := range o.Results {
		if t := v.Tensor(); t != nil {
			w = w.Add(t.Bytes())
		}
	}
	return w
}

// bodyFLOP is the sum over the ops of a region, nested ones included.
func bodyFLOP(r *ir.Region) dim.Dim {
	var sum dim.Dim
	if r == nil {
		return sum
	}
	for _, b := range r.Blocks {
		for _, o := range b.Ops {
			sum = sum.Add(FLOP(o))
		}
	}
	return sum
}
