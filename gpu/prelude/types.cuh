// Element types and conversions between them. Rounding is to nearest, ties to
// even; numbers too large for f16, bf16 and f8e5 become infinite, for f8e4, which
// has no infinity, NaN. Floating point to integer truncates, saturates, and takes
// NaN to 0.
#pragma once

namespace dm {

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef bool i1;

// Storage of the small floats; arithmetic is on wide().
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct f8e4 { u8 bits; };  // f8E4M3FN
struct f8e5 { u8 bits; };  // f8E5M2

// An element of the types of which a byte in memory holds two, the first one in its
// low half: the low half of bits.
struct i4 { u8 bits; };
struct u4 { u8 bits; };

// N elements that are loaded and stored at once.
template <class T, int N> struct alignas(sizeof(T) * N) Vec {
  static_assert(sizeof(T) * N <= 16, "a vector has at most 16 bytes");
  T v[N];
  DM_FN T& operator[](int i) { return v[i]; }
  DM_FN const T& operator[](int i) const { return v[i]; }
};

// The place of element p of an array in shared memory in which chunks of CHUNK
// elements change places within each eight: in another order for each key, modulo 8.
template <int CHUNK> DM_FN i32 interleaved(u32 p, u32 key) { return i32(p ^ (key & 7) * CHUNK); }

// The same bytes as another type.
template <class To, class From> DM_FN To bits_as(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To y;
  memcpy(&y, &x, sizeof(To));
  return y;
}

namespace detail {

// A float as a format of 1 sign bit, an exponent of the given bias and MANT bits
// of mantissa, without what is too large. Below the smallest normal number the
// sum with a power of two has its last bit at the format's smallest step, so
// that the addition rounds.
template <int MANT, int BIAS> DM_FN u32 round_small(u32 a) {
  constexpr int shift = 23 - MANT;
  if (a >= u32(128 - BIAS) << 23) {
    a += (1u << (shift - 1)) - 1 + (a >> shift & 1);
    return (a >> shift) - (u32(127 - BIAS) << MANT);
  }
  constexpr u32 magic = u32(127 + 24 - BIAS - MANT) << 23;
  return bits_as<u32>(bits_as<float>(a) + bits_as<float>(magic)) - magic;
}

// x rounded to odd: rounding the result once more to a narrower type gives what
// rounding x to it gives.
DM_FN float to_odd(double x) {
  float f = float(x);
  double back = double(f);
  if (back == x || x != x) return f;
  u32 b = bits_as<u32>(f);
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) b--;
  return bits_as<float>(b | 1);
}

}  // namespace detail

// The value of a stored element, in the type that kernels compute in: f32 for
// floats of up to 32 bits, otherwise the type itself.
DM_FN float wide(f16 x) {
#ifdef DM_HOST
  u32 a = x.bits & 0x7fffu, s = u32(x.bits & 0x8000u) << 16;
  if (a >= 0x7c00) return bits_as<float>(s | 0x7f800000u | a << 13);
  return bits_as<float>(bits_as<u32>(bits_as<float>(a << 13) * 0x1p112f) | s);
#else
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
#endif
}
DM_FN float wide(bf16 x) { return bits_as<float>(u32(x.bits) << 16); }
DM_FN float wide(f8e4 x) {
  u32 a = x.bits & 0x7fu, s = u32(x.bits & 0x80u) << 24;
  if (a == 0x7f) return bits_as<float>(s | 0x7fc00000u);
  return bits_as<float>(bits_as<u32>(bits_as<float>(a << 20) * 0x1p120f) | s);
}
DM_FN float wide(f8e5 x) { return wide(f16{u16(x.bits << 8)}); }
DM_FN float wide(float x) { return x; }
DM_FN double wide(double x) { return x; }
DM_FN i8 wide(i8 x) { return x; }
DM_FN i16 wide(i16 x) { return x; }
DM_FN i32 wide(i32 x) { return x; }
DM_FN i64 wide(i64 x) { return x; }
DM_FN u8 wide(u8 x) { return x; }
DM_FN u16 wide(u16 x) { return x; }
DM_FN u32 wide(u32 x) { return x; }
DM_FN u64 wide(u64 x) { return x; }
DM_FN i1 wide(i1 x) { return x; }
DM_FN i8 wide(i4 x) { return i8((x.bits & 15) ^ 8) - 8; }
DM_FN u8 wide(u4 x) { return x.bits & 15; }

namespace detail {

template <class T> struct Narrow {  // integers, bool, float and double
  template <class V> DM_FN static T from(V x) { return T(x); }
};
template <> struct Narrow<f16> {
  DM_FN static f16 from(float x) {
#ifdef DM_HOST
    u32 b = bits_as<u32>(x), a = b & 0x7fffffffu;
    u16 s = u16(b >> 16 & 0x8000u);
    if (a >= 0x477ff000u) return f16{u16(s | (a > 0x7f800000u ? 0x7e00u : 0x7c00u))};
    return f16{u16(s | round_small<10, 15>(a))};
#else
    f16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
#endif
  }
  DM_FN static f16 from(double x) { return from(to_odd(x)); }
};
template <> struct Narrow<bf16> {
  DM_FN static bf16 from(float x) {
#ifdef DM_HOST
    u32 b = bits_as<u32>(x);
    if ((b & 0x7fffffffu) > 0x7f800000u) return bf16{u16(b >> 16 | 0x40u)};
    return bf16{u16((b + 0x7fffu + (b >> 16 & 1)) >> 16)};
#else
    bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
#endif
  }
  DM_FN static bf16 from(double x) { return from(to_odd(x)); }
};
template <> struct Narrow<f8e4> {
  DM_FN static f8e4 from(float x) {
    u32 b = bits_as<u32>(x), a = b & 0x7fffffffu;
    u8 s = u8(b >> 24 & 0x80u);
    if (a > 0x43e80000u) return f8e4{u8(s | 0x7fu)};  // 464, halfway to the 480 that would follow 448
    return f8e4{u8(s | round_small<3, 7>(a))};
  }
  DM_FN static f8e4 from(double x) { return from(to_odd(x)); }
};
template <> struct Narrow<f8e5> {
  DM_FN static f8e5 from(float x) {
    u32 b = bits_as<u32>(x), a = b & 0x7fffffffu;
    u8 s = u8(b >> 24 & 0x80u);
    if (a >= 0x47700000u) return f8e5{u8(s | (a > 0x7f800000u ? 0x7eu : 0x7cu))};  // 61440
    return f8e5{u8(s | round_small<2, 15>(a))};
  }
  DM_FN static f8e5 from(double x) { return from(to_odd(x)); }
};

template <> struct Narrow<i4> {
  template <class V> DM_FN static i4 from(V x) { return i4{u8(u8(x) & 15)}; }
};
template <> struct Narrow<u4> {
  template <class V> DM_FN static u4 from(V x) { return u4{u8(u8(x) & 15)}; }
};

// Whether a byte in memory holds two elements of T.
template <class T> constexpr bool is_packed = false;
template <> inline constexpr bool is_packed<i4> = true;
template <> inline constexpr bool is_packed<u4> = true;

// The least value of such a type.
template <class T> constexpr int least_half = 0;
template <> inline constexpr int least_half<i4> = -8;

// The bytes in memory of N elements.
template <class T, int N> constexpr int bytes_of = is_packed<T> ? (N + 1) / 2 : int(sizeof(T)) * N;

// Halves of bytes as N elements, and back.
template <class T, int N> DM_FN Vec<T, N> unpacked(const Vec<u8, N / 2>& p) {
  Vec<T, N> v;
DM_UNROLL
  for (int i = 0; i < N; i++) v[i] = T{u8(p[i / 2] >> (i % 2 * 4) & 15)};
  return v;
}
template <class T, int N> DM_FN Vec<u8, N / 2> packed(const Vec<T, N>& v) {
  Vec<u8, N / 2> p;
DM_UNROLL
  for (int i = 0; i < N / 2; i++) p[i] = u8((v[2 * i].bits & 15) | v[2 * i + 1].bits << 4);
  return p;
}

template <class T> struct Kind { static constexpr bool is_float = false, is_small = false; };
template <> struct Kind<float> { static constexpr bool is_float = true, is_small = false; };
template <> struct Kind<double> { static constexpr bool is_float = true, is_small = false; };
template <> struct Kind<f16> { static constexpr bool is_float = true, is_small = true; };
template <> struct Kind<bf16> { static constexpr bool is_float = true, is_small = true; };
template <> struct Kind<f8e4> { static constexpr bool is_float = true, is_small = true; };
template <> struct Kind<f8e5> { static constexpr bool is_float = true, is_small = true; };

}  // namespace detail

// x as an element of T: rounded once for floats, wrapped for integers.
template <class T, class V> DM_FN T narrow(V x) { return detail::Narrow<T>::from(wide(x)); }

// x converted as dm.convert does: like narrow, but floating point to integer
// truncates towards zero, saturates, and converts NaN to 0; bool is whether x is a number other than 0.
template <class To, class From> DM_FN To convert(From value) {
  auto x = wide(value);
  if constexpr (detail::Kind<To>::is_small && !detail::Kind<decltype(x)>::is_float) {
    if constexpr (sizeof(x) <= 2) return detail::Narrow<To>::from(float(x));
    return detail::Narrow<To>::from(double(x));
  } else if constexpr (detail::Kind<To>::is_float) {
    return detail::Narrow<To>::from(x);
  } else if constexpr (detail::is_packed<To> && detail::Kind<decltype(x)>::is_float) {
    constexpr int least = detail::least_half<To>, most = least + 15;
    if (x != x) return To{0};
    return detail::Narrow<To>::from(x >= decltype(x)(most) ? most : x <= decltype(x)(least) ? least : int(x));
  } else if constexpr (detail::is_packed<To>) {
    return detail::Narrow<To>::from(x);
  } else if constexpr (sizeof(To) == sizeof(bool) && To(2) == To(1)) {
    return x == x && x != decltype(x)(0);
  } else if constexpr (detail::Kind<decltype(x)>::is_float) {
    if (x != x) return To(0);
    constexpr bool is_signed = To(-1) < To(0);
    constexpr int bits = int(sizeof(To)) * 8 - is_signed;
    constexpr To last = is_signed ? To((u64(1) << bits) - 1) : To(-1);
    constexpr double end = bits == 64 ? 0x1p64 : double(u64(1) << bits);
    if (double(x) >= end) return last;
    if (double(x) <= (is_signed ? -end : 0.0)) return is_signed ? To(~last) : To(0);
    return To(x);
  } else {
    return To(x);
  }
}

// Nothing is the argument for a parameter that a kernel does not have.
struct Nothing {};
template <class X> constexpr bool given = true;
template <> inline constexpr bool given<Nothing> = false;

#ifndef DM_HOST
// A tensor map (CUtensorMap) for bulk copies; a kernel takes it as
// `const __grid_constant__ dm::Map m`, written DM_MAP(m).
struct alignas(128) Map { u64 words[16]; };
#define DM_MAP(name) const __grid_constant__ dm::Map name
#endif

}  // namespace dm
