// Hopper's own instructions (sm_90a): barriers in shared memory that count bytes,
// bulk copies of tiles by tensor maps, and products of a whole warpgroup (four
// warps, the first a multiple of four) with operands in shared memory.
#pragma once

#ifdef DM_HOST
#include "emu_hopper.cuh"
#else

#include "cluster.cuh"

namespace dm {

// A barrier is a u64 in shared memory. Its phase ends when `count` threads have
// arrived and the expected bytes have arrived; phases are numbered 0, 1,
// 0, … One thread initialises the barriers and then calls barriers_ready; the block
// synchronises before others use them.
DM_FN void barrier_make(Shared<u64> b, i32 i, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(b.p + i)), "r"(count) : "memory");
}
DM_FN void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine counts bytes at them
}

// Makes what this thread has written to shared memory visible to the asynchronous proxy, through which products and bulk copies
// access it: of copies that it has started, what it has waited for.
DM_FN void writes_publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Arrives, and makes the phase wait for `bytes` more bytes.
DM_FN void barrier_expect(Shared<u64> b, i32 i, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(b.p + i)), "r"(bytes) : "memory");
}
DM_FN void barrier_arrive(Shared<u64> b, i32 i) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_address(b.p + i)) : "memory");
}
// Arrives at the barrier of block `rank` of the cluster, after the thread's accesses to any
// shared memory before.
DM_FN void barrier_arrive(Shared<u64> b, i32 i, i32 rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(detail::peer_address(detail::shared_address(b.p + i), rank)) : "memory");
}
// The same after what the thread has read, which may be replaced then: it makes no writes visible to the other block, for which it
// would wait until they have reached the level-2 cache.
DM_FN void barrier_leave(Shared<u64> b, i32 i, i32 rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(detail::peer_address(detail::shared_address(b.p + i), rank)) : "memory");
}
// Waits until the phase of that number has ended. A new barrier counts as one
// whose phase 1 has ended.
DM_FN void barrier_wait(Shared<u64> b, i32 i, u32 phase) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(detail::shared_address(b.p + i)), "r"(phase) : "memory");
}

// The same where threads of other blocks of the cluster have arrived, to see what they have written to global memory.
DM_FN void barrier_wait_peers(Shared<u64> b, i32 i, u32 phase) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(detail::shared_address(b.p + i)), "r"(phase) : "memory");
}

// Adds v to four numbers, which others add to behind a wait for this thread or before one of this thread: so sums do not
// depend on how threads run. Subnormal numbers are zeros.
DM_FN void add_in_turn(const InOut<float>& to, i64 i, Vec<float, 4> v) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to.p + i), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}

// Reads a kernel's tensor map ahead of the first copy by it. One thread calls it, before grid_dependency_wait: no kernel writes maps.
DM_FN void map_prefetch(const Map& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

// Copies the box of a tensor map at the given coordinates, innermost first, to to[at]
// on, in the map's swizzled order, zeros where it lies outside
// the tensor; its bytes count at barrier b[i]. One thread calls it.
template <class T> DM_FN void tile_load(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, i32 c0, i32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "r"(c0), "r"(c1) : "memory");
}
template <class T> DM_FN void tile_load(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
template <class T> DM_FN void tile_load(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
template <class T> DM_FN void tile_load(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}

// The same to the memory of each block of the cluster whose bit mask has: to the same place, and its bytes count at that block's
// barrier at the same place.
template <class T> DM_FN void tile_multicast(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, u16 mask, i32 c0, i32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "h"(mask), "r"(c0), "r"(c1) : "memory");
}
template <class T> DM_FN void tile_multicast(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, u16 mask, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "h"(mask), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
template <class T> DM_FN void tile_multicast(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, u16 mask, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "h"(mask), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
template <class T> DM_FN void tile_multicast(Shared<T> to, i32 at, const Map& map, Shared<u64> b, i32 i, u16 mask, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(
                   detail::shared_address(to.p + at)), "l"(&map), "r"(detail::shared_address(b.p + i)), "h"(mask), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}

// Copies from[at] on, in the map's swizzled order, to the box of a tensor map at the given coordinates, but for what lies outside
// the tensor. One thread calls it, behind writes_publish in the threads that have written the box and a barrier of theirs. The box is read until
// a wait for its group.
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i32 at, i32 c0, i32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(
                   detail::shared_address(from.p + at)), "r"(c0), "r"(c1) : "memory");
}
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i32 at, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map), "r"(
                   detail::shared_address(from.p + at)), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i32 at, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map), "r"(
                   detail::shared_address(from.p + at)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i32 at, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map), "r"(
                   detail::shared_address(from.p + at)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// Closes the group of the calling thread's stores since the last one.
DM_FN void stores_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most N groups of the calling thread's stores still read shared memory.
template <int N> DM_FN void stores_wait() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }

// Registers of a thread of the calling warpgroup from here on, a multiple of 8:
// one warpgroup frees what others take. The kernel sets how many blocks share a
// multiprocessor (DM_KERNEL_OCCUPANCY).
template <int N> DM_FN void registers_drop() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DM_FN void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// The descriptor of an operand in shared memory that a map with 128-byte swizzle has
// filled: from s[at] on, whose 1024-byte pattern begins at a multiple
// of 1024. `lead` is the bytes from 64 columns to the next 64 of an operand that
// is contiguous along m or n, `stride` those from eight lines of 128 bytes to the
// next eight. (PTX ISA, matrix descriptor format.)
template <class T> DM_FN u64 operand_at(Shared<T> s, i32 at, u32 lead, u32 stride) {
  const u64 address = detail::shared_address(s.p + at);
  return (address & 0x3ffff) >> 4 | u64((lead & 0x3ffff) >> 4) << 16 | u64((stride & 0x3ffff) >> 4) << 32 | u64(1) << 62;
}

// The descriptor of an operand that lies so many bytes behind, a multiple of 16.
DM_FN u64 operand_behind(u64 descriptor, u32 bytes) { return (descriptor & ~u64(0xffffffff)) | (u32(descriptor) + (bytes >> 4)); }

// Before the first product, and after registers that products use were written.
DM_FN void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Closes the group of the products since the last one.
DM_FN void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N groups of products are pending.
template <int N> DM_FN void products_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// Tells the compiler that the sums may change up to here, so that it moves no use
// of them before a wait.
template <int R> DM_FN void products_settle(float (&d)[R]) {
  DM_UNROLL for (int i = 0; i < R; i++) asm volatile("" : "+f"(d[i])::"memory");
}

namespace detail {
template <class T> struct ProductElem;
template <> struct ProductElem<float> { static constexpr bool tf32 = true, half = false; };
template <> struct ProductElem<f16> { static constexpr bool tf32 = false, half = true; };
template <> struct ProductElem<bf16> { static constexpr bool tf32 = false, half = false; };
template <> struct ProductElem<f8e4> { static constexpr bool four = true; }; // bits of the exponent
template <> struct ProductElem<f8e5> { static constexpr bool four = false; };
}  // namespace detail

// The first N / 2 sums d, as operands of an instruction and as their constraints.
#define DM_SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define DM_SUMS_32 DM_SUMS_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define DM_SUMS_48 DM_SUMS_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define DM_SUMS_64 DM_SUMS_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define DM_SUMS_80 DM_SUMS_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define DM_SUMS_96 DM_SUMS_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define DM_SUMS_112 DM_SUMS_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define DM_SUMS_128 DM_SUMS_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define DM_SUMS_144 DM_SUMS_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define DM_SUMS_160 DM_SUMS_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define DM_SUMS_176 DM_SUMS_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define DM_SUMS_192 DM_SUMS_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define DM_SUMS_208 DM_SUMS_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define DM_SUMS_224 DM_SUMS_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define DM_SUMS_240 DM_SUMS_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define DM_SUMS_256 DM_SUMS_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define DM_HELD_16 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define DM_HELD_32 DM_HELD_16, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define DM_HELD_48 DM_HELD_32, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define DM_HELD_64 DM_HELD_48, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define DM_HELD_80 DM_HELD_64, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define DM_HELD_96 DM_HELD_80, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define DM_HELD_112 DM_HELD_96, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define DM_HELD_128 DM_HELD_112, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define DM_HELD_144 DM_HELD_128, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define DM_HELD_160 DM_HELD_144, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define DM_HELD_176 DM_HELD_160, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define DM_HELD_192 DM_HELD_176, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define DM_HELD_208 DM_HELD_192, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define DM_HELD_224 DM_HELD_208, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define DM_HELD_240 DM_HELD_224, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define DM_HELD_256 DM_HELD_240, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
// F of each number of columns, and of the numbers of the seven operands behind the sums.
#define DM_WIDTHS(F) \
  F(16, 8, 9, 10, 11, 12, 13, 14) \
  F(32, 16, 17, 18, 19, 20, 21, 22) \
  F(48, 24, 25, 26, 27, 28, 29, 30) \
  F(64, 32, 33, 34, 35, 36, 37, 38) \
  F(80, 40, 41, 42, 43, 44, 45, 46) \
  F(96, 48, 49, 50, 51, 52, 53, 54) \
  F(112, 56, 57, 58, 59, 60, 61, 62) \
  F(128, 64, 65, 66, 67, 68, 69, 70) \
  F(144, 72, 73, 74, 75, 76, 77, 78) \
  F(160, 80, 81, 82, 83, 84, 85, 86) \
  F(176, 88, 89, 90, 91, 92, 93, 94) \
  F(192, 96, 97, 98, 99, 100, 101, 102) \
  F(208, 104, 105, 106, 107, 108, 109, 110) \
  F(224, 112, 113, 114, 115, 116, 117, 118) \
  F(240, 120, 121, 122, 123, 124, 125, 126) \
  F(256, 128, 129, 130, 131, 132, 133, 134)

// A and B in shared memory; A in registers.
#define DM_WGMMA(TYPE, COLS, A, B, ADD, TURN_A, TURN_B) \
  asm volatile( \
      "wgmma.mma_async.sync.aligned.m64n" #COLS "k16.f32." TYPE "." TYPE " {" DM_SUMS_##COLS "}, %" #A ", %" #B ", %" #ADD ", 1, 1, %" #TURN_A ", %" #TURN_B ";" \
      : DM_HELD_##COLS \
      : "l"(a), "l"(b), "n"(int(Add)), "n"(int(TA)), "n"(int(TB)))
#define DM_WGMMA_HELD(TYPE, COLS, A0, A1, A2, A3, B, ADD, TURN_B) \
  asm volatile( \
      "wgmma.mma_async.sync.aligned.m64n" #COLS "k16.f32." TYPE "." TYPE " {" DM_SUMS_##COLS "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", %" #ADD ", 1, 1, %" #TURN_B ";" \
      : DM_HELD_##COLS \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(Add)), "n"(int(TB)))

// Numbers of 8 bits and TF32, whose operands are contiguous along k.
#define DM_WGMMA_LINES(TYPE_A, TYPE_B, COLS, DEPTH, A, B, ADD) \
  asm volatile( \
      "wgmma.mma_async.sync.aligned.m64n" #COLS "k" #DEPTH ".f32." TYPE_A "." TYPE_B " {" DM_SUMS_##COLS "}, %" #A ", %" #B ", %" #ADD ", 1, 1;" \
      : DM_HELD_##COLS \
      : "l"(a), "l"(b), "n"(int(Add)))

// D += A·B, 64 × N by 16 of k, of a warpgroup, or without Add D = A·B: T is f16 or
// bf16, or float for TF32, 8 of k, whose low 13 bits are ignored; N a multiple of 16 up to 256; TA and TB are whether A and B are contiguous along
// m and n. Lane l of warp w holds at d[4j + 2h + c] row 16w + l/4 + 8h, column
// 8j + 2(l%4) + c. A and B are read, and D is written, at any time until the group is
// waited for.
template <class T, int N, bool TA, bool TB, bool Add = true> DM_FN void product(float (&d)[N / 2], u64 a, u64 b) {
  static_assert(N % 16 == 0 && N >= 16 && N <= 256, "16 to 256 columns, a multiple of 16");
  static_assert(sizeof(T) == 2 || (!TA && !TB), "TF32 is contiguous along k");
#define DM_PRODUCT(COLS, R0, R1, R2, R3, R4, R5, R6) \
  if constexpr (N == COLS) { \
    if constexpr (detail::ProductElem<T>::tf32) DM_WGMMA_LINES("tf32", "tf32", COLS, 8, R0, R1, R2); \
    else if constexpr (detail::ProductElem<T>::half) DM_WGMMA("f16", COLS, R0, R1, R2, R3, R4); else DM_WGMMA("bf16", COLS, R0, R1, R2, R3, R4); \
  }
  DM_WIDTHS(DM_PRODUCT)
#undef DM_PRODUCT
}
// The same with A in registers, two numbers in each: lane l of warp w holds at a[2j + h]
// row 16w + l/4 + 8h, of k 8j + 2(l%4) on. The sums of a product are in this order,
// too. The registers are read until the group is waited for.
template <class T, int N, bool TB, bool Add = true> DM_FN void product_held(float (&d)[N / 2], const u32 (&a)[4], u64 b) {
  static_assert(N % 16 == 0 && N >= 16 && N <= 256, "16 to 256 columns, a multiple of 16");
#define DM_PRODUCT(COLS, R0, R1, R2, R3, R4, R5, R6) \
  if constexpr (N == COLS) { \
    if constexpr (detail::ProductElem<T>::half) DM_WGMMA_HELD("f16", COLS, R0, R1, R2, R3, R4, R5, R6); else DM_WGMMA_HELD("bf16", COLS, R0, R1, R2, R3, R4, R5, R6); \
  }
  DM_WIDTHS(DM_PRODUCT)
#undef DM_PRODUCT
}

// D += A·B, 64 × N by 32 of k, of f8e4 or f8e5 numbers in any pair. The tensor cores keep 13 bits behind the point of the largest summand
// (DeepSeek-V3 Technical Report, 3.3.2): long sums are added up in other registers, in parts.
template <class T, class U, int N, bool Add = true> DM_FN void product_of_bytes(float (&d)[N / 2], u64 a, u64 b) {
  static_assert(N % 16 == 0 && N >= 16 && N <= 256, "16 to 256 columns, a multiple of 16");
  constexpr bool left = detail::ProductElem<T>::four, right = detail::ProductElem<U>::four;
#define DM_PRODUCT(COLS, R0, R1, R2, R3, R4, R5, R6) \
  if constexpr (N == COLS) { \
    if constexpr (left && right) DM_WGMMA_LINES("e4m3", "e4m3", COLS, 32, R0, R1, R2); \
    else if constexpr (left) DM_WGMMA_LINES("e4m3", "e5m2", COLS, 32, R0, R1, R2); \
    else if constexpr (right) DM_WGMMA_LINES("e5m2", "e4m3", COLS, 32, R0, R1, R2); \
    else DM_WGMMA_LINES("e5m2", "e5m2", COLS, 32, R0, R1, R2); \
  }
  DM_WIDTHS(DM_PRODUCT)
#undef DM_PRODUCT
}

#undef DM_WGMMA
#undef DM_WGMMA_HELD
#undef DM_WGMMA_LINES
#undef DM_WIDTHS

}  // namespace dm

#endif
