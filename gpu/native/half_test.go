package native

import (
	"encoding/binary"
	"math"
	"runtime"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/device"

	"github.com/x448/float16"
)

// Conversions to and from f16 are right on every level of processors.
func TestHalf(t *testing.T) {
	needClang(t)
	cached(t)
	const n = 1 << 16
	var halves, wide, narrow []byte
	for h := range n {
		halves = binary.LittleEndian.AppendUint16(halves, uint16(h))
		// Around each number, and exactly between it and the next one, from all of them.
		v := float64(float16.Frombits(uint16(h)).Float32())
		next := float64(float16.Frombits(uint16(h + 1)).Float32())
		for _, x := range []float64{v, v + (next-v)/2, math.Nextafter(v+(next-v)/2, next), v * (1 + 1e-9)} {
			wide = binary.LittleEndian.AppendUint64(wide, math.Float64bits(x))
			narrow = binary.LittleEndian.AppendUint32(narrow, math.Float32bits(float32(x)))
		}
	}
	b := program("half")
	h, d, f := b.buffer("h", "f16", artifact.Input, n), b.buffer("d", "f64", artifact.Input, 4*n), b.buffer("f", "f32", artifact.Input, 4*n)
	hf, dh, fh := b.buffer("hf", "f32", artifact.Output, n), b.buffer("dh", "f16", artifact.Output, 4*n), b.buffer("fh", "f16", artifact.Output, 4*n)
	b.launch("extended", "%r = fpext half %v0 to float", h, hf)
	b.launch("narrowed", "%r = fptrunc double %v0 to half", d, dh)
	b.launch("truncated", "%r = fptrunc float %v0 to half", f, fh)
	p := b.done()
	for _, arch := range architectures[runtime.GOARCH] {
		if !runsHere(arch) {
			continue
		}
		r, err := Compile(t.Context(), p, arch)
		must(t, err)
		p.Images = []artifact.Image{r.Image}
		got, err := processor{}.Run(t.Context(), p, [][]byte{halves, wide, narrow}, device.Options{})
		must(t, err)
		same := func(what string, i int, got, want float32) {
			if got != want && (got == got || want == want) {
				t.Errorf("%s, %s %d: %v, want %v", arch, what, i, got, want)
			}
		}
		for i, v := range numbers(got.Outputs[0]) {
			same("extended", i, v, float16.Frombits(uint16(i)).Float32())
		}
		for i := range 4 * n {
			half := func(out []byte) float32 { return float16.Frombits(binary.LittleEndian.Uint16(out[2*i:])).Float32() }
			x := math.Float64frombits(binary.LittleEndian.Uint64(wide[8*i:]))
			same("truncated", i, half(got.Outputs[2]), float16.Fromfloat32(float32(x)).Float32())
			same("narrowed", i, half(got.Outputs[1]), nearest(x))
		}
		if t.Failed() {
			return
		}
	}
}

// nearest is x as an f16: to odd as an f32 first, so that it is rounded once.
func nearest(x float64) float32 {
	f := float32(x)
	if float64(f) != x && !math.IsNaN(x) && !math.IsInf(float64(f), 0) {
		u := math.Float32bits(f)
		if math.Abs(float64(f)) > math.Abs(x) {
			u--
		}
		f = math.Float32frombits(u | 1)
	}
	return float16.Fromfloat32(f).Float32()
}
