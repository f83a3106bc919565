package planned

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/pipelining"
	planner "dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// step is a random training step: layers that are calls of one function, or a recurrence, with a loss and an optimizer.
func step(r *rand.Rand) string {
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

// compared are the steps and clusters of a run of all.
const compared = 200

// The figures of each row of a table are those that the text of its plan has when it is costed by itself, and the rows are in the
// order of their time.
func TestRowsCostWhatTheirTextsDo(t *testing.T) {
	clusters := []string{"dgx-h100", "dgx-a100"}
	schedules := []pipelining.Schedule{pipelining.OneFOneB, pipelining.GPipe, pipelining.ZBH1, pipelining.ZBV}
	for i := range compared {
		if !need.Turn(t, i, 20) {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(i), 33))
		text := step(r)
		cluster, _ := machine.Lookup(clusters[i%2])
		devices := []int{2, 2, 4, 4, 4, 8, 8, 16}[r.IntN(8)]
		var fix planner.Setting
		switch r.IntN(4) {
		case 0:
			fix.Pipe, fix.Microbatches, fix.Schedule = 2, 4, string(schedules[r.IntN(len(schedules))])
		case 1:
			fix.Tensor, fix.Pipe = 2, 1
		case 2:
			fix.Pipe, fix.Microbatches = 1, 1
		}
		t.Run(fmt.Sprintf("%d on %d %s %+v", i, devices, cluster.Name, fix), func(t *testing.T) {
			p := program.Load(source.New("step.dmir", text), program.Options{Target: cluster, Compiled: Figures})
			if p.HasErrors() {
				t.Fatalf("%v\n%s", p.Diags, text)
			}
			q, err := request.New(p, request.Asked{Devices: devices})
			if err != nil {
				t.Fatal(err)
			}
			q.Options.Top, q.Options.Fix = 3, fix
			found, err := q.Search(t.Context())
			if err != nil && fix.Pipe == 2 { // there are not enough layers for such stages
				q.Options.Fix = planner.Setting{Pipe: 1, Microbatches: 1}
				found, err = q.Search(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if found.Modelled != "" {
				t.Fatalf("the figures are those of the model: %s\n%s", found.Modelled, text)
			}
			for n, row := range found.Plans {
				compare(t, found, n, row, cluster)
			}
			if !slices.IsSortedFunc(found.Plans, func(a, b *planner.Plan) int { return int(1000 * (a.Time - b.Time) / b.Time) }) {
				t.Errorf("the rows are not in the order of their time")
			}
		})
	}
}

// compare costs the text of a row by itself.
func compare(t *testing.T, found *planner.Result, n int, row *planner.Plan, on *machine.Machine) {
	t.Helper()
	text, err := found.Write(row)
	if err != nil {
		t.Fatal(err)
	}
	p := program.Load(source.New("planned.dmir", text), program.Options{Target: on})
	if p.HasErrors() {
		t.Fatalf("%v\n%s", p.Diags, text)
	}
	kept.mu.Lock()
	kept.list = nil // what the search found is no answer
	kept.mu.Unlock()
	x, err := Figures(t.Context(), p, p.Func("train").Func, on)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	sent := int64(0)
	for _, bytes := range row.Sent {
		sent += bytes
	}
	near := func(what string, promised, costs float64) {
		if math.Abs(promised-costs) > 0.01*max(promised, costs) {
			t.Errorf("row %d, %v: %s is %g in the table, and that of its text %g\n%s", n+1, row.Names, what, promised, costs, text)
		}
	}
	near("time", row.Time, x.Time.Ns/1e9)
	near("memory", float64(row.Memory.Total), float64(peak(x)))
	near("sent", float64(sent), float64(*x.Sent))
	parts := row.Memory
	if parts.Parameters+parts.Gradients+parts.States+parts.Activations+parts.Working != parts.Total || min(parts.Parameters, parts.Gradients, parts.States, parts.Activations, parts.Working) < 0 {
		t.Errorf("row %d: parts of its memory are not the total: %+v", n+1, parts)
	}
	if strings.Contains(strings.Join(row.Names, " "), "nothing is divided") {
		if *x.Sent != 0 {
			t.Errorf("row %d: nothing is divided, and its text sends %d bytes\n%s", n+1, *x.Sent, text)
		}
		const within = 0.25 // the model has the times of the kernels of this step; of layers and micro-batches that of one for all
		if math.Abs(row.Modelled-row.Time) > within*row.Time {
			t.Errorf("row %d: nothing is divided, and the model has %g s, the text %g s", n+1, row.Modelled, row.Time)
		}
	}
	t.Logf("%d: %.6g s, %-44s time %.2f of the model's", n+1, row.Time, strings.Join(row.Names, "; "), row.Time/row.Modelled)
}

func peak(x cost.Figures) int64 {
	n, _ := x.Peaks[0].Int()
	return n
}
