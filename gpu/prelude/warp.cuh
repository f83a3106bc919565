// Threads, barriers, exchange within a warp, and reductions over warps and
// blocks. Blocks are one-dimensional and whole warps.
#pragma once

namespace dm {

#ifndef DM_HOST

DM_FN i32 thread() { return i32(threadIdx.x); }
DM_FN i32 threads() { return i32(blockDim.x); }
DM_FN i32 block() { return i32(blockIdx.x); }
DM_FN i32 block_y() { return i32(blockIdx.y); }
DM_FN i32 block_z() { return i32(blockIdx.z); }
DM_FN i32 blocks() { return i32(gridDim.x); }
DM_FN i32 blocks_y() { return i32(gridDim.y); }
DM_FN i32 blocks_z() { return i32(gridDim.z); }
DM_FN i32 lane() { return i32(threadIdx.x & 31); }
DM_FN i32 warp() { return i32(threadIdx.x >> 5); }

// A barrier of all threads of the block, with visibility of their writes.
DM_FN void sync() { __syncthreads(); }
// The same for the threads of the warp.
DM_FN void sync_warp() { __syncwarp(); }
// The same for `count` threads of the block, whole warps, that name barrier
// `id`, 1 to 15.
DM_FN void sync_named(i32 id, i32 count) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }

namespace detail {
template <class T, class F> DM_FN T by_words(T v, F f) {
  if constexpr (sizeof(T) == 4) {
    return bits_as<T>(f(bits_as<u32>(v)));
  } else if constexpr (sizeof(T) == 2) {
    return bits_as<T>(u16(f(u32(bits_as<u16>(v)))));
  } else if constexpr (sizeof(T) == 1) {
    return bits_as<T>(u8(f(u32(bits_as<u8>(v)))));
  } else {
    static_assert(sizeof(T) == 8, "no exchange of this type");
    u64 x = bits_as<u64>(v);
    u32 lo = f(u32(x)), hi = f(u32(x >> 32));
    return bits_as<T>(u64(hi) << 32 | lo);
  }
}
}  // namespace detail

// v of the given lane; of the lane whose number differs in the bits of mask; of
// the lane n further (its own where there is none). All lanes of the warp call
// them together.
template <class T> DM_FN T shuffle(T v, i32 lane) {
  return detail::by_words(v, [=](u32 x) { return __shfl_sync(0xffffffffu, x, lane); });
}
template <class T> DM_FN T shuffle_xor(T v, i32 mask) {
  return detail::by_words(v, [=](u32 x) { return __shfl_xor_sync(0xffffffffu, x, mask); });
}
template <class T> DM_FN T shuffle_down(T v, i32 n) {
  return detail::by_words(v, [=](u32 x) { return __shfl_down_sync(0xffffffffu, x, n); });
}
// The lanes whose p is true, as bits.
DM_FN u32 ballot(bool p) { return __ballot_sync(0xffffffffu, p); }
// The lanes with the same v, as bits.
DM_FN u32 match(i32 v) { return __match_any_sync(0xffffffffu, v); }
DM_FN i32 popcount(u32 bits) { return __popc(bits); }

// Whether this is the last of `blocks` blocks to call this, in every thread: that
// block sees, through InOut parameters, what the others have written. counter[i] is
// 0 before and after.
DM_FN bool last_block(InOut<u32> counter, i64 i, u32 blocks) {
  __threadfence();
  __syncthreads();
  bool last = thread() == 0 && atomicInc(counter.p + i, blocks - 1) == blocks - 1;
  last = __syncthreads_or(last);
  __threadfence();
  return last;
}

// Flags by which the warps of a block wait for those of blocks with lower numbers, which start before: flag i is 0 until a warp posts it, and
// then, through InOut parameters, a warp that awaits it sees what the other one has written or seen. All lanes call them together.
DM_FN void post(InOut<u32> flags, i64 i) {
  __syncwarp();
  if (lane() == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags.p + i), "r"(1) : "memory");
}
DM_FN void await(InOut<u32> flags, i64 i) {
  if (lane() == 0) {
    u32 posted;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(posted) : "l"(flags.p + i) : "memory");
    while (posted == 0);
  }
  __syncwarp();
}

#endif

namespace detail {
// With fills, a lane without a value contributes `empty`; where values may count
// twice, it contributes that of another lane.
struct Sum {
  static constexpr bool fills = true;
  static constexpr int empty = 0;
  template <class T> DM_FN static T of(T x, T y) { return x + y; }
};
struct Product {
  static constexpr bool fills = true;
  static constexpr int empty = 1;
  template <class T> DM_FN static T of(T x, T y) { return x * y; }
};
struct Max {
  static constexpr bool fills = false;
  static constexpr int empty = 0;
  template <class T> DM_FN static T of(T x, T y) { return max(x, y); }
};
struct Min {
  static constexpr bool fills = false;
  static constexpr int empty = 0;
  template <class T> DM_FN static T of(T x, T y) { return min(x, y); }
};

// A butterfly: every lane ends with the same value, combined in the same order.
template <class F, class T> DM_FN T warp_reduce(T v DM_LINE) {
#ifdef DM_HOST
  return emu::warp_reduce<F>(v, at);
#else
  DM_UNROLL for (int m = 16; m > 0; m >>= 1) v = F::of(v, shuffle_xor(v, m));
  return v;
#endif
}

template <class F, class T> DM_FN T block_reduce(T v, Shared<T> scratch DM_LINE) {
  v = warp_reduce<F>(v DM_HERE);
  if (threads() <= 32) return v;
  if (lane() == 0) scratch[DM_IDX(warp())] = v;
  sync(DM_HERE_ONLY);
  i32 warps = threads() / 32;
  T mine = scratch[DM_IDX(lane() < warps ? lane() : 0)];
  if (F::fills && lane() >= warps) mine = T(F::empty);
  mine = warp_reduce<F>(mine DM_HERE);
  sync(DM_HERE_ONLY);  // the scratch may be used again
  return mine;
}
}  // namespace detail

// The sum, the product, the greatest and the least of v over the warp, in every lane.
template <class T> DM_FN T warp_sum(T v DM_LINE) { return detail::warp_reduce<detail::Sum>(v DM_HERE); }
template <class T> DM_FN T warp_product(T v DM_LINE) { return detail::warp_reduce<detail::Product>(v DM_HERE); }
template <class T> DM_FN T warp_max(T v DM_LINE) { return detail::warp_reduce<detail::Max>(v DM_HERE); }
template <class T> DM_FN T warp_min(T v DM_LINE) { return detail::warp_reduce<detail::Min>(v DM_HERE); }

// The same over the block, in every thread; scratch has an element for each warp
// (32 are always enough) and is free again afterwards.
template <class T> DM_FN T block_sum(T v, Shared<T> scratch DM_LINE) { return detail::block_reduce<detail::Sum>(v, scratch DM_HERE); }
template <class T> DM_FN T block_product(T v, Shared<T> scratch DM_LINE) { return detail::block_reduce<detail::Product>(v, scratch DM_HERE); }
template <class T> DM_FN T block_max(T v, Shared<T> scratch DM_LINE) { return detail::block_reduce<detail::Max>(v, scratch DM_HERE); }
template <class T> DM_FN T block_min(T v, Shared<T> scratch DM_LINE) { return detail::block_reduce<detail::Min>(v, scratch DM_HERE); }

}  // namespace dm
