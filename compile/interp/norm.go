package interp

import (
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/op"
)

func normalizationExecutors() map[string]executor {
	return map[string]executor{
		"dm.softmax":       runSoftmax,
		"dm.log_softmax":   runLogSoftmax,
		"dm.layer_norm":    func(c *call) ([]*tensor.Tensor, error) { return runFeatureNorm(c, false) },
		"dm.rms_norm":      func(c *call) ([]*tensor.Tensor, error) { return runFeatureNorm(c, true) },
		"dm.batch_norm":    runBatchNorm,
		"dm.group_norm":    runGroupNorm,
		"dm.cross_entropy": runCrossEntropy,
	}
}

type float interface{ float32 | float64 }

// floatRows is a rowwise op on floating-point rows.
func (c *call) floatRows(f32 func(to, x []float32), f64 func(to, x []float64)) ([]*tensor.Tensor, error) {
	return c.rowwise(func(to, x *tensor.Tensor, n int) func(r int) {
		if x.F64 != nil {
			return func(r int) { f64(to.F64[r*n:][:n], x.F64[r*n:][:n]) }
		}
		return func(r int) {
			row := to.F32[r*n:][:n]
			f32(row, x.F32[r*n:][:n])
			tensor.RoundSlice(to.Elem, row)
		}
	})
}

func runSoftmax(c *call) ([]*tensor.Tensor, error) {
	return c.floatRows(
		func(to, x []float32) { softmaxRow(to, x) },
		func(to, x []float64) { softmaxRow(to, x) },
	)
}

func runLogSoftmax(c *call) ([]*tensor.Tensor, error) {
	return c.floatRows(logSoftmaxRow[float32], logSoftmaxRow[float64])
}

func maxOf[T float](x []T) T {
	m := T(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// softmaxRow may work in place; it returns the logarithm of the sum of the
// exponentials.
func softmaxRow[T float](to, x []T) float64 {
	m := float64(maxOf(x))
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(v) - m)
		sum += e
		to[i] = T(e)
	}
	k := 1 / sum
	for i, v := range to {
		to[i] = T(float64(v) * k)
	}
	return m + math.Log(sum)
}

func logSoftmaxRow[T float](to, x []T) {
	m := float64(maxOf(x))
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - m)
	}
	k := m + math.Log(sum)
	for i, v := range x {
		to[i] = T(float64(v) - k)
	}
}

// standardizer normalizes rows of n elements and applies scale and bias, whose
// entry for element k of row r is number r%cycle·step + k/run.
type standardizer struct {
	epsilon          float64
	rms              bool // divide by the root mean square, subtract no mean
	scale, bias      []float64
	cycle, step, run int
	means, variances []float64 // of each row; given if fixed, otherwise set where not nil
	fixed            bool
}

func standardizeRow[T float](s *standardizer, r int, to, x []T) {
	var mean, variance float64
	switch {
	case s.fixed:
		mean, variance = s.means[r], s.variances[r]
	case s.rms:
		for _, v := range x {
			variance += float64(v) * float64(v)
		}
		variance /= float64(len(x))
	default:
		mean = sumRow[T, float64](0, x) / float64(len(x))
		for _, v := range x {
			d := float64(v) - mean
			variance += d * d
		}
		variance /= float64(len(x))
	}
	if !s.fixed && s.means != nil {
		s.means[r], s.variances[r] = mean, variance
	}
	k := 1 / math.Sqrt(variance+s.epsilon)
	base := r % s.cycle * s.step
	switch {
	case s.scale == nil:
		for i, v := range x {
			to[i] = T((float64(v) - mean) * k)
		}
	case s.run == 1:
		scale, bias := s.scale[base:][:len(x)], s.bias[base:][:len(x)]
		for i, v := range x {
			to[i] = T((float64(v)-mean)*k*scale[i] + bias[i])
		}
	default:
		for lo := 0; lo < len(x); lo += s.run {
			scale, bias := s.scale[base+lo/s.run], s.bias[base+lo/s.run]
			for i := lo; i < min(lo+s.run, len(x)); i++ {
				to[i] = T((float64(x[i])-mean)*k*scale + bias)
			}
		}
	}
}

// standardize normalizes the rows of n of x.
func (c *call) standardize(x *tensor.Tensor, n int, s *standardizer) *tensor.Tensor {
	to := tensor.New(x.Elem, x.Shape...)
	c.eachRow(x.Len(), n, func(r int) {
		if x.F64 != nil {
			standardizeRow(s, r, to.F64[r*n:][:n], x.F64[r*n:][:n])
			return
		}
		row := to.F32[r*n:][:n]
		standardizeRow(s, r, row, x.F32[r*n:][:n])
		tensor.RoundSlice(to.Elem, row)
	})
	return to
}

// parameters reads scale and bias, operands first and first+1; where only scale
// is given bias is zeros.
func (c *call) parameters(s *standardizer, first, n int) *Error {
	for i, t := range c.in[min(first, len(c.in)):min(first+2, len(c.in))] {
		if t.Len() != n {
			return c.errorf("DM704", "%s takes %d parameters, got %s", c.op.Name, n, t.Type())
		}
		if i == 0 {
			s.scale, s.bias = floats(t), make([]float64, n)
		} else {
			s.bias = floats(t)
		}
	}
	return nil
}

func floats(t *tensor.Tensor) []float64 {
	v := make([]float64, t.Len())
	for i := range v {
		v[i] = t.Float(i)
	}
	return v
}

// runFeatureNorm is layer_norm and rms_norm.
func runFeatureNorm(c *call, rms bool) ([]*tensor.Tensor, error) {
	x := c.in[0]
	dims, err := c.dims("dims", x.Rank())
	if err != nil {
		return nil, err
	}
	n := 1
	for _, d := range dims {
		n *= x.Shape[d]
	}
	s := &standardizer{epsilon: op.Float(c.op, "epsilon"), rms: rms, cycle: 1, run: 1}
	if err := c.parameters(s, 1, n); err != nil {
		return nil, err
	}
	perm, inverse := lastly(x.Rank(), dims...)
	y := c.standardize(permuted(c.pool, x, perm), n, s)
	return one(permuted(c.pool, y, inverse)), nil
}

// runBatchNorm normalizes each channel; with five operands by given statistics.
func runBatchNorm(c *call) ([]*tensor.Tensor, error) {
	x := c.in[0]
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	channels := x.Shape[d]
	n := x.Len() / max(1, channels)
	s := &standardizer{epsilon: op.Float(c.op, "epsilon"), cycle: max(1, channels), step: 1, run: max(1, n)}
	if err := c.parameters(s, 1, channels); err != nil {
		return nil, err
	}
	if len(c.in) == 5 {
		s.fixed, s.means, s.variances = true, floats(c.in[3]), floats(c.in[4])
	} else {
		s.means, s.variances = make([]float64, channels), make([]float64, channels)
		for i := range channels { // of no elements
			s.means[i], s.variances[i] = math.NaN(), math.NaN()
		}
	}
	perm := []int{d}
	for e := range x.Rank() {
		if e != d {
			perm = append(perm, e)
		}
	}
	inverse := make([]int, len(perm))
	for i, e := range perm {
		inverse[e] = i
	}
	out := one(permuted(c.pool, c.standardize(permuted(c.pool, x, perm), n, s), inverse))
	for i := 1; i < len(c.op.Results); i++ {
		stat := s.means
		if i == 2 {
			stat = s.variances
		}
		out = append(out, tensor.FromFloats(c.outElem(i), []int{channels}, stat))
	}
	return out, nil
}

func runGroupNorm(c *call) ([]*tensor.Tensor, error) {
	x, groups := c.in[0], int(op.Int(c.op, "groups"))
	if x.Rank() < 2 || groups < 1 || x.Shape[1]%groups != 0 {
		return nil, c.errorf("DM704", "the channels of %s cannot be divided into %d groups", x.Type(), groups)
	}
	channels, space := x.Shape[1], product(x.Shape[2:])
	s := &standardizer{epsilon: op.Float(c.op, "epsilon"), cycle: groups, step: channels / groups, run: max(1, space)}
	if err := c.parameters(s, 1, channels); err != nil {
		return nil, err
	}
	return one(c.standardize(x, channels/groups*space, s)), nil
}

// runCrossEntropy sums the losses in float64.
func runCrossEntropy(c *call) ([]*tensor.Tensor, error) {
	x, labels := c.in[0], c.in[1]
	d, err := c.dim(x.Rank())
	if err != nil {
		return nil, err
	}
	perm, _ := lastly(x.Rank(), d)
	x = permuted(c.pool, x, perm)
	n := x.Shape[x.Rank()-1]
	if labels.Len()*n != x.Len() {
		return nil, c.errorf("DM704", "labels %s do not fit logits %s", labels.Type(), c.in[0].Type())
	}
	at, err := c.clamped(labels, n)
	if err != nil {
		return nil, err
	}
	ignored, ignores, smoothing := op.Int(c.op, "ignore_index"), op.Ignores(c.op), op.Float(c.op, "label_smoothing")
	counts := func(r int) bool { return !ignores || labels.Int[r] != ignored }
	losses := make([]float64, labels.Len())
	c.eachRow(x.Len(), n, func(r int) {
		switch {
		case !counts(r):
		case x.F64 != nil:
			losses[r] = crossEntropy(x.F64[r*n:][:n], int(at[r]), smoothing)
		default:
			losses[r] = crossEntropy(x.F32[r*n:][:n], int(at[r]), smoothing)
		}
	})
	if op.Str(c.op, "reduction") == "none" {
		return one(tensor.FromFloats(x.Elem, labels.Shape, losses)), nil
	}
	var sum, rows float64
	for r, l := range losses {
		if sum += l; counts(r) {
			rows++
		}
	}
	if op.Str(c.op, "reduction") == "mean" {
		sum /= rows
	}
	return one(tensor.FromFloats(x.Elem, []int{}, []float64{sum})), nil
}

func crossEntropy[T float](x []T, at int, smoothing float64) float64 {
	m := float64(maxOf(x))
	var sum, all float64
	for _, v := range x {
		sum += math.Exp(float64(v) - m)
		all += float64(v) - m
	}
	loss := math.Log(sum) - (float64(x[at]) - m)
	if smoothing > 0 {
		loss = (1-smoothing)*loss + smoothing*(math.Log(sum)-all/float64(len(x)))
	}
	return loss
}
