// Random numbers that are a function of seed, stream and position alone
// (counter-based: the finaliser of SplitMix64, Steele, Lea and Flood, OOPSLA
// 2014), bit for bit those of the reference executor.
#pragma once

namespace dm {

namespace detail {

DM_FN u64 mix(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// A double whose products and sums are each rounded, never fused.
struct Exact {
  double v;
  DM_FN Exact(double x) : v(x) {}
#ifdef DM_HOST
  DM_FN friend Exact operator*(Exact a, Exact b) { return a.v * b.v; }
  DM_FN friend Exact operator+(Exact a, Exact b) { return a.v + b.v; }
#else
  DM_FN friend Exact operator*(Exact a, Exact b) { return __dmul_rn(a.v, b.v); }
  DM_FN friend Exact operator+(Exact a, Exact b) { return __dadd_rn(a.v, b.v); }
#endif
  DM_FN friend Exact operator-(Exact a, Exact b) { return a + Exact(-b.v); }
};

// A product and a sum that are each rounded, never fused.
#ifdef DM_HOST
DM_FN float mul_rounded(float a, float b) { return a * b; }
DM_FN float add_rounded(float a, float b) { return a + b; }
#else
DM_FN float mul_rounded(float a, float b) { return __fmul_rn(a, b); }
DM_FN float add_rounded(float a, float b) { return __fadd_rn(a, b); }
#endif

// The natural logarithm of a normal positive number, by the steps of FreeBSD's
// e_log.c, as Go's math.Log.
DM_FN double log_steps(double x) {
  u64 b = bits_as<u64>(x);
  i32 k = i32(b >> 52) - 1022;
  double m = bits_as<double>((b & 0xfffffffffffffull) | 0x3fe0000000000000ull);
  if (m < 7.07106781186547524401e-01) {
    m *= 2;
    k--;
  }
  Exact f(m - 1), s(f.v / (2 + f.v)), n{double(k)};
  Exact s2 = s * s, s4 = s2 * s2;
  Exact t1 = s2 * (6.666666666666735130e-01 + s4 * (2.857142874366239149e-01 + s4 * (1.818357216161805012e-01 + s4 * 1.479819860510658591e-01)));
  Exact t2 = s4 * (3.999999999940941908e-01 + s4 * (2.222219843214978396e-01 + s4 * 1.531383769920937332e-01));
  Exact half = Exact(0.5) * f * f;
  return (n * 6.93147180369123816490e-01 - ((half - (s * (half + (t1 + t2)) + n * 1.90821492927058770002e-10)) - f)).v;
}

// Sine and cosine of a number in [0, 2π), by the steps of Cephes' sin.c, which
// Go's math.Sincos uses too.
DM_FN void sincos_steps(double x, double& sine, double& cosine) {
  if (x == 0) {
    sine = x;
    cosine = 1;
    return;
  }
  u32 j = u32((Exact(x) * 1.27323954473516268615).v);
  j += j & 1;
  Exact y{double(j)};
  Exact z = ((Exact(x) - y * 7.85398125648498535156e-1) - y * 3.77489470793079817668e-8) - y * 2.69515142907905952645e-15;
  j &= 7;
  bool minus = j > 3, cosine_minus = minus;
  if (minus) j -= 4;
  if (j > 1) cosine_minus = !cosine_minus;
  Exact q = z * z;
  Exact c = Exact(1.0) - Exact(0.5) * q +
            q * q * (((((Exact(-1.13585365213876817300e-11) * q + 2.08757008419747316778e-9) * q + -2.75573141792967388112e-7) * q + 2.48015872888517045348e-5) * q + -1.38888888888730564116e-3) * q + 4.16666666666665929218e-2);
  Exact s = z + z * q * (((((Exact(1.58962301576546568060e-10) * q + -2.50507477628578072866e-8) * q + 2.75573136213857245213e-6) * q + -1.98412698295895385996e-4) * q + 8.33333333332211858878e-3) * q + -1.66666666666666307295e-1);
  bool swap = j == 1 || j == 2;
  sine = swap ? c.v : s.v;
  cosine = swap ? s.v : c.v;
  if (minus) sine = -sine;
  if (cosine_minus) cosine = -cosine;
}

}  // namespace detail

// One stream of one seed, for loops over its positions.
struct Stream {
  u64 key;
  DM_FN u64 bits(u64 i) const { return detail::mix(key + 0x9e3779b97f4a7c15ull * (i + 1)); }
  // 32 bits for position i: two positions share a draw, that of i / 2; the even
  // one has the lower half.
  template <class I> DM_FN u32 half(I i) const { return half(i - (i & 1), i32(i & 1)); }
  // The same for position i + j of an even i, which may be negative where the sum
  // is not. Of neighbours, whose j the compiler knows, one draw is made.
  template <class I> DM_FN u32 half(I i, i32 j) const {
    const u64 b = bits(sizeof(I) == 4 ? u64((u32(i) + u32(j & ~1)) >> 1) : (u64(i) + u64(i64(j & ~1))) >> 1);
    return u32(j & 1 ? b >> 32 : b);
  }
  // A number in [0, 1) with 24 random bits.
  template <class I> DM_FN float uniform32(I i) const { return float(half(i) >> 8) * 0x1p-24f; }
  // A number in [0, 1) with 53 random bits.
  DM_FN double uniform(u64 i) const { return double(bits(i) >> 11) * 0x1p-53; }
  // A standard normal number (Box and Muller, 1958): positions 2k and 2k+1 are the
  // cosine and the sine of one pair of uniform numbers.
  DM_FN double normal(u64 i) const {
    double s, c;
    double u = uniform(i & ~u64(1));
    double r = u == 0 ? 0.0 : sqrt(-2 * detail::log_steps(1 - u));
    detail::sincos_steps((detail::Exact(6.28318530717958647693) * uniform(i | 1)).v, s, c);
    return (detail::Exact(r) * (i & 1 ? s : c)).v;
  }
};

DM_FN Stream stream(u64 seed, u64 number) { return Stream{detail::mix(seed + 0x9e3779b97f4a7c15ull * (number + 1))}; }

// The seed of a step: draw number `step` of stream 3.
DM_FN u64 seed_of(u64 seed, u64 step) { return stream(seed, 3).bits(step); }

// 64 random bits for position i of the stream.
DM_FN u64 bits(u64 seed, u64 number, u64 i) { return stream(seed, number).bits(i); }
DM_FN double uniform(u64 seed, u64 number, u64 i) { return stream(seed, number).uniform(i); }
DM_FN double normal(u64 seed, u64 number, u64 i) { return stream(seed, number).normal(i); }

// Whether dropout keeps element i, which is not negative, or i + j of an even i,
// which may be;
// the threshold is its rate times 2^32, rounded up.
template <class I> DM_FN bool keeps(u64 seed, I i, u64 threshold) { return threshold >> 32 == 0 && stream(seed, 1).half(i) >= u32(threshold); }
template <class I> DM_FN bool keeps(u64 seed, I i, i32 j, u64 threshold) { return threshold >> 32 == 0 && stream(seed, 1).half(i, j) >= u32(threshold); }

}  // namespace dm
