// The main loop on the vector units: any element type, sums in f32, f64 or an
// integer. Tiles lie in shared memory with k outermost, two steps of them.
#pragma once

namespace dm {

// FmaTile is a block's tile: BM x BN, BK deep; a thread computes TM x TN, in
// groups of four neighbours.
template <class Acc_, int BM_, int BN_, int BK_, int TM_, int TN_>
struct FmaTile {
  using Acc = Acc_;
  static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_;
  static constexpr int threads = BM / TM * (BN / TN);
  static constexpr int pitch_a = BM + 4, pitch_b = BN + 4; // of a line of k, in elements
  static constexpr int shared = 2 * BK * (pitch_a + pitch_b) * (int)sizeof(Acc); // bytes of dynamic shared memory
  static_assert(TM % 4 == 0 && TN % 4 == 0, "groups of four");
};

// Half is an accumulator that is rounded to f16 after every product and sum.
struct Half {
  float v;
  Half() = default;
  DM_FN explicit constexpr Half(float v) : v(v) {}
  DM_FN explicit operator float() const { return v; }
};

// result is a sum in the epilogue's type.
template <class Acc>
DM_FN Acc result(Acc sum) {
  return sum;
}
DM_FN float result(Half sum) { return sum.v; }

template <class Acc>
DM_FN void multiply_add(Acc& sum, Acc a, Acc b) {
  sum += a * b;
}
DM_FN void multiply_add(float& sum, float a, float b) { sum = fma(a, b, sum); }
DM_FN void multiply_add(double& sum, double a, double b) { sum = fma(a, b, sum); }
DM_FN void multiply_add(Half& sum, Half a, Half b) {
  sum.v = wide(narrow<f16>(sum.v + wide(narrow<f16>(a.v * b.v))));
}

// widened is an element in the accumulator's type.
template <class Acc, class T>
DM_FN Acc widened(T v) {
  return Acc(wide(v));
}

// four reads four neighbours in the widest loads.
template <class Acc>
DM_FN void four(Acc* to, Shared<Acc> s, i32 at) {
  constexpr int W = sizeof(Acc) <= 4 ? 4 : 2;
  DM_UNROLL
  for (int i = 0; i < 4; i += W) {
    const Vec<Acc, W> v = s.template load<W>(at + i);
    DM_UNROLL
    for (int j = 0; j < W; j++) to[i + j] = v[j];
  }
}

// Lines is the part of an operand that one step needs, BK lines of Rows
// elements already in the accumulator's type.
template <class Tile, class X, int Rows, int Pitch>
struct Lines {
  using T = typename X::Elem;
  using Acc = typename Tile::Acc;
  static constexpr int V = X::vector;
  static constexpr int line = (X::along_k ? Tile::BK : Rows) / V, lines = X::along_k ? Rows : Tile::BK;
  static constexpr int count = lines * line, each = (count + Tile::threads - 1) / Tile::threads;

  T held[each][V];

  DM_FN void begin(const X& x, i32 z, i32 row, i32 k, i32 depth) {
    DM_UNROLL
    for (int i = 0; i < each; i++) {
      const i32 c = thread() + i * Tile::threads;
      const i32 l = c / line, at = c % line * V;
      const i32 r = row + (X::along_k ? l : at), ki = k + (X::along_k ? at : l);
      if (c < count && x.has(r) && ki < depth) {
        x.load(held[i], z, r, ki);
      } else {
        DM_UNROLL
        for (int j = 0; j < V; j++) held[i][j] = T{};
      }
    }
  }
  DM_FN void finish(Shared<Acc> to) const {
    DM_UNROLL
    for (int i = 0; i < each; i++) {
      const i32 c = thread() + i * Tile::threads;
      const i32 l = c / line, at = c % line * V;
      if (c < count) {
        DM_UNROLL
        for (int j = 0; j < V; j++)
          to[X::along_k ? (at + j) * Pitch + l : l * Pitch + at + j] = widened<Acc>(held[i][j]);
      }
    }
  }
};

// gemm_fma computes one tile. Launch with Tile::threads threads and
// Tile::shared bytes, one block for each tile, matrix and split; those of a split may be a cluster, which takes room for TileSums.
template <class Tile, class S, class A, class B, class Epilogue>
DM_FN void gemm_fma(Arena arena, const A& a, const B& b, const Epilogue& epilogue) {
  using Acc = typename Tile::Acc;
  constexpr int GM = Tile::TM / 4, GN = Tile::TN / 4, across = Tile::BN / Tile::TN;
  constexpr int size_a = Tile::BK * Tile::pitch_a, size_b = Tile::BK * Tile::pitch_b;
  Place p = place<S, Tile::BM, Tile::BN, Tile::BK>(block());
  if constexpr (groups_read<S>) grid_dependency_wait(); // for what says where groups begin
  const GroupPart own = group_part<S, Tile::BM, Tile::BK>(p, a);
  if (S::groups == Groups::rows && p.below == 0) return;
  Arena after = arena; // the parts of a cluster reuse the memory of the stages
  const Shared<Acc> as = arena.take<Acc>(2 * size_a), bs = arena.take<Acc>(2 * size_b);
  Lines<Tile, A, Tile::BM, Tile::pitch_a> load_a;
  Lines<Tile, B, Tile::BN, Tile::pitch_b> load_b;

  Acc acc[Tile::TM][Tile::TN];
  DM_UNROLL
  for (int i = 0; i < Tile::TM; i++)
    DM_UNROLL
    for (int j = 0; j < Tile::TN; j++) acc[i][j] = Acc(0);

  // A thread's groups of four lie BM / GM and BN / GN apart, so that a warp
  // reads neighbours.
  const i32 row = thread() / across * 4, col = thread() % across * 4;
  const i32 steps = p.last - p.first;
  grid_dependency_wait(); // what stands before is computed from the block's number
  if (steps > 0) {
    load_a.begin(a, p.z, p.m, own.from + p.first * Tile::BK, own.depth);
    load_b.begin(b, p.z, p.n, own.from + p.first * Tile::BK, own.depth);
    load_a.finish(as);
    load_b.finish(bs);
  }
  sync();
  DM_NO_UNROLL
  for (i32 step = 0; step < steps; step++) {
    const Shared<Acc> now_a = as + step % 2 * size_a, now_b = bs + step % 2 * size_b;
    if (step + 1 < steps) {
      load_a.begin(a, p.z, p.m, own.from + (p.first + step + 1) * Tile::BK, own.depth);
      load_b.begin(b, p.z, p.n, own.from + (p.first + step + 1) * Tile::BK, own.depth);
    }
    DM_UNROLL
    for (int k = 0; k < Tile::BK; k++) {
      Acc fa[Tile::TM], fb[Tile::TN];
      DM_UNROLL
      for (int g = 0; g < GM; g++) four(fa + g * 4, now_a, k * Tile::pitch_a + row + g * (Tile::BM / GM));
      DM_UNROLL
      for (int g = 0; g < GN; g++) four(fb + g * 4, now_b, k * Tile::pitch_b + col + g * (Tile::BN / GN));
      DM_UNROLL
      for (int i = 0; i < Tile::TM; i++)
        DM_UNROLL
        for (int j = 0; j < Tile::TN; j++) multiply_add(acc[i][j], fa[i], fb[j]);
    }
    if (step + 1 < steps) {
      load_a.finish(as + (step + 1) % 2 * size_a);
      load_b.finish(bs + (step + 1) % 2 * size_b);
    }
    sync();
  }

  if constexpr (S::cluster) {
    constexpr int W = sizeof(Acc) <= 4 ? 4 : 2;
    using Sums = TileSums<Tile, Acc, Tile::BN / GN>;
    const Sums part{after.take<Acc>(Sums::size)};
    DM_UNROLL
    for (int i = 0; i < Tile::TM; i++)
      DM_UNROLL
      for (int j = 0; j < Tile::TN; j += W) {
        Vec<Acc, W> v;
        DM_UNROLL
        for (int e = 0; e < W; e++) v[e] = acc[i][j + e];
        part.put(row + i % 4 + i / 4 * (Tile::BM / GM), col + j % 4 + j / 4 * (Tile::BN / GN), v);
      }
    add_parts<Tile, S, Tile::threads / 32>(part, epilogue, p, warp());
  } else {
    // Of two products a thread's second half of columns is that of the second one.
    constexpr int V = Epilogue::vector, P = S::products, F = Epilogue::reductions, width = Tile::TN / P;
    static_assert(V <= 4 && (P == 1 || GN == P) && 32 % across == 0, "runs and pairs are a thread's own, rows of threads a warp's");
    const i32 z = p.z + p.split * S::batch;
    float columns[F > 0 ? F : 1][width]; // reductions over rows
    if constexpr (F > 0) {
      DM_UNROLL
      for (int f = 0; f < F; f++)
        DM_UNROLL
        for (int j = 0; j < width; j++) columns[f][j] = Epilogue::first(f);
    }
    DM_NO_UNROLL
    for (i32 i = 0; i < Tile::TM; i++) { // the epilogue stands once in the machine code, as in gemm_wgmma
      Acc sums[Tile::TN];
      DM_UNROLL
      for (int x = 0; x < Tile::TM; x++) {
        if (x != i) continue;
        DM_UNROLL
        for (int j = 0; j < Tile::TN; j++) sums[j] = acc[x][j];
      }
      const i32 m = p.m + row + i % 4 + i / 4 * (Tile::BM / GM);
      float line[F > 0 ? F : 1]; // reductions over the row's columns
      if constexpr (F > 0) {
        DM_UNROLL
        for (int f = 0; f < F; f++) line[f] = Epilogue::first(f);
      }
      DM_UNROLL
      for (int j = 0; j < width; j += V) {
        const i32 n = p.n / P + col + j % 4 + j / 4 * (Tile::BN / GN);
        if (m < p.below && n < S::n) {
          decltype(result(Acc(0))) run[P][V];
          DM_UNROLL
          for (int q = 0; q < P; q++)
            DM_UNROLL
            for (int e = 0; e < V; e++) run[q][e] = result(sums[q * width + j + e]);
          float value[F > 0 ? F : 1][V];
          call(epilogue, z, m, n, run, value);
          if constexpr (F > 0) {
            DM_UNROLL
            for (int f = 0; f < F; f++)
              DM_UNROLL
              for (int e = 0; e < V; e++) {
                columns[f][j + e] = Epilogue::join(f, columns[f][j + e], value[f][e]);
                line[f] = Epilogue::join(f, line[f], value[f][e]);
              }
          }
        }
      }
      if constexpr (F > 0) {
        DM_UNROLL
        for (int f = 0; f < F; f++) {
          if (Epilogue::over_rows(f)) continue;
          DM_UNROLL
          for (int d = across / 2; d > 0; d /= 2) line[f] = Epilogue::join(f, line[f], shuffle_xor(line[f], d));
          if (lane() % across == 0 && m < S::m) epilogue.part(f, i64(p.n / Tile::BN) * S::batch * S::m + i64(z) * S::m + m, line[f]);
        }
      }
    }
    if constexpr (F > 0) {
      DM_UNROLL
      for (int f = 0; f < F; f++) {
        if (!Epilogue::over_rows(f)) continue;
        DM_UNROLL
        for (int j = 0; j < width; j++) {
          float x = columns[f][j];
          DM_UNROLL
          for (int d = across; d < 32; d *= 2) x = Epilogue::join(f, x, shuffle_xor(x, d));
          const i32 n = p.n / P + col + j % 4 + j / 4 * (Tile::BN / GN);
          constexpr i32 warps = Tile::threads / 32, parts = (S::m + Tile::BM - 1) / Tile::BM * warps;
          if (lane() < across && n < S::n) epilogue.part(f, (i64(z) * parts + p.m / Tile::BM * warps + warp()) * S::n + n, x);
        }
      }
    }
  }
}

}  // namespace dm
