package cost_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/shard"
	"dmir/syntax/source"
	"dmir/testkit/canceltest"
)

// divided are the functions of the golden program and of the examples that are divided.
func divided(t *testing.T) map[string]*program.Program {
	t.Helper()
	out := map[string]*program.Program{}
	opts := program.Options{Target: lookup(t, "dgx-h100")}
	a, err := txtar.ParseFile("testdata/divided.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out["divided.txtar"] = load(t, "mlp.dmir", string(a.Files[0].Data), opts)
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "split = @") {
			out[filepath.Base(path)] = load(t, path, string(text), opts)
		}
	}
	return out
}

// The lines of the text have, together, what each device runs, and the text of what it runs costs the
// same.
func TestLinesAreWhatADeviceRuns(t *testing.T) {
	count, partial := 0, 0
	for name, p := range divided(t) {
		for i, f := range p.Funcs {
			d, problem := f.Divide()
			if problem != nil {
				t.Fatalf("%s: @%s: %s", name, f.Func.Name, problem.Msg)
			}
			if d == nil {
				continue
			}
			count++
			for _, o := range f.Func.Body.Ops {
				for _, v := range o.Results {
					if s := d.Sharding(v); s != nil && len(s.Partial) > 0 {
						partial++
					}
				}
			}
			var flop, moved, ns int64
			sent := map[string]int64{}
			for _, e := range d.Lines.Entries {
				a, _ := e.FLOP.Int()
				b, _ := e.Moved().Int()
				flop, moved, ns = flop+a, moved+b, ns+int64(e.Time(p.Target).Ns)
				list, known := e.Sent()
				if !known {
					t.Errorf("%s: @%s line %d: what is sent is not known", name, f.Func.Name, e.Line())
				}
				for _, s := range list {
					sent[s.Axes] += s.Bytes
				}
			}
			wantFLOP, _ := d.Device.FLOP.Int()
			wantMoved, _ := d.Device.Moved().Int()
			o := d.Device.Overlap(p.Target)
			if flop != wantFLOP || moved != wantMoved || math.Abs(float64(ns)-o.Compute-o.Comm-o.SavedNs) > float64(len(d.Lines.Entries)) {
				t.Errorf("%s: @%s: lines have %d FLOP, %d B, %d ns; a device %d, %d, %g", name, f.Func.Name, flop, moved, ns, wantFLOP, wantMoved, o.Compute+o.Comm+o.SavedNs)
			}
			all, _ := d.Device.Sent()
			for _, s := range all {
				if sent[s.Axes] != s.Bytes {
					t.Errorf("%s: @%s: lines send %d along %s, a device %d", name, f.Func.Name, sent[s.Axes], s.Axes, s.Bytes)
				}
			}
			if o.Ns > o.Compute+o.Comm+1 || math.Abs(o.Ns-o.Compute-o.ExposedNs) > 1 {
				t.Errorf("%s: @%s: %+v does not add up", name, f.Func.Name, o)
			}
			again := deviceText(t, p.Modules[0], d.Fn)
			q := program.Load(source.New("device.dmir", again), program.Options{Target: p.Target})
			if q.HasErrors() {
				t.Fatalf("%s: @%s: %s\n%s", name, f.Func.Name, q.Diags[0].Message, again)
			}
			g := q.Func(f.Func.Name)
			if !g.FLOP.Equal(d.Device.FLOP) || !g.Moved().Equal(d.Device.Moved()) || math.Abs(g.Time(p.Target).Ns-d.Lines.Time(p.Target).Ns) > 1 {
				t.Errorf("%s: @%s: its text costs %v FLOP, %v B, %g ns; function %d", name, f.Func.Name, g.FLOP, g.Moved(), g.Time(p.Target).Ns, i)
			}
		}
	}
	if count < 4 || partial == 0 {
		t.Errorf("%d divided functions, %d values that are first partial", count, partial)
	}
}

// deviceText is the text of fn with the meshes of m.
func deviceText(t *testing.T, m *ir.Module, fn *ir.Func) string {
	t.Helper()
	c := &ir.Module{Src: m.Src}
	for _, o := range m.Ops {
		if o.Name == op.Mesh {
			c.Ops = append(c.Ops, o)
		}
	}
	c.AddFunc(fn)
	c.Ops = append(c.Ops, fn.Op)
	text, err := print.Pretty(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What a device sends is what the definitions say, and the kinds of package network the same.
func TestSentIsByDefinition(t *testing.T) {
	p := load(t, "f.dmir", `dm.mesh @pod {data = 2, model = 4}
func.func @f(%x: tensor<16x24xf32>) -> tensor<16x24xf32> attributes {dm.mesh = @pod} {
  %a = dm.all_reduce add %x, axes = ["model"] : tensor<16x24xf32>
  %b = dm.reduce_scatter add %a, dim = 0, axes = ["data", "model"] : (tensor<16x24xf32>) -> tensor<2x24xf32>
  %c = dm.all_gather %b, dim = 0, axes = ["data", "model"] : (tensor<2x24xf32>) -> tensor<16x24xf32>
  %d = dm.all_to_all %c, split = 0, concat = 1, axes = ["model:(2)2"] : (tensor<16x24xf32>) -> tensor<8x48xf32>
  %e = dm.collective_permute %d, pairs = [[0, 1], [1, 0], [2, 2]], axes = ["model"] : tensor<8x48xf32>
  dm.send %e, from = 0, to = 1, axes = ["data"] : (tensor<8x48xf32>) -> ()
  %g = dm.recv from = 0, to = 1, axes = ["data"] : tensor<16x24xf32>
  return %g : tensor<16x24xf32>
}
`, program.Options{Target: lookup(t, "dgx-h100")})
	const bytes = 16 * 24 * 4
	want := map[string]int64{
		"dm.all_reduce": 2 * bytes * 3 / 4, "dm.reduce_scatter": bytes * 7 / 8, "dm.all_gather": bytes * 7 / 8,
		"dm.all_to_all": bytes / 2, "dm.collective_permute": bytes / 2, "dm.send": bytes / 2, "dm.recv": 0,
	}
	f := only(t, p)
	total := int64(0)
	for _, e := range f.Entries {
		sent, known := e.Sent()
		n := cost.TotalSent(sent)
		if total += n; !known || n != want[e.Op.Name] {
			t.Errorf("%s sends %d, want %d", e.Op.Name, n, want[e.Op.Name])
		}
		if e.Comm == nil {
			continue
		}
		x, err := e.Comm.Estimate(p.Target)
		if err != nil {
			t.Fatal(err)
		}
		if e.Op.Name != "dm.collective_permute" && x.Sent != e.Comm.Sent {
			t.Errorf("%s: package network counts %d", e.Op.Name, x.Sent)
		}
		if got, ok := shard.TransferOf(e.Op, f.Mesh()); !ok || got.Sent != n {
			t.Errorf("%s: %+v", e.Op.Name, got)
		}
	}
	sent, _ := f.Sent()
	if text := cost.SentText(sent); cost.TotalSent(sent) != total || !strings.Contains(text, "along data,model") || !strings.Contains(text, "along model:(2)2") {
		t.Errorf("%s, %d in all", text, total)
	}
}

// A product that does not need what is reduced hides it; one that does, waits.
func TestOverlap(t *testing.T) {
	text := func(operand string) string {
		return `dm.mesh @pair {data = 2}
func.func @f(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>, tensor<4096x4096xf32>) attributes {dm.mesh = @pair} {
  %s = dm.all_reduce add %x, axes = ["data"] : tensor<4096x4096xf32>
  %y = dm.matmul %w, ` + operand + ` : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %s, %y : tensor<4096x4096xf32>, tensor<4096x4096xf32>
}
`
	}
	opts := program.Options{Target: lookup(t, "dgx-h100")}
	free, bound := only(t, load(t, "f.dmir", text("%w"), opts)), only(t, load(t, "f.dmir", text("%s"), opts))
	a, b := free.Overlap(opts.Target), bound.Overlap(opts.Target)
	if !a.Known || !b.Known || a.ExposedNs != 0 || math.Abs(b.ExposedNs-b.Comm) > 1 || a.Ns >= b.Ns || math.Abs(a.Ns-a.Compute) > 1 || math.Abs(b.Ns-b.Compute-b.Comm) > 1 {
		t.Errorf("free %+v, bound %+v", a, b)
	}
	if free.Time(opts.Target).Ns != a.Ns {
		t.Errorf("the function takes %g, its schedule %g", free.Time(opts.Target).Ns, a.Ns)
	}
}

// A function with symbols is divided once they have sizes.
func TestDivideNeedsSizes(t *testing.T) {
	const text = `dm.mesh @pod {data = 2}
func.func @f(%x: tensor<?x64xf32, #dm.at<dims = [n], split = @pod[{data}, {}]>>) -> tensor<64xf32> {
  %s = dm.reduce add %x, dims = [0] : (tensor<?x64xf32, #dm.at<dims = [n], split = @pod[{data}, {}]>>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
`
	open := only(t, load(t, "f.dmir", text, program.Options{}))
	if d, problem := open.Divide(); d != nil || problem == nil || !strings.Contains(problem.Msg, "n") {
		t.Errorf("without a size: %v, %v", d, problem)
	}
	if open.PerDevice() != open {
		t.Error("without a size the figures are those of one device")
	}
	bound := only(t, load(t, "f.dmir", text, program.Options{Bind: map[string]int64{"n": 7}}))
	d, problem := bound.Divide()
	if d == nil {
		t.Fatal(problem)
	}
	if got := d.Fn.Args[0].Type.String(); !strings.Contains(got, "4x64") {
		t.Errorf("a piece of 7 rows on 2 devices is %s", got)
	}
}

// A division ends where its context does, at any op, and nothing of it is kept.
func TestDivideEnds(t *testing.T) {
	var b strings.Builder
	const x, w = "tensor<64x64xf32, #dm.at<split = @pod[{data}, {}]>>", "tensor<64x64xf32>"
	fmt.Fprintf(&b, "dm.mesh @pod {data = 4}\nfunc.func @g(%%x: %s) -> %s {\n  %%y = dm.relu %%x : %s\n  return %%y : %s\n}\n", w, w, w, w)
	fmt.Fprintf(&b, "func.func @f(%%x: %s) -> %s {\n  %%v0 = dm.relu %%x : (%s) -> %s\n", x, w, x, w)
	const n = 40
	for i := range n {
		fmt.Fprintf(&b, "  %%v%d = func.call @g(%%v%d) : (%s) -> %s\n", i+1, i, w, w)
	}
	fmt.Fprintf(&b, "  return %%v%d : %s\n}\n", n, w)
	text := b.String()
	f := load(t, "f.dmir", text, program.Options{}).Func("f")
	all := &canceltest.Context{Context: t.Context(), Left: math.MaxInt}
	if !f.DivideUnless(all) {
		t.Fatal("it ends by itself")
	}
	asked := math.MaxInt - all.Left
	if asked < 2*n {
		t.Errorf("asked %d times in %d calls", asked, n)
	}
	g := load(t, "f.dmir", text, program.Options{}).Func("f")
	for left := range asked {
		ctx := &canceltest.Context{Context: t.Context(), Left: left}
		if g.DivideUnless(ctx) || g.Tried() {
			t.Fatalf("asked %d times, it does not end", left)
		}
		if ctx.After > 3 {
			t.Fatalf("asked %d times after its end", ctx.After)
		}
	}
	want, _ := f.Divide()
	if got, problem := g.Divide(); problem != nil || !got.Device.Moved().Equal(want.Device.Moved()) {
		t.Errorf("divided again: %v, %v", got, problem)
	}
}
