package simplify

// Rules are all rewrites in the order in which they are tried. The slice is the
// caller's.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{
		controlRules(), scanRules(), foldRules(), arithmeticRules(), emptyRules(), convertRules(), reshapeRules(), broadcastRules(),
		sliceRules(), scatterRules(), segmentRules(), einsumRules(), transposeRules(), convolutionRules(),
		{commonRule()},
		{mergeRule(), sumRule(), rowsRule()},
	} {
		all = append(all, group...)
	}
	return all
}
