// The main loop on tensor cores by mma.sync (sm_80 up): f16, bf16 or, for TF32, f32 in
// shared memory, sums in f32. Copies to shared memory run Stages - 1 steps ahead.
#pragma once

namespace dm {

// MmaTile is a block's tile: BM x BN, BK deep, in warps of WM x WN, of elements of so many bytes.
template <int BM_, int BN_, int BK_, int WM_, int WN_, int Stages_, int Bytes = 2>
struct MmaTile {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, stages = Stages_;
  static constexpr int warps = BM / WM * (BN / WN), threads = warps * 32;
  static constexpr int group = 8; // of B's rows, where there are two products
  static constexpr int pitch = WN + 8; // of a slab of accumulators, in floats
  static constexpr int padding = Bytes == 4 ? 16 : 0; // of the lines of both operands
  static constexpr int pipeline = stages * (BM + BN + padding) * BK * Bytes, slabs = warps * 16 * pitch * 4;
  static constexpr int shared = pipeline > slabs ? pipeline : slabs; // bytes of dynamic shared memory
  static constexpr int step = 32 / Bytes; // of k that an mma multiplies
  static_assert(WM % 16 == 0 && WN % 16 == 0 && BK % step == 0, "whole fragments");
};

// A fragment of TF32 along k is one of 16 bits whose elements are halves of those of 32: ldmatrix gives a lane the same row and the
// number at lane() % 4. Along rows a lane reads its numbers: a[i] of row g + 8 (i & 1) at k = t + 4 (i >> 1), b[i] at k = t + 4 i.
template <class G, int N, class T>
DM_FN void numbers(u32 (&to)[N], Shared<T> s, i32 row, i32 k, int rows) {
  const i32 g = lane() / 4, t = lane() % 4;
  DM_UNROLL
  for (int i = 0; i < N; i++) {
    const i32 r = row + g + i % rows * 8;
    to[i] = bits_as<u32>(float(s[G::number(k + t + i / rows * 4, r)]));
  }
}

// rounded rounds a fragment's numbers to TF32.
template <class T, int N>
DM_FN void rounded(u32 (&x)[N]) {
  if constexpr (sizeof(T) == 4) {
    DM_UNROLL
    for (int i = 0; i < N; i++) x[i] = round_tf32(x[i]);
  }
}

template <class T>
DM_FN void multiply_fragments(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if constexpr (sizeof(T) == 4) mma_m16n8k8_tf32(d, a, b);
  else mma_m16n8k16<T>(d, a, b);
}

// fragments_a reads the fragments of A of a warp's rows, for a step of k: 16 x 16, or 16 x 8 of TF32.
template <class X, class G, int F, class T>
DM_FN void fragments_a(u32 (&to)[F][4], Shared<T> s, i32 row, i32 k) {
  const i32 l = lane();
  DM_UNROLL
  for (int i = 0; i < F; i++) {
    const i32 r = row + i * 16;
    if constexpr (X::along_k) {
      ldmatrix_x4(to[i], s, G::at(r + (l & 15), k / G::piece + (l >> 4)));
    } else if constexpr (sizeof(T) == 4) {
      numbers<G>(to[i], s, r, k, 2);
    } else {
      ldmatrix_x4_trans(to[i], s, G::at(k + (l & 7) + (l >> 4) * 8, r / 8 + ((l >> 3) & 1)));
    }
    rounded<T>(to[i]);
  }
}

// fragments_b reads the fragments of B of a warp's columns, 16 x 8 or 8 x 8, two at a time.
template <class X, class G, int F, class T>
DM_FN void fragments_b(u32 (&to)[F][2], Shared<T> s, i32 col, i32 k) {
  const i32 l = lane();
  DM_UNROLL
  for (int i = 0; i < F; i += 2) {
    const i32 c = col + i * 8;
    u32 r[4];
    if constexpr (X::along_k) {
      ldmatrix_x4(r, s, G::at(c + (l & 7) + (l >> 4) * 8, k / G::piece + ((l >> 3) & 1)));
    } else if constexpr (sizeof(T) == 4) {
      u32 one[2], next[2];
      numbers<G>(one, s, c, k, 1);
      numbers<G>(next, s, c + 8, k, 1);
      r[0] = one[0], r[1] = one[1], r[2] = next[0], r[3] = next[1];
    } else {
      ldmatrix_x4_trans(r, s, G::at(k + (l & 15), c / 8 + (l >> 4)));
    }
    rounded<T>(r);
    to[i][0] = r[0], to[i][1] = r[1], to[i + 1][0] = r[2], to[i + 1][1] = r[3];
  }
}

// mma_tile computes the tile at p, or a part of its steps.
template <class Tile, class S, class Walk, class A, class B, class Epilogue, class Left>
DM_FN void mma_tile(Arena arena, const A& a, const B& b, const Epilogue& epilogue, const Place& p, const GroupPart& own, const Left& shares) {
  using T = typename A::Elem;
  constexpr int FM = Tile::WM / 16, FN = Tile::WN / 8;
  using StageA = Stage<A, Tile::BM, Tile::BK, Tile::threads>;
  using StageB = Stage<B, Tile::BN, Tile::BK, Tile::threads>;
  Arena after = arena; // the slabs reuse the memory of the stages
  const Shared<T> as = arena.take<T>(Tile::stages * StageA::size), bs = arena.take<T>(Tile::stages * StageB::size);
  StageA load_a(a, p.z, p.m, own.depth);
  StageB load_b(b, p.z, p.n, own.depth);

  float acc[FM][FN][4];
  DM_UNROLL
  for (int i = 0; i < FM; i++)
    DM_UNROLL
    for (int j = 0; j < FN; j++)
      DM_UNROLL
      for (int e = 0; e < 4; e++) acc[i][j][e] = 0;

  const i32 steps = p.last - p.first;
  if constexpr (S::workers == 0) grid_dependency_wait(); // what stands before is computed from the block's number
  DM_UNROLL
  for (int s = 0; s < Tile::stages - 1; s++) {
    if (s < steps) {
      load_a.begin(as + s * StageA::size, own.from + (p.first + s) * Tile::BK);
      load_b.begin(bs + s * StageB::size, own.from + (p.first + s) * Tile::BK);
      load_a.finish(as + s * StageA::size);
      load_b.finish(bs + s * StageB::size);
    }
    cp_async_commit();
  }
  const i32 row = warp() / (Tile::BN / Tile::WN) * Tile::WM, col = warp() % (Tile::BN / Tile::WN) * Tile::WN;
  DM_NO_UNROLL
  for (i32 step = 0; step < steps; step++) {
    cp_async_wait<Tile::stages - 2>();
    sync();
    // The slot of the previous step is free now.
    const i32 ahead = step + Tile::stages - 1, slot = ahead % Tile::stages, now = step % Tile::stages;
    if (ahead < steps) {
      load_a.begin(as + slot * StageA::size, own.from + (p.first + ahead) * Tile::BK);
      load_b.begin(bs + slot * StageB::size, own.from + (p.first + ahead) * Tile::BK);
    }
    cp_async_commit();
    DM_UNROLL
    for (int k = 0; k < Tile::BK; k += Tile::step) {
      u32 fa[FM][4], fb[FN][2];
      fragments_a<A, StageA>(fa, as + now * StageA::size, row, k);
      fragments_b<B, StageB>(fb, bs + now * StageB::size, col, k);
      DM_UNROLL
      for (int i = 0; i < FM; i++)
        DM_UNROLL
        for (int j = 0; j < FN; j++) multiply_fragments<T>(acc[i][j], fa[i], fb[j]);
    }
    if (ahead < steps) {
      load_a.finish(as + slot * StageA::size);
      load_b.finish(bs + slot * StageB::size);
    }
  }
  cp_async_wait<0>();
  sync();

  if constexpr (S::workers > 0) {
    const auto sum = [&](int i) -> float& { return acc[i / 4 / FN][i / 4 % FN][i % 4]; };
    if (p.first > 0) {
      Walk::leave(shares, warp(), sum);
      return;
    }
    Walk::finish(shares, p, warp(), sum);
  }
  const i32 r = lane() / 4, c = lane() % 4 * 2;
  // The sums in two neighbouring columns of row h of fragment (x, j).
  const auto pair = [&](int x, int j, int h) {
    Vec<float, 2> v;
    v[0] = acc[x][j][h * 2], v[1] = acc[x][j][h * 2 + 1];
    return v;
  };
  if constexpr (S::cluster) {
    const TileSums<Tile, float, Tile::group> part{after.take<float>(TileSums<Tile, float, Tile::group>::size)};
    DM_UNROLL
    for (int x = 0; x < FM; x++)
      DM_UNROLL
      for (int j = 0; j < FN; j++)
        DM_UNROLL
        for (int h = 0; h < 2; h++) part.put(row + x * 16 + r + h * 8, col + j * 8 + c, pair(x, j, h));
    add_parts<Tile, S, Tile::warps>(part, epilogue, p, warp());
  } else {
    const Shared<float> slab = after.take<float>(Tile::warps * 16 * Tile::pitch) + warp() * 16 * Tile::pitch;
    const i32 z = p.z + p.split * S::batch;
    const i32 n = (p.n + col) / S::products;
    Rows<Tile::WN, Epilogue> rows;
    DM_NO_UNROLL
    for (i32 i = 0; i < FM; i++) { // the epilogue stands once in the machine code, as in gemm_wgmma
      DM_UNROLL
      for (int x = 0; x < FM; x++) {
        if (x != i) continue;
        DM_UNROLL
        for (int j = 0; j < FN; j++) {
          DM_UNROLL
          for (int h = 0; h < 2; h++) slab.template store<2>(slab_at<Tile::pitch>(r + h * 8, c + j * 8), pair(x, j, h));
        }
      }
      flush<Tile::WN, Tile::pitch, Tile::group, S>(slab, epilogue, rows, z, p.m + row + i * 16, n, p.below);
    }
    rows.template finish<S>(epilogue, z, (p.m + row) / Tile::WM, (S::m + Tile::BM - 1) / Tile::BM * (Tile::BM / Tile::WM), n);
  }
}

// gemm_mma computes the block's tile, or, as a worker that shares steps, all of its tiles and parts. Launch with Tile::threads threads and
// Tile::shared bytes, one block for each tile, matrix and split; those of a split may be a cluster, which takes room for TileSums. Workers are as many blocks.
template <class Tile, class S, class A, class B, class Epilogue, class Left = Unshared>
DM_FN void gemm_mma(Arena arena, const A& a, const B& b, const Epilogue& epilogue, const Left& shares = {}) {
  if constexpr (S::workers > 0) {
    using Walk = StreamK<S, Tile::BM, Tile::BN, Tile::BK, 1, 1, Tile::warps>;
    Walk walk;
    grid_dependency_wait();
    for (Place p; walk.next(p);) {
      mma_tile<Tile, S, Walk>(arena, a, b, epilogue, p, GroupPart{0, S::k}, shares);
      sync(); // the slabs are memory of the stages
    }
  } else {
    Place p = place<S, Tile::BM, Tile::BN, Tile::BK>(block());
    if constexpr (groups_read<S>) grid_dependency_wait(); // for what says where groups begin
    const GroupPart own = group_part<S, Tile::BM, Tile::BK>(p, a);
    if (S::groups == Groups::rows && p.below == 0) return;
    mma_tile<Tile, S, Unshared>(arena, a, b, epilogue, p, own, shares);
  }
}

}  // namespace dm
