package onnx

import (
	"regexp"
	"slices"
	"strconv"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
)

// metadata reads an entry of a node's metadata_props: of torch.onnx the modules around the node with their classes, and the
// Python stack.
func (p *nodeProto) metadata(b []byte) {
	var key, value string
	each(b, "metadata", func(x field) {
		switch x.num {
		case 1:
			key = string(x.data)
		case 2:
			value = string(x.data)
		}
	})
	switch key {
	case "namespace":
		p.scopes = value
	case "pkg.torch.onnx.stack_trace":
		p.stack = value
	}
}

// locate begins a node: until the function returned is called, ops have its location.
func (s *scope) locate(p *nodeProto) (leave func()) {
	outer := s.b.At
	at := &ir.Op{Loc: s.location(p)}
	if outer != nil { // a call of the function around
		at.Loc = loc.Called(at.Loc, outer.Loc)
	}
	s.b.At = at
	return func() { s.b.At = outer }
}

// location is where the node comes from by its metadata or the text of older exporters. A node without either, such as the
// split that torch.onnx puts behind a layer, has the location of its first operand, or that of its name.
func (s *scope) location(p *nodeProto) loc.Loc {
	stack := s.stackOf(p)
	switch {
	case p.scopes != "":
		return loc.Named(p.scopes, stack)
	case stack != nil:
		return stack
	}
	for _, in := range p.inputs {
		if v := s.values[in]; v != nil && v.Op != nil && v.Op.Loc != nil && len(s.stacks) > 0 {
			return v.Op.Loc
		}
	}
	if p.name == "" {
		return nil
	}
	return loc.Named(p.name, nil)
}

var (
	pythonFrame = regexp.MustCompile(`(?m)^\s*File "([^"\n]+)", line (\d+), in (\S+)$`)
	docFrame    = regexp.MustCompile(`(?m)^\s*(\S[^\n]*?)\((\d+)\): (\S+)$`)
)

// stackOf is the Python stack of a node, nil where none is stated: as torch.onnx writes it, which is how Python prints
// one, the outermost frame first, or as its exporter of TorchScript wrote doc_string, "file(line): function", the innermost first.
func (s *scope) stackOf(p *nodeProto) loc.Loc {
	text, form := p.stack, pythonFrame
	if text == "" {
		text, form = p.doc, docFrame
	}
	if text == "" {
		return nil
	}
	if l, known := s.stacks[text]; known {
		return l
	}
	var frames []loc.Frame
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(m[2])
		frames = append(frames, loc.Frame{File: m[1], Line: line, Function: m[3]})
	}
	if form == pythonFrame {
		slices.Reverse(frames)
	}
	l := loc.Stack(frames)
	if l != nil {
		if s.stacks == nil {
			s.importer.stacks = map[string]loc.Loc{}
		}
		s.importer.stacks[text] = l
	}
	return l
}
