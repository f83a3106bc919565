package export

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dmir/analysis/plan"
	"dmir/analysis/units"
	"dmir/syntax/diag"
)

// jaxCode is the module but for the plan: its tables are empty.
//
//go:embed jax.py
var jaxCode string

// writeJAX writes a module of Python that needs JAX alone.
func writeJAX(w io.Writer, p *Portable) error {
	p = withoutPipeline(p)
	groups := 1
	for _, a := range p.Arguments {
		if a.Kind == plan.Samples && a.Batch >= 0 && a.Batch < len(a.Spec) {
			groups = max(groups, p.Parts(a.Spec[a.Batch]))
		}
	}
	if err := p.unequal("JAX's loop", groups); err != nil {
		return err
	}
	var axes strings.Builder
	for _, a := range p.Axes {
		fmt.Fprintf(&axes, "    %s: %d,  # %s\n", pyString(a.Name), a.Size, a.Role)
	}
	text := commented(jaxNotes(p)) + jaxCode
	for _, table := range []struct{ name, empty, open, rows, end string }{
		{"AXES", "{}", "{", axes.String(), "}"},
		{"ARGUMENTS", "()", "(", jaxRows(p.Arguments), ")"},
		{"RESULTS", "()", "(", jaxRows(p.Results), ")"},
		{"SENT", "{}", "{", jaxSent(p), "}"},
		{"ACTIVATIONS", "()", "(", jaxPoints(p.Points), ")"},
	} {
		if table.rows != "" {
			text = strings.Replace(text, "\n"+table.name+" = "+table.empty+"\n", "\n"+table.name+" = "+table.open+"\n"+table.rows+table.end+"\n", 1)
		}
	}
	text = strings.Replace(text, "\nMICROBATCHES = 1\n", fmt.Sprintf("\nMICROBATCHES = %d\n", p.Microbatches), 1)
	text = strings.Replace(text, "\nRECOMPUTE = \"none\"\n", fmt.Sprintf("\nRECOMPUTE = %s\n", pyString(p.Recompute)), 1)
	_, err := io.WriteString(w, text)
	return err
}

func jaxSent(p *Portable) string {
	sent := map[string]int64{}
	for _, c := range p.Predicted.Collectives {
		sent[c.Kind] += c.Bytes
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(sent)) {
		fmt.Fprintf(&b, "    %s: %d,\n", pyString(kind), sent[kind])
	}
	return b.String()
}

func jaxRows(list []Array) string {
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "    (%s, %s, %s, %s),\n", pyString(a.Path), pyString(string(a.Kind)), pyTuple(a.Shape), partitionSpec(a.Spec))
	}
	return b.String()
}

// jaxPoints are the rows of the table of activations. Where all of some operations alike are divided alike, they are one row.
func jaxPoints(list []Point) string {
	type key struct {
		line, operation string
		back            bool
		shape           string
	}
	by := map[key][]Point{}
	var order []key
	for _, p := range list {
		k := key{fmt.Sprintf("%s:%d", filepath.Base(p.Where.File), p.Where.Line), path.Base(p.Where.Scope), p.Where.Back, pyTuple(p.Shape)}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], p)
	}
	var b strings.Builder
	for _, k := range order {
		row := func(nth string, p Point) {
			fmt.Fprintf(&b, "    (%s, %s, %s, %s, %s, %d, %s),\n", pyString(k.line), pyString(k.operation), pyBool(k.back), k.shape, nth, p.Of, partitionSpec(p.Spec))
		}
		points := by[k]
		first := points[0]
		if len(points) == first.Of && !slices.ContainsFunc(points, func(p Point) bool { return partitionSpec(p.Spec) != partitionSpec(first.Spec) }) {
			row("None", first)
			continue
		}
		for _, p := range points {
			row(fmt.Sprint(p.Nth), p)
		}
	}
	return b.String()
}

// partitionSpec is a spec as Python makes one of JAX.
func partitionSpec(s Spec) string {
	var parts []string
	for _, axes := range s {
		switch len(axes) {
		case 0:
			parts = append(parts, "None")
		case 1:
			parts = append(parts, pyString(axes[0]))
		default:
			var names []string
			for _, a := range axes {
				names = append(names, pyString(a))
			}
			parts = append(parts, "("+strings.Join(names, ", ")+")")
		}
	}
	for len(parts) > 0 && parts[len(parts)-1] == "None" {
		parts = parts[:len(parts)-1]
	}
	return "P(" + strings.Join(parts, ", ") + ")"
}

// withoutPipeline is p as JAX can run it: jax.jit has no stages, and devices along the pipeline's axis divide samples instead, where
// they can.
func withoutPipeline(p *Portable) *Portable {
	at := slices.IndexFunc(p.Axes, func(a Axis) bool { return a.Role == Pipe })
	if at < 0 || p.Axes[at].Size == 1 {
		return p
	}
	q := *p
	pipe := p.Axes[at]
	divides := func(a Array) bool {
		return a.Kind == plan.Samples && a.Batch >= 0 && a.Batch < len(a.Spec) && a.Shape[a.Batch]%int64(p.Parts(a.Spec[a.Batch])*pipe.Size) == 0
	}
	if !slices.ContainsFunc(p.Arguments, divides) {
		return p
	}
	q.Arguments = slices.Clone(p.Arguments)
	for i, a := range q.Arguments {
		if divides(a) {
			spec := slices.Clone(a.Spec)
			spec[a.Batch] = append([]string{pipe.Name}, spec[a.Batch]...)
			q.Arguments[i].Spec = spec
		}
	}
	return &q
}

// jaxNotes are what the module says of the plan, in lines.
func jaxNotes(p *Portable) []string {
	notes := heading(p)
	notes = append(notes,
		"",
		"Save this file as a module beside your code, and jit your step with it:",
		"",
		"    import plan",
		"    step = plan.jit(step)          # in place of jax.jit(step)",
		"",
		"jax.jit's partitioner, XLA's, decides how what lies between arguments and results is divided. Values that it would divide otherwise",
		"than the plan are in ACTIVATIONS, by the operation that computes them; plan.jit and plan.constrained state them. Those inside of",
		"loops and of jax.checkpoint are out of their reach.",
	)
	if p.Microbatches > 1 {
		notes = append(notes, fmt.Sprintf("The plan cuts the samples into %d micro-batches: take plan.value_and_grad(loss) in place of jax.value_and_grad(loss).", p.Microbatches),
			"They run in a loop, where XLA divides what ACTIVATIONS has as it finds best.")
	}
	switch p.Recompute {
	case plan.Selective:
		notes = append(notes, "It computes all but contractions and attention again in the backward pass: put each layer through plan.checkpoint(layer), whose policy",
			"keeps dots. JAX's attention keeps its scores by that policy, unless it is one kernel.")
	case plan.Full:
		notes = append(notes, "It computes layers again in the backward pass: put each layer through plan.checkpoint(layer).")
	}
	if p.ParametersRegathered() {
		notes = append(notes, "The plan frees gathered parameters behind the forward pass and gathers them again. When XLA gathers, it decides by itself: where its memory",
			"shows that they stay, give checkpoint a policy that keeps all but them, save_anything_except_these_names, and name them in your",
			"layers by checkpoint_name.")
	}
	if n := len(p.Stages); n > 1 {
		notes = append(notes, fmt.Sprintf("Not expressed: the pipeline of %d stages, schedule %s. jax.jit has no stages; here the devices along %q divide the samples,", n, p.Schedule, comment(p.Pipeline)),
			"and each holds all layers.", nearest(p, "JAX", plan.Setting{Data: p.Size(Data) * p.Size(Pipe), Tensor: p.Size(Tensor), Pipe: 1}))
	}
	return notes
}

// nearest says what the best plan under a setting takes, the nearest to p that a tool can run.
func nearest(p *Portable, tool string, s plan.Setting) string {
	near, err := p.near(s)
	var none *plan.Error
	switch {
	case errors.As(err, &none):
		return "The nearest plan that " + tool + " runs is none: " + comment(none.Msg) + "."
	case err != nil || near == nil:
		return "The nearest that " + tool + " runs is not costed: the plan is that of the program's text."
	}
	more := ""
	if was := p.Predicted.Seconds; was > 0 {
		more = fmt.Sprintf(", %+.1f %%", 100*(near.Time/was-1))
	}
	return fmt.Sprintf("The nearest that %s runs takes %s a step%s, and %s of memory: %s.", tool, units.Time(near.Time*1e9), more, units.Bytes(near.Memory.Total), comment(strings.Join(near.Names, ", ")))
}

// heading says of which program and plan a file is, and what is predicted of it.
func heading(p *Portable) []string {
	notes := []string{
		fmt.Sprintf("The plan of @%s in %s for %d × %s: %s.", comment(p.Function), comment(p.Program), p.Devices, comment(p.Target.Title), comment(p.Summary)),
	}
	x := p.Predicted
	var parts []string
	if x.Seconds > 0 {
		parts = append(parts, units.Time(x.Seconds*1e9)+" a step")
	}
	if x.Memory > 0 {
		parts = append(parts, units.Bytes(x.Memory)+" of memory on the device that holds most")
	}
	if x.Sent >= 0 && len(x.Collectives) == 0 {
		parts = append(parts, units.Bytes(x.Sent)+" sent by a device in a step")
	}
	if len(parts) > 0 {
		notes = append(notes, "Predicted: "+strings.Join(parts, ", ")+".")
	}
	if len(x.Collectives) > 0 {
		notes = append(notes, "As its text divides the step, a device sends:")
	}
	for _, c := range x.Collectives {
		notes = append(notes, fmt.Sprintf("  %s × %d along %s: %s", c.Kind, c.Count, comment(diag.List(c.Axes)), units.Bytes(c.Bytes)))
	}
	return append(notes, "Written by dmir plan --export.")
}
