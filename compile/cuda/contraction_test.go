package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/assemble"
	"dmir/compile/interp"
	"dmir/compile/kernel"
	"dmir/compile/schedule"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/prelude"
	"dmir/gpu/ptx/ptxtest"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// productCase is a function whose body is one kernel around a contraction, and the
// tile to compute it with; without one the model chooses.
type productCase struct {
	name string
	args string // "%x: tensor<…>, %w: …"
	body string
	out  string // "%y : tensor<…>", or several
	tile Config
	rows bool // a row kernel, no contraction
	// close is a kernel whose results are compared relative to the largest element, with
	// the error of a short sum: long ones are added up in many parts
	close bool
	// elements is an element-wise kernel
	elements bool
	tf32     bool // operands of f32 are rounded to TF32
	// positions are the values of an argument of integers
	positions []int
	cell      int // the number of the cells of a sum over windows, from 1; 0: the model chooses
}

var targets = map[string]string{"sm_80": "a100-80", "sm_89": "l40s", "sm_90a": "h200", "sm_100": "b200"}

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
	target  Target
	out     *artifact.Program
	kernels assemble.Kernels
	ends    []int  // of each case: its number of outputs so far
	seed    uint64 // of the arguments
	in      []*tensor.Tensor
	want    []*tensor.Tensor
	deep    []int64 // products in each element of each output
	// The ops that compute each output, each of which the reference rounds; its order in memory.
	steps    []int
	order    [][]int
	relative []bool // errors are relative to the output's largest element
	bytes    []bool // sums of f8 products: relative, too, with what the tensor cores keep of them
	cases    []productCase
	// scattered are parts of names of kernels that may read far apart.
	scattered []string
	turns     int // calls of turn
}

func newCollection(target Target) *collection {
	out := &artifact.Program{Name: "products", Target: "cuda"}
	return &collection{
		target: target, seed: 7, out: out, kernels: assemble.Kernels{Out: out, LineOf: func(*ir.Op) int { return 0 }},
	}
}

// module is the function of a case.
func module(t *testing.T, p productCase) *ir.Module {
	t.Helper()
	values, kinds, _ := strings.Cut(p.out, " : ")
	text := fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n", p.args, kinds, p.body, values, kinds)
	options := program.Options{}
	if p.tf32 {
		options.F32Products = "tf32"
	}
	prog := program.Load(source.New("t.dmir", text), options)
	for _, d := range prog.Diags {
		t.Fatalf("%s: %s %s\n%s", p.name, d.Code, d.Message, text)
	}
	return prog.Modules[0]
}

// traffic is the prediction of the cost model for p as one kernel.
func traffic(t *testing.T, p productCase, values, kinds string) (read, written int64) {
	t.Helper()
	var names []string
	for i := range strings.Split(values, ", ") {
		names = append(names, fmt.Sprintf("%%all%d", i))
	}
	to := kinds
	if len(names) > 1 {
		to = "(" + kinds + ")"
	}
	text := fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s = dm.kernel -> %s {\n%s\ndm.yield %s : %s\n}\nreturn %s : %s\n}\n",
		p.args, kinds, strings.Join(names, ", "), to, p.body, values, kinds, strings.Join(names, ", "), kinds)
	prog := program.Load(source.New("t.dmir", text), program.Options{})
	for _, d := range prog.Diags {
		t.Fatalf("%s: %s %s\n%s", p.name, d.Code, d.Message, text)
	}
	f := cost.Function(prog.Modules[0].Funcs[0], prog.Modules[0], nil)
	read, _ = f.Read.Int()
	written, _ = f.Written.Int()
	return read, written
}

// placed is the tensor in the memory order of its type.
func placed(x *tensor.Tensor, order []int, back bool) *tensor.Tensor {
	if order == nil {
		return x
	}
	y := tensor.New(x.Elem, x.Shape...)
	for i := range x.Len() {
		rest, at := i, make([]int, len(order))
		for d := len(order) - 1; d >= 0; d-- {
			at[d] = rest % x.Shape[d]
			rest /= x.Shape[d]
		}
		j := 0
		for _, d := range order {
			j = j*x.Shape[d] + at[d]
		}
		from, to := i, j
		if back {
			from, to = j, i
		}
		y.SetFloat(to, x.Float(from))
	}
	return y
}

func (c *collection) alloc(name string, elem types.Elem, shape []int64, kind artifact.Kind, n int64) int {
	c.out.Buffers = append(c.out.Buffers, artifact.Buffer{
		Name: name, Elem: elem.String(), Shape: shape, Kind: kind, Offset: c.out.Workspace, Bytes: n, First: -1, Last: 1 << 20,
	})
	c.out.Workspace += (n + schedule.Align - 1) &^ (schedule.Align - 1)
	return len(c.out.Buffers) - 1
}

// add compiles a case and computes the expected results.
func (c *collection) add(t *testing.T, p productCase, reference bool) {
	t.Helper()
	c.cases = append(c.cases, p)
	values, kinds, _ := strings.Cut(p.out, " : ")
	m := module(t, p)
	fn := m.Funcs[0]
	outs := fn.Body.Terminator().Operands
	f, err := kernel.Of(fn.Body.Ops[:len(fn.Body.Ops)-1], outs)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	var deep int64
	switch {
	case f.Class == kernel.ClassContraction && !p.rows:
		deep = c.choose(t, f, p)
	case f.Class == kernel.ClassColumns && p.rows:
		deep = f.Rows.Rows
	case f.Class == kernel.ClassRow && p.rows:
		if deep = f.Rows.Cols; p.close {
			deep = 16
		}
	case (f.Class == kernel.ClassPointwise || f.Class == kernel.ClassLoop) && p.elements:
		deep = 1
	default:
		t.Fatalf("%s is %s", p.name, f.Class)
	}
	var options assemble.Options
	if p.cell > 0 {
		options.Tile = c.target.sums(t, f)[p.cell-1].String()
	}
	plan, err := c.target.plan(f, options)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	ls, err := assemble.Launches(f, plan)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	bodies, err := plan.Texts()
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	name := fmt.Sprintf("%s_%d", assemble.Identifier(p.name), len(c.cases))
	buffer := map[*ir.Value]int{}
	var args []*tensor.Tensor
	for _, v := range fn.Args {
		shape, _ := kernel.ShapeOf(v)
		elem := v.Elem()
		n := elem.Bytes()
		ints := make([]int, len(shape))
		for d, size := range shape {
			ints[d] = int(size)
			n *= size
		}
		if reference { // else it is not run
			x := tensor.Random(elem, ints, c.seed, uint64(len(c.in)))
			if elem == types.I32 || elem == types.UI32 {
				for i, n := range p.positions {
					x.SetInt(i, int64(n))
				}
			}
			args = append(args, x)
			c.in = append(c.in, placed(x, v.Tensor().At.Order, false))
		}
		buffer[v] = c.alloc(p.name+v.Name, elem, shape, artifact.Input, n)
		c.out.Inputs = append(c.out.Inputs, buffer[v])
	}
	for _, v := range outs {
		shape, _ := kernel.ShapeOf(v)
		n := v.Elem().Bytes()
		for _, d := range shape {
			n *= d
		}
		buffer[v] = c.alloc(p.name+v.Name, v.Elem(), shape, artifact.Output, n)
		c.out.Outputs = append(c.out.Outputs, buffer[v])
		c.deep = append(c.deep, deep)
		steps := len(f.Ops)
		if v.Op.Name == "dm.reduce" {
			steps *= 16 // sums of elements that the reference has rounded
		}
		c.steps = append(c.steps, steps)
		c.order, c.relative = append(c.order, v.Tensor().At.Order), append(c.relative, p.close)
		c.bytes = append(c.bytes, p.tile.bytes())
	}
	read, written := traffic(t, p, values, kinds)
	scratch := map[*assemble.Temp]int{}
	for _, x := range plan.Temps() {
		scratch[x] = c.alloc(p.name+".sums", x.Elem, []int64{x.N}, artifact.Temp, x.Bytes())
	}
	each := assemble.LaunchBytes(f, plan, ls, func(v *ir.Value) (n int64) { // operands are read in full
		if v != nil {
			n, _ = v.Tensor().Bytes().Int()
		}
		return n
	})
	for i, l := range ls {
		if each != nil {
			read, written = each[i].Read, each[i].Written
		}
		s := artifact.Step{Name: name + l.Suffix, Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: c.kernels.Add(l, bodies[i], name+l.Suffix, nil), Grid: l.Grid}, Differs: l.Differs, ReadBytes: read, WrittenBytes: written}
		for _, q := range l.Params {
			n := buffer[q.Value]
			if q.Temp != nil {
				n = scratch[q.Temp]
			}
			s.Launch.Args = append(s.Launch.Args, artifact.Arg{Buffer: n, Map: q.Map})
		}
		c.out.Steps = append(c.out.Steps, s)
	}
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

// turn adds the case if it is the one of n, of those that it is called with, that this run computes, or records them all.
func (c *collection) turn(t *testing.T, p productCase, n int) {
	t.Helper()
	if c.turns++; Turn(t, c.turns, n) {
		c.add(t, p, true)
	}
}

// choose sets the tile of a case for its contraction, and returns the length of its sums.
func (c *collection) choose(t *testing.T, f *kernel.Form, p productCase) int64 {
	t.Helper()
	tiled, _, err := c.target.tiled(f)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	c.target.Tiles = NewChoices()
	if p.tile.BM > 0 {
		c.target.Tiles.Set(tiled, c.target.Arch, p.tile)
		if _, ok := c.target.Tiles.Find(tiled, c.target); !ok {
			t.Fatalf("%s: %s cannot compute it", p.name, p.tile)
		}
	}
	return tiled.Depth
}

// emulate runs all cases and compares each with the reference executor, and the
// bytes that it moves with the cost model.
func (c *collection) emulate(t *testing.T) {
	t.Helper()
	if c.record(t) {
		return
	}
	if err := c.run(t); err != nil {
		t.Error(err)
	}
}

// finish writes the text of the kernels so far.
func (c *collection) finish(t *testing.T) {
	t.Helper()
	if err := c.kernels.Write(assembler{c.target}); err != nil {
		t.Fatal(err)
	}
}

func (c *collection) run(t *testing.T) error {
	t.Helper()
	need.OK(t, emulator.Check())
	c.finish(t)
	var in [][]byte
	for _, x := range c.in {
		b := tensor.Pack(x)
		in = append(in, b)
	}
	r, err := emulator.Run(context.Background(), c.out, in, emulator.Options{})
	if err != nil {
		return err
	}
	var errs []error
	for i, b := range r.Outputs {
		want := c.want[i]
		got, err := tensor.Unpack(b, want.Elem, want.Shape)
		if err != nil {
			t.Fatal(err)
		}
		got = placed(got, c.order[i], true)
		if d, ok := tensor.MaxDiff(got, want), c.within(i, want); d > ok {
			errs = append(errs, fmt.Errorf("%s: differs by %g, more than %g", c.out.Steps[c.ends[i]-1].Name, d, ok))
		}
	}
	for i, s := range c.out.Steps {
		if got := r.Steps[i]; s.Differs == "" && (got.Read != s.ReadBytes || got.Written != s.WrittenBytes) {
			errs = append(errs, fmt.Errorf("%s: read %d and wrote %d bytes, the cost model predicts %d and %d", s.Name, got.Read, got.Written, s.ReadBytes, s.WrittenBytes))
		}
	}
	return errors.Join(errs...)
}

// compile compiles all cases with NVRTC: no kernel may spill. It returns the registers
// of each kernel on the last of archs.
func (c *collection) compile(t *testing.T, archs ...string) (registers map[string]int) {
	t.Helper()
	c.finish(t)
	var headers []nvrtc.Header
	for _, h := range prelude.Files() {
		headers = append(headers, nvrtc.Header(h))
	}
	for _, arch := range archs {
		r, err := nvrtc.Compile(context.Background(), c.out.Source, headers, arch, nvrtc.Options{})
		if missing := (*nvrtc.NotFound)(nil); errors.As(err, &missing) {
			need.OK(t, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		ptxtest.Check(t, c.out, r, c.scattered...)
		registers = map[string]int{}
		for _, k := range r.Kernels {
			registers[k.Name] = k.Registers
			i := slices.IndexFunc(c.out.Kernels, func(a artifact.Kernel) bool { return a.Name == k.Name })
			shared := 0
			if i >= 0 {
				shared = c.out.Kernels[i].Block.Shared
			}
			t.Logf("%s %-40s %3d registers, %6d bytes shared", arch, k.Name, k.Registers, shared)
		}
		nvrtctest.Clean(t, r)
	}
	return registers
}

func (p productCase) of(elem string, tile Config) productCase {
	written := strings.TrimPrefix(elem, "t") // of TF32 the numbers are f32
	p.tf32 = written != elem
	p.args, p.body, p.out = strings.ReplaceAll(p.args, "ELEM", written), strings.ReplaceAll(p.body, "ELEM", written), strings.ReplaceAll(p.out, "ELEM", written)
	p.name += "_" + elem
	if tile.BM > 0 {
		p.name += fmt.Sprintf("_%dx%d", tile.BM, tile.BN)
	}
	p.tile = tile
	return p
}

func TestContractionOrders(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_80"))
	for i, p := range orders {
		c.turn(t, p.of("f16", mmaTiles[i%len(mmaTiles)]), 4)
		c.turn(t, p.of("bf16", mmaTiles[5]), 4)
		c.turn(t, p.of("f32", fmaTiles[i%len(fmaTiles)]), 4)
		c.turn(t, p.of("f64", fmaTiles[1]), 4)
		c.turn(t, p.of("i32", fmaTiles[1]), 4)
		c.turn(t, p.of("i8", fmaTiles[2]), 4)
	}
	c.emulate(t)
}

// Hopper's path: tensor maps of every order, partial tiles.
func TestContractionBulk(t *testing.T) {
	t.Parallel()
	need.Long(t)
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

func split(c Config, n int) Config {
	c.Splits = n
	return c
}

func TestContractionLong(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	for i, p := range long {
		c.turn(t, p.of("f16", wgmmaTiles[i]), 3)
		c.turn(t, p.of("bf16", wgmmaTiles[3-i]), 3)
		c.turn(t, p.of("f16", mmaTiles[i]), 3)
		c.turn(t, p.of("f16", mmaTiles[6+i]), 3)
		c.turn(t, p.of("f32", fmaTiles[i]), 3)
		p.name += "_split"
		c.turn(t, p.of("f16", split(wgmmaTiles[3-i], 3)), 3)
		c.turn(t, p.of("bf16", split(mmaTiles[5], 4)), 3)
		c.turn(t, p.of("f32", split(fmaTiles[1], 2)), 3)
		c.turn(t, p.of("f64", split(fmaTiles[2], 2)), 3)
		c.turn(t, p.of("i64", split(fmaTiles[1], 2)), 3)
	}
	c.emulate(t)
}

func TestContractionConvolutions(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		c := newCollection(targetOf(t, arch))
		for _, p := range convolutions {
			c.add(t, p.of("f16", Config{}), true)
			c.add(t, p.of("f32", Config{}), true)
		}
		c.emulate(t)
	}
}

func TestContractionReductions(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	for i, p := range reducing {
		c.add(t, p.of("f16", Config{}), true)
		c.add(t, p.of("bf16", mmaTiles[i]), true)
		c.add(t, p.of("bf16", mmaTiles[5]), true)
		c.add(t, p.of("f32", fmaTiles[[]int{0, 1, 2, 3}[i]&^1]), true)
	}
	c.emulate(t)
}

func TestContractionGroups(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		c := newCollection(targetOf(t, arch))
		for _, p := range groups {
			c.add(t, p.of("f16", Config{}), true)
			if arch == "sm_80" {
				c.add(t, p.of("f32", Config{}), true)
			}
		}
		c.emulate(t)
	}
}

func TestContractionAround(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		c := newCollection(targetOf(t, arch))
		for _, p := range around {
			c.add(t, p.of("bf16", Config{}), true)
			if arch == "sm_80" {
				c.add(t, p.of("f32", Config{}), true)
			} else {
				c.add(t, p.of("f16", Config{}), true)
			}
		}
		c.emulate(t)
	}
}

// The CUDA compiler compiles every tile with every order of the operands, a sixth of
// them in turn: registers and shared memory are reported, and none may spill.
func TestContractionCompiles(t *testing.T) {
	t.Parallel()
	need.Long(t)
	for _, arch := range []string{"sm_80", "sm_90a", "sm_100"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			c := newCollection(targetOf(t, arch))
			c.scattered = []string{"conv_transposed_f32"} // outputs of a phase lie apart where channels are first
			n := 0
			add := func(p productCase) {
				if n++; need.Turn(t, n, 6) {
					c.add(t, p, false)
				}
			}
			for i, p := range orders {
				odd := strings.HasSuffix(p.name, "odd")
				if arch == "sm_100" && i > 3 {
					break // as sm_80
				}
				for j, tile := range mmaTiles {
					if arch == "sm_90a" || odd && (i+j)%4 != 0 {
						continue // tiles with loads element by element are alike
					}
					add(p.of("f16", tile))
				}
				for j, tile := range mmaTF32Tiles {
					if arch != "sm_90a" && !odd && i < 8 && (i/2+j)%3 == 0 {
						add(p.of("tf32", tile))
					}
				}
				for j, tile := range tf32Tiles(wgmmaTiles) {
					if arch == "sm_90a" && linesOfK(p) && j%2 == 0 {
						add(p.of("tf32", tile))
					}
				}
				for j, tile := range wgmmaTiles {
					if arch == "sm_90a" && !odd && i < 8 && (tile.Path == Wgmma || (i+j)%4 == 0) {
						add(p.of([]string{"f16", "bf16"}[(i+j)%2], tile))
					}
				}
				if i < 4 {
					for _, tile := range fmaTiles {
						add(p.of([]string{"f32", "f64", "i32", "f32"}[i], tile))
					}
				}
			}
			for i, p := range gathered {
				if arch == "sm_90a" {
					add(p.of([]string{"f16", "bf16"}[i%2], gatherTiles[i%len(gatherTiles)]))
				}
			}
			for _, p := range slices.Concat(around, groups, reducing, convolutions) {
				add(p.of("bf16", Config{}))
				if arch == "sm_80" {
					add(p.of("f32", Config{}))
				}
			}
			c.compile(t, arch)
		})
	}
}

func TestContractionTypes(t *testing.T) {
	t.Parallel()
	c := newCollection(targetOf(t, "sm_90a"))
	for _, p := range exactTypes {
		c.add(t, p, true)
	}
	c.emulate(t)
}
