package driver_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/gpu/emulator"
	"dmir/gpu/native"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// decoder is a training step with Adam of a decoder of so many layers: a loop over stacked weights, or equal calls.
type decoder struct {
	layers, batch, tokens, width, heads, words int
	elem                                       string
	loop, attention                            bool
}

// text is the step.
func (d decoder) text() string {
	head := d.width / d.heads
	weights := [][2]string{{"g", fmt.Sprint(d.width)}, {"up", fmt.Sprintf("%dx%d", d.width, 2*d.width)}, {"down", fmt.Sprintf("%dx%d", 2*d.width, d.width)}}
	if d.attention {
		weights = append(weights, [2]string{"q", fmt.Sprintf("%dx%dx%d", d.width, d.heads, head)}, [2]string{"o", fmt.Sprintf("%dx%dx%d", d.heads, head, d.width)})
	}
	t := func(shape string) string { return "tensor<" + shape + "x" + d.elem + ">" }
	var params [][2]string
	for i := range d.layers {
		for _, w := range weights {
			switch {
			case !d.loop:
				params = append(params, [2]string{fmt.Sprintf("%s%d", w[0], i), w[1]})
			case i == 0:
				params = append(params, [2]string{w[0], fmt.Sprintf("%dx%s", d.layers, w[1])})
			}
		}
	}
	params = append(params, [2]string{"table", fmt.Sprintf("%dx%d", d.words, d.width)})
	each := func(list [][2]string, format, between string) string {
		var out []string
		for i, p := range list {
			init := "dm.stddev = 0.1"
			if strings.HasPrefix(p[0], "g") {
				init = "dm.init = 1.0"
			}
			out = append(out, strings.NewReplacer("NAME", p[0], "TYPE", t(p[1]), "NUMBER", fmt.Sprint(i+2), "INIT", init).Replace(format))
		}
		return strings.Join(out, between)
	}
	body := `    %n = dm.rms_norm %c, %ig : (!x, $g) -> !x
`
	if d.attention {
		body += `    %qs = dm.einsum "bsd,dhk->bshk" %n, %iq : (!x, $q) -> !q
    %a = dm.attention %qs, %qs, %qs, causal = true : (!q, !q, !q) -> !q
    %ao = dm.einsum "bshk,hkd->bsd" %a, %io : (!q, $o) -> !x
    %r = dm.add %n, %ao : !x
`
	} else {
		body += "    %r = dm.neg %n : !x\n"
	}
	body += `    %u = dm.einsum "bsd,df->bsf" %r, %iup : (!x, $up) -> !u
    %e = dm.gelu %u : !u
    %w = dm.einsum "bsf,fd->bsd" %e, %idown : (!u, $down) -> !x
    %y = dm.add %c, %w : !x
`
	for _, w := range weights {
		body = strings.ReplaceAll(body, "$"+w[0]+")", t(w[1])+")")
	}
	calls, layer := "", ""
	if d.loop {
		calls = "  %last = dm.scan %h, " + each(params[:len(weights)], "%NAME", ", ") + ", carries = 1 : (!x, " + each(params[:len(weights)], "TYPE", ", ") + ") -> !x {\n  ^bb0(%c: !x, " +
			each(weights, "%iNAME: TYPE", ", ") + "):\n" + body + "    dm.yield %y : !x\n  }\n"
	} else {
		at := "%h"
		for i := range d.layers {
			own := params[i*len(weights) : (i+1)*len(weights)]
			next := fmt.Sprintf("%%h%d", i)
			if i == d.layers-1 {
				next = "%last"
			}
			calls += "  " + next + " = func.call @layer(" + at + ", " + each(own, "%NAME", ", ") + ") : (!x, " + each(own, "TYPE", ", ") + ") -> !x\n"
			at = next
		}
		layer = "func.func private @layer(%c: !x, " + each(weights, "%iNAME: TYPE", ", ") + ") -> !x {\n" + body + "    return %y : !x\n}\n"
	}
	return fmt.Sprintf("!x = %s\n!u = %s\n!q = %s\n!ids = tensor<%dx%dxi64>\n!l = %s\n", t(fmt.Sprintf("%dx%dx%d", d.batch, d.tokens, d.width)), t(fmt.Sprintf("%dx%dx%d", d.batch, d.tokens, 2*d.width)),
		t(fmt.Sprintf("%dx%dx%dx%d", d.batch, d.tokens, d.heads, head)), d.batch, d.tokens, t(fmt.Sprintf("%dx%dx%d", d.batch, d.tokens, d.words))) +
		"func.func @f(%ids: !ids, %labels: !ids, " + each(params, "%NAME: TYPE {INIT}, %m_NAME: TYPE {dm.init = 0.0}, %v_NAME: TYPE {dm.init = 0.0}", ", ") + ", %t: tensor<i64> {dm.init = 1})\n" +
		"    -> (tensor<" + d.elem + ">, " + each(params, `TYPE {dm.state = "NAME"}, TYPE {dm.state = "m_NAME"}, TYPE {dm.state = "v_NAME"}`, ", ") + ") {\n" +
		"  %loss, " + each(params, "%d_NAME", ", ") + " = dm.grad @loss %ids, %labels, " + each(params, "%NAME", ", ") + ", wrt = [" + each(params, "NUMBER", ", ") + "] : (!ids, !ids, " + each(params, "TYPE", ", ") + ") -> (tensor<" + d.elem + ">, " + each(params, "TYPE", ", ") + ")\n" +
		each(params, "  %n_NAME, %nm_NAME, %nv_NAME = dm.adam %NAME, %d_NAME, %m_NAME, %v_NAME, %t, lr = 0.01 : (TYPE, TYPE, TYPE, TYPE, tensor<i64>) -> (TYPE, TYPE, TYPE)\n", "") +
		"  return %loss, " + each(params, "%n_NAME, %nm_NAME, %nv_NAME", ", ") + " : tensor<" + d.elem + ">, " + each(params, "TYPE, TYPE, TYPE", ", ") + "\n}\n" +
		"func.func private @loss(%ids: !ids, %labels: !ids, " + each(params, "%NAME: TYPE", ", ") + ") -> tensor<" + d.elem + "> {\n" +
		"  %h = dm.embedding %table, %ids : (" + t(params[len(params)-1][1]) + ", !ids) -> !x\n" + calls +
		"  %logits = dm.einsum \"bsd,vd->bsv\" %last, %table : (!x, " + t(params[len(params)-1][1]) + ") -> !l\n" +
		"  %loss = dm.cross_entropy %logits, %labels : (!l, !ids) -> tensor<" + d.elem + ">\n  return %loss : tensor<" + d.elem + ">\n}\n" + layer
}

// found are the plans of a step on a cluster, priced by their texts if compiled is true.
func found(t *testing.T, text string, devices int, fix plan.Setting, compiled bool) *plan.Result {
	t.Helper()
	on, _ := machine.Lookup("dgx-h100")
	o := program.Options{Target: on}
	if compiled {
		o.Compiled = planned.Figures
	}
	p := program.Load(source.New("layers.dmir", text), o)
	if p.HasErrors() {
		t.Fatalf("%v\n%s", p.Diags, text)
	}
	q, err := request.New(p, request.Asked{Func: "f", Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	q.Options.Top, q.Options.Fix = 1, fix
	r, err := q.Search(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// A step whose layers are a loop is planned with stages; its text costs what the plan promises, and computes on every device what one
// device does.
func TestPlannedLayers(t *testing.T) {
	small := decoder{layers: 4, batch: 4, tokens: 4, width: 8, heads: 2, words: 16, elem: "f32", loop: true}
	for i, c := range []struct {
		name      string
		attention bool
		elem      string
		devices   int
		fix       plan.Setting
		on        []string
		text      string // in that of the plan
		within    float64
	}{
		{"feed-forward, 2 stages", false, "f64", 2, plan.Setting{Pipe: 2, Microbatches: 2}, []string{"reference", "cpu"}, "dm.stages = 2", 1e-9},
		{"feed-forward, 4 stages of one layer, over data", false, "f32", 8, plan.Setting{Pipe: 4, Microbatches: 2, Schedule: "gpipe"}, []string{"reference"}, "dm.stages = 4", 1e-4},
		{"attention, contractions computed again", true, "f32", 2, plan.Setting{Pipe: 2, Microbatches: 4, Schedule: "1f1b", Recompute: plan.Full}, []string{"cpu"}, "carries = 1, save = carries {dm.stages = 2}", 1e-4},
		{"half precision", true, "bf16", 2, plan.Setting{Pipe: 2, Microbatches: 2}, []string{"reference"}, "dm.stages = 2", 0.06},
		{"on the emulator", false, "f32", 2, plan.Setting{Pipe: 2, Microbatches: 1}, []string{"emulator"}, "dm.stages = 2", 1e-4},
		{"3 layers in 2 stages, 2, 2 and 1 samples", false, "f64", 2, plan.Setting{Pipe: 2, Microbatches: 3}, []string{"reference", "cpu"}, "dm.stages = 2", 1e-9},
		{"2, 2 and 1 samples, as calls", false, "f64", 2, plan.Setting{Pipe: 2, Microbatches: 3}, []string{"reference"}, "dm.stage = 1", 1e-9},
	} {
		if i > 0 && !need.Turn(t, i, 4) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			d := small
			d.attention, d.elem, d.loop = c.attention, c.elem, !strings.HasSuffix(c.name, "calls")
			if c.fix.Microbatches == 3 {
				d.batch, d.layers = 5, 3
			}
			text := d.text()
			r := found(t, text, c.devices, c.fix, true)
			row := r.Plans[0]
			written, err := r.Write(row)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(written, c.text) {
				t.Errorf("no %q in the text\n%s", c.text, written)
			}
			on, _ := machine.Lookup("dgx-h100")
			p := program.Load(source.New("layers.dmir", written), program.Options{Target: on})
			x, err := planned.Figures(t.Context(), p, p.Func("f").Func, on)
			if err != nil {
				t.Fatal(err)
			}
			peak, _ := x.Peaks[0].Int()
			if r.Modelled != "" || math.Abs(x.Time.Ns/1e9-row.Time) > 0.01*row.Time || math.Abs(float64(peak-row.Memory.Total)) > 0.01*float64(peak) {
				t.Errorf("promised are %g s and %d bytes, and the text takes %g s and %d (%s)", row.Time, row.Memory.Total, x.Time.Ns/1e9, peak, r.Modelled)
			}
			if len(x.Stages) != c.fix.Pipe {
				t.Errorf("%d devices along the pipeline, not %d", len(x.Stages), c.fix.Pipe)
			}
			want := ran(t, text, 0, "reference")
			for _, device := range c.on {
				switch device {
				case "cpu":
					_, err := native.Find(t.Context())
					need.OK(t, err)
				case "emulator":
					need.OK(t, emulator.Check())
				}
				for k, got := range ran(t, written, pass.AllDevices, device) {
					if diff := tensor.MaxDiff(got.Tensor, want[k].Tensor); got.Name != want[k].Name || !(diff <= c.within) {
						t.Errorf("on %s %s differs by %g from %s", device, got.Name, diff, want[k].Name)
					}
				}
			}
		})
	}
}

// Layers as a loop are planned as the same layers as calls are.
func TestLoopsArePlannedAsCalls(t *testing.T) {
	d := decoder{layers: 8, batch: 16, tokens: 512, width: 1024, heads: 16, words: 8192, elem: "bf16", attention: true}
	fix := plan.Setting{Pipe: 4, Data: 2, Tensor: 1, Microbatches: 8, Schedule: "1f1b", Recompute: plan.Selective}
	calls := found(t, d.text(), 8, fix, false).Plans[0]
	d.loop = true
	loop := found(t, d.text(), 8, fix, false).Plans[0]
	if math.Abs(loop.Modelled-calls.Modelled) > 0.05*calls.Modelled || math.Abs(float64(loop.Memory.Total-calls.Memory.Total)) > 0.25*float64(calls.Memory.Total) {
		t.Errorf("as a loop %.4g s and %d bytes, as calls %.4g s and %d bytes", loop.Modelled, loop.Memory.Total, calls.Modelled, calls.Memory.Total)
	}
	if len(loop.Stages) != 4 || loop.Stages[1].Layers != 2 || calls.Stages[1].Layers != 3 {
		t.Errorf("stages of the loop %+v, of calls %+v", loop.Stages, calls.Stages)
	}
	// With as many layers in each stage and states divided alike, devices hold the same.
	d.layers, fix.States = 4, plan.StatesSplit
	loop = found(t, d.text(), 8, fix, false).Plans[0]
	d.loop = false
	calls = found(t, d.text(), 8, fix, false).Plans[0]
	for k, s := range loop.Stages {
		if c := calls.Stages[k]; s.Memory != c.Memory || s.Layers != c.Layers {
			t.Errorf("in stage %d the loop holds %d bytes, calls %d", k, s.Memory, c.Memory)
		}
	}
}

// What stages of a loop cannot be is said.
func TestLoopRefusals(t *testing.T) {
	on, _ := machine.Lookup("dgx-h100")
	d := decoder{layers: 4, batch: 4, tokens: 4, width: 8, heads: 2, words: 16, elem: "f32", loop: true}
	p := program.Load(source.New("layers.dmir", d.text()), program.Options{Target: on})
	for _, c := range []struct {
		fix  plan.Setting
		want string
	}{
		{plan.Setting{Pipe: 3}, "a loop of 4 layers does not divide into 3 stages"},
		{plan.Setting{Pipe: 2, Schedule: "interleaved"}, "the layers of @f are a loop, of which each device has one stage"},
		{plan.Setting{Pipe: 2, Chunks: 2}, "the layers of @f are a loop, of which each device has one stage"},
		{plan.Setting{Pipe: 2, Recompute: plan.None}, "the layers of @f are a loop, whose derivative computes again what takes no contraction"},
	} {
		q, err := request.New(p, request.Asked{Func: "f", Devices: 6})
		if err != nil {
			t.Fatal(err)
		}
		q.Options.Fix = c.fix
		_, err = plan.Search(t.Context(), q.Module, q.Func, q.Options)
		e, ok := err.(*plan.Error)
		if !ok || e.Msg != c.want || e.At == nil || e.At.Name != "dm.scan" {
			t.Errorf("%+v: %v, want %s", c.fix, err, c.want)
		}
	}
}
