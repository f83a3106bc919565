// Package ir is the typed SSA form of a module: ops, values, blocks and
// regions as in MLIR, each op with its location in the file. It needs no text:
// package lower builds it from a tree, passes and Builder build new ops, which
// have the location of the op they stand for. What only tools for text ask about an
// op, its syntax, is behind package origin.
package ir

import (
	"cmp"
	"slices"

	"dmir/base/work"
	"dmir/dialect/loc"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Module is one file, or one section of a file cut by "// -----".
type Module struct {
	Src   *source.File
	Ops   []*Op // top level, flattened out of a builtin module that holds everything
	Outer *Op   // that module, for its name and attributes; its region is empty; nil where none was written
	Funcs []*Func
	// Aliases are those of the section, for texts that are printed as they are.
	Aliases *types.Env
	Diags   []diag.Diagnostic // from lowering: unknown names, wrong types, …
	// Resources are the sections of the text with the data of other dialects, {-# … #-}.
	Resources []source.Span
	Sizes     []string // names of sizes that were open in what the module was made of, and numbers were given for
	Origin    any      // what the module was made of; see package origin

	// Work counts the ops that analyses of the module visit; nil unless a test counts.
	Work *work.Counts

	byName map[string]*Func
}

// Func is a func.func op with what people ask of it at hand.
type Func struct {
	Op      *Op
	Name    string // without "@"
	Private bool
	Args    []*Value // of the entry block; for a declaration values without uses
	Results []types.Type
	Body    *Block // nil for a declaration
}

// Func is the function called name (without "@"), nil where absent.
func (m *Module) Func(name string) *Func { return m.byName[name] }

// AddFunc registers f; it reports false, changing nothing, if the name is taken.
func (m *Module) AddFunc(f *Func) bool {
	if _, taken := m.byName[f.Name]; taken {
		return false
	}
	if m.byName == nil {
		m.byName = map[string]*Func{}
	}
	m.byName[f.Name] = f
	m.Funcs = append(m.Funcs, f)
	return true
}

// DropFunc is the inverse of AddFunc for the function that f is the op of; it
// reports false where there is none such.
func (m *Module) DropFunc(f *Op) bool {
	at := slices.IndexFunc(m.Funcs, func(g *Func) bool { return g.Op == f })
	if at < 0 {
		return false
	}
	delete(m.byName, m.Funcs[at].Name)
	m.Funcs = slices.Delete(m.Funcs, at, at+1)
	return true
}

// Op is an operation.
type Op struct {
	Name     string // "dm.einsum"; always with its dialect: "func.return", "builtin.module"
	Operands []*Value
	Results  []*Value
	Attrs    []types.Named // properties and attributes, sorted by name
	Regions  []*Region
	Succs    []*Block
	Parent   *Block // nil at top level

	Span source.Span // the whole op; zero for ops made by passes
	Head source.Span // results to name, what diagnostics underline
	Loc  loc.Loc     // what it was traced from, nil where that is not known; passes keep it
	Bad  bool        // lowering reported an error here: report no more
	// Verbatim: the op is written in the form of an unknown dialect.
	// It is printed as it stands in the text, which names its operands itself, and
	// its attributes are not known.
	Verbatim bool
	Origin   any // what the op was made of, nil for ops made by passes; see package origin
}

// Value is an op's result or a block's argument.
type Value struct {
	Name  string // with "%" and, for one of several, "#n"; may be "" for new values
	Type  types.Type
	Op    *Op    // the op it is a result of, nil for a block argument
	Block *Block // the block it is an argument of, nil for a result
	Index int
	Uses  []Use       // in the order of the text
	Span  source.Span // where it is defined
	Loc   loc.Loc     // of an argument of a function: what it was traced from, as its path in a tree; nil where that is not known
	// Guessed reports that the definition has no type in the text: Type is that of
	// the first use that has one.
	Guessed bool
}

// AddUse records a use. Uses stay in the order of the text, whenever they come.
func (v *Value) AddUse(u Use) {
	at := len(v.Uses)
	if at > 0 && u.before(v.Uses[at-1]) {
		at, _ = slices.BinarySearchFunc(v.Uses, u, compareUses)
	}
	v.Uses = slices.Insert(v.Uses, at, u)
}

// AddUses is AddUse for many.
func (v *Value) AddUses(us []Use) {
	v.Uses = append(v.Uses, us...)
	slices.SortFunc(v.Uses, compareUses)
}

// DropUse forgets a use; nothing happens where there is none such.
func (v *Value) DropUse(u Use) {
	if at, found := slices.BinarySearchFunc(v.Uses, u, compareUses); found && v.Uses[at] == u {
		v.Uses = slices.Delete(v.Uses, at, at+1)
	}
}

func compareUses(a, b Use) int {
	return cmp.Or(cmp.Compare(a.Op.Span.Start, b.Op.Span.Start), cmp.Compare(a.Index, b.Index))
}

func (u Use) before(w Use) bool { return compareUses(u, w) < 0 }

// Use is one use of a value.
type Use struct {
	Op    *Op
	Index int // operand number
}

// Tensor is v's type as a tensor, nil where it is none.
func (v *Value) Tensor() *types.Tensor {
	if v == nil {
		return nil
	}
	t, _ := v.Type.(*types.Tensor)
	return t
}

// Elem is v's element type, or v's type where that is a scalar;
// types.InvalidElem otherwise.
func (v *Value) Elem() types.Elem { return types.ElemOf(v.Type) }

// Region is a list of blocks.
type Region struct {
	Op     *Op
	Blocks []*Block
}

// Block is a list of ops that ends in a terminator.
type Block struct {
	Label  string // "^bb0" as written, "" where none
	Region *Region
	Args   []*Value
	Ops    []*Op
}

// Terminator is the last op, nil for an empty block.
func (b *Block) Terminator() *Op {
	if b == nil || len(b.Ops) == 0 {
		return nil
	}
	return b.Ops[len(b.Ops)-1]
}

// Body is the first block of region n, nil where there is none.
func (o *Op) Body(n int) *Block {
	if n >= len(o.Regions) || len(o.Regions[n].Blocks) == 0 {
		return nil
	}
	return o.Regions[n].Blocks[0]
}

// Attr is the attribute called name, nil where absent. Defaults of the
// registry are not applied here; see op.Def.
func (o *Op) Attr(name string) types.Attr {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			return o.Attrs[i].Value
		}
	}
	return nil
}

// Int is an integer attribute, or otherwise where it is absent or no integer.
func (o *Op) Int(name string, otherwise int64) int64 {
	if a, ok := o.Attr(name).(types.Int); ok {
		return a.V
	}
	return otherwise
}

// Float is a floating-point (or integer) attribute, or otherwise.
func (o *Op) Float(name string, otherwise float64) float64 {
	if v, ok := types.NumberOf(o.Attr(name)); ok {
		return v
	}
	return otherwise
}

// Str is a string or keyword attribute or the name of a symbol, or "".
func (o *Op) Str(name string) string { return types.TextOf(o.Attr(name)) }

// Bool is a boolean attribute; a unit attribute is true, an absent one false.
func (o *Op) Bool(name string) bool { return types.TruthOf(o.Attr(name)) }

// Ints is a list of integers; see types.IntegersOf.
func (o *Op) Ints(name string) []int64 { return types.IntegersOf(o.Attr(name)) }

// SetAttr sets or replaces an attribute, keeping the order by name.
func (o *Op) SetAttr(name string, v types.Attr) {
	i, found := slices.BinarySearchFunc(o.Attrs, name, func(a types.Named, name string) int { return cmp.Compare(a.Name, name) })
	if found {
		o.Attrs[i].Value = v
		return
	}
	o.Attrs = slices.Insert(o.Attrs, i, types.Named{Name: name, Value: v})
}

// SetAttrs sets or replaces many attributes at once; of those with one name
// the last counts.
func (o *Op) SetAttrs(as []types.Named) {
	all := append(o.Attrs, as...)
	slices.SortStableFunc(all, func(a, b types.Named) int { return cmp.Compare(a.Name, b.Name) })
	kept := all[:0]
	for i, a := range all {
		if i+1 == len(all) || all[i+1].Name != a.Name {
			kept = append(kept, a)
		}
	}
	o.Attrs = kept
}

// In is the tensor type of operand i, nil where it is no tensor.
func (o *Op) In(i int) *types.Tensor {
	if i >= len(o.Operands) {
		return nil
	}
	return o.Operands[i].Tensor()
}

// Out is the tensor type of result i, nil where it is no tensor.
func (o *Op) Out(i int) *types.Tensor {
	if i >= len(o.Results) {
		return nil
	}
	return o.Results[i].Tensor()
}

// Walk visits ops depth first, in order, until visit returns false for an op,
// whose regions are then skipped.
func Walk(ops []*Op, visit func(*Op) bool) {
	for _, o := range ops {
		if !visit(o) {
			continue
		}
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				Walk(b.Ops, visit)
			}
		}
	}
}

// CountUses makes the users of the values of b, and of the regions in it, those ops
// that stand there, in the order of the text.
func CountUses(b *Block) {
	forget := func(vs []*Value) {
		for _, v := range vs {
			v.Uses = nil
		}
	}
	forget(b.Args)
	Walk(b.Ops, func(o *Op) bool {
		forget(o.Operands)
		forget(o.Results)
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				forget(inner.Args)
			}
		}
		return true
	})
	Walk(b.Ops, func(o *Op) bool {
		for i, v := range o.Operands {
			v.Uses = append(v.Uses, Use{o, i})
		}
		return true
	})
}

// Ancestor is the op of b that o is or lies in, nil if there is none.
func (b *Block) Ancestor(o *Op) *Op {
	for o != nil && o.Parent != b {
		if o.Parent == nil || o.Parent.Region == nil {
			return nil
		}
		o = o.Parent.Region.Op
	}
	return o
}

// Inside reports whether o lies in one of the regions of outer, at any depth.
func (o *Op) Inside(outer *Op) bool {
	for b := o.Parent; b != nil && b.Region != nil; {
		p := b.Region.Op
		if p == outer {
			return true
		}
		if p == nil {
			return false
		}
		b = p.Parent
	}
	return false
}
