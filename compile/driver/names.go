package driver

import "dmir/dialect/ir"

// OutputNames are the names of fn's results, as [Run] gives them.
func OutputNames(fn *ir.Func) []string { return outputNames(fn, len(fn.Results)) }
