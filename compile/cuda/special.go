package cuda

import (
	"fmt"
	"strings"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// special is the kernel of an op that has one of its own.
func (g *generator) special(f *kernel.Form, name string) ([]launch, error) {
	for _, v := range append(append([]*ir.Value{}, f.Inputs...), f.Main.Results...) {
		if t := v.Tensor(); t != nil && t.At.Order != nil {
			return nil, fmt.Errorf("%s takes row-major tensors", f.Main.Name)
		}
	}
	switch f.Main.Name {
	case "dm.attention":
		return g.attention(f, name)
	case "dm.attention_grad":
		return g.attentionGrad(f, name)
	case "dm.cumsum":
		return g.cumsum(f, name)
	case "dm.argmax":
		return g.argmax(f, name)
	case "dm.sort", "dm.top_k":
		return g.ordered(f, name)
	}
	return nil, fmt.Errorf("no kernel computes %s", f.Main.Name)
}

// line is a tensor cut along one dimension: lines of n elements, stride inner
// apart; line r starts at (r / inner) · n · inner + r % inner.
type line struct{ lines, n, inner int64 }

func lineOfDim(o *ir.Op) line {
	shape, _ := kernel.ShapeOf(o.Operands[0])
	d, _ := op.Dim(o, "dim", len(shape))
	l := line{1, shape[d], 1}
	for i, n := range shape {
		if i != d {
			l.lines *= n
		}
		if i > d {
			l.inner *= n
		}
	}
	return l
}

// base is the C++ expression for where line r of n elements starts.
func (l line) base(n int64) string {
	if l.inner == 1 {
		return fmt.Sprintf("dm::i64(r) * %d", n)
	}
	return fmt.Sprintf("dm::i64(r / %d) * %d + r %% %d", l.inner, n*l.inner, l.inner)
}

func (l line) at(base, i string) string {
	if l.inner == 1 {
		return base + " + " + i
	}
	return fmt.Sprintf("%s + dm::i64(%s) * %d", base, i, l.inner)
}

// paramsOf are the inputs and the stored results of f.
func paramsOf(f *kernel.Form) *names {
	ns := newNames()
	for _, w := range strings.Fields("a b e r to from rank m") { // the variables of these kernels
		ns.taken[w] = true
	}
	for _, v := range f.Inputs {
		ns.add(v, artifact.In)
	}
	for _, v := range f.Outputs {
		ns.add(v, artifact.Out)
	}
	return ns
}

func blocksFor(n int64) [3]int { return [3]int{int((n + blockThreads - 1) / blockThreads), 1, 1} }

// cumsum is one thread for each line, which goes along it.
func (g *generator) cumsum(f *kernel.Form, name string) ([]launch, error) {
	o := f.Main
	l := lineOfDim(o)
	ns := paramsOf(f)
	x, y := ns.of[o.Operands[0]], ns.of[o.Results[0]]
	elem := kernel.ElemOf(o.Results[0])
	sum := register(elem)
	if sum == "float" {
		sum = "double" // a long sum of neighbours loses less; the reference does the same
	}
	i := "i"
	if op.Bool(o, "reverse") {
		i = fmt.Sprintf("(%d - i)", l.n-1)
	}
	next := "s = s + " + fmt.Sprintf("%s(dm::wide(%s[%s]))", sum, x, l.at("from", i))
	if op.Str(o, "accumulate") == "f16" {
		next = fmt.Sprintf("s = %s(dm::wide(dm::narrow<dm::f16>(s + dm::wide(%s[%s]))))", sum, x, l.at("from", i))
	}
	put := fmt.Sprintf("%s.store(%s, dm::narrow<%s>(s));", y, l.at("from", i), storage(elem))
	if op.Bool(o, "exclusive") {
		put, next = put+" "+next+";", ""
	} else {
		put, next = next+"; "+put, ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  const dm::i32 r = dm::block() * %d + dm::thread();\n", blockThreads)
	fmt.Fprintf(&b, "  if (r >= %d) return;\n  const dm::i64 from = %s;\n  %s s = 0;\n", l.lines, l.base(l.n), sum)
	fmt.Fprintf(&b, "  for (dm::i32 i = 0; i < %d; i++) {\n    %s%s\n  }\n", l.n, put, next)
	return []launch{{name: name, class: "scan", threads: blockThreads, grid: blocksFor(l.lines), params: ns.params, body: b.String()}}, nil
}

// comesBefore is the C++ condition that element b with number j stands before a
// with number i in a rising (or falling) order with NaN above everything, equal
// ones in the order of their numbers.
func comesBefore(elem types.Elem, falling bool) string {
	less, more := "(b < a)", "(b > a)"
	if elem.IsFloat() {
		less, more = "(b < a || (a != a && b == b))", "(b > a || (b != b && a == a))"
	}
	if falling {
		less, more = more, less
	}
	return fmt.Sprintf("(%s || (!%s && j < i))", less, more)
}

// argmax is one warp for each line.
func (g *generator) argmax(f *kernel.Form, name string) ([]launch, error) {
	o := f.Main
	l := lineOfDim(o)
	ns := paramsOf(f)
	x, y := ns.of[o.Operands[0]], ns.of[o.Results[0]]
	elem := kernel.ElemOf(o.Operands[0])
	better := comesBefore(elem, true)
	var b strings.Builder
	fmt.Fprintf(&b, "  const dm::i32 r = dm::block() * 4 + dm::warp();\n  if (r >= %d) return;\n  const dm::i64 from = %s;\n", l.lines, l.base(l.n))
	fmt.Fprintf(&b, "  dm::i32 i = dm::lane() < %d ? dm::lane() : 0;\n  %s a = dm::wide(%s[%s]);\n", l.n, register(elem), x, l.at("from", "i"))
	fmt.Fprintf(&b, "  for (dm::i32 j = dm::lane() + 32; j < %d; j += 32) {\n    const %s b = dm::wide(%s[%s]);\n    if (%s) { a = b; i = j; }\n  }\n",
		l.n, register(elem), x, l.at("from", "j"), better)
	word := "a"
	carry := register(elem)
	if elem.Bytes() < 4 && carry != "float" {
		carry = "dm::i32"
		word = "dm::i32(a)"
	}
	fmt.Fprintf(&b, "  for (int m = 16; m > 0; m /= 2) {\n    const %s b = %s(dm::shuffle_xor(%s, m));\n    const dm::i32 j = dm::shuffle_xor(i, m);\n    if (%s) { a = b; i = j; }\n  }\n",
		register(elem), register(elem), word, better)
	fmt.Fprintf(&b, "  if (dm::lane() == 0) %s.store(r, %s(i));\n", y, storage(kernel.ElemOf(o.Results[0])))
	return []launch{{name: name, class: "argmax", threads: 128, grid: [3]int{int((l.lines + 3) / 4), 1, 1}, params: ns.params, body: b.String()}}, nil
}

// ordered is one thread for each element, which counts those that stand before
// it: that is its place.
func (g *generator) ordered(f *kernel.Form, name string) ([]launch, error) {
	o := f.Main
	l := lineOfDim(o)
	ns := paramsOf(f)
	x := ns.of[o.Operands[0]]
	elem := kernel.ElemOf(o.Operands[0])
	most, falling := l.n, op.Bool(o, "descending")
	if o.Name == "dm.top_k" {
		most, falling = op.Int(o, "k"), op.Bool(o, "largest")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  const dm::i32 e = dm::block() * %d + dm::thread();\n  if (e >= %d) return;\n", blockThreads, l.lines*l.n)
	fmt.Fprintf(&b, "  const dm::i32 r = e / %d, i = e %% %d;\n  const dm::i64 from = %s;\n", l.n, l.n, l.base(l.n))
	fmt.Fprintf(&b, "  const %s a = dm::wide(%s[%s]);\n  dm::i32 rank = 0;\n", register(elem), x, l.at("from", "i"))
	fmt.Fprintf(&b, "  for (dm::i32 j = 0; j < %d; j++) {\n    const %s b = dm::wide(%s[%s]);\n    rank += %s;\n  }\n", l.n, register(elem), x, l.at("from", "j"), comesBefore(elem, falling))
	fmt.Fprintf(&b, "  if (rank >= %d) return;\n  const dm::i64 to = %s;\n", most, l.base(most))
	if y, ok := ns.of[o.Results[0]]; ok {
		fmt.Fprintf(&b, "  %s.store(%s, dm::narrow<%s>(a));\n", y, l.at("to", "rank"), storage(elem))
	}
	if len(o.Results) > 1 {
		if y, ok := ns.of[o.Results[1]]; ok {
			fmt.Fprintf(&b, "  %s.store(%s, %s(i));\n", y, l.at("to", "rank"), storage(kernel.ElemOf(o.Results[1])))
		}
	}
	return []launch{{name: name, class: "sort", threads: blockThreads, grid: blocksFor(l.lines * l.n), params: ns.params, body: b.String()}}, nil
}
