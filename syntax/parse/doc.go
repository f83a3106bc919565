// Package parse turns MLIR text into the trees of package ast and never fails:
// what cannot be read becomes a Bad op with a diagnostic, and the rest goes on
// working.
//
// The road has two stages. The first (scan.go, start.go) cuts the text into ops,
// regions and blocks in one pass of a byte scanner (token.go), by brackets, line
// starts and a few tokens of lookahead; this is where recovery happens. The
// second (detail.go) reads what each op says, all ops independently of each
// other, on all cores. There a
// lexer of our own (coarse.go) makes coarse tokens (a type signature, a
// dictionary, a region are one balanced token each), and the participle grammar
// in skeleton.go says which token plays which part. That depends on the kinds of
// the tokens alone, so the grammar runs once for each distinct sequence of kinds.
// Ops of other dialects have no grammar here: custom.go finds the values,
// symbols and successors in them.
//
// Types and attributes have participle grammars of their own (types.go,
// attrs.go), whose results are interned by text; what is plain and hardly
// repeats is read without them (plain.go).
//
// The tree of the next version of a text is made from the one before where a
// change stays within a function's body (splice.go).
package parse
