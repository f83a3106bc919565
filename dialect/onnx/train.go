package onnx

import (
	"math"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/raise"
	"dmir/dialect/train"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/dialect/weights"
	"dmir/syntax/diag"

	"google.golang.org/protobuf/encoding/protowire"
)

// Models that are trained: parameters are arguments of the program, batch normalization takes the statistics of the
// batch and updates the running ones, and what draws numbers draws others in each step.

// TrainText is the training step of a model as a program's text, formatted, with the values of the parameters and large
// constants as arrays in the file called weightsPath. An error is an *Error or a *train.Error.
func TrainText(name string, data []byte, opts Options, spec *train.Spec, weightsPath string) (text string, w *weights.Set, err error) {
	defer caught(&err)
	if opts.data, opts.sizes = data, map[string]int64{}; opts.File != "" {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
	if len(spec.Parameters) > 0 {
		return "", nil, &train.Error{Key: "parameters=" + spec.Parameters[0], Msg: "a model in ONNX tells itself which its parameters are", Help: "leave it out; freeze= names those that stay"}
	}
	p := readModel(data)
	checkModel(p)
	opts = opts.computed(p)
	opts.trained = originsOf(p, data, spec)
	if err := opts.trained.check(p); err != nil {
		return "", nil, err
	}
	if open := openSizes(p, opts); len(open) > 0 {
		return "", nil, &train.Error{Msg: "input " + strconv.Quote(open[0].input) + ": the size of dimension " + strconv.Itoa(open[0].dim) + " is open", Help: "a step is of one size: --bind " + open[0].name + "=8"}
	}
	x, err := build(name, p, opts, false)
	if err != nil {
		return "", nil, err
	}
	raise.Module(x.module)
	if err := train.Step(x.model(p), spec); err != nil {
		return "", nil, err
	}
	if w, err = weights.Place([]*ir.Module{x.module}, weightsPath); err != nil {
		return "", nil, &Error{Code: invalidCode, Msg: err.Error()}
	}
	for _, d := range verify.Module(x.module) {
		if d.Severity == diag.Error {
			fail("%s", d.Message)
		}
	}
	if text, err = opts.print(x.module); err != nil {
		return "", nil, &Error{Code: invalidCode, Msg: err.Error()}
	}
	return text, w, nil
}

// origins is what a model's file says of its initializers.
type origins struct {
	torch      bool            // PyTorch has written the file
	parameters map[string]bool // their names; nil where the file does not tell
	missing    []string        // those of them that are no initializers
	optimized  bool            // the exporter has changed the graph, and with it perhaps initializers
	running    map[string]bool // what batch normalization updates
}

// Keys of the metadata that torch.onnx writes.
const (
	signatureKey = "pkg.torch.export.ExportedProgram.graph_signature"
	kindKey      = "pkg.torch.export.graph_signature.InputSpec.kind"
	foldedKey    = "pkg.onnxscript.optimizer.folded_from"
	ruleKey      = "pkg.onnxscript.rewriter.rule_name"
)

// parameterLine is a parameter in a signature, as it is printed since 2.7 and before.
var parameterLine = regexp.MustCompile(`(?m): PARAMETER target='([^']+)'|InputKind\.PARAMETER: \d+>, arg=[^)]*\), target='([^']+)'`)

// originsOf reads the metadata of a model, which nothing else needs.
func originsOf(p *modelProto, data []byte, spec *train.Spec) *origins {
	o := &origins{running: map[string]bool{}}
	add := func(name string) {
		if o.parameters == nil {
			o.parameters = map[string]bool{}
		}
		o.parameters[name] = true
	}
	entry := func(b []byte, name string) {
		key, value := "", ""
		each(b, "metadata", func(x field) {
			switch x.num {
			case 1:
				key = string(x.data)
			case 2:
				value = string(x.data)
			}
		})
		switch key {
		case signatureKey:
			for _, m := range parameterLine.FindAllStringSubmatch(value, -1) {
				add(m[1] + m[2])
			}
		case kindKey:
			if value == "PARAMETER" {
				add(name)
			}
		case foldedKey, ruleKey:
			o.optimized = true
		}
	}
	// metadata are the entries of the field num of a message, whose name is in the field title.
	metadata := func(b []byte, num, title protowire.Number) {
		name := ""
		each(b, "metadata", func(x field) {
			switch x.num {
			case title:
				name = string(x.data)
			case num:
				entry(x.data, name)
			}
		})
	}
	each(data, "model", func(x field) {
		switch x.num {
		case 2:
			o.torch = string(x.data) == "pytorch"
		case 7:
			metadata(x.data, 16, 2)
			each(x.data, "graph", func(x field) {
				switch x.num {
				case 1:
					metadata(x.data, 9, 3)
				case 11, 13:
					metadata(x.data, 4, 1)
				}
			})
		}
	})
	have := map[string]bool{}
	for _, t := range p.graph.constants {
		have[t.name] = true
	}
	for _, in := range p.graph.inputs {
		have[in.name] = true
	}
	for name := range o.parameters {
		if !have[name] {
			o.missing = append(o.missing, name)
		}
	}
	slices.Sort(o.missing)
	if spec.BatchNorm == "train" {
		o.running = runningIn(p)
	}
	return o
}

// runningIn are the values of the graph that batch normalization takes as running statistics, also within functions.
func runningIn(p *modelProto) map[string]bool {
	functions := map[string]*functionProto{}
	for _, f := range p.functions {
		functions[key(standard(f.domain), f.name, f.overload)] = f
	}
	known := map[*functionProto]map[string]bool{}
	var of func(nodes []*nodeProto) map[string]bool
	of = func(nodes []*nodeProto) map[string]bool {
		running := map[string]bool{}
		for _, n := range nodes {
			if n.op == "BatchNormalization" && len(n.inputs) > 4 {
				running[n.inputs[3]], running[n.inputs[4]] = true, true
			}
			f := functions[key(n.domain, n.op, n.overload)]
			if f == nil {
				continue
			}
			inner, visited := known[f]
			if !visited {
				known[f] = nil // a function that calls itself is refused later
				inner = of(f.nodes)
				known[f] = inner
			}
			for i, name := range f.inputs {
				if inner[name] && i < len(n.inputs) {
					running[n.inputs[i]] = true
				}
			}
		}
		return running
	}
	return of(p.graph.nodes)
}

const exportAgain = "export it with torch.onnx.export(model, args, dynamo=True, optimize=False)"

// check is an error for a model whose parameters are not what they were.
func (o *origins) check(p *modelProto) error {
	for _, n := range p.graph.nodes {
		if strings.Contains(n.op, "Quantize") || strings.HasPrefix(n.op, "QLinear") || strings.HasSuffix(n.op, "Integer") || strings.HasSuffix(n.op, "NBits") {
			return &train.Error{Msg: n.title() + ": the model is quantized, and integers are not trained", Help: "train the model that it was made of"}
		}
	}
	if o.optimized && len(o.missing) > 0 {
		list := o.missing
		if len(list) > 4 {
			list = append(slices.Clone(list[:4]), "and "+strconv.Itoa(len(o.missing)-4)+" more")
		}
		return &train.Error{Msg: "the exporter has folded parameters into others: " + strings.Join(list, ", "), Help: exportAgain}
	}
	if o.torch && o.parameters == nil {
		for _, t := range p.graph.constants {
			if strings.Contains(t.name, "::") {
				return &train.Error{Msg: "the parameter " + strconv.Quote(t.name) + " is no longer that of the module: the exporter has changed it", Help: exportAgain}
			}
		}
	}
	return nil
}

// trained is the argument for an initializer that is trained or updated, nil for one that is a constant.
func (s *scope) trained(t *tensorProto, d *types.Dense) *ir.Value {
	o := s.opts.trained
	if o == nil || s.outer != nil || !d.Elem.IsFloat() {
		return nil
	}
	a := train.Arg{Role: train.Parameter, Name: t.name, Value: d}
	switch {
	case o.running[t.name]:
		a.Role = train.Buffer
	case o.parameters != nil && !o.parameters[t.name], o.parameters == nil && len(t.dims) == 0:
		return nil
	}
	v := s.b.Block.AddArg(s.fresh(t.name), d.Type)
	v.Loc = loc.Named(t.name, nil)
	if o.parameters == nil { // it may be one that decides about shapes
		s.known[v] = d
	}
	s.args[v] = a
	if a.Role == train.Buffer {
		s.running[v] = v
	}
	return v
}

// trainedInput notes that an input is a parameter or a running statistic, of a model whose weights have no values: one that
// was traced without memory.
func (x *importer) trainedInput(name string, v *ir.Value) {
	switch o := x.opts.trained; {
	case o == nil || !v.Elem().IsFloat():
	case o.running[name]:
		x.args[v] = train.Arg{Role: train.Buffer, Name: name}
		x.running[v] = v
	case o.parameters[name]:
		x.args[v] = train.Arg{Role: train.Parameter, Name: name}
	}
}

// counter is the number of the step as an operand of what draws numbers, nothing in a model that is not trained.
func (n *node) counter() []*ir.Value {
	if n.opts.trained == nil {
		return nil
	}
	if n.step == nil {
		n.step = n.top.AddArg(n.fresh("step"), tensorOf(types.I64, nil))
		n.args[n.step] = train.Arg{Role: train.Counter}
	}
	return one(n.step)
}

// updated gives the running statistic in input i its next value: a share of that of the batch, times factor.
func (n *node) updated(i int, batch *ir.Value, factor float64) {
	v := n.in(i)
	old := n.running[v]
	if old == nil {
		return
	}
	keep, err := strconv.ParseFloat(strconv.FormatFloat(n.float("momentum", 0.9), 'g', -1, 32), 64) // 0.9, of which the file has the f32
	if err != nil || math.IsNaN(keep) {
		fail("momentum %v", keep)
	}
	n.running[v] = n.binary("add", n.with("mul", old, keep), n.with("mul", n.convertTo(batch, old.Elem()), (1-keep)*factor))
}

// model is the program as it is trained.
func (x *importer) model(p *modelProto) *train.Model {
	m := &train.Model{Module: x.module, Func: x.module.Funcs[0], Args: x.args}
	for _, out := range p.graph.outputs {
		m.Outputs = append(m.Outputs, out.name)
	}
	next := len(m.Outputs)
	for _, v := range m.Func.Args {
		if a := x.args[v]; a.Role == train.Buffer {
			a.Next = next
			x.args[v] = a
			next++
		}
	}
	return m
}

// updates are the next values of the buffers, in the order of the arguments.
func (x *importer) updates(body *ir.Block) (list []*ir.Value) {
	for _, v := range body.Args {
		if x.args[v].Role == train.Buffer {
			list = append(list, x.running[v])
		}
	}
	return list
}
