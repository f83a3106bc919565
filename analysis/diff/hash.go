package diff

import (
	"hash/maphash"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// hasher gives numbers to ops that are the same for ops that do the same, in
// whatever program they stand.
type hasher struct {
	seed   maphash.Seed
	deep   map[*ir.Op]uint64
	shapes map[*ir.Op]uint64
	types  map[*types.Tensor]string
}

func newHasher() *hasher {
	return &hasher{maphash.MakeSeed(), map[*ir.Op]uint64{}, map[*ir.Op]uint64{}, map[*types.Tensor]string{}}
}

// shape is for ops of one name with the same attributes, types and regions,
// whatever their operands are.
func (h *hasher) shape(o *ir.Op) uint64 {
	if n, done := h.shapes[o]; done {
		return n
	}
	m := h.mixer()
	m.text(o.Name)
	for _, a := range o.Attrs {
		if o.Name == op.Func && (a.Name == "sym_name" || a.Name == "sym_visibility") {
			continue
		}
		m.text(a.Name)
		if a.Value != nil {
			m.text(a.Value.String())
		}
	}
	for _, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		m.number(uint64(len(vs)))
		for _, v := range vs {
			m.text(h.typ(v))
		}
	}
	h.regions(m, o, h.shape)
	n := m.Sum64()
	h.shapes[o] = n
	return n
}

// op is for ops of one shape whose operands come from ops that are the same
// down to the arguments of the function.
func (h *hasher) op(o *ir.Op) uint64 {
	if n, done := h.deep[o]; done {
		return n
	}
	h.deep[o] = 0 // ends the walk where a broken text uses a value before it is there
	m := h.mixer()
	m.number(h.shape(o))
	for _, v := range o.Operands {
		m.number(uint64(v.Index))
		if v.Op == nil {
			m.number(1)
			continue
		}
		m.number(h.deep[v.Op]) // defined above, and so known
	}
	h.regions(m, o, h.op)
	n := m.Sum64()
	h.deep[o] = n
	return n
}

func (h *hasher) regions(m *mixer, o *ir.Op, of func(*ir.Op) uint64) {
	for _, r := range o.Regions {
		m.number(uint64(len(r.Blocks)))
		for _, b := range r.Blocks {
			for _, v := range b.Args {
				m.text(h.typ(v))
			}
			for _, p := range b.Ops {
				m.number(of(p))
			}
		}
	}
}

// body is for functions of one type that compute the same.
func (h *hasher) body(fn *ir.Func) uint64 {
	if fn.Op == nil {
		return 0
	}
	return h.op(fn.Op)
}

// typ is the text of v's type.
func (h *hasher) typ(v *ir.Value) string {
	if v.Type == nil {
		return ""
	}
	t := v.Tensor()
	if t == nil {
		return v.Type.String()
	}
	text, done := h.types[t]
	if !done {
		text = t.String()
		h.types[t] = text
	}
	return text
}

// mixer is a hash in which the boundaries of parts count.
type mixer struct{ maphash.Hash }

func (h *hasher) mixer() *mixer {
	m := &mixer{}
	m.SetSeed(h.seed)
	return m
}

func (m *mixer) text(s string) {
	m.WriteString(s)
	m.WriteByte(0)
}

func (m *mixer) number(n uint64) {
	for range 8 {
		m.WriteByte(byte(n))
		n >>= 8
	}
}
