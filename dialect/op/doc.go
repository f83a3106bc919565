// Package op is the registry of the dialect: one Def describes an op once, and
// the pretty form, the verifier, hover, the reference page, the IRDL file, the
// cost and the lint rules all read it from here. Adding an op is one entry in
// the file of its family, its executor in compile/interp, and its tests.
package op

//go:generate go run ./gen ../../docs/DIALECT.md
