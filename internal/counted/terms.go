package counted

// Terms are the reasons that steps give. A row whose bytes differ for another,
// or for none, is a fault of the cost model or of the code generator.
var Terms = []Term{
	{Text: "the mask of keys that no query of a tile sees is not read", AtMost: true, Doc: "attention skips tiles of keys that are masked whole"},
	{Text: "%d partial results of each query pass through memory", Doc: "attention whose keys are split over several blocks"},
	{Text: "the sums of dy · y pass through memory, and several kernels read the operands", Doc: "the gradient of attention"},
	{Text: "partial sums of blocks are written and read once more", Doc: "folds of which several blocks take a part each"},
	{Text: "parts of its folds pass through memory", Doc: "folds behind a contraction"},
	{Text: "%d partial sums of each element pass through memory", Doc: "contractions whose products are split over several blocks"},
}
