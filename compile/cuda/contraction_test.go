package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/gpu/prelude"
	"dmir/syntax/source"
)

// product is a function whose body is one kernel around a contraction, and the
// tile to compute it with; without one the model chooses.
type productCase struct {
	name string
	args string // "%x: tensor<…>, %w: …"
	body string
	out  string // "%y : tensor<…>", or several
	tile Config
}

var targets = map[string]string{"sm_80": "a100-80", "sm_90a": "h200", "sm_100": "b200"}

func targetOf(t *testing.T, arch string) Target {
	t.Helper()
	m, ok := machine.Lookup(targets[arch])
	if !ok {
		t.Fatalf("no machine for %s", arch)
	}
	return Target{Arch: arch, Machine: m}
}

// collection puts the kernels of many cases into one program.
type collection struct {
	*builder
	ends []int // of each case: its number of outputs so far
	in   []*tensor.Tensor
	want []*tensor.Tensor
	deep []int64 // products in each element of each output
}

func newCollection(target Target) *collection {
	c := &collection{builder: &builder{
		generator: newGenerator(target), kernels: map[string]int{}, used: map[string]bool{},
		line: func(*ir.Op) int { return 0 }, out: &artifact.Program{Name: "products"},
	}}
	return c
}

func (c *collection) alloc(name string, elem types.Elem, shape []int64, kind artifact.Kind, n int64) int {
	c.out.Buffers = append(c.out.Buffers, artifact.Buffer{
		Name: name, Elem: elem.String(), Shape: shape, Kind: kind, Offset: c.out.Workspace, Bytes: n, First: -1, Last: 1 << 20,
	})
	c.out.Workspace += aligned(n)
	return len(c.out.Buffers) - 1
}

// add compiles a case and computes what it should give.
func (c *collection) add(t *testing.T, p productCase, reference bool) {
	t.Helper()
	values, kinds, _ := strings.Cut(p.out, " : ")
	text := fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n", p.args, kinds, p.body, values, kinds)
	prog := program.Load(source.New("t.dmir", text), program.Options{})
	for _, d := range prog.Diags {
		t.Fatalf("%s: %s %s\n%s", p.name, d.Code, d.Message, text)
	}
	m := prog.Modules[0]
	fn := m.Funcs[0]
	outs := fn.Body.Terminator().Operands
	f, err := kernel.Of(fn.Body.Ops[:len(fn.Body.Ops)-1], outs)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	if f.Class != kernel.ClassContraction {
		t.Fatalf("%s is %s", p.name, f.Class)
	}
	tiled, err := f.Tiled()
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	if p.tile.BM > 0 {
		c.tile = func(*kernel.Tiled, []Config) (Config, bool) { return p.tile, true }
	} else {
		c.tile = nil
	}
	ls, err := c.generator.kernels(f, c.unique(identifier(p.name)))
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	buffer := map[*ir.Value]int{}
	var args []*tensor.Tensor
	for i, v := range fn.Args {
		shape, _ := kernel.ShapeOf(v)
		elem := kernel.ElemOf(v)
		ints := make([]int, len(shape))
		for d, n := range shape {
			ints[d] = int(n)
		}
		x := tensor.Random(elem, ints, 7, uint64(len(c.in)+i))
		args = append(args, x)
		buffer[v] = c.alloc(p.name+v.Name, elem, shape, artifact.Input, x.Bytes())
		c.out.Inputs = append(c.out.Inputs, buffer[v])
	}
	for _, v := range outs {
		shape, _ := kernel.ShapeOf(v)
		n := kernel.ElemOf(v).Bytes()
		for _, d := range shape {
			n *= d
		}
		buffer[v] = c.alloc(p.name+v.Name, kernel.ElemOf(v), shape, artifact.Output, n)
		c.out.Outputs = append(c.out.Outputs, buffer[v])
		c.deep = append(c.deep, tiled.Depth)
	}
	scratch := map[*temp]int{}
	for _, x := range temps(ls) {
		scratch[x] = c.alloc(p.name+".sums", x.elem, []int64{x.n}, artifact.Temp, x.n*x.elem.Bytes())
	}
	for _, l := range ls {
		s := artifact.Step{Name: l.name, Kernel: c.kernel(l, 0), Grid: l.grid, Differs: l.differs}
		for _, q := range l.params {
			n := buffer[q.value]
			if q.temp != nil {
				n = scratch[q.temp]
			}
			s.Args = append(s.Args, artifact.Arg{Buffer: n, Map: q.tmap})
		}
		c.out.Steps = append(c.out.Steps, s)
	}
	c.in = append(c.in, args...)
	if reference {
		r, err := interp.Run(context.Background(), m, fn, args, interp.Options{})
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		c.want = append(c.want, r.Outputs...)
	}
	for range outs {
		c.ends = append(c.ends, len(c.out.Steps))
	}
}

// emulate runs all cases and compares each with the reference executor.
func (c *collection) emulate(t *testing.T) {
	t.Helper()
	if err := emulator.Check(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	c.builder.finish()
	var in [][]byte
	for _, x := range c.in {
		b, err := tensor.Pack(x)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, b)
	}
	r, err := emulator.Run(context.Background(), c.out, in, emulator.Options{})
	if err != nil {
		fail(t, err, c.out.Source)
	}
	t.Logf("compiled in %v, ran %d steps in %v", r.Compile, len(c.out.Steps), r.Run)
	for i, b := range r.Outputs {
		want := c.want[i]
		got, err := tensor.Unpack(b, want.Elem, want.Shape)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := tensor.MaxDiff(got, want), tolerance(want.Elem, c.deep[i]); d > ok {
			t.Errorf("%s: differs by %g, more than %g", c.out.Steps[c.ends[i]-1].Name, d, ok)
		}
	}
	for i, s := range c.out.Steps {
		if s.Differs != "" {
			continue
		}
		var read, written int64
		seen := map[int]bool{}
		for k, a := range s.Args {
			if seen[a.Buffer] {
				continue
			}
			seen[a.Buffer] = true
			if c.out.Kernels[s.Kernel].Params[k].Mode == artifact.Out {
				written += c.out.Buffers[a.Buffer].Bytes
			} else {
				read += c.out.Buffers[a.Buffer].Bytes
			}
		}
		if got := r.Steps[i]; got.Read != read || got.Written != written {
			t.Errorf("%s: read %d and wrote %d bytes, its operands have %d and %d", s.Name, got.Read, got.Written, read, written)
		}
	}
}

func numbered(s string) string {
	var b strings.Builder
	for i, l := range strings.Split(s, "\n") {
		fmt.Fprintf(&b, "%4d %s\n", i+1, l)
	}
	return b.String()
}

// tolerance for sums of n products: the result's rounding, and f32's on the way.
func tolerance(elem types.Elem, n int64) float64 {
	grow := 4 + math.Sqrt(float64(n))
	switch elem {
	case types.F64:
		return grow * 0x1p-50
	case types.F32:
		return grow * 0x1p-22
	case types.F16:
		return 0x1p-10 + grow*0x1p-22
	case types.BF16:
		return 0x1p-7 + grow*0x1p-22
	case types.F8E4M3FN:
		return 0x1p-3
	case types.F8E5M2:
		return 0x1p-2
	}
	return 0
}

// compile has real NVRTC compile all cases: no kernel may spill.
func (c *collection) compile(t *testing.T, archs ...string) {
	t.Helper()
	c.builder.finish()
	var headers []nvrtc.Header
	for _, h := range prelude.Files() {
		headers = append(headers, nvrtc.Header{Name: h.Name, Text: h.Text})
	}
	for _, arch := range archs {
		r, err := nvrtc.Compile(context.Background(), c.out.Source, headers, arch, nvrtc.Options{})
		var missing *nvrtc.NotFound
		if errors.As(err, &missing) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			fail(t, err, c.out.Source)
		}
		for _, k := range r.Kernels {
			i := slices.IndexFunc(c.out.Kernels, func(a artifact.Kernel) bool { return a.Name == k.Name })
			shared := 0
			if i >= 0 {
				shared = c.out.Kernels[i].Shared
			}
			t.Logf("%s %-40s %3d registers, %6d bytes shared", arch, k.Name, k.Registers, shared)
		}
		for _, k := range r.Spilled() {
			t.Errorf("%s: %s spills %d bytes", arch, k.Name, k.SpillStores)
		}
	}
}

// Every order of the operands and the result, in sizes that fill no tile.
var orders = func() []productCase {
	var out []productCase
	for _, eq := range []string{"mk,nk->mn", "mk,kn->mn", "km,nk->mn", "km,kn->mn", "mk,nk->nm", "km,kn->nm"} {
		for _, size := range []struct {
			name    string
			m, n, k int
		}{{"even", 72, 88, 40}, {"odd", 35, 69, 37}} {
			of := map[byte]int{'m': size.m, 'n': size.n, 'k': size.k}
			shape := func(letters string) string {
				return fmt.Sprintf("tensor<%dx%dxELEM>", of[letters[0]], of[letters[1]])
			}
			left, right := shape(eq[:2]), shape(eq[3:5])
			y := shape(eq[7:])
			out = append(out, productCase{
				name: strings.NewReplacer(",", "_", "->", "_").Replace(eq) + "_" + size.name,
				args: "%x: " + left + ", %w: " + right,
				body: fmt.Sprintf("%%y = dm.einsum %q %%x, %%w : (%s, %s) -> %s", eq, left, right, y),
				out:  "%y : " + y,
			})
		}
	}
	return out
}()

func (p productCase) of(elem string, tile Config) productCase {
	p.args, p.body, p.out = strings.ReplaceAll(p.args, "ELEM", elem), strings.ReplaceAll(p.body, "ELEM", elem), strings.ReplaceAll(p.out, "ELEM", elem)
	p.name += "_" + elem
	if tile.BM > 0 {
		p.name += fmt.Sprintf("_%dx%d", tile.BM, tile.BN)
	}
	p.tile = tile
	return p
}

func TestContractionOrders(t *testing.T) {
	c := newCollection(targetOf(t, "sm_80"))
	for i, p := range orders {
		c.add(t, p.of("f16", mmaTiles[i%len(mmaTiles)]), true)
		c.add(t, p.of("bf16", mmaTiles[5]), true)
		c.add(t, p.of("f32", fmaTiles[i%len(fmaTiles)]), true)
		c.add(t, p.of("f64", fmaTiles[1]), true)
		c.add(t, p.of("i32", fmaTiles[1]), true)
		c.add(t, p.of("i8", fmaTiles[2]), true)
	}
	c.emulate(t)
}

// fail ends the test with the lines of the source around those that err names.
func fail(t *testing.T, err error, src string) {
	t.Helper()
	if dir := os.Getenv("DMIR_KEEP"); dir != "" {
		_ = os.WriteFile(dir, []byte(src), 0o600)
	}
	msg := err.Error()
	if len(msg) > 3000 {
		msg = msg[:3000]
	}
	t.Fatal(msg)
}

// Hopper's path: maps of every order, tiles that the product does not fill.
func TestContractionBulk(t *testing.T) {
	c := newCollection(targetOf(t, "sm_90a"))
	for i, p := range orders {
		if strings.HasSuffix(p.name, "odd") {
			continue // strides that are no multiple of 16 bytes
		}
		c.add(t, p.of("f16", wgmmaTiles[i/2%len(wgmmaTiles)]), true)
		c.add(t, p.of("bf16", wgmmaTiles[(i/2+1)%len(wgmmaTiles)]), true)
	}
	c.emulate(t)
}

func TestDump(t *testing.T) {
	c := newCollection(targetOf(t, "sm_90a"))
	c.add(t, orders[2].of("f16", wgmmaTiles[0]), true)
	c.builder.finish()
	t.Log(c.out.Source)
}
