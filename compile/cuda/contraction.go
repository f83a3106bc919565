package cuda

import (
	"fmt"
	"strings"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// contraction is a tiled product: functors for the operands and the results,
// handed to a main loop of the prelude.
func (g *generator) contraction(f *kernel.Form, name string) ([]launch, error) {
	t, err := f.Tiled()
	if err != nil {
		return nil, err
	}
	configs := Candidates(t, g.target)
	if len(configs) == 0 {
		return nil, fmt.Errorf("no tile fits the shared memory of %s", g.target.Machine.Name)
	}
	g.picked = pick{shapeOf(t).key(g.target.Arch), g.tileOf(t, configs)}
	return g.tiled(f, t, name, g.picked.tile)
}

// product writes the kernel of one contraction.
type product struct {
	*generator
	main   *ir.Op
	t      *kernel.Tiled
	c      Config
	ns     *names
	elem   types.Elem      // of the operands in shared memory
	before strings.Builder // the operands
	after  strings.Builder // the results
	folds  []fold
	held   int   // registers for what is on its way to shared memory through them
	vector int64 // neighbours that a call of the epilogue takes
}

// tiled are the launches that compute t with the tile c.
func (g *generator) tiled(f *kernel.Form, t *kernel.Tiled, name string, c Config) ([]launch, error) {
	for _, n := range []int64{t.Batch, t.Rows, t.Cols * int64(t.Products), t.Depth} {
		if n > 1<<30 {
			return nil, fmt.Errorf("an index of %d values is more than a tile's 32 bits take", n)
		}
	}
	p := &product{generator: g, main: f.Main, t: t, c: c, ns: newNames()}
	for _, v := range f.Inputs {
		p.ns.add(v, artifact.In)
	}
	for _, v := range f.Outputs {
		p.ns.add(v, artifact.Out)
	}
	a, err := p.operand(0)
	if err != nil {
		return nil, err
	}
	b, err := p.operand(1)
	if err != nil {
		return nil, err
	}
	result, err := p.results()
	if err != nil {
		return nil, err
	}
	tiles := t.Batch * ceil(t.Rows, int64(c.BM)) * ceil(t.Cols*int64(t.Products), int64(c.BN)) * int64(max(c.Splits, 1))
	if tiles > 1<<31-1 {
		return nil, fmt.Errorf("%d tiles are more than a launch takes", tiles)
	}
	l := launch{
		name: name, class: string(f.Class), of: p.main, threads: c.threads(), shared: c.shared(t.Elem),
		grid: [3]int{int(tiles), 1, 1}, params: p.ns.params, include: p.include(), blocks: c.resident(t.Elem, g.target.Machine, p.held),
	}
	if c.Path == Wgmma {
		l.grid[0] = min(l.grid[0], g.target.Machine.SMs)
		l.arch = g.target.Arch
	}
	if c.Splits <= 1 {
		l.body = p.call(a, b, result)
		l.before = p.before.String() + p.after.String()
		return p.folded(l)
	}
	return p.split(l, a, b, result)
}

func (p *product) include() string {
	if p.c.Path == Wgmma {
		return "hopper.cuh gemm.cuh gemm_wgmma.cuh"
	}
	return "gemm.cuh gemm_" + string(p.c.Path) + ".cuh"
}

// call is the kernel's body.
func (p *product) call(a, b, result string) string {
	return fmt.Sprintf("  DM_ARENA(arena);\n  dm::gemm_%s<%s,\n    %s>(arena, %s,\n    %s,\n    %s);\n", p.c.Path, p.tile(), p.shape(), a, b, result)
}

// tile is the prelude's type of the tile.
func (p *product) tile() string {
	c := p.c
	switch c.Path {
	case Wgmma:
		return fmt.Sprintf("dm::WgmmaTile<%d, %d, %d>", c.BM, c.BN, c.Stages)
	case Mma:
		return fmt.Sprintf("dm::MmaTile<%d, %d, %d, %d, %d, %d>", c.BM, c.BN, c.BK, c.WM, c.WN, c.Stages)
	}
	return fmt.Sprintf("dm::FmaTile<%s, %d, %d, %d, %d, %d>", p.sumType(), c.BM, c.BN, c.BK, c.WM, c.WN)
}

func (p *product) shape() string {
	return fmt.Sprintf("dm::Shape<%d, %d, %d, %d, %d, %d>", p.t.Batch, p.t.Rows, p.t.Cols, p.t.Depth, max(p.c.Splits, 1), p.t.Products)
}

// sumType is the type in which products are summed.
func (p *product) sumType() string {
	switch e := p.t.Elem; {
	case p.c.Path == Fma && p.t.Half:
		return "dm::Half"
	case e == types.F64:
		return "double"
	case e.IsFloat():
		return "float"
	case e.Bytes() == 8:
		return "dm::u64"
	}
	return "dm::u32"
}

// group is how many of B's rows in turn belong to each of two products.
func (p *product) group() int {
	switch p.c.Path {
	case Mma:
		return 8
	case Wgmma:
		return p.c.BN / 2
	}
	return p.c.BN / (p.c.WN / 4)
}

// literal is a value of a functor: its type and the parameters it holds.
func literal(name string, fields []param) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return name + "{" + strings.Join(names, ", ") + "}"
}

// fields are the parameters that xs read and outs write.
func (p *product) fields(xs []*kernel.Expr, outs []kernel.Out) []param {
	used := map[string]bool{}
	read := func(x *kernel.Expr) {
		kernel.Walk(x, func(y *kernel.Expr) {
			if y.Op == kernel.Load {
				used[p.ns.of[y.Buf]] = true
			}
		})
	}
	for _, x := range xs {
		read(x)
	}
	for _, o := range outs {
		read(o.X)
		used[p.ns.of[o.Value]] = true
		o.At.Atoms(func(a *kernel.Atom) {
			if a.Kind == kernel.Datum {
				read(a.E)
			}
		})
	}
	var out []param
	for _, q := range p.ns.params {
		if used[q.name] {
			out = append(out, q)
		}
	}
	return out
}

func declare(b *strings.Builder, fields []param) {
	for _, f := range fields {
		kind := "In"
		if f.mode == artifact.Out {
			kind = "Out"
		}
		fmt.Fprintf(b, "  dm::%s<%s> %s;\n", kind, storage(f.elem), f.name)
	}
}

// trim drops the parameters that the kernel does not name, such as operands
// that tensor maps bring.
func (p *product) trim(l launch) launch {
	var kept []param
	for _, q := range l.params {
		if mentions(l.body, q.name) {
			kept = append(kept, q)
		}
	}
	l.params = kept
	return l
}

// mentions reports whether a body names a parameter.
func mentions(body, name string) bool {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; ; {
		j := strings.Index(body[i:], name)
		if j < 0 {
			return false
		}
		j += i
		end := j + len(name)
		if (j == 0 || !word(body[j-1])) && (end == len(body) || !word(body[end])) {
			return true
		}
		i = end
	}
}

// results writes the epilogue and gives its value.
func (p *product) results() (string, error) {
	v := int64(8)
	if p.c.Path == Fma {
		v = 4
	}
	outs, _, flat, err := p.t.Results(1)
	if err != nil {
		return "", err
	}
	best := int64(1) // as long as some tensor along n comes in runs; all must divide n
	note := func(x kernel.Index) {
		if flat.N != nil {
			best = max(best, x.Vector(flat.N, v))
		}
	}
	for _, o := range outs {
		note(o.At)
	}
	for best > 1 && p.t.Cols%best != 0 {
		best /= 2
	}
	outs, folds, flat, err := p.t.Results(best)
	if err != nil {
		return "", err
	}
	p.vector = best
	var xs []*kernel.Expr
	for _, f := range folds {
		xs = append(xs, f.X)
	}
	p.held += registersOf(outs, xs)
	fields := p.fields(xs, outs)
	name := "@_Out"
	b := &p.after
	b.WriteString(mark(p.main))
	fmt.Fprintf(b, "struct %s {\n  static constexpr int vector = %d, products = %d, folds = %d;\n", name, best, p.t.Products, len(folds))
	fields = append(fields, p.parts(folds)...)
	declare(b, fields)
	p.joins(folds)
	sum := p.sumType()
	if sum == "dm::Half" {
		sum = "float"
	}
	fmt.Fprintf(b, "  DM_FN void operator()(dm::i32 z, dm::i32 m, dm::i32 n, const %s (&acc)[%d][%d]", sum, p.t.Products, best)
	if len(folds) > 0 {
		fmt.Fprintf(b, ", float (&value)[%d][%d]", len(folds), best)
	}
	b.WriteString(") const {\n")
	e := p.emitter(p.ns.of)
	e.depth = 2
	e.bind(flat.Z, "z")
	e.bind(flat.M, "m")
	e.along(flat.N, "n", flat.V)
	l := e.lanes(flat.Lane, flat.V)
	l.storeAnd(outs, xs, func() {
		for i, x := range xs {
			j := "0"
			if l.lane != nil {
				j = l.atoms[l.lane]
			}
			e.lineOf(x.From, "value[%d][%s] = %s;", i, j, l.value(x))
		}
	})
	b.WriteString(e.b.String())
	b.WriteString("  }\n};\n")
	return literal(name, fields), nil
}

// registersOf is about what the results' expressions need beside the sums: the
// compiler computes several elements at a time.
func registersOf(outs []kernel.Out, xs []*kernel.Expr) int {
	seen := map[*kernel.Expr]bool{}
	n := 0
	count := func(x *kernel.Expr) {
		kernel.Walk(x, func(y *kernel.Expr) {
			switch y.Op {
			case kernel.Number, kernel.Acc, "convert":
			default:
				if !seen[y] {
					seen[y] = true
					n += 4
				}
			}
		})
	}
	for _, o := range outs {
		count(o.X)
	}
	for _, x := range xs {
		count(x)
	}
	return min(n, 100)
}

// along is bind for a variable that counts runs of v.
func (e *emitter) along(a *kernel.Atom, name string, v int64) {
	if v > 1 && a != nil && v&(v-1) == 0 {
		e.runs[a] = run{name, v}
	}
	if v > 1 {
		name = fmt.Sprintf("(%s / %d)", name, v)
	}
	e.bind(a, name)
}
