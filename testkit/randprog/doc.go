// Package randprog generates random programs for tests: numerically stable ones of all
// ops (Program), which can be reduced (Shrink), ones for analyses of structure
// (Structure), badly written ones (Messy), training steps (Step) and texts with errors (Broken). The same
// seed gives the same text.
package randprog
