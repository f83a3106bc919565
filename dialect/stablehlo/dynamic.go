package stablehlo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/parse"
)

// A program may leave sizes open, "?", as jax.export writes it with symbolic shapes. They become
// numbers at import: those of arguments are bound, and what the program computes of them (known.go)
// is folded, so that the sizes of all other values follow. Functions with open sizes are private to
// that: their body is converted where they are called, with the sizes that hold there.

func dynamics() map[string]conversion {
	return map[string]conversion{
		"dynamic_broadcast_in_dim": sizedBy(1, broadcastInDim), "dynamic_reshape": sizedBy(1, reshape),
		"dynamic_iota": sizedBy(0, iota), "dynamic_pad": dynamicPad, "real_dynamic_slice": realDynamicSlice,
		"dynamic_conv": dynamicConvolution,
	}
}

// isOpen reports whether t is a function that has open sizes, or that JAX gives sizes as arguments.
func (c *importer) isOpen(t *ast.Op) bool {
	text := c.src.Slice(t.Span())
	return strings.Contains(text, "?x") || strings.Contains(text, globalConstant)
}

// globalConstant names the number that an argument of JAX's is in every call.
const globalConstant = "jax.global_constant"

// platformIndex is the one that says which of the platforms that the program was exported for runs it.
const platformIndex = "_platform_index"

// maxExpanded bounds the ops that the calls of functions with open sizes are expanded to.
const maxExpanded = 1 << 20

// openSize is dimension d of an argument by its name in the text.
type openSize struct {
	arg string
	d   int
}

// bound is the signature of t, a function with open sizes, with numbers for those of its arguments
// and for arguments that are numbers themselves; nil, with a diagnostic, where one is not known.
func (c *importer) bound(t *ast.Op, s *signature, args []ast.BlockArg) (r *signature) {
	n := &node{importer: c, t: t, name: op.Func}
	defer c.recovered(t, func() { r = nil })
	n.must(len(t.Regions) == 1 && len(t.Regions[0].Blocks) > 0, Unsupported, "@%s has no body", s.name)
	n.must(len(args) == len(s.written), "DM142", "the body of @%s has %d arguments, but its type has %d", s.name, len(args), len(s.written))
	formulas := n.formulas()
	bound := *s
	bound.in, bound.written, bound.donated, bound.own, bound.fixed = nil, nil, nil, nil, map[int]int64{}
	for _, d := range s.ownOut {
		n.must(stateOf(d) < 0, Unsupported, "a step (%s) whose sizes are open", op.StateAttr)
	}
	var missing []string
	need := func(sym string) (int64, bool) {
		if !slices.Contains(c.m.Sizes, sym) {
			c.m.Sizes = append(c.m.Sizes, sym)
		}
		x, ok := c.bind[sym]
		if !ok && !slices.Contains(missing, sym) {
			missing = append(missing, sym)
		}
		return x, ok
	}
	taken, passed := map[string]bool{}, n.passedOn()
	bound.args = slices.Clone(args)
	if ops := t.Regions[0].Blocks[0].Ops; len(ops) > 1 {
		c.tail = ops[len(ops)-2]
	}
	for i, a := range args {
		if other, is := passed[a.Name]; is && a.Name == n.argumentName(a, map[string]bool{}) && !taken[other.Name] {
			bound.args[i] = other
		}
		if name := s.constants[i]; name != "" {
			bound.fixed[i] = 0
			if _, given := c.bind[name]; name != platformIndex || given {
				bound.fixed[i], _ = need(name)
			}
			continue
		}
		name := strings.TrimPrefix(n.argumentName(bound.args[i], taken), "%")
		if x, ok := s.written[i].(*types.Tensor); ok && x.Rank() == 0 && x.Elem.IsInt() { // a size, where one is given for it
			if size, given := c.bind[name]; given {
				need(name)
				bound.fixed[i] = size
				continue
			}
		}
		bound.written = append(bound.written, withSizes(s.written[i], func(d int) int64 {
			f, ok := formulas[openSize{a.Name, d}]
			if !ok {
				f = dim.Sym(name + "." + strconv.Itoa(d))
			}
			for _, sym := range f.Symbols() {
				need(sym)
			}
			x, _ := f.Eval(c.bind).Int()
			return max(0, x)
		}))
		for range splitTypes(s.written[i : i+1]) {
			at := len(splitTypes(s.written[:i]))
			bound.donated, bound.own = append(bound.donated, s.donated[at]), append(bound.own, s.own[at])
		}
	}
	bound.in = splitTypes(bound.written)
	if len(missing) > 0 {
		d := c.report(t, openSizes, t.Head(), "@%s leaves open: %s", s.name, strings.Join(missing, ", "))
		d.Help = "give each a number: --bind " + strings.Join(missing, "=8,") + "=8, or [bind] in dmir.toml"
		return nil
	}
	return &bound
}

// withSizes is t with size(d) for each dimension d that is open.
func withSizes(t types.Type, size func(d int) int64) types.Type {
	if x, ok := t.(compound); ok {
		parts := x.parts()
		for i, p := range parts {
			parts[i] = withSizes(p, size)
		}
		return x.with(parts)
	}
	x, ok := t.(*types.Tensor)
	if !ok || !types.HasUnnamed(t) {
		return t
	}
	shape := slices.Clone(x.Shape)
	for d := range shape {
		if shape[d].IsUnnamed() {
			shape[d] = dim.Const(size(d))
		}
	}
	return x.With(shape...)
}

// JAX says in a check's message what the sizes are that it reads of arguments.
var (
	derived = regexp.MustCompile(`from specification '([^']*)' for dimension [^(]*\(= \{(\d+)\}\)`)
	checked = regexp.MustCompile(`dimension size [^(]*\(= \{(\d+)\}\) and the specification '([^']*)'`)
)

// formulas are the sizes of arguments in the symbols that the program names: in the checks of them
// and in the calls that pass them on.
func (n *node) formulas() map[openSize]dim.Dim {
	out := map[openSize]dim.Dim{}
	sizes := map[string]openSize{} // of arguments, by the names of the numbers
	learn := func(use ast.Use, formula string) {
		at, is := sizes[use.Name]
		if _, has := out[at]; !is || has {
			return
		}
		if f, err := dim.Parse(formula); err == nil {
			out[at] = f
		}
	}
	for _, t := range n.t.Regions[0].Blocks[0].Ops {
		switch canonical(t.Name) {
		case "stablehlo.get_dimension_size":
			if o := n.attributes(t); len(t.Operands) == 1 && len(t.Results) == 1 {
				sizes[t.Results[0].Name] = openSize{t.Operands[0].Name, o.intOr("dimension", 0)}
			}
		case "stablehlo.custom_call":
			message, _ := n.attributes(t).value("error_message").(types.Str)
			say := func(number, formula string) {
				if k, err := strconv.Atoi(number); err == nil && k+1 < len(t.Operands) {
					learn(t.Operands[k+1], formula)
				}
			}
			for _, m := range derived.FindAllStringSubmatch(string(message), -1) {
				say(m[2], m[1])
			}
			for _, m := range checked.FindAllStringSubmatch(string(message), -1) {
				say(m[1], m[2])
			}
		case "func.call":
			if len(t.Symbols) == 0 {
				continue
			}
			name, _ := types.ParseSymbol(t.Symbols[0].Name).Name()
			if s := n.funcs[name]; s != nil {
				for i, use := range t.Operands {
					if i < len(s.constants) && s.constants[i] != "" {
						learn(use, s.constants[i])
					}
				}
			}
		}
	}
	return out
}

// passedOn are the arguments of a function that calls another one with them, as jax.export writes @main, by
// their names in the text and with those that the other one's locations give them.
func (n *node) passedOn() map[string]ast.BlockArg {
	out := map[string]ast.BlockArg{}
	for _, t := range n.t.Regions[0].Blocks[0].Ops {
		if canonical(t.Name) != "func.call" || len(t.Symbols) == 0 {
			continue
		}
		name, _ := types.ParseSymbol(t.Symbols[0].Name).Name()
		f := n.trees[name]
		if f == nil || f.Func == nil || len(f.Func.Args) != len(t.Operands) {
			continue
		}
		called := &node{importer: n.importer, t: f}
		for i, a := range f.Func.Args {
			if named := called.argumentName(a, map[string]bool{}); named != a.Name {
				out[t.Operands[i].Name] = ast.BlockArg{Name: named}
			}
		}
	}
	return out
}

// attributes is t with its attributes alone.
func (n *node) attributes(t *ast.Op) *node {
	o := &node{importer: n.importer, t: t, name: canonical(t.Name), attrs: map[string]attr{}}
	if t.Form == ast.Custom {
		o.pretty()
	} else {
		o.dicts()
	}
	return o
}

// expanded is the body of a function with open sizes, for the values that a call gives it. Its ops have the
// place of the call, so that they are in the order of the text, but for a call that ends its function, as
// jax.export writes @main, and stands before the body.
func (n *node) expanded(name string) []*ir.Value {
	if t := n.trees[name]; n.t != n.tail || t.Off < n.t.Off {
		held := n.held
		n.importer.held = true
		defer func() { n.importer.held = held }()
	}
	if r := n.trees[name].Regions; len(r) > 0 && len(r[0].Blocks) > 0 {
		n.importer.expansions += len(r[0].Blocks[0].Ops)
	}
	n.must(n.importer.expansions <= maxExpanded, Unsupported, "the calls of functions with open sizes are more than %d ops", maxExpanded)
	caller := n.caller
	n.importer.caller = n.b.At.Loc
	defer func() { n.importer.caller = caller }()
	m := *n
	m.in = n.joined(n.in, n.kinds)
	return n.split(m.inlined(name))
}

// sizedBy is f for a result whose sizes operand k holds, which f does not take.
func sizedBy(k int, f conversion) conversion {
	return func(n *node) []*ir.Value {
		n.takes(k + 1)
		if to := n.result(0); types.HasUnnamed(to) {
			n.out = slices.Clone(n.out)
			n.out[0] = tensorOf(to.Elem, n.numbers64(k)...)
		}
		n.in = n.in[:k]
		return f(n)
	}
}

// numbers64 are the integers of operand k, which must be known.
func (n *node) numbers64(k int) []int {
	ns := n.known(n.in[k])
	if ns == nil {
		if d := constantOf(n.in[k]); d != nil && d.Elem.IsInt() && d.File() == nil && d.Len() <= maxKnown {
			ns = slices.Clone(d.Spread())
			if all := product(n.shape(n.in[k])); len(ns) == 1 && all <= maxKnown {
				ns = slices.Repeat(ns, all)
			}
		}
	}
	if ns == nil {
		d := n.report(n.t, Unsupported, n.t.Head(), "operand %d of %s, %s, decides about sizes, but follows from values that are not known before the program runs", k, n.name, n.in[k].Type)
		d.Help = "give an argument that is a size its number: --bind NAME=8"
		panic(bailout{})
	}
	out := make([]int, len(ns))
	for i, x := range ns {
		n.must(-maxSize <= x && x <= maxSize, "DM141", "operand %d of %s contains %d, which is out of range", k, n.name, x)
		out[i] = int(x)
	}
	return out
}

func dynamicPad(n *node) []*ir.Value {
	n.takes(5)
	n.sameElems(n.in[:2])
	low, high, interior := n.numbers64(2), n.numbers64(3), n.numbers64(4)
	rank := len(n.shape(n.in[0]))
	n.must(len(low) == rank && len(high) == rank && len(interior) == rank, "DM142", "%s has another number of paddings than %s has dimensions", n.name, n.in[0].Type)
	return []*ir.Value{n.padded(n.in[0], n.in[1], low, high, interior)}
}

// realDynamicSlice has its bounds as operands. Where the first element is computed, the size is what is added
// to it for the last.
func realDynamicSlice(n *node) []*ir.Value {
	n.takes(4)
	if start := n.in[1]; n.known(start) == nil {
		end := n.in[2].Op
		var size *ir.Value
		if end != nil && end.Name == "dm.add" {
			for i, v := range end.Operands {
				if repeats(v, start, 16) {
					size = end.Operands[1-i]
				}
			}
		}
		n.must(size != nil, Unsupported, "%s of a size that is not known before the program runs is not supported", n.name)
		n.in = []*ir.Value{n.in[0], start, size, n.in[3]}
		sizes, shape := n.numbers64(2), n.shape(n.in[0])
		n.must(len(sizes) == len(shape) && slices.Equal(n.numbers64(3), ones(len(shape))), Unsupported, "%s of this form is not supported", n.name)
		in := []*ir.Value{n.in[0]}
		for k := range shape {
			n.must(0 <= sizes[k] && sizes[k] <= shape[k], "DM141", "%s takes %d of dimension %d, which has the size %d", n.name, sizes[k], k, shape[k])
			in = append(in, n.element(start, k))
		}
		return []*ir.Value{n.op("dynamic_slice", in, intsAttr("slice_sizes", sizes))}
	}
	return []*ir.Value{n.within(n.numbers64(1), n.numbers64(2), n.numbers64(3))}
}

// repeats reports whether v and w are computed by the same ops from the same values.
func repeats(v, w *ir.Value, depth int) bool {
	if v == w {
		return true
	}
	p, q := v.Op, w.Op
	if depth == 0 || p == nil || q == nil || p.Name != q.Name || v.Index != w.Index || len(p.Regions)+len(q.Regions) > 0 || len(p.Operands) != len(q.Operands) || !types.Equal(v.Type, w.Type) || len(p.Attrs) != len(q.Attrs) {
		return false
	}
	for i, a := range p.Attrs {
		if a.Name != q.Attrs[i].Name || a.Value.String() != q.Attrs[i].Value.String() {
			return false
		}
	}
	for i := range p.Operands {
		if !repeats(p.Operands[i], q.Operands[i], depth-1) {
			return false
		}
	}
	return true
}

// element is number k of a list of integers, computed alone where the list is put together of numbers.
func (n *node) element(list *ir.Value, k int) *ir.Value {
	if ns := n.known(list); ns != nil {
		return n.whole(list.Elem(), int(ns[k]))
	}
	if o := list.Op; o != nil && len(n.shape(list)) == 1 {
		switch o.Name {
		case "dm.reshape":
			if len(n.shape(o.Operands[0])) == 0 {
				return o.Operands[0]
			}
		case "dm.concatenate":
			for _, v := range o.Operands {
				if size := n.shape(v)[0]; k < size {
					return n.element(v, k)
				} else {
					k -= size
				}
			}
		case "dm.clamp", "dm.add", "dm.sub", "dm.max", "dm.min":
			if !slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return !slices.Equal(n.shape(v), n.shape(list)) }) {
				in := make([]*ir.Value, len(o.Operands))
				for i, v := range o.Operands {
					in[i] = n.element(v, k)
				}
				return n.op(o.Name, in)
			}
		}
	}
	return n.reshape(n.slice(list, 0, k, k+1))
}

// put gives the op an attribute that is a list of integers.
func (n *node) put(name string, list []int) {
	x, err := parse.Attr("[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]") + "]")
	if err != nil {
		n.failError(n.t.Head(), err)
	}
	n.attrs[name] = attr{x, n.t.Head()}
}

// dynamicReduceWindow is a custom call with the windows as operands and a function that combines.
func dynamicReduceWindow(n *node) []*ir.Value {
	count := (len(n.in) - 5) / 2
	n.must(count > 0 && len(n.in) == 2*count+5, "DM142", "%s takes operands, as many initial values, and five lists, but has %d operands", n.name, len(n.in))
	t := n.called("combines")
	for i, attr := range []string{"window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding"} {
		n.put(attr, n.numbers64(2*count+i))
	}
	n.in, n.t = n.in[:2*count], t
	return reduceWindow(n)
}

// dynamicConvolution has its padding as an operand.
func dynamicConvolution(n *node) []*ir.Value {
	n.takes(3)
	n.put("padding", n.numbers64(2))
	n.in = n.in[:2]
	return convolution(n)
}

// shapeAssertion is a check of sizes, which must hold.
func shapeAssertion(n *node) []*ir.Value {
	n.must(len(n.in) > 0, "DM142", "%s takes what must be true", n.name)
	holds := n.known(n.in[0])
	n.must(len(holds) == 1, Unsupported, "%s checks what is not known before the program runs", n.name)
	if holds[0] != 0 {
		return nil
	}
	message, _ := n.value("error_message").(types.Str)
	text, _, _ := strings.Cut(string(message), ". Using the following")
	for i, v := range n.in[1:] {
		if x := n.known(v); len(x) == 1 {
			text = strings.ReplaceAll(text, "{"+strconv.Itoa(i)+"}", strconv.FormatInt(x[0], 10))
		}
	}
	n.fail(openSizes, "the sizes that are bound are none that the program is for: %s", text)
	return nil
}
