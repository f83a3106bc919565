// Package onnxmodel writes small models in ONNX, for tests.
package onnxmodel

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of element types.
const (
	F32  = 1
	I64  = 7
	Text = 8
	Bool = 9
)

// Message is an encoded message.
type Message []byte

func (m Message) bytes(n protowire.Number, b []byte) Message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), b)
}

func (m Message) number(n protowire.Number, v int64) Message {
	return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), uint64(v))
}

// Model has a graph and functions; version is that of the operator set.
func Model(version int64, graph Message, functions ...Message) []byte {
	m := Message(nil).number(1, 8).bytes(7, graph)
	for _, domain := range []string{"", "local"} {
		m = m.bytes(8, Message(nil).bytes(1, []byte(domain)).number(2, version))
	}
	for _, f := range functions {
		m = m.bytes(25, f)
	}
	return m
}

// Function is a function of the domain "local".
func Function(name string, inputs, outputs []string, nodes ...Message) Message {
	m := Message(nil).bytes(1, []byte(name)).bytes(10, []byte("local"))
	for _, in := range inputs {
		m = m.bytes(4, []byte(in))
	}
	for _, out := range outputs {
		m = m.bytes(5, []byte(out))
	}
	for _, n := range nodes {
		m = m.bytes(7, n)
	}
	return m
}

// Graph has inputs, outputs, initializers and nodes.
func Graph(inputs, outputs, constants []Message, nodes ...Message) Message {
	m := Message(nil).bytes(2, []byte("g"))
	for _, list := range []struct {
		field protowire.Number
		of    []Message
	}{{1, nodes}, {5, constants}, {11, inputs}, {12, outputs}} {
		for _, x := range list.of {
			m = m.bytes(list.field, x)
		}
	}
	return m
}

// Value declares a tensor. A size is an int or the name of one.
func Value(name string, elem int64, shape ...any) Message {
	dims := Message(nil)
	for _, d := range shape {
		var size Message
		switch d := d.(type) {
		case int:
			size = size.number(1, int64(d))
		case string:
			size = size.bytes(2, []byte(d))
		}
		dims = dims.bytes(1, size)
	}
	tensor := Message(nil).number(1, elem).bytes(2, dims)
	return Message(nil).bytes(1, []byte(name)).bytes(2, Message(nil).bytes(1, tensor))
}

// Node is an op of ONNX or, where its name begins with "local.", one of the functions.
func Node(op string, inputs, outputs []string, attrs ...Message) Message {
	m := Message(nil)
	for _, in := range inputs {
		m = m.bytes(1, []byte(in))
	}
	for _, out := range outputs {
		m = m.bytes(2, []byte(out))
	}
	if len(op) > 6 && op[:6] == "local." {
		m, op = m.bytes(7, []byte("local")), op[6:]
	}
	m = m.bytes(4, []byte(op))
	for _, a := range attrs {
		m = m.bytes(5, a)
	}
	return m
}

// Attr is an attribute: an int, a float64, a string, a list of ints, a Message that is
// a tensor or, under a name that ends in "branch" or "body", a graph.
func Attr(name string, value any) Message {
	m := Message(nil).bytes(1, []byte(name))
	switch v := value.(type) {
	case int:
		return m.number(3, int64(v)).number(20, 2)
	case float64:
		m = protowire.AppendFixed32(protowire.AppendTag(m, 2, protowire.Fixed32Type), math.Float32bits(float32(v)))
		return m.number(20, 1)
	case string:
		return m.bytes(4, []byte(v)).number(20, 3)
	case []int:
		for _, n := range v {
			m = m.number(8, int64(n))
		}
		return m.number(20, 7)
	case Message:
		if name == "body" || len(name) > 6 && name[len(name)-6:] == "branch" {
			return m.bytes(6, v).number(20, 5)
		}
		return m.bytes(5, v).number(20, 4)
	}
	return m
}

// Ref is an attribute that takes the value of one of the function around.
func Ref(name, from string) Message {
	return Message(nil).bytes(1, []byte(name)).bytes(21, []byte(from))
}

// Floats is a tensor of f32.
func Floats(name string, shape []int, vs ...float32) Message {
	var data []byte
	for _, v := range vs {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Raw(name, F32, shape, data)
}

// Ints is a tensor of i64.
func Ints(name string, shape []int, vs ...int64) Message {
	var data []byte
	for _, v := range vs {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return Raw(name, I64, shape, data)
}

// SparseGraph is Graph with sparse initializers.
func SparseGraph(inputs, outputs, constants, sparse []Message, nodes ...Message) Message {
	m := Graph(inputs, outputs, constants, nodes...)
	for _, s := range sparse {
		m = m.bytes(15, s)
	}
	return m
}

// Sparse is a sparse constant of that shape; values has its name.
func Sparse(values, indices Message, shape ...int64) Message {
	m := Message(nil)
	for n, part := range []Message{values, indices} {
		if part != nil {
			m = m.bytes(protowire.Number(n+1), part)
		}
	}
	for _, d := range shape {
		m = m.number(3, d)
	}
	return m
}

// Raw is a tensor with the bytes of its elements.
func Raw(name string, elem int64, shape []int, data []byte) Message {
	return header(name, elem, shape).bytes(9, data)
}

// External is a tensor whose elements are in another file.
func External(name string, shape []int, location string) Message {
	entry := Message(nil).bytes(1, []byte("location")).bytes(2, []byte(location))
	return header(name, F32, shape).bytes(13, entry).number(14, 1)
}

func header(name string, elem int64, shape []int) Message {
	m := Message(nil)
	for _, d := range shape {
		m = m.number(1, int64(d))
	}
	return m.number(2, elem).bytes(8, []byte(name))
}

// The fields of metadata in a graph and in a node.
const (
	OfGraph = 16
	OfNode  = 9
)

// Noted is a message with an entry of metadata.
func Noted(m Message, field protowire.Number, key, value string) Message {
	return m.bytes(field, Message(nil).bytes(1, []byte(key)).bytes(2, []byte(value)))
}
