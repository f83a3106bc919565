package randprog

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Step is a random training step: layers that are calls of one function, or a recurrence, with a loss and an optimizer.
func Step(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	size := func(list ...int) int { return list[r.IntN(len(list))] }
	batch, width, inner := size(16, 32, 64, 96), size(64, 128, 256), size(128, 256, 512)
	elem := pick("f32", "f32", "bf16")
	var b strings.Builder
	fmt.Fprintf(&b, "!x = tensor<%dx%dx%s>\n!h = tensor<%[1]dx%[4]dx%[3]s>\n!w = tensor<%[2]dx%[4]dx%[3]s>\n!b = tensor<%[4]dx%[3]s>\n!v = tensor<%[4]dx%[2]dx%[3]s>\n!l = tensor<%[3]s>\n\n", batch, width, elem, inner)
	layers := 1 + r.IntN(3)
	shared := r.IntN(4) == 0 // by all layers
	own := layers
	if shared {
		own = 1
	}
	var params, types []string
	for i := range own {
		params = append(params, fmt.Sprintf("w%d", i), fmt.Sprintf("b%d", i), fmt.Sprintf("v%d", i))
		types = append(types, "!w", "!b", "!v")
	}
	moments := r.IntN(3) // of the optimizer, for each parameter
	args := "%x: !x, %y: !x"
	results := "!l"
	for _, m := range []string{"", "m_", "n_"}[:1+moments] {
		for i, p := range params {
			args += fmt.Sprintf(", %%%s%s: %s {dm.stddev = 0.1}", m, p, types[i])
			results += fmt.Sprintf(", %s {dm.state = \"%s%s\"}", types[i], m, p)
		}
	}
	all := strings.Join(types, ", ")
	named := func(prefix string) string {
		return "%" + prefix + strings.Join(params, ", %"+prefix)
	}
	wrt := make([]string, len(params))
	for i := range wrt {
		wrt[i] = fmt.Sprint(i + 2)
	}
	if moments == 2 {
		args += ", %n: tensor<i64> {dm.init = 1}"
	}
	fmt.Fprintf(&b, "func.func @train(%s)\n    -> (%s) {\n", args, results)
	fmt.Fprintf(&b, "  %%loss, %s = dm.grad @loss %%x, %%y, %s, wrt = [%s] : (!x, !x, %s) -> (!l, %s)\n", named("d_"), named(""), strings.Join(wrt, ", "), all, all)
	out, outs := "%loss", "!l"
	var states [3]string
	for i, p := range params {
		t := types[i]
		switch moments {
		case 0:
			fmt.Fprintf(&b, "  %%next_%s = dm.sgd %%%[1]s, %%d_%[1]s, lr = 0.1 : (%[2]s, %[2]s) -> %[2]s\n", p, t)
		case 1:
			fmt.Fprintf(&b, "  %%next_%s, %%next_m_%[1]s = dm.momentum %%%[1]s, %%d_%[1]s, %%m_%[1]s, lr = 0.1 : (%[2]s, %[2]s, %[2]s) -> (%[2]s, %[2]s)\n", p, t)
		case 2:
			fmt.Fprintf(&b, "  %%next_%s, %%next_m_%[1]s, %%next_n_%[1]s = dm.adam %%%[1]s, %%d_%[1]s, %%m_%[1]s, %%n_%[1]s, %%n, lr = 0.1 : (%[2]s, %[2]s, %[2]s, %[2]s, tensor<i64>) -> (%[2]s, %[2]s, %[2]s)\n", p, t)
		}
		for k, m := range []string{"", "m_", "n_"}[:1+moments] {
			states[k] += fmt.Sprintf(", %%next_%s%s", m, p)
		}
	}
	out += strings.Join(states[:], "")
	outs += strings.Repeat(", "+all, 1+moments)
	fmt.Fprintf(&b, "  return %s : %s\n}\n\nfunc.func private @loss(%%x: !x, %%y: !x", out, outs)
	for i, p := range params {
		fmt.Fprintf(&b, ", %%%s: %s", p, types[i])
	}
	b.WriteString(") -> !l {\n")
	last := "%x"
	for i := range layers {
		k := min(i, own-1)
		fmt.Fprintf(&b, "  %%h%d = func.call @layer(%s, %%w%d, %%b%[3]d, %%v%[3]d) : (!x, !w, !b, !v) -> !x\n", i, last, k)
		last = fmt.Sprintf("%%h%d", i)
	}
	fmt.Fprintf(&b, "  %%e = dm.sub %s, %%y : !x\n  %%q = dm.mul %%e, %%e : !x\n  %%l = %s %%q : (!x) -> !l\n  return %%l : !l\n}\n\n", last, pick("dm.mean", "dm.reduce add"))
	b.WriteString("func.func private @layer(%x: !x, %w: !w, %b: !b, %v: !v) -> !x {\n")
	in := "%x"
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "  %%s = dm.rms_norm %%x, dims = [1] : (!x) -> !x\n") // between two products a softmax would be an attention, which the search takes as it is written
		in = "%s"
	}
	fmt.Fprintf(&b, "  %%z = dm.matmul %s, %%w : (!x, !w) -> !h\n  %%c = dm.add %%z, %%b : (!h, !b) -> !h\n  %%a = dm.%s %%c : !h\n", in, pick("tanh", "gelu", "relu", "silu"))
	b.WriteString("  %o = dm.matmul %a, %v : (!h, !v) -> !x\n")
	if r.IntN(2) == 0 {
		b.WriteString("  %r = dm.add %x, %o : !x\n  return %r : !x\n}\n")
	} else {
		b.WriteString("  return %o : !x\n}\n")
	}
	return b.String()
}
