package randprog

import "fmt"

// grouped packs two values, takes the larger of each member and itself, and unpacks
// the members.
func (w *writer) grouped() bool {
	number := func(v value) bool { return w.anything(v) && v.elem != "i1" && !isF8(v.elem) && !isI4(v.elem) }
	x, ok := w.find(number)
	y, ok2 := w.find(number)
	if !ok || !ok2 {
		return false
	}
	a, b := w.moved(x, x.shape), w.moved(y, y.shape)
	tuple := fmt.Sprintf("tuple<%s, %s>", x.typ(), y.typ())
	fmt.Fprintf(&w.out, "%[1]s%[2]st = dm.pack %[3]s, %[4]s : (%[5]s, %[6]s) -> %[7]s\n%[1]s%[2]su = dm.max %[2]st, %[2]st : %[7]s\n%[1]s%[2]s, %[8]s = dm.unpack %[2]su : (%[7]s) -> (%[5]s, %[6]s)\n",
		w.indent, a.name, x.name, y.name, x.typ(), y.typ(), tuple, b.name)
	w.used[x.name], w.used[y.name] = true, true
	w.written += 3
	w.vals = append(w.vals, a, b)
	return true
}
