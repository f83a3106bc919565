package cuda_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/cuda/audit"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/prelude"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// fusedCases are gradients by one kernel, and their tiles on eight multiprocessors.
var fusedCases = []struct {
	attentionCase
	tile string
}{
	{attentionCase{name: "eight blocks, causal", elem: "f16", q: "1x1x1050x32", k: "1x1x1050x32", attributes: ", causal = true"}, "fused 128x128x32 / 8"},
	{attentionCase{name: "heads that share keys", elem: "bf16", q: "1x2x300x128", k: "1x1x600x128"}, "fused 128x64x128 / 4"},
	{attentionCase{name: "dropout and mask", elem: "bf16", q: "1x1x200x64", k: "1x1x300x64", mask: "200x300", attributes: ", dropout = 0.3, seed = 11"}, "fused 128x64x64 / 2"},
	{attentionCase{name: "an odd number of keys", elem: "f16", q: "1x2x150x16", k: "1x1x263x16", value: "40", attributes: ", causal = true, dropout = 0.2, seed = 5"}, "fused 128x64x16 / 2"},
	{attentionCase{name: "dropout of a step", elem: "f16", q: "1x1x90x80", k: "1x1x120x80", attributes: ", dropout = 0.3, seed = 11", step: "i64"}, "fused 128x64x80"},
	{attentionCase{name: "dropout in a part of a whole", elem: "bf16", q: "1x2x90x64", k: "1x2x200x64", attributes: ", dropout = 0.3, seed = 11, whole = [3, 5, 100]", step: "i64", first: "710"}, "fused 128x64x64 / 2"},
	{attentionCase{name: "queries that see nothing", elem: "bf16", q: "1x1x300x24", k: "1x1x260x24", attributes: ", causal = true"}, "fused 128x128x24 / 2"},
	{attentionCase{name: "queries behind the first keys", elem: "bf16", q: "1x1x260x64", k: "1x1x420x64", attributes: ", causal = true"}, "fused 128x128x64 / 2"},
}

// fast is an H200 on which fused gradients are predicted to be the fastest, whatever their sizes.
func fast(sms int) *machine.Machine {
	m, _ := machine.Lookup("h200")
	of := *m
	of.SMs, of.Clock, of.L2Bandwidth, of.MemoryLatency = sms, 1e15, 1e18, 1e-15
	of.Ceilings.Paths = maps.Clone(m.Ceilings.Paths)
	of.Ceilings.Paths[machine.FusedPath] = 1000
	return &of
}

// The gradient by one kernel: with clusters of all sizes, several rounds of keys, hidden tiles of queries, and
// everything that scores have.
func TestAttentionFused(t *testing.T) {
	t.Parallel()
	need.Long(t)
	notRecorded(t)
	var cases []attentionCase
	var want []string
	for i, c := range fusedCases {
		if !need.Turn(t, i, 2) {
			continue
		}
		c.back, c.free, c.noMaskGrad = true, true, true
		cases, want = append(cases, c.attentionCase), append(want, c.tile)
	}
	p, owners := calls(t, cases)
	built := buildAttentionFor(t, p, "sm_90a", fast(8))
	var tiles []string
	for _, s := range built.Steps {
		if strings.HasPrefix(s.Tile, machine.FusedPath) {
			tiles = append(tiles, s.Tile)
		}
	}
	if !slices.Equal(tiles, want) {
		t.Errorf("tiles %q, want %q", tiles, want)
	}
	runAttention(t, p, owners, built)
}

// The machine code of fused gradients holds the rules of package ptx, spills nothing, and has no products that wait for each
// other: five for a step, with what adds to the queries' sums by 16 bytes.
func TestFusedMachineCode(t *testing.T) {
	t.Parallel()
	need.Long(t)
	nvrtctest.Compiler(t)
	nvrtctest.Disassembler(t)
	for _, c := range []struct {
		name, q, k, mask, attributes string
		products                     int // instructions of a step
	}{
		{"deep, with dropout", "16x16x512x128", "16x16x512x128", "", ", causal = true, dropout = 0.1", 8 + 8 + 4 + 8 + 4},
		{"128 queries", "16x16x512x64", "16x8x512x64", "", "", 4 + 4 + 8 + 8 + 8},
		{"mask and dropout", "16x16x512x64", "16x16x512x64", "16x1x1x512", ", dropout = 0.1", 4 + 4 + 4 + 8 + 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compiled(t, gradientText("bf16", c.q, c.k, c.mask, c.attributes), "sm_90a")
			kernels := built(t, p, "sm_90a")
			last := kernels[len(kernels)-1]
			products, additions := 0, 0
			for _, i := range last.Code {
				switch i.Base() {
				case "HGMMA":
					products++
				case "REDG":
					additions++
				}
			}
			t.Logf("%s: %s, %d instructions", c.name, p.Steps[0].Tile, len(last.Code))
			if !strings.HasPrefix(p.Steps[0].Tile, machine.FusedPath) || products != c.products || additions == 0 || additions > 8 {
				t.Errorf("%s: %s, %d products in a step and %d additions, want %d", c.name, p.Steps[0].Tile, products, additions, c.products)
			}
		})
	}
}

// The kernels of a gradient for each side store their rows and read the sums of queries 16 bytes at a time, but for the two
// sums of a lane's own queries, and are bound by their products. The sums of dy · y before them are bound by memory, within its budget.
func TestGradientMachineCode(t *testing.T) {
	t.Parallel()
	need.Long(t)
	nvrtctest.Compiler(t)
	nvrtctest.Disassembler(t)
	m, _ := machine.Lookup("h200")
	p := compiled(t, gradientText("bf16", "1x32x2048x64", "1x8x2048x64", "", ", causal = true"), m.Arch)
	steps, err := audit.Steps(p, listed(t, p, m.Arch), m)
	if err != nil {
		t.Fatal(err)
	}
	type part struct {
		name   string
		memory bool
		other  int // bytes by smaller accesses
	}
	var got []part
	for _, a := range steps {
		t.Logf("%s: %d instructions, %.0f %%", a.Name, a.Hot.Instrs, 100*a.Share)
		got = append(got, part{a.Name, a.Memory, a.All.Bytes - a.All.Vector})
		if a.Memory && a.Share > 1 || a.All.Local > 0 {
			t.Errorf("%s: %.2f slots for each byte, %d accesses of local memory", a.Name, a.PerByte, a.All.Local)
		}
	}
	if want := []part{{"dq_dk_dv", true, 4}, {"dq_dk_dv_keys", false, 0}, {"dq_dk_dv_queries", false, 16}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// gradientText is a function that computes the gradient of an attention.
func gradientText(elem, q, k, mask, attributes string) string {
	type_ := func(shape, elem string) string { return fmt.Sprintf("tensor<%sx%s>", shape, elem) }
	x, y, sums := type_(q, elem), type_(k, elem), type_(q[:strings.LastIndexByte(q, 'x')], "f32")
	params, more, types := "", "", ""
	if mask != "" {
		m := type_(mask, elem)
		params, more, types = ", %m: "+m, ", %m", ", "+m
	}
	return fmt.Sprintf(`func.func @f(%%q: %[1]s, %%k: %[2]s, %%v: %[2]s, %%y: %[1]s, %%lse: %[3]s, %%dy: %[1]s%[4]s) -> (%[1]s, %[2]s, %[2]s) {
  %%dq, %%dk, %%dv = dm.attention_grad %%q, %%k, %%v, %%y, %%lse, %%dy%[5]s%[7]s : (%[1]s, %[2]s, %[2]s, %[1]s, %[3]s, %[1]s%[6]s) -> (%[1]s, %[2]s, %[2]s)
  return %%dq, %%dk, %%dv : %[1]s, %[2]s, %[2]s
}
`, x, y, sums, params, more, types, attributes)
}

// What is wrong with a step, a turn or a sum of fused gradients is found on the emulator, by a fault or by other numbers.
func TestFusedIsChecked(t *testing.T) {
	t.Parallel()
	need.Long(t)
	need.OK(t, emulator.Check())
	p := program.Load(source.New("gradient.dmir", gradientText("f16", "1x1x300x32", "1x1x560x32", "", ", causal = true")), program.Options{})
	mod := p.Modules[0]
	fn := mod.Funcs[0]
	of, err := driver.Build(t.Context(), mod, fn, driver.BuildOptions{Machine: fast(2), Arch: "sm_90a"})
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), fn, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	var in [][]byte
	for _, a := range args {
		in = append(in, tensor.Pack(a))
	}
	right, err := emulator.Run(t.Context(), of, in, emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, now string }{
		{"no turn is waited for", "        take_turn();\n        const bool", "        const bool"},
		{"what the others have added is not seen", "barrier_wait_peers(turn", "barrier_wait(turn"},
		{"a turn is passed on before the additions are done", "        take_turn();\n        const bool", "        pass_turn();\n        take_turn();\n        const bool"},
		{"all blocks begin with the same queries", "from + rank < parts ? from + rank : parts - 1", "from"},
		{"a step without keys passes no turn on", "          pass_turn();\n          take_turn();\n          continue;", "          continue;"},
		{"the first addition is taken for another", "part < last ? part : last", "last"},
		{"the last addition is taken for another", "last >= behind ? behind : 0", "0"},
		{"queries that see keys are left out", "from = first / BN;", "from = first / BN + 1;"},
		{"gradients of scores without a swizzle", "(corner ^ i / 2 % 8 * 8)", "(corner + i / 2 % 8 * 8)"},
		{"lanes of a row exchange the words that they store", "sent = upper ? low : high;", "sent = upper ? high : low;"},
		{"a row's lanes store other columns", "from + j * 2 + c * 8;", "from + j * 2 + (3 - c) * 8;"},
		{"four sums are read of the queries before", "i64(head) * S::queries + first + i);", "i64(head) * S::queries + max(0, first + i - 4));"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := *of
			wrong.Headers = nil
			changed := false
			for _, file := range prelude.Files() {
				h := artifact.Header(file)
				if strings.HasPrefix(h.Name, "attention") {
					text := strings.Replace(h.Text, c.old, c.now, 1)
					changed, h.Text = changed || text != h.Text, text
				}
				wrong.Headers = append(wrong.Headers, h)
			}
			if !changed {
				t.Fatalf("there is no %q", c.old)
			}
			got, err := emulator.Run(t.Context(), &wrong, in, emulator.Options{})
			switch {
			case err != nil:
				t.Log(err)
			case slices.EqualFunc(got.Outputs, right.Outputs, bytes.Equal):
				t.Error("nothing was seen")
			}
		})
	}
}

// Operands are parts of the rows of wider tensors, whose results have rows of their own: of a multiple of 2, 4 or 8 elements.
func TestAttentionOfPartsOfRows(t *testing.T) {
	t.Parallel()
	need.Long(t)
	notRecorded(t)
	const text = `func.func @all(%%w: tensor<1x2x70x48xf16>, %%u: tensor<1x2x70x48xf16>, %%v: %[3]s, %%dy: %[3]s) -> (%[2]s, %[2]s, %[2]s, %[3]s) {
  %%q = dm.slice %%w, start_indices = [0, 0, 0, 0], limit_indices = [1, 2, 70, %[1]d] : (tensor<1x2x70x48xf16>) -> %[2]s
  %%k = dm.slice %%u, start_indices = [0, 0, 0, 0], limit_indices = [1, 2, 70, %[1]d] : (tensor<1x2x70x48xf16>) -> %[2]s
  %%y, %%lse_y = dm.attention %%q, %%k, %%k, causal = true : (%[2]s, %[2]s, %[2]s) -> (%[2]s, tensor<1x2x70xf32>)
  %%z, %%lse = dm.attention %%q, %%k, %%v, causal = true : (%[2]s, %[2]s, %[3]s) -> (%[3]s, tensor<1x2x70xf32>)
  %%dq, %%dk, %%dv = dm.attention_grad %%q, %%k, %%v, %%z, %%lse, %%dy, causal = true : (%[2]s, %[2]s, %[3]s, %[3]s, tensor<1x2x70xf32>, %[3]s) -> (%[2]s, %[2]s, %[3]s)
  return %%y, %%dq, %%dk, %%dv : %[2]s, %[2]s, %[2]s, %[3]s
}
`
	for _, depth := range []int{34, 36, 40} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			t.Parallel()
			p := program.Load(source.New("parts.dmir", fmt.Sprintf(text, depth, fmt.Sprintf("tensor<1x2x70x%dxf16>", depth), "tensor<1x2x70x40xf16>")), program.Options{})
			for _, d := range p.Diags {
				t.Fatalf("%s %s", d.Code, d.Message)
			}
			built := buildAttention(t, p, "sm_90a", 0)
			for _, call := range []string{"attention_wgmma<", "attention_grad_wgmma<"} {
				if !strings.Contains(built.Source, call) {
					t.Errorf("no %s", call)
				}
			}
			c := attentionCase{name: fmt.Sprint(depth), elem: "f16"}
			runAttention(t, p, []attentionCase{c, c, c, c}, built)
		})
	}
}
