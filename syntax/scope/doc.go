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
// blocks in the text is not that of execution.
//
// The index reports labels, symbols and aliases that are not defined, or defined
// twice. Whether a value is visible where it is used depends on the order of ops
// and on which of them are isolated: dialect/lower, which knows both, reports all
// about values.
package scope
