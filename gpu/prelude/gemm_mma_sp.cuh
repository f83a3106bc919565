// The main loop of products of which one operand has two numbers in each group of four along k (2:4), by mma.sp (sm_80 up): f16 or
// bf16 in shared memory, sums in f32. That operand is W, A or B; the other one is X. Its functor has the numbers that W stores: k counts
// those, half as many as X has, and
//
//   static constexpr bool structured = true;           // false of the other operand
//   DM_FN auto metadata() const;                       // the tensor with its metadata: words for 32 columns each, as
//                                                      // mma_sp_m16n8k32 has them, the first sixteen in the low half
//   DM_FN i64 word(i32 z, i32 r, i32 w) const;         // where word w of row r is in it; two neighbours are aligned
//
// k is a multiple of 64, which a step has. mma.sp computes the sums of 16 rows of W and 8 of X: where W is B, a tile's transposed.
#pragma once

namespace dm {

// MmaSpTile is a block's tile: BM x BN, in warps of WM x WN.
template <int BM_, int BN_, int WM_, int WN_, int Stages_>
struct MmaSpTile {
  static constexpr int BM = BM_, BN = BN_, BK = 64, WM = WM_, WN = WN_, stages = Stages_;
  static constexpr int warps = BM / WM * (BN / WN), threads = warps * 32;
  static constexpr int group = 8;
  static constexpr int pitch = WN + 8; // of a slab of accumulators, in floats
  static_assert(WM % 16 == 0 && WN % 16 == 0, "whole fragments");
};

// Metadata is that of a step's rows of W in shared memory: two words of each of Rows rows.
template <class W, int Rows, int Threads>
struct Metadata {
  static constexpr int size = Rows * 2;
  const W& w;
  const i32 z, row, last; // the matrix, the tile's first row and the last one that there is, whose metadata stand for those behind it

  DM_FN void begin(Shared<u32> to, i32 step) const {
    DM_UNROLL
    for (int i = 0; i < Rows; i += Threads) {
      const i32 r = i + thread();
      if (Rows % Threads == 0 || r < Rows) cp_async<8>(to, r * 2, w.metadata(), w.word(z, row + r < last ? row + r : last, step * 2));
    }
  }

  // words are what the lane passes with fragments of W from row r on, two at a time: of the first where lane() % 4 < 2, else of the second. k is
  // 0, or 1 for the second half of a step.
  template <int F>
  DM_FN static void words(u32 (&to)[F / 2], Shared<u32> from, i32 r, i32 k) {
    const i32 g = lane() / 4, t = lane() % 4;
    DM_UNROLL
    for (int i = 0; i < F / 2; i++) {
      const i32 at = r + i * 32 + t / 2 * 16 + g;
      const u32 upper = from[at * 2 + k], lower = from[(at + 8) * 2 + k];
      to[i] = t % 2 == 0 ? (upper & 0xffff) | lower << 16 : upper >> 16 | (lower & 0xffff0000);
    }
  }
};

// StructuredOf is which of A and B is W.
template <bool First, class A, class B> struct StructuredOf {
  using Type = A;
  DM_FN static const A& of(const A& a, const B&) { return a; }
};
template <class A, class B> struct StructuredOf<false, A, B> {
  using Type = B;
  DM_FN static const B& of(const A&, const B& b) { return b; }
};

// gemm_mma_sp computes the block's tile. Launch with Tile::threads threads, one block for each tile, matrix and split.
template <class Tile, class S, class A, class B, class Epilogue>
DM_FN void gemm_mma_sp(Arena arena, const A& a, const B& b, const Epilogue& epilogue) {
  using T = typename A::Elem;
  constexpr bool rows_structured = A::structured; // W is A
  static_assert(A::structured != B::structured && S::products == 1 && !S::cluster && S::groups == Groups::none && S::k % Tile::BK == 0, "one product of two matrices");
  constexpr int WW = rows_structured ? Tile::WM : Tile::WN, WX = rows_structured ? Tile::WN : Tile::WM; // rows of W and of X of a warp
  constexpr int FW = WW / 16, FX = WX / 8;
  static_assert(FW % 2 == 0, "lanes hold the metadata of two fragments");
  using StageA = Stage<A, Tile::BM, A::structured ? Tile::BK / 2 : Tile::BK, Tile::threads>;
  using StageB = Stage<B, Tile::BN, B::structured ? Tile::BK / 2 : Tile::BK, Tile::threads>;
  using Words = Metadata<typename StructuredOf<rows_structured, A, B>::Type, rows_structured ? Tile::BM : Tile::BN, Tile::threads>;
  Arena after = arena; // the slabs reuse the memory of the stages
  const Shared<T> as = arena.take<T>(Tile::stages * StageA::size), bs = arena.take<T>(Tile::stages * StageB::size);
  const Shared<u32> es = arena.take<u32>(Tile::stages * Words::size);

  Place p = place<S, Tile::BM, Tile::BN, Tile::BK>(block());
  StageA load_a(a, p.z, p.m, A::structured ? S::k / 2 : S::k);
  StageB load_b(b, p.z, p.n, B::structured ? S::k / 2 : S::k);
  const Words words{StructuredOf<rows_structured, A, B>::of(a, b), p.z, rows_structured ? p.m : p.n, (rows_structured ? S::m : S::n) - 1};
  const auto begin = [&](i32 slot, i32 step) {
    load_a.begin(as + slot * StageA::size, step * (A::structured ? Tile::BK / 2 : Tile::BK));
    load_b.begin(bs + slot * StageB::size, step * (B::structured ? Tile::BK / 2 : Tile::BK));
    words.begin(es + slot * Words::size, step);
  };
  const auto finish = [&](i32 slot) {
    load_a.finish(as + slot * StageA::size);
    load_b.finish(bs + slot * StageB::size);
  };

  float acc[FW][FX][4];
  DM_UNROLL
  for (int i = 0; i < FW; i++)
    DM_UNROLL
    for (int j = 0; j < FX; j++)
      DM_UNROLL
      for (int e = 0; e < 4; e++) acc[i][j][e] = 0;

  const i32 steps = p.last - p.first;
  grid_dependency_wait(); // what stands before is computed from the block's number
  DM_UNROLL
  for (int s = 0; s < Tile::stages - 1; s++) {
    if (s < steps) {
      begin(s, p.first + s);
      finish(s);
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
    if (ahead < steps) begin(slot, p.first + ahead);
    cp_async_commit();
    DM_UNROLL
    for (int k = 0; k < 2; k++) {
      u32 fw[FW][4], lo[FX][2], hi[FX][2], e[FW / 2];
      if constexpr (rows_structured) {
        fragments_a<A, StageA>(fw, as + now * StageA::size, row, k * 16);
        fragments_b<B, StageB>(lo, bs + now * StageB::size, col, k * 32);
        fragments_b<B, StageB>(hi, bs + now * StageB::size, col, k * 32 + 16);
      } else {
        fragments_a<B, StageB>(fw, bs + now * StageB::size, col, k * 16);
        fragments_b<A, StageA>(lo, as + now * StageA::size, row, k * 32);
        fragments_b<A, StageA>(hi, as + now * StageA::size, row, k * 32 + 16);
      }
      Words::template words<FW>(e, es + now * Words::size, rows_structured ? row : col, k);
      DM_UNROLL
      for (int j = 0; j < FX; j++) {
        const u32 x[4] = {lo[j][0], lo[j][1], hi[j][0], hi[j][1]};
        DM_UNROLL
        for (int i = 0; i < FW; i += 2) {
          mma_sp_m16n8k32<T, 0>(acc[i][j], fw[i], x, e[i / 2]);
          mma_sp_m16n8k32<T, 1>(acc[i + 1][j], fw[i + 1], x, e[i / 2]);
        }
      }
    }
    if (ahead < steps) finish(slot);
  }
  cp_async_wait<0>();
  sync();

  const i32 g = lane() / 4, t = lane() % 4 * 2;
  const Shared<float> slab = after.take<float>(Tile::warps * 16 * Tile::pitch) + warp() * 16 * Tile::pitch;
  const i32 z = p.z + p.split * S::batch, n = p.n + col;
  Rows<Tile::WN, Epilogue> rows;
  DM_NO_UNROLL
  for (i32 i = 0; i < Tile::WM / 16; i++) { // the epilogue stands once in the machine code, as in gemm_mma
    DM_UNROLL
    for (int x = 0; x < Tile::WM / 16; x++) {
      if (x != i) continue;
      if constexpr (rows_structured) {
        DM_UNROLL
        for (int j = 0; j < FX; j++) {
          DM_UNROLL
          for (int h = 0; h < 2; h++) {
            Vec<float, 2> v;
            v[0] = acc[x][j][h * 2], v[1] = acc[x][j][h * 2 + 1];
            slab.template store<2>(slab_at<Tile::pitch>(g + h * 8, t + j * 8), v);
          }
        }
      } else {
        DM_UNROLL
        for (int f = 0; f < FW; f++) {
          DM_UNROLL
          for (int e = 0; e < 8; e++) // rows of X are the slab's
            slab[slab_at<Tile::pitch>(e / 4 * 8 + t + e % 2, f * 16 + g + e / 2 % 2 * 8)] = acc[f][x * 2 + e / 4][e % 4];
        }
      }
    }
    flush<Tile::WN, Tile::pitch, Tile::group, S>(slab, epilogue, rows, z, p.m + row + i * 16, n, p.below);
  }
  rows.template finish<S>(epilogue, z, (p.m + row) / Tile::WM, (S::m + Tile::BM - 1) / Tile::BM * (Tile::BM / Tile::WM), n);
}

}  // namespace dm
