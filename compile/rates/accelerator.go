package rates

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/compile/driver"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/calibrate"
	"dmir/gpu/device"
)

// Accelerator measures d, a GPU whose data sheet base has: what a kernel of a graph and of a stream adds, the latency of a load,
// the bandwidths of the memory and of the level-2 cache, and the rates of arithmetic, products and attention. Each constant
// is that with which the cost model predicts the measured time of a program, which is compiled as any other. What d does
// not show stays as base has it: sizes, peaks, the clock and links. So do constants whose measurement fails, which the error
// names, among them those that a deadline of ctx leaves out; without any there is no machine.
func Accelerator(ctx context.Context, d device.Device, base *machine.Machine, name string, progress calibrate.Progress) (*machine.Machine, error) {
	m := *base
	m.Name, m.Title = name, d.Title()
	m.Assumed = maps.Clone(base.Assumed)
	source := "measured by dmir calibrate --device " + d.Name() + " on " + time.Now().Format(time.DateOnly)
	m.Source = source + "; sizes, peaks, clock and links: " + base.Source
	c := base.Ceilings
	m.Ceilings = machine.Ceilings{Source: source, Bandwidth: c.Bandwidth, TensorCore: cloned(c.TensorCore), Vector: cloned(c.Vector), Paths: cloned(c.Paths)}
	g := &gpu{ctx: ctx, device: d, m: &m, random: newRandom()}
	stages := []struct {
		what    string
		measure func() error
	}{
		{"latency of the memory", g.latency},
		{"launches", g.launches},
		{"memory", g.memory},
		{"level-2 cache", g.cache},
		{"arithmetic", g.arithmetic},
		{"products", g.products},
		{"attention", g.attention},
	}
	var failed []error
	for i, s := range stages {
		progress(s.what, i, len(stages))
		err := ctx.Err()
		if err == nil {
			err = s.measure()
		}
		if err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			if f, ok := artifact.FailureOf(err); ok && f.Reason == artifact.MissingTool {
				return nil, fmt.Errorf("%s: %w", s.what, err) // as for all others
			}
			failed = append(failed, fmt.Errorf("%s: %w", s.what, err))
		}
	}
	if len(failed) == len(stages) {
		return nil, failed[0]
	}
	return &m, errors.Join(failed...)
}

// cloned is a copy of m to write to.
func cloned[K comparable](m map[K]float64) map[K]float64 {
	out := make(map[K]float64, len(m))
	maps.Copy(out, m)
	return out
}

// newRandom are the numbers that programs run on, the same each time.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// gpu is a device that is measured, and the machine as far as it is.
type gpu struct {
	ctx    context.Context
	device device.Device
	m      *machine.Machine
	random *rand.Rand
	serial bool // kernels start when the one before has ended
}

// measurements is how often a program runs; its time is the median. One that takes longer than hung does not end.
const (
	measurements = 15
	hung         = 10 * time.Second
)

// run is a program that was timed.
type run struct {
	ns, predicted float64 // of all its kernels
	dependent     bool    // they may start while the one before runs
}

// time compiles a program, in which each op and each dm.kernel is a kernel, and runs it. cold empties the caches before each run.
func (g *gpu) time(text string, cold bool) (r run, err error) {
	p := loadText(g.m, text)
	if p.HasErrors() {
		return r, errors.New(p.Diags[0].Message)
	}
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		return r, err
	}
	built, err := driver.Build(g.ctx, m, fn, driver.BuildOptions{Machine: g.m, Arch: g.device.Arch(), Skip: []string{"simplify", "fuse"}})
	if err != nil {
		return r, err
	}
	for i := range built.Kernels {
		wait := &built.Kernels[i].Block.Waits
		*wait = *wait && !g.serial
		r.dependent = r.dependent || *wait
	}
	in := make([][]byte, len(built.Inputs))
	for i, of := range built.Inputs {
		in[i] = g.contents(fn.Args[i].Type.(*types.Tensor).Elem, &built.Buffers[of])
	}
	got, err := g.device.Run(g.ctx, built, in, device.Options{Runs: measurements, Cold: cold, Timeout: hung})
	switch {
	case err != nil:
		return r, err
	case got.Untimed != "":
		return r, errors.New(got.Untimed)
	}
	r.ns = float64(got.Elapsed)
	for _, s := range built.Steps {
		r.predicted += s.TimeNs
	}
	return r, nil
}

// contents are random elements of a buffer: numbers from -1 to 1, and indices of the table.
func (g *gpu) contents(e types.Elem, b *artifact.Buffer) []byte {
	out := make([]byte, b.Size())
	if !e.IsFloat() {
		table := uint32(g.table())
		for i := 0; i+4 <= len(out); i += 4 {
			binary.LittleEndian.PutUint32(out[i:], g.random.Uint32N(table))
		}
		return out
	}
	values := make([]float64, 4096)
	for i := range values {
		values[i] = 2*g.random.Float64() - 1
	}
	block := tensor.Pack(tensor.FromFloats(e, []int{len(values)}, values))
	for n := 0; n < len(out); {
		n += copy(out[n:], block)
	}
	return out
}

// each is the time that one more repeat of what body writes adds to a program, in ns: between programs of few and many repeats the
// start of a graph cancels out.
func (g *gpu) each(few, many int, cold bool, body func(n int) string) (ns float64, err error) {
	ns, _, err = g.eachOf(few, many, cold, body)
	return ns, err
}

// eachOf is each, and whether kernels may start while the one before runs.
func (g *gpu) eachOf(few, many int, cold bool, body func(n int) string) (ns float64, dependent bool, err error) {
	a, err := g.time(body(few), cold)
	if err != nil {
		return 0, false, err
	}
	b, err := g.time(body(many), cold)
	if err != nil {
		return 0, false, err
	}
	return max(b.ns-a.ns, 1) / float64(many-few), b.dependent, nil
}

// function is a program of one function.
func function(name, args string, lines, results, kinds []string) string {
	all := strings.Join(kinds, ", ")
	return fmt.Sprintf("func.func @%s(%s) -> (%s) {\n  %s\n  return %s : %s\n}\n", name, args, all, strings.Join(lines, "\n  "), strings.Join(results, ", "), all)
}

// chain is n statements, of which each uses the result of the one before, the first one from.
func chain(op, from, typ string, n int) (lines []string, last string) {
	last = from
	for i := range n {
		lines = append(lines, fmt.Sprintf("%%%d = %s %s : %s", i, op, last, typ))
		last = fmt.Sprintf("%%%d", i)
	}
	return lines, last
}

// chained is a program of a chain.
func chained(name, op, typ string, n int) string {
	lines, last := chain(op, "%x", typ, n)
	return function(name, "%x: "+typ, lines, []string{last}, []string{typ})
}

// apart is a program of n statements that do the same, each with results of its own.
func apart(name, args, statement string, n int, kinds ...string) string {
	var lines, results []string
	for i := range n {
		own := make([]string, len(kinds))
		for k := range own {
			own[k] = fmt.Sprintf("%%r%d_%d", i, k)
		}
		lines = append(lines, strings.Join(own, ", ")+" = "+statement)
		results = append(results, own...)
	}
	return function(name, args, lines, results, slices.Repeat(kinds, n))
}

// table is the number of elements of four bytes, in a power of two, that the level-2 cache does not hold.
func (g *gpu) table() int64 {
	n := int64(1 << 24)
	for n < g.m.L2 {
		n *= 2
	}
	return n
}

// latency measures loads that wait for each other: an element is the index of the next one.
func (g *gpu) latency() error {
	table := fmt.Sprintf("tensor<%dxi32>", g.table())
	ns, err := g.each(4, 20, true, func(n int) string {
		lines, last := []string{"%y = dm.kernel -> tensor<32xi32> {"}, "%i"
		for k := range n {
			lines = append(lines, fmt.Sprintf("  %%%d = dm.gather %%t, %s : (%s, tensor<32xi32>) -> tensor<32xi32>", k, last, table))
			last = fmt.Sprintf("%%%d", k)
		}
		lines = append(lines, "  dm.yield "+last+" : tensor<32xi32>", "}")
		return function("loads", "%t: "+table+", %i: tensor<32xi32>", lines, []string{"%y"}, []string{"tensor<32xi32>"})
	})
	if err != nil {
		return err
	}
	g.m.MemoryLatency = max(ns, 1) * 1e-9
	g.known(machine.KeyMemoryLatency)
	return nil
}

// leastLaunch is the shortest launch that is believed, in seconds.
const leastLaunch = 100e-9

// launches measures empty kernels that wait for each other, in a graph, behind the end of the one before and from their own start on,
// and the one that decides about a round of a loop, behind which the host launches another graph.
func (g *gpu) launches() error {
	const tiny = "tensor<32xf32>"
	empty := func(n int) string { return chained("launches", "dm.exp", tiny, n) }
	g.serial = true
	ns, err := g.each(8, 64, false, empty)
	g.serial = false
	if err != nil {
		return err
	}
	g.m.Launch = max(ns*1e-9-g.m.Fill(), leastLaunch)
	g.known(machine.KeyLaunch)
	ns, dependent, err := g.eachOf(8, 64, false, empty)
	if err != nil {
		return err
	}
	if g.m.Dependent = 0; dependent {
		g.m.Dependent = min(max(ns*1e-9-g.m.Fill(), leastLaunch), g.m.Launch)
	}
	g.known(machine.KeyDependent)
	counted, err := g.each(4, 20, false, func(n int) string { return looped("turns", tiny, 0, n, "%one", n) })
	if err != nil {
		return err
	}
	// The text does not tell the number of turns of a loop that doubles.
	decided, err := g.each(4, 20, false, func(n int) string { return looped("rounds", tiny, 1, 1<<n, "%i", n) })
	if err != nil {
		return err
	}
	g.m.Stream = max((decided-counted)*1e-9-g.m.Fill(), g.m.Launch)
	g.known(machine.KeyStream)
	return nil
}

// looped is a program of a loop with n turns, in each of which a kernel runs and more is added to a number: it ends at a limit.
func looped(name, typ string, start, limit int, more string, n int) string {
	return fmt.Sprintf(`func.func @%[1]s(%%x: %[2]s) -> %[2]s {
  %%start = dm.constant dense<%[3]d> : tensor<i64>
  %%turns, %%y = dm.while %%start, %%x, trip_count = %[6]d : (tensor<i64>, %[2]s) -> (tensor<i64>, %[2]s) {
  ^bb0(%%i: tensor<i64>, %%u: %[2]s):
    %%limit = dm.constant dense<%[4]d> : tensor<i64>
    %%less = dm.compare lt %%i, %%limit : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %%less : tensor<i1>
  } do {
  ^bb0(%%i: tensor<i64>, %%u: %[2]s):
    %%one = dm.constant dense<1> : tensor<i64>
    %%next = dm.add %%i, %[5]s : tensor<i64>
    %%v = dm.exp %%u : %[2]s
    dm.yield %%next, %%v : tensor<i64>, %[2]s
  }
  return %%y : %[2]s
}
`, name, typ, start, limit, more, n)
}

// memory measures copies of 4 kB to 4 GB, as far as a sixteenth of the memory goes: the ceiling is what the fastest of those that no
// cache holds reaches.
func (g *gpu) memory() error {
	best := 0.0
	for n := int64(1 << 10); 4*n <= min(4<<30, max(g.m.Memory, 16<<20)/16); n *= 4 {
		ns, err := g.each(1, 3, false, func(k int) string { return chained("copies", "dm.neg", fmt.Sprintf("tensor<%dxf32>", n), k) })
		if err != nil {
			return err
		}
		if 8*n >= 4*g.m.L2 {
			best = max(best, float64(8*n)/g.work(ns))
		}
	}
	if best > 0 {
		g.m.Ceilings.Bandwidth = min(best, g.m.Bandwidth)
		g.known(machine.KeyBandwidth)
	}
	return nil
}

// work is a kernel's time in seconds without what each kernel takes.
func (g *gpu) work(ns float64) float64 { return max(ns*1e-9-g.m.Start(), 1e-9) }

// cache measures reductions of what the level-2 cache holds.
func (g *gpu) cache() error {
	best := 0.0
	for _, part := range []int64{8, 4, 2} {
		rows := g.m.L2 / part / 4096
		if rows == 0 {
			return nil
		}
		x, y := fmt.Sprintf("tensor<%dx1024xf32>", rows), fmt.Sprintf("tensor<%dxf32>", rows)
		ns, err := g.each(2, 10, false, func(n int) string {
			return apart("reads", "%x: "+x, fmt.Sprintf("dm.reduce max %%x, dims = [1] : (%s) -> %s", x, y), n, y)
		})
		if err != nil {
			return err
		}
		best = max(best, float64(rows*4096)/g.work(ns))
	}
	g.m.L2Bandwidth = max(best, g.m.Reach())
	g.known(machine.KeyL2Bandwidth)
	return nil
}

// arithmetic measures polynomials, whose elements stay in registers.
func (g *gpu) arithmetic() error {
	const terms, elements = 64, 1 << 24
	for _, e := range []types.Elem{types.F32, types.F64} {
		if g.m.Vector[e] == 0 {
			continue
		}
		t := fmt.Sprintf("tensor<%dx%s>", elements, e)
		ns, err := g.each(1, 3, false, func(n int) string {
			var lines, results []string
			for i := range n {
				lines = append(lines, fmt.Sprintf("%%y%d = dm.kernel -> %s {", i, t))
				last := "%x"
				for k := range terms {
					lines = append(lines, fmt.Sprintf("  %%m%d = dm.mul %s, %%x : %s", k, last, t), fmt.Sprintf("  %%a%d = dm.add %%m%d, %%x : %s", k, k, t))
					last = fmt.Sprintf("%%a%d", k)
				}
				lines = append(lines, "  dm.yield "+last+" : "+t, "}")
				results = append(results, fmt.Sprintf("%%y%d", i))
			}
			return function("arithmetic", "%x: "+t, lines, results, slices.Repeat([]string{t}, n))
		})
		if err != nil {
			return err
		}
		g.m.Ceilings.Vector[e] = min(2*terms*elements/g.work(ns), g.m.Vector[e])
		g.known(machine.CeilingOf(false, e))
	}
	return nil
}

// shapes are rows, columns and depth of the products that are measured of each type.
var shapes = [][3]int{{4096, 4096, 4096}, {8192, 4096, 1024}, {4096, 1024, 4096}, {2048, 8192, 8192}}

// products measures matrices that are large, of each type that the tensor cores take: twelve where these are f16, bf16 and an
// eight-bit one, whose operands are contiguous along k, as wgmma takes them; elsewhere than on Hopper they are products of f16. Rates are lower than those of multiplications by what tiles wait for, as the cost model has it.
func (g *gpu) products() error {
	for _, e := range []types.Elem{types.F16, types.BF16, types.F8E4M3FN} {
		bytes := e.Bytes() == 1
		if g.m.TensorCore[e] == 0 || bytes && g.m.Arch != "sm_90a" {
			continue
		}
		var rates []float64
		for _, s := range shapes {
			x, w, y := fmt.Sprintf("tensor<%dx%dx%s>", s[0], s[2], e), fmt.Sprintf("tensor<%dx%dx%s>", s[2], s[1], e), fmt.Sprintf("tensor<%dx%dx%s>", s[0], s[1], e)
			attr := ""
			if bytes {
				w, attr = fmt.Sprintf("tensor<%dx%dx%s>", s[1], s[2], e), ", transpose_b = true"
			}
			part, err := g.against("products", fmt.Sprintf("%%x: %s, %%w: %s", x, w), fmt.Sprintf("dm.matmul %%x, %%w%s : (%s, %s) -> %s", attr, x, w, y), y)
			if err != nil {
				return err
			}
			rates = append(rates, part*g.m.Rate(true, e, ""))
		}
		slices.Sort(rates)
		g.m.Ceilings.TensorCore[e] = min((rates[1]+rates[2])/2, g.m.TensorCore[e])
		g.known(machine.CeilingOf(true, e))
	}
	return nil
}

// against is how many times faster a kernel is than predicted, without what each kernel takes.
func (g *gpu) against(name, args, statement string, kinds ...string) (float64, error) {
	one, err := g.time(apart(name, args, statement, 1, kinds...), false)
	if err != nil {
		return 0, err
	}
	three, err := g.time(apart(name, args, statement, 3, kinds...), false)
	if err != nil {
		return 0, err
	}
	return g.work((three.predicted-one.predicted)/2) / g.work(max(three.ns-one.ns, 1)/2), nil
}

// attention measures the parts of the rate of products that attention and its gradient reach.
func (g *gpu) attention() error {
	if g.m.TensorCore[types.F16] == 0 {
		return nil
	}
	const q, sums = "tensor<4x16x4096x128xf16>", "tensor<4x16x4096xf32>"
	const three, more = "%q: " + q + ", %k: " + q + ", %v: " + q, ", %y: " + q + ", %l: " + sums + ", %d: " + q
	for _, a := range []struct {
		path, args, statement string
		kinds                 []string
	}{
		{"attention", three, fmt.Sprintf("dm.attention %%q, %%k, %%v : (%[1]s, %[1]s, %[1]s) -> %[1]s", q), []string{q}},
		{"attention_grad", three + more, fmt.Sprintf("dm.attention_grad %%q, %%k, %%v, %%y, %%l, %%d : (%[1]s, %[1]s, %[1]s, %[1]s, %[2]s, %[1]s) -> (%[1]s, %[1]s, %[1]s)", q, sums), []string{q, q, q}},
	} {
		part, err := g.against(a.path, a.args, a.statement, a.kinds...)
		if err != nil {
			return err
		}
		old := cmp.Or(g.m.Ceilings.Paths[a.path], 1)
		g.m.Ceilings.Paths[a.path] = min(old*part, 1)
		g.known(machine.CeilingOfPath(a.path))
	}
	return nil
}

// known notes that a constant is measured.
func (g *gpu) known(key string) { delete(g.m.Assumed, key) }
