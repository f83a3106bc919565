package cost

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// marks are what some ops in the body of a function say about all of it. An edit
// changes few ops, and what is asked of the function after each edit looks at the
// marked ones alone.
type marks struct {
	ops    map[*ir.Op]bool
	calls  map[string]map[*ir.Op]bool // ops that call a function, or hold a call, by its name
	sorted []*ir.Op                   // in the order of the text; nil until asked for
	states map[*ir.Op][]note          // shardings that the text states in an op, nil: in the signature
	meshes map[string]int             // how many these are, by mesh
	wrong  int                        // how many do not fit their mesh
}

// note is the mesh of a stated sharding, and whether it does not fit that.
type note struct {
	mesh  string
	wrong bool
}

// marked reports whether o, an op of a body, says something about the function: that
// it ends, where a stage begins, that there is a gradient, a tuple, a constant that is data.
func marked(o *ir.Op) bool {
	switch o.Name {
	case op.Return, op.Grad, op.Pack:
		return true
	}
	return slices.ContainsFunc(o.Attrs, func(a types.Named) bool {
		return a.Name == op.StageAttr || a.Name == op.BackwardAttr || a.Name == op.MicroAttr
	}) || holdsData(o)
}

// marks are those of f. The coster must not be in use by others.
func (f *Func) marks() *marks {
	if f.marked == nil {
		k := &marks{ops: map[*ir.Op]bool{}, calls: map[string]map[*ir.Op]bool{}, states: map[*ir.Op][]note{}, meshes: map[string]int{}}
		m := f.body.in.m
		k.values(m, nil, f.Func.Args)
		for _, list := range op.ResultShardings(f.Func) {
			k.state(m, nil, list)
		}
		k.add(m, f.Func.Body.Ops)
		f.visit("marks", len(f.Func.Body.Ops))
		f.marked = k
	}
	return f.marked
}

func (k *marks) add(m *ir.Module, ops []*ir.Op) {
	for _, o := range ops {
		if marked(o) {
			k.ops[o], k.sorted = true, nil
		}
		ir.Walk([]*ir.Op{o}, func(p *ir.Op) bool {
			if name := calls(p); name != "" {
				if k.calls[name] == nil {
					k.calls[name] = map[*ir.Op]bool{}
				}
				k.calls[name][o] = true
			}
			k.values(m, o, p.Results)
			for _, r := range p.Regions {
				for _, b := range r.Blocks {
					k.values(m, o, b.Args)
				}
			}
			return true
		})
	}
}

// calls is the name of the function that o calls or takes the gradient of, "" of other ops.
func calls(o *ir.Op) string {
	if o.Name == op.Call || o.Name == op.Grad {
		return o.Str("callee")
	}
	return ""
}

// callees are the names of the functions that ops, and those inside them, call.
func callees(ops []*ir.Op) (names []string) {
	ir.Walk(ops, func(o *ir.Op) bool {
		if name := calls(o); name != "" {
			names = append(names, name)
		}
		return true
	})
	return names
}

func (k *marks) drop(ops []*ir.Op) {
	for _, o := range ops {
		if k.ops[o] {
			delete(k.ops, o)
			k.sorted = nil
		}
		for _, name := range callees([]*ir.Op{o}) {
			delete(k.calls[name], o)
		}
		for _, n := range k.states[o] {
			if k.meshes[n.mesh]--; k.meshes[n.mesh] == 0 {
				delete(k.meshes, n.mesh)
			}
			if n.wrong {
				k.wrong--
			}
		}
		delete(k.states, o)
	}
}

// values notes what is stated of values that o, or an op inside it, defines.
func (k *marks) values(m *ir.Module, o *ir.Op, vs []*ir.Value) {
	for _, v := range vs {
		t := v.Tensor()
		if v.Op != nil && v.Op.Attr(op.ShardingAttr) == nil && (v.Op.Name == op.Unpack || t != nil && t.At.Shard == nil) {
			continue // nearly all values; a tuple states the shardings of its members
		}
		k.state(m, o, op.StatedShardings(v))
	}
}

func (k *marks) state(m *ir.Module, o *ir.Op, list []*types.Sharding) {
	for _, s := range list {
		if s == nil {
			continue
		}
		name, _ := s.Mesh.Name()
		n := note{mesh: name}
		if on := mesh.Find(m, name); on == nil || on.Problem(s) != "" {
			n.wrong = true
			k.wrong++
		}
		k.meshes[name]++
		k.states[o] = append(k.states[o], n)
	}
}

// order is the marked ops in the order of the text.
func (k *marks) order() []*ir.Op {
	if k.sorted == nil {
		k.sorted = make([]*ir.Op, 0, len(k.ops))
		for o := range k.ops {
			k.sorted = append(k.sorted, o)
		}
		slices.SortFunc(k.sorted, func(a, b *ir.Op) int { return a.Span.Start - b.Span.Start })
	}
	return k.sorted
}

// stated is like shard.Stated, which looks at all of f: only where what is stated
// has a problem, that is asked for which.
func (f *Func) stated() (on *mesh.Mesh, states bool, problem *shard.Problem) {
	k := f.marks()
	switch {
	case len(k.states) == 0:
		return nil, false, nil
	case k.wrong > 0 || len(k.meshes) > 1:
		f.visit("shard", len(f.Func.Body.Ops))
		on, all, problem := shard.Stated(f.body.in.m, f.Func)
		return on, len(all) > 0, problem
	}
	for name := range k.meshes {
		on = mesh.Find(f.body.in.m, name)
	}
	return on, true, nil
}

// Marked are the ops in the body of f that say something about all of it, in the order of
// the text: all its terminators, and those with a stage, gradients, constants that are data.
func (f *Func) Marked() []*ir.Op {
	if f.body == nil {
		return nil
	}
	defer f.lock()()
	marked := f.marks().order()
	f.visit("marks", len(marked))
	return marked
}

// MeshOf is shard.MeshOf of f.
func (f *Func) MeshOf() (*mesh.Mesh, *shard.Problem) {
	defer f.lock()()
	return shard.MeshBy(f.body.in.m, f.Func, func() (*mesh.Mesh, *shard.Problem) {
		on, _, problem := f.stated()
		return on, problem
	})
}

func (f *Func) lock() (unlock func()) {
	c := f.body.in.coster
	c.late.Lock()
	return c.late.Unlock
}

// visit counts n ops that name looked at because of an edit.
func (f *Func) visit(name string, n int) {
	if f.body != nil && f.body.in.m != nil {
		f.body.in.m.Work.Add(name, n)
	}
}
