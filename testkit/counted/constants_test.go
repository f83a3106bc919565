package counted

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/gpu/emulator"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// uses are programs that read W, an 16×16 constant: alone, in kernels of the text and of the plan, in several kernels,
// behind views, by a library kernel, in a loop and in a branch.
var uses = map[string]string{
	"kernels": `func.func @f(%x: tensor<8x16xf32>, %z: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %w = dm.constant W : tensor<16x16xf32>
  %y = dm.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %a = dm.softmax %y, dim = 1 : tensor<8x16xf32>
  %b = dm.matmul %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %c = dm.mul %z, %w : tensor<16x16xf32>
  %d = dm.kernel -> tensor<16x16xf32> {
    %v = dm.constant W : tensor<16x16xf32>
    %e = dm.exp %v : tensor<16x16xf32>
    %g = dm.add %e, %z : tensor<16x16xf32>
    dm.yield %g : tensor<16x16xf32>
  }
  return %b, %c, %d : tensor<8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}`,
	"views": `func.func @f(%x: tensor<8x16xf32>, %z: tensor<256xf32>) -> (tensor<8x16xf32>, tensor<256xf32>, tensor<8x16xf32>, tensor<16x16xf32>) {
  %w = dm.constant W : tensor<16x16xf32>
  %t = dm.transpose %w, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %a = dm.matmul %x, %t : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %r = dm.reshape %w : (tensor<16x16xf32>) -> tensor<256xf32>
  %b = dm.mul %z, %r : tensor<256xf32>
  %s = dm.slice %w, start_indices = [4, 0], limit_indices = [12, 16], strides = [1, 1] : (tensor<16x16xf32>) -> tensor<8x16xf32>
  %c = dm.add %x, %s : tensor<8x16xf32>
  %d = dm.cumsum %w, dim = 1 : tensor<16x16xf32>
  return %a, %b, %c, %d : tensor<8x16xf32>, tensor<256xf32>, tensor<8x16xf32>, tensor<16x16xf32>
}`,
	"loop": `func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %w = dm.constant W : tensor<16x16xf32>
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %y = dm.while %zero, %x, trip_count = 3 : (tensor<i64>, tensor<8x16xf32>) -> (tensor<i64>, tensor<8x16xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<8x16xf32>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %h: tensor<8x16xf32>):
    %one = dm.constant dense<1> : tensor<i64>
    %v = dm.constant W : tensor<16x16xf32>
    %next = dm.add %i, %one : tensor<i64>
    %a = dm.matmul %h, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %s = dm.softmax %a, dim = 1 : tensor<8x16xf32>
    %b = dm.matmul %s, %v : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    dm.yield %next, %b : tensor<i64>, tensor<8x16xf32>
  }
  return %y : tensor<8x16xf32>
}`,
	"branch": `func.func @f(%x: tensor<8x16xf32>, %p: tensor<i1>) -> tensor<8x16xf32> {
  %w = dm.constant W : tensor<16x16xf32>
  %y = dm.if %p : (tensor<i1>) -> tensor<8x16xf32> {
    %v = dm.constant W : tensor<16x16xf32>
    %a = dm.matmul %x, %v : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    dm.yield %a : tensor<8x16xf32>
  } else {
    %a = dm.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    dm.yield %a : tensor<8x16xf32>
  }
  return %y : tensor<8x16xf32>
}`,
}

// enlarge makes the extents larger: more elements than a literal lists.
var enlarge = strings.NewReplacer("16x16", "48x48", "8x16", "8x48", "256", "2304", "[12, 16]", "[12, 48]")

// literals are the ways to write a constant of n×n elements in a folder; each is read in full.
func literals(t *testing.T, dir string, n int) map[string]string {
	t.Helper()
	w := tensor.New(types.F32, n, n)
	var data []byte
	rows := make([]string, n)
	for i := range n {
		cells := make([]string, n)
		for j := range n {
			x := float64((i*7+j*3)%11-5) / 16
			w.SetFloat(i*n+j, x)
			cells[j] = fmt.Sprintf("%.4f", x)
			bits := math.Float32bits(float32(x))
			data = append(data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
		}
		rows[i] = "[" + strings.Join(cells, ", ") + "]"
	}
	if err := tensor.SaveNPY(filepath.Join(dir, "w.npy"), w); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z := tensor.NewWriter(&archive)
	if err := z.Array("w", w); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.npz"), archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"number": "dense<0.25>", "listed": "dense<[" + strings.Join(rows, ", ") + "]>", "bytes": fmt.Sprintf(`dense<"0x%X">`, data),
		"npy": `#dm.file<"w.npy">`, "npz": `#dm.file<"w.npz", "w">`,
	}
}

// Constants of every kind cost what kernels read of them: the emulator counts the predicted bytes in each
// step, of a third of them in turn, the steps add up to the cost of the plan's text, read back, to the figures that budgets are judged by, and
// to the same as for an argument in the constant's place.
func TestConstants(t *testing.T) {
	counts, at := !testing.Short() && emulator.Check() == nil, 0
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		text := uses[name]
		for _, size := range []string{"small", "large"} {
			n := 16
			if size == "large" {
				text, n = enlarge.Replace(text), 48
			}
			dir := t.TempDir()
			moved := map[string]int64{}
			ways := literals(t, dir, n)
			for _, kind := range slices.Sorted(maps.Keys(ways)) {
				literal := ways[kind]
				t.Run(name+"/"+size+"/"+kind, func(t *testing.T) {
					p := Program{Name: name, Text: strings.ReplaceAll(text, "W", literal), Arrays: tensor.In(dir)}
					if moved[kind] = figures(t, p); size == "large" && kind != "number" && kind != "npy" && moved["npy"] > 0 && moved[kind] != moved["npy"] {
						t.Errorf("%d bytes move, %d of the same constant in a file", moved[kind], moved["npy"])
					}
					if !counts || size == "large" && kind != "npz" {
						return
					}
					if at++; !need.Turn(t, at, 3) {
						return
					}
					rows, err := Steps(t.Context(), p)
					if err != nil {
						t.Fatal(err)
					}
					var sum int64
					for _, r := range rows {
						sum += r.Predicted()
						if problem := r.Problem(); problem != "" {
							t.Error(problem)
						}
					}
					if sum != moved[kind] {
						t.Errorf("the steps move %d bytes, the plan %d", sum, moved[kind])
					}
				})
			}
			if moved["number"] >= moved["npy"] {
				t.Errorf("%s, %s: a number costs %d, data %d", name, size, moved["number"], moved["npy"])
			}
		}
	}
}

// figures is what the only function of p moves as it is compiled, in all places that say so.
func figures(t *testing.T, p Program) int64 {
	t.Helper()
	loaded, err := Load(p)
	if err != nil {
		t.Fatal(err)
	}
	f := loaded.Funcs[0]
	x, err := planned.Figures(t.Context(), loaded, f.Func, loaded.Target)
	if err != nil {
		t.Fatal(err)
	}
	moved, ok := x.Moved.Int()
	if !ok {
		t.Fatalf("%s moves %s", p.Name, x.Moved)
	}
	g, err := planned.Cost(t.Context(), loaded, f.Func, loaded.Target)
	if err != nil {
		t.Fatal(err)
	}
	text, err := print.Source(g.Module())
	if err != nil {
		t.Fatal(err)
	}
	target, _ := machine.Lookup(machine.Default)
	back := program.Load(source.New("plan.dmir", text), program.Options{Target: target, Arrays: p.Arrays})
	if back.HasErrors() {
		t.Fatal(back.Diags, text)
	}
	b := back.Funcs[0]
	if n, _ := b.Moved().Int(); n != moved {
		t.Errorf("the plan moves %d bytes, its text %d\n%s", moved, n, text)
	}
	if least, _ := b.Minimum().Int(); least > moved && p.Name != "branch" { // of which the minimum has both arms
		t.Errorf("the minimum %d is more than the %d bytes of the plan", least, moved)
	}
	return moved
}
