// Ops of the dialect that are not a single intrinsic.
#pragma once

namespace dm {

namespace detail {
template <class T> struct Sixteen;
template <> struct Sixteen<f16> { static constexpr bool half = true; };
template <> struct Sixteen<bf16> { static constexpr bool half = false; };
}  // namespace detail

template <class T> DM_FN T infinity();
template <> DM_FN float infinity<float>() { return bits_as<float>(0x7f800000u); }
template <> DM_FN double infinity<double>() { return bits_as<double>(0x7ff0000000000000ull); }
template <class T> DM_FN T nan();
template <> DM_FN float nan<float>() { return bits_as<float>(0x7fc00000u); }
template <> DM_FN double nan<double>() { return bits_as<double>(0x7ff8000000000000ull); }

// Two numbers of f16 or bf16 in the halves of x, with Negate of the other sign, as 16-bit integers: equal numbers, zeros of both signs too, are
// equal, larger ones larger, and NaN the largest.
template <bool Negate, class T> DM_FN u32 ordered_halves(u32 x) {
#ifdef DM_HOST
  constexpr u32 infinity = detail::Sixteen<T>::half ? 0x7c00 : 0x7f80;
  u32 y = 0;
  for (int i = 0; i < 32; i += 16) {
    u32 h = (x >> i ^ (Negate ? 0x8000 : 0)) & 0xffff, m = h & 0x7fff;
    if (m > infinity) h = 0x7fff;
    else if (m == 0) h = 0;
    y |= (h & 0x8000 ? h ^ 0x7fff : h) << i;
  }
  return y;
#else
  u32 signs;
  // A product with one, plus zero: +0 of -0, and 0x7fff of a NaN.
  if constexpr (detail::Sixteen<T>::half)
    asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(Negate ? 0xbc00bc00u : 0x3c003c00u), "r"(0));
  else
    asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(Negate ? 0xbf80bf80u : 0x3f803f80u), "r"(0));
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(x));  // the sign of each half in all of its bits
  return x ^ (signs & 0x7fff7fff);
#endif
}
// The same of one or two numbers, as integers whose low 16 bits are zero.
template <bool Negate, class T> DM_FN i32 order_key(T x) { return i32(ordered_halves<Negate, T>(u32(x.bits) << 16)); }
template <bool Negate, class T> DM_FN Vec<i32, 2> order_keys(T a, T b) {
  const u32 x = ordered_halves<Negate, T>(u32(a.bits) | u32(b.bits) << 16);
  Vec<i32, 2> keys;
  keys[0] = i32(x << 16), keys[1] = i32(x & 0xffff0000);
  return keys;
}

template <class T> DM_FN T silu(T x) { return x * logistic(x); }
template <class T> DM_FN T gelu(T x) { return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440))); }
template <class T> DM_FN T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}

// Element i of dm.iota: start + step · i, each rounded.
template <class T, class I> DM_FN auto spaced(double start, double step, I i) {
  if constexpr (!detail::Kind<T>::is_float) {
    return T(i64(u64(i64(start)) + u64(i64(step)) * u64(i64(i))));
  } else if constexpr (sizeof(T) == 8) {
    return (detail::Exact(start) + detail::Exact(step) * double(i64(i))).v;
  } else {
    return wide(narrow<T>(detail::add_rounded(float(start), detail::mul_rounded(float(step), float(i64(i))))));
  }
}

// Element i of dm.rng: at least low, below high.
template <class T, class I> DM_FN auto uniform_between(double low, double high, u64 seed, I i) {
  if constexpr (!detail::Kind<T>::is_float) {
    return T(floor(low + (high - low) * uniform(seed, 2, u64(i))));
  } else if constexpr (sizeof(T) == 8) {
    const double x = low + (high - low) * uniform(seed, 2, u64(i));
    return x >= high ? low : x;
  } else {
    const float x = wide(narrow<T>(detail::add_rounded(float(low), detail::mul_rounded(float(high - low), stream(seed, 2).uniform32(i)))));
    return x >= float(high) ? wide(narrow<T>(float(low))) : x;
  }
}

// Sums along a row that are computed before what their elements are relative to
// is known: a sum relative to one of the values so far is corrected.

// The factor that makes a sum of e^(x - from) one of e^(x - to), to >= from.
template <class T> DM_FN T rebase(T from, T to) { return from == to ? T(1) : exp(from - to); }
// What e^(x - m) is computed with for the greatest x so far: where all are -infinity
// they add nothing.
template <class T> DM_FN T base_of(T m) { return m == -infinity<T>() ? T(0) : m; }
// The sum of e^(x - m) with the maximum m: not a number where m is not finite.
template <class T> DM_FN T settled_exps(T sum, T m) { return sum + (m - m); }

// What n elements with the given sum have as squares of their distances to the mean
// `total` / `of`, beside those to their own mean.
template <class T> DM_FN T spread(T n, T sum, T of, T total) {
  const T d = sum / max(n, T(1)) - total / of;
  return n == T(0) ? T(0) : n * d * d;
}
// The same of two groups of elements to the mean of both.
template <class T> DM_FN T between(T n, T sum, T m, T more) {
  const T d = sum / max(n, T(1)) - more / max(m, T(1));
  return n == T(0) || m == T(0) ? T(0) : n * m / (n + m) * d * d;
}
// The sum of squares of distances to the mean of elements with the given sum, which
// is infinite where the mean is.
template <class T> DM_FN T settled_squares(T squares, T sum) { return abs(sum) == infinity<T>() ? squares + infinity<T>() : squares; }

}  // namespace dm
