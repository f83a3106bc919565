package fuse_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/compile/bind"
	"dmir/compile/fuse"
	"dmir/compile/inline"
	"dmir/compile/interp"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each archive in testdata is a program before (in.dmir) and after (out.dmir);
// the line "refuse" in its comment takes kernels apart first.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			u := unit(t, path, string(a.Files[0].Data), nil)
			f, err := fuse.Run(u, fuse.Options{Refuse: strings.Contains(string(a.Comment), "\nrefuse\n")})
			if err != nil {
				t.Fatal(err)
			}
			got := pretty(t, u)
			if !f.Exact {
				t.Errorf("not known to be the best plan: gap %g", f.Gap)
			}
			if len(a.Files) > 1 && got == string(a.Files[1].Data) {
				return
			}
			if !*update {
				t.Fatalf("got\n%s", got)
			}
			a.Files = append(a.Files[:1], txtar.File{Name: "out.dmir", Data: []byte(got)})
			if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPerturbed plans a graph in which two kernels taken apart leave a third to
// store what it cannot: silu before a convolution, which the convolution's
// gradient computes again.
func TestPerturbed(t *testing.T) {
	const path = "testdata/unet_grad.dmir"
	same(t, unit(t, path, read(t, path), nil), fuse.Options{})
}

// results are what u's function gives for random arguments.
func results(t *testing.T, u *pass.Unit, fn *ir.Func) []*tensor.Tensor {
	t.Helper()
	args, err := interp.Inputs(context.Background(), fn, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := interp.Run(context.Background(), u.Module, fn, args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Outputs
}

// same requires that fusing u changes no bit of what it computes.
func same(t *testing.T, u *pass.Unit, o fuse.Options) *fuse.Figures {
	t.Helper()
	want := results(t, u, u.Func)
	f, err := fuse.Run(u, o)
	if err != nil {
		t.Fatal(err)
	}
	text := pretty(t, u)
	for i, got := range results(t, u, u.Func) {
		if d := tensor.MaxDiff(got, want[i]); d != 0 {
			t.Errorf("result %d differs by %g\n%s", i, d, text)
		}
	}
	whole(t, u)
	return f
}

// whole requires that every op of the function stands in a kernel that can be,
// but for constants, views and control flow.
func whole(t *testing.T, u *pass.Unit) {
	t.Helper()
	c := cost.Function(u.Func, u.Module, nil)
	for _, e := range c.Entries {
		if e.Op.Name == "dm.kernel" || e.Op.Name == "dm.constant" {
			continue
		}
		if n, _ := e.Moved().Int(); n > 0 && len(e.Op.Regions) == 0 {
			t.Errorf("%s stands outside kernels", e.Op.Name)
		}
	}
	var inPlace op.InPlace
	for _, o := range u.Func.Body.Ops {
		if o.Name != "dm.kernel" {
			continue
		}
		if o.Str("dm.name") == "" {
			t.Error("a kernel without a name")
		}
		body := o.Body(0)
		if ops := body.Ops[:len(body.Ops)-1]; len(ops) > 1 {
			if _, err := kernel.OfOver(ops, body.Terminator().Operands, kernel.Updating(&inPlace, o)); err != nil {
				t.Errorf("%s cannot run as one kernel: %v", o.Str("dm.name"), err)
			}
		}
	}
}

func TestExamples(t *testing.T) {
	for _, name := range []string{"cnn", "retrieval"} {
		t.Run(name, func(t *testing.T) {
			path := "../../examples/" + name + ".dmir"
			u := unit(t, path, read(t, path), nil)
			if err := pass.Run(u, []pass.Pass{inline.Pass(), bind.Pass()}, nil); err != nil {
				t.Fatal(err)
			}
			f := same(t, u, fuse.Options{Refuse: true})
			if f.TimeAfter > f.TimeBefore || f.MovedAfter > f.MovedBefore {
				t.Errorf("worse than before: %+v", *f)
			}
		})
	}
}

// sample is the text of a function of n random ops on small tensors:
// element-wise chains, row programs, contractions, views, masks.
func sample(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 11))
	var b strings.Builder
	next := 0
	square := []string{"%a", "%b"} // 8x8
	rows := []string{"%c"}         // 8x1
	last := func(vs []string) string { return vs[len(vs)-1-r.IntN(min(len(vs), 4))] }
	def := func(vs *[]string, format string, args ...any) {
		name := fmt.Sprintf("%%v%d", next)
		next++
		fmt.Fprintf(&b, "  %s = %s\n", name, fmt.Sprintf(format, args...))
		*vs = append(*vs, name)
	}
	const s, c = "tensor<8x8xf32>", "tensor<8x1xf32>"
	for range n {
		x, y, z := last(square), last(square), last(rows)
		switch r.IntN(11) {
		case 0:
			def(&square, "dm.matmul %s, %s : %s", x, y, s)
		case 1:
			def(&square, `dm.einsum "ij,kj->ik" %s, %s : (%s, %s) -> %s`, x, y, s, s, s)
		case 2:
			def(&rows, "dm.reduce add %s, dims = [1], keep_dims = true : (%s) -> %s", x, s, c)
		case 3:
			def(&square, "dm.softmax %s, dim = 1 : %s", x, s)
		case 4:
			def(&square, "dm.add %s, %s : (%s, %s) -> %s", x, z, s, c, s)
		case 5:
			def(&square, "dm.transpose %s, dims = [1, 0] : (%s) -> %s", x, s, s)
		case 6:
			def(&square, "dm.dropout %s, rate = 0.5, seed = %d : %s", x, next, s)
		case 7:
			name := fmt.Sprintf("%%w%d", next)
			fmt.Fprintf(&b, "  %s = dm.reshape %s : (%s) -> tensor<64xf32>\n  %sx = dm.tanh %s : tensor<64xf32>\n", name, x, s, name, name)
			def(&square, "dm.reshape %sx : (tensor<64xf32>) -> %s", name, s)
		case 8:
			name := fmt.Sprintf("%%d%d", next)
			fmt.Fprintf(&b, "  %s, %sm = dm.dropout %s, rate = 0.5, seed = %d : (%s) -> (%s, %s)\n", name, name, x, next, s, s, s)
			def(&square, "dm.mul %s, %sm : %s", y, name, s)
			if r.IntN(2) == 0 {
				square = append(square, name)
			}
		default:
			def(&square, "dm.sub %s, %s : %s", x, y, s)
		}
	}
	vs := square[max(0, len(square)-3):]
	return fmt.Sprintf("func.func @f(%%a: %s, %%b: %s, %%c: %s) -> (%s) {\n%s  return %s : %s\n}\n", s, s, c,
		strings.Join([]string{s, s, s}[:len(vs)], ", "), b.String(), strings.Join(vs, ", "), strings.Join([]string{s, s, s}[:len(vs)], ", "))
}

// What is fused computes the same, in the order in which it stands.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(40) {
		n := 4 + int(seed)%20
		if seed%10 == 9 {
			n = 80
		}
		src := sample(seed, n)
		u := unit(t, "random.dmir", src, nil)
		f := same(t, u, fuse.Options{})
		if f.MovedAfter > f.MovedBefore || f.TimeAfter > f.TimeBefore*1.0001 {
			t.Errorf("seed %d: worse than before: %+v\n%s", seed, *f, src)
		}
		if f.Gap < 0 || f.Gap > 1 || f.Exact && f.Gap > 0 {
			t.Errorf("seed %d: gap %g, exact %v", seed, f.Gap, f.Exact)
		}
	}
}

// A long function is fused in a time that grows little faster than it does.
func TestLong(t *testing.T) {
	u := unit(t, "long.dmir", sample(1, 600), nil)
	if _, err := fuse.Run(u, fuse.Options{}); err != nil {
		t.Fatal(err)
	}
	pretty(t, u)
	whole(t, u)
}

func TestErrors(t *testing.T) {
	u := unit(t, "e.dmir", `func.func @f(%x: tensor<?x4xf32, #dm.at<dims = [n]>>) -> tensor<?x4xf32, #dm.at<dims = [n]>> {
  %y = dm.exp %x : tensor<?x4xf32, #dm.at<dims = [n]>>
  return %y : tensor<?x4xf32, #dm.at<dims = [n]>>
}`, nil)
	_, err := fuse.Run(u, fuse.Options{})
	e, ok := err.(*pass.Error)
	if !ok || e.Code != "DM801" || e.Span.Len() == 0 {
		t.Errorf("got %v", err)
	}
}

// A search ends with the context, and makes no kernel then.
func TestCancel(t *testing.T) {
	u := unit(t, "c.dmir", sample(3, 40), nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	u.Ctx = ctx
	if _, err := fuse.Run(u, fuse.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(pretty(t, u), "dm.kernel") {
		t.Error("kernels were made")
	}
}
