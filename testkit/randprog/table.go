package randprog

// weighted is a kind of statement, how often it comes up, and how it is written;
// write reports whether it could be written.
type weighted struct {
	name   string
	weight int
	write  func(w *writer) bool
	smooth bool // allowed in functions that are differentiated
}

// statements are all kinds of statements. Together they write every op of the
// registry.
func statements() []weighted {
	return []weighted{
		{"unary", 10, (*writer).unary, true},
		{"binary", 16, (*writer).binary, true},
		{"bits", 2, (*writer).bits, false},
		{"compare", 2, (*writer).compare, false},
		{"select", 3, (*writer).choose, true},
		{"clamp", 2, (*writer).clamp, true},
		{"convert", 4, (*writer).convert, true},
		{"dropout", 2, (*writer).dropout, true},
		{"map", 2, (*writer).mapped, true},
		{"optimizer", 1, (*writer).optimizer, false},
		{"reduce", 14, (*writer).reduce, true},
		{"statistic", 18, (*writer).statistic, true},
		{"custom", 1, (*writer).customReduce, false},
		{"softmax", 8, (*writer).softmax, true},
		{"norm", 5, (*writer).norm, true},
		{"batch_norm", 2, (*writer).batchNorm, true},
		{"group_norm", 1, (*writer).groupNorm, true},
		{"cross_entropy", 2, (*writer).crossEntropy, true},
		{"argmax", 2, (*writer).argmax, false},
		{"cumsum", 2, (*writer).cumsum, true},
		{"cumprod", 1, (*writer).cumprod, true},
		{"cummax", 1, (*writer).cummax, true},
		{"figure", 3, (*writer).figure, true},
		{"window", 2, (*writer).window, true},
		{"select_and_scatter", 1, (*writer).selectAndScatter, false},
		{"ordered", 1, (*writer).ordered, true},
		{"attention", 2, (*writer).attention, true},
		{"transpose", 5, (*writer).transpose, true},
		{"reshape", 5, (*writer).reshape, true},
		{"broadcast", 5, (*writer).broadcast, true},
		{"slice", 5, (*writer).slice, true},
		{"dynamic_slice", 2, (*writer).dynamicSlice, true},
		{"update", 2, (*writer).update, true},
		{"concatenate", 4, (*writer).concatenate, true},
		{"pad", 3, (*writer).pad, true},
		{"reverse", 2, (*writer).reverse, true},
		{"gather", 6, (*writer).gather, true},
		{"scatter", 2, (*writer).scatter, true},
		{"embedding", 2, (*writer).embedding, true},
		{"segments", 3, (*writer).segments, true},
		{"segment_ids", 1, (*writer).segmentIDs, false},
		{"searchsorted", 1, (*writer).searchSorted, false},
		{"copy", 1, (*writer).copied, true},
		{"roll", 2, (*writer).roll, true},
		{"one_hot", 1, (*writer).oneHot, true},
		{"rope", 1, (*writer).rope, true},
		{"stop_gradient", 1, (*writer).stopped, false}, // differences do not stop at it
		{"source", 2, (*writer).source, true},
		{"grouped", 2, (*writer).grouped, true},
		{"einsum", 5, (*writer).einsum, true},
		{"matmul", 4, (*writer).matmul, true},
		{"grouped_matmul", 1, (*writer).groupedMatmul, true},
		{"structured_einsum", 1, (*writer).structuredEinsum, true},
		{"convolution", 2, (*writer).convolution, true},
		{"layer", 2, (*writer).layer, true},
		{"parts", 2, (*writer).parts, true},
		{"tall", 2, (*writer).tall, true},
		{"kernel", 3, (*writer).kernel, true},
		{"if", 1, (*writer).branch, false},
		{"while", 1, (*writer).loop, true},
		{"scan", 2, (*writer).scan, true},
		{"gradient", 1, (*writer).gradient, false},
	}
}

// weigh chooses the weights for this program, so that kinds that are rare overall
// occur together in some programs.
func (w *writer) weigh() {
	for _, s := range statements() {
		if w.grad && !s.smooth {
			continue
		}
		switch w.r.IntN(8) {
		case 0:
			s.weight *= 4
		case 1:
			s.weight /= 2
		}
		s.weight = max(1, s.weight)
		w.table = append(w.table, s)
	}
}

func (w *writer) statement() {
	sum := 0
	for _, s := range w.table {
		sum += s.weight
	}
	k := w.r.IntN(sum)
	for _, s := range w.table {
		if k -= s.weight; k < 0 {
			s.write(w)
			return
		}
	}
}
