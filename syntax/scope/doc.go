// Package scope finds what the names of an MLIR text stand for: SSA values,
// block labels, symbols, and aliases of attributes and types. It works on any
// dialect, by the rules that MLIR's own parser and symbol tables follow:
//
//   - a value is visible in its region and in the regions nested there, but not
//     inside an op that is isolated from above; a module, a function, and any
//     other op that names a symbol and has a region is taken to be so;
//   - a label is visible in its own region only;
//   - a symbol belongs to the op whose region holds its definition, and is looked
//     up from the inside out; in @a::@b, @b is looked up inside the op named @a;
//   - an alias is visible in its section: the stretch between two "// -----".
//
// All values defined in a region are known throughout it, because the order of
// blocks in the text is not that of execution; dominance is the verifier's.
package scope
