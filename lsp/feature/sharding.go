package feature

import (
	"fmt"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// meshAt is the mesh called symbol, "@pod", in the section that off lies in; nil where there
// is none or it has an error.
func meshAt(p *program.Program, symbol string, off int) *mesh.Mesh {
	name, _ := types.ParseSymbol(symbol).Name()
	return mesh.Find((&statement{p: p, off: off}).moduleAt(), name)
}

// moduleAt is the section that the place lies in.
func (s *statement) moduleAt() *ir.Module {
	s.section()
	if s.module == nil {
		return &ir.Module{}
	}
	return s.module
}

// meshText describes the mesh that n names, where the place off names it in a sharding with the
// piece of the tensor; "" where n is no mesh.
func meshText(p *program.Program, n *scope.Name, off int) string {
	m := meshAt(p, n.Text, off)
	if m == nil {
		return ""
	}
	text := code(op.Mesh+" "+n.Text+" {"+m.String()+"}") + "\n" + plural(m.Devices(), "device")
	if len(m.Axes) > 1 {
		text += fmt.Sprintf(" along %d axes", len(m.Axes))
	}
	return text + " · " + plural(len(n.Uses()), "use") + pieceText(p, off)
}

// axisText describes the axis n, and the part of it that stands at span.
func axisText(p *program.Program, n *scope.Name, span source.Span, off int) string {
	m := meshAt(p, n.Mesh().Text, off)
	if m == nil {
		return ""
	}
	size := m.Size(types.Axis{Name: n.Text})
	if size == 0 {
		return ""
	}
	text := fmt.Sprintf("`%s` is an axis of `%s` with %s", n.Text, n.Mesh().Text, plural(size, "device"))
	rest := p.Src.Slice(source.Span{Start: span.End, End: span.End + maxPart})
	if end := strings.IndexAny(rest, ",}\""); end > 0 {
		if a, err := types.ParseAxis(n.Text + rest[:end]); err == nil && a.Size > 0 && m.Size(a) > 0 {
			text += fmt.Sprintf("; of its parts %d × %d × %d this is the middle one", a.Pre, a.Size, int64(size)/(a.Pre*a.Size))
		}
	}
	return text + "." + pieceText(p, off)
}

// maxPart bounds the text of the part of an axis, ":(2)4".
const maxPart = 32

// shardingAt is the hover on the words split and partial of a sharding.
func shardingAt(p *program.Program, off int) *Hover {
	text := p.Src.Slice(source.Span{Start: max(0, off-maxPart), End: off + maxPart})
	at := min(off, maxPart)
	start, end := at, at
	for start > 0 && wordByte(text[start-1]) {
		start--
	}
	for end < len(text) && wordByte(text[end]) {
		end++
	}
	if w := text[start:end]; w != "split" && w != "partial" {
		return nil
	}
	piece := pieceText(p, off)
	if piece == "" {
		return nil
	}
	return &Hover{source.Span{Start: off - at + start, End: off - at + end}, strings.TrimPrefix(piece, "\n\n")}
}

// pieceText is what one device has of the tensor in whose type off lies, "" where it
// lies in no type with a sharding of numbers.
func pieceText(p *program.Program, off int) string {
	t := shardedAt(p, off)
	if t == nil {
		t = statedAt(p, off)
	}
	if t == nil {
		return ""
	}
	s := t.At.Shard
	m := meshAt(p, s.Mesh.String(), off)
	if m == nil || m.Problem(s) != "" {
		return ""
	}
	local, ok := m.Local(t, s)
	if !ok {
		return ""
	}
	var rows []row
	for i, d := range s.Dims {
		n, _ := t.Shape[i].Int()
		devices := m.Count(d.Axes)
		if devices == 1 {
			continue
		}
		piece := mesh.Piece(n, devices)
		value := fmt.Sprintf("%s over %s = %s: %d each", group(n), types.AxisList(d.Axes), plural(devices, "device"), piece)
		if padding := piece*int64(devices) - n; padding > 0 {
			value += fmt.Sprintf(", the last of them with %d of padding", padding)
		}
		rows = append(rows, row{fmt.Sprintf("dimension %d", i), value})
	}
	if len(s.Partial) > 0 {
		rows = append(rows, row{"partial", fmt.Sprintf("the value is the %s of %s along %s", reductionNoun(s.Reduce), plural(m.Count(s.Partial), "part"), types.AxisList(s.Partial))})
	}
	text := "\n\nOne device has\n" + code(local.String())
	if len(rows) > 0 {
		text += "\n" + table(rows)
	}
	return text
}

// reductionNoun is what a reduction gives.
func reductionNoun(r types.Reduction) string {
	switch r {
	case types.Add:
		return "sum"
	case types.Mul:
		return "product"
	case types.Max:
		return "maximum"
	case types.Min:
		return "minimum"
	}
	return "bitwise " + r.Word()
}

// shardedAt is the tensor type with a sharding in whose text off lies, nil where there is none.
func shardedAt(p *program.Program, off int) *types.Tensor {
	if t, _ := tensorAt(p, off); t != nil && t.At.Shard != nil {
		return t
	}
	return nil
}

// tensorAt is the tensor type in whose text off lies, and where that stands; nil where there
// is none.
func tensorAt(p *program.Program, off int) (*types.Tensor, source.Span) {
	const reach = 4096 // bytes of a type on either side
	base := max(0, off-reach)
	text := p.Src.Slice(source.Span{Start: base, End: off + reach})
	at := off - base
	start := strings.LastIndex(text[:at], "tensor<")
	if start < 0 {
		return nil, source.Span{}
	}
	depth := 0
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '<':
			depth++
		case '>':
			if text[i-1] == '-' { // the arrow of a map of levels
				continue
			}
			if depth--; depth > 0 {
				continue
			}
			if i < at {
				return nil, source.Span{}
			}
			x, err := parse.Type(text[start : i+1])
			if err != nil {
				return nil, source.Span{}
			}
			t, err := types.FromExpr(x, (&statement{p: p, off: off}).moduleAt().Aliases)
			if tensor, ok := t.(*types.Tensor); ok && err == nil {
				return tensor, source.Span{Start: base + start, End: base + i + 1}
			}
			return nil, source.Span{}
		}
	}
	return nil, source.Span{}
}

// statedAt is the tensor, with its sharding in its type, whose attribute dm.sharding states it where off lies; nil
// where there is none.
func statedAt(p *program.Program, off int) *types.Tensor {
	place := placeAt(p, off)
	if place == nil {
		return nil
	}
	o := opAt(p, off)
	if o == nil {
		return nil
	}
	values := o.Results
	if t := origin.Tree(o); o.Name == op.Func && t != nil && t.Func != nil {
		values = nil
		if b := o.Body(0); b != nil {
			for i, a := range t.Func.Args {
				if i < len(b.Args) && t.Abs(a.Attrs).Contains(off) {
					values = b.Args[i : i+1]
				}
			}
		}
		ta, _ := o.Attr("function_type").(types.TypeAttr)
		if sig, ok := ta.T.(*types.Func); ok {
			for i, r := range t.Func.Results {
				if i < len(sig.Out) && t.Abs(r.Attrs).Contains(off) {
					values = []*ir.Value{{Type: sig.Out[i]}}
				}
			}
		}
	}
	for _, v := range values {
		for _, m := range types.Members(v.Type) {
			if m.Tensor.At.Shard == nil && m.Tensor.Rank() == len(place.Dims) {
				r := *m.Tensor
				r.At.Shard = place
				return &r
			}
		}
	}
	return nil
}

// placeAt is the sharding of the placement in whose text off lies, nil where there is none.
func placeAt(p *program.Program, off int) *types.Sharding {
	const reach = 4096 // bytes of a placement on either side
	base := max(0, off-reach)
	text := p.Src.Slice(source.Span{Start: base, End: off + reach})
	start := strings.LastIndex(text[:off-base], "#dm.at<")
	if start < 0 {
		return nil
	}
	end := strings.IndexByte(text[start:], '>')
	if end < 0 || start+end < off-base {
		return nil
	}
	x, err := parse.Attr(text[start : start+end+1])
	if err != nil {
		return nil
	}
	a, err := types.AttrFromExpr(x, nil)
	if place, ok := a.(types.Place); ok && err == nil {
		return place.Shard
	}
	return nil
}
