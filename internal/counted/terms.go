package counted

// Terms are the reasons that steps give. A row whose bytes differ for another,
// or for none, is a fault of the cost model or of the code generator.
var Terms = []Term{
	{Text: "elements that several indices name are read once", AtMost: true, Doc: "a gather reads for each index what it names; which are equal is known when it runs"},
}
