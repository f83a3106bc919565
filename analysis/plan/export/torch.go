package export

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmir/analysis/plan"
	"dmir/syntax/diag"
)

// torchCode is the module but for the plan: its tables are empty.
//
//go:embed torch.py
var torchCode string

// writeTorch writes a module of Python that needs PyTorch alone.
func writeTorch(w io.Writer, p *Portable) error {
	if p.loop != nil && len(p.Stages) > 1 {
		return &plan.Error{
			Code: plan.CodeExport, At: p.loop,
			Msg:  fmt.Sprintf("PyTorch's stages are modules, each with parameters of its own, and the layers of @%s are one loop over stacked weights", p.Function),
			Help: "trace a model whose layers are modules, as those of an nn.ModuleList, or export a plan without stages: --pipe 1",
		}
	}
	t := torchOf(p)
	if err := p.unequal("PyTorch's pipeline", p.Size(Data)); t.pipe != "" && err != nil {
		return err
	}
	text := commented(t.notes()) + torchCode
	for _, table := range []struct{ name, empty, value string }{
		{"AXES", "{}", pyDict(t.axes)},
		{"DATA", "()", pyNames(t.data)},
		{"MODEL", "()", pyNames(t.model)},
		{"PIPE", "None", pyOptional(t.pipe)},
		{"PARAMETERS", "{}", pyRows(t.parameters)},
		{"SPLIT", "{}", pyRows(t.split)},
		{"SPLIT_OVER", "()", pyNames(t.over)},
		{"REGATHER", "False", pyBool(p.ParametersRegathered())},
		{"INPUTS", "()", pyInputs(t.inputs)},
		{"TARGET", "0", fmt.Sprint(t.target)},
		{"STAGES", "()", pyNames(t.begins)},
		{"SCHEDULE", "None", pyOptional(p.Schedule)},
		{"MICROBATCHES", "1", fmt.Sprint(p.Microbatches)},
		{"LAYERS", "()", pyNames(t.layers)},
		{"RECOMPUTE", `"none"`, pyString(p.Recompute)},
	} {
		text = strings.Replace(text, "\n"+table.name+" = "+table.empty+"\n", "\n"+table.name+" = "+table.value+"\n", 1)
	}
	_, err := io.WriteString(w, text)
	return err
}

// An entry is a key and its value, as Python has it.
type entry struct{ key, value string }

// An input is one of the model's.
type input struct {
	name    string
	batch   int // negative: none
	divided []entry
}

// A torchPlan is what the module states.
type torchPlan struct {
	p                 *Portable
	axes              []entry
	data, model, over []string
	pipe              string
	parameters, split []entry
	inputs            []input
	labels            string // the loss's second argument
	target            int    // its dimension with samples
	begins, layers    []string
	unlike, gathered  []string // parameters that lie otherwise than the plan has them: cut elsewhere, and whole
}

func torchOf(p *Portable) *torchPlan {
	t := &torchPlan{p: p}
	for _, a := range p.Axes {
		t.axes = append(t.axes, entry{a.Name, fmt.Sprint(a.Size)})
		switch {
		case a.Size == 1 || a.Role == Replica:
		case a.Role == Data:
			t.data = append(t.data, a.Name)
		case a.Role == Pipe:
			t.pipe = a.Name
		default:
			t.model = append(t.model, a.Name)
		}
	}
	for _, i := range t.divided() {
		for _, axis := range t.data {
			if slices.ContainsFunc(t.with(i), func(a Array) bool { return a.Spec.Along(axis) >= 0 }) && !slices.Contains(t.over, axis) {
				t.over = append(t.over, axis)
			}
		}
	}
	slices.SortFunc(t.over, func(a, b string) int { return slices.Index(t.data, a) - slices.Index(t.data, b) })
	for i, a := range p.Arguments {
		if a.Kind != plan.Parameter {
			continue
		}
		t.parameters = append(t.parameters, entry{a.Path, pyDict(t.along(a))})
		if d := t.pieces(i); d >= 0 {
			t.split = append(t.split, entry{a.Path, fmt.Sprint(d)})
		}
	}
	t.arguments()
	t.layers = layersOf(Named(p.Arguments, plan.Parameter))
	if t.pipe != "" {
		t.begins = beginsOf(Named(p.Arguments, plan.Parameter), len(p.Stages))
	}
	return t
}

// divided are the parameters of which something lies in pieces over an axis of samples.
func (t *torchPlan) divided() (out []int) {
	for i, a := range t.p.Arguments {
		if a.Kind == plan.Parameter && slices.ContainsFunc(t.with(i), func(x Array) bool {
			return slices.ContainsFunc(t.data, func(axis string) bool { return x.Spec.Along(axis) >= 0 })
		}) {
			out = append(out, i)
		}
	}
	return out
}

// with are parameter i and its optimizer states.
func (t *torchPlan) with(i int) []Array {
	out := []Array{t.p.Arguments[i]}
	for _, a := range t.p.Arguments {
		if a.Of == i {
			out = append(out, a)
		}
	}
	return out
}

// pieces is the dimension along which parameter i and its states lie in pieces over the axes of samples, negative if they do not.
// Along another dimension than the first one pieces have one size.
func (t *torchPlan) pieces(i int) int {
	for _, a := range t.with(i) {
		for _, axis := range t.data {
			d := a.Spec.Along(axis)
			if d < 0 {
				continue
			}
			if size := a.Shape[d]; d > 0 && size%int64(t.p.Parts(a.Spec[d])*t.p.Parts(t.over)) != 0 {
				t.unlike = append(t.unlike, t.p.Arguments[i].Path)
				return 0
			}
			return d
		}
	}
	return -1
}

// along are the dimensions of a that axes of the model divide where it is used: DTensor gathers no parameter once for a step.
func (t *torchPlan) along(a Array) (out []entry) {
	spec := a.Spec
	if a.Used != nil {
		spec = a.Used
	}
	for _, axis := range t.model {
		if d := spec.Along(axis); d >= 0 {
			out = append(out, entry{axis, fmt.Sprint(d)})
		} else if a.Kind == plan.Parameter && a.Spec.Along(axis) >= 0 {
			t.gathered = append(t.gathered, a.Path)
		}
	}
	return out
}

// targets are what the second argument of a loss is called in steps that dmir makes.
var targets = []string{"labels", "targets"}

// arguments finds what the model takes and what the loss does: that which is named so, else the last one with samples.
func (t *torchPlan) arguments() {
	var taken []Array
	last := -1
	for _, a := range t.p.Arguments {
		if a.Kind != plan.Samples && (a.Kind != plan.Other || len(a.Shape) == 0) {
			continue
		}
		if a.Kind == plan.Samples {
			last = len(taken)
		}
		taken = append(taken, a)
	}
	if named := slices.IndexFunc(taken, func(a Array) bool { return slices.Contains(targets, a.Path) }); named >= 0 {
		last = named
	}
	for i, a := range taken {
		if i == last && len(taken) > 1 {
			t.labels, t.target = a.Path, max(a.Batch, 0)
			continue
		}
		t.inputs = append(t.inputs, input{a.Path, a.Batch, t.positions(a)})
	}
}

// positions are the dimensions of an input that axes of the model divide: as it lies, else as values with the samples do, which are
// divided along a sequence.
func (t *torchPlan) positions(a Array) []entry {
	var out []entry
	for _, axis := range t.model {
		d := a.Spec.Along(axis)
		if x := t.p.Axis(axis); d < 0 && x.Role == Sequence {
			for _, v := range t.p.Activations {
				if k := v.Spec.Along(axis); k >= 0 && k < len(a.Shape) && k != a.Batch && slices.Equal(a.Shape[:k+1], v.Shape[:k+1]) {
					d = k
					break
				}
			}
		}
		if d >= 0 {
			out = append(out, entry{axis, fmt.Sprint(d)})
		}
	}
	return out
}

// layersOf are the modules that are numbered, as h.0 and h.1, the outermost of them.
func layersOf(parameters []Array) (out []string) {
	count := map[string]int{}
	for _, a := range parameters {
		layer, of := layerOf(a.Path)
		if layer != "" && !slices.Contains(out, layer) {
			out = append(out, layer)
			count[of]++
		}
	}
	return slices.DeleteFunc(out, func(layer string) bool {
		_, of := layerOf(layer + ".x")
		return count[of] < 2
	})
}

// layerOf is the first prefix of a parameter's path that ends in a number, and what is in front of that.
func layerOf(path string) (layer, of string) {
	parts := strings.Split(path, ".")
	for i, part := range parts[:len(parts)-1] {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			return strings.Join(parts[:i+1], "."), strings.Join(parts[:i], ".")
		}
	}
	return "", ""
}

// beginsOf are the modules at which stages after the first of n begin: the outermost around the first parameter of a stage in which no
// parameter belongs to a stage before. It is empty unless each stage has one.
func beginsOf(parameters []Array, n int) []string {
	var out []string
	for k := 1; k < n; k++ {
		first := slices.IndexFunc(parameters, func(a Array) bool { return len(a.Stages) > 0 && a.Stages[0] == k })
		if first < 0 {
			return nil
		}
		parts := strings.Split(parameters[first].Path, ".")
		module := ""
		for depth := 1; depth < len(parts) && module == ""; depth++ {
			prefix := strings.Join(parts[:depth], ".")
			before := func(a Array) bool {
				return strings.HasPrefix(a.Path, prefix+".") && len(a.Stages) > 0 && a.Stages[0] < k
			}
			if !slices.ContainsFunc(parameters, before) {
				module = prefix
			}
		}
		if module == "" || slices.Contains(out, module) {
			return nil
		}
		out = append(out, module)
	}
	return out
}

// notes are what the module says of the plan, in lines.
func (t *torchPlan) notes() []string {
	p := t.p
	notes := append(heading(p),
		"",
		"Save this file as plan.py beside your code, and start a process for each device:",
		"",
		"    import plan",
		"    step = plan.apply(model, loss, example)             # after torch.distributed.init_process_group",
		"    optimizer = torch.optim.AdamW(step.parameters())",
		"    value = step((step.part(x),), step.part(labels))    # forward, backward, gradients reduced",
		"    optimizer.step(), optimizer.zero_grad()",
		"",
	)
	var names []string
	for _, x := range t.inputs {
		names = append(names, comment(x.name))
	}
	if len(names) > 0 {
		notes = append(notes, "The model's inputs are "+diag.List(names)+".")
	}
	if t.labels != "" {
		notes = append(notes, "The loss's second argument is "+comment(t.labels)+".")
	}
	if len(t.model) > 0 {
		notes = append(notes, "How what lies between parameters is divided, DTensor decides, and what is exchanged for it.")
	}
	for _, a := range p.Axes {
		if a.Role == Replica && a.Size > 1 {
			notes = append(notes, fmt.Sprintf("Along %q all devices compute the same.", comment(a.Name)))
		}
	}
	if len(t.split) > 0 && !p.ParametersSplit() {
		notes = append(notes, "Not expressed: parameters lie in pieces as their optimizer states do (fully_shard has them together); they are gathered",
			"before the step in place of after it, and what is sent is the same.")
	}
	if len(t.unlike) > 0 {
		notes = append(notes, "Not expressed: pieces of different sizes along another dimension than the first, of "+diag.List(comments(t.unlike))+", which are cut along the first.")
	}
	if len(t.gathered) > 0 {
		notes = append(notes, "Not expressed: pieces over "+diag.List(comments(t.model))+" of parameters that are gathered once for each step: here whole are "+some(comments(t.gathered))+".")
	}
	if t.pipe != "" && len(t.begins) == 0 {
		notes = append(notes, "Not expressed: at which modules stages begin, since no parameter's name says that. Name them: apply(..., stages=[...]).")
	}
	if p.Recompute != plan.None && len(t.layers) == 0 {
		notes = append(notes, "Not expressed: "+p.Recompute+" recomputation, since no parameter's name has the number of a layer.")
	}
	return notes
}

func comments(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = comment(s)
	}
	return out
}

func pyDict(list []entry) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = pyString(e.key) + ": " + e.value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// pyRows is a dictionary with a line for each key.
func pyRows(list []entry) string {
	if len(list) == 0 {
		return "{}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, e := range list {
		fmt.Fprintf(&b, "    %s: %s,\n", pyString(e.key), e.value)
	}
	return b.String() + "}"
}

func pyNames(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = pyString(s)
	}
	text := strings.Join(parts, ", ")
	if len(list) == 1 {
		text += ","
	}
	return "(" + text + ")"
}

func pyOptional(s string) string {
	if s == "" {
		return "None"
	}
	return pyString(s)
}

func pyInputs(list []input) string {
	if len(list) == 0 {
		return "()"
	}
	var b strings.Builder
	b.WriteString("(\n")
	for _, x := range list {
		batch := "None"
		if x.batch >= 0 {
			batch = fmt.Sprint(x.batch)
		}
		fmt.Fprintf(&b, "    (%s, %s),  # %s\n", batch, pyDict(x.divided), comment(x.name))
	}
	return b.String() + ")"
}
