package report

import "dmir/syntax/source"

// The kinds of sparse tensors that are pictured.
const (
	PatternArgument = "argument"
	PatternConstant = "constant"
)

// Pattern is which elements a sparse tensor stores: how many in each cell of a grid, which has the first dimension down and the others across.
type Pattern struct {
	Name   string  `json:"name"`   // "%a"
	Kind   string  `json:"kind"`   // PatternArgument or PatternConstant
	Type   string  `json:"type"`   // "tensor<8192x8192xf32, #dm.csr<nnz = 65536>>"
	From   string  `json:"from"`   // "drawn: power law", "counted from web.mtx"
	Reason string  `json:"reason"` // why there is no picture; ""
	Shape  []int64 `json:"shape"`
	Stored int64   `json:"stored"`
	Down   int     `json:"down"`
	Across int     `json:"across"`
	Counts []int64 `json:"counts"` // row by row

	// Of what was counted: elements of the longest and of the median row, rows without any, and blocks of 16 × 16 with some; else 0.
	Longest int64 `json:"longest_row"`
	Median  int64 `json:"median_row"`
	Empty   int64 `json:"empty_rows"`
	Blocks  int64 `json:"blocks_16"`

	StoredLabel  string `json:"stored_label"`  // "131 k of 67.1 M, 0.2 %"
	SummaryLabel string `json:"summary_label"` // a sentence about where the elements lie

	Place
}

// PatternAt is a pattern with where the text has what it is of.
type PatternAt struct {
	Pattern
	Span source.Span
}
