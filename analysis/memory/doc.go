// Package memory describes how much device memory a function needs: the largest sum
// of the bytes that are live at one op, under the order of the ops in the text.
// Arguments are live throughout; a result is live from the op that makes it,
// while that op runs, to the last op that uses it, ops in regions included. A
// reshape shares the storage of its operand, and so does an update in place
// (op.InPlace). The inside of a dm.kernel takes none.
package memory
