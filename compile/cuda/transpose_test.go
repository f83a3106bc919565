package cuda

import (
	"fmt"
	"strings"
	"testing"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/testkit/need"
)

// transposing are element-wise kernels that read operands along other dimensions than
// those of their results.
var transposing = []struct {
	name, args, body, out string
	elems                 string // that ELEM stands for
	want                  string // tiles, and the elements of an access to each staged operand; of the first element type
	aligned               bool   // every access has 16 bytes, and no two lanes of one read the same bank
}{
	{
		"transpose", "%x: tensor<192x320xELEM>", "%y = dm.transpose %x, dims = [1, 0] : (tensor<192x320xELEM>) -> tensor<320x192xELEM>", "%y : tensor<320x192xELEM>",
		"f16 f32 f64 i8 bf16 i64 i1", "64x64 x:8", true,
	},
	{
		"odd sizes", "%x: tensor<67x131xELEM>", "%y = dm.transpose %x, dims = [1, 0] : (tensor<67x131xELEM>) -> tensor<131x67xELEM>", "%y : tensor<131x67xELEM>",
		"f16 f32 f64 i8", "64x64 x:1", false,
	},
	{
		"an odd number of lines", "%x: tensor<96x131xELEM>", "%y = dm.transpose %x, dims = [1, 0] : (tensor<96x131xELEM>) -> tensor<131x96xELEM>", "%y : tensor<131x96xELEM>",
		"f16 f32 i8", "64x64 x:1", false,
	},
	{
		"lines of an odd length", "%x: tensor<131x96xELEM>", "%y = dm.transpose %x, dims = [1, 0] : (tensor<131x96xELEM>) -> tensor<96x131xELEM>", "%y : tensor<96x131xELEM>",
		"f16 f64 i8", "64x64 x:8", false,
	},
	{
		"planes", "%x: tensor<3x80x96xELEM>", "%y = dm.transpose %x, dims = [0, 2, 1] : (tensor<3x80x96xELEM>) -> tensor<3x96x80xELEM>", "%y : tensor<3x96x80xELEM>",
		"f16 f32", "64x64 x:8", true,
	},
	{
		"three dimensions", "%x: tensor<32x40x48xELEM>", "%y = dm.transpose %x, dims = [2, 1, 0] : (tensor<32x40x48xELEM>) -> tensor<48x40x32xELEM>", "%y : tensor<48x40x32xELEM>",
		"f16 f32 f64", "64x64 x:8", true,
	},
	{
		"keys of heads", "%x: tensor<2x48x4x32xELEM>", "%y = dm.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x48x4x32xELEM>) -> tensor<2x4x32x48xELEM>", "%y : tensor<2x4x32x48xELEM>",
		"f16", "64x64 x:8", true,
	},
	{
		"channels last", "%x: tensor<2x96x8x12xELEM>", "%y = dm.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x96x8x12xELEM>) -> tensor<2x8x12x96xELEM>", "%y : tensor<2x8x12x96xELEM>",
		"f16 f32", "64x64 x:8", true,
	},
	{
		"channels first", "%x: tensor<2x8x12x96xELEM>", "%y = dm.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x8x12x96xELEM>) -> tensor<2x96x8x12xELEM>", "%y : tensor<2x96x8x12xELEM>",
		"f16 f32", "64x64 x:8", true,
	},
	{
		"a direct operand", "%x: tensor<96x128xELEM>, %b: tensor<128x96xf32>, %s: tensor<96xf32>",
		`%t = dm.transpose %x, dims = [1, 0] : (tensor<96x128xELEM>) -> tensor<128x96xELEM>
%c = dm.convert %t : (tensor<128x96xELEM>) -> tensor<128x96xf32>
%u = dm.add %c, %s : (tensor<128x96xf32>, tensor<96xf32>) -> tensor<128x96xf32>
%y = dm.add %u, %b : tensor<128x96xf32>`, "%y : tensor<128x96xf32>",
		"f16 f64 i8", "64x64 x:8", true,
	},
	{
		"results of two types", "%x: tensor<96x128xELEM>, %w: tensor<96x128xf32>",
		`%a = dm.convert %x : (tensor<96x128xELEM>) -> tensor<96x128xf32>
%b = dm.mul %a, %w : tensor<96x128xf32>
%y = dm.transpose %b, dims = [1, 0] : (tensor<96x128xf32>) -> tensor<128x96xf32>
%z = dm.convert %y : (tensor<128x96xf32>) -> tensor<128x96xELEM>`, "%y, %z : tensor<128x96xf32>, tensor<128x96xELEM>",
		"f16 f64 i8", "64x64 x:8 w:4", true,
	},
	{
		"a matrix beside its transpose", "%x: tensor<96x128xELEM>",
		`%y = dm.add %x, %x : tensor<96x128xELEM>
%z = dm.transpose %y, dims = [1, 0] : (tensor<96x128xELEM>) -> tensor<128x96xELEM>`, "%y, %z : tensor<96x128xELEM>, tensor<128x96xELEM>",
		"f16 f32", "64x64 x:8", true,
	},
	{
		"columns that data chooses", "%x: tensor<50x128xELEM>, %i: tensor<96xi32>",
		`%g = dm.gather %x, %i, dim = 0 : (tensor<50x128xELEM>, tensor<96xi32>) -> tensor<96x128xELEM>
%y = dm.transpose %g, dims = [1, 0] : (tensor<96x128xELEM>) -> tensor<128x96xELEM>`, "%y : tensor<128x96xELEM>",
		"f16", "64x64 x:8", true,
	},
	{
		"two directions", "%x: tensor<32x40x48xELEM>, %w: tensor<32x48x40xELEM>",
		`%a = dm.transpose %x, dims = [2, 1, 0] : (tensor<32x40x48xELEM>) -> tensor<48x40x32xELEM>
%b = dm.transpose %w, dims = [1, 2, 0] : (tensor<32x48x40xELEM>) -> tensor<48x40x32xELEM>
%y = dm.add %a, %b : tensor<48x40x32xELEM>`, "%y : tensor<48x40x32xELEM>",
		"f16", "64x64 x:8", true,
	},
	{
		"a cut that is not aligned", "%x: tensor<97x131xELEM>",
		`%s = dm.slice %x, start_indices = [1, 1], limit_indices = [97, 129] : (tensor<97x131xELEM>) -> tensor<96x128xELEM>
%y = dm.transpose %s, dims = [1, 0] : (tensor<96x128xELEM>) -> tensor<128x96xELEM>`, "%y : tensor<128x96xELEM>",
		"f16", "64x64 x:1", false,
	},
	{
		"few lines", "%x: tensor<4096x8xELEM>", "%y = dm.transpose %x, dims = [1, 0] : (tensor<4096x8xELEM>) -> tensor<8x4096xELEM>", "%y : tensor<8x4096xELEM>",
		"f16", "8x512 x:8", true,
	},
	{
		"few lines far apart", "%x: tensor<512x16x8xELEM>", "%y = dm.transpose %x, dims = [2, 1, 0] : (tensor<512x16x8xELEM>) -> tensor<8x16x512xELEM>", "%y : tensor<8x16x512xELEM>",
		"f16", "8x512 x:8", false,
	},
	{
		"small planes", "%x: tensor<64x8x8xELEM>", "%y = dm.transpose %x, dims = [0, 2, 1] : (tensor<64x8x8xELEM>) -> tensor<64x8x8xELEM>", "%y : tensor<64x8x8xELEM>",
		"f16 f64", "", false,
	},
	{
		"padded", "%x: tensor<96x128xELEM>, %o: tensor<ELEM>",
		`%p = dm.pad %x, %o, low = [0, 16], high = [0, 16] : (tensor<96x128xELEM>, tensor<ELEM>) -> tensor<96x160xELEM>
%y = dm.transpose %p, dims = [1, 0] : (tensor<96x160xELEM>) -> tensor<160x96xELEM>`, "%y : tensor<160x96xELEM>",
		"f16 f32", "64x64 x:8", true,
	},
	{
		"padded by odd numbers", "%x: tensor<96x128xELEM>, %o: tensor<ELEM>",
		`%p = dm.pad %x, %o, low = [3, 5], high = [2, 9] : (tensor<96x128xELEM>, tensor<ELEM>) -> tensor<101x142xELEM>
%y = dm.transpose %p, dims = [1, 0] : (tensor<101x142xELEM>) -> tensor<142x101xELEM>`, "%y : tensor<142x101xELEM>",
		"f16 f32", "64x64 x:1", false,
	},
	{
		"concatenated", "%x: tensor<96x128xELEM>, %w: tensor<96x64xELEM>, %z: tensor<96x40xELEM>",
		`%a = dm.transpose %x, dims = [1, 0] : (tensor<96x128xELEM>) -> tensor<128x96xELEM>
%b = dm.transpose %w, dims = [1, 0] : (tensor<96x64xELEM>) -> tensor<64x96xELEM>
%c = dm.transpose %z, dims = [1, 0] : (tensor<96x40xELEM>) -> tensor<40x96xELEM>
%y = dm.concatenate %a, %b, %c, dim = 0 : (tensor<128x96xELEM>, tensor<64x96xELEM>, tensor<40x96xELEM>) -> tensor<232x96xELEM>`, "%y : tensor<232x96xELEM>",
		"f16 f64", "64x64 x:8 w:8 z:8", true,
	},
	{
		"concatenated along lines", "%x: tensor<40x128xELEM>, %w: tensor<37x128xELEM>",
		`%a = dm.transpose %x, dims = [1, 0] : (tensor<40x128xELEM>) -> tensor<128x40xELEM>
%b = dm.transpose %w, dims = [1, 0] : (tensor<37x128xELEM>) -> tensor<128x37xELEM>
%y = dm.concatenate %a, %b, dim = 1 : (tensor<128x40xELEM>, tensor<128x37xELEM>) -> tensor<128x77xELEM>`, "%y : tensor<128x77xELEM>",
		"f16", "64x64 x:8 w:8", false,
	},
	{
		"no transposition", "%x: tensor<96x128xELEM>", "%y = dm.exp %x : tensor<96x128xELEM>", "%y : tensor<96x128xELEM>",
		"f16 f32", "", false,
	},
}

// transposed are the cases of transposing for each element type.
func transposed(visit func(c productCase, want string, aligned bool)) {
	for _, c := range transposing {
		for k, elem := range strings.Fields(c.elems) {
			p := productCase{name: c.name, args: c.args, body: c.body, out: c.out, elements: true}.of(elem, Config{})
			want := c.want
			if k > 0 && want != "" {
				want = "any"
			}
			visit(p, want, c.aligned)
		}
	}
}

// tilingsOf are those of a form.
func tilingsOf(t *testing.T, f *kernel.Form) (all []*tiling) {
	t.Helper()
	p, err := targetOf(t, "sm_90a").plan(f, assemble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range p.scheme.(*elementwise).loops() {
		if q.tiling != nil {
			all = append(all, q.tiling)
		}
	}
	return all
}

// Kernels that read an operand along another dimension compute what the reference does,
// move the bytes that the cost model says, race nowhere, and spill on no architecture, of which each run has one in turn.
func TestTransposes(t *testing.T) {
	t.Parallel()
	need.Long(t)
	c := newCollection(targetOf(t, "sm_90a"))
	c.scattered = []string{"two_directions"} // a kernel stages operands of one
	transposed(func(p productCase, _ string, _ bool) { c.add(t, p, true) })
	c.emulate(t)
	for i, arch := range []string{"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100"} {
		if need.Turn(t, i, 5) {
			c.compile(t, arch)
		}
	}
}

// The tiles of transposing kernels, and what their accesses cost, counted from the index
// expressions.
func TestTransposedAccesses(t *testing.T) {
	transposed(func(p productCase, want string, aligned bool) {
		tilings := tilingsOf(t, formed(t, p))
		var parts []string
		for _, x := range tilings {
			parts = append(parts, fmt.Sprintf("%dx%d", x.rows, x.cols))
			for _, s := range x.staged {
				parts = append(parts, fmt.Sprintf("%s:%d", strings.TrimPrefix(s.x.Buf.Name, "%"), s.w))
			}
		}
		if got := strings.Join(parts, " "); got != want && (want != "any" || got == "") {
			t.Errorf("%s: tiles %q, want %q", p.name, got, want)
		}
		for _, x := range tilings {
			reads, writes, conflicts := x.count()
			t.Logf("%-40s %v: sectors per full one: reads %.2f, writes %.2f; wavefronts per full one: %.2f", p.name, parts, reads, writes, conflicts)
			if aligned && (reads > 1 || writes > 1 || conflicts > 1) {
				t.Errorf("%s: %.2f sectors for each that is read, %.2f for each written, %.2f wavefronts for each needed", p.name, reads, writes, conflicts)
			}
			for _, s := range x.staged {
				if aligned && s.w*s.x.Elem.Bytes() != accessBytes {
					t.Errorf("%s: %s is read by %d elements", p.name, s.x.Buf.Name, s.w)
				}
			}
			if least, widest := sizes(x.outs); aligned && x.f.V*widest < accessBytes {
				t.Errorf("%s: results of %d and more bytes are written by %d elements", p.name, least, x.f.V)
			}
		}
	})
}

// count is what the warps of the first block access, each as a multiple of the least that
// their bytes need: sectors of memory that are read and written, and wavefronts of shared
// memory.
func (t *tiling) count() (reads, writes, conflicts float64) {
	var used, fetched, stored, wrote, waves, fewest int64
	element := func(row, col int64) (int64, bool) {
		return row*t.length + col, row < t.lines && col < t.length
	}
	for _, s := range t.staged {
		size, chunk := s.x.Elem.Bytes(), accessBytes/s.x.Elem.Bytes()
		place := func(p, key int64) int64 { return (p ^ key&7*chunk) * size }
		warps(t.rows*t.cols/s.w, func(lanes []int64) {
			var global, shared []int64
			for _, n := range lanes {
				p := n * s.w
				shared = append(shared, place(p, p/(t.group(s.x.Elem)*t.f.V*t.rows)))
				i, ok := element(p%t.rows, p/t.rows)
				for _, c := range s.conds {
					x := c.X.Value(t.vars(i))
					ok = ok && x >= c.Lo && x < c.Hi
				}
				if ok {
					global = append(global, s.x.At.Value(t.vars(i))*size)
				}
			}
			used += int64(len(global)) * s.w * size
			fetched += sectorsOf(global, s.w*size)
			w, f := wavefronts(shared, s.w*size)
			waves, fewest = waves+w, fewest+f
		})
		vectors, lines := t.patch()
		patches := t.cols / t.f.V / vectors
		warps(t.rows*t.cols/t.f.V, func(lanes []int64) {
			for j := range t.f.V {
				var shared []int64
				for _, n := range lanes {
					row, col := n/(32*patches)*lines+n%32/vectors, n/32%patches*vectors+n%vectors
					shared = append(shared, place(col*t.f.V*t.rows+row+j*t.rows, col/t.group(s.x.Elem)))
				}
				w, f := wavefronts(shared, size)
				waves, fewest = waves+w, fewest+f
			}
		})
	}
	vectors, lines := t.patch()
	patches := t.cols / t.f.V / vectors
	for _, o := range t.outs {
		size := o.Value.Elem().Bytes()
		warps(t.rows*t.cols/t.f.V, func(lanes []int64) {
			var global []int64
			for _, n := range lanes {
				row, col := n/(32*patches)*lines+n%32/vectors, n/32%patches*vectors+n%vectors
				if i, ok := element(row, col*t.f.V); ok {
					global = append(global, o.At.Value(t.vars(i))*size)
				}
			}
			wrote += int64(len(global)) * t.f.V * size
			stored += sectorsOf(global, t.f.V*size)
		})
	}
	return float64(fetched*sectorBytes) / float64(used), float64(stored*sectorBytes) / float64(wrote), float64(waves) / float64(fewest)
}

// warps visits the numbers below n, 32 at a time.
func warps(n int64, visit func(lanes []int64)) {
	for from := int64(0); from < n; from += 32 {
		var lanes []int64
		for i := from; i < min(n, from+32); i++ {
			lanes = append(lanes, i)
		}
		visit(lanes)
	}
}

// sectorsOf is the number of sectors that accesses of size bytes touch.
func sectorsOf(at []int64, size int64) int64 {
	seen := map[int64]bool{}
	for _, a := range at {
		for s := a / sectorBytes; s <= (a+size-1)/sectorBytes; s++ {
			seen[s] = true
		}
	}
	return int64(len(seen))
}

// wavefronts is the number of passes of shared memory in which lanes access size bytes
// each, and the least that their distinct words need: 16-byte accesses go by eight lanes,
// 8-byte ones by sixteen; in a pass each of the 32 banks gives one word.
func wavefronts(at []int64, size int64) (passes, least int64) {
	lanes := 32 / max(1, size/4)
	for len(at) > 0 {
		n := min(lanes, int64(len(at)))
		banks := map[int64]map[int64]bool{}
		for _, a := range at[:n] {
			for w := a / 4; w <= (a+size-1)/4; w++ {
				if banks[w%32] == nil {
					banks[w%32] = map[int64]bool{}
				}
				banks[w%32][w] = true
			}
		}
		most := 0
		for _, words := range banks {
			most = max(most, len(words))
		}
		passes, least = passes+int64(most), least+1
		at = at[n:]
	}
	return passes, least
}
