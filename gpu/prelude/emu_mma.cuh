// The emulation of mma.cuh: the last lane of a warp to arrive computes for all.
#pragma once

namespace dm {

namespace emu {

struct Rows {
  u8 row[16];
  u32* r;
};

template <int N, bool TRANS> void deal_matrices(Warp& w) {
  if (w.full != ~0u) fault("divergence", m.line, -1, -1, "ldmatrix in a warp of fewer than 32 threads");
  for (int k = 0; k < N; k++) {
    u16 x[8][8];
    for (int j = 0; j < 8; j++) memcpy(x[j], static_cast<Rows*>(w.args[8 * k + j])->row, 16);
    for (int lane = 0; lane < 32; lane++) {
      int a = lane / 4, b = lane % 4 * 2;
      u32 lo = TRANS ? x[b][a] : x[a][b], hi = TRANS ? x[b + 1][a] : x[a][b + 1];
      static_cast<Rows*>(w.args[lane])->r[k] = lo | hi << 16;
    }
  }
}
DM_ONCE_OF(void deal_matrices<2, false>(Warp&))
DM_ONCE_OF(void deal_matrices<2, true>(Warp&))
DM_ONCE_OF(void deal_matrices<4, false>(Warp&))
DM_ONCE_OF(void deal_matrices<4, true>(Warp&))

template <int N, bool TRANS, class T> inline void load_matrices(u32 (&r)[N], const Shared<T>& s, At i) {
  static_assert(sizeof(T) == 2 || (sizeof(T) == 4 && !TRANS), "16-bit elements, or 32-bit ones, of which a register has one");
  Rows mine;
  mine.r = r;
  if (m.lane < 8 * N) {
    u32 at = s.check(i, 16 / int(sizeof(T)));
    shared_read(at, 16, i.line);
    memcpy(mine.row, smem.data + at, 16);
  }
  collective(LoadMatrix, i.line, &mine, deal_matrices<N, TRANS>);
}

struct Fragments {
  float* d;
  const u32 *a, *b;
  u32 e; // metadata of mma.sp
};

// A number rounded to TF32, as cvt.rna.tf32.f32 does.
inline u32 tf32_of(u32 bits) {
  if ((bits & 0x7fffffff) < 0x7f800000) bits += 0x1000;
  return bits & ~0x1fffu;
}

// Four numbers at once.
typedef float F4 __attribute__((vector_size(16)));
typedef u32 U4 __attribute__((vector_size(16)));
typedef i32 I4 __attribute__((vector_size(16)));

// The values of 16-bit floats, one in each u32.
template <class T> inline F4 wide4(U4 x);
template <> inline F4 wide4<bf16>(U4 x) { return bits_as<F4>(x << 16); }
template <> inline F4 wide4<f16>(U4 x) {
  U4 a = x & 0x7fff;
  U4 special = bits_as<U4>(bits_as<I4>(a) >= 0x7c00) & 0x7f800000;
  return bits_as<F4>(bits_as<U4>(bits_as<F4>(a << 13) * 0x1p112f) | special | (x & 0x8000) << 16);
}

// The matrices of one mma: A is 16×K, B is K×8, D is 16×8.
template <int K> struct Matrices {
  alignas(16) float a[16][K], b[K][8], d[16][8];

  void take_sums(const Warp& w) {
    for (int lane = 0; lane < 32; lane++) {
      const float* f = static_cast<Fragments*>(w.args[lane])->d;
      int g = lane / 4, t = lane % 4 * 2;
      memcpy(&d[g][t], f, 8);
      memcpy(&d[g + 8][t], f + 2, 8);
    }
  }
  // D += A·B, in order of k.
  void multiply() {
    for (int i = 0; i < 16; i += 4) {
      F4 sum[4][2];
      memcpy(sum, d[i], sizeof sum);
      for (int k = 0; k < K; k++) {
        F4 row[2];
        memcpy(row, b[k], sizeof row);
        for (int j = 0; j < 4; j++) {
          sum[j][0] += a[i + j][k] * row[0];
          sum[j][1] += a[i + j][k] * row[1];
        }
      }
      memcpy(d[i], sum, sizeof sum);
    }
  }
  void give_sums(const Warp& w) {
    for (int lane = 0; lane < 32; lane++) {
      float* f = static_cast<Fragments*>(w.args[lane])->d;
      int g = lane / 4, t = lane % 4 * 2;
      memcpy(f, &d[g][t], 8);
      memcpy(f + 2, &d[g + 8][t], 8);
    }
  }
};

// Products of 16-bit floats by a whole warp.
template <class T> void multiply_warp(Warp& w) {
  if (w.full != ~0u) fault("divergence", m.line, -1, -1, "mma in a warp of fewer than 32 threads");
  Matrices<16> x;
  x.take_sums(w);
  for (int lane = 0; lane < 32; lane++) {
    auto* f = static_cast<Fragments*>(w.args[lane]);
    int g = lane / 4, t = lane % 4 * 2;
    U4 pairs;
    memcpy(&pairs, f->a, sizeof pairs);
    F4 lo = wide4<T>(pairs & 0xffff), hi = wide4<T>(pairs >> 16);
    for (int k = 0; k < 4; k++) {
      float* to = &x.a[g + 8 * (k & 1)][t + 4 * (k & 2)];
      to[0] = lo[k];
      to[1] = hi[k];
    }
    F4 column = wide4<T>(U4{f->b[0] & 0xffff, f->b[0] >> 16, f->b[1] & 0xffff, f->b[1] >> 16});
    x.b[t][g] = column[0];
    x.b[t + 1][g] = column[1];
    x.b[t + 8][g] = column[2];
    x.b[t + 9][g] = column[3];
  }
  x.multiply();
  x.give_sums(w);
}
DM_ONCE_OF(void multiply_warp<f16>(Warp&))
DM_ONCE_OF(void multiply_warp<bf16>(Warp&))

DM_ONCE void multiply_warp_tf32(Warp& w) {
  if (w.full != ~0u) fault("divergence", m.line, -1, -1, "mma in a warp of fewer than 32 threads");
  Matrices<8> x;
  x.take_sums(w);
  auto tf32 = [](u32 bits) { return bits_as<float>(bits & ~0x1fffu); };
  for (int lane = 0; lane < 32; lane++) {
    auto* f = static_cast<Fragments*>(w.args[lane]);
    int g = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) x.a[g + 8 * (k & 1)][t + 2 * (k & 2)] = tf32(f->a[k]);
    x.b[t][g] = tf32(f->b[0]);
    x.b[t + 4][g] = tf32(f->b[1]);
  }
  x.multiply();
  x.give_sums(w);
}

}  // namespace emu

template <class T> DM_FN void ldmatrix_x4(u32 (&r)[4], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<4, false>(r, s, At(i, at)); }
template <class T> DM_FN void ldmatrix_x4_trans(u32 (&r)[4], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<4, true>(r, s, At(i, at)); }
template <class T> DM_FN void ldmatrix_x2(u32 (&r)[2], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<2, false>(r, s, At(i, at)); }
template <class T> DM_FN void ldmatrix_x2_trans(u32 (&r)[2], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<2, true>(r, s, At(i, at)); }

template <class T> DM_FN void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2] DM_LINE) {
  emu::Fragments mine{d, a, b};
  emu::collective(emu::Multiply, at, &mine, emu::multiply_warp<T>);
}

template <class T, int Half> DM_FN void mma_sp_m16n8k32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[4], u32 e DM_LINE) {
  emu::Fragments mine{d, a, b, e};
  emu::collective(emu::Multiply, at, &mine, [](emu::Warp& w) {
    if (w.full != ~0u) emu::fault("divergence", emu::m.line, -1, -1, "mma.sp in a warp of fewer than 32 threads");
    emu::Matrices<32> x;
    x.take_sums(w);
    memset(x.a, 0, sizeof x.a);
    const auto number = [](u32 pair, int i) { return emu::wide4<T>(emu::U4{i ? pair >> 16 : pair & 0xffff, 0, 0, 0})[0]; };
    for (int lane = 0; lane < 32; lane++) {
      auto* f = static_cast<emu::Fragments*>(w.args[lane]);
      int g = lane / 4, t = lane % 4;
      for (int k = 0; k < 4; k++) {
        int row = g + 8 * (k & 1), group = t + 4 * (k >> 1); // a register has the two numbers of a group
        u32 e = static_cast<emu::Fragments*>(w.args[g * 4 + 2 * Half + group / 4])->e >> (16 * (k & 1) + 4 * (group % 4));
        int first = e & 3, second = e >> 2 & 3;
        if (first >= second) emu::fault("plan", emu::m.line, -1, -1, "mma.sp with metadata that does not rise: columns %d and %d of a group of four", first, second);
        x.a[row][4 * group + first] = number(f->a[k], 0);
        x.a[row][4 * group + second] = number(f->a[k], 1);
        for (int i = 0; i < 2; i++) x.b[2 * t + 8 * k + i][g] = number(f->b[k], i);
      }
    }
    x.multiply();
    x.give_sums(w);
  });
}

DM_FN u32 round_tf32(u32 bits) { return emu::tf32_of(bits); }

DM_FN void mma_m16n8k8_tf32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2] DM_LINE) {
  emu::Fragments mine{d, a, b};
  emu::collective(emu::Multiply, at, &mine, emu::multiply_warp_tf32);
}

template <class T> DM_FN u32 pack2(float lo, float hi) {
  return u32(narrow<T>(lo).bits) | u32(narrow<T>(hi).bits) << 16;
}

}  // namespace dm
