package op

import (
	"fmt"
	"strings"

	"dmir/dialect/types"
)

// Reference is the dialect's reference page in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	var family Family
	var names []string
	flush := func() {
		if names != nil {
			fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", family, anchor(string(family)), strings.Join(names, " "))
		}
	}
	for _, d := range all {
		if d.Family != family {
			flush()
			family, names = d.Family, nil
		}
		names = append(names, fmt.Sprintf("[`%s`](#dm%s)", d.Name, d.Name))
	}
	flush()
	family = ""
	for _, d := range all {
		if d.Family != family {
			family = d.Family
			fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(string(family[:1]))+string(family[1:]))
			if text := introductions[family]; text != "" {
				b.WriteString("\n" + text)
			}
		}
		fmt.Fprintf(&b, "\n### dm.%s\n\n%s\n", d.Name, d.Markdown())
	}
	b.WriteString(discardables())
	b.WriteString("\n## Problems of the dialect\n\n| code | name | rule |\n|---|---|---|\n")
	for _, c := range Codes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Code, c.Name, c.Doc)
	}
	return b.String()
}

const referenceHead = `<!-- Generated from the op registry by "go generate ./dialect/op". Do not edit. -->

# The data-movement dialect

Every op is written ` + "`results = dm.op operands, clauses {attributes} : type`" + `; the type is ` + "`(operands) -> results`" + `, or one type where all
operands and results share it. A leading attribute stands before the operands: ` + "`dm.reduce add %x, dims = [1]`" + `.

- **Shapes.** A size is a number or a symbol: ` + "`tensor<?x512xf16, #dm.at<dims = [b]>>`" + `. The same symbol is the same size within a function; a formula
  such as ` + "`2*n`" + ` or ` + "`(h + 1)/2`" + ` (rounded down) may be named too. A ` + "`?`" + ` without a name is a size of its own that agrees with every other until run time.
  A call gives the symbols of the function that it calls the sizes of its operands, and the function's rules must hold for these: one that takes
  ` + "`tensor<?x?xf32, #dm.at<dims = [m, 2*h]>>`" + ` is called in several sizes, all of them with an even number of columns.
  A function that is for some sizes only says so: ` + "`attributes {dm.sizes = {n = {min = 2, max = 512}}}`" + `; other sizes are an error where they are bound.
- **Broadcasting.** The operands of element-wise ops broadcast as in NumPy, which moves no bytes of its own.
- **Element types.** Operands of an op have one element type unless its entry states otherwise; nothing is converted silently. Half precision is
  computed and accumulated in f32 and rounded once, unless ` + "`accumulate = f16`" + `. The two f8 types are stored, moved, converted and contracted.
- **i4 and ui4.** Two elements take a byte, the first one its low half; a tensor of n elements takes ⌈n / 2⌉ bytes. They are stored, moved and converted: convert to compute. Files of arrays hold them as int8 and uint8. Other types, such as i2, are refused.
- **Dimensions** are counted from 0; negative ones count from the back.
- **FLOP.** Addition, subtraction, multiplication, division and each transcendental count 1, a multiply-add 2; max, min, compare, select, convert, abs, neg, copy and relu 0.
  Integer arithmetic counts none.
- **Bytes.** Every op reads every operand once and writes every result once, each at its own size, unless its entry states otherwise.
- **Gradients.** ` + "`dm.grad`" + ` differentiates functions in reverse mode. Each entry states the cotangents of its op: dx is that of operand x, dy that of result y.
  Formulas of several steps are computed in at least f32 and rounded once. Integers have no cotangents; composites without a formula are differentiated
  through their expansion, ` + "`dm.map` and `dm.if`" + ` through their regions, ` + "`dm.scan` and a `dm.while`" + ` with a known or bounded trip count by a loop in the other direction.
- **Groups.** A value may be a tuple of tensors, ` + "`!layer = tuple<tensor<8x8xf32>, tensor<8xf32>>`" + `, at any depth: functions take and return it, ` + "`dm.pack` and `dm.unpack`" + ` make it
  and give its members, ` + "`dm.grad`" + ` gives the tuple of its members' gradients, loops and branches carry it, and ops marked member by member work on each of its members. Other ops take the members alone.
  What runs has no tuples: the members of the argument ` + "`%params`" + ` are the inputs ` + "`params.0`, `params.1.0`" + ` and so on, each with its attributes, and so are results.
- **Sparse tensors.** The encoding of a type may state a format, by which a tensor stores some of its elements: ` + "`tensor<8192x8192xf32, #dm.csr<nnz = e>>`" + `; see [sparse tensors](#sparse-tensors).
  Each entry states which of its operands may be sparse, and how its result is stored; other ops refuse them. What runs has no sparse tensors but their components, which are inputs of their own:
  of the argument ` + "`%a`" + ` ` + "`a.positions`, `a.coordinates` and `a.values`" + `. Gradients are those of the values; which elements are stored is not differentiated.
- **Many devices.** A placement may state how the pieces of a tensor lie on the devices of a mesh: ` + "`tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>`" + `; see [distribution](#distribution).
- **Inputs.** An argument without a given input is filled with seeded random numbers. Its attribute ` + "`{dm.init = 0.0}`" + ` makes them all that number, as the state
  of an optimizer before the first step; ` + "`{dm.stddev = 0.02}`" + ` gives them that standard deviation, as the weights of a network,
  and ` + "`{dm.init = #dm.file<\"weights.npz\", \"name\">}`" + ` the elements of an array in a file.
- **State.** A result with the attribute ` + "`{dm.state = \"w\"}`" + ` is the next value of the argument ` + "`%w`" + `, which has its type: ` + "`-> (tensor<f32>, tensor<4x4xf32> {dm.state = \"w\"})`" + `.
  The function is then a step, which ` + "`dmir run --steps`" + ` repeats with what the step before returned. Such an argument is donated: the plan writes the result over
  it where every other reader runs before. Generic form has the argument's number in place of its name. (XLA calls this input-output aliasing.)
- **Donation.** An argument with the attribute ` + "`{dm.donated}`" + ` may be overwritten: updates of a part of it, and loops that carry it, work in its memory if
  nothing reads the old value afterwards, and the caller must not use it any more. (JAX and XLA call this buffer donation.) A function does not change its other arguments.
- **Divides.** The dimensions of an op that can be divided over the devices of a mesh, in operands and results together: each device then computes its pieces of the results from its pieces of
  the operands. Where a dimension that is summed is divided, or another reduction, the devices have parts of the results, partial values. Other dimensions are whole on every device.
- **Exchanges.** Dimensions that can be divided as well, because the devices exchange what they lack.
- **Elsewhere** lists what PyTorch, JAX, NumPy, ONNX, StableHLO and MLIR call an op. They are no names of the dialect, but diagnostics, completion and
  ` + "`dmir explain`" + ` find the op by them.
- **Generic form.** Every attribute of these tables is a property under its name; keywords are strings: ` + "`\"dm.compare\"(%x, %y) <{direction = \"lt\"}>`" + `.

| family | ops |
|---|---|
`

func anchor(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

// Markdown is the text on the reference page and in hovers about d, without its
// heading.
func (d *Def) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n%s\n\n", strings.ToUpper(d.Summary[:1])+d.Summary[1:], d.Doc)
	params := func(what string, ps []Param) {
		if len(ps) == 0 {
			return
		}
		fmt.Fprintf(&b, "| %s | element types | |\n|---|---|---|\n", what)
		for _, p := range ps {
			fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", p.Name, many(p), ElemsText(p.Elems), p.Doc)
		}
		b.WriteString("\n")
	}
	params("operand", d.Operands)
	params("result", d.Results)
	if len(d.Attrs) > 0 {
		b.WriteString("| attribute | kind | default | |\n|---|---|---|---|\n")
		for _, a := range d.Attrs {
			fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", a.Name, lead(a), kindText(a), defaultText(a), a.Doc)
		}
		b.WriteString("\n")
	}
	if len(d.Regions) > 0 {
		b.WriteString("| region | |\n|---|---|\n")
		for _, r := range d.Regions {
			name := "`" + r.Name + "`"
			if r.Keyword != "" {
				name += " (after `" + r.Keyword + "`)"
			}
			if r.Optional {
				name += ", optional"
			}
			fmt.Fprintf(&b, "| %s | %s |\n", name, r.Doc)
		}
		b.WriteString("\n")
	}
	if names := d.elsewhere(); names != "" {
		fmt.Fprintf(&b, "**Elsewhere.** %s.\n\n", names)
	}
	if d.Sparse != nil {
		fmt.Fprintf(&b, "**Sparse.** %s\n\n", d.Sparse.Doc)
	}
	if d.Derivative != nil {
		fmt.Fprintf(&b, "**Gradient.** %s\n\n", d.Derivative.Doc)
	}
	if text := d.division(); text != "" {
		fmt.Fprintf(&b, "**Divides.** %s\n\n", text)
	}
	if d.Exchanges != "" {
		fmt.Fprintf(&b, "**Exchanges.** %s\n\n", d.Exchanges)
	}
	fmt.Fprintf(&b, "```mlir\n%s\n```\n\nClass %s", d.Example, d.Class)
	for _, f := range []struct {
		holds bool
		text  string
	}{
		{d.Is(Pointwise), "element by element"},
		{d.Is(Memberwise), "of tuples member by member"},
		{d.Is(Commutative), "operands may be swapped"},
		{d.Is(View), "moves nothing when the order is kept"},
		{d.Expand != nil, "expands into simpler ops"},
		{d.Is(Random), "depends on a seed"},
	} {
		if f.holds {
			b.WriteString("; " + f.text)
		}
	}
	b.WriteString(".")
	return b.String()
}

// division states how d is divided over devices.
func (d *Def) division() string {
	switch {
	case d.Whole != "":
		return "Nothing: " + d.Whole
	case d.Divides == "" && d.Is(Pointwise):
		return "Every dimension."
	}
	return d.Divides
}

func many(p Param) string {
	switch {
	case p.Variadic:
		return "…"
	case p.Optional:
		return ", optional"
	}
	return ""
}

func lead(a AttrDef) string {
	if a.Lead {
		return ", leading"
	}
	return ""
}

func kindText(a AttrDef) string {
	if a.Enum == nil {
		return string(a.Kind)
	}
	words := make([]string, len(a.Enum))
	for i, w := range a.Enum {
		words[i] = "`" + w + "`"
	}
	return strings.Join(words, " ")
}

func defaultText(a AttrDef) string {
	switch v := a.Default.(type) {
	case nil:
		if a.Optional {
			return "may be absent"
		}
		return "required"
	case types.Float:
		return fmt.Sprintf("`%g`", v.V)
	case types.Int:
		return fmt.Sprintf("`%d`", v.V)
	default:
		return "`" + v.String() + "`"
	}
}

// ElemsText lists element types for people, in groups where there are many:
// "f64 f32 f16 bf16", "f8, floats, integers, i1"; "any" for nil.
func ElemsText(elems []types.Elem) string {
	if elems == nil {
		return "any"
	}
	has := map[types.Elem]bool{}
	for _, e := range elems {
		has[e] = true
	}
	var parts []string
	for _, g := range []struct {
		name  string
		elems []types.Elem
	}{
		{"floats", floats},
		{"f8", float8s},
		{"integers", integers},
		{"i4, ui4", int4s},
		{"signed integers", signed},
		{"i1", bools},
	} {
		whole := len(elems) > len(g.elems) || len(g.elems) > 1
		for _, e := range g.elems {
			whole = whole && has[e]
		}
		if !whole {
			continue
		}
		parts = append(parts, g.name)
		for _, e := range g.elems {
			delete(has, e)
		}
	}
	for _, e := range elems {
		if has[e] {
			parts = append(parts, e.String())
		}
	}
	return strings.Join(parts, ", ")
}
