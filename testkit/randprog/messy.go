package randprog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// messy writes valid programs with much wasted movement, in the layouts that people
// and tools write: chains that could be kernels, kernels, transposes, broadcasts,
// conversions, duplicates and unused values; comments at every place, ops in generic
// form or on one line, names used again, Windows line ends.
type messy struct {
	r      *rand.Rand
	out    strings.Builder
	indent string
	vals   []value  // values in scope
	lines  []string // lines of this block that may be repeated
	names  int
	depth  int
}

// Messy returns a badly written program: a function @f of about n statements and
// one that it may call. Comments that begin "// keep" stand beside ops
// of the function, those that begin "// inside" in regions.
func Messy(seed uint64, n int) string {
	w := &messy{r: rand.New(rand.NewPCG(seed, 2)), indent: "  "}
	var args []string
	for _, shape := range [][]int{{4, 8}, {4, 8}, {8, 4}, {8}, {2, 4, 8}, {}} {
		elem := w.pick("f32", "f32", "f16", "bf16")
		if len(w.vals) < 2 {
			elem = "f32"
		}
		v := value{name: fmt.Sprintf("%%x%d", len(args)), elem: elem, shape: shape}
		w.vals = append(w.vals, v)
		args = append(args, v.name+": "+v.typ())
	}
	first := len(w.vals)
	for range n {
		w.statement()
	}
	var results []value
	for _, v := range w.vals[first:] {
		if w.r.IntN(4) == 0 {
			results = append(results, v)
		}
	}
	results = append(results, w.vals[len(w.vals)-1])
	names, types := spell(results)
	text := fmt.Sprintf("// keep the header\nfunc.func @f(%s) -> (%s) {\n%s  return %s : %s\n}\n",
		strings.Join(args, ", "), types, w.out.String(), names, types) + messyCallee
	if w.r.IntN(8) == 0 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

const messyCallee = `
func.func private @callee(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = dm.tanh %x : tensor<4x8xf32>
  %z = dm.relu %y : tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
`

func (w *messy) call() {
	x, _ := w.value(func(v value) bool { return v.typ() == "tensor<4x8xf32>" }) // an argument is
	y := w.fresh(x.elem, x.shape)
	w.line(fmt.Sprintf("%s = func.call @callee(%s) : (%s) -> %s", y.name, x.name, x.typ(), y.typ()))
	w.vals = append(w.vals, y)
}

func (w *messy) pick(of ...string) string { return of[w.r.IntN(len(of))] }

// value picks one of the values that want accepts, later ones more often.
func (w *messy) value(want func(value) bool) (value, bool) {
	for range 12 {
		i := len(w.vals) - 1 - w.r.IntN(min(len(w.vals), 1+w.r.IntN(len(w.vals))))
		if want(w.vals[i]) {
			return w.vals[i], true
		}
	}
	if i := slices.IndexFunc(w.vals, want); i >= 0 {
		return w.vals[i], true
	}
	return value{}, false
}

func anyRank(n int) func(value) bool { return func(v value) bool { return len(v.shape) >= n } }

// fresh is a new value; kernels and branches reuse names, as people do.
func (w *messy) fresh(elem string, shape []int) value {
	w.names++
	name := fmt.Sprintf("%%v%d", w.names)
	if w.depth > 0 && w.r.IntN(3) > 0 {
		name = fmt.Sprintf("%%%d", w.names)
	}
	return value{name: name, elem: elem, shape: slices.Clone(shape)}
}

// comment is the start of a comment: one in a region is removed with its op.
func (w *messy) comment() string {
	if w.depth > 0 {
		return "// inside"
	}
	return "// keep"
}

// line writes one op, sometimes beside a comment or on the line before.
func (w *messy) line(text string) {
	switch w.r.IntN(14) {
	case 0:
		fmt.Fprintf(&w.out, "%s%s above\n", w.indent, w.comment())
	case 1:
		text += " " + w.comment() + " behind"
	case 2:
		text += " loc(\"layer\")"
	case 3:
		if s := w.out.String(); strings.HasSuffix(s, ">\n") && strings.LastIndex(s, "//") < strings.LastIndex(s[:len(s)-1], "\n") {
			w.out.Reset()
			w.out.WriteString(strings.TrimSuffix(s, "\n") + "  " + text + "\n")
			return
		}
	}
	w.out.WriteString(w.indent + text + "\n")
}

// op writes "result = dm.NAME ARGS : (operands) -> result", now and then in
// generic form where the op takes no clauses, and records the result.
func (w *messy) op(name, clauses string, result value, operands ...value) {
	names, types := spell(operands)
	text := fmt.Sprintf("%s = dm.%s%s : (%s) -> %s", result.name, name, strings.TrimSuffix(" "+names+clauses, ", "), types, result.typ())
	if lead, rest, ok := strings.Cut(name, " "); ok { // the clause before the operands
		text = fmt.Sprintf("%s = dm.%s %s %s%s : (%s) -> %s", result.name, lead, rest, names, clauses, types, result.typ())
	} else if clauses == "" && w.r.IntN(10) == 0 {
		text = fmt.Sprintf("%s = \"dm.%s\"(%s) : (%s) -> %s", result.name, name, names, types, result.typ())
	}
	w.line(text)
	w.lines = append(w.lines, text)
	w.vals = append(w.vals, result)
}

func (w *messy) statement() {
	switch k := w.r.IntN(25); {
	case k < 5:
		w.unary()
	case k < 9:
		w.binary()
	case k < 11:
		w.transpose()
	case k < 12:
		w.broadcast()
	case k < 14:
		w.convert()
	case k < 16:
		w.einsum()
	case k < 17:
		w.row()
	case k < 18:
		w.move()
	case k < 19:
		w.again()
	case k < 20:
		w.dropout()
	case k < 22 && w.depth == 0:
		w.kernel()
	case k < 23 && w.depth == 0:
		w.branch()
	case k < 24 && w.depth == 0:
		w.loop()
	case w.depth == 0:
		w.call()
	default:
		w.unary()
	}
}

func (w *messy) unary() {
	x, _ := w.value(anyRank(0))
	w.op(w.pick("tanh", "relu", "neg", "abs", "logistic"), "", w.fresh(x.elem, x.shape), x)
}

func (w *messy) binary() {
	x, _ := w.value(anyRank(0))
	y, ok := w.value(func(v value) bool {
		n := len(x.shape) - len(v.shape)
		return v.elem == x.elem && n >= 0 && slices.Equal(x.shape[n:], v.shape)
	})
	if !ok {
		y = x
	}
	if w.r.IntN(2) == 0 {
		x, y = y, x
	}
	shape := x.shape
	if len(y.shape) > len(shape) {
		shape = y.shape
	}
	w.op(w.pick("add", "sub", "max", "min"), "", w.fresh(x.elem, shape), x, y)
}

func (w *messy) transpose() {
	x, _ := w.value(anyRank(1))
	perm, shape := w.r.Perm(len(x.shape)), make([]int, len(x.shape))
	if w.r.IntN(3) > 0 {
		slices.Reverse(perm)
	}
	for i, p := range perm {
		shape[i] = x.shape[p]
	}
	w.op("transpose", ", dims = "+list(perm), w.fresh(x.elem, shape), x)
}

func (w *messy) broadcast() {
	x, ok := w.value(func(v value) bool { return len(v.shape) < 3 })
	if !ok {
		return
	}
	shape, dims := append([]int{w.r.IntN(2)*3 + 1}, x.shape...), make([]int, len(x.shape))
	for i := range dims {
		dims[i] = i + 1
	}
	if len(x.shape) == 1 && w.r.IntN(2) == 0 {
		shape[0] = 4
	}
	b := w.fresh(x.elem, shape)
	w.op("broadcast", ", dims = "+list(dims), b, x)
	if y, ok := w.value(func(v value) bool { return v.elem == b.elem && slices.Equal(v.shape, b.shape) && v.name != b.name }); ok {
		w.op(w.pick("add", "max"), "", w.fresh(b.elem, b.shape), y, b)
	}
}

func (w *messy) convert() {
	x, _ := w.value(anyRank(0))
	to := w.pick("f32", "f16", "bf16", "f64")
	y := w.fresh(to, x.shape)
	w.op("convert", "", y, x)
	if w.r.IntN(2) == 0 {
		w.op("convert", "", w.fresh(x.elem, x.shape), y)
	}
}

func (w *messy) einsum() {
	x, ok := w.value(func(v value) bool { return len(v.shape) == 2 })
	y, ok2 := w.value(func(v value) bool { return len(v.shape) == 2 && v.elem == x.elem })
	if !ok || !ok2 {
		return
	}
	if w.r.IntN(3) == 0 && x.shape[1] == y.shape[0] {
		w.op("matmul", "", w.fresh(x.elem, []int{x.shape[0], y.shape[1]}), x, y)
		return
	}
	a, b, shape := "ij", "jk", []int{x.shape[0], y.shape[1]}
	switch {
	case x.shape[1] == y.shape[0]:
	case x.shape[1] == y.shape[1]:
		b, shape[1] = "kj", y.shape[0]
	default:
		return
	}
	c := "ik"
	if w.r.IntN(3) == 0 {
		c = "ki"
		slices.Reverse(shape)
	}
	w.op(fmt.Sprintf("einsum %q", a+","+b+"->"+c), w.pick("", "", ", accumulate = f32"), w.fresh(x.elem, shape), x, y)
}

func (w *messy) row() {
	x, _ := w.value(anyRank(1))
	last := len(x.shape) - 1
	switch w.r.IntN(3) {
	case 0:
		w.op("softmax", fmt.Sprintf(", dim = %d", last), w.fresh(x.elem, x.shape), x)
	case 1:
		w.op("reduce "+w.pick("add", "max"), fmt.Sprintf(", dims = [%d]", last), w.fresh(x.elem, x.shape[:last]), x)
	default:
		if g, ok := w.value(func(v value) bool {
			return v.elem == x.elem && len(v.shape) == 1 && v.shape[0] == x.shape[last]
		}); ok {
			w.op("rms_norm", "", w.fresh(x.elem, x.shape), x, g)
		}
	}
}

// move writes a movement op, with or without an effect.
func (w *messy) move() {
	x, _ := w.value(anyRank(1))
	n := 1
	for _, d := range x.shape {
		n *= d
	}
	zeros := make([]int, len(x.shape))
	switch w.r.IntN(6) {
	case 0:
		w.op("reshape", "", w.fresh(x.elem, []int{n}), x)
	case 1:
		w.op("slice", ", start_indices = "+list(zeros)+", limit_indices = "+list(x.shape), w.fresh(x.elem, x.shape), x)
	case 2:
		part := slices.Clone(x.shape)
		part[0] = (part[0] + 1) / 2
		w.op("slice", ", start_indices = "+list(zeros)+", limit_indices = "+list(part), w.fresh(x.elem, part), x)
	case 3:
		y := w.fresh(x.elem, x.shape)
		w.op("reverse", ", dims = [0]", y, x)
		w.op("reverse", ", dims = [0]", w.fresh(x.elem, x.shape), y)
	case 4:
		w.op("concatenate", ", dim = 0", w.fresh(x.elem, x.shape), x)
	default:
		for range 2 {
			w.names++
			h := fmt.Sprintf("%%h%d", w.names)
			at := strings.TrimSuffix(x.typ(), ">") + ", #dm.at<host>>"
			w.line(fmt.Sprintf("%s = dm.copy %s : (%s) -> %s", h, x.name, x.typ(), at))
			back := w.fresh(x.elem, x.shape)
			w.line(fmt.Sprintf("%s = dm.copy %s : (%s) -> %s", back.name, h, at, back.typ()))
			w.vals = append(w.vals, back)
		}
	}
}

// again repeats an earlier line of the block under another name.
func (w *messy) again() {
	if len(w.lines) == 0 {
		w.unary()
		return
	}
	i := w.r.IntN(len(w.lines))
	name, rest, _ := strings.Cut(w.lines[i], " = ")
	for _, v := range w.vals {
		if v.name == name {
			twin := w.fresh(v.elem, v.shape)
			w.line(twin.name + " = " + rest)
			w.vals = append(w.vals, twin)
			return
		}
	}
}

func (w *messy) dropout() {
	x, _ := w.value(anyRank(1))
	y := w.fresh(x.elem, x.shape)
	mask := value{name: "%mask" + y.name[1:], elem: x.elem, shape: x.shape}
	results := y.name + ", " + mask.name
	if w.r.IntN(3) == 0 {
		results = y.name + ":2"
		y.name, mask.name = y.name+"#0", y.name+"#1"
	}
	w.line(fmt.Sprintf("%s = dm.dropout %s, rate = 0.5, seed = %d : (%s) -> (%s, %s)", results, x.name, w.r.IntN(2), x.typ(), y.typ(), mask.typ()))
	w.vals = append(w.vals, y)
	if w.r.IntN(2) == 0 {
		w.vals = append(w.vals, mask)
	}
}

// inside writes a block with statements of its own and returns what it defined.
func (w *messy) inside(n int) (text string, defined []value) {
	outer := *w
	w.out, w.indent, w.depth, w.lines = strings.Builder{}, outer.indent+"  ", outer.depth+1, nil
	w.vals = slices.Clone(outer.vals)
	w.names = outer.names % 3 // names in the block may be those of other blocks
	if outer.depth == 0 && w.r.IntN(2) == 0 {
		w.names = outer.names
	}
	for range n {
		w.statement()
	}
	text, defined = w.out.String(), slices.Clone(w.vals[len(outer.vals):])
	names := w.names
	*w = messy{r: outer.r, indent: outer.indent, vals: outer.vals, lines: outer.lines, names: max(outer.names, names), depth: outer.depth}
	w.out.WriteString(outer.out.String())
	return text, defined
}

func (w *messy) kernel() {
	before := slices.Clone(w.vals)
	text, defined := w.inside(1 + w.r.IntN(3))
	if shadows(defined, before) || len(defined) == 0 || strings.Contains(text, "dm.copy") {
		return
	}
	var yielded []value
	for _, v := range defined {
		if w.r.IntN(3) == 0 {
			yielded = append(yielded, v)
		}
	}
	switch last := defined[len(defined)-1]; w.r.IntN(8) {
	case 0:
		yielded = append(yielded, before[w.r.IntN(len(before))]) // a value from outside
	case 1:
		yielded = append(yielded, last, last)
	default:
		yielded = append(yielded, last)
	}
	var results []value
	for _, v := range yielded {
		results = append(results, w.fresh(v.elem, v.shape))
	}
	w.region("dm.kernel ->", results, text, yielded)
}

// shadows reports whether vs redefines a name of outer.
func shadows(vs, outer []value) bool {
	return slices.ContainsFunc(vs, func(v value) bool {
		return slices.ContainsFunc(outer, func(o value) bool { return base(o.name) == base(v.name) })
	})
}

// region writes an op with one region that yields.
func (w *messy) region(head string, results []value, text string, yielded []value) {
	names, types := spell(results)
	if len(results) > 1 && w.r.IntN(4) == 0 {
		names = results[0].name + fmt.Sprintf(":%d", len(results))
		for i := range results {
			results[i].name = base(results[0].name) + fmt.Sprintf("#%d", i)
		}
	}
	arrow := types
	if len(results) != 1 {
		arrow = "(" + types + ")"
	}
	inner, innerTypes := spell(yielded)
	fmt.Fprintf(&w.out, "%s%s = %s %s {\n%s%s  dm.yield %s : %s\n%s}\n", w.indent, names, head, arrow, text, w.indent, inner, innerTypes, w.indent)
	w.vals = append(w.vals, results...)
}

func (w *messy) branch() {
	before := slices.Clone(w.vals)
	text, defined := w.inside(1 + w.r.IntN(3))
	if shadows(defined, before) || len(defined) == 0 {
		return
	}
	last := defined[len(defined)-1]
	other, ok := w.value(func(v value) bool { return v.elem == last.elem && slices.Equal(v.shape, last.shape) })
	if !ok {
		return
	}
	w.names++
	cond := fmt.Sprintf("%%c%d", w.names)
	w.line(fmt.Sprintf("%s = dm.constant dense<%t> : tensor<i1>", cond, w.r.IntN(2) == 0))
	r := w.fresh(last.elem, last.shape)
	fmt.Fprintf(&w.out, "%[1]s%[2]s = dm.if %[3]s : (tensor<i1>) -> %[4]s {\n%[5]s%[1]s  dm.yield %[6]s : %[4]s\n%[1]s} else {\n%[1]s  dm.yield %[7]s : %[4]s\n%[1]s}\n",
		w.indent, r.name, cond, r.typ(), text, last.name, other.name)
	w.vals = append(w.vals, r)
}

// loop writes a loop of three iterations that carries one value.
func (w *messy) loop() {
	x, _ := w.value(anyRank(1))
	w.names++
	id := w.names
	before := w.vals
	w.vals = append(slices.Clone(before), value{name: fmt.Sprintf("%%turn%d", id), elem: x.elem, shape: x.shape})
	text, defined := w.inside(1 + w.r.IntN(3))
	w.vals = before
	if shadows(defined, before) || len(defined) == 0 {
		return
	}
	i := slices.IndexFunc(defined, func(v value) bool { return v.elem == x.elem && slices.Equal(v.shape, x.shape) })
	if i < 0 {
		return
	}
	r := w.fresh(x.elem, x.shape)
	fmt.Fprintf(&w.out, `  %%zero%[1]d = dm.constant dense<0> : tensor<i64>
  %%n%[1]d, %[2]s = dm.while %%zero%[1]d, %[3]s, trip_count = 3 : (tensor<i64>, %[4]s) -> (tensor<i64>, %[4]s) {
  ^bb0(%%i: tensor<i64>, %%v: %[4]s):
    %%three = dm.constant dense<3> : tensor<i64>
    %%more = dm.compare lt %%i, %%three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %%more : tensor<i1>
  } do {
  ^bb0(%%i: tensor<i64>, %%turn%[1]d: %[4]s):
    %%one = dm.constant dense<1> : tensor<i64>
    %%next = dm.add %%i, %%one : tensor<i64>
%[5]s    dm.yield %%next, %[6]s : tensor<i64>, %[4]s
  }
`, id, r.name, x.name, x.typ(), text, defined[i].name)
	w.vals = append(w.vals, r)
}
