package feature

import (
	"sort"
	"strconv"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/syntax/scope"
)

// opAt is the innermost op at a byte offset, nil where there is none.
func opAt(p *program.Program, off int) *ir.Op {
	for _, m := range p.Modules {
		if o := innermost(m.Ops, off); o != nil {
			return o
		}
	}
	return nil
}

func innermost(ops []*ir.Op, off int) *ir.Op {
	i := sort.Search(len(ops), func(i int) bool { return ops[i].Span.Start > off }) - 1
	if i < 0 || !ops[i].Span.Contains(off) {
		return nil
	}
	for _, r := range ops[i].Regions {
		for _, b := range r.Blocks {
			if in := innermost(b.Ops, off); in != nil {
				return in
			}
		}
	}
	return ops[i]
}

// costAt is the cost of an op and of the function it is in.
func costAt(p *program.Program, o *ir.Op) (*cost.Func, *cost.Entry) {
	for _, f := range p.Funcs {
		if !f.Func.Op.Span.Contains(o.Span.Start) { // to look for o makes an index of the function
			continue
		}
		if shown := Settled(f); shown != nil {
			f = shown
		}
		if f.Func.Op == o {
			return f, nil
		}
		if e := f.Find(o); e != nil {
			return f, e
		}
	}
	return nil, nil
}

// valueOf is the value that a name stands for where it appears at off, nil
// where the program does not have it.
func valueOf(p *program.Program, n *scope.Name, off int) *ir.Value {
	index := resultNumber(p.Src.Text(), off)
	for _, def := range n.Defs() {
		o := opAt(p, def.Start)
		for ; o != nil; o = parent(o) {
			var found []*ir.Value
			for _, v := range o.Results {
				if v.Span.Start == def.Start {
					found = append(found, v)
				}
			}
			if len(found) > 0 {
				return found[min(index, len(found)-1)]
			}
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					for _, a := range b.Args {
						if a.Span.Start == def.Start {
							return a
						}
					}
				}
			}
		}
	}
	return nil
}

func parent(o *ir.Op) *ir.Op {
	if o.Parent == nil || o.Parent.Region == nil {
		return nil
	}
	return o.Parent.Region.Op
}

// resultNumber is the n of "%x#n" whose name contains off, 0 where it has none.
func resultNumber(text string, off int) int {
	for off < len(text) && (nameByte(text[off]) || text[off] == '%') {
		off++
	}
	if off >= len(text) || text[off] != '#' {
		return 0
	}
	end := off + 1
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(text[off+1 : end])
	if err != nil {
		return 0
	}
	return n
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '$' || c == '-'
}
