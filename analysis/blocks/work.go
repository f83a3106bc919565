package blocks

// Work is what all tasks of a plan do together. Elements are those of sums.
type Work struct {
	// FLOP are those of the micro-kernel: twice the multiplications of a product that whole tiles divide and whose sums never
	// wait, for as many cycles as the tiles of this one take.
	FLOP float64
	// Rows and Cols are elements of A and B that are packed.
	Rows, Cols float64
	// Results are elements of sums that are stored, those of partial ones included, and Lines the rows of tiles that have them.
	Results, Lines float64
}

// Work is the work of p.
func (p Plan) Work() (w Work) {
	s, lanes := p.Shape, p.Lanes()
	batch, rows, cols, depth := float64(s.Batch), float64(s.Rows), float64(s.Cols), float64(s.Depth)
	products := float64(s.Products)
	if p.Few { // B is read where it lies, and each row is a vector operation
		w.FLOP = 2 * batch * rows * float64(up(s.Cols, lanes)) * depth * products
		w.Results = batch * rows * cols * products
		return w
	}
	tiles := batch * float64(ceil(s.Rows, p.MR)*ceil(s.Cols, p.NR))
	const perCycle = 2 * 2 // two vectors of sums start, of two FLOP each
	w.FLOP = tiles * p.step(p.MR, p.NR/lanes) * depth * float64(lanes) * perCycle * products
	w.Rows = batch * rows * depth * float64(ceil(s.Cols, p.NC))
	w.Results = batch * rows * cols * float64(p.Passes()) * products
	w.Lines = batch * rows * float64(ceil(s.Cols, p.NC)*ceil(p.NC, p.Width())) * products
	if s.Window == nil { // what is copied of an image is far less
		w.Cols = batch * cols * depth * products
		if !p.Resident {
			w.Cols *= float64(ceil(s.Rows, p.MC))
		}
	}
	return w
}

// ReadsImage reports whether the window of a convolution moves over an image that is read where it is, with columns between
// the lines of outputs that are computed for nothing, and not over one that is packed: all taps of each output. columns are
// those of an image with what is between the lines, outputs those without.
func ReadsImage(rows, images, columns, outputs int64) bool {
	// A packed element takes as long as so many multiplications, measured on a Sapphire Rapids
	// core; columns are computed several at a time.
	const packing, vector = 48, 16
	return up(columns, vector)*images*rows <= up(images*outputs, vector)*(rows+packing)
}
