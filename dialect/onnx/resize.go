package onnx

import (
	"encoding/binary"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Images of another size, and windows of signals.

func init() {
	register(map[string]conversion{
		"Resize": convertResize, "Upsample": convertUpsample,
		"BlackmanWindow": convertWindow(0.42, 0.5, 0.08), "HammingWindow": convertWindow(25.0/46, 21.0/46, 0), "HannWindow": convertWindow(0.5, 0.5, 0),
	})
}

// convertWindow is a sum of cosines: a - b cos(2πk/n) + c cos(4πk/n).
func convertWindow(a, b, c float64) conversion {
	return func(n *node) []*ir.Value {
		d := n.value(0)
		if d == nil || d.Len() != 1 || !(first(d) >= 0 && first(d) <= maxCounted) {
			fail("the size is one number")
		}
		size := int(first(d))
		period := float64(size)
		if n.int("periodic", 1) == 0 {
			period--
		}
		out := make([]float64, size)
		for k := range out {
			x := 2 * math.Pi * float64(k) / period
			out[k] = a - b*math.Cos(x) + c*math.Cos(2*x)
		}
		return one(n.convertTo(n.floats(out, size), elemOf("", int64(n.int("output_datatype", 1)))))
	}
}

// floats is a constant of f32.
func (n *node) floats(vs []float64, shape ...int) *ir.Value {
	data := make([]byte, 0, 4*len(vs))
	for _, v := range vs {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
	}
	return n.literal(types.DenseOf(tensorOf(types.F32, shape), data))
}

// numbersOf are the elements of input i, which must be known; nil where there are none.
func (n *node) numbersOf(i int) (out []float64) {
	d := n.value(i)
	if d == nil {
		return nil
	}
	count, _ := d.Type.Elements().Int()
	for k := range int(count) {
		if d.Splat {
			k = 0
		}
		out = append(out, d.Float(k))
	}
	return out
}

// resizing is how one dimension changes.
type resizing struct {
	in, out int
	scale   float64
	mode    string // of coordinates
}

// at is the place in the operand of element i of the result.
func (r resizing) at(i int) float64 {
	x := float64(i)
	switch r.mode {
	case "half_pixel":
		return (x+0.5)/r.scale - 0.5
	case "half_pixel_symmetric":
		adjust := float64(r.out) / (r.scale * float64(r.in))
		return float64(r.in)/2*(1-adjust) + (x+0.5)/r.scale - 0.5
	case "pytorch_half_pixel":
		if r.out == 1 {
			return 0
		}
		return (x+0.5)/r.scale - 0.5
	case "align_corners":
		if r.out == 1 {
			return 0
		}
		return x * float64(r.in-1) / float64(r.out-1)
	case "asymmetric":
		return x / r.scale
	}
	unsupported("coordinates by %s", r.mode)
	return 0
}

func convertUpsample(n *node) []*ir.Value {
	scales := n.numbersOf(1)
	if a := n.attr("scales"); a != nil {
		for _, f := range a.floats {
			scales = append(scales, float64(f))
		}
	}
	return one(n.resize(n.in(0), scales, nil, "asymmetric", n.str("mode", "nearest"), "floor"))
}

func convertResize(n *node) []*ir.Value {
	if n.opset < 11 {
		return one(n.resize(n.in(0), n.numbersOf(1), nil, "asymmetric", n.str("mode", "nearest"), "floor"))
	}
	if n.int("antialias", 0) != 0 {
		unsupported("antialiasing")
	}
	scales, target := n.numbersOf(2), []int(nil)
	if d := n.value(3); d != nil {
		target = integers(d)
	}
	return one(n.resize(n.in(0), scales, target, n.str("coordinate_transformation_mode", "half_pixel"), n.str("mode", "nearest"), n.str("nearest_mode", "round_prefer_floor")))
}

// resize changes one dimension after another: by picking elements, or by a product with
// the weights of neighbours.
func (n *node) resize(x *ir.Value, scales []float64, target []int, coordinates, mode, nearest string) *ir.Value {
	shape := n.shape(x)
	at := n.ints("axes")
	if at == nil {
		at = axesFrom(len(shape))
	}
	at = axes(at, len(shape))
	if len(scales) != len(at) && len(target) != len(at) {
		fail("%d scales and %d sizes for %d dimensions", len(scales), len(target), len(at))
	}
	if policy := n.str("keep_aspect_ratio_policy", "stretch"); len(target) > 0 && policy != "stretch" {
		var ratios []float64
		for k, d := range at {
			ratios = append(ratios, float64(target[k])/float64(shape[d]))
		}
		same := slices.Min(ratios)
		if policy == "not_smaller" {
			same = slices.Max(ratios)
		}
		scales, target = nil, slices.Clone(target)
		for k, d := range at {
			scales = append(scales, same)
			target[k] = int(math.Floor(same*float64(shape[d]) + 0.5))
		}
	}
	e := x.Elem()
	for k, d := range at {
		r := resizing{in: shape[d], mode: coordinates}
		switch {
		case len(target) > 0:
			r.out, r.scale = target[k], float64(target[k])/float64(r.in)
			if len(scales) > 0 {
				r.scale = scales[k]
			}
		default:
			r.scale = scales[k]
			if !(r.scale > 0 && r.scale*float64(r.in) < maxCounted) {
				unsupported("a scale of %v", r.scale)
			}
			r.out = int(math.Floor(r.scale * float64(r.in)))
		}
		if r.in == r.out && r.scale == 1 {
			continue
		}
		if r.in == 0 || r.out < 0 || r.out > maxCounted {
			unsupported("a dimension of %d elements that becomes %d", r.in, r.out)
		}
		switch mode {
		case "nearest":
			x = n.gather(x, n.numbers(r.nearest(nearest)...), d)
		case "linear", "cubic":
			if r.in > maxCounted/max(r.out, 1)*16 {
				unsupported("a dimension of %d elements that becomes %d", r.in, r.out)
			}
			s := n.shape(x)
			w := n.floats(r.weights(n, mode), r.out, r.in)
			v := n.reshape(n.wide(x), product(s[:d]), s[d], product(s[d+1:]))
			v = n.make("einsum", []*ir.Value{n.convertTo(w, v.Elem()), v}, named("equation", types.Attr(types.Str("oi,aib->aob"))))
			s[d] = r.out
			x = n.convertTo(n.reshape(v, s...), e)
		default:
			fail("mode %q", mode)
		}
	}
	return x
}

// nearest are the elements nearest to the places.
func (r resizing) nearest(mode string) []int {
	round := map[string]func(float64) float64{
		"round_prefer_floor": func(x float64) float64 { return math.Ceil(x - 0.5) },
		"round_prefer_ceil":  func(x float64) float64 { return math.Floor(x + 0.5) },
		"floor":              math.Floor,
		"ceil":               math.Ceil,
	}[mode]
	if round == nil {
		fail("nearest_mode %q", mode)
	}
	out := make([]int, r.out)
	for i := range out {
		out[i] = min(max(int(round(r.at(i))), 0), r.in-1)
	}
	return out
}

// weights are, for each place, those of the elements: of the two or four around it.
func (r resizing) weights(n *node, mode string) []float64 {
	w := make([]float64, r.out*r.in)
	a := n.float("cubic_coeff_a", -0.75)
	for i := range r.out {
		x := r.at(i)
		floor := math.Floor(x)
		t := x - floor
		taps, from := []float64{1 - t, t}, int(floor)
		if mode == "cubic" {
			taps, from = []float64{
				((a*(t+1)-5*a)*(t+1)+8*a)*(t+1) - 4*a,
				((a+2)*t-(a+3))*t*t + 1,
				((a+2)*(1-t)-(a+3))*(1-t)*(1-t) + 1,
				((a*(2-t)-5*a)*(2-t)+8*a)*(2-t) - 4*a,
			}, from-1
		}
		sum := 1.0
		if n.int("exclude_outside", 0) != 0 {
			sum = 0
			for k := range taps {
				if p := from + k; p < 0 || p >= r.in {
					taps[k] = 0
				}
				sum += taps[k]
			}
		}
		for k, v := range taps {
			w[i*r.in+min(max(from+k, 0), r.in-1)] += v / sum
		}
	}
	return w
}
