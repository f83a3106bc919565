package train

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
)

// states are the names of what the optimizer keeps of each parameter, as PyTorch calls them.
func (s *Spec) states() []string {
	switch {
	case s.Optimizer == "adam" || s.Optimizer == "adamw":
		return []string{"exp_avg", "exp_avg_sq"}
	case s.Momentum != 0:
		return []string{"momentum_buffer"}
	}
	return nil
}

// update is the optimizer's step of the parameter x with the gradient g: the next values of x and of its states. now is
// the number of the step, from 1; rate is nil where the learning rate is fixed.
func (b builder) update(s *Spec, x, g *ir.Value, states []*ir.Value, now, rate *ir.Value) []*ir.Value {
	decay := s.WeightDecay
	if s.OnlyMatrix && x.Tensor().Rank() < 2 {
		decay = 0
	}
	var attrs []types.Named
	if rate == nil {
		attrs = named("lr", types.Float{V: s.LR})
	}
	operands := append([]*ir.Value{x, g}, states...)
	kind := "sgd"
	switch {
	case s.Optimizer == "adam" || s.Optimizer == "adamw":
		if s.Optimizer == "adam" && decay != 0 { // of Adam it is a part of the gradient
			operands[1] = b.Binary("add", g, b.with("mul", x, decay))
			decay = 0
		}
		kind, operands = "adam", append(operands, now)
		attrs = append(attrs, named("beta1", types.Float{V: s.Beta1}, "beta2", types.Float{V: s.Beta2}, "epsilon", types.Float{V: s.Eps})...)
	case s.Momentum != 0:
		kind = "momentum"
		attrs = append(attrs, named("momentum", types.Float{V: s.Momentum}, "nesterov", types.Bool(s.Nesterov))...)
	}
	attrs = append(attrs, named("weight_decay", types.Float{V: decay})...)
	if rate != nil {
		operands = append(operands, rate)
	}
	o := b.Make(kind, operands, stated(kind, attrs))
	if o == nil {
		return nil
	}
	return o.Results
}

// stated are the attributes of dm.kind that differ from its defaults, and the learning rate.
func stated(kind string, attrs []types.Named) []types.Named {
	def := op.Lookup(op.Prefix + kind)
	return slices.DeleteFunc(attrs, func(a types.Named) bool {
		d := def.Attr(a.Name)
		return a.Name != "lr" && d != nil && d.Default != nil && types.EqualAttr(d.Default, a.Value)
	})
}

// stepFunc is the function of the step while it is written.
type stepFunc struct {
	builder
	*writer
	body           *ir.Block
	args, results  types.Array // the attributes of each
	returned       []*ir.Value
	params, others []*ir.Value // parameters and buffers, as arguments
}

// arg adds an argument, which begins with a number or an array, or is given by every step where begin is nil.
func (s *stepFunc) arg(name string, t types.Type, begin types.Attr) *ir.Value {
	own := types.Dict{}
	if begin != nil {
		own = types.Dict{{Name: op.InitAttr, Value: begin}}
	}
	s.args = append(s.args, own)
	return s.body.AddArg(name, t)
}

// result adds a result with a name, which is the next value of arg where that is not nil.
func (s *stepFunc) result(v *ir.Value, name string, arg *ir.Value) {
	own := types.Dict{{Name: op.NameAttr, Value: types.Str(name)}}
	if arg != nil {
		own = append(own, types.Named{Name: op.StateAttr, Value: types.Int{V: int64(arg.Index), Elem: types.I64}})
		if v.Name == "" {
			v.Name = s.fresh(bare(arg) + "_next")
		}
	}
	s.results, s.returned = append(s.results, own), append(s.returned, v)
}

func bare(v *ir.Value) string { return strings.TrimPrefix(v.Name, "%") }

// step adds the function of the step.
func (w *writer) step() error {
	fn := &ir.Op{Name: op.Func}
	body := fn.AddRegion()
	w.names = map[string]bool{}
	for _, v := range w.f.Args {
		w.names[v.Name] = true
	}
	s := &stepFunc{builder: builder{op.NewBuilder(&ir.Builder{Block: body, At: madeFor(optimizerScope + w.spec.Optimizer)}, verify.Op)}, writer: w, body: body}
	for _, v := range w.f.Args {
		a := w.m.Args[v]
		var own *ir.Value
		switch a.Role {
		case Input:
			own = s.arg(v.Name, v.Type, a.begin())
		case Parameter:
			own = s.arg(v.Name, v.Type, a.begin())
			s.params = append(s.params, own)
		case Buffer:
			own = s.arg(v.Name, v.Type, a.begin())
			s.others = append(s.others, own)
		}
		if own != nil {
			own.Loc = v.Loc
		}
	}
	given := slices.Clone(body.Args)
	var states [][]*ir.Value // of each parameter
	for _, p := range s.params {
		var own []*ir.Value
		for _, name := range w.spec.states() {
			own = append(own, s.arg(w.fresh(name+"."+bare(p)), p.Type, types.Float{}))
		}
		states = append(states, own)
	}
	var rate *ir.Value
	if w.spec.ScheduledLR {
		rate = s.arg(w.fresh("lr"), &types.Tensor{Elem: types.F32}, nil)
	}
	counter := &types.Tensor{Elem: types.I64}
	name := ""
	if drawn := w.by[Counter]; len(drawn) > 0 {
		name = drawn[0].Name
	} else {
		name = w.fresh("step")
	}
	made := s.arg(name, counter, types.Int{Elem: types.I64})
	if len(w.by[Counter]) > 0 {
		given = append(given, made)
	}

	grad := s.gradient(given)
	grad.Loc = nil // its ops come from the model's lines and from the loss
	now := s.Binary("add", made, s.Value("constant", nil, named("value", whole64(1)), counter))
	var next [][]*ir.Value
	for i, p := range s.params {
		g := grad.Results[1+len(s.others)+i]
		next = append(next, s.update(w.spec, p, g, states[i], now, rate))
		if err := s.Err(); err != nil {
			return unfit("", "there is no step of the optimizer for %s: %v", p.Name, err)
		}
	}
	s.result(grad.Results[0], lossName, nil)
	for i, p := range s.params {
		s.result(next[i][0], w.m.Args[w.by[Parameter][i]].Name, p)
	}
	for i, v := range s.others {
		s.result(grad.Results[1+i], w.m.Args[w.by[Buffer][i]].Name, v)
	}
	for i, own := range states {
		for k, v := range own {
			s.result(next[i][1+k], w.spec.states()[k]+"."+w.m.Args[w.by[Parameter][i]].Name, v)
		}
	}
	s.result(now, "step", made)
	s.Builder.Op(op.Return, s.returned, nil)

	fn.SetAttr("sym_name", types.Str(StepName))
	fn.SetAttr("arg_attrs", s.args)
	fn.SetAttr("res_attrs", s.results)
	f := &ir.Func{Op: fn, Name: StepName, Args: body.Args, Body: body}
	f.Retype()
	m := w.m.Module
	m.Ops = append([]*ir.Op{fn, w.f.Op}, m.Ops...)
	m.AddFunc(f)
	m.AddFunc(w.f)
	return nil
}

// gradient is the loss with the gradients of the parameters.
func (s *stepFunc) gradient(given []*ir.Value) *ir.Op {
	var wrt []int
	results := slices.Clone(s.f.Results)
	for _, p := range s.params {
		wrt, results = append(wrt, p.Index), append(results, plainType(p.Tensor()))
	}
	grad := s.Builder.Op(op.Grad, given, named("callee", types.SymbolOf(lossName), "wrt", op.IntList(wrt...)), results...)
	grad.Results[0].Name = s.fresh(lossName)
	for i, p := range s.params {
		grad.Results[1+len(s.others)+i].Name = s.fresh("d_" + bare(p))
	}
	return grad
}
