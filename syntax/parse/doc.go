// Package parse turns MLIR text into the trees of package ast and never fails:
// what cannot be read becomes a Bad op with a diagnostic, and the rest goes on
// working.
//
// The road is: a byte scanner cuts the text into op-sized chunks by bracket
// depth and line starts; a lexer.Definition of our own gives participle coarse
// tokens (a type signature, a dictionary, a region are one balanced token
// each); the participle grammar reads the skeleton of an op. Types and
// attributes have grammars of their own (Type, Attr, Signature), whose results
// are interned by text. See docs/RATIONALE.md for why.
package parse
