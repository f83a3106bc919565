package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// side is one operand of a contraction as its kernel reads it.
type side struct {
	*product
	which  int    // 0 is A, 1 is B
	row    string // the name of the row's index: "m" or "n"
	alongK bool
	v      int64
}

// at gives the operand's expressions with v neighbours along k or the row.
func (p *product) at(which int, alongK bool, v int64) ([]*kernel.Expr, kernel.Flat) {
	along := "k"
	if !alongK {
		along = [2]string{"m", "n"}[which]
	}
	if which == 0 {
		x, flat := p.t.A(along, v)
		return []*kernel.Expr{x}, flat
	}
	return p.t.B(along, v)
}

func rowOf(which int, flat kernel.Flat) *kernel.Atom {
	if which == 0 {
		return flat.M
	}
	return flat.N
}

// orderOf says along what neighbours of an operand lie in memory, and how many
// of them one load takes.
func orderOf(which int, xs []*kernel.Expr, flat kernel.Flat, limit int64) (alongK bool, v int64) {
	row := rowOf(which, flat)
	vk, vr := limit, limit
	var stepK, stepR int64
	for _, x := range xs {
		main := kernel.LargestLoad(x)
		if main == nil {
			return true, 1
		}
		vk, vr = min(vk, main.At.Vector(flat.K, limit)), min(vr, main.At.Vector(row, limit))
		if flat.K != nil {
			stepK, _ = main.At.Along(flat.K)
		}
		if row != nil {
			stepR, _ = main.At.Along(row)
		}
	}
	switch {
	case vk != vr:
		return vk > vr, max(vk, vr)
	case stepK == 1 || stepR == 1:
		return stepK == 1, vk
	}
	return stepR == 0 || stepK != 0 && stepK <= stepR, vk
}

// operand writes the functor of A (0) or B (1) and gives its value.
func (p *product) operand(which int) (string, error) {
	s := &side{product: p, which: which, row: [2]string{"m", "n"}[which]}
	p.elem = p.t.Elems[0]
	limit := int64(8)
	if p.c.Path == Fma {
		limit = 4
		p.elem = p.t.Elems[which]
	} else if e, ok := shapeOf(p.t).tensorElem(); ok {
		p.elem = e
	}
	xs, flat := p.at(which, true, 1)
	s.alongK, s.v = orderOf(which, xs, flat, limit)
	parts, direct := s.direct(xs, flat)
	if p.c.Path == Wgmma {
		return s.bulk(xs, flat)
	}
	if !direct {
		p.held += s.registers(xs)
	}
	fields := p.fields(xs, nil)
	name := [2]string{"@_A", "@_B"}[which]
	b := &p.before
	b.WriteString(mark(p.main))
	fmt.Fprintf(b, "struct %s {\n  using Elem = %s;\n  static constexpr bool along_k = %t, direct = %t;\n  static constexpr int vector = %d;\n",
		name, storage(p.elem), s.alongK, direct, s.v)
	declare(b, fields)
	s.rows()
	if direct {
		s.addresses(xs, parts)
	} else {
		s.load()
	}
	b.WriteString("};\n")
	return literal(name, fields), nil
}

// registers is about what bringing the operand through registers needs: those
// of the tensor cores' chunks, and those of addresses that are no sums of products.
func (s *side) registers(xs []*kernel.Expr) int {
	n := 0
	if s.c.Path == Mma {
		n = 40
	}
	for _, x := range xs {
		kernel.Walk(x, func(y *kernel.Expr) {
			y.At.Atoms(func(a *kernel.Atom) {
				if a.Kind != kernel.Var {
					n += 8
				}
			})
		})
	}
	return min(n, 80)
}

// two reports whether rows of the operand belong to two products.
func (s *side) two() bool { return s.which == 1 && s.t.Products == 2 }

// rows writes which rows there are.
func (s *side) rows() {
	b := &s.before
	count := s.t.Rows
	if s.which == 1 {
		count = s.t.Cols
	}
	if !s.two() {
		fmt.Fprintf(b, "  DM_FN bool has(dm::i32 r) const { return r < %d; }\n", count)
		return
	}
	g := s.group()
	fmt.Fprintf(b, "  DM_FN static dm::i32 column(dm::i32 r) { return r / %d * %d + r %% %d; }\n", 2*g, g, g)
	fmt.Fprintf(b, "  DM_FN static bool second(dm::i32 r) { return r / %d %% 2 != 0; }\n", g)
	fmt.Fprintf(b, "  DM_FN bool has(dm::i32 r) const { return column(r) < %d; }\n", count)
}

// direct splits the address of each expression into the parts that depend on
// z, the row and k, if the operand is nothing but a tensor whose elements go to
// shared memory eight at a time.
func (s *side) direct(xs []*kernel.Expr, flat kernel.Flat) (parts [][3]kernel.Index, ok bool) {
	if s.c.Path == Fma || s.v != 8 {
		return nil, false
	}
	for _, x := range xs {
		if x.Op != kernel.Load || x.Elem != s.elem {
			return nil, false
		}
		part, ok := apart(x.At, flat.Z, rowOf(s.which, flat), flat.K)
		if !ok {
			return nil, false
		}
		parts = append(parts, part)
	}
	return parts, true
}

// apart splits x into parts of which each depends on one of three variables at
// most; what depends on none is in the first.
func apart(x kernel.Index, vars ...*kernel.Atom) (parts [3]kernel.Index, ok bool) {
	parts[0].C = x.C
	for _, t := range x.Terms {
		alone := kernel.Index{Terms: []kernel.Term{t}}
		at, data := 0, false
		count := 0
		for i, v := range vars {
			found := false
			alone.Atoms(func(a *kernel.Atom) { found, data = found || v != nil && a == v, data || a.Kind == kernel.Datum })
			if found {
				at = i
				count++
			}
		}
		if count > 1 || data {
			return parts, false
		}
		parts[at].Terms = append(parts[at].Terms, t)
	}
	return parts, true
}

// addresses writes the functions of a direct operand.
func (s *side) addresses(xs []*kernel.Expr, parts [][3]kernel.Index) {
	b := &s.before
	text := func(part kernel.Index, name string) string {
		e := s.emitter(s.ns.of)
		part.Atoms(func(a *kernel.Atom) {
			if a.Kind == kernel.Var {
				e.bind(a, name)
			}
		})
		return "dm::i64(" + e.index(part) + ")"
	}
	source := s.ns.of[xs[0].Buf]
	row := text(parts[0][1], "r")
	if s.two() {
		source = fmt.Sprintf("second(r) ? %s : %s", s.ns.of[xs[1].Buf], source)
		a, c := text(parts[0][1], "column(r)"), text(parts[1][1], "column(r)")
		if row = a; a != c {
			row = fmt.Sprintf("second(r) ? %s : %s", c, a)
		}
	}
	fmt.Fprintf(b, "  DM_FN auto source(dm::i32 r) const { return %s; }\n", source)
	fmt.Fprintf(b, "  DM_FN dm::i64 outer(dm::i32 z) const { return %s; }\n", text(parts[0][0], "z"))
	fmt.Fprintf(b, "  DM_FN dm::i64 row(dm::i32 r) const { return %s; }\n", row)
	fmt.Fprintf(b, "  DM_FN dm::i64 col(dm::i32 k) const { return %s; }\n", text(parts[0][2], "k"))
}

// load writes the function that brings neighbours through registers, with what
// is computed of them on the way.
func (s *side) load() {
	b := &s.before
	row := s.row
	if s.two() {
		row = "r"
	}
	fmt.Fprintf(b, "  DM_FN void load(%s (&to)[%d], dm::i32 z, dm::i32 %s, dm::i32 k) const {\n", storage(s.elem), s.v, row)
	xs, flat := s.at(s.which, s.alongK, s.v)
	body := func(x *kernel.Expr, depth int) {
		e := s.emitter(s.ns.of)
		e.depth = depth
		e.bind(flat.Z, "z")
		if s.alongK {
			e.bind(rowOf(s.which, flat), s.row)
			e.along(flat.K, "k", s.v)
		} else {
			e.along(rowOf(s.which, flat), s.row, s.v)
			e.bind(flat.K, "k")
		}
		l := e.lanes(flat.Lane, s.v)
		l.ready(x)
		l.each(func() {
			j := "0"
			if l.lane != nil {
				j = l.atoms[l.lane]
			}
			e.lineOf(x.From, "to[%s] = %s;", j, l.element16(x, s.elem))
		})
		b.WriteString(e.b.String())
	}
	if !s.two() {
		body(xs[0], 2)
	} else {
		fmt.Fprintf(b, "    const dm::i32 n = column(r);\n    if (!second(r)) {\n")
		body(xs[0], 3)
		b.WriteString("    } else {\n")
		body(xs[1], 3)
		b.WriteString("    }\n")
	}
	b.WriteString("  }\n")
}

// element16 is x as it lies in shared memory: an element that is not computed
// with is copied as it is.
func (l *lanes) element16(x *kernel.Expr, elem types.Elem) string {
	if x.Op == kernel.Load && x.Elem == elem {
		if n, ok := l.vecs[x]; ok && l.n == width(x.Elem, l.n) {
			return fmt.Sprintf("%s[%s]", n, l.atoms[l.lane])
		} else if !ok {
			return fmt.Sprintf("%s[%s]", l.param(x.Buf), l.index(x.At))
		}
	}
	if elem.IsFloat() {
		return fmt.Sprintf("dm::narrow<%s>(%s)", storage(elem), l.value(x))
	}
	return l.value(x)
}

// split makes two launches of one: blocks that store partial sums, and the
// results from the sums of those.
func (p *product) split(l launch, a, b, result string) ([]launch, error) {
	sum := types.F32
	switch p.sumType() {
	case "double":
		sum = types.F64
	case "dm::u32":
		sum = types.UI32
	case "dm::u64":
		sum = types.UI64
	}
	t := p.t
	v := int64(4)
	for t.Cols%v != 0 {
		v /= 2
	}
	sums := &temp{elem: sum, n: t.Batch * t.Rows * t.Cols * int64(t.Products) * int64(p.c.Splits)}
	partial := p.ns.addTemp("sums", sums, artifact.Out)
	all := p.ns.params
	first := l
	first.params = all
	first.body = p.call(a, b, fmt.Sprintf("dm::Partial<%s, %s, %d>{%s}", p.shape(), p.sumType(), v, partial))
	first.before = p.before.String()
	first.differs = fmt.Sprintf("%d partial sums of each element pass through memory", p.c.Splits)
	first = p.trim(first)

	second := launch{name: l.name + "_finish", class: l.class, of: p.main, threads: 256, include: p.include(), before: p.after.String(), differs: first.differs}
	for _, q := range all {
		if q.temp != nil {
			q.mode = artifact.In
		}
		second.params = append(second.params, q)
	}
	second.body = fmt.Sprintf("  dm::finish<%s>(%s, %s);\n", p.shape(), partial, result)
	runs := t.Batch * t.Rows * t.Cols
	second.grid = [3]int{int(ceil(runs/p.vector, 256)), 1, 1}
	return []launch{first, p.trim(second)}, nil
}
