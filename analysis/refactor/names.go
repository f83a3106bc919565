package refactor

import (
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
)

// names are the value names that must not be redefined.
type names struct {
	taken map[string]bool
	next  map[string]int // the number to try next behind a name
}

func newNames() *names { return &names{taken: map[string]bool{}, next: map[string]int{}} }

// fresh is name where that is free, else one like it: name_0, name_1 … or for a
// number the next ones, as MLIR has no %0_0. What it gives is taken then.
func (n *names) fresh(name string) string {
	to := name
	number, err := strconv.Atoi(name[1:])
	for n.taken[to] {
		i := n.next[name]
		n.next[name]++
		if err == nil {
			to = "%" + strconv.Itoa(number+1+i)
		} else {
			to = name + "_" + strconv.Itoa(i)
		}
	}
	n.taken[to] = true
	return to
}

// isNumber reports whether name is one that MLIR counts up: %0.
func isNumber(name string) bool { return len(name) > 1 && name[1] >= '0' && name[1] <= '9' }

// addBlock takes what b itself defines, its ops' regions left out.
func (n *names) addBlock(b *ir.Block) {
	for _, v := range b.Args {
		n.taken[base(v)] = true
	}
	for _, o := range b.Ops {
		for _, v := range o.Results {
			n.taken[base(v)] = true
		}
	}
}

// addVisible takes what ops in b may use or define beside b's own: the names of
// b and of the blocks around it.
func (n *names) addVisible(b *ir.Block) {
	for ; b != nil; b = b.Region.Op.Parent {
		n.addBlock(b)
		if isolated(b.Region.Op) {
			return
		}
	}
}

// addInside takes all that ops and the regions in them define, but for what the
// regions of but define; but may be nil.
func (n *names) addInside(ops []*ir.Op, but *ir.Op) {
	ir.Walk(ops, func(o *ir.Op) bool {
		for _, v := range o.Results {
			n.taken[base(v)] = true
		}
		if o == but {
			return false
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				for _, v := range b.Args {
					n.taken[base(v)] = true
				}
			}
		}
		return true
	})
}

// walkScope visits ops and those in their regions, but for regions that see no
// names from outside.
func walkScope(ops []*ir.Op, visit func(*ir.Op)) {
	ir.Walk(ops, func(o *ir.Op) bool {
		visit(o)
		return !isolated(o)
	})
}

func isolated(o *ir.Op) bool {
	return o.Name == op.Func || o.Name == op.Module || op.Of(o).Is(op.Isolated)
}

// base is v's name without the "#n" of one among several.
func base(v *ir.Value) string {
	name, _, _ := strings.Cut(v.Name, "#")
	return name
}

// spelled is how ops refer to v.
func spelled(v *ir.Value) string {
	name, n, found := strings.Cut(v.Name, "#")
	if found && n == "0" {
		return name
	}
	return v.Name
}

// renaming is what values are called where ops that are moved or copied use and
// define them; others keep their names.
type renaming map[*ir.Value]string

func (r renaming) of(v *ir.Value) string {
	if to, ok := r[v]; ok {
		return to
	}
	return spelled(v)
}

// results gives the results of o new names: those that share one name keep sharing.
func (r renaming) results(o *ir.Op, name func(old string) string) { r.rename(o.Results, name) }

// rename leaves those alone that have a new name already.
func (r renaming) rename(vs []*ir.Value, name func(old string) string) {
	for i := 0; i < len(vs); {
		old := base(vs[i])
		if _, done := r[vs[i]]; done || old == "" {
			i++
			continue
		}
		n := i + 1
		for n < len(vs) && base(vs[n]) == old && strings.Contains(vs[n].Name, "#") {
			n++
		}
		to := name(old)
		for k := i; k < n; k++ {
			if to == old {
				continue
			}
			r[vs[k]] = to
			if k > i {
				r[vs[k]] = to + "#" + strconv.Itoa(k-i)
			}
		}
		i = n
	}
}

// inside gives new names to what ops and their regions define.
func (r renaming) inside(ops []*ir.Op, name func(string) string) {
	walkScope(ops, func(o *ir.Op) {
		r.results(o, name)
		if isolated(o) {
			return
		}
		for _, reg := range o.Regions {
			for _, b := range reg.Blocks {
				for i := range b.Args {
					r.rename(b.Args[i:i+1], name)
				}
			}
		}
	})
}

// edits respell the values in the text of ops, those in their regions included.
func (r renaming) edits(ops []*ir.Op) []diag.Edit {
	var out []diag.Edit
	if len(r) == 0 {
		return nil
	}
	ir.Walk(ops, func(o *ir.Op) bool {
		t := origin.Tree(o)
		for i, v := range o.Operands {
			if to, ok := r[v]; ok {
				out = append(out, diag.Edit{Span: t.Abs(t.Operands[i].Span), Text: to})
			}
		}
		i := 0
		for _, res := range t.Results {
			if i < len(o.Results) {
				if to, ok := r[o.Results[i]]; ok {
					to, _, _ = strings.Cut(to, "#")
					out = append(out, diag.Edit{Span: t.Abs(res.Span), Text: to})
				}
			}
			i += int(res.Count)
		}
		for _, reg := range o.Regions {
			for _, b := range reg.Blocks {
				for _, v := range b.Args {
					if to, ok := r[v]; ok {
						span := v.Span
						span.End = span.Start + len(base(v))
						out = append(out, diag.Edit{Span: span, Text: to})
					}
				}
			}
		}
		return true
	})
	return out
}

// typeText is v's type as the text spells it, aliases kept.
func (s *selection) typeText(v *ir.Value) string {
	if o := v.Op; o != nil && origin.Tree(o) != nil && !origin.Tree(o).Sig.Empty() && (origin.Tree(o).Form == ast.Pretty || origin.Tree(o).Form == ast.Generic) {
		if sig, err := parse.Signature(origin.Tree(o).Text(s.src, origin.Tree(o).Sig)); err == nil {
			switch {
			case sig.Single && len(sig.Out) > 0:
				return sig.Out[0].Text
			case v.Index < len(sig.Out) && len(sig.Out) == len(o.Results):
				return sig.Out[v.Index].Text
			}
		}
	}
	if a := s.argument(v); a != nil && !a.Type.Empty() {
		return origin.Tree(v.Block.Region.Op).Text(s.src, a.Type)
	}
	return v.Type.String()
}

// argument is the place where the block argument v is written, nil where v is
// something else.
func (s *selection) argument(v *ir.Value) *ast.BlockArg {
	if v.Block == nil || v.Block.Region == nil || origin.Tree(v.Block.Region.Op) == nil {
		return nil
	}
	t := origin.Tree(v.Block.Region.Op)
	args := t.Defs
	for i, r := range v.Block.Region.Op.Regions {
		for j, b := range r.Blocks {
			if b == v.Block && i < len(t.Regions) && j < len(t.Regions[i].Blocks) && len(t.Regions[i].Blocks[j].Args) > 0 {
				args = t.Regions[i].Blocks[j].Args
			}
		}
	}
	if v.Index < len(args) && args[v.Index].Name == v.Name {
		return &args[v.Index]
	}
	return nil
}

// single reports whether v has a name that it shares with no other value.
func single(v *ir.Value) bool { return v.Name != "" && !strings.Contains(v.Name, "#") }
