package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/reuse"
	"dmir/dialect/types"
)

// CountedAttr is what was counted of the elements that a sparse argument stores, where a file gives them.
const CountedAttr = "dm.counted"

// Counted is what was counted of a sparse tensor.
type Counted struct {
	File                 string
	Stored               int64
	Rows, Empty, Longest int64 // coordinates along the first dimension, those without elements, and the most elements of one
	Median               int64 // elements of a row
	Uneven               int64 // rows with another number of elements than the row before
	Blocks               int64 // of CountedBlock × CountedBlock that hold elements; 0 of what is no matrix
	Levels               []CountedLevel
}

// CountedBlock is the side of the blocks that are counted, that of a tile of tensor cores.
const CountedBlock = 16

// CountedLevel is how tables are read by the coordinates of a level.
type CountedLevel struct {
	Level   int
	Profile reuse.Profile
}

// Attr is c as the value of CountedAttr.
func (c *Counted) Attr() types.Attr {
	n := func(name string, v int64) types.Named { return types.Named{Name: name, Value: types.Int{V: v}} }
	var levels types.Array
	for _, l := range c.Levels {
		var touched []int64
		var later types.Array
		for _, by := range l.Profile.By {
			touched = append(touched, by.Touched)
			later = append(later, ints(by.Later))
		}
		levels = append(levels, types.Dict{n("level", int64(l.Level)), n("reads", l.Profile.Reads), {Name: "touched", Value: ints(touched)}, {Name: "later", Value: later}})
	}
	return types.Dict{
		{Name: "file", Value: types.Str(c.File)}, n("stored", c.Stored), n("rows", c.Rows), n("empty", c.Empty), n("longest", c.Longest), n("median", c.Median), n("uneven", c.Uneven), n("blocks", c.Blocks),
		{Name: "levels", Value: levels},
	}
}

// CountedOf is the value of a CountedAttr; nil of what is none.
func CountedOf(a types.Attr) *Counted {
	d, _ := a.(types.Dict)
	ok := d != nil
	number := func(d types.Dict, name string) int64 {
		n, is := entryOf(d, name).(types.Int)
		ok = ok && is && n.V >= 0
		return n.V
	}
	list := func(a types.Attr) (out []int64) {
		all, is := a.(types.Array)
		ok = ok && is
		for _, x := range all {
			n, is := x.(types.Int)
			ok = ok && is && n.V >= 0
			out = append(out, n.V)
		}
		return out
	}
	c := &Counted{Stored: number(d, "stored"), Rows: number(d, "rows"), Empty: number(d, "empty"), Longest: number(d, "longest"), Median: number(d, "median"), Uneven: number(d, "uneven"), Blocks: number(d, "blocks")}
	file, _ := entryOf(d, "file").(types.Str)
	c.File = string(file)
	levels, is := entryOf(d, "levels").(types.Array)
	ok = ok && is
	for _, l := range levels {
		own, _ := l.(types.Dict)
		level := CountedLevel{Level: int(number(own, "level"))}
		level.Profile.Reads = number(own, "reads")
		touched, later := list(entryOf(own, "touched")), entryOf(own, "later")
		each, _ := later.(types.Array)
		if ok = ok && len(touched) == len(reuse.Grains) && len(each) == len(reuse.Grains); !ok {
			return nil
		}
		for g := range reuse.Grains {
			level.Profile.By[g] = reuse.Lines{Touched: touched[g], Later: list(each[g])}
		}
		c.Levels = append(c.Levels, level)
	}
	if !ok {
		return nil
	}
	return c
}

func ints(ns []int64) types.Attr {
	out := make(types.Array, len(ns))
	for i, n := range ns {
		out[i] = types.Int{V: n}
	}
	return out
}

func entryOf(d types.Dict, name string) types.Attr {
	if i := slices.IndexFunc(d, func(a types.Named) bool { return a.Name == name }); i >= 0 {
		return d[i].Value
	}
	return nil
}

// Numbers say where the numbers are from by which a table is read.
type Numbers struct {
	Ordered bool // they do not fall: those of segments, or of the outermost level that stores coordinates
	// Of a level of a sparse tensor: the tensor's type, which of its levels, and what is known of its elements.
	Type    *types.Tensor
	Level   int
	Pattern *Pattern // that the argument states
	Counted *Counted
}

// profile is that of the level, nil where it was not counted.
func (n *Numbers) profile() *reuse.Profile {
	if n.Counted == nil {
		return nil
	}
	for i, l := range n.Counted.Levels {
		if l.Level == n.Level {
			return &n.Counted.Levels[i].Profile
		}
	}
	return nil
}

// Profile is how a table with so many rows is read so often by n; ok is false where nothing says that.
func (n *Numbers) Profile(rows, reads int64, env map[string]dim.Dim) (p reuse.Profile, ok bool) {
	switch counted := n.profile(); {
	case counted != nil && counted.Reads <= reads:
		return *counted, true
	case n.Ordered:
		return reuse.InOrder(rows, reads), true
	case n.Pattern == nil || n.Type == nil:
		return p, false
	}
	level := n.Type.Format.Levels[n.Level]
	across, ok := level.Size(n.Type.Shape).Subst(env).Int() // of coordinates
	down := int64(1)
	if n.Level > 0 {
		var known bool
		down, known = n.Type.Format.Levels[0].Size(n.Type.Shape).Subst(env).Int()
		ok = ok && known
	}
	if !ok || across != rows {
		return p, false
	}
	switch n.Pattern.Kind {
	case "band":
		return reuse.Band(down, across, reads, n.Pattern.Width), true
	case "blocks":
		return reuse.Blocks(down, across, reads, n.Pattern.Size), true
	}
	return reuse.Uniform(across, reads), true // rows of a power law have columns as a uniform pattern has
}

// numbersOf is where v, the numbers of a table's rows, is from.
func numbersOf(v *ir.Value) (n Numbers) {
	for v = Source(v); v.Op != nil && v.Op.Name == Prefix+"convert"; v = Source(v.Op.Operands[0]) {
	}
	if v.Op != nil {
		n.Ordered = v.Op.Name == Prefix+"segment_ids"
		return n
	}
	if f, first, t, level := componentOf(v, types.Coordinates); f != nil {
		return argNumbers(f, first, t, level)
	}
	return n
}

// componentOf is the sparse argument of which v is a component of a kind: its function, its first component, its type, and the level; nil where v is none.
func componentOf(v *ir.Value, kind types.ComponentKind) (f *ir.Op, first int, t *types.Tensor, level int) {
	if v.Block == nil || v.Block.Region == nil || v.Block.Region.Op == nil || v.Block.Region.Op.Name != Func {
		return nil, 0, nil, 0
	}
	f = v.Block.Region.Op
	a, _ := argAttr(f, v.Index, ComponentAttr).(types.TypeAttr)
	t, _ = a.T.(*types.Tensor)
	if t == nil || t.Format == nil {
		return nil, 0, nil, 0
	}
	for k, c := range t.Components() {
		first := v.Index - k
		if c.Kind == kind && first >= 0 && componentName(v.Name, c.Name) && componentName(v.Block.Args[first].Name, t.Components()[0].Name) {
			return f, first, t, c.Level
		}
	}
	return nil, 0, nil, 0
}

// UnevenSegments is how many of n segments, which positions divide, have another length than the one before: as counted of a matrix in rows; none of what has
// a pattern of a fixed number of elements in a row; all where nothing says it.
func UnevenSegments(positions *ir.Value, n int64) int64 {
	f, first, t, level := componentOf(Source(positions), types.Positions)
	if f == nil {
		return n
	}
	x := argNumbers(f, first, t, level)
	switch {
	case x.Counted != nil && t.Rank() == 2 && t.Format.Levels[0].Dim == 0:
		return min(x.Counted.Uneven, n)
	case x.Counted != nil || x.Pattern != nil && (x.Pattern.Kind == "band" || x.Pattern.Kind == "blocks"):
		return 0
	}
	return n
}

// componentName reports whether a value is called as a component of that name is.
func componentName(value, component string) bool {
	return len(value) > len(component) && value[len(value)-len(component)-1:] == "."+component
}

// argNumbers are the coordinates of a level of t, which argument i of f stores, or begins with.
func argNumbers(f *ir.Op, i int, t *types.Tensor, level int) Numbers {
	n := Numbers{Type: t, Level: level, Counted: CountedOf(argAttr(f, i, CountedAttr))}
	n.Ordered = level == 0 && t.Format.Levels[0].HasPositions()
	if a := argAttr(f, i, PatternAttr); a != nil {
		if p, ok := StatedPattern(a); ok {
			n.Pattern = &p
		}
	}
	return n
}

// argAttr is an attribute of argument i of the function f, nil for none.
func argAttr(f *ir.Op, i int, name string) types.Attr {
	all, _ := f.Attr("arg_attrs").(types.Array)
	if i >= len(all) {
		return nil
	}
	own, _ := all[i].(types.Dict)
	return entryOf(own, name)
}

// TableRead is a table whose rows an op reads by numbers that are in memory.
type TableRead struct {
	Operand      int       // of the op: that it is, or is a component of
	Table, Index *ir.Value // the values in memory
	Tables       dim.Dim   // that are read by the same numbers
	Rows, Reads  dim.Dim   // of one of them
	Row          dim.Dim   // bytes of a row
	Numbers      Numbers
}

// TableReads are the tables that o reads row by row.
func TableReads(o *ir.Op) []TableRead {
	switch {
	case IsSparse(o):
		return WriteOut(o).Tables()
	case o.Name == Prefix+"gather" && Int(o, "batch_dims") == 0:
		if l, ok := gatherTable(o, numbersOf(o.Operands[1])); ok {
			return []TableRead{l}
		}
	case o.Name == Prefix+"segment_attention":
		return attentionTables(o)
	}
	return nil
}

func gatherTable(o *ir.Op, n Numbers) (l TableRead, ok bool) {
	x, at := in(o, 0), in(o, 1)
	d, p := dimOf(o, "dim", x.Shape)
	if p != nil || at.Rank() == 0 {
		return l, false
	}
	return TableRead{
		Table: Source(o.Operands[0]), Index: Source(o.Operands[1]), Tables: dim.Prod(x.Shape[:d]...), Rows: x.Shape[d],
		Reads: dim.Prod(at.Shape...), Row: x.Elem.Size(dim.Prod(x.Shape[d+1:]...)), Numbers: n,
	}, true
}

// attentionTables are the keys and the values.
func attentionTables(o *ir.Op) (out []TableRead) {
	_, c := SegmentBlock(o)
	for i := 1; i < 3; i++ {
		t, at := in(o, i), in(o, 4)
		if t.Rank() != 3 || at.Rank() != 1 || c == 0 {
			return nil
		}
		out = append(out, TableRead{
			Operand: i, Table: Source(o.Operands[i]), Index: Source(o.Operands[4]), Tables: in(o, 0).Shape[0], Rows: dim.Quotient(t.Shape[1], c), Reads: at.Shape[0],
			Row: t.Elem.Size(t.Shape[2].Scale(c)), Numbers: numbersOf(o.Operands[4]),
		})
	}
	return out
}

// Tables are as TableReads has them.
func (w *Written) Tables() (out []TableRead) {
	in := w.in
	of := partNumbers(w.of, in)
	for _, p := range w.ops {
		var all []TableRead
		switch p.Name {
		case Prefix + "gather":
			if l, ok := gatherTable(p, of(p.Operands[1])); ok {
				all = []TableRead{l}
			}
		case Prefix + "segment_attention":
			all = attentionTables(p)
			for i := range all {
				all[i].Numbers = of(p.Operands[4])
			}
		}
		for _, l := range all {
			for i, vs := range in {
				if slices.Contains(vs, l.Table) {
					l.Operand = i
					out = append(out, l)
					break
				}
			}
		}
	}
	return out
}

// partNumbers says where numbers are from in what o is written out as, whose operands have the parts in.
func partNumbers(o *ir.Op, in [][]*ir.Value) func(v *ir.Value) Numbers {
	roots := &patterns{map[*ir.Value]*ir.Value{}}
	return func(v *ir.Value) Numbers {
		for v = Source(v); v.Op != nil && v.Op.Name == Prefix+"convert"; v = Source(v.Op.Operands[0]) {
		}
		for i, vs := range in {
			k := slices.Index(vs, v)
			t := asTensor(o.Operands[i].Type)
			if k < 0 || t == nil || t.Format == nil {
				continue
			}
			c := t.Components()[k]
			if c.Kind != types.Coordinates {
				break
			}
			root := roots.root(o.Operands[i])
			if f := argOf(root); f != nil && asTensor(root.Type).Format.Alike(t.Format) {
				return argNumbers(f, root.Index, t, c.Level)
			}
			return Numbers{Type: t, Level: c.Level, Ordered: c.Level == 0 && t.Format.Levels[0].HasPositions()}
		}
		return numbersOf(v)
	}
}

// argOf is the function that v is an argument of, nil for other values.
func argOf(v *ir.Value) *ir.Op {
	if v.Op == nil && v.Block != nil && v.Block.Region != nil && v.Block.Region.Op != nil && v.Block.Region.Op.Name == Func {
		return v.Block.Region.Op
	}
	return nil
}

// gatherTraffic is what a gather moves whose numbers are n: of the rows that were counted each once.
func gatherTraffic(o *ir.Op, n Numbers) (read []dim.Dim, written dim.Dim) {
	read, written = touchedTraffic(o)
	if p := n.profile(); p != nil && Int(o, "batch_dims") == 0 {
		if l, ok := gatherTable(o, n); ok {
			if touched := l.Tables.Mul(l.Row).Scale(p.By[0].Touched); read[0].AtLeast(touched) {
				read[0] = touched
			}
		}
	}
	return read, written
}

// ArgAttr is an attribute of argument i of fn, nil for none.
func ArgAttr(fn *ir.Func, i int, name string) types.Attr {
	if fn.Op == nil {
		return nil
	}
	return argAttr(fn.Op, i, name)
}

// CountedArg is what was counted of argument i of fn, nil for nothing.
func CountedArg(fn *ir.Func, i int) *Counted {
	return CountedOf(ArgAttr(fn, i, CountedAttr))
}

// SetArgAttr gives argument i of fn an attribute, in place of one of its name.
func SetArgAttr(fn *ir.Func, i int, name string, value types.Attr) {
	all, _ := fn.Op.Attr("arg_attrs").(types.Array)
	all = slices.Clone(all)
	for len(all) < len(fn.Args) {
		all = append(all, types.Dict(nil))
	}
	own, _ := all[i].(types.Dict)
	own = slices.DeleteFunc(slices.Clone(own), func(a types.Named) bool { return a.Name == name })
	all[i] = append(own, types.Named{Name: name, Value: value})
	fn.Op.SetAttr("arg_attrs", all)
}
