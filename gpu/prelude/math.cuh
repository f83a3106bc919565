// Scalar functions, for float and double and, where it makes sense, integers.
// They are accurate to a few units in the last place.
#pragma once

namespace dm {

#ifdef DM_HOST
#define DM_MATH1(name, fn)                         \
  DM_FN float name(float x) { return std::fn(x); } \
  DM_FN double name(double x) { return std::fn(x); }
#else
#define DM_MATH1(name, fn)                          \
  DM_FN float name(float x) { return ::fn##f(x); } \
  DM_FN double name(double x) { return ::fn(x); }
#endif
DM_MATH1(exp, exp)
DM_MATH1(log, log)
DM_MATH1(log1p, log1p)
DM_MATH1(expm1, expm1)
DM_MATH1(sqrt, sqrt)
DM_MATH1(cbrt, cbrt)
DM_MATH1(tanh, tanh)
DM_MATH1(erf, erf)
DM_MATH1(cos, cos)
DM_MATH1(sin, sin)
DM_MATH1(floor, floor)
DM_MATH1(ceil, ceil)
DM_MATH1(round, rint)  // halfway cases to even
#undef DM_MATH1

#ifdef DM_HOST
DM_FN float rsqrt(float x) { return float(1.0 / std::sqrt(double(x))); }
DM_FN double rsqrt(double x) { return 1.0 / std::sqrt(x); }
DM_FN float pow(float x, float y) { return std::pow(x, y); }
DM_FN double pow(double x, double y) { return std::pow(x, y); }
DM_FN float rem(float x, float y) { return std::fmod(x, y); }
DM_FN double rem(double x, double y) { return std::fmod(x, y); }
DM_FN float atan2(float x, float y) { return std::atan2(x, y); }
DM_FN double atan2(double x, double y) { return std::atan2(x, y); }
DM_FN float abs(float x) { return std::fabs(x); }
DM_FN double abs(double x) { return std::fabs(x); }
DM_FN float fma(float x, float y, float z) { return std::fma(x, y, z); }
DM_FN double fma(double x, double y, double z) { return std::fma(x, y, z); }
#else
DM_FN float rsqrt(float x) { return ::rsqrtf(x); }
DM_FN double rsqrt(double x) { return ::rsqrt(x); }
DM_FN float pow(float x, float y) { return ::powf(x, y); }
DM_FN double pow(double x, double y) { return ::pow(x, y); }
DM_FN float rem(float x, float y) { return ::fmodf(x, y); }
DM_FN double rem(double x, double y) { return ::fmod(x, y); }
DM_FN float atan2(float x, float y) { return ::atan2f(x, y); }
DM_FN double atan2(double x, double y) { return ::atan2(x, y); }
DM_FN float abs(float x) { return ::fabsf(x); }
DM_FN double abs(double x) { return ::fabs(x); }
DM_FN float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
DM_FN double fma(double x, double y, double z) { return ::fma(x, y, z); }
#endif
DM_FN i32 abs(i32 x) { return x < 0 ? i32(0u - u32(x)) : x; }
DM_FN i64 abs(i64 x) { return x < 0 ? i64(0ull - u64(x)) : x; }
DM_FN u32 abs(u32 x) { return x; }
DM_FN u64 abs(u64 x) { return x; }

// x / y for many x that share y, within 1.5 units in the last place where that is
// a normal number: what depends on y alone is computed once. Both are brought to
// where the reciprocal of y is normal first.
DM_FN float quotient_shared(float x, float y) {
  const float size = abs(y);
  const float s = size < 0x1p-64f ? 0x1p64f : size > 0x1p64f ? 0x1p-64f : 1.0f;
  return (x * s) * (1.0f / (y * s));
}

// e^x for what is rounded to 16 bits or fewer: within 2^-22 + |x| 2^-24 of
// itself, 0 below 2^-126.
DM_FN float exp_coarse(float x) {
#ifdef DM_HOST
  return std::exp2(x * 1.44269504088896340736f);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504088896340736f));
  return y;
#endif
}

DM_FN float logistic(float x) { return 1.0f / (1.0f + exp(-x)); }
DM_FN double logistic(double x) { return 1.0 / (1.0 + exp(-x)); }

// max and min give NaN if an operand is NaN; of two zeros max gives +0 if there
// is one, min -0.
#ifdef DM_HOST
DM_FN float max(float x, float y) { return x > y || x != x ? x : x == y ? bits_as<float>(bits_as<u32>(x) & bits_as<u32>(y)) : y; }
DM_FN float min(float x, float y) { return x < y || x != x ? x : x == y ? bits_as<float>(bits_as<u32>(x) | bits_as<u32>(y)) : y; }
#else
DM_FN float max(float x, float y) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
DM_FN float min(float x, float y) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
#endif
DM_FN double max(double x, double y) { return x > y || x != x ? x : x == y ? bits_as<double>(bits_as<u64>(x) & bits_as<u64>(y)) : y; }
DM_FN double min(double x, double y) { return x < y || x != x ? x : x == y ? bits_as<double>(bits_as<u64>(x) | bits_as<u64>(y)) : y; }

// The sign of x: -1, 0 or 1; zeros and NaN stay what they are.
DM_FN float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
DM_FN double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
DM_FN i32 sign(i32 x) { return (x > 0) - (x < 0); }
DM_FN i64 sign(i64 x) { return (x > 0) - (x < 0); }

// Whole quotient and remainder, truncated towards zero: x / 0 is -1 (all bits
// set), the remainder by 0 is x, and the most negative number over -1 wraps.
#define DM_INT(T, U)                                                                              \
  DM_FN T max(T x, T y) { return x > y ? x : y; }                                                 \
  DM_FN T min(T x, T y) { return x < y ? x : y; }                                                 \
  DM_FN T div(T x, T y) { return y == T(0) ? T(-1) : T(-1) < T(0) && y == T(-1) ? T(U(0) - U(x)) : T(x / y); } \
  DM_FN T rem(T x, T y) { return y == T(0) ? x : T(-1) < T(0) && y == T(-1) ? T(0) : T(x % y); }  \
  DM_FN T pow(T x, T y) {                                                                         \
    if (T(-1) < T(0) && y < T(0)) return x == T(1) ? T(1) : x == T(-1) ? (y & T(1) ? T(-1) : T(1)) : T(0); \
    U r = 1, b = U(x);                                                                            \
    for (U e = U(y); e; e >>= 1) {                                                                \
      if (e & 1) r *= b;                                                                          \
      b *= b;                                                                                     \
    }                                                                                             \
    return T(r);                                                                                  \
  }
DM_INT(i32, u32)
DM_INT(i64, u64)
DM_INT(u32, u32)
DM_INT(u64, u64)
#undef DM_INT
DM_FN float div(float x, float y) { return x / y; }
DM_FN double div(double x, double y) { return x / y; }

}  // namespace dm
