// Attention on the vector units: every element type and depth, computed in f32
// or f64.
#pragma once

namespace dm {

// A block of 256 threads owns 16 * N rows and loops over the rows of the other side,
// 16 * N at a time; a thread has N x N scores: rows ty + 16 i, columns
// tx + 16 j, with ty = thread / 16 and tx = thread % 16.
template <int N_> struct AttentionFma {
  static constexpr int N = N_, BM = 16 * N, BN = 16 * N, threads = 256;
};

// Wide are rows of Depth elements in shared memory as Acc, padded with zeros to a
// multiple of 16. The 16-byte pieces of sixteen rows lie in different banks.
template <int Depth, class Acc> struct Wide {
  static constexpr int V = 16 / int(sizeof(Acc));
  static constexpr int padded = (Depth + 15) / 16 * 16, pitch = padded + V, each = padded / 16;

  template <int N, class X>
  DM_FN static void load(Shared<Acc> to, const X& from, i64 matrix, i32 first, i32 rows) {
    using M = detail::Matrices<X, Depth>;
    using T = typename M::elem;
    const i64 base = M::at(matrix, rows);
    constexpr int W = Depth % V == 0 ? V : 1, pieces = padded / W;
    for (i32 i = thread(); i < N * pieces; i += 256) {
      const i32 row = i / pieces, col = i % pieces * W;
      Vec<T, W> in;
      const bool is = first + row < rows && col < Depth;
      if (is) in = M::data(from).template load<W>(base + i64(first + row) * M::row + col);
      Vec<Acc, W> out;
DM_UNROLL
      for (int e = 0; e < W; e++) out[e] = is ? Acc(wide(in[e])) : Acc(0);
      to.template store<W>(row * pitch + col, out);
    }
  }
  // s = X · Yᵀ of the thread's rows.
  template <int N> DM_FN static void rows_by_rows(Acc (&s)[N][N], Shared<Acc> x, Shared<Acc> y) {
    const i32 tx = thread() % 16, ty = thread() / 16;
DM_UNROLL
    for (int i = 0; i < N; i++)
DM_UNROLL
      for (int j = 0; j < N; j++) s[i][j] = 0;
DM_NO_UNROLL
    for (i32 k = 0; k < padded; k += V) {
      Vec<Acc, V> a[N], b[N];
DM_UNROLL
      for (int i = 0; i < N; i++) a[i] = x.template load<V>((ty + 16 * i) * pitch + k);
DM_UNROLL
      for (int j = 0; j < N; j++) b[j] = y.template load<V>((tx + 16 * j) * pitch + k);
DM_UNROLL
      for (int e = 0; e < V; e++)
DM_UNROLL
        for (int i = 0; i < N; i++)
DM_UNROLL
          for (int j = 0; j < N; j++) s[i][j] = fma(a[i][e], b[j][e], s[i][j]);
    }
  }
  // sums += P · Y, P in shared memory, in rows of 16 * N + V elements.
  template <int N> DM_FN static void add_columns(Acc (&sums)[N][each], Shared<Acc> p, Shared<Acc> y) {
    const i32 tx = thread() % 16, ty = thread() / 16;
DM_NO_UNROLL
    for (i32 k = 0; k < 16 * N; k += V) {
      Vec<Acc, V> a[N];
DM_UNROLL
      for (int i = 0; i < N; i++) a[i] = p.template load<V>((ty + 16 * i) * (16 * N + V) + k);
DM_UNROLL
      for (int e = 0; e < V; e++)
DM_UNROLL
        for (int j = 0; j < each; j++) {
          const Acc b = y[(k + e) * pitch + tx + 16 * j];
DM_UNROLL
          for (int i = 0; i < N; i++) sums[i][j] = fma(a[i][e], b, sums[i][j]);
        }
    }
  }
  template <int N, class Y>
  DM_FN static void store(const Acc (&sums)[N][each], const Acc (&factor)[N], const Y& to, i64 matrix, i32 first, i32 rows) {
    using M = detail::Matrices<Y, Depth>;
    const i64 base = M::at(matrix, rows);
    const i32 tx = thread() % 16, ty = thread() / 16;
DM_UNROLL
    for (int i = 0; i < N; i++)
DM_UNROLL
      for (int j = 0; j < each; j++)
        if (first + ty + 16 * i < rows && tx + 16 * j < Depth) M::data(to).store(base + i64(first + ty + 16 * i) * M::row + tx + 16 * j, narrow<typename M::elem>(sums[i][j] * factor[i]));
  }
};

namespace detail {

// Reduces v over the sixteen threads of a row.
template <class F, class Acc> DM_FN Acc row_reduce(Acc v) {
DM_UNROLL
  for (int m = 8; m > 0; m /= 2) v = F::of(v, shuffle_xor(v, m));
  return v;
}

// Stores the thread's part of a tile; the threads that read its rows are of the
// same warp.
template <int N, class Acc> DM_FN void put_tile(Shared<Acc> to, const Acc (&s)[N][N]) {
  constexpr int pitch = 16 * N + 16 / int(sizeof(Acc));
  const i32 tx = thread() % 16, ty = thread() / 16;
  sync_warp();
DM_UNROLL
  for (int i = 0; i < N; i++)
DM_UNROLL
    for (int j = 0; j < N; j++) to[(ty + 16 * i) * pitch + tx + 16 * j] = s[i][j];
  sync_warp();
}

}  // namespace detail

// attention_fma is attention_mma for the vector units.
template <class Tile, class S, int Splits, class Acc, class Queries, class Keys, class Values, class Mask, class Y, class Lse, class Step = Nothing>
DM_FN void attention_fma(Arena arena, const Queries& q, const Keys& k, const Values& v, const Mask& mask, const Y& y, const Lse& lse, const Step& drop_step = {}) {
  using D = Wide<S::depth, Acc>;
  using V = Wide<S::value, Acc>;
  using Score = Scores<S, Acc, Mask, Step>;
  constexpr int N = Tile::N, BN = Tile::BN;
  using Where = Span<S, false, Tile::BM, BN, Score::skips>;
  constexpr i32 tiles = Where::blocks * S::heads;
  const Where span(block() % tiles);
  const Part part(block() / tiles, Splits, span.n);
  const i32 head = span.matrix, first = span.first, tx = thread() % 16, ty = thread() / 16;
  const i64 kv = head / S::group;
  const Score scores(mask, drop_step, head);
  const Shared<Acc> qs = arena.take<Acc>(Tile::BM * D::pitch), ks = arena.take<Acc>(BN * D::pitch), vs = arena.take<Acc>(BN * V::pitch), ps = arena.take<Acc>(Tile::BM * (BN + D::V));
  D::template load<Tile::BM>(qs, q, head, first, S::queries);

  Acc sums[N][V::each], most[N], total[N];
DM_UNROLL
  for (int i = 0; i < N; i++) {
    most[i] = Score::least(), total[i] = 0;
DM_UNROLL
    for (int j = 0; j < V::each; j++) sums[i][j] = 0;
  }
DM_NO_UNROLL
  for (i32 step = part.from; step < part.to; step++) {
    const i32 keys = step * BN;
    sync();
    D::template load<BN>(ks, k, kv, keys, S::keys);
    V::template load<BN>(vs, v, kv, keys, S::keys);
    sync();
    Acc s[N][N];
    D::rows_by_rows(s, qs, ks);
DM_UNROLL
    for (int i = 0; i < N; i++) {
      const i32 query = first + ty + 16 * i;
      Acc m = most[i];
DM_UNROLL
      for (int j = 0; j < N; j++) {
        const i32 key = keys + tx + 16 * j;
        s[i][j] = scores.score(s[i][j], query, key);
        if (!Score::sees(query, key)) s[i][j] = Score::least();
        m = max(m, s[i][j]);
      }
      m = detail::row_reduce<detail::Max>(m);
      const Acc base = m == Score::least() ? Acc(0) : Score::below(m); // no key seen so far
      const Acc factor = Score::exponential(most[i], base);
      most[i] = m;
      total[i] *= factor;
DM_UNROLL
      for (int j = 0; j < N; j++) {
        s[i][j] = Score::exponential(s[i][j], base);
        total[i] += s[i][j];
        if constexpr (Score::drops) {
          if (!scores.keeps(query, keys + tx + 16 * j)) s[i][j] = 0;
        }
      }
DM_UNROLL
      for (int j = 0; j < V::each; j++) sums[i][j] *= factor;
    }
    detail::put_tile(ps, s);
    V::add_columns(sums, ps, vs);
  }
  const i64 base = (i64(part.number) * S::heads + head) * S::queries;
  Acc factor[N];
DM_UNROLL
  for (int i = 0; i < N; i++) {
    const Acc sum = detail::row_reduce<detail::Sum>(total[i]);
    // A query that sees no key has the mean NaN, but not for one of its splits.
    const bool none = most[i] == Score::least();
    factor[i] = Splits == 1 ? Acc(S::keep) / sum : none ? Acc(0) : 1 / sum;
    const i32 query = first + ty + 16 * i;
    if constexpr (given<Lse>) {
      const Acc none_seen = Splits == 1 ? most[i] - most[i] : most[i];
      if (tx == 0 && query < S::queries) lse.store(base + query, none ? none_seen : Score::lse(most[i], sum));
    }
  }
  if constexpr (given<Y>) V::store(sums, factor, y, i64(part.number) * S::heads + head, first, S::queries);
}

namespace detail {

// The probabilities p of a tile and the slopes ds of its scores from the
// products s and dy · v, for a thread's rows and columns; ByKeys: rows are keys.
template <bool ByKeys, class S, class Score, int N, class Acc>
DM_FN void slopes(Acc (&p)[N][N], Acc (&ds)[N][N], const Score& scores, i32 head, i32 queries, i32 keys, In<Acc> lse, In<Acc> delta) {
  const i32 tx = thread() % 16, ty = thread() / 16;
DM_UNROLL
  for (int a = 0; a < N; a++) {
    const i32 query = queries + (ByKeys ? tx : ty) + 16 * a;
    const bool is = query < S::queries;
    const Acc sum = is ? Score::below_lse(lse[i64(head) * S::queries + query]) : Acc(0);
    const Acc mean = is ? delta[i64(head) * S::queries + query] : Acc(0);
DM_UNROLL
    for (int b = 0; b < N; b++) {
      const i32 key = keys + (ByKeys ? ty : tx) + 16 * b;
      Acc& prob = ByKeys ? p[b][a] : p[a][b];
      Acc& slope = ByKeys ? ds[b][a] : ds[a][b];
      const Acc score = scores.score(prob, query, key);
      prob = Score::exponential(Score::sees(query, key) ? score : Score::least(), sum);
      const Acc keep = !Score::drops || scores.keeps(query, key) ? Acc(S::keep) : Acc(0);
      slope = prob * (slope * keep - mean);
      prob *= keep;
    }
  }
}

}  // namespace detail

// attention_grad_fma is attention_grad_mma for the vector units.
template <class Tile, class S, bool ByKeys, class Acc, class X, class XV, class Y, class YV, class Mask, class DX, class DV, class Step = Nothing>
DM_FN void attention_grad_fma(Arena arena, const X& x, const XV& xv, const Y& y, const YV& yv, In<Acc> lse, In<Acc> delta, const Mask& mask, const DX& dx, const DV& dv, const Step& drop_step = {}) {
  using D = Wide<S::depth, Acc>;
  using V = Wide<S::value, Acc>;
  using Score = Scores<S, Acc, Mask, Step>;
  constexpr int N = Tile::N, BN = Tile::BN;
  using Where = Span<S, ByKeys, Tile::BM, BN, Score::skips>;
  const Where span(block());
  const i32 first = span.first;
  const Shared<Acc> xs = arena.take<Acc>(Tile::BM * D::pitch), xvs = arena.take<Acc>(Tile::BM * V::pitch);
  const Shared<Acc> ys = arena.take<Acc>(BN * D::pitch), yvs = arena.take<Acc>(BN * V::pitch), ps = arena.take<Acc>(Tile::BM * (BN + D::V));
  D::template load<Tile::BM>(xs, x, span.matrix, first, Where::own);
  V::template load<Tile::BM>(xvs, xv, span.matrix, first, Where::own);

  Acc sums[N][D::each], sums_v[N][V::each], factor[N];
DM_UNROLL
  for (int i = 0; i < N; i++) {
DM_UNROLL
    for (int j = 0; j < D::each; j++) sums[i][j] = 0;
DM_UNROLL
    for (int j = 0; j < V::each; j++) sums_v[i][j] = 0;
  }
DM_NO_UNROLL
  for (i32 step = 0; step < span.n; step++) {
    const i32 head = span.head(step), other = span.other(step);
    const i64 matrix = ByKeys ? head : head / S::group;
    sync();
    D::template load<BN>(ys, y, matrix, other, Where::others);
    V::template load<BN>(yvs, yv, matrix, other, Where::others);
    sync();
    const Score scores(mask, drop_step, head);
    Acc p[N][N], ds[N][N];
    D::rows_by_rows(p, xs, ys);
    V::rows_by_rows(ds, xvs, yvs);
    detail::slopes<ByKeys, S>(p, ds, scores, head, ByKeys ? other : first, ByKeys ? first : other, lse, delta);
    if constexpr (given<DV>) {
      detail::put_tile(ps, p);
      V::add_columns(sums_v, ps, yvs);
    }
    if constexpr (given<DX>) {
      detail::put_tile(ps, ds);
      D::add_columns(sums, ps, ys);
    }
  }
  if constexpr (given<DX>) {
DM_UNROLL
    for (int i = 0; i < N; i++) factor[i] = Acc(S::scale);
    D::store(sums, factor, dx, span.matrix, first, Where::own);
  }
  if constexpr (given<DV>) {
DM_UNROLL
    for (int i = 0; i < N; i++) factor[i] = 1;
    V::store(sums_v, factor, dv, span.matrix, first, Where::own);
  }
}

// attention_grad_mask_fma is the gradient of the mask: a block loops over all heads
// that a tile of the mask is broadcast to. One block for each matrix of the mask
// and tile of its rows and columns.
template <class Tile, class S, class Acc, class T, class Queries, class Keys, class Values, class Mask, class Step = Nothing>
DM_FN void attention_grad_mask_fma(Arena arena, const Queries& q, const Keys& k, const Values& v, In<T> dy, In<Acc> lse, In<Acc> delta, const Mask& mask, Out<T> dmask, const Step& drop_step = {}) {
  using D = Wide<S::depth, Acc>;
  using V = Wide<S::value, Acc>;
  using Score = Scores<S, Acc, Mask, Step>;
  constexpr int N = Tile::N, B = Tile::BM;
  constexpr i32 query_tiles = detail::tiles(S::queries, B), key_tiles = detail::tiles(S::keys, B);
  constexpr bool one_row = S::mask_row == 0, one_col = S::mask_col == 0;
  const i32 tx = thread() % 16, ty = thread() / 16;
  i32 index = block();
  const i32 key_tile = one_col ? 0 : index % key_tiles;
  index /= one_col ? 1 : key_tiles;
  const i32 query_tile = one_row ? 0 : index % query_tiles, matrix = index / (one_row ? 1 : query_tiles);
  const Shared<Acc> qs = arena.take<Acc>(B * D::pitch), ks = arena.take<Acc>(B * D::pitch), vs = arena.take<Acc>(B * V::pitch), dys = arena.take<Acc>(B * V::pitch);

  Acc sums[N][N];
DM_UNROLL
  for (int i = 0; i < N; i++)
DM_UNROLL
    for (int j = 0; j < N; j++) sums[i][j] = 0;
DM_NO_UNROLL
  for (i32 repeat = 0; repeat < S::mask_repeats; repeat++) {
    const i32 head = S::mask_head(matrix, repeat);
    const i64 kv = head / S::group;
    const Score scores(mask, drop_step, head);
DM_NO_UNROLL
    for (i32 row = one_row ? 0 : query_tile; row < (one_row ? query_tiles : query_tile + 1); row++)
DM_NO_UNROLL
      for (i32 col = one_col ? 0 : key_tile; col < (one_col ? key_tiles : key_tile + 1); col++) {
        if (Score::skips && col * B > row * B + B - 1 + Score::shift) continue;
        sync();
        D::template load<B>(qs, q, head, row * B, S::queries);
        V::template load<B>(dys, dy, head, row * B, S::queries);
        D::template load<B>(ks, k, kv, col * B, S::keys);
        V::template load<B>(vs, v, kv, col * B, S::keys);
        sync();
        Acc p[N][N], ds[N][N];
        D::rows_by_rows(p, qs, ks);
        V::rows_by_rows(ds, dys, vs);
        detail::slopes<false, S>(p, ds, scores, head, row * B, col * B, lse, delta);
DM_UNROLL
        for (int i = 0; i < N; i++)
DM_UNROLL
          for (int j = 0; j < N; j++) sums[i][j] += ds[i][j];
      }
  }
  constexpr i32 rows = one_row ? 1 : S::queries, cols = one_col ? 1 : S::keys;
  const i64 base = i64(matrix) * rows * cols;
  if constexpr (one_col) {
DM_UNROLL
    for (int i = 0; i < N; i++) {
      Acc sum = 0;
DM_UNROLL
      for (int j = 0; j < N; j++) sum += sums[i][j];
      sums[i][0] = detail::row_reduce<detail::Sum>(sum);
    }
  }
  if constexpr (one_row) { // the rows' sums are combined in shared memory
    sync();
DM_UNROLL
    for (int j = 0; j < (one_col ? 1 : N); j++) {
      Acc sum = 0;
DM_UNROLL
      for (int i = 0; i < N; i++) sum += sums[i][j];
      qs[ty * 16 + tx] = sum;
      sync();
      sum = 0;
DM_UNROLL
      for (int i = 0; i < 16; i++) sum += qs[i * 16 + tx];
      sync();
      sums[0][j] = sum;
    }
  }
DM_UNROLL
  for (int i = 0; i < (one_row ? 1 : N); i++)
DM_UNROLL
    for (int j = 0; j < (one_col ? 1 : N); j++) {
      const i32 row = one_row ? 0 : query_tile * B + ty + 16 * i, col = one_col ? 0 : key_tile * B + tx + 16 * j;
      if (row < rows && col < cols && (!one_row || ty == 0) && (!one_col || tx == 0)) dmask.store(base + i64(row) * cols + col, narrow<T>(sums[i][j]));
    }
}

}  // namespace dm
