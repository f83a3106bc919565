package counted

// Terms are the reasons in steps. A row whose bytes differ for another reason, or
// without one, is a defect of the cost model or of the code generator.
var Terms = []Term{
	{Text: "updates of a place that is updated again, or that lies outside, move less", AtMost: true, Doc: "a scatter: its indices determine what is written"},
	{Text: "what updates replace is not read", AtMost: true, Doc: "copies with parts replaced, of a value that the kernel computes or reads otherwise too"},
	{Text: "elements that several indices name are read once", AtMost: true, Doc: "a gather reads for each index what it names; which are equal is known when it runs"},
	{Text: "positions determine which elements are read", AtMost: true, Doc: "elements that are in no segment are not read, nor positions that a search passes by"},
	{Text: "what no result depends on is not read", AtMost: true, Doc: "a slice, a window or a gather of what the kernel computes takes a part; the mask of a dropout needs no operand"},
	{Text: "a byte of which a part has one half moves whole", Doc: "a slice or another move of i4 and ui4: the model counts half a byte for each element of a part"},
	{Text: "views or parts of one value overlap", AtMost: true, Doc: "a kernel that takes a value and a view of it, or windows, dynamic slices and gathers of one value: the model adds what each takes"},
}
