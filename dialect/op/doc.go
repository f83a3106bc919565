// Package op is the registry of the dialect: one Def describes an op once, and
// the pretty form, the verifier, hover, the reference page, the IRDL file, the
// cost, the lint rules and the compiler all read it from here: no other package
// keeps a table of ops but those that execute them. docs/ARCHITECTURE.md describes
// how to add an op.
package op

//go:generate go run ./gen ../../docs/DIALECT.md
