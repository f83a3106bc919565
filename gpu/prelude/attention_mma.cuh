// Attention on tensor cores by mma.sync (sm_80 up): f16 or bf16, or f32 rounded to TF32; sums and the
// softmax in f32. Depths are even and at most 256.
#pragma once

namespace dm {

// A block owns FM * 16 rows for each warp, and loops over the rows of the other side,
// BN at a time, copying the next tile while it computes.
template <int FM_, int Warps_, int BN_> struct AttentionMma {
  static constexpr int FM = FM_, warps = Warps_, BN = BN_;
  static constexpr int BM = FM * 16 * warps, threads = warps * 32, FN = BN / 8;
  static_assert(BN % 16 == 0, "whole fragments");
};

// DepthLines are rows of Depth elements of type T in shared memory, padded with zeros to
// whole fragments, whose chunks have 16 bytes. Those of eight rows lie in different banks, and so do the
// numbers of TF32 that lanes read down the rows.
template <int Depth, class T> struct DepthLines {
  static constexpr int padded = (Depth + 15) / 16 * 16, fragments = padded / 8, piece = 16 / sizeof(T), chunks = padded / piece;
  static constexpr bool swizzled = sizeof(T) == 2 && fragments % 8 == 0;
  static constexpr int pitch = swizzled ? padded : padded + piece;
  static constexpr int vector = detail::aligned_elements(Depth, sizeof(T));

  DM_FN static i32 at(i32 row, i32 chunk) { return row * pitch + (swizzled ? chunk ^ (row & 7) : chunk) * piece; }

  // Starts copying N rows, from row `first` of one of the operand's matrices.
  template <int N, int Threads, class X>
  DM_FN static void load(Shared<T> to, const X& from, i64 matrix, i32 first, i32 rows) {
    using M = detail::Matrices<X, Depth>;
    const i64 base = M::at(matrix, rows);
    constexpr int pieces = padded / vector, all = N * pieces;
    for (i32 i = thread(); i < all; i += Threads) {
      const i32 row = i / pieces, col = i % pieces * vector;
      cp_async<vector * sizeof(T)>(to, at(row, col / piece) + col % piece, M::data(from), base + i64(first + row) * M::row + col, first + row < rows && col < Depth);
    }
  }
  // Stores a warp's rows, its fragments times a factor of each of their rows,
  // through shared memory that no other warp uses.
  template <int FM, class Y>
  DM_FN static void store(Shared<T> s, const float (&x)[FM][fragments][4], const float (&factor)[FM][2], i32 row, const Y& to, i64 matrix, i32 first, i32 rows) {
    using M = detail::Matrices<Y, Depth>;
    const i64 base = M::at(matrix, rows);
    const i32 l = lane();
DM_UNROLL
    for (int i = 0; i < FM; i++)
DM_UNROLL
      for (int j = 0; j < fragments; j++)
DM_UNROLL
        for (int h = 0; h < 2; h++) {
          const float a = x[i][j][2 * h] * factor[i][h], b = x[i][j][2 * h + 1] * factor[i][h];
          const i32 place = at(row + i * 16 + h * 8 + l / 4, j * 8 / piece) + l % 4 * 2;
          if constexpr (sizeof(T) == 4) s.template store<2>(place, Vec<T, 2>{{a, b}});
          else s.template store<2>(place, bits_as<Vec<T, 2>>(pack2<T>(a, b)));
        }
    sync_warp();
    constexpr int pieces = Depth / vector;
    for (i32 i = l; i < FM * 16 * pieces; i += 32) {
      const i32 r = row + i / pieces, col = i % pieces * vector;
      if (first + r < rows) M::data(to).template store<vector>(base + i64(first + r) * M::row + col, s.template load<vector>(at(r, col / piece) + col % piece));
    }
  }
};

namespace detail {

template <int FM, int FN> DM_FN void clear(float (&x)[FM][FN][4]) {
DM_UNROLL
  for (int i = 0; i < FM; i++)
DM_UNROLL
    for (int j = 0; j < FN; j++)
DM_UNROLL
      for (int e = 0; e < 4; e++) x[i][j][e] = 0;
}

// The products of fragments of 16 rows and two times eight columns, of which a and b have a step of k.
template <class T> DM_FN void multiply_two(float (&left)[4], float (&right)[4], const u32 (&a)[4], const u32 (&b)[4]) {
  const u32 l[2] = {b[0], b[1]}, r[2] = {b[2], b[3]};
  if constexpr (sizeof(T) == 4) {
    mma_m16n8k8_tf32(left, a, l);
    mma_m16n8k8_tf32(right, a, r);
  } else {
    mma_m16n8k16<T>(left, a, l);
    mma_m16n8k16<T>(right, a, r);
  }
}

// Rounds a fragment's numbers to TF32.
template <class T> DM_FN void round_fragment(u32 (&x)[4]) {
  if constexpr (sizeof(T) == 4) {
DM_UNROLL
    for (int i = 0; i < 4; i++) x[i] = round_tf32(x[i]);
  }
}

// s = X · Yᵀ: rows of x from `row` on, and all rows of y. A step of k is two chunks; a fragment of TF32 is
// one of 16 bits whose elements are halves of numbers.
template <class L, int FM, int FN, class T>
DM_FN void rows_by_rows(float (&s)[FM][FN][4], Shared<T> x, i32 row, Shared<T> y) {
  const i32 l = lane();
  constexpr int turns = L::chunks >= 16 ? 4 : 8; // fewer for large depths, whose addresses take registers that there are none of
  clear(s);
DM_UNROLL_BY(turns)
  for (int k = 0; k < L::chunks; k += 2) {
    u32 a[FM][4];
DM_UNROLL
    for (int i = 0; i < FM; i++) {
      ldmatrix_x4(a[i], x, L::at(row + i * 16 + (l & 15), k + (l >> 4)));
      round_fragment<T>(a[i]);
    }
DM_UNROLL
    for (int j = 0; j < FN; j += 2) {
      u32 b[4];
      ldmatrix_x4(b, y, L::at(j * 8 + (l & 7) + (l >> 4) * 8, k + ((l >> 3) & 1)));
      round_fragment<T>(b);
DM_UNROLL
      for (int i = 0; i < FM; i++) multiply_two<T>(s[i][j], s[i][j + 1], a[i], b);
    }
  }
}

// sums += P · Y: P's columns, rounded to T, are the rows of y. A lane holds neighbouring columns of P; the k of a
// fragment of TF32 are t and t + 4 for lane t of a row, which may be any two, and so are columns 2t and 2t + 1 of P and the same rows of y.
template <class L, int FM, int FN, class T>
DM_FN void add_columns(float (&sums)[FM][L::fragments][4], const float (&p)[FM][FN][4], Shared<T> y) {
  const i32 l = lane();
  constexpr int step = sizeof(T) == 4 ? 1 : 2;
DM_UNROLL
  for (int k = 0; k < FN; k += step) {
    u32 a[FM][4];
DM_UNROLL
    for (int i = 0; i < FM; i++) {
DM_UNROLL
      for (int h = 0; h < 4; h++) {
        if constexpr (sizeof(T) == 4) a[i][h] = bits_as<u32>(p[i][k][h % 2 * 2 + h / 2]);
        else a[i][h] = pack2<T>(p[i][k + h / 2][h % 2 * 2], p[i][k + h / 2][h % 2 * 2 + 1]);
      }
      round_fragment<T>(a[i]);
    }
DM_UNROLL
    for (int j = 0; j < L::fragments; j += 2) {
      u32 b[4];
      if constexpr (sizeof(T) == 4) {
DM_UNROLL
        for (int h = 0; h < 4; h++) b[h] = bits_as<u32>(float(y[L::at(k * 8 + l % 4 * 2 + h % 2, 0) + (j + h / 2) * 8 + l / 4]));
        round_fragment<T>(b);
      } else {
        ldmatrix_x4_trans(b, y, L::at(k * 8 + (l & 15), j + (l >> 4)));
      }
DM_UNROLL
      for (int i = 0; i < FM; i++) multiply_two<T>(sums[i][j], sums[i][j + 1], a[i], b);
    }
  }
}

}  // namespace detail

// attention_mma computes a tile of queries of one head. Launch with
// Tile::threads threads, one block for each split, head and tile of queries. With
// more than one split y and lse are partial results for attention_join.
template <class Tile, class S, int Splits, class Queries, class Keys, class Values, class Mask, class Y, class Lse, class Step = Nothing>
DM_FN void attention_mma(Arena arena, const Queries& q, const Keys& k, const Values& v, const Mask& mask, const Y& y, const Lse& lse, const Step& drop_step = {}) {
  using T = detail::Elem<Queries>;
  using D = DepthLines<S::depth, T>;
  using V = DepthLines<S::value, T>;
  using Score = Scores<S, float, Mask, Step>;
  constexpr int FM = Tile::FM, FN = Tile::FN, BN = Tile::BN;
  using Where = Span<S, false, Tile::BM, BN, Score::skips>;
  constexpr i32 tiles = Where::blocks * S::heads;
  const Where span(block() % tiles);
  const Part part(block() / tiles, Splits, span.n);
  const i32 head = span.matrix, first = span.first, row = warp() * FM * 16, l = lane();
  const i64 kv = head / S::group;
  const Score scores(mask, drop_step, head);

  Arena after = arena; // the result reuses the memory of the queries
  const Shared<T> qs = arena.take<T>(Tile::BM * D::pitch), ks = arena.take<T>(2 * BN * D::pitch), vs = arena.take<T>(2 * BN * V::pitch);
  D::template load<Tile::BM, Tile::threads>(qs, q, head, first, S::queries);
  const auto load = [&](i32 step) {
    D::template load<BN, Tile::threads>(ks + step % 2 * BN * D::pitch, k, kv, step * BN, S::keys);
    V::template load<BN, Tile::threads>(vs + step % 2 * BN * V::pitch, v, kv, step * BN, S::keys);
    cp_async_commit();
  };
  if (part.from < part.to) load(part.from);

  float sums[FM][V::fragments][4], most[FM][2], total[FM][2];
  detail::clear(sums);
DM_UNROLL
  for (int i = 0; i < FM; i++)
DM_UNROLL
    for (int h = 0; h < 2; h++) most[i][h] = Score::least(), total[i][h] = 0;

DM_NO_UNROLL
  for (i32 step = part.from; step < part.to; step++) {
    cp_async_wait<0>();
    sync();
    if (step + 1 < part.to) load(step + 1);
    const i32 key = step * BN;
    if (Score::skips && key > first + row + FM * 16 - 1 + Score::shift) continue; // hidden from all queries of this warp
    float s[FM][FN][4];
    detail::rows_by_rows<D>(s, qs, row, ks + step % 2 * BN * D::pitch);
DM_UNROLL
    for (int i = 0; i < FM; i++)
DM_UNROLL
      for (int j = 0; j < FN; j++)
DM_UNROLL
        for (int e = 0; e < 4; e++) s[i][j][e] = scores.score(s[i][j][e], first + row + i * 16 + e / 2 * 8 + l / 4, key + j * 8 + l % 4 * 2 + e % 2);
    if (key + BN > S::keys || (S::causal && key + BN - 1 > first + row + Score::shift)) {
DM_UNROLL
      for (int i = 0; i < FM; i++)
DM_UNROLL
        for (int j = 0; j < FN; j++)
DM_UNROLL
          for (int e = 0; e < 4; e++)
            if (!Score::sees(first + row + i * 16 + e / 2 * 8 + l / 4, key + j * 8 + l % 4 * 2 + e % 2)) s[i][j][e] = Score::least();
    }
DM_UNROLL
    for (int i = 0; i < FM; i++)
DM_UNROLL
      for (int h = 0; h < 2; h++) {
        float m = most[i][h];
DM_UNROLL
        for (int j = 0; j < FN; j++) m = max(m, max(s[i][j][2 * h], s[i][j][2 * h + 1]));
        m = detail::quad_reduce<detail::Max>(m);
        const float base = m == Score::least() ? 0.0f : Score::below(m); // no key seen so far
        const float factor = Score::exponential(most[i][h], base);
        most[i][h] = m;
        float sum = 0;
DM_UNROLL
        for (int j = 0; j < FN; j++)
DM_UNROLL
          for (int e = 2 * h; e < 2 * h + 2; e++) {
            s[i][j][e] = Score::exponential(s[i][j][e], base);
            sum += s[i][j][e];
          }
        total[i][h] = total[i][h] * factor + sum;
DM_UNROLL
        for (int j = 0; j < V::fragments; j++) sums[i][j][2 * h] *= factor, sums[i][j][2 * h + 1] *= factor;
      }
    if constexpr (Score::drops) {
DM_UNROLL
      for (int i = 0; i < FM; i++)
DM_UNROLL
        for (int j = 0; j < FN; j++)
DM_UNROLL
          for (int e = 0; e < 4; e++)
            if (!scores.keeps(first + row + i * 16 + e / 2 * 8 + l / 4, key + j * 8 + l % 4 * 2 + e % 2)) s[i][j][e] = 0;
    }
    detail::add_columns<V>(sums, s, vs + step % 2 * BN * V::pitch);
  }

  cp_async_wait<0>();
  const i64 base = (i64(part.number) * S::heads + head) * S::queries;
  float factor[FM][2];
DM_UNROLL
  for (int i = 0; i < FM; i++)
DM_UNROLL
    for (int h = 0; h < 2; h++) {
      const float sum = detail::quad_reduce<detail::Sum>(total[i][h]);
      // A query that sees no key has the mean NaN, but not for one of its splits.
      const bool none = most[i][h] == Score::least();
      factor[i][h] = Splits == 1 ? float(S::keep) / sum : none ? 0.0f : 1.0f / sum;
      const i32 query = first + row + i * 16 + h * 8 + l / 4;
      if constexpr (given<Lse>) {
        const float none_seen = Splits == 1 ? most[i][h] - most[i][h] : most[i][h];
        if (l % 4 == 0 && query < S::queries) lse.store(base + query, none ? none_seen : Score::lse(most[i][h], sum));
      }
    }
  if constexpr (given<Y> && Splits == 1) {
    sync();
    const Shared<T> to = after.take<T>(Tile::BM * V::pitch);
    V::store(to, sums, factor, row, y, i64(part.number) * S::heads + head, first, S::queries);
  } else if constexpr (given<Y>) {
DM_UNROLL
    for (int i = 0; i < FM; i++)
DM_UNROLL
      for (int j = 0; j < V::fragments; j++)
DM_UNROLL
        for (int h = 0; h < 2; h++) {
          const i32 query = first + row + i * 16 + h * 8 + l / 4, col = j * 8 + l % 4 * 2;
          if (query >= S::queries || col >= S::value) continue;
          Vec<float, 2> two;
          two[0] = sums[i][j][2 * h] * factor[i][h], two[1] = sums[i][j][2 * h + 1] * factor[i][h];
          y.template store<2>((base + query) * S::value + col, two);
        }
  }
}

// attention_grad_mma computes the gradient for the rows that a block owns: those
// of a tile of keys (dk and dv), or of queries (dq, as dk). x and xv are the
// owned rows of the products' left sides, y and yv the others': with ByKeys
// k, v, q, dy, else q, dy, k, v.
template <class Tile, class S, bool ByKeys, class X, class XV, class Y, class YV, class Mask, class DX, class DV, class Step = Nothing>
DM_FN void attention_grad_mma(Arena arena, const X& x, const XV& xv, const Y& y, const YV& yv, In<float> lse, In<float> delta, const Mask& mask, const DX& dx, const DV& dv, const Step& drop_step = {}) {
  using T = detail::Elem<X>;
  using D = DepthLines<S::depth, T>;
  using V = DepthLines<S::value, T>;
  using Score = Scores<S, float, Mask, Step>;
  constexpr int FM = Tile::FM, FN = Tile::FN, BN = Tile::BN;
  using Where = Span<S, ByKeys, Tile::BM, BN, Score::skips>;
  const Where span(block());
  const i32 first = span.first, row = warp() * FM * 16, l = lane();

  const Shared<T> xs = arena.take<T>(Tile::BM * D::pitch), xvs = arena.take<T>(Tile::BM * V::pitch);
  const Shared<T> ys = arena.take<T>(2 * BN * D::pitch), yvs = arena.take<T>(2 * BN * V::pitch);
  const Shared<float> rows = arena.take<float>(4 * BN); // ByKeys: two tiles of lse and of delta
  D::template load<Tile::BM, Tile::threads>(xs, x, span.matrix, first, Where::own);
  V::template load<Tile::BM, Tile::threads>(xvs, xv, span.matrix, first, Where::own);
  const auto load = [&](i32 step) {
    const i64 matrix = ByKeys ? span.head(step) : span.matrix / S::group;
    const i32 other = span.other(step), slot = step % 2;
    D::template load<BN, Tile::threads>(ys + slot * BN * D::pitch, y, matrix, other, Where::others);
    V::template load<BN, Tile::threads>(yvs + slot * BN * V::pitch, yv, matrix, other, Where::others);
    if constexpr (ByKeys) {
      constexpr int vector = S::queries % 4 == 0 ? 4 : 1;
      for (i32 i = thread() * vector; i < BN; i += Tile::threads * vector) {
        cp_async<4 * vector>(rows, slot * 2 * BN + i, lse, matrix * S::queries + other + i, other + i < S::queries);
        cp_async<4 * vector>(rows, slot * 2 * BN + BN + i, delta, matrix * S::queries + other + i, other + i < S::queries);
      }
    }
    cp_async_commit();
  };
  load(0);

  float my_lse[FM][2], my_delta[FM][2];
  if constexpr (!ByKeys) {
DM_UNROLL
    for (int i = 0; i < FM; i++)
DM_UNROLL
      for (int h = 0; h < 2; h++) {
        const i32 query = first + row + i * 16 + h * 8 + l / 4;
        const bool is = query < S::queries;
        my_lse[i][h] = is ? Score::below_lse(lse[i64(span.matrix) * S::queries + query]) : 0.0f;
        my_delta[i][h] = is ? delta[i64(span.matrix) * S::queries + query] : 0.0f;
      }
  }
  float sums[FM][D::fragments][4], sums_v[FM][V::fragments][4];
  detail::clear(sums);
  detail::clear(sums_v);

DM_NO_UNROLL
  for (i32 step = 0; step < span.n; step++) {
    cp_async_wait<0>();
    sync();
    if (step + 1 < span.n) load(step + 1);
    const i32 other = span.other(step), slot = step % 2;
    // The queries and keys of the warp's tile.
    const i32 queries = ByKeys ? other : first + row, keys = ByKeys ? first + row : other;
    constexpr i32 nq = ByKeys ? BN : FM * 16, nk = ByKeys ? FM * 16 : BN;
    if (Score::skips && keys > queries + nq - 1 + Score::shift) continue;
    const Score scores(mask, drop_step, span.head(step));
    const auto query = [&](int i, int j, int e) { return queries + (ByKeys ? j * 8 + l % 4 * 2 + e % 2 : i * 16 + e / 2 * 8 + l / 4); };
    const auto key = [&](int i, int j, int e) { return keys + (ByKeys ? i * 16 + e / 2 * 8 + l / 4 : j * 8 + l % 4 * 2 + e % 2); };
    float p[FM][FN][4];
    detail::rows_by_rows<D>(p, xs, row, ys + slot * BN * D::pitch);
DM_UNROLL
    for (int i = 0; i < FM; i++)
DM_UNROLL
      for (int j = 0; j < FN; j++)
DM_UNROLL
        for (int e = 0; e < 4; e++) p[i][j][e] = scores.score(p[i][j][e], query(i, j, e), key(i, j, e));
    if (queries + nq > S::queries || keys + nk > S::keys || (S::causal && keys + nk - 1 > queries + Score::shift)) {
DM_UNROLL
      for (int i = 0; i < FM; i++)
DM_UNROLL
        for (int j = 0; j < FN; j++)
DM_UNROLL
          for (int e = 0; e < 4; e++)
            if (!Score::sees(query(i, j, e), key(i, j, e))) p[i][j][e] = Score::least();
    }
DM_UNROLL
    for (int j = 0; j < FN; j++) {
      Vec<float, 2> sum;
      if constexpr (ByKeys) sum = rows.template load<2>(slot * 2 * BN + j * 8 + l % 4 * 2);
DM_UNROLL
      for (int i = 0; i < FM; i++)
DM_UNROLL
        for (int e = 0; e < 4; e++) p[i][j][e] = Score::exponential(p[i][j][e], ByKeys ? Score::below_lse(sum[e % 2]) : my_lse[i][e / 2]);
    }
    float ds[FM][FN][4];
    if constexpr (given<DX>) detail::rows_by_rows<V>(ds, xvs, row, yvs + slot * BN * V::pitch);
DM_UNROLL
    for (int j = 0; j < FN; j++) {
      Vec<float, 2> sum;
      if constexpr (ByKeys) sum = rows.template load<2>(slot * 2 * BN + BN + j * 8 + l % 4 * 2);
DM_UNROLL
      for (int i = 0; i < FM; i++)
DM_UNROLL
        for (int e = 0; e < 4; e++) {
          const float keep = !Score::drops ? 1.0f : scores.keeps(query(i, j, e), key(i, j, e)) ? float(S::keep) : 0.0f;
          if constexpr (given<DX>) ds[i][j][e] = p[i][j][e] * (ds[i][j][e] * keep - (ByKeys ? sum[e % 2] : my_delta[i][e / 2]));
          if constexpr (given<DV>) p[i][j][e] *= keep;
        }
    }
    if constexpr (given<DV>) detail::add_columns<V>(sums_v, p, yvs + slot * BN * V::pitch);
    if constexpr (given<DX>) detail::add_columns<D>(sums, ds, ys + slot * BN * D::pitch);
  }

  sync();
  float factor[FM][2];
  const auto all = [&](float f) {
DM_UNROLL
    for (int i = 0; i < FM; i++) factor[i][0] = factor[i][1] = f;
  };
  if constexpr (given<DX>) {
    all(float(S::scale));
    D::store(xs, sums, factor, row, dx, span.matrix, first, Where::own);
  }
  if constexpr (given<DV>) {
    all(1.0f);
    V::store(xvs, sums_v, factor, row, dv, span.matrix, first, Where::own);
  }
}

}  // namespace dm
