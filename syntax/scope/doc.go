// Package scope finds what the names of an MLIR text stand for: SSA values,
// block labels, symbols, and aliases of attributes and types. It works on any
// dialect, by the rules that MLIR's own parser and symbol tables follow:
//
//   - a value is visible in its region and in the regions nested there, but not
//     inside an op that is isolated from above: a module or a func.func. Which ops
//     of other dialects are isolated is not known; their regions see all;
//   - a label is visible in its own region only;
//   - a symbol belongs to the op whose region holds its definition, and is looked
//     up from the inside out; in @a::@b, @b is looked up inside the op named @a;
//   - an alias is visible in its section: the stretch between two "// -----".
//
// All values defined in a region are known throughout it, because the order of
// blocks in the text is not that of execution; dominance is the verifier's.
package scope
