// Scalar functions for float and double, and some for integers.
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
DM_MATH1(erfc, erfc)
DM_MATH1(sinh, sinh)
DM_MATH1(cosh, cosh)
DM_MATH1(asinh, asinh)
DM_MATH1(acosh, acosh)
DM_MATH1(atanh, atanh)
DM_MATH1(cos, cos)
DM_MATH1(sin, sin)
DM_MATH1(tan, tan)
DM_MATH1(floor, floor)
DM_MATH1(ceil, ceil)
DM_MATH1(round, rint)  // halfway cases to even
DM_MATH1(round_half_away, round)
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

// x / y for many x with the same y, within 1.5 units in the last place if that is a
// normal number: the part that depends on y alone is computed once. Both are scaled
// first so that the reciprocal of y is normal.
DM_FN float quotient_shared(float x, float y) {
  const float size = abs(y);
  const float s = size < 0x1p-64f ? 0x1p64f : size > 0x1p64f ? 0x1p-64f : 1.0f;
  return (x * s) * (1.0f / (y * s));
}

// e^x for results that are rounded to 16 bits or fewer: relative error up to
// 2^-22 + |x| 2^-24, 0 below 2^-126.
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

// The sign of x: -1, 0 or 1; zeros and NaN are returned unchanged.
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
// Bits of integers of any size. Shifts by at least the number of bits, or by a negative
// one, move all of them out.
#define DM_BITS(T, U)                                                                             \
  DM_FN T popcnt(T x) {                                                                           \
    int n = 0;                                                                                    \
    for (U b = U(x); b; b = U(b & (b - 1))) n++;                                                  \
    return T(n);                                                                                  \
  }                                                                                               \
  DM_FN T count_leading_zeros(T x) {                                                              \
    int n = 8 * int(sizeof(T));                                                                   \
    for (U b = U(x); b; b = U(b >> 1)) n--;                                                       \
    return T(n);                                                                                  \
  }                                                                                               \
  DM_FN T shift_left(T x, T y) { return u64(y) < 8 * sizeof(T) ? T(U(x) << y) : T(0); }           \
  DM_FN T shift_right_logical(T x, T y) { return u64(y) < 8 * sizeof(T) ? T(U(x) >> y) : T(0); }  \
  DM_FN T shift_right_arithmetic(T x, T y) {                                                      \
    const int n = u64(y) < 8 * sizeof(T) ? int(y) : 8 * int(sizeof(T)) - 1;                       \
    const U sign = U(U(0) - (U(x) >> (8 * sizeof(T) - 1)));                                       \
    return T(U(U(U(x) ^ sign) >> n) ^ sign);                                                      \
  }
DM_BITS(i8, u8)
DM_BITS(i16, u16)
DM_BITS(i32, u32)
DM_BITS(i64, u64)
DM_BITS(u8, u8)
DM_BITS(u16, u16)
DM_BITS(u32, u32)
DM_BITS(u64, u64)
#undef DM_BITS
DM_FN float div(float x, float y) { return x / y; }
DM_FN double div(double x, double y) { return x / y; }

// The inverse of erf: NaN beyond -1 and 1. In f32 by Giles, Approximating the
// erfinv function (GPU Computing Gems, Jade Edition, 2011); in f64 by Wichura,
// Algorithm AS 241 (Applied Statistics 37, 1988), whose error is below 1e-16.
DM_FN float erfinv(float x) {
  if (abs(x) == 1.0f) return x / (1.0f - abs(x));
  float w = -log((1.0f - x) * (1.0f + x)), p;
  if (w < 5.0f) {
    w -= 2.5f;
    p = 2.81022636e-08f;
    p = p * w + 3.43273939e-07f;
    p = p * w - 3.5233877e-06f;
    p = p * w - 4.39150654e-06f;
    p = p * w + 0.00021858087f;
    p = p * w - 0.00125372503f;
    p = p * w - 0.00417768164f;
    p = p * w + 0.246640727f;
    p = p * w + 1.50140941f;
  } else {
    w = sqrt(w) - 3.0f;
    p = -0.000200214257f;
    p = p * w + 0.000100950558f;
    p = p * w + 0.00134934322f;
    p = p * w - 0.00367342844f;
    p = p * w + 0.00573950773f;
    p = p * w - 0.0076224613f;
    p = p * w + 0.00943887047f;
    p = p * w + 1.00167406f;
    p = p * w + 2.83297682f;
  }
  return p * x;
}

namespace detail {
// The quotient of two polynomials of degree 7, highest coefficients first.
DM_FN double quotient(double x, double a7, double a6, double a5, double a4, double a3, double a2, double a1, double a0,
                      double b7, double b6, double b5, double b4, double b3, double b2, double b1, double b0) {
  return (((((((a7 * x + a6) * x + a5) * x + a4) * x + a3) * x + a2) * x + a1) * x + a0) /
         (((((((b7 * x + b6) * x + b5) * x + b4) * x + b3) * x + b2) * x + b1) * x + b0);
}
}  // namespace detail

DM_FN double erfinv(double x) {
  const double a = abs(x);
  if (a == 1.0) return x / (1.0 - a);
  if (a <= 0.85) {
    return x * detail::quotient(0.180625 - 0.25 * x * x,  //
                                8.8709406962545514830200e2, 1.1819493347062294404278e4, 2.3782041382114385731252e4, 1.6235862515167575384252e4,
                                4.8548868893843886794648e3, 6.9706266534389598238465e2, 4.7072688112383978012285e1, 1.1975323115670912564578e0,
                                5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                                5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0);
  }
  const double r = sqrt(0.69314718055994530942 - log(1.0 - a));
  const double y = r <= 5.0 ? detail::quotient(r - 1.6,  //
                                               7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
                                               3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
                                               1.4859850019840355905497876e-9, 7.7441459065157709165577218e-4, 2.1494160384252876777097297e-2, 2.0945065210512749128288442e-1,
                                               9.7547832001787427186894837e-1, 2.3707661626024532365971225e0, 2.9036514445419946173133295e0, 1.4142135623730950488016887e0)
                            : detail::quotient(r - 5.0,  //
                                               2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                               2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
                                               2.891024605872965461538222e-15, 2.010321207683943062279931e-7, 2.611088405080593625138020e-5, 1.112800997078859844711555e-3,
                                               2.103693768272068968719679e-2, 1.936480946950659106176712e-1, 8.482908416595164588112026e-1, 1.414213562373095048801689e0);
  return x < 0 ? -y : y;
}

}  // namespace dm
