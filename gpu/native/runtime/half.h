/* Conversions of 16-bit floating-point numbers, which compilers call where a processor
 * has no instruction for them. The compiler's own library may lack them, or have them for
 * another calling convention than this compiler's, which would go unnoticed. */
#if defined(__x86_64__) && defined(__linux__)
#include <string.h>

#if __clang_major__ < 15
typedef uint16_t half; /* passed as an integer */
#else
typedef _Float16 half;
#endif
#define LIBRARY __attribute__((visibility("hidden"), weak, used))

static uint16_t bits_of(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  uint16_t sign = u >> 48 & 0x8000;
  int e = (int)(u >> 52 & 0x7ff) - 1023;
  uint64_t m = u & ((UINT64_C(1) << 52) - 1);
  if (e == 1024) return sign | 0x7c00 | (m ? 0x200 | m >> 42 : 0);
  if (e > 15) return sign | 0x7c00;
  if (e < -25) return sign;
  int shift = e < -14 ? 28 - e : 42; /* a subnormal number keeps fewer bits */
  uint64_t all = e < -14 ? m | UINT64_C(1) << 52 : m | (uint64_t)(e + 15) << 52;
  uint64_t kept = all >> shift, rest = all & ((UINT64_C(1) << shift) - 1), mid = UINT64_C(1) << (shift - 1);
  return sign | (uint16_t)(kept + (rest > mid || (rest == mid && (kept & 1))));
}

static float value_of(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff, u;
  if (e == 0) {
    float tiny = (float)m * 0x1p-24f;
    memcpy(&u, &tiny, sizeof u);
    u |= sign;
  } else {
    u = sign | (e == 31 ? 0x7f800000 | (m ? 0x400000 : 0) : (e + 112) << 23) | m << 13;
  }
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static half half_of(double x) {
  uint16_t u = bits_of(x);
  half h;
  memcpy(&h, &u, sizeof h);
  return h;
}

LIBRARY float __gnu_h2f_ieee(uint16_t h) { return value_of(h); }
LIBRARY uint16_t __gnu_f2h_ieee(float x) { return bits_of(x); }
LIBRARY half __truncdfhf2(double x) { return half_of(x); }
LIBRARY half __truncsfhf2(float x) { return half_of(x); }
LIBRARY float __extendhfsf2(half h) {
  uint16_t u;
  memcpy(&u, &h, sizeof u);
  return value_of(u);
}
#endif
