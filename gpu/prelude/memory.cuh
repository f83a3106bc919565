// Parameters of kernels and shared memory. Indices count elements; those of
// parameters are i64.
#pragma once

namespace dm {

namespace detail {

template <int BYTES> struct Raw;
template <> struct Raw<1> { typedef unsigned char type; };
template <> struct Raw<2> { typedef unsigned short type; };
template <> struct Raw<4> { typedef unsigned int type; };
template <> struct Raw<8> { typedef uint2 type; };
template <> struct Raw<16> { typedef uint4 type; };

// The bytes go through a variable: of a copy from memory to memory the compiler may forget that it is aligned.
template <class V> DM_FN V load_plain(const void* p) {
  const typename Raw<sizeof(V)>::type r = *static_cast<const typename Raw<sizeof(V)>::type*>(p);
  return bits_as<V>(r);
}
template <class V> DM_FN void store_plain(void* p, V v) {
  *static_cast<typename Raw<sizeof(V)>::type*>(p) = bits_as<typename Raw<sizeof(V)>::type>(v);
}
// One store of a V to global memory, which the compiler does not split into its elements.
template <class V> DM_FN void store_whole(void* p, V v) {
  if constexpr (sizeof(V) == 16) {
    const uint4 r = bits_as<uint4>(v);
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w) : "memory");
  } else if constexpr (sizeof(V) == 8) {
    const uint2 r = bits_as<uint2>(v);
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(r.x), "r"(r.y) : "memory");
  } else {
    store_plain(p, v);
  }
}
// One load of a V of a parameter that is only read. From sm_90 on a kernel may start before those before it have ended, which may
// then write the parameter: it is read by ordinary loads, none of which the compiler moves in front of grid_dependency_wait. Those
// of vectors stay where they are written, so that as many are in flight together as a kernel reads one behind the other.
#if __CUDA_ARCH__ >= 900
#define DM_LOAD "ld.global"
template <class V> DM_FN V load_const(const void* p) { return load_plain<V>(p); }
template <class V> DM_FN V load_vector(const void* p) {
  if constexpr (sizeof(V) == 16) {
    uint4 r;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    uint2 r;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(r.x), "=r"(r.y) : "l"(p));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    u32 r;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(r) : "l"(p));
    return bits_as<V>(r);
  } else {
    return load_plain<V>(p);
  }
}
#else
#define DM_LOAD "ld.global.nc"
template <class V> DM_FN V load_const(const void* p) {
  return bits_as<V>(__ldg(static_cast<const typename Raw<sizeof(V)>::type*>(p)));
}
template <class V> DM_FN V load_vector(const void* p) { return load_const<V>(p); }
#endif
// The same of a V that is not used again: it bypasses the first-level cache.
template <class V> DM_FN V load_once(const void* p) {
  if constexpr (sizeof(V) == 16) {
    uint4 r;
    asm volatile(DM_LOAD ".L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return bits_as<V>(r);
  } else {
    return load_vector<V>(p);
  }
}
#undef DM_LOAD

template <class T> DM_FN T atomic_add(T* p, T v) {
  if constexpr (sizeof(T) == 2) {
    unsigned short* q = reinterpret_cast<unsigned short*>(p);
    unsigned short old = *static_cast<volatile unsigned short*>(q), seen;
    while (true) {
      seen = atomicCAS(q, old, bits_as<unsigned short>(narrow<T>(wide(bits_as<T>(old)) + wide(v))));
      if (seen == old) return bits_as<T>(old);
      old = seen;
    }
  } else if constexpr (Kind<T>::is_float) {
    return atomicAdd(p, v);
  } else if constexpr (sizeof(T) == 8) {
    return T(atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(v)));
  } else {
    static_assert(sizeof(T) == 4, "no atomic addition of this type");
    return T(atomicAdd(reinterpret_cast<unsigned int*>(p), static_cast<unsigned int>(v)));
  }
}

// Element i of packed elements.
template <class T> DM_FN T half_of(u8 byte, i64 i) { return T{u8(byte >> (i & 1) * 4 & 15)}; }

// Stores element i of packed elements. The other element of the byte may be another
// thread's, so the half changes atomically, in the word around it; p is aligned to
// words and its memory ends with one.
template <class T> DM_FN void store_half(T* p, i64 i, T v) {
  u32* word = reinterpret_cast<u32*>(p) + (i >> 3);
  const u32 shift = u32(i & 7) * 4;
  atomicAnd(word, ~(15u << shift));
  atomicOr(word, u32(v.bits & 15) << shift);
}

// One element, and N of them from a multiple of N on.
template <class T> DM_FN T get_const(const T* p, i64 i) {
  if constexpr (is_packed<T>) return half_of<T>(load_const<u8>(reinterpret_cast<const u8*>(p) + (i >> 1)), i);
  else return load_const<T>(p + i);
}
template <class T> DM_FN T get_plain(const T* p, i64 i) {
  if constexpr (is_packed<T>) return half_of<T>(reinterpret_cast<const u8*>(p)[i >> 1], i);
  else return p[i];
}
template <class T> DM_FN void put_plain(T* p, i64 i, T v) {
  if constexpr (is_packed<T>) store_half(p, i, v);
  else p[i] = v;
}
template <int N, class T> DM_FN Vec<T, N> get_const(const T* p, i64 i) {
  if constexpr (is_packed<T>) return unpacked<T, N>(load_vector<Vec<u8, N / 2>>(reinterpret_cast<const u8*>(p) + (i >> 1)));
  else return load_vector<Vec<T, N>>(p + i);
}
template <int N, class T> DM_FN Vec<T, N> get_once(const T* p, i64 i) {
  if constexpr (is_packed<T>) return get_const<N>(p, i);
  else return load_once<Vec<T, N>>(p + i);
}
template <int N, class T> DM_FN Vec<T, N> get_plain(const T* p, i64 i) {
  if constexpr (is_packed<T>) return unpacked<T, N>(load_plain<Vec<u8, N / 2>>(reinterpret_cast<const u8*>(p) + (i >> 1)));
  else return load_plain<Vec<T, N>>(p + i);
}
template <int N, class T> DM_FN void put_plain(T* p, i64 i, Vec<T, N> v) {
  if constexpr (is_packed<T>) store_plain(reinterpret_cast<u8*>(p) + (i >> 1), packed<T, N>(v));
  else store_whole(p + i, v);
}

}  // namespace detail

// A parameter that the kernel only reads, and that nothing writes during the launch.
template <class T> struct In {
  const T* p;
  DM_FN T operator[](i64 i) const { return detail::get_const<T>(p, i); }
  template <int N> DM_FN Vec<T, N> load(i64 i) const { return detail::get_const<N>(p, i); }
  // For elements that are read once in the launch.
  template <int N> DM_FN Vec<T, N> load_once(i64 i) const { return detail::get_once<N>(p, i); }
};

// A parameter that the kernel only writes.
template <class T> struct Out {
  T* p;
  DM_FN void store(i64 i, T v) const { detail::put_plain(p, i, v); }
  template <int N> DM_FN void store(i64 i, Vec<T, N> v) const { detail::put_plain<N>(p, i, v); }
};

// A parameter that the kernel reads and writes.
template <class T> struct InOut {
  T* p;
  DM_FN T operator[](i64 i) const { return detail::get_plain(p, i); }
  template <int N> DM_FN Vec<T, N> load(i64 i) const { return detail::get_plain<N>(p, i); }
  DM_FN void store(i64 i, T v) const { detail::put_plain(p, i, v); }
  template <int N> DM_FN void store(i64 i, Vec<T, N> v) const { detail::put_plain<N>(p, i, v); }
  // Adds v atomically and returns the previous value.
  DM_FN T add(i64 i, T v) const { return detail::atomic_add(p + i, v); }
};

// An array in shared memory.
template <class T> struct Shared {
  T* p;
  DM_FN T& operator[](i32 i) const { return p[i]; }
  template <int N> DM_FN Vec<T, N> load(i32 i) const { return detail::load_plain<Vec<T, N>>(p + i); }
  template <int N> DM_FN void store(i32 i, Vec<T, N> v) const { detail::store_plain(p + i, v); }
  DM_FN Shared operator+(i32 i) const { return Shared{p + i}; }
  // Adds v atomically and returns the previous value.
  DM_FN T add(i32 i, T v) const { return detail::atomic_add(p + i, v); }
  // The same bytes as elements of U, from element i on.
  template <class U> DM_FN Shared<U> as(i32 i = 0) const { return Shared<U>{reinterpret_cast<U*>(p + i)}; }
};

// An allocator of the block's dynamic shared memory, front to back.
struct Arena {
  unsigned char* p;
  u32 used;
  template <class T> DM_FN Shared<T> take(i32 count) { return take_aligned<T>(count, 16); }
  template <class T> DM_FN Shared<T> take_aligned(i32 count, u32 align) {
    used = (used + align - 1) & ~(align - 1);
    T* at = reinterpret_cast<T*>(p + used);
    used += u32(sizeof(T)) * u32(count);
    return Shared<T>{at};
  }
  // Frees all but the first n bytes.
  DM_FN void reset(u32 n = 0) { used = n; }
};

#define DM_SHARED(T, name, COUNT)                                                          \
  __shared__ __align__(128) unsigned char name##_bytes[sizeof(T) * (COUNT)]; \
  const dm::Shared<T> name{reinterpret_cast<T*>(name##_bytes)}
#define DM_ARENA(name)                                            \
  extern __shared__ __align__(1024) unsigned char dm_arena_bytes[]; \
  dm::Arena name{dm_arena_bytes, 0}

}  // namespace dm
