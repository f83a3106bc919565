package assemble

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// collective adds step i of the schedule, a collective as the pass collectives writes it.
func (b *builder) collective(i int, st schedule.Step) error {
	o, members := st.Op, op.Bucket(st.Op)
	if members != nil {
		o = members[0]
	}
	name := b.unique(strings.TrimPrefix(o.Name, op.Prefix))
	moved := slices.Concat(o.Operands, o.Results) // both, but of a send and a receive
	x, y := moved[0], moved[len(moved)-1]
	if members != nil {
		y = st.Op.Results[0]
	}
	from, to, err := b.exchanged(o, x, y)
	if err != nil {
		return err
	}
	axes, err := b.spans(o, op.Strings(o, "axes"))
	if err != nil {
		return err
	}
	step := artifact.Step{
		Name: name, Kind: artifact.StepCollective, Stream: st.Stream,
		Collective: artifact.Collective{Op: kinds[o.Name], Reduction: op.Str(o, "reduction"), From: from, To: to, Axes: axes},
	}
	for k := 1; k < len(members); k++ {
		x, y, err := b.exchanged(members[k], members[k].Operands[0], st.Op.Results[k])
		if err != nil {
			return err
		}
		step.Collective.More = append(step.Collective.More, artifact.Move{From: x, To: y})
	}
	for _, p := range op.Pairs(o, "pairs") {
		step.Collective.Pairs = append(step.Collective.Pairs, [2]int{int(p[0]), int(p[1])})
	}
	if step.Collective.Op.Point() {
		step.Collective.Pairs = [][2]int{{int(op.Int(o, "from")), int(op.Int(o, "to"))}}
		step.Collective.Tag = int(op.Int(o, "channel"))
	}
	step.Lines = slices.Sorted(slices.Values(b.lines(st.Op)))
	step.Waits = b.awaited(i)
	for _, v := range step.Collective.Values() {
		if step.Collective.Op != artifact.Recv {
			step.ReadBytes += b.out.Buffers[v.From].Size()
		}
		if step.Collective.Op != artifact.Send {
			step.WrittenBytes += b.out.Buffers[v.To].Size()
		}
	}
	if e, m := b.costs[st.Op], b.backend.Machine(); e != nil && m != nil {
		step.TimeNs = e.Time(m).Ns
	}
	b.steps = append(b.steps, [2]int{len(b.out.Steps), len(b.out.Steps)})
	b.out.Steps = append(b.out.Steps, step)
	return nil
}

// exchanged are the buffers of what the collective o exchanges, x for y.
func (b *builder) exchanged(o *ir.Op, x, y *ir.Value) (from, to int, err error) {
	from, ok := b.buffer[x]
	to, made := b.buffer[y]
	if !ok || !made {
		return 0, 0, failure(o, "%s has no buffer", o.Name)
	}
	for _, attr := range []string{"dim", "split", "concat"} {
		if n := op.Int(o, attr); n != 0 {
			return 0, 0, failure(o, "%s along dimension %d, not the first: run the pass collectives again", o.Name, n)
		}
	}
	if x.Tensor().At.Order != nil || y.Tensor().At.Order != nil {
		return 0, 0, failure(o, "%s of data that is not row-major: run the pass collectives again", o.Name)
	}
	return from, to, nil
}

// kinds are the collectives of artifacts.
var kinds = map[string]artifact.CollectiveOp{
	op.AllReduce: artifact.AllReduce, op.ReduceScatter: artifact.ReduceScatter, op.AllGather: artifact.AllGather,
	op.AllToAll: artifact.AllToAll, op.CollectivePermute: artifact.Permute,
	op.Send: artifact.Send, op.Recv: artifact.Recv,
}

// spans are axes of the function's mesh as distances between devices.
func (b *builder) spans(o *ir.Op, names []string) ([]artifact.Span, error) {
	m := mesh.Find(b.unit.Module, b.unit.Func.Op.Str(op.MeshAttr))
	if m == nil {
		return nil, failure(o, "the function has no mesh")
	}
	axes, err := m.ParseAxes(names)
	if err != nil {
		return nil, pass.Errorf(o, "DM831", "%v", err)
	}
	var out []artifact.Span
	for _, a := range axes {
		out = append(out, artifact.Span{Size: m.Size(a), Stride: m.Stride(a)})
	}
	return out, nil
}

// divided describes the mesh and the wholes of arguments and results, if the function is what
// one device of a mesh runs.
func (b *builder) divided(fn *ir.Func) error {
	m := mesh.Find(b.unit.Module, fn.Op.Str(op.MeshAttr))
	if m == nil {
		return nil
	}
	d := &artifact.Distribution{Mesh: m.Name}
	for _, a := range m.Axes {
		d.Axes = append(d.Axes, artifact.MeshAxis{Name: a.Name, Size: a.Size})
	}
	for i := range fn.Args {
		names, is := op.PositionOf(fn.Op, i)
		switch {
		case is:
			axes, err := b.spans(fn.Op, names)
			if err != nil {
				return err
			}
			d.Positions = append(d.Positions, artifact.Position{Axes: axes})
		case len(d.Positions) > 0:
			return failure(fn.Op, "an argument stands behind a position")
		default:
			t, _ := op.GlobalType(fn.Op, "arg_attrs", i)
			d.Inputs = append(d.Inputs, whole(t))
		}
	}
	for i := range fn.Results {
		t, _ := op.GlobalType(fn.Op, "res_attrs", i)
		d.Outputs = append(d.Outputs, whole(t))
	}
	b.out.Divided = d
	return nil
}

// whole is t as an artifact has it; nil where devices do not divide it.
func whole(t *types.Tensor) *artifact.Whole {
	if t == nil || t.At.Shard == nil {
		return nil
	}
	w := &artifact.Whole{}
	for i, d := range t.Shape {
		n, _ := d.Int()
		w.Shape = append(w.Shape, n)
		names := []string{}
		for _, a := range t.At.Shard.Dims[i].Axes {
			names = append(names, a.String())
		}
		w.Dims = append(w.Dims, names)
	}
	for _, a := range t.At.Shard.Partial {
		w.Partial = append(w.Partial, a.String())
	}
	if len(w.Partial) > 0 {
		w.Reduction = t.At.Shard.Reduce.Word()
	}
	return w
}
