package randprog

import (
	"fmt"
	"slices"
	"strings"
)

// inside writes a few statements a region deeper and returns what they define.
func (w *writer) inside(n int) (text string, defined []value) {
	text, indent, vals, args := w.out.String(), w.indent, len(w.vals), len(w.args)
	outer := slices.Clone(w.vals)
	w.out = strings.Builder{}
	w.indent += "  "
	w.plain = true
	table := w.table
	w.table = slices.DeleteFunc(slices.Clone(table), func(s weighted) bool {
		return s.name == "kernel" || s.name == "if" || s.name == "while" || s.name == "scan" || s.name == "gradient" || s.name == "copy" || s.name == "grouped"
	})
	for range n {
		w.statement()
	}
	w.check(vals)
	inner := w.out.String()
	for _, v := range w.vals[vals:] {
		if !v.arg {
			defined = append(defined, v)
		}
	}
	added := w.args[args:]
	w.out = strings.Builder{}
	w.out.WriteString(text)
	w.indent, w.vals, w.table, w.plain = indent, append(outer, added...), table, false
	return inner, defined
}

// check writes a check of one of the values from number first on, which is equal to itself
// and, if it holds integers, to a value that is computed from it.
func (w *writer) check(first int) {
	var can []value
	for _, v := range w.vals[min(first, len(w.vals)):] {
		if !v.arg {
			can = append(can, v)
		}
	}
	if !w.checks || len(can) == 0 {
		return
	}
	v := can[w.r.IntN(len(can))]
	kind, same := w.pick("expect_eq", "expect_almost_eq"), v.name
	if isInt(v.elem) && w.chance(2) {
		w.names++
		same = fmt.Sprintf("%%same%d", w.names)
		fmt.Fprintf(&w.out, "%[1]s%[2]s = dm.max %[3]s, %[3]s : %[4]s\n", w.indent, same, v.name, v.typ())
	}
	fmt.Fprintf(&w.out, "%s\"check.%s\"(%s, %s) : (%[5]s, %[5]s) -> ()\n", w.indent, kind, v.name, same, v.typ())
}

func (w *writer) results(defined []value) []value {
	var out []value
	for _, v := range slices.Backward(defined) {
		if (!w.used[v.name] || w.chance(4)) && len(out) < 3 && (v.float() || !w.grad) {
			out = append(out, v)
		}
	}
	return out
}

// kernel writes a dm.kernel around statements.
func (w *writer) kernel() bool {
	if w.plain {
		return false
	}
	text, defined := w.inside(1 + w.r.IntN(4))
	yielded := w.results(defined)
	if len(yielded) == 0 {
		return false
	}
	var outs []value
	for _, v := range yielded {
		o := w.fresh(v.elem, v.shape, v.lo, v.hi, v.exact, v)
		outs = append(outs, o)
		w.used[v.name] = true
	}
	names, types := spell(outs)
	inner, innerTypes := spell(yielded)
	if len(outs) > 1 {
		types = "(" + types + ")"
	}
	fmt.Fprintf(&w.out, "%[1]s%[2]s = dm.kernel -> %[3]s {\n%[4]s%[1]s  dm.yield %[5]s : %[6]s\n%[1]s}\n", w.indent, names, types, text, inner, innerTypes)
	w.vals = append(w.vals, outs...)
	return true
}

func (w *writer) branch() bool {
	if w.plain {
		return false
	}
	p, ok := w.find(func(v value) bool { return v.elem == "i1" && len(v.shape) == 0 })
	if !ok {
		p = w.argument("i1", nil)
	}
	text, defined := w.inside(1 + w.r.IntN(4))
	yielded := w.results(defined)
	if len(yielded) == 0 {
		return false
	}
	yielded = yielded[:1]
	a := yielded[0]
	b, ok := w.find(func(v value) bool { return v.elem == a.elem && slices.Equal(v.shape, a.shape) })
	if !ok {
		return false
	}
	w.used[a.name], w.used[b.name], w.used[p.name] = true, true, true
	o := w.fresh(a.elem, a.shape, min(a.lo, b.lo), max(a.hi, b.hi), a.exact && b.exact, a, b)
	fmt.Fprintf(&w.out, "%[1]s%[2]s = dm.if %[3]s : (tensor<i1>) -> %[4]s {\n%[5]s%[1]s  dm.yield %[6]s : %[4]s\n%[1]s} else {\n%[1]s  dm.yield %[7]s : %[4]s\n%[1]s}\n",
		w.indent, o.name, p.name, o.typ(), text, a.name, b.name)
	w.vals = append(w.vals, o)
	return true
}

// loop carries a value around up to three times.
func (w *writer) loop() bool {
	if w.plain {
		return false
	}
	x, ok := w.find(ranked(1, func(v value) bool { return floats(v) && v.top() <= 10 && count(v.shape) < 1000 }))
	if !ok {
		return false
	}
	w.names++
	id := w.names
	turn := value{name: fmt.Sprintf("%%t%d", id), elem: x.elem, shape: x.shape, lo: min(-1, x.lo), hi: max(1, x.hi)}
	before := len(w.vals)
	w.vals = append(w.vals, turn)
	text, defined := w.inside(1 + w.r.IntN(4))
	w.vals = slices.Delete(w.vals, before, before+1)
	i := slices.IndexFunc(defined, func(v value) bool { return v.elem == x.elem && slices.Equal(v.shape, x.shape) })
	if i < 0 {
		return false
	}
	o := w.fresh(x.elem, x.shape, turn.lo, turn.hi, false, x)
	typ, init, carried, result := x.typ(), x.name, turn.name, o.name
	next := fmt.Sprintf("%%k%d", id)
	enter, leave, after := "", "", ""
	if w.tuples { // and the value before is carried with it
		typ = fmt.Sprintf("tuple<%[1]s, tuple<%[1]s>>", x.typ())
		init, carried, result = fmt.Sprintf("%%pack%d", id), fmt.Sprintf("%%both%d", id), fmt.Sprintf("%%last%d", id)
		pack := func(to, a, b string) string {
			return fmt.Sprintf("%[1]s%[2]s_in = dm.pack %[4]s : (%[5]s) -> tuple<%[5]s>\n%[1]s%[2]s = dm.pack %[3]s, %[2]s_in : (%[5]s, tuple<%[5]s>) -> %[6]s\n", w.indent, to, a, b, x.typ(), typ)
		}
		unpack := func(to, from string) string {
			return fmt.Sprintf("%[1]s%[2]s, %[2]s_more = dm.unpack %[3]s : (%[4]s) -> (%[5]s, tuple<%[5]s>)\n", w.indent, to, from, typ, x.typ())
		}
		w.out.WriteString(pack(init, x.name, x.name))
		next = fmt.Sprintf("%%pair%d", id)
		enter, leave, after = unpack(turn.name, carried), pack(next, fmt.Sprintf("%%k%d", id), turn.name), unpack(o.name, result)
		if w.checks {
			leave += fmt.Sprintf("%s\"check.expect_eq\"(%[2]s, %[2]s) : (%[3]s, %[3]s) -> ()\n", w.indent, next, typ)
		}
	}
	fmt.Fprintf(&w.out, `%[1]s%%z%[2]d = dm.constant dense<0> : tensor<i64>
%[1]s%%n%[2]d = dm.constant dense<%[3]d> : tensor<i64>
%[1]s%%c%[2]d, %[4]s = dm.while %%z%[2]d, %[5]s : (tensor<i64>, %[6]s) -> (tensor<i64>, %[6]s) {
%[1]s^bb0(%%i%[2]d: tensor<i64>, %[7]s: %[6]s):
%[1]s  %%m%[2]d = dm.compare lt %%i%[2]d, %%n%[2]d : (tensor<i64>, tensor<i64>) -> tensor<i1>
%[1]s  dm.yield %%m%[2]d : tensor<i1>
%[1]s} do {
%[1]s^bb0(%%i%[2]d: tensor<i64>, %[7]s: %[6]s):
%[10]s%[8]s%[1]s  %%o%[2]d = dm.constant dense<1> : tensor<i64>
%[1]s  %%j%[2]d = dm.add %%i%[2]d, %%o%[2]d : tensor<i64>
%[1]s  %%k%[2]d = dm.tanh %[9]s : %[13]s
%[11]s%[1]s  dm.yield %%j%[2]d, %[12]s : tensor<i64>, %[6]s
%[1]s}
%[14]s`, w.indent, id, 1+w.r.IntN(3), result, init, typ, carried, text, defined[i].name, enter, leave, next, x.typ(), after)
	w.used[x.name] = true
	w.vals = append(w.vals, o)
	return true
}

// scan carries a value over the first dimension of another one.
func (w *writer) scan() bool {
	if w.plain {
		return false
	}
	small := func(v value) bool { return v.top() <= 10 && count(v.shape) < 1000 }
	x, ok := w.find(func(v value) bool { return floats(v) && small(v) })
	if !ok {
		return false
	}
	s, ok := w.find(ranked(1, func(v value) bool { return small(v) && v.shape[0] < 8 && (v.float() || !w.grad) }))
	if !ok {
		return false
	}
	w.names++
	id := w.names
	turn := value{name: fmt.Sprintf("%%t%d", id), elem: x.elem, shape: x.shape, lo: min(-1, x.lo), hi: max(1, x.hi)}
	slice := value{name: fmt.Sprintf("%%e%d", id), elem: s.elem, shape: s.shape[1:], lo: s.lo, hi: s.hi, exact: s.exact, depth: s.depth}
	before := len(w.vals)
	w.vals = append(w.vals, turn, slice)
	text, defined := w.inside(2 + w.r.IntN(4))
	w.vals = slices.Delete(w.vals, before, before+2)
	i := slices.IndexFunc(defined, func(v value) bool { return v.elem == x.elem && slices.Equal(v.shape, x.shape) })
	if i < 0 {
		return false
	}
	given := []value{{name: fmt.Sprintf("%%k%d", id), elem: x.elem, shape: x.shape}}
	outs := []value{w.fresh(x.elem, x.shape, turn.lo, turn.hi, false, x, s)}
	for _, v := range w.results(defined) {
		if len(v.shape) < 4 && count(v.shape)*s.shape[0] <= most {
			given = append(given, v)
			outs = append(outs, w.fresh(v.elem, append([]int{s.shape[0]}, v.shape...), v.lo, v.hi, v.exact, v))
		}
	}
	clauses := ""
	if w.chance(2) {
		clauses += ", reverse = true"
	}
	if w.chance(3) {
		clauses += ", save = carries"
	}
	names, types := spell(outs)
	yields, yieldTypes := spell(given)
	fmt.Fprintf(&w.out, `%[1]s%[2]s = dm.scan %[3]s, %[4]s, carries = 1%[5]s : (%[6]s, %[7]s) -> (%[8]s) {
%[1]s^bb0(%[9]s: %[6]s, %[10]s: %[11]s):
%[12]s%[1]s  %[13]s = dm.tanh %[14]s : %[6]s
%[1]s  dm.yield %[15]s : %[16]s
%[1]s}
`, w.indent, names, x.name, s.name, clauses, x.typ(), s.typ(), types, turn.name, slice.name, slice.typ(), text, given[0].name, defined[i].name, yields, yieldTypes)
	w.used[x.name], w.used[s.name] = true, true
	w.vals = append(w.vals, outs...)
	return true
}

// gradient writes a dm.grad of a function of two values.
func (w *writer) gradient() bool {
	if w.extra != "" || w.plain {
		return false
	}
	x, ok := w.find(ranked(2, func(v value) bool { return v.float() && v.top() <= 10 && count(v.shape) < 1000 }))
	if !ok {
		return false
	}
	inner := &writer{r: w.r, grad: true, elem: x.elem, indent: "  ", used: map[string]bool{}}
	inner.argument(x.elem, x.shape)
	inner.vals[0].lo, inner.vals[0].hi, inner.vals[0].exact = x.lo, x.hi, x.exact
	inner.weigh()
	for range 3 + w.r.IntN(4) {
		inner.statement()
	}
	v, ok := inner.find(func(v value) bool { return v.elem == x.elem && !v.arg && v.top() < 1e3 })
	if !ok || len(inner.args) != 1 || inner.args[0].typ() != x.typ() {
		return false
	}
	loss := inner.curve("tanh", v)
	if len(loss.shape) > 0 {
		var all []int
		for d := range loss.shape {
			all = append(all, d)
		}
		loss = inner.one("reduce add", "dims = "+list(all), inner.fresh(x.elem, nil, -most, most, false), loss)
	}
	s := value{elem: x.elem}.typ()
	w.extra = fmt.Sprintf("func.func private @loss(%%a0: %s) -> %s {\n%s  return %s : %s\n}\n", x.typ(), s, inner.out.String(), loss.name, s)
	y, d := w.fresh(x.elem, nil, -most, most, false, x), w.fresh(x.elem, x.shape, -limit(x.elem), limit(x.elem), false, x)
	w.emit("grad @loss", "", []value{y, d}, []value{x})
	return true
}
