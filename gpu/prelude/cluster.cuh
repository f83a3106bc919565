// Clusters of blocks that run together and reach each other's shared memory
// (sm_90 up). A kernel in clusters is declared with DM_KERNEL_CLUSTER; its clusters lie
// along the first dimension of the grid.
//
// A block accesses the memory of another one only behind a barrier of the cluster, before
// which that block has begun, and no block ends before what waits for such accesses. So
// a kernel begins with cluster_begin, and does not end before the cluster_wait that comes
// behind the last access.
#pragma once

#ifdef DM_HOST
#include "emu_cluster.cuh"
#else

namespace dm {

// Makes the compiler forget what it has computed from v, such as wider elements, which it
// would keep in registers beside v until they are used again.
template <class T> DM_FN void keep_packed(T& v) {
  if constexpr (sizeof(T) == 16) {
    uint4 r = bits_as<uint4>(v);
    asm volatile("" : "+r"(r.x), "+r"(r.y), "+r"(r.z), "+r"(r.w));
    v = bits_as<T>(r);
  } else if constexpr (sizeof(T) == 8) {
    u64 r = bits_as<u64>(v);
    asm volatile("" : "+l"(r));
    v = bits_as<T>(r);
  } else if constexpr (sizeof(T) == 4) {
    u32 r = bits_as<u32>(v);
    asm volatile("" : "+r"(r));
    v = bits_as<T>(r);
  }
}

// The number of the block in its cluster.
DM_FN i32 cluster_rank() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return i32(r);
}

// The barrier of all threads of the cluster's blocks, in two halves: what a thread has
// written to any shared memory before it arrives is seen by all behind their wait. All
// threads of a warp call them together, and in turns. cluster_begin arrives without what was
// written, and so waits for no memory.
DM_FN void cluster_begin() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DM_FN void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DM_FN void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DM_FN void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

namespace detail {
// The address of byte `at` of the own shared memory in the memory of block `rank`.
DM_FN u32 peer_address(u32 at, i32 rank) {
  u32 to;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at), "r"(rank));
  return to;
}
}  // namespace detail

// An array in the shared memory of a block of the cluster, of elements of four or eight bytes.
template <class T> struct Remote {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "elements of four or eight bytes");
  u32 at;
  DM_FN T load(i32 i) const {
    const u32 from = at + u32(i) * u32(sizeof(T));
    if constexpr (sizeof(T) == 4) {
      u32 v;
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
      return bits_as<T>(v);
    } else {
      u64 v;
      asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(v) : "r"(from) : "memory");
      return bits_as<T>(v);
    }
  }
  // N elements of up to 16 bytes, from a multiple of N on.
  template <int N> DM_FN Vec<T, N> load(i32 i) const {
    if constexpr (N * sizeof(T) == 16) {
      uint4 r;
      asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at + u32(i) * u32(sizeof(T))) : "memory");
      return bits_as<Vec<T, N>>(r);
    } else if constexpr (N * sizeof(T) == 8 && N > 1) {
      uint2 r;
      asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];" : "=r"(r.x), "=r"(r.y) : "r"(at + u32(i) * u32(sizeof(T))) : "memory");
      return bits_as<Vec<T, N>>(r);
    } else {
      static_assert(N == 1, "vectors of 8 or 16 bytes");
      return Vec<T, 1>{load(i)};
    }
  }
  DM_FN void store(i32 i, T v) const {
    const u32 to = at + u32(i) * u32(sizeof(T));
    if constexpr (sizeof(T) == 4) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(bits_as<u32>(v)) : "memory");
    else asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(to), "l"(bits_as<u64>(v)) : "memory");
  }
};

// The array s of block `rank`, which has taken it at the same place.
template <class T> DM_FN Remote<T> peer(Shared<T> s, i32 rank) { return Remote<T>{detail::peer_address(detail::shared_address(s.p), rank)}; }

}  // namespace dm

#endif
