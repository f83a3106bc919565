// The emulation of mma.cuh: the last lane of a warp to arrive does the work of all.
#pragma once

namespace dm {

namespace emu {

struct Rows {
  u8 row[16];
  u32* r;
};

template <int N, bool TRANS, class T> inline void load_matrices(u32 (&r)[N], const Shared<T>& s, At i) {
  static_assert(sizeof(T) == 2, "16-bit elements");
  Rows mine;
  mine.r = r;
  if (m.lane < 8 * N) {
    u32 at = s.check(i, 8);
    shared_read(at, 16, i.line);
    memcpy(mine.row, smem.data + at, 16);
  }
  collective(LoadMatrix, i.line, &mine, [](Warp& w) {
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
  });
}

struct Fragments {
  float* d;
  const u32 *a, *b;
};

typedef float Eight __attribute__((vector_size(32)));

// D += A·B of 16×K and K×8, both as plain arrays; sums in order of k.
template <int K> inline void multiply(Warp& w, const float (&a)[16][K], const Eight (&b)[K]) {
  Eight d[16];
  for (int lane = 0; lane < 32; lane++) {
    const float* f = static_cast<Fragments*>(w.args[lane])->d;
    int g = lane / 4, t = lane % 4 * 2;
    d[g][t] = f[0];
    d[g][t + 1] = f[1];
    d[g + 8][t] = f[2];
    d[g + 8][t + 1] = f[3];
  }
  for (int i = 0; i < 16; i++) {
    Eight sum = d[i];
    for (int k = 0; k < K; k++) sum += a[i][k] * b[k];
    d[i] = sum;
  }
  for (int lane = 0; lane < 32; lane++) {
    float* f = static_cast<Fragments*>(w.args[lane])->d;
    int g = lane / 4, t = lane % 4 * 2;
    f[0] = d[g][t];
    f[1] = d[g][t + 1];
    f[2] = d[g + 8][t];
    f[3] = d[g + 8][t + 1];
  }
}

template <class T> inline float half_of(u32 pair, int high) {
  return wide(bits_as<T>(u16(high ? pair >> 16 : pair)));
}

}  // namespace emu

template <class T> DM_FN void ldmatrix_x4(u32 (&r)[4], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<4, false>(r, s, At(i, at)); }
template <class T> DM_FN void ldmatrix_x4_trans(u32 (&r)[4], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<4, true>(r, s, At(i, at)); }
template <class T> DM_FN void ldmatrix_x2(u32 (&r)[2], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<2, false>(r, s, At(i, at)); }
template <class T> DM_FN void ldmatrix_x2_trans(u32 (&r)[2], Shared<T> s, i64 i DM_LINE) { emu::load_matrices<2, true>(r, s, At(i, at)); }

template <class T> DM_FN void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2] DM_LINE) {
  emu::Fragments mine{d, a, b};
  emu::collective(emu::Multiply, at, &mine, [](emu::Warp& w) {
    if (w.full != ~0u) emu::fault("divergence", emu::m.line, -1, -1, "mma in a warp of fewer than 32 threads");
    float x[16][16];
    emu::Eight y[16];
    for (int lane = 0; lane < 32; lane++) {
      auto* f = static_cast<emu::Fragments*>(w.args[lane]);
      int g = lane / 4, t = lane % 4 * 2;
      for (int h = 0; h < 2; h++) {
        x[g][t + h] = emu::half_of<T>(f->a[0], h);
        x[g + 8][t + h] = emu::half_of<T>(f->a[1], h);
        x[g][t + 8 + h] = emu::half_of<T>(f->a[2], h);
        x[g + 8][t + 8 + h] = emu::half_of<T>(f->a[3], h);
        y[t + h][g] = emu::half_of<T>(f->b[0], h);
        y[t + 8 + h][g] = emu::half_of<T>(f->b[1], h);
      }
    }
    emu::multiply<16>(w, x, y);
  });
}

DM_FN void mma_m16n8k8_tf32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2] DM_LINE) {
  emu::Fragments mine{d, a, b};
  emu::collective(emu::Multiply, at, &mine, [](emu::Warp& w) {
    if (w.full != ~0u) emu::fault("divergence", emu::m.line, -1, -1, "mma in a warp of fewer than 32 threads");
    float x[16][8];
    emu::Eight y[8];
    auto tf32 = [](u32 bits) { return bits_as<float>(bits & ~0x1fffu); };
    for (int lane = 0; lane < 32; lane++) {
      auto* f = static_cast<emu::Fragments*>(w.args[lane]);
      int g = lane / 4, t = lane % 4;
      x[g][t] = tf32(f->a[0]);
      x[g + 8][t] = tf32(f->a[1]);
      x[g][t + 4] = tf32(f->a[2]);
      x[g + 8][t + 4] = tf32(f->a[3]);
      y[t][g] = tf32(f->b[0]);
      y[t + 4][g] = tf32(f->b[1]);
    }
    emu::multiply<8>(w, x, y);
  });
}

template <class T> DM_FN u32 pack2(float lo, float hi) {
  return u32(narrow<T>(lo).bits) | u32(narrow<T>(hi).bits) << 16;
}

}  // namespace dm
