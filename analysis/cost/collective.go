package cost

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"dmir/analysis/machine"
	"dmir/analysis/network"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// A Collective is what an op makes a device send to others of its mesh.
type Collective struct {
	Kind network.Kind
	shard.Transfer
	Axes string // "data", "data,model"

	fabric *fabric
	names  []string // of the axes in fabric
	values int      // that are exchanged as one; 0: one
}

// Estimate predicts the collective on m. It is an error if m does not have the devices of
// the mesh, or no links between them.
func (c *Collective) Estimate(m *machine.Machine) (network.Estimate, error) {
	on, err := c.fabric.on(m)
	if err != nil {
		return network.Estimate{}, err
	}
	return on.Estimate(c.Kind, c.Buffer, c.names...)
}

// Crosses are the links over which the collective's groups send, from the inside out.
func (c *Collective) Crosses(m *machine.Machine) []machine.Link {
	on, err := c.fabric.on(m)
	if err != nil {
		return nil
	}
	links, err := on.Crosses(c.names...)
	if err != nil {
		return nil
	}
	return links
}

// kindOf are the kinds of the collectives.
var kindOf = map[string]network.Kind{
	op.AllReduce: network.AllReduce, op.ReduceScatter: network.ReduceScatter, op.AllGather: network.AllGather,
	op.AllToAll: network.AllToAll, op.CollectivePermute: network.Permute, op.Send: network.Send,
}

// communicates reports whether o sends something: a collective, or several as one.
func communicates(o *ir.Op) bool {
	if op.IsBucket(o) {
		o = o.Body(0).Ops[0]
	}
	_, ok := kindOf[o.Name]
	return ok
}

// fabric is a mesh, its axes cut into the parts that a collective names, on machines.
type fabric struct {
	axes []network.Axis
	mu   sync.Mutex
	by   map[*machine.Machine]placed
}

type placed struct {
	mesh *network.Mesh
	err  error
}

func (f *fabric) on(m *machine.Machine) (*network.Mesh, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, known := f.by[m]
	if !known {
		p.mesh, p.err = network.NewMesh(m, f.axes)
		f.by[m] = p
	}
	return p.mesh, p.err
}

// fabrics are those of a coster by their axes.
type fabrics struct {
	mu sync.Mutex
	by map[string]*fabric
}

func (f *fabrics) of(axes []network.Axis) *fabric {
	key := fmt.Sprint(axes)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[string]*fabric{}
	}
	if f.by[key] == nil {
		f.by[key] = &fabric{axes: axes, by: map[*machine.Machine]placed{}}
	}
	return f.by[key]
}

// cut is the axes of m, those of which axes names a part as several, and the names among them
// of axes. ok is false where parts do not divide one another.
func cut(m *mesh.Mesh, axes []types.Axis) (all []network.Axis, names []string, ok bool) {
	g, err := shard.NewGrid(m, []*types.Sharding{{Partial: axes}})
	if err != nil {
		return nil, nil, false
	}
	for i, a := range g.Atoms {
		all = append(all, network.Axis{Name: a.String(), Size: g.Sizes[i]})
	}
	for _, i := range g.Layout(&types.Sharding{Partial: axes}, 0).Partial {
		names = append(names, all[i].Name)
	}
	return all, names, true
}

// collective is what o makes the devices of s's mesh send; nil where that is not known.
func (s *scope) collective(o *ir.Op) *Collective {
	t, ok := shard.TransferOf(o, s.mesh)
	if !ok {
		return nil
	}
	if s.some && o.Name == op.Send { // all that run it send
		t.Sent = t.Buffer
	}
	all, names, ok := cut(s.mesh, t.Axes)
	if !ok {
		return nil
	}
	return &Collective{Kind: kindOf[o.Name], Transfer: t, Axes: t.Key(), fabric: s.fabrics.of(all), names: names}
}

// bucket is what the collectives of a kernel, which are one, make the devices of s's mesh send; nil where that is not known.
func (s *scope) bucket(members []*ir.Op) *Collective {
	var all []*Collective
	for _, o := range members {
		c := s.collective(o)
		if c == nil {
			return nil
		}
		all = append(all, c)
	}
	return joined(all)
}

// joined is collectives, of one kind and the same axes, as one. It is nil of none.
func joined(all []*Collective) *Collective {
	if len(all) == 0 {
		return nil
	}
	one := *all[0]
	one.values = 0
	for i, c := range all {
		one.values += max(c.values, 1)
		if i > 0 {
			one.Buffer += c.Buffer
			one.Sent += c.Sent
		}
	}
	return &one
}

// Sent is bytes that a device sends along axes, "data" or "data,model".
type Sent struct {
	Axes  string
	Bytes int64
}

// Sent is what a device sends to run e, by axes in their order in e; known is false where that
// depends on unbound symbols.
func (e *Entry) Sent() (sent []Sent, known bool) {
	t := &sentTally{known: true}
	t.entry(e, 1)
	return t.sent, t.known
}

// Sent is what a device sends to run f, by axes.
func (f *Func) Sent() (sent []Sent, known bool) {
	x, done := f.timed.Load(ofSends{})
	if !done {
		f.visit("cost", len(f.Entries))
		y := &sends{by: map[string]Sent{}, from: map[string]int{}}
		for _, e := range f.Entries {
			y.add(e, 1)
		}
		x, _ = f.timed.LoadOrStore(ofSends{}, y)
	}
	y := x.(*sends)
	for _, axes := range slices.Sorted(maps.Keys(y.by)) {
		sent = append(sent, y.by[axes])
	}
	return sent, y.unknown == 0
}

// sends is the sum of what a device sends to run entries.
type sends struct {
	unknown int             // entries of which that is not known
	by      map[string]Sent // by axes
	from    map[string]int  // how many entries send along axes
}

// ofSends is the key of the sends of a function among its sums.
type ofSends struct{}

// add adds what an entry sends, or takes it from the sum.
func (y *sends) add(e *Entry, sign int) {
	sent, known := e.Sent()
	if !known {
		y.unknown += sign
	}
	for _, s := range sent {
		n := y.by[s.Axes].Bytes + int64(sign)*s.Bytes
		y.by[s.Axes] = Sent{s.Axes, n}
		if y.from[s.Axes] += sign; y.from[s.Axes] == 0 {
			delete(y.by, s.Axes)
		}
	}
}

// TotalSent is the sum over all axes.
func TotalSent(sent []Sent) int64 {
	n := int64(0)
	for _, s := range sent {
		n += s.Bytes
	}
	return n
}

type sentTally struct {
	sent  []Sent
	known bool
}

func (t *sentTally) entry(e *Entry, times int64) {
	switch {
	case e.Comm != nil:
		t.add(e.Comm.Axes, e.Comm.Sent*times)
	case communicates(e.Op) && e.parts == nil:
		t.known = false
	case e.callee != nil:
		inner := e.callee.tally()
		t.known = t.known && inner.known
		for _, s := range inner.sent {
			t.add(s.Axes, s.Bytes*times)
		}
	case e.parts != nil:
		for _, i := range e.parts {
			t.entry(i, times)
		}
	case len(e.Inner) > 0 && !e.Fused:
		n, ok := e.Trips.Int()
		inner := &sentTally{known: true}
		for _, i := range e.Inner {
			inner.entry(i, 1)
		}
		if len(inner.sent) == 0 {
			t.known = t.known && inner.known
			return
		}
		t.known = t.known && inner.known && ok
		for _, s := range inner.sent {
			t.add(s.Axes, s.Bytes*n*times)
		}
	}
}

func (t *sentTally) add(axes string, bytes int64) {
	for i := range t.sent {
		if t.sent[i].Axes == axes {
			t.sent[i].Bytes += bytes
			return
		}
	}
	t.sent = append(t.sent, Sent{axes, bytes})
}
