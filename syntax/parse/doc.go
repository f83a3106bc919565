// Package parse turns MLIR text into the trees of package ast and never fails:
// what cannot be read becomes a Bad op with a diagnostic, and the rest goes on
// working.
//
// There are two stages, both over the tokens of package lex. The first (scan.go,
// start.go) cuts the text into ops, regions and blocks in one pass, by brackets,
// line starts and a few tokens of lookahead; this is where recovery happens. The
// second (detail.go) reads the details of each op, independently of other ops, on
// all cores and while the first goes on. It gathers an op's tokens into coarse ones
// (coarse.go): a type signature, a dictionary, a region are one balanced token
// each. The participle grammar in skeleton.go assigns a role to each of
// them. That depends on the kinds of the tokens alone, so the grammar runs once
// for each distinct sequence of kinds. Ops of other dialects have no grammar here:
// custom.go finds the values, symbols and successors in them.
//
// Types and attributes have participle grammars of their own (types.go,
// attrs.go, over the tokens of exprlex.go), whose results are interned by text;
// strings and dictionaries, which hardly repeat, are read without them (plain.go).
//
// The tree of the next version of a text is made from the one before where a
// change stays within a function's body (splice.go).
package parse
