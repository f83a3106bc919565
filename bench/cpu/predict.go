package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/units"
	"dmir/bench/record"
	"dmir/compile/rates"
	"dmir/gpu/calibrate"
	"dmir/gpu/device"
)

// compared is a kernel, or a whole row, with its predicted and its measured time in ns.
type compared struct {
	Row, Kernel         string // Kernel is "" of a row
	Threads             int
	Predicted, Measured float64
	Kernels             int // of a row
}

func (c compared) off() float64 { return c.Predicted/c.Measured - 1 }

// shortest is the time below which a kernel is judged only as part of its row: the clock and what the runtime does between
// two kernels are no smaller part of it than its work.
const shortest = 5e3 // ns

// predict compares predicted with measured times of all rows, for each number of threads on the machine as it is
// calibrated for that number.
func (o *options) predict(ctx context.Context) (title string, all []compared, failed []string, err error) {
	d, _, err := device.Find("cpu")
	if err != nil {
		return "", nil, nil, err
	}
	title, _, _ = strings.Cut(d.Title(), " (")
	rows, err := predictedRows(o.here, o.models)
	if err != nil {
		return "", nil, nil, err
	}
	dir, err := os.MkdirTemp("", "bench-cpu-")
	if err != nil {
		return "", nil, nil, err
	}
	defer os.RemoveAll(dir)
	for _, n := range o.threads {
		if err := threads(n); err != nil {
			return "", nil, nil, err
		}
		start := time.Now()
		m, err := calibrated(ctx)
		if err != nil {
			return "", nil, nil, err
		}
		o.progress.Printf("calibrated for %d threads in %.0f s", n, time.Since(start).Seconds())
		steady, err := o.steady(ctx, d, m, dir)
		if err != nil {
			return "", nil, nil, err
		}
		for _, w := range rows {
			if !o.only.MatchString(w.name) {
				continue
			}
			list, err := o.compare(ctx, d, m, w, n, dir, steady)
			if err != nil {
				failed = append(failed, fmt.Sprintf("%s with %d threads: %v", w.name, n, err))
				o.progress.Print(failed[len(failed)-1])
				continue
			}
			for _, c := range list {
				o.progress.Print(c.line())
			}
			all = append(all, list...)
		}
	}
	return title, all, failed, nil
}

// predicted writes the tables of predict.
func (o *options) predicted(path, page string) error {
	title, all, failed, err := o.predict(context.Background())
	if err != nil {
		return err
	}
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), CPU: title}
	text := summaryOf(all)
	for _, f := range failed {
		text += "\n- " + f
	}
	fmt.Print(text)
	if page != "" {
		if err := record.Insert(page, "<!-- processor -->", "<!-- /processor -->", fmt.Sprintf("%s, %s:\n\n%s", title, r.Date, text)); err != nil {
			return err
		}
	}
	if err := record.Table(record.Named(path, r.CPU, r.Date), fmt.Sprintf(predictedHead, r.Date, title)+text+"\n"+detailsOf(all)); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d rows failed", len(failed))
	}
	return nil
}

// calibrated is the machine that dmir calibrate would write.
func calibrated(ctx context.Context) (*machine.Machine, error) {
	f, err := calibrate.Measure(ctx, func(string, int, int) {})
	if err != nil {
		return nil, err
	}
	m := rates.Machine(f, time.Now())
	for _, e := range rates.Elems {
		if err := rates.Measure(ctx, m, e); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// steady returns what waits until a product takes about as long as it does now, just after the machine was calibrated, but no
// longer than patience: of machines that share a processor some change their speed by half within minutes.
func (o *options) steady(ctx context.Context, d device.Device, m *machine.Machine, dir string) (func() error, error) {
	b, err := o.compile(ctx, d, m, product("steady", 384, 384, 384, false), dir)
	if err != nil {
		return nil, err
	}
	sample := func() (time.Duration, error) { return (dmir{b}).sample(5) }
	var now []time.Duration
	for range 20 {
		t, err := sample()
		if err != nil {
			return nil, err
		}
		now = append(now, t)
	}
	slices.Sort(now)
	const patience = 3 * time.Second
	return func() error {
		for start := time.Now(); ; time.Sleep(pause) {
			t, err := sample()
			if err != nil || float64(t) <= 1.08*float64(now[len(now)/2]) || time.Since(start) > patience {
				return err
			}
		}
	}, nil
}

// compare is the row and its kernels. A time is the least of several medians: others lengthen a time, and nothing shortens
// it.
func (o *options) compare(ctx context.Context, d device.Device, m *machine.Machine, w workload, n int, dir string, steady func() error) ([]compared, error) {
	b, err := o.compile(ctx, d, m, w, dir)
	if err != nil {
		return nil, err
	}
	first, err := (dmir{b}).sample(1)
	if err != nil {
		return nil, err
	}
	runs := int(min(max(20*time.Millisecond/max(first, 1), 1), 99)) | 1
	total := compared{Row: w.name, Threads: n, Measured: math.Inf(1), Kernels: len(b.steps)}
	kernels := make([]compared, len(b.steps))
	start := time.Now()
	for round := 0; round < o.rounds && (round < 3 || time.Since(start) < o.budget); round++ {
		if err := steady(); err != nil {
			return nil, err
		}
		t, err := (dmir{b}).sample(runs)
		if err != nil {
			return nil, err
		}
		total.Measured = min(total.Measured, float64(t))
		for i, s := range b.steps {
			k := &kernels[i]
			if round == 0 {
				*k = compared{Row: w.name, Kernel: s.Name, Threads: n, Predicted: b.out.Steps[i].TimeNs * float64(s.Runs), Measured: s.MeasuredNs}
			}
			k.Measured = min(k.Measured, s.MeasuredNs)
		}
	}
	for _, k := range kernels {
		total.Predicted += k.Predicted
	}
	kernels = slices.DeleteFunc(finished(kernels), func(k compared) bool { return k.Measured < shortest })
	return append([]compared{total}, kernels...), nil
}

// finished adds the steps that only finish what a kernel computes, whose cost is the kernel's, to it.
func finished(steps []compared) (kernels []compared) {
	for _, s := range steps {
		if n := len(kernels); n > 0 && s.Predicted == 0 && strings.HasPrefix(s.Kernel, kernels[n-1].Kernel+"_") {
			kernels[n-1].Measured += s.Measured
			continue
		}
		kernels = append(kernels, s)
	}
	return kernels
}

func (c compared) line() string {
	name := c.Kernel
	if name == "" {
		name = fmt.Sprintf("**all %d**", c.Kernels)
	}
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %+.0f %% |", c.Row, name, c.Threads, units.Time(c.Predicted), units.Time(c.Measured), 100*c.off())
}

// errorsOf sums up the errors of a list.
func errorsOf(list []compared) string {
	if len(list) == 0 {
		return "– | – | – | –"
	}
	es := record.ErrorsOf(list, compared.off)
	return fmt.Sprintf("%d | %.0f %% | %.0f %% | %.0f %%", len(list), 100*es.Tenth(5), 100*es.Tenth(9), 100*es.Within(0.15))
}

// kindOf is the kind of work that a row's name begins with.
func kindOf(row string) string {
	kind, _, _ := strings.Cut(row, "_")
	return kind
}

// summaryOf is a table of errors by kind of row.
func summaryOf(all []compared) string {
	var b strings.Builder
	b.WriteString("| work | threads | kernels | median error | 9 of 10 within | within 15 % | rows | median error | 9 of 10 within | within 15 % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	part := func(name string, threads int, of func(compared) bool) {
		var kernels, rows []compared
		for _, c := range all {
			switch {
			case !of(c):
			case c.Kernel == "":
				rows = append(rows, c)
			default:
				kernels = append(kernels, c)
			}
		}
		label := "" // any number
		if threads > 0 {
			label = fmt.Sprint(threads)
		}
		if len(rows) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, label, errorsOf(kernels), errorsOf(rows))
		}
	}
	var kinds []string
	var numbers []int // of threads
	for _, c := range all {
		kinds, numbers = append(kinds, kindOf(c.Row)), append(numbers, c.Threads)
	}
	slices.Sort(kinds)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, kind := range slices.Compact(kinds) {
		for _, n := range numbers {
			part(kind, n, func(c compared) bool { return kindOf(c.Row) == kind && c.Threads == n })
		}
	}
	part("all", 0, func(compared) bool { return true })
	return b.String()
}

// detailsOf is a table of all rows, those with the largest errors first.
func detailsOf(all []compared) string {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b compared) int {
		return cmp.Or(cmp.Compare(math.Abs(math.Log(b.Predicted/b.Measured)), math.Abs(math.Log(a.Predicted/a.Measured))), strings.Compare(a.Row, b.Row))
	})
	var b strings.Builder
	b.WriteString("| row | kernel | threads | predicted | measured | error |\n|---|---|--:|--:|--:|--:|\n")
	for _, c := range all {
		b.WriteString(c.line() + "\n")
	}
	return b.String()
}

// predictedRows are the rows of the contest, but for models with other weights, and those of kernels that are harder to
// predict: all permutations of transposes, gathers, depthwise convolutions, short rows, sizes from microseconds on, and the
// examples.
func predictedRows(here, models string) ([]workload, error) {
	all, err := table(here, models)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(w workload) bool { return w.fill })
	add := func(name, args, body, result string) {
		all = append(all, workload{name: name, text: function(args, "  %y = "+body, result)})
	}
	for _, shape := range [][]int{{96, 160, 224}, {24, 40, 48, 64}} {
		for _, p := range permutations(len(shape)) {
			to := make([]int, len(p))
			for i, d := range p {
				to[i] = shape[d]
			}
			x, y, dims := f32(shape...), f32(to...), strings.ReplaceAll(fmt.Sprint(p), " ", ", ")
			add("transpose_"+strings.Trim(strings.ReplaceAll(dims, ", ", ""), "[]"), "%x: "+x, fmt.Sprintf("dm.transpose %%x, dims = %s : (%s) -> %s", dims, x, y), y)
		}
	}
	for _, s := range [][3]int{{1000, 64, 4096}, {30000, 256, 4096}, {100000, 64, 65536}, {50000, 1024, 8192}, {1000000, 16, 65536}} {
		x, y := f32(s[0], s[1]), f32(s[2], s[1])
		add(fmt.Sprintf("gather_%dx%d_of_%d", s[2], s[1], s[0]), fmt.Sprintf("%%x: %s, %%i: tensor<%dxi64>", x, s[2]), fmt.Sprintf("dm.embedding %%x, %%i : (%s, tensor<%dxi64>) -> %s", x, s[2], y), y)
	}
	for _, s := range [][4]int{{32, 112, 3, 1}, {128, 56, 3, 1}, {512, 14, 3, 1}, {256, 28, 5, 2}} {
		x, k := f32(1, s[0], s[1], s[1]), f32(s[0], 1, s[2], s[2])
		add(fmt.Sprintf("depthwise_%dx%d_%dx%d", s[2], s[2], s[0], s[1]), fmt.Sprintf("%%x: %s, %%k: %s", x, k),
			fmt.Sprintf("dm.convolution %%x, %%k, padding = [[%d, %d], [%d, %d]], feature_group_count = %d : (%s, %s) -> %s", s[3], s[3], s[3], s[3], s[0], x, k, x), x)
	}
	for _, n := range []int{7, 16, 33, 64, 100} {
		x, s := f32(1<<20/n, n), f32(1<<20/n)
		add(fmt.Sprintf("rows_softmax_%d", n), "%x: "+x, "dm.softmax %x, dim = 1 : "+x, x)
		add(fmt.Sprintf("rows_sum_%d", n), "%x: "+x, fmt.Sprintf("dm.reduce add %%x, dims = [1] : (%s) -> %s", x, s), s)
		add(fmt.Sprintf("rows_norm_%d", n), fmt.Sprintf("%%x: %s, %%s: %s, %%c: %s", x, f32(n), f32(n)), fmt.Sprintf("dm.layer_norm %%x, %%s, %%c : (%s, %s, %s) -> %s", x, f32(n), f32(n), x), x)
	}
	for log := 14; log <= 27; log++ {
		x := f32(1 << log)
		add(fmt.Sprintf("add_2^%d", log), fmt.Sprintf("%%x: %s, %%z: %s", x, x), fmt.Sprintf("dm.add %%x, %%z : (%s, %s) -> %s", x, x, x), x)
		if log <= 24 {
			add(fmt.Sprintf("gelu_2^%d", log), "%x: "+x, "dm.gelu %x : "+x, x)
		}
	}
	for _, n := range []int{48, 64, 96, 128, 192, 256, 384} {
		all = append(all, product(fmt.Sprintf("gemm_%d", n), n, n, n, false))
	}
	files, err := filepath.Glob(filepath.Join(here, "../../examples/*.dmir"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".dmir")
		w := workload{name: "example_" + name, text: string(text), bind: map[string]int64{"b": 2, "n": 512}}
		switch {
		case strings.Contains(w.text, "dm.mesh"): // for several devices
			continue
		case name == "attention_symbolic":
			w.fn = "attention"
		}
		all = append(all, w)
	}
	return all, nil
}

// permutations are all of n dimensions but the identity.
func permutations(n int) (all [][]int) {
	var add func(p []int)
	add = func(p []int) {
		if len(p) == n {
			if !slices.IsSorted(p) {
				all = append(all, slices.Clone(p))
			}
			return
		}
		for d := range n {
			if !slices.Contains(p, d) {
				add(append(p, d))
			}
		}
	}
	add(nil)
	return all
}

const predictedHead = `# Predicted times on the processor, %s

%s: what the cost model predicts after dmir calibrate, for as many threads, beside the time of the same kernels. Kernels
below 5 µs are part of their rows only; no row is left out. The largest errors come first.

`
