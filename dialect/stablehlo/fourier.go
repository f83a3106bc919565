package stablehlo

import (
	"encoding/binary"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Fourier transforms are written with the ops that the dialect has, so that every device
// runs and every pass understands them. A dimension of n = r₁ r₂ … elements takes one
// product with a small matrix for each factor (Stockham's form, which needs no
// reordering) and a rotation between two of them: n Σ rᵢ multiplications. A large prime
// factor is a convolution (Bluestein's), whose transforms have a power of two elements.
// The two parts of the numbers are a dimension of one tensor in between.

// maxRadix is the largest factor of a transform of many.
const maxRadix = 32

// maxDirect is the largest prime factor that is a product with a matrix.
const maxDirect = 128

// maxPrime is the largest prime factor: the tables of its convolution are made when the
// program is read.
const maxPrime = 1 << 18

// maxTables bounds the bytes of all tables of a program.
const maxTables = 1 << 28

// maxTable is the most rotations that a constant holds; more of them are computed.
const maxTable = 1 << 16

func fft(n *node) []*ir.Value {
	n.takes(1)
	kind := n.keyword("fft_type")
	lengths := n.ints("fft_length")
	x := n.parts[n.in[0]]
	if x == nil {
		x = n.in[:1]
	}
	shape := slices.Clone(n.shape(x[0]))
	k := len(lengths)
	n.must(k >= 1 && k <= 3 && k <= len(shape), "DM141", "fft_length of %s has %d entries for a %s", n.name, k, n.in[0].Type)
	n.must((len(x) == 1) == (kind == "RFFT"), "DM142", "%s of type %s does not take a %s", n.name, kind, n.in[0].Type)
	outer, last := len(shape)-k, lengths[k-1]
	for i, l := range lengths {
		want := l
		if kind == "IRFFT" && i == k-1 {
			want = l/2 + 1
		}
		if l == 0 {
			want = 0
		}
		n.must(l >= 0 && shape[outer+i] == want, "DM141", "fft_length of %s has %d where %s has %d", n.name, l, n.in[0].Type, shape[outer+i])
	}
	to := slices.Clone(shape)
	switch kind {
	case "RFFT":
		to[len(to)-1] = last/2 + 1
		if last == 0 {
			to[len(to)-1] = 0
		}
	case "IRFFT":
		to[len(to)-1] = last
	case "FFT", "IFFT":
	default:
		n.fail("DM141", "%s has the type %q; there are FFT, IFFT, RFFT and IRFFT", n.name, kind)
	}
	if product(shape) == 0 || product(to) == 0 {
		zero := n.trailing(n.fill(x[0].Elem(), 0), to)
		if kind == "IRFFT" {
			return []*ir.Value{zero}
		}
		return []*ir.Value{n.complexValue(complexNumber{zero, zero})}
	}
	f := fourier{n, x[0].Elem(), kind == "IFFT" || kind == "IRFFT"}
	along := func(y *ir.Value, d, length int, real bool) *ir.Value { // dimension d of shape
		y = n.reshape(y, n.shape(y)[0], product(shape[:d]), length*product(shape[d+1:]))
		return f.transform(y, length, product(shape[d+1:]), real)
	}
	var y *ir.Value
	switch kind {
	case "RFFT":
		y = f.half(n.reshape(x[0], 1, product(shape[:len(shape)-1]), last), last)
		shape = to
	default:
		y = n.stacked(x)
	}
	for i := k - 1; i >= 0; i-- {
		if i < k-1 || kind == "FFT" || kind == "IFFT" {
			y = along(y, outer+i, lengths[i], false)
		}
	}
	if kind == "IRFFT" {
		y = f.fromHalf(n.reshape(y, 2, product(shape[:len(shape)-1]), last/2+1), last)
		return []*ir.Value{n.reshape(y, to...)}
	}
	y = n.reshape(y, append([]int{2}, to...)...)
	re, im := n.reshape(n.slice(y, 0, 0, 1), to...), n.reshape(n.slice(y, 0, 1, 2), to...)
	return []*ir.Value{n.complexValue(complexNumber{re, im})}
}

// stacked are the parts of numbers as one tensor, whose first dimension has the size 2.
func (n *node) stacked(parts []*ir.Value) *ir.Value {
	shape := append([]int{1}, n.shape(parts[0])...)
	return n.concatenated([]*ir.Value{n.reshape(parts[0], shape...), n.reshape(parts[1], shape...)}, 0)
}

// fourier builds transforms: forward ones, or inverse ones with their factor 1/n.
type fourier struct {
	*node
	elem    types.Elem
	inverse bool
}

// transform is the transform of x, of shape [parts, batch, length·inner], over the
// dimension of length. There is one part where x is real, and one in the result where
// only the real part is wanted.
func (f fourier) transform(x *ir.Value, length, inner int, real bool) *ir.Value {
	n := f.node
	batch := n.shape(x)[1]
	done := inner // elements behind the dimension that remains
	left := length
	for first := true; first || left > 1; first = false {
		r := radix(left)
		m := left / r
		parts, want := n.shape(x)[0], 2
		if real && m == 1 {
			want = 1
		}
		if r > maxDirect {
			x = f.prime(n.reshape(x, parts, batch, r, m*done), r, want)
			x = n.reshape(n.transpose(n.reshape(x, want, batch, r, m, done), []int{0, 1, 3, 2, 4}), want, batch, m, r*done)
		} else {
			scale := 1.0
			if f.inverse {
				scale = 1 / float64(r)
			}
			x = f.product(n.reshape(x, parts, batch, r, m, done), f.matrix(r, r, r, parts, want, func(int) float64 { return scale }))
		}
		if m > 1 {
			x = f.rotated(n.reshape(x, 2, batch, m, r, done), left, m, r)
		}
		left, done = m, done*r
		x = n.reshape(x, want, batch, left*done)
	}
	return x
}

// radix is the factor of a transform of n elements that is taken first: of about the
// same size for all of them, and as few as maxRadix permits.
func radix(n int) int {
	if n <= maxRadix {
		return n
	}
	stages := math.Ceil(math.Log(float64(n))/math.Log(maxRadix) - 1e-9)
	want := int(math.Ceil(math.Pow(float64(n), 1/stages) - 1e-9))
	for r := want; r <= maxRadix; r++ {
		if n%r == 0 {
			return r
		}
	}
	for r := min(want, maxRadix); r > 1; r-- {
		if n%r == 0 {
			return r
		}
	}
	for r := maxRadix + 1; r*r <= n; r++ {
		if n%r == 0 {
			return r
		}
	}
	return n
}

// product is Σ x[p, b, r, m, s] w[p, r, q, k] over p and r, of shape [q, b, m, k, s]: the
// parts of numbers are summed over like elements.
func (f fourier) product(x, w *ir.Value) *ir.Value {
	return f.op("einsum", []*ir.Value{x, w}, named("equation", types.Str("pbrms,prqk->qbmks")))
}

// turn is e^±2πi·k/n; the sign is that of the transform.
func (f fourier) turn(k, n int) (re, im float64) {
	k %= n
	sine, cosine := unitCircle(k, n)
	return cosine, either(f.inverse, sine, -sine)
}

// unitCircle is the sine and the cosine of 2πk/n, exact where they are 0, ±1/2 or ±1.
func unitCircle(k, n int) (sine, cosine float64) {
	switch {
	case 8*k > 7*n:
		s, c := unitCircle(n-k, n)
		return -s, c
	case 8*k > 5*n: // near 3/4
		s, c := math.Sincos(2 * math.Pi * float64(4*k-3*n) / float64(4*n))
		return -c, s
	case 8*k > 3*n: // near 1/2
		s, c := math.Sincos(2 * math.Pi * float64(2*k-n) / float64(2*n))
		return -s, -c
	case 8*k > n: // near 1/4
		s, c := math.Sincos(2 * math.Pi * float64(4*k-n) / float64(4*n))
		return c, -s
	}
	return math.Sincos(2 * math.Pi * float64(k) / float64(n))
}

// table is a constant of the numbers that number gives by their indices, the same one for
// all that need it in a block.
func (f fourier) table(number func(at []int) float64, shape ...int) *ir.Value {
	var data []byte
	at := make([]int, len(shape))
	for range product(shape) {
		bits := types.ToBits(number(at)+0, f.elem) // no -0
		if f.elem == types.F64 {
			data = binary.LittleEndian.AppendUint64(data, bits)
		} else {
			data = binary.LittleEndian.AppendUint32(data, uint32(bits))
		}
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < shape[i] {
				break
			}
			at[i] = 0
		}
	}
	d := types.DenseOf(tensorOf(f.elem, shape...), data)
	key := place{f.b.Block, d.Key()}
	if f.numbers[key] == nil {
		f.importer.tables += len(data)
		f.must(f.importer.tables <= maxTables, Unsupported, "%s: the tables of the transforms take more than %d MB", f.name, maxTables>>20)
		f.numbers[key] = f.constant(d)
	}
	return f.numbers[key]
}

// matrix is that of a transform of r elements for the product: w[p, j, q, k] is what part p
// of element j adds to part q of element k, times the weight of j.
func (f fourier) matrix(r, rows, columns, parts, want int, weight func(j int) float64) *ir.Value {
	return f.table(func(at []int) float64 {
		re, im := f.turn(at[1]*at[3], r)
		switch {
		case at[0] == at[2]:
			return weight(at[1]) * re
		case at[0] == 1:
			return -weight(at[1]) * im
		}
		return weight(at[1]) * im
	}, parts, rows, want, columns)
}

// times is x, of shape [parts, …], with each number multiplied by that which factor gives for
// the indices behind the parts; shape, of as many dimensions, has the size 1 where all are
// multiplied by the same.
func (f fourier) times(x *ir.Value, factor func(at []int) (re, im float64), shape ...int) *ir.Value {
	two := append([]int{2}, shape...)
	if f.shape(x)[0] == 1 { // real
		return f.binary("mul", x, f.table(func(at []int) float64 {
			re, im := factor(at[1:])
			return either(at[0] == 0, re, im)
		}, two...))
	}
	re := f.table(func(at []int) float64 { re, _ := factor(at); return re }, shape...)
	im := f.table(func(at []int) float64 {
		_, im := factor(at[1:])
		return either(at[0] == 0, -im, im)
	}, two...)
	return f.turned(x, re, im)
}

// turned is x, of two parts, times re + im·i, where im has the sign of each part.
func (f fourier) turned(x, re, im *ir.Value) *ir.Value {
	return f.binary("add", f.binary("mul", x, re), f.binary("mul", f.reversed(x, []int{0}), im))
}

// rotated is x, of shape [2, b, m, r, s], with element (j, k) of m × r turned by jk/n.
func (f fourier) rotated(x *ir.Value, n, m, r int) *ir.Value {
	if m*r <= maxTable {
		return f.times(x, func(at []int) (re, im float64) { return f.turn(at[1]*at[2], n) }, 1, m, r, 1)
	}
	k := f.binary("mul", f.reshape(f.iota(types.I64, 0, m), m, 1, 1), f.reshape(f.iota(types.I64, 0, r), r, 1))
	above := f.compare("gt", k, f.whole(types.I64, n/2)) // angles between -π and π
	k = f.choose(above, f.binary("sub", k, f.whole(types.I64, n)), k)
	angle := f.binary("mul", f.convert(k, f.elem), f.fill(f.elem, 2*math.Pi/float64(n)))
	sign := f.table(func(at []int) float64 { return either((at[0] == 0) == f.inverse, -1.0, 1.0) }, 2, 1, 1, 1, 1)
	return f.turned(x, f.unary("cos", angle), f.binary("mul", sign, f.unary("sin", angle)))
}

// direct reports whether a transform of n elements is one product.
func direct(n int) bool { return n <= maxDirect && radix(n) == n }

// half is the first half of the spectrum of x, n real numbers of shape [1, b, n], of which
// the other half is the mirror. Neighbours of an even number are the parts of n/2 complex
// numbers: of their transform z, those with even numbers have the spectrum (z + z̄')/2,
// where z' is z in reverse, and those with odd ones (z - z̄')/2i.
func (f fourier) half(x *ir.Value, n int) *ir.Value {
	batch, count := f.shape(x)[1], n/2+1
	switch {
	case direct(n):
		y := f.product(f.reshape(x, 1, batch, n, 1, 1), f.matrix(n, n, count, 1, 2, func(int) float64 { return 1 }))
		return f.reshape(y, 2, batch, count)
	case n%2 == 1 || count > maxTable:
		return f.slice(f.reshape(f.transform(x, n, 1, false), 2, batch, n), 2, 0, count)
	}
	z := f.transpose(f.reshape(x, batch, n/2, 2), []int{2, 0, 1})
	z = f.transform(z, n/2, 1, false)
	z = f.concatenated([]*ir.Value{z, f.slice(z, 2, 0, 1)}, 2)
	return f.folded(z, n, -1)
}

// fromHalf is the inverse of half: n real numbers of shape [1, b, n].
func (f fourier) fromHalf(y *ir.Value, n int) *ir.Value {
	batch, count := f.shape(y)[1], n/2+1
	switch {
	case direct(n):
		x := f.product(f.reshape(y, 2, batch, count, 1, 1), f.matrix(n, count, n, 2, 1, func(j int) float64 {
			return either(j == 0 || 2*j == n, 1, 2.0) / float64(n)
		}))
		return f.reshape(x, 1, batch, n)
	case n%2 == 1 || count > maxTable:
		if count < n {
			rest := f.conjugated(f.reversed(f.slice(y, 2, 1, n-count+1), []int{2}))
			y = f.concatenated([]*ir.Value{y, rest}, 2)
		}
		return f.transform(y, n, 1, true)
	}
	real := f.table(func(at []int) float64 { return either(at[0] == 1 && at[2]%(n/2) == 0, 0, 1.0) }, 2, 1, count)
	z := f.slice(f.folded(f.binary("mul", y, real), n, 1), 2, 0, n/2)
	z = f.transform(z, n/2, 1, false)
	return f.reshape(f.transpose(z, []int{1, 2, 0}), 1, batch, n)
}

// folded is (z + z̄')/2 ± iw (z - z̄')/2 for the rotations w, where z' is z, of shape
// [2, b, n/2 + 1], in reverse.
func (f fourier) folded(z *ir.Value, n int, sign float64) *ir.Value {
	factor := func(sign float64) func(at []int) (re, im float64) {
		return func(at []int) (re, im float64) {
			re, im = f.turn(at[1], n)
			return (1 - sign*im) / 2, sign * re / 2
		}
	}
	other := f.conjugated(f.reversed(z, []int{2}))
	return f.binary("add", f.times(z, factor(sign), 1, n/2+1), f.times(other, factor(-sign), 1, n/2+1))
}

// conjugated is x, of two parts, with the other sign of the imaginary ones.
func (f fourier) conjugated(x *ir.Value) *ir.Value {
	sign := f.table(func(at []int) float64 { return either(at[0] == 0, 1.0, -1.0) }, 2, 1, 1)
	return f.binary("mul", x, sign)
}

// prime is the transform of x, of shape [parts, b, n, s], over the dimension of n, by a
// convolution: jk = (j² + k² - (k-j)²)/2. The convolution is a product of transforms of a
// power of two elements.
func (f fourier) prime(x *ir.Value, n, want int) *ir.Value {
	f.must(n <= maxPrime, Unsupported, "%s with the prime factor %d, above %d, is not supported", f.name, n, maxPrime)
	shape := f.shape(x)
	batch, inner := shape[1], shape[3]
	size := 1
	for size < 2*n-1 {
		size *= 2
	}
	chirp := func(j int) (re, im float64) { return f.turn(j*j%(2*n), 2*n) }
	chirps := func(at []int) (re, im float64) { return chirp(at[1]) }
	y := f.times(x, chirps, 1, n, 1)
	y = f.padded(y, f.fill(f.elem, 0), make([]int, 4), []int{0, 0, size - n, 0}, make([]int, 4))
	forward, back := fourier{f.node, f.elem, false}, fourier{f.node, f.elem, true}
	y = forward.transform(f.reshape(y, 2, batch, size*inner), size, inner, false)
	filter := spectrum(n, size, chirp)
	y = f.times(f.reshape(y, 2, batch, size, inner), func(at []int) (re, im float64) { return real(filter[at[1]]), imag(filter[at[1]]) }, 1, size, 1)
	y = back.transform(f.reshape(y, 2, batch, size*inner), size, inner, false)
	y = f.times(f.slice(f.reshape(y, 2, batch, size, inner), 2, 0, n), chirps, 1, n, 1)
	if f.inverse {
		y = f.binary("mul", y, f.fill(f.elem, 1/float64(n)))
	}
	return f.slice(y, 0, 0, want)
}

// spectrum is the transform of the conjugate chirps, wrapped around, of size elements.
func spectrum(n, size int, chirp func(j int) (re, im float64)) []complex128 {
	z := make([]complex128, size)
	for j := range n {
		re, im := chirp(j)
		z[j] = complex(re, -im)
		if j > 0 {
			z[size-j] = z[j]
		}
	}
	return evenOdd(z)
}

// evenOdd is the transform of a power of two numbers.
func evenOdd(z []complex128) []complex128 {
	k := len(z)
	if k == 1 {
		return z
	}
	var parts [2][]complex128
	for i, v := range z {
		parts[i%2] = append(parts[i%2], v)
	}
	even, odd := evenOdd(parts[0]), evenOdd(parts[1])
	out := make([]complex128, k)
	for i := range even {
		s, c := unitCircle(i, k)
		t := complex(c, -s) * odd[i]
		out[i], out[i+k/2] = even[i]+t, even[i]-t
	}
	return out
}
