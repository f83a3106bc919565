// Package op is the registry of the dialect: one Def describes an op once, and
// the pretty form, the verifier, hover, the reference page, the IRDL file, the
// cost, the lint rules and the compiler all read it from here: no other package
// keeps a table of ops but those that execute them. docs/ARCHITECTURE.md describes
// how to add an op.
//
// Read def.go first: a Def is all that is true of one op, and its fields are the
// questions that tools ask; an Iteration says which elements it reads, Factors how its
// tensors are divided over devices. registry.go joins the families' lists, in the order
// of the reference page, and finds a Def by name. What other packages call are functions
// over a Def:
//
//	infer.go, builder.go    result types of an op; ops made with them
//	maps of a Def, move.go  which elements an op reads: by affine maps, or by pieces that it is put together from
//	factors*.go             how its tensors are divided over devices
//	derivative*.go          how gradients flow back through it
//	expand.go               the same in simpler ops
//	view.go, in_place.go    which ops move nothing, how many bytes others do, and which operand a result may be written over
//	discardable.go          attributes that any op, function or argument may have
//
// The ops themselves are in the files of their families: elementwise.go,
// contraction.go (with equation.go and product.go, the forms that products have),
// reduction.go, normalization.go, norm_layers.go, attention.go, movement.go, slicing.go,
// segment.go, sources.go, distribution.go, training.go, optimizer.go, control.go, tuple.go,
// kernel.go. Sparse tensors are in sparse*.go; sparse.go
// says how an op takes them, sparse_merge.go and sparse_join.go how entries of several
// come together.
package op

//go:generate go run ./gen ../../docs/DIALECT.md
