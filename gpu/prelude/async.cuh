// Asynchronous copies from global to shared memory (sm_80 up).
#pragma once

namespace dm {

namespace detail {
DM_FN u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
}  // namespace detail

// Starts copying BYTES (4, 8 or 16) from src[j] on to dst[i] on, or, where not
// valid, filling with zeros; src is not read then.
template <int BYTES, class T> DM_FN void cp_async(Shared<T> dst, i32 i, In<T> src, i64 j, bool valid = true) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4, 8 or 16 bytes");
  u32 to = detail::shared_address(dst.p + i);
  const T* from = valid ? src.p + j : src.p;
  i32 bytes = valid ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(bytes) : "memory");
  }
}
template <int BYTES, class T> DM_FN void cp_async(Shared<T> dst, i32 i, InOut<T> src, i64 j, bool valid = true) {
  cp_async<BYTES>(dst, i, In<T>{src.p}, j, valid);
}

// Source is a place that several copies are relative to. It may lie outside of the tensor. The compiler
// keeps the pointer, and does not compute it again for each copy.
template <class T> struct Source {
  const T* p;
  DM_FN Source() {}
  DM_FN Source(In<T> x, i64 i) : p(x.p + i) { asm("" : "+l"(p)); }
  DM_FN Source(InOut<T> x, i64 i) : Source(In<T>{x.p}, i) {}
};
// With Near the level-1 cache keeps the bytes for the block's other copies of them.
template <int BYTES, bool Near, class T> DM_FN void cp_async(Shared<T> dst, i32 i, Source<T> src, i64 j, bool valid) {
  static_assert(BYTES == 16, "16 bytes");
  u32 to = detail::shared_address(dst.p + i);
  i32 bytes = valid ? BYTES : 0;
  if constexpr (Near) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(src.p + j), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(src.p + j), "r"(bytes) : "memory");
  }
}

// Closes the group of the copies started since the last one.
DM_FN void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most N of this thread's groups are pending. Copies of other
// threads are visible after their wait and a barrier.
template <int N> DM_FN void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Waits for all kernels before this one to have ended, with their writes visible: a launch that is a programmatic dependent
// starts before that (sm_90 up). Every thread comes here before it accesses global memory.
DM_FN void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the kernel behind this one start once all blocks are here, or have ended: it then takes only places that no block of
// this kernel waits for.
DM_FN void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace dm
