// The prelude of every kernel that dmir generates: element types, checked
// memory, math, warp and block operations, asynchronous copies, tensor cores and
// random numbers, in namespace dm. It includes no header of the toolkit: what
// is not built into the compiler is inline PTX.
//
// For a host C++20 compiler (see emu.cuh) the same names are an emulation:
// threads of a block are fibers, and every access is checked. For both to agree:
//
//   - An element of shared memory is read into a variable of its type, `float v =
//     s[i];`, never into an `auto`; where a template takes it, `float(s[i])`.
//   - A parameter whose bytes the launch writes is never an In, whose loads use the
//     non-coherent cache.
//   - All threads of a block reach the same sync() on the same line, and all lanes
//     of a warp the same shuffle, reduction, ldmatrix or mma; none has returned.
//   - Blocks do not wait for each other, but by last_block, for those with lower numbers by
//     await and, in a cluster, by its barrier and those in shared memory.
#pragma once

#ifdef DM_HOST
#include "emu.cuh"
#else
#define DM_FN __device__ __forceinline__
#define DM_LINE          // a last parameter with the line of the call; on the host alone
#define DM_LINE_ONLY     // the same as the only parameter
#define DM_HERE          // passes it on
#define DM_HERE_ONLY
#define DM_IDX(i) (i)    // an index that passes it on
#define DM_KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name
#define DM_KERNEL_OCCUPANCY(name, threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks) name
#define DM_KERNEL_CLUSTER(name, threads, blocks, cluster) \
  extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads, blocks) name
#define DM_UNROLL _Pragma("unroll")
#define DM_NO_UNROLL _Pragma("unroll 1")
#define DM_PRAGMA(x) _Pragma(#x)
#define DM_UNROLL_BY(n) DM_PRAGMA(unroll n)
#endif

#include "types.cuh"
#include "math.cuh"
#ifdef DM_HOST
#include "emu_memory.cuh"
#include "emu_warp.cuh"
#else
#include "memory.cuh"
#endif
#include "warp.cuh"
#ifdef DM_HOST
#include "emu_async.cuh"
#include "emu_mma.cuh"
#else
#include "async.cuh"
#include "mma.cuh"
#endif
#include "random.cuh"
