package emulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"dmir/gpu/artifact"
)

// twin is a kernel of one block, or of one cluster, around a function of the prelude that is inline
// assembly on a device, and C++ here. It reads x and writes y, numbers of 32 bits.
type twin struct {
	name    string
	threads int
	cluster int // blocks; 0: one
	x, y    int // words
	body    string
	fill    func(r *rand.Rand, i int) uint32 // word i of x
	within  float64                          // relative; 0: the bits are equal, but for NaN
	load    string                           // what copies the second operand of a product
	maps    []artifact.TensorMap             // of x, as parameters a and b
	to      *artifact.TensorMap              // of y
}

// smallInts are two numbers from -8 to 8, of 16 bits each.
func smallInts(half func(float64) uint16) func(*rand.Rand, int) uint32 {
	return func(r *rand.Rand, _ int) uint32 {
		n := func() uint32 { return uint32(half(float64(r.IntN(17) - 8))) }
		return n() | n()<<16
	}
}

func toF16(x float64) uint16 { // of integers up to 8
	if x == 0 {
		return 0
	}
	frac, exp := math.Frexp(math.Abs(x))
	bits := uint16(exp+14)<<10 | uint16((frac*2-1)*1024)
	if x < 0 {
		bits |= 0x8000
	}
	return bits
}

func toBF16(x float64) uint16 { return uint16(math.Float32bits(float32(x)) >> 16) }

// anyFloat are all floats but NaN, those around the limits of f16 often.
func anyFloat(r *rand.Rand, _ int) uint32 {
	for {
		b := r.Uint32()
		if r.IntN(2) == 0 {
			b = b&0x807fffff | uint32(r.IntN(45)+100)<<23
		}
		if b&0x7fffffff <= 0x7f800000 {
			return b
		}
	}
}

func anyWord(r *rand.Rand, _ int) uint32 { return r.Uint32() }

// withNaN are floats with zeros of both signs, infinities and NaN.
func withNaN(r *rand.Rand, _ int) uint32 {
	special := []uint32{0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000}
	if r.IntN(2) == 0 {
		return special[r.IntN(len(special))]
	}
	return r.Uint32()
}

// mmaTwin is a warp's product: 6 words of operands and 4 sums a lane.
func mmaTwin(name, call string, operand func(*rand.Rand, int) uint32) twin {
	return twin{name: name, threads: 32, x: 320, y: 128, body: `
  dm::u32 a[4], b[2];
  float d[4];
  for (int i = 0; i < 4; i++) a[i] = x[dm::lane() * 10 + i], d[i] = dm::bits_as<float>(dm::u32(x[dm::lane() * 10 + 6 + i]));
  for (int i = 0; i < 2; i++) b[i] = x[dm::lane() * 10 + 4 + i];
  ` + call + `;
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 4 + i, dm::bits_as<dm::u32>(d[i]));`,
		fill: func(r *rand.Rand, i int) uint32 {
			if i%10 >= 6 {
				return math.Float32bits(float32(r.IntN(99) - 50))
			}
			return operand(r, i)
		}}
}

// sparseTwin is a warp's product of a matrix with two numbers of each four: two of its rows' fragments, whose metadata the lanes of a group
// share. 8 words of operands, one of metadata and 4 sums a lane.
func sparseTwin(elem string, half func(float64) uint16) twin {
	pairs := []uint32{0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110} // columns of a group that rise
	return twin{name: "mma.sp " + elem, threads: 32, x: 416, y: 256, body: fmt.Sprintf(`
  dm::u32 a[4], b[4];
  float d[4], f[4];
  for (int i = 0; i < 4; i++) a[i] = x[dm::lane() * 13 + i], b[i] = x[dm::lane() * 13 + 4 + i];
  for (int i = 0; i < 4; i++) d[i] = dm::bits_as<float>(dm::u32(x[dm::lane() * 13 + 8 + i])), f[i] = d[i];
  dm::mma_sp_m16n8k32<dm::%[1]s, 0>(d, a, b, x[dm::lane() * 13 + 12]);
  dm::mma_sp_m16n8k32<dm::%[1]s, 1>(f, a, b, x[dm::lane() * 13 + 12]);
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 8 + i, dm::bits_as<dm::u32>(d[i])), y.store(dm::lane() * 8 + 4 + i, dm::bits_as<dm::u32>(f[i]));`, elem),
		fill: func(r *rand.Rand, i int) (w uint32) {
			switch {
			case i%13 == 12:
				for k := range 8 {
					w |= pairs[r.IntN(len(pairs))] << (4 * k)
				}
				return w
			case i%13 >= 8:
				return math.Float32bits(float32(r.IntN(99) - 50))
			}
			return smallInts(half)(r, i)
		}}
}

// matrixTwin is one form of ldmatrix of n matrices.
func matrixTwin(name string, n int) twin {
	return twin{name: name, threads: 32, x: 128, y: 32 * n, fill: anyWord, body: fmt.Sprintf(`
  auto s = arena.take<dm::u16>(256);
  for (int i = 0; i < 4; i++) {
    const dm::u32 v = x[dm::lane() * 4 + i];
    s[dm::lane() * 8 + 2 * i] = dm::u16(v), s[dm::lane() * 8 + 2 * i + 1] = dm::u16(v >> 16);
  }
  dm::sync_warp();
  dm::u32 r[%d];
  dm::%s(r, s, (dm::lane() ^ 5) * 8);
  for (int i = 0; i < %d; i++) y.store(dm::lane() * %d + i, r[i]);`, n, name, n, n)}
}

// matrixOfFloatsTwin is ldmatrix of four matrices of 32-bit numbers.
func matrixOfFloatsTwin() twin {
	w := matrixTwin("ldmatrix_x4", 4)
	w.name = "ldmatrix_x4 of floats"
	w.body = `
  auto s = arena.take<float>(128);
  for (int i = 0; i < 4; i++) s[dm::lane() * 4 + i] = dm::bits_as<float>(dm::u32(x[dm::lane() * 4 + i]));
  dm::sync_warp();
  dm::u32 r[4];
  dm::ldmatrix_x4(r, s, (dm::lane() ^ 5) * 4);
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 4 + i, r[i]);`
	return w
}

// unary is a function of one or two floats for each thread.
func unary(name, call string, fill func(*rand.Rand, int) uint32, within float64) twin {
	return twin{name: name, threads: 128, x: 256, y: 128, fill: fill, within: within, body: `
  const float p = dm::bits_as<float>(dm::u32(x[dm::thread() * 2])), q = dm::bits_as<float>(dm::u32(x[dm::thread() * 2 + 1]));
  y.store(dm::thread(), ` + call + `);`}
}

// orderTwin is the integers of two numbers of 16 bits, ordered as these are, and that of the first one alone.
func orderTwin(elem string, negate bool) twin {
	special := []uint32{0, 0x8000, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7fc0, 0xffff, 0x0001, 0x8001}
	return twin{name: fmt.Sprintf("order_keys %s %t", elem, negate), threads: 128, x: 256, y: 384, body: fmt.Sprintf(`
  const dm::%[1]s p{dm::u16(x[dm::thread() * 2])}, q{dm::u16(x[dm::thread() * 2 + 1])};
  const auto keys = dm::order_keys<%[2]t>(p, q);
  y.store(dm::thread() * 3, dm::u32(keys[0]));
  y.store(dm::thread() * 3 + 1, dm::u32(keys[1]));
  y.store(dm::thread() * 3 + 2, dm::u32(dm::order_key<%[2]t>(p)));`, elem, negate),
		fill: func(r *rand.Rand, _ int) uint32 {
			if r.IntN(2) == 0 {
				return special[r.IntN(len(special))]
			}
			return r.Uint32() & 0xffff
		}}
}

// productTwin is wgmma of 64 x 16 by 16 x n, and a bulk copy of either operand.
func productTwin(elem string, n int, ta, tb bool) twin {
	half := toF16
	if elem == "bf16" {
		half = toBF16
	}
	m := func(rows int, across bool) artifact.TensorMap {
		return artifact.TensorMap{Elem: elem, Dims: []uint64{64, uint64(rows)}, Strides: []uint64{128}, Box: []uint32{64, uint32(rows)}, Swizzle: 128}
	}
	load := "dm::tile_load(bs, 0, b, full, 0, 0, 0);"
	b := m(n, tb)
	if tb { // panels of 64 columns with 64 lines of k each
		b = artifact.TensorMap{Elem: elem, Dims: []uint64{uint64(n), 64}, Strides: []uint64{uint64(2 * n)}, Box: []uint32{64, 64}, Swizzle: 128}
		load = fmt.Sprintf("for (int i = 0; i < %d; i += 64) dm::tile_load(bs, i * 64, b, full, 0, i, 0);", n)
	}
	return twin{name: fmt.Sprintf("product %s %d %t %t", elem, n, ta, tb), threads: 128, load: load, x: 32*64 + 32*n, y: 64 * n, fill: smallInts(half), maps: []artifact.TensorMap{m(64, ta), b},
		body: fmt.Sprintf(`
  auto as = arena.take_aligned<dm::%[1]s>(4096, 1024), bs = arena.take_aligned<dm::%[1]s>(64 * %[2]d, 1024);
  %[5]s
  float d[%[2]d / 2] = {};
  dm::products_settle(d);
  dm::products_begin();
  for (int k = 0; k < 64; k += 16)
    dm::product<dm::%[1]s, %[2]d, %[3]t, %[4]t>(d, dm::operand_at(as, %[3]t ? k * 64 : k, 8192, 1024), dm::operand_at(bs, %[4]t ? k * 64 : k, 8192, 1024));
  dm::products_commit();
  dm::products_wait<0>();
  dm::products_settle(d);
  for (int e = 0; e < %[2]d / 2; e++) y.store(dm::thread() * (%[2]d / 2) + e, dm::bits_as<dm::u32>(d[e]));`, elem, n, ta, tb, copied(8192+128*n, "dm::tile_load(as, 0, a, full, 0, 0, 0);", load))}
}

// copied waits for copies of so many bytes to shared memory.
func copied(bytes int, loads ...string) string {
	return fmt.Sprintf(`auto full = arena.take<dm::u64>(1);
  if (dm::thread() == 0) {
    dm::barrier_make(full, 0, 1);
    dm::barriers_ready();
  }
  dm::sync();
  if (dm::thread() == 0) {
    dm::barrier_expect(full, 0, %d);
    %s
  }
  dm::barrier_wait(full, 0, 0);`, bytes, strings.Join(loads, "\n    "))
}

// bytesTwin is wgmma of 64 x 64 by 64 x n of numbers of 8 bits, in two instructions, the first of which sets the sums.
func bytesTwin(a, b string, n int) twin {
	w := productTwin("f16", n, false, false)
	cpp := map[string]string{"f8E4M3FN": "f8e4", "f8E5M2": "f8e5"}
	w.name = fmt.Sprintf("product %s %s %d", a, b, n)
	for i, elem := range []string{a, b} {
		m := &w.maps[i]
		m.Elem, m.Dims, m.Box = elem, []uint64{128, m.Dims[1]}, []uint32{128, m.Box[1]}
	}
	w.fill = func(r *rand.Rand, _ int) uint32 { return r.Uint32() & 0x9b9b9b9b } // no NaN, and sums that are exact
	w.body = fmt.Sprintf(`
  auto as = arena.take_aligned<dm::%[1]s>(8192, 1024);
  auto bs = arena.take_aligned<dm::%[2]s>(128 * %[3]d, 1024);
  %[4]s
  float d[%[3]d / 2];
  for (int e = 0; e < %[3]d / 2; e++) d[e] = 3;
  dm::products_settle(d);
  dm::products_begin();
  dm::product_of_bytes<dm::%[1]s, dm::%[2]s, %[3]d, false>(d, dm::operand_at(as, 64, 16, 1024), dm::operand_at(bs, 64, 16, 1024));
  dm::product_of_bytes<dm::%[1]s, dm::%[2]s, %[3]d>(d, dm::operand_at(as, 0, 16, 1024), dm::operand_at(bs, 0, 16, 1024));
  dm::products_commit();
  dm::products_wait<0>();
  dm::products_settle(d);
  for (int e = 0; e < %[3]d / 2; e++) y.store(dm::thread() * (%[3]d / 2) + e, dm::bits_as<dm::u32>(d[e]));`, cpp[a], cpp[b], n, copied(8192+128*n, "dm::tile_load(as, 0, a, full, 0, 0, 0);", w.load))
	return w
}

// tf32Twin is wgmma of 64 x 32 by 32 x n of f32, which the copies round to TF32.
func tf32Twin(n int) twin {
	w := productTwin("f16", n, false, false)
	w.name = fmt.Sprintf("product tf32 %d", n)
	for i := range w.maps {
		w.maps[i].Elem, w.maps[i].Dims[0], w.maps[i].Box[0] = "tf32", 32, 32
	}
	w.fill = func(r *rand.Rand, _ int) uint32 { // small integers when they are rounded; else half of them are less
		return math.Float32bits(float32(1+r.IntN(8))) + r.Uint32()&0x1fff - 0xfff | r.Uint32()&(1<<31)
	}
	w.body = fmt.Sprintf(`
  auto as = arena.take_aligned<float>(2048, 1024), bs = arena.take_aligned<float>(32 * %[1]d, 1024);
  %[2]s
  float d[%[1]d / 2] = {};
  dm::products_settle(d);
  dm::products_begin();
  for (int k = 0; k < 32; k += 8) dm::product<float, %[1]d, false, false>(d, dm::operand_at(as, k, 16, 1024), dm::operand_at(bs, k, 16, 1024));
  dm::products_commit();
  dm::products_wait<0>();
  dm::products_settle(d);
  for (int e = 0; e < %[1]d / 2; e++) y.store(dm::thread() * (%[1]d / 2) + e, dm::bits_as<dm::u32>(d[e]));`, n, copied(8192+128*n, "dm::tile_load(as, 0, a, full, 0, 0, 0);", w.load))
	return w
}

// heldTwin is wgmma of a 64 x 32 matrix in registers by 32 x n, and of its first half alone in a second result.
func heldTwin(elem string, n int, tb bool) twin {
	half := toF16
	if elem == "bf16" {
		half = toBF16
	}
	w := productTwin(elem, n, false, tb)
	w.name = fmt.Sprintf("product_held %s %d %t", elem, n, tb)
	w.y, w.fill = 64*n, smallInts(half)
	w.body = fmt.Sprintf(`
  auto bs = arena.take_aligned<dm::%[1]s>(64 * %[2]d, 1024);
  %[4]s
  dm::u32 p[2][4];
  for (int i = 0; i < 8; i++) p[i / 4][i %% 4] = %[5]du * 0x10001 + (dm::u32(dm::thread()) %% (9 + i) | dm::u32(dm::thread()) %% (7 + i) << 16) * %[6]d;
  float d[%[2]d / 2] = {}, e[%[2]d / 2];
  for (int i = 0; i < %[2]d / 2; i++) e[i] = 3;
  dm::products_settle(d);
  dm::products_settle(e);
  dm::products_begin();
  for (int k = 0; k < 2; k++) dm::product_held<dm::%[1]s, %[2]d, %[3]t>(d, p[k], dm::operand_at(bs, %[3]t ? k * 1024 : k * 16, 8192, 1024));
  dm::product_held<dm::%[1]s, %[2]d, %[3]t, false>(e, p[1], dm::operand_at(bs, 0, 8192, 1024));
  dm::products_commit();
  dm::products_wait<0>();
  dm::products_settle(d);
  dm::products_settle(e);
  for (int i = 0; i < %[2]d / 2; i++) y.store(dm::thread() * (%[2]d / 2) + i, dm::bits_as<dm::u32>(d[i] + 64 * e[i]));`, elem, n, tb, copied(128*n, w.load), half(1), (half(1.5)-half(1))/4)
	return w
}

// boxTwin copies a box of a tensor of more dimensions.
func boxTwin(rank int) twin {
	m := artifact.TensorMap{Elem: "f16", Dims: []uint64{64, 3, 4, 2, 2}[:rank], Strides: []uint64{128, 384, 1536, 3072}[:rank-1], Box: []uint32{64, 2, 2, 1, 1}[:rank], Swizzle: 128}
	return twin{name: fmt.Sprintf("box of %d dimensions", rank), threads: 32, x: 32 * 48, y: 128, fill: anyWord, maps: []artifact.TensorMap{m, m}, body: fmt.Sprintf(`
  auto s = arena.take_aligned<dm::f16>(256, 1024);
  auto full = arena.take<dm::u64>(1);
  if (dm::thread() == 0) {
    dm::barrier_make(full, 0, 1);
    dm::barriers_ready();
    dm::barrier_expect(full, 0, 512);
    dm::map_prefetch(a);
    dm::tile_load(s, 0, a, full, 0, %s);
  }
  dm::sync();
  dm::barrier_wait(full, 0, 0);
  for (int i = 0; i < 4; i++) {
    const dm::f16 lo = s[dm::lane() * 8 + 2 * i], hi = s[dm::lane() * 8 + 2 * i + 1];
    y.store(dm::lane() * 4 + i, dm::u32(lo.bits) | dm::u32(hi.bits) << 16);
  }`, []string{"0, 1, 2", "0, 1, 2, 1", "0, 1, 2, 1, 0"}[rank-3])}
}

// multicastTwin copies a box to both blocks of a cluster, from each of them.
func multicastTwin(rank int) twin {
	w := boxTwin(max(rank, 3))
	m := w.maps[0]
	m.Dims, m.Strides, m.Box = m.Dims[:rank], m.Strides[:rank-1], m.Box[:rank]
	w.name, w.maps, w.cluster, w.y = fmt.Sprintf("multicast of %d dimensions", rank), []artifact.TensorMap{m, m}, 2, 512
	bytes := 512
	if rank == 2 {
		bytes, w.y = 256, 256
	}
	w.body = fmt.Sprintf(`
  auto s = arena.take_aligned<dm::u32>(512, 1024);
  auto full = arena.take<dm::u64>(2);
  const int rank = dm::cluster_rank();
  if (dm::thread() == 0) {
    dm::barrier_make(full, 0, 1), dm::barrier_make(full, 1, 2);
    dm::barriers_ready();
  }
  dm::cluster_sync();
  if (dm::thread() == 0) {
    dm::barrier_expect(full, 0, %[1]d);
    dm::tile_multicast(s, rank * 256, a, full, 0, 3, %[2]s);
  }
  dm::barrier_wait(full, 0, 0);
  for (int i = 0; i < %[3]d; i++) y.store(rank * %[4]d + dm::lane() * %[3]d + i, s[dm::lane() / 16 * 256 + dm::lane() %% 16 * %[3]d + i]);
  if (dm::lane() < 2) dm::barrier_leave(full, 1, dm::lane());
  dm::barrier_wait(full, 1, 0);`, 2*bytes, []string{"0, rank", "0, 1, rank", "0, 1, 2, rank", "0, 1, 2, rank, 1"}[rank-2], bytes/64, bytes/2)
	return w
}

// storeTwin stores boxes of 16 x 32 numbers, the last of which reaches beyond a tensor of two dimensions.
func storeTwin(rank int) twin {
	dims := []uint64{32, 16, 2, 2, 2}[:rank]
	boxes := 1 << (rank - 2)
	at := []string{"", "", "", "q % 2", "q % 2, q / 2 % 2", "q % 2, q / 2 % 2, q / 4"}[rank]
	if rank == 2 {
		dims, boxes, at = []uint64{32, 24}, 2, ""
	}
	m := &artifact.TensorMap{Elem: "f16", Dims: dims, Strides: []uint64{64, 1024, 2048, 4096}[:rank-1], Box: []uint32{32, 16, 1, 1, 1}[:rank], Swizzle: 64}
	y := 16
	for _, n := range dims[1:] {
		y *= int(n)
	}
	coordinates := "0, q * 16"
	if at != "" {
		coordinates = "0, 0, " + at
	}
	return twin{name: fmt.Sprintf("store of %d dimensions", rank), threads: 32, x: 256 * boxes, y: y, fill: anyWord, to: m, body: fmt.Sprintf(`
  auto s = arena.take_aligned<dm::u32>(256, 1024);
  for (int q = 0; q < %d; q++) {
    for (int i = 0; i < 8; i++) s[dm::lane() * 8 + i] = dm::u32(x[q * 256 + dm::lane() * 8 + i]);
    dm::writes_publish();
    dm::sync_warp();
    if (dm::lane() == 0) {
      dm::tile_store(y, s, 0, %s);
      dm::stores_commit();
      dm::stores_wait<0>();
    }
    dm::sync_warp();
  }`, boxes, coordinates)}
}

func copyTwin(bytes int) twin {
	n := bytes / 4
	return twin{name: fmt.Sprintf("cp_async %d", bytes), threads: 32, x: 32 * n, y: 32 * n, fill: anyWord, body: fmt.Sprintf(`
  auto s = arena.take<dm::u32>(%d);
  dm::cp_async<%d>(s, dm::lane() * %d, x, (dm::lane() ^ 1) * %d, dm::lane() %% 5 != 0);
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  dm::sync_warp();
  for (int i = 0; i < %d; i++) y.store(dm::lane() * %d + i, s[dm::lane() * %d + i]);`, 32*n, bytes, n, n, n, n, n)}
}

// relativeTwin copies 16 bytes relative to a place.
func relativeTwin(near bool) twin {
	return twin{name: fmt.Sprintf("cp_async from a place %t", near), threads: 32, x: 128, y: 128, fill: anyWord, body: fmt.Sprintf(`
  auto s = arena.take<dm::u32>(128);
  const dm::Source<dm::u32> from(x, 16 - dm::lane() * 4);
  dm::cp_async<16, %t>(s, dm::lane() * 4, from, dm::lane() * 8 - 16, dm::lane() %% 5 != 0);
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  dm::sync_warp();
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 4 + i, s[dm::lane() * 4 + i]);`, near)}
}

// publishedTwin is wgmma of operands that threads have copied: 64 x 64 by 64 x 64, the same one, along k.
func publishedTwin() twin {
	return twin{name: "writes_publish", threads: 128, x: 2048, y: 4096, fill: smallInts(toF16), body: `
  auto s = arena.take_aligned<dm::u32>(2048, 1024);
  const dm::Source<dm::u32> from(x, 0);
  for (int i = 0; i < 4; i++) {
    const int r = dm::thread() / 8 + i * 16, c = dm::thread() % 8;
    dm::cp_async<16, false>(s, r * 32 + (c ^ (r & 7)) * 4, from, r * 32 + c * 4, true);
  }
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  dm::writes_publish();
  dm::sync();
  float d[32] = {};
  dm::products_settle(d);
  dm::products_begin();
  for (int k = 0; k < 64; k += 16) dm::product<dm::f16, 64, false, false>(d, dm::operand_at(s, k / 2, 16, 1024), dm::operand_at(s, k / 2, 16, 1024));
  dm::products_commit();
  dm::products_wait<0>();
  dm::products_settle(d);
  for (int e = 0; e < 32; e++) y.store(dm::thread() * 32 + e, dm::bits_as<dm::u32>(d[e]));`}
}

var twins = []twin{
	mmaTwin("mma f16", "dm::mma_m16n8k16<dm::f16>(d, a, b)", smallInts(toF16)),
	mmaTwin("mma bf16", "dm::mma_m16n8k16<dm::bf16>(d, a, b)", smallInts(toBF16)),
	mmaTwin("mma tf32", "dm::mma_m16n8k8_tf32(d, a, b)", func(r *rand.Rand, _ int) uint32 {
		return math.Float32bits(float32(r.IntN(17)-8)) | r.Uint32()&0x1fff
	}),
	sparseTwin("f16", toF16), sparseTwin("bf16", toBF16),
	matrixTwin("ldmatrix_x4", 4), matrixTwin("ldmatrix_x4_trans", 4), matrixTwin("ldmatrix_x2", 2), matrixTwin("ldmatrix_x2_trans", 2),
	matrixOfFloatsTwin(),
	unary("round_tf32", "dm::round_tf32(dm::bits_as<dm::u32>(p))", withNaN, 0),
	orderTwin("f16", false), orderTwin("f16", true), orderTwin("bf16", false), orderTwin("bf16", true),
	unary("pack2 f16", "dm::pack2<dm::f16>(p, q)", anyFloat, 0),
	unary("pack2 bf16", "dm::pack2<dm::bf16>(p, q)", anyFloat, 0),
	unary("narrow f16", "dm::u32(dm::narrow<dm::f16>(p).bits)", anyFloat, 0),
	unary("narrow bf16", "dm::u32(dm::narrow<dm::bf16>(p).bits)", anyFloat, 0),
	unary("wide f16", "dm::bits_as<dm::u32>(dm::wide(dm::f16{dm::u16(dm::bits_as<dm::u32>(p))}))", anyWord, 0),
	unary("max", "dm::bits_as<dm::u32>(dm::max(p, q))", withNaN, 0),
	unary("min", "dm::bits_as<dm::u32>(dm::min(p, q))", withNaN, 0),
	unary("exp_coarse", "dm::bits_as<dm::u32>(dm::exp_coarse(p))", func(r *rand.Rand, _ int) uint32 {
		return math.Float32bits(float32(r.NormFloat64() * 10))
	}, 0x1p-19),
	unary("power_of_2", "dm::bits_as<dm::u32>(dm::detail::power_of_2(p))", func(r *rand.Rand, _ int) uint32 {
		return math.Float32bits(float32(r.NormFloat64() * 10))
	}, 0x1p-21),
	{name: "match_digit", threads: 64, x: 64, y: 64, fill: func(r *rand.Rand, _ int) uint32 { return r.Uint32() >> (24 + r.IntN(8)) }, body: `
  y.store(dm::thread(), dm::match_digit(dm::u32(x[dm::thread()])));`},
	{name: "store of 16 bytes", threads: 32, x: 128, y: 128, fill: anyWord, body: `
  dm::Vec<dm::u32, 4> v;
  for (int i = 0; i < 4; i++) v[i] = x[dm::lane() * 4 + i];
  y.store<4>(dm::lane() * 4, v);`},
	{name: "a wait for the kernels before", threads: 32, x: 32, y: 32, fill: anyWord, body: `
  dm::grid_dependency_wait();
  dm::launch_dependents();
  y.store(dm::thread(), x[dm::thread()]);
`},
	{name: "store of 8 bytes", threads: 32, x: 64, y: 64, fill: anyWord, body: `
  dm::Vec<dm::u32, 2> v;
  for (int i = 0; i < 2; i++) v[i] = x[dm::lane() * 2 + i];
  y.store<2>(dm::lane() * 2, v);`},
	{name: "loads of vectors", threads: 32, x: 256, y: 224, fill: anyWord, body: `
  const dm::Vec<dm::u32, 4> v = x.load<4>(dm::lane() * 4);
  const dm::Vec<dm::u32, 2> w = x.load<2>(128 + dm::lane() * 2);
  const dm::Vec<dm::u32, 1> u = x.load<1>(192 + dm::lane());
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 4 + i, v[i]);
  for (int i = 0; i < 2; i++) y.store(128 + dm::lane() * 2 + i, w[i]);
  y.store(192 + dm::lane(), u[0]);`},
	{name: "load_once", threads: 32, x: 128, y: 128, fill: anyWord, body: `
  const dm::Vec<dm::u32, 4> v = x.load_once<4>(dm::lane() * 4);
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 4 + i, v[i]);`},
	{name: "cluster", threads: 64, cluster: 2, x: 128, y: 1536, fill: anyWord, body: `
  auto s = arena.take<dm::u32>(64);
  auto w = arena.take<dm::u64>(64), told = arena.take<dm::u64>(1);
  if (dm::thread() == 0) {
    dm::barrier_make(told, 0, 1);
    dm::barriers_ready();
  }
  dm::cluster_begin();
  dm::cluster_wait();
  const dm::i32 i = dm::block() * 64 + dm::thread(), other = 1 - dm::cluster_rank();
  const auto narrow = dm::peer(s, other);
  const auto wide = dm::peer(w, other);
  narrow.store(dm::thread(), x[i]);
  wide.store(dm::thread(), dm::u64(x[i]) << 32 | x[i ^ 1]);
  dm::cluster_sync();
  const dm::u32 mine = s[dm::thread()];
  const dm::u64 both = w[dm::thread()];
  y.store(12 * i, mine);
  y.store(12 * i + 1, dm::u32(both >> 32) ^ dm::u32(both) << 1);
  y.store(12 * i + 2, narrow.load(dm::thread()));
  y.store(12 * i + 3, dm::u32(wide.load(dm::thread())));
  const dm::Vec<dm::u32, 2> two = narrow.load<2>(dm::thread() & ~1);
  const dm::Vec<dm::u32, 4> four = narrow.load<4>(dm::thread() & ~3);
  const dm::Vec<dm::u64, 2> twice = wide.load<2>(dm::thread() & ~1);
  for (int k = 0; k < 2; k++) y.store(12 * i + 4 + k, two[k]);
  for (int k = 0; k < 4; k++) y.store(12 * i + 6 + k, four[k]);
  for (int k = 0; k < 2; k++) y.store(12 * i + 10 + k, dm::u32(twice[k] >> 32));
  if (dm::thread() == 5) dm::barrier_arrive(told, 0, other);
  dm::barrier_wait_peers(told, 0, 0);
  dm::cluster_sync();`},
	{name: "add_in_turn", threads: 32, x: 256, y: 128, fill: anyFloat, body: `
#ifdef DM_HOST
  const dm::InOut<float> sums(y.param);
#else
  const dm::InOut<float> sums{reinterpret_cast<float*>(y.p)};
#endif
  dm::Vec<float, 4> v;
  for (int i = 0; i < 4; i++) {
    y.store(dm::lane() * 4 + i, x[dm::lane() * 8 + i]);
    v[i] = dm::bits_as<float>(dm::u32(x[dm::lane() * 8 + 4 + i]));
  }
  dm::add_in_turn(sums, dm::lane() * 4, v);`},
	{name: "flags", threads: 64, x: 64, y: 68, fill: anyWord, body: `
#ifdef DM_HOST
  const dm::InOut<dm::u32> flags(y.param);
#else
  const dm::InOut<dm::u32> flags{y.p};
#endif
  if (dm::thread() < 4) y.store(64 + dm::thread(), 0);
  y.store(dm::thread(), x[dm::thread()]);
  dm::sync();
  if (dm::warp() == 0) dm::post(flags, 65);
  dm::sync();
  dm::await(flags, 65);`},
	{name: "keep_packed", threads: 32, x: 224, y: 224, fill: anyWord, body: `
  dm::Vec<dm::u32, 4> v;
  for (int i = 0; i < 4; i++) v[i] = x[dm::lane() * 7 + i];
  dm::Vec<dm::u32, 2> w;
  for (int i = 0; i < 2; i++) w[i] = x[dm::lane() * 7 + 4 + i];
  dm::u32 u = x[dm::lane() * 7 + 6];
  dm::keep_packed(v), dm::keep_packed(w), dm::keep_packed(u);
  for (int i = 0; i < 4; i++) y.store(dm::lane() * 7 + i, v[i]);
  for (int i = 0; i < 2; i++) y.store(dm::lane() * 7 + 4 + i, w[i]);
  y.store(dm::lane() * 7 + 6, u);`},
	copyTwin(4), copyTwin(8), copyTwin(16), relativeTwin(false), relativeTwin(true), publishedTwin(),
	boxTwin(3), boxTwin(4), boxTwin(5), multicastTwin(2), multicastTwin(3), multicastTwin(4), multicastTwin(5), storeTwin(2), storeTwin(3), storeTwin(4), storeTwin(5),
	productTwin("f16", 64, false, false), productTwin("f16", 64, true, true), productTwin("f16", 128, false, true), productTwin("f16", 256, false, false),
	productTwin("bf16", 64, true, false), productTwin("bf16", 128, false, false), productTwin("bf16", 256, true, true),
	productTwin("f16", 192, false, false), bytesTwin("f8E4M3FN", "f8E4M3FN", 128), bytesTwin("f8E4M3FN", "f8E5M2", 64), bytesTwin("f8E5M2", "f8E4M3FN", 128), bytesTwin("f8E5M2", "f8E5M2", 64),
	tf32Twin(64), tf32Twin(256),
	heldTwin("f16", 64, true), heldTwin("bf16", 128, true), heldTwin("f16", 16, false), heldTwin("bf16", 192, true),
}
