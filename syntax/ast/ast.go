// Package ast is the concrete tree of an MLIR text. It keeps every op, whether
// dmir knows its dialect or not, and never fails: a chunk that cannot be read
// is a Bad op that covers its text.
//
// Positions inside an op are relative to the op's first byte (Rel), so that the
// tree of an unchanged chunk can be shared between two versions of a file; only
// Op.Off is absolute. Comments and blank lines are not in the tree: the
// formatter takes them from the text between tokens.
package ast

import (
	"dmir/base/work"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Rel is a half-open byte range relative to the first byte of its Op.
type Rel struct{ Start, End int32 }

// Empty reports whether r covers nothing, which also stands for "absent".
func (r Rel) Empty() bool { return r.Start >= r.End }

// File is the tree of a whole text.
type File struct {
	Src   *source.File
	Items []*Op             // top level, in order; alias definitions and splits included
	Diags []diag.Diagnostic // absolute, in textual order: those of the ops, the first thousand at most

	Unreadable bool // the text is not text, or too long, and nothing of it was read
	Crooked    bool // a "}" is missing, and indentation tells where regions end

	// Work counts the ops that are read, and what analyses of the tree visit; nil unless a test counts.
	Work *work.Counts
}

// Form is how an op is written.
type Form uint8

// The forms of an op and of the other items that stand where ops stand.
const (
	Generic   Form = iota // "d.op"(%a) <{…}> ({…}) {…} : (…) -> …
	Pretty                // a form dmir's grammar reads in full: dm.*, func.*, module, return
	Custom                // another dialect's pretty form, kept token for token
	AttrAlias             // #name = value      (Name is "#name", the value is at Lead)
	TypeAlias             // !name = type       (Name is "!name", the type is at Sig)
	Split                 // // -----
	Resource              // {-# … #-}
	Bad                   // could not be read; a diagnostic reports why
)

// Op is an operation or another item at op position.
type Op struct {
	Off  int   // absolute offset of the first byte
	Len  int32 // bytes, regions and trailing location included
	Form Form

	Results  []Result
	Name     string // "dm.einsum", "func.func", "module", "return" as written; the value of what is in quotes
	NameSpan Rel

	// Operands are the SSA uses in textual order, regions excluded. For a
	// Custom op they are all %names found in it that are not definitions.
	Operands []Use

	Lead  Rel // leading attribute of a dm op: string, keyword or literal before the operands
	Props Rel // <{…}> with its brackets
	Attrs Rel // {…} or "attributes {…}": the braces only
	Sig   Rel // what follows ":" ("(A, B) -> C", "T", "T, U"), or the "-> …" of an op without operands including the arrow
	Loc   Rel // loc(…)

	*Parts // never nil; to be written through Own alone
}

// Parts are what most ops of a long text do not have. Ops without any share one
// value, which keeps an op at half the size.
type Parts struct {
	// Defs are values that a Custom op or a function-like op defines inside its
	// own text for its regions (induction variables, iter_args, entry arguments).
	Defs    []BlockArg
	Clauses []Clause // ", name = value" clauses of a dm op
	Succs   []Successor
	Symbols []Symbol // @names in textual order, regions excluded
	Aliases []Alias  // #alias and !alias uses, regions excluded
	Regions []*Region
	Func    *Func // func.func only

	Diags []diag.Diagnostic // spans relative to Off
}

// NoParts are the Parts of ops that have none. They must not be written to.
var NoParts = new(Parts)

// Own returns the parts of o to write to.
func (o *Op) Own() *Parts {
	if o.Parts == NoParts {
		o.Parts = new(Parts)
	}
	return o.Parts
}

// Abs makes a relative range absolute.
func (o *Op) Abs(r Rel) source.Span {
	return source.Span{Start: o.Off + int(r.Start), End: o.Off + int(r.End)}
}

// Span is the op's absolute range.
func (o *Op) Span() source.Span { return source.Span{Start: o.Off, End: o.Off + int(o.Len)} }

// Head is the absolute range from the results to the op's name, what a
// diagnostic about the whole op underlines.
func (o *Op) Head() source.Span {
	return source.Span{Start: o.Off, End: o.Off + int(o.NameSpan.End)}
}

// Text is the text of r in src.
func (o *Op) Text(src *source.File, r Rel) string { return src.Slice(o.Abs(r)) }

// Result is one name left of "=": %x stands for one value, %x:2 for two.
type Result struct {
	Name  string // with "%"
	Count int32  // 1 unless written
	Span  Rel    // the name only
}

// Use is an operand: %x or %x#1.
type Use struct {
	Name  string // with "%", without "#n"
	Index int32  // n of "#n"; -1 where not written
	Span  Rel    // "#n" included
	Type  Rel    // the type where the form writes it next to the use, else empty
}

// BlockArg is "%x: type {attrs} loc(…)" of a block or of a function.
type BlockArg struct {
	Name  string
	Span  Rel
	Type  Rel
	Attrs Rel
	Loc   Rel
}

// Clause is ", name = value" of a dm op's pretty form.
type Clause struct {
	Name     string
	NameSpan Rel
	Value    Rel
}

// Successor is ^bb or ^bb(%a, %b : t, u); the operands are in Op.Operands too.
type Successor struct {
	Name string // with "^"
	Span Rel
	Args []Use
}

// Symbol is an @name in an op. Def marks the definition (func @f).
type Symbol struct {
	Name string // with "@", quotes kept
	Span Rel
	Def  bool
}

// Alias is a use of #name or !name that is not a dialect's (#dm.at is not).
type Alias struct {
	Name string
	Span Rel
}

// Region is { … }; its braces are at Open and Close, relative to the owning op.
type Region struct {
	Open, Close int32 // offset of "{" and of "}"; Close is -1 where it is missing
	Keyword     Rel   // the word before the region where there is one ("else", "do")
	Blocks      []*Block
}

// Block is a label with its arguments and the ops that follow. The entry block
// of a region may have no label. Offsets are relative to the op owning the region.
type Block struct {
	Label string // "^bb0", or "" for an unlabelled entry block
	Span  Rel    // the label
	Args  []BlockArg
	Ops   []*Op
}

// Func is what func.func writes before its body.
type Func struct {
	Visibility string // "private", "public", "nested" or ""
	Name       string // with "@"
	NameSpan   Rel
	Args       []BlockArg // a declaration's arguments may have no Name
	Results    []BlockArg // Name empty; Type and Attrs
	Variadic   bool
}

// Walk visits ops depth first in textual order until visit returns false for
// an op, whose regions are then skipped.
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
