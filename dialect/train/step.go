package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// Step makes m.Module the program of a training step: @step, which calls the gradient of @loss, the model with its loss.
// The arguments of the step are the model's inputs, the target of the loss, the parameters, the buffers, the state of the
// optimizer and the number of steps made; the results are the loss and the next values of all but the first two. m is not
// to be used afterwards. An error is an *Error.
func Step(m *Model, spec *Spec) error {
	w := &writer{m: m, spec: spec, f: m.Func, names: map[string]bool{}, by: map[Role][]*ir.Value{}}
	m.Module.RemoveFunc(m.Func.Name)
	for _, o := range w.f.Body.Ops {
		for _, v := range o.Results {
			w.names[v.Name] = true
		}
	}
	for _, a := range w.f.Body.Args {
		w.names[a.Name] = true
	}
	if err := w.loss(); err != nil {
		return err
	}
	if err := w.reached(); err != nil {
		return err
	}
	w.order()
	return w.step()
}

// writer writes a step.
type writer struct {
	m     *Model
	spec  *Spec
	f     *ir.Func // the model, which becomes the loss
	names map[string]bool

	target *ir.Value            // of the loss; nil where it has none
	by     map[Role][]*ir.Value // the arguments of the loss
}

// fresh is a name that no value has, with "%".
func (w *writer) fresh(name string) string {
	unique := "%" + name
	for n := 1; w.names[unique]; n++ {
		unique = fmt.Sprintf("%%%s_%d", name, n)
	}
	w.names[unique] = true
	return unique
}

// loss makes the model the function of its loss: it returns the loss and the next values of the buffers.
func (w *writer) loss() error {
	body := w.f.Body
	ret := body.Terminator()
	results := slices.Clone(ret.Operands)
	at, err := w.output(results)
	if err != nil {
		return err
	}
	x := results[at]
	name, t, err := w.spec.target(x)
	if err != nil {
		return err
	}
	if err := w.freeze(); err != nil {
		return err
	}
	if t != nil {
		w.target = body.AddArg(w.fresh(name), t)
	}
	ir.Erase(ret)
	b := builder{op.NewBuilder(&ir.Builder{Block: body, Index: len(body.Ops), At: madeFor(lossScope + w.spec.Loss)}, verify.Op)}
	first, err := b.loss(w.spec, x, w.target)
	if err != nil {
		return err
	}
	if b.Err() != nil {
		return unfit("", "loss=%s cannot be taken of the output, %s", w.spec.Loss, x.Type)
	}
	if first.Name == "" {
		first.Name = w.fresh(lossName)
	}
	returned := []*ir.Value{first}
	for _, v := range body.Args {
		if a := w.m.Args[v]; a.Role == Buffer {
			returned = append(returned, results[a.Next])
		}
	}
	b.Builder.Op(op.Return, returned, nil)
	op.RemoveDead(body)
	w.f.Name, w.f.Private = lossName, true
	w.f.Op.SetAttr("sym_name", types.Str(lossName))
	w.f.Op.SetAttr("sym_visibility", types.Str("private"))
	w.f.Args = body.Args
	w.f.Retype()
	return nil
}

// freeze makes the parameters constants that the specification names.
func (w *writer) freeze() error {
	for _, pattern := range w.spec.Freeze {
		found := false
		for _, v := range w.f.Body.Args {
			if a := w.m.Args[v]; a.Role == Parameter && matches(pattern, a.Name) {
				w.constant(v)
				found = true
			}
		}
		if !found {
			return bad("freeze="+pattern, w.parameters(), "names no parameter")
		}
	}
	return nil
}

// parameters names some parameters, for messages.
func (w *writer) parameters() string {
	var names []string
	for _, v := range w.f.Body.Args {
		if a := w.m.Args[v]; a.Role == Parameter {
			names = append(names, a.Name)
		}
	}
	return "the parameters are " + listed(names)
}

// listed is a list of names, of many the first ones and how many more there are.
func listed(names []string) string {
	if len(names) > 8 {
		names = append(slices.Clone(names[:8]), fmt.Sprintf("and %d more", len(names)-8))
	}
	return strings.Join(names, ", ")
}

// output is the number of the output that the loss is of: the one named, the only one, or of several, where the model's own loss
// is asked for, the only scalar.
func (w *writer) output(results []*ir.Value) (int, error) {
	all := w.m.Outputs
	named := "the outputs are " + strings.Join(all, ", ")
	switch at := slices.Index(all, w.spec.Output); {
	case at >= 0:
		return at, nil
	case w.spec.Output != "":
		if near := diag.Suggest(w.spec.Output, all); near != "" {
			named = "did you mean " + near + "? " + named
		}
		return 0, bad("output="+w.spec.Output, named, "the model has no such output")
	case len(all) == 0:
		return 0, unfit("", "the model has no output")
	case len(all) > 1:
		if at := scalars(results[:len(all)]); w.spec.Loss == ownLoss && len(at) == 1 {
			return at[0], nil
		}
		return 0, unfit("name the one that the loss is of: output="+all[0]+"; "+named, "the model has %d outputs", len(all))
	}
	return 0, nil
}

// scalars are the numbers of those values that are floating-point scalars.
func scalars(values []*ir.Value) (at []int) {
	for i, v := range values {
		if t := v.Tensor(); t != nil && t.Rank() == 0 && t.Elem.IsFloat() {
			at = append(at, i)
		}
	}
	return at
}

// constant makes a parameter a constant of the model, or an input where the model does not tell its value or has it in a file.
func (w *writer) constant(v *ir.Value) {
	if a := w.m.Args[v]; a.Value == nil {
		a.Role = Input
		w.m.Args[v] = a
		return
	}
	if len(v.Uses) == 0 {
		return
	}
	b := &ir.Builder{Block: w.f.Body}
	c := b.Op(op.Constant, nil, named("value", types.Attr(w.m.Args[v].Value)), v.Type).Results[0]
	c.Name = v.Name
	ir.ReplaceUses(v, c)
}

// reached makes the parameters constants that no gradient flows to.
func (w *writer) reached() error {
	var wrt []int
	for i, v := range w.f.Args {
		if w.m.Args[v].Role == Parameter && len(v.Uses) > 0 {
			wrt = append(wrt, i)
		}
	}
	if len(wrt) == 0 {
		return unfit("a parameter is a floating-point initializer of the graph that the output depends on", "the model has no parameters to train")
	}
	g, err := autodiff.Function(w.m.Module, w.f, autodiff.Options{Wrt: wrt})
	var e *autodiff.Error
	switch {
	case errors.As(err, &e):
		return unfit(e.Help, "%s%s", nameOf(e.Op), e.Msg)
	case err != nil:
		return unfit("", "%v", err)
	}
	kept := 0
	for i, grad := range g.Body.Terminator().Operands {
		if isZero(grad) {
			w.constant(w.f.Args[wrt[i]])
		} else {
			kept++
		}
	}
	if kept == 0 {
		return unfit("train an output that depends on them in floating-point numbers", "no gradient of the loss reaches a parameter")
	}
	return nil
}

// nameOf is the name of a result of o with a colon behind it, "" where none has one.
func nameOf(o *ir.Op) string {
	if o != nil {
		for _, v := range o.Results {
			if v.Name != "" {
				return v.Name + ": "
			}
		}
	}
	return ""
}

// isZero reports whether v is the constant 0, which a gradient is that nothing flows to.
func isZero(v *ir.Value) bool {
	if v.Op != nil && v.Op.Name == op.Prefix+"broadcast" {
		v = v.Op.Operands[0]
	}
	if v.Op == nil || v.Op.Name != op.Constant {
		return false
	}
	d, ok := v.Op.Attr("value").(*types.Dense)
	return ok && d.Splat && d.Len() > 0 && d.Float(0) == 0
}

// order gives the loss its arguments in the order of the step's, without the parameters that are constants.
func (w *writer) order() {
	for _, v := range w.f.Args {
		role := w.m.Args[v].Role
		if v != w.target && !(role == Parameter && len(v.Uses) == 0) {
			w.by[role] = append(w.by[role], v)
		}
	}
	args := w.by[Input]
	if w.target != nil {
		args = append(args, w.target)
	}
	args = slices.Concat(args, w.by[Parameter], w.by[Buffer], w.by[Counter])
	for i, v := range args {
		v.Index = i
	}
	w.f.Args, w.f.Body.Args = args, args
	w.f.Retype()
}

// Added reports whether a path of scopes is that of what is added to a model, the loss or the optimizer.
func Added(scopes string) bool {
	return strings.HasPrefix(scopes, lossScope) || strings.HasPrefix(scopes, optimizerScope)
}

// The paths of what is added, before the name of the loss and of the optimizer.
const (
	lossScope      = "loss/"
	optimizerScope = "optimizer/"
)

// madeFor is the place of ops that are added to a model, by the path of a scope: they come from no line.
func madeFor(scope string) *ir.Op { return &ir.Op{Loc: loc.Named(scope, nil)} }
