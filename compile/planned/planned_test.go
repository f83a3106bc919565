package planned

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/stages/stagestest"
	_ "dmir/compile/target/all"
	"dmir/syntax/source"
)

const layer = `func.func @layer(%x: tensor<1024x256xf16>, %w: tensor<256x1024xf16>) -> tensor<1024x1024xf16> {
  %h = dm.matmul %x, %w : (tensor<1024x256xf16>, tensor<256x1024xf16>) -> tensor<1024x1024xf16>
  %a = dm.gelu %h : tensor<1024x1024xf16>
  return %a : tensor<1024x1024xf16>
}
`

func load(t *testing.T, text string) *program.Program {
	t.Helper()
	target, _ := machine.Lookup(machine.Default)
	p := program.Load(source.New("in.dmir", text), program.Options{Target: target})
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	return p
}

func figures(t *testing.T, p *program.Program, fn string) (cost.Figures, error) {
	t.Helper()
	return Figures(t.Context(), p, p.Func(fn).Func, p.Target)
}

// A plan is searched for once for the same function: in another text of the same function, or with another
// function changed, the figures are known; of a changed function they are not.
func TestOnce(t *testing.T) {
	other := strings.ReplaceAll(strings.ReplaceAll(layer, "@layer", "@other"), "gelu", "tanh")
	search := func(text string) int64 {
		before := searches.Load()
		if _, err := figures(t, load(t, text), "layer"); err != nil {
			t.Fatal(err)
		}
		return searches.Load() - before
	}
	for i, c := range []struct {
		text string
		want int64
	}{
		{layer, 1}, {layer, 0}, {"// A comment.\n\n" + layer + other, 0}, {strings.Replace(layer, "gelu", "relu", 1), 1}, {layer, 0},
	} {
		if n := search(c.text); n != c.want {
			t.Errorf("text %d: %d searches, want %d", i, n, c.want)
		}
	}
}

// What it takes to plan a function does not grow with the functions that it does not call.
func TestOthersCostNothing(t *testing.T) {
	allocs := func(others int) float64 {
		var b strings.Builder
		b.WriteString(layer)
		for i := range others {
			b.WriteString(strings.ReplaceAll(layer, "@layer", "@other"+strconv.Itoa(i)))
		}
		p := load(t, b.String())
		return testing.AllocsPerRun(1, func() {
			if _, err := Cost(t.Context(), p, p.Func("layer").Func, p.Target); err != nil {
				t.Fatal(err)
			}
		})
	}
	if alone, among := allocs(0), allocs(1000); among > 1.2*alone {
		t.Errorf("%g allocations among 1,000 others, %g alone", among, alone)
	}
}

// The kernels of the plan move what one kernel must: the hidden values stay in it.
func TestFigures(t *testing.T) {
	p := load(t, layer)
	x, err := figures(t, p, "layer")
	if err != nil {
		t.Fatal(err)
	}
	written := p.Func("layer").Figures(p.Target)
	if !x.Compiled || written.Compiled {
		t.Error("the figures are of the other text")
	}
	least, _ := p.Func("layer").Minimum().Int()
	if n, _ := x.Moved.Int(); n != least {
		t.Errorf("%d bytes move, want %d", n, least)
	}
	if n, _ := x.Kernels.Int(); n != 1 {
		t.Errorf("%d kernels", n)
	}
	if x.Time.Ns >= written.Time.Ns {
		t.Errorf("%v ns compiled, %v as written", x.Time.Ns, written.Time.Ns)
	}
}

// A limit on memory that the plan exceeds is no reason not to know the figures.
func TestBeyondItsMemory(t *testing.T) {
	p := load(t, strings.Replace(layer, "xf16> {", "xf16> attributes {dm.max_peak = \"1 kB\"} {", 1))
	x, err := figures(t, p, "layer")
	if err != nil {
		t.Fatal(err)
	}
	limits, _ := cost.ParseBudget(p.Func("layer").Func)
	if over, _ := p.Func("layer").Over(x, nil, limits); len(over) != 1 || over[0].Of != "as compiled" {
		t.Errorf("%+v exceeds %v", x, over)
	}
}

// Each device of a mesh has figures of its own part.
func TestDevices(t *testing.T) {
	text := "dm.mesh @pod {data = 4}\n" + strings.Replace(layer, "%x: tensor<1024x256xf16>", "%x: tensor<1024x256xf16> {dm.sharding = #dm.at<split = @pod[{data}, {}]>}", 1)
	x, err := figures(t, load(t, text), "layer")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := x.Moved.Int(); n != 256*256*2+256*1024*2+256*1024*2 {
		t.Errorf("%d bytes move", n)
	}
}

// A step in stages has the figures of each position, which follow its stages; the time is that of all together.
func TestStages(t *testing.T) {
	of := func(edit ...string) cost.Figures {
		t.Helper()
		text := strings.NewReplacer(edit...).Replace(stagestest.Step{Stages: 4, Micro: 2, Schedule: "1f1b", Mesh: "pipe = 4"}.Text())
		p := load(t, text)
		x, err := Figures(t.Context(), p, p.Func("f").Func, p.Target)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := of()
	if len(x.Stages) != 4 || !x.Time.Known || !x.Compiled {
		t.Fatalf("%+v", x)
	}
	for i, s := range x.Stages {
		if s.Func != fmt.Sprintf("f.pipe%d", i) || s.BusyNs <= 0 || math.Abs(s.BusyNs+s.WaitNs-x.Time.Ns) > 1e-6*x.Time.Ns {
			t.Errorf("%+v of %v ns", s, x.Time.Ns)
		}
		want := int64(2 * 2 * 8 * 4 * 8) // of two micro-batches, an activation and a gradient
		if i == 0 || i == 3 {
			want /= 2
		}
		if s.Sent == nil || *s.Sent != want {
			t.Errorf("%s sends %v bytes, want %d", s.Func, s.Sent, want)
		}
	}
	if slower := of("1f1b", "gpipe"); slower.Peaks[0].String() == x.Peaks[0].String() && slower.Time.Ns == x.Time.Ns {
		t.Error("another schedule changes nothing")
	}
}

// What cannot be planned says why.
func TestNotPlanned(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"open sizes":      {"func.func @f(%x: tensor<?xf32, #dm.at<dims = [n]>>) -> tensor<?xf32, #dm.at<dims = [n]>> {\n  %y = dm.exp %x : tensor<?xf32, #dm.at<dims = [n]>>\n  return %y : tensor<?xf32, #dm.at<dims = [n]>>\n}\n", "it depends on n"},
		"another dialect": {"func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n  %y = \"tosa.exp\"(%x) : (tensor<8xf32>) -> tensor<8xf32>\n  return %y : tensor<8xf32>\n}\n", "tosa.exp"},
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, c.text)
			if _, err := Figures(t.Context(), p, p.Funcs[0].Func, p.Target); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A canceled search is not kept.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := load(t, strings.Replace(layer, "gelu", "exp", 1))
	if _, err := Figures(ctx, p, p.Funcs[0].Func, p.Target); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := figures(t, p, "layer"); err != nil {
		t.Error(err)
	}
}
