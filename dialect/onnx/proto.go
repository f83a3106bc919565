package onnx

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of a model, with those of their fields that an import reads. Bytes are
// parts of the file, which they keep.
type (
	modelProto struct {
		version   int64
		opsets    map[string]int64 // by domain
		graph     *graphProto
		functions []*functionProto
	}
	graphProto struct {
		name            string
		nodes           []*nodeProto
		constants       []*tensorProto
		sparse          []*sparseProto
		inputs, outputs []*valueProto
		inner           []*valueProto // types of other values
	}
	functionProto struct {
		name, domain, overload string
		inputs, outputs        []string
		nodes                  []*nodeProto
		defaults               []*attributeProto
		opsets                 map[string]int64
	}
	nodeProto struct {
		name, op, domain, overload string
		doc, scopes, stack         string // what exporters keep of where the node comes from
		inputs, outputs            []string
		attrs                      []*attributeProto
	}
	attributeProto struct {
		name, ref string // ref: the attribute of the function around that it takes
		kind      int64
		i         int64
		f         float32
		s         []byte
		t         *tensorProto
		sparse    *sparseProto
		g         *graphProto
		floats    []float32
		ints      []int64
		strings   []string
	}
	valueProto struct {
		name  string
		kind  string // "" for a tensor, otherwise what it is
		elem  int64
		shape []sizeProto
		known bool // the shape is stated
	}
	sizeProto struct {
		n     int64
		name  string
		known bool // n is stated
	}
	tensorProto struct {
		name     string
		dims     []int64
		elem     int64
		raw      []byte
		hasRaw   bool
		floats   []byte  // f32, as stored
		doubles  []byte  // f64, as stored
		ints     []int64 // of both 32 and 64 bits
		external map[string]string
		remote   bool // the elements are in another file
		segment  bool
	}
)

// maxDepth bounds how deep graphs lie in attributes of nodes.
const maxDepth = 64

// field is a field of a message: n of a number, data of bytes.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	n    uint64
	data []byte
}

// each calls f for the fields of a message.
func each(b []byte, what string, f func(field)) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			fail("the file is no ONNX model or is cut off: %s: %v", what, protowire.ParseError(n))
		}
		b = b[n:]
		x := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			x.n, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			x.n = uint64(v)
		case protowire.Fixed64Type:
			x.n, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			x.data, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			fail("the file is no ONNX model or is cut off: %s: %v", what, protowire.ParseError(n))
		}
		b = b[n:]
		f(x)
	}
}

// int64s appends a number, or packed ones, to list.
func (x field) int64s(list []int64) []int64 {
	if x.typ != protowire.BytesType {
		return append(list, int64(x.n))
	}
	for b := x.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			fail("the file is no ONNX model or is cut off: a list of integers: %v", protowire.ParseError(n))
		}
		list, b = append(list, int64(v)), b[n:]
	}
	return list
}

// stored appends the bytes of a number, or of packed ones, of size bytes each to list.
func (x field) stored(list []byte, size int) []byte {
	if x.typ == protowire.BytesType {
		if len(x.data)%size != 0 {
			fail("the file is no ONNX model or is cut off: %d bytes are no list of numbers of %d bytes", len(x.data), size)
		}
		if list == nil {
			return x.data[:len(x.data):len(x.data)]
		}
		return append(list, x.data...)
	}
	for i := range size {
		list = append(list, byte(x.n>>(8*i)))
	}
	return list
}

func readModel(b []byte) *modelProto {
	m := &modelProto{opsets: map[string]int64{}}
	each(b, "model", func(x field) {
		switch x.num {
		case 1:
			m.version = int64(x.n)
		case 7:
			m.graph = readGraph(x.data, 0)
		case 8:
			readOpset(x.data, m.opsets)
		case 25:
			m.functions = append(m.functions, readFunction(x.data))
		}
	})
	if m.graph == nil {
		fail("the file is no ONNX model: it has no graph")
	}
	return m
}

func readOpset(b []byte, to map[string]int64) {
	domain, version := "", int64(0)
	each(b, "opset", func(x field) {
		switch x.num {
		case 1:
			domain = string(x.data)
		case 2:
			version = int64(x.n)
		}
	})
	to[standard(domain)] = version
}

// standard is the name of a domain: that of ONNX itself has two.
func standard(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func readGraph(b []byte, depth int) *graphProto {
	if depth > maxDepth {
		fail("graphs lie in each other more than %d deep", maxDepth)
	}
	g := &graphProto{}
	each(b, "graph", func(x field) {
		switch x.num {
		case 1:
			g.nodes = append(g.nodes, readNode(x.data, depth))
		case 2:
			g.name = string(x.data)
		case 5:
			g.constants = append(g.constants, readTensor(x.data))
		case 11:
			g.inputs = append(g.inputs, readValue(x.data))
		case 12:
			g.outputs = append(g.outputs, readValue(x.data))
		case 13:
			g.inner = append(g.inner, readValue(x.data))
		case 15:
			g.sparse = append(g.sparse, readSparse(x.data))
		}
	})
	return g
}

func readFunction(b []byte) *functionProto {
	f := &functionProto{opsets: map[string]int64{}}
	each(b, "function", func(x field) {
		switch x.num {
		case 1:
			f.name = string(x.data)
		case 4:
			f.inputs = append(f.inputs, string(x.data))
		case 5:
			f.outputs = append(f.outputs, string(x.data))
		case 7:
			f.nodes = append(f.nodes, readNode(x.data, 0))
		case 9:
			readOpset(x.data, f.opsets)
		case 10:
			f.domain = string(x.data)
		case 11:
			f.defaults = append(f.defaults, readAttribute(x.data, 0))
		case 13:
			f.overload = string(x.data)
		}
	})
	return f
}

func readNode(b []byte, depth int) *nodeProto {
	n := &nodeProto{}
	each(b, "node", func(x field) {
		switch x.num {
		case 1:
			n.inputs = append(n.inputs, string(x.data))
		case 2:
			n.outputs = append(n.outputs, string(x.data))
		case 3:
			n.name = string(x.data)
		case 4:
			n.op = string(x.data)
		case 6:
			n.doc = string(x.data)
		case 5:
			n.attrs = append(n.attrs, readAttribute(x.data, depth))
		case 7:
			n.domain = standard(string(x.data))
		case 8:
			n.overload = string(x.data)
		case 9:
			n.metadata(x.data)
		}
	})
	return n
}

func readAttribute(b []byte, depth int) *attributeProto {
	a := &attributeProto{}
	var floats []byte
	each(b, "attribute", func(x field) {
		switch x.num {
		case 1:
			a.name = string(x.data)
		case 2:
			a.f = math.Float32frombits(uint32(x.n))
		case 3:
			a.i = int64(x.n)
		case 4:
			a.s = x.data
		case 5:
			a.t = readTensor(x.data)
		case 6:
			a.g = readGraph(x.data, depth+1)
		case 7:
			floats = x.stored(floats, 4)
		case 8:
			a.ints = x.int64s(a.ints)
		case 9:
			a.strings = append(a.strings, string(x.data))
		case 20:
			a.kind = int64(x.n)
		case 21:
			a.ref = string(x.data)
		case 22:
			a.sparse = readSparse(x.data)
		}
	})
	for i := 0; i+4 <= len(floats); i += 4 {
		bits, _ := protowire.ConsumeFixed32(floats[i:])
		a.floats = append(a.floats, math.Float32frombits(bits))
	}
	return a
}

// kinds are the types of values that are no tensors, by the field of their type.
var kinds = map[protowire.Number]string{4: "sequence", 5: "map", 7: "opaque value", 8: "sparse tensor", 9: "optional value"}

func readValue(b []byte) *valueProto {
	v := &valueProto{}
	each(b, "value", func(x field) {
		switch x.num {
		case 1:
			v.name = string(x.data)
		case 2:
			each(x.data, "type", func(x field) {
				if x.num == 1 {
					v.readType(x.data)
				} else if kinds[x.num] != "" {
					v.kind = kinds[x.num]
				}
			})
		}
	})
	return v
}

func (v *valueProto) readType(b []byte) {
	each(b, "tensor type", func(x field) {
		switch x.num {
		case 1:
			v.elem = int64(x.n)
		case 2:
			v.known = true
			each(x.data, "shape", func(x field) {
				if x.num != 1 {
					return
				}
				var s sizeProto
				each(x.data, "size", func(x field) {
					switch x.num {
					case 1:
						s.n, s.known = int64(x.n), true
					case 2:
						s.name = string(x.data)
					}
				})
				v.shape = append(v.shape, s)
			})
		}
	})
}

func readTensor(b []byte) *tensorProto {
	t := &tensorProto{}
	each(b, "tensor", func(x field) {
		switch x.num {
		case 1:
			t.dims = x.int64s(t.dims)
		case 2:
			t.elem = int64(x.n)
		case 3:
			t.segment = true
		case 4:
			t.floats = x.stored(t.floats, 4)
		case 5, 7, 11:
			t.ints = x.int64s(t.ints)
		case 8:
			t.name = string(x.data)
		case 9:
			t.raw, t.hasRaw = x.data, true
		case 10:
			t.doubles = x.stored(t.doubles, 8)
		case 13:
			key, value := "", ""
			each(x.data, "external data", func(x field) {
				switch x.num {
				case 1:
					key = string(x.data)
				case 2:
					value = string(x.data)
				}
			})
			if t.external == nil {
				t.external = map[string]string{}
			}
			t.external[key] = value
		case 14:
			t.remote = x.n == 1
		}
	})
	return t
}
