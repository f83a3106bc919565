// Package randprog writes random programs for tests: numerically tame ones of all ops
// (Program), which can be made small (Shrink), ones for analyses of structure
// (Structure), badly written ones (Messy) and texts with errors (Broken). The same
// seed writes the same text.
package randprog
