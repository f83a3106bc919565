// Attention to the keys that segments list, without scores in memory: a query is computed by a warp,
// or by several, whose teams of lanes read one key each, in vectors. Each team has a softmax of its own,
// relative to the greatest of the scores that it has seen; at the end they are joined (Dao,
// FlashAttention-2, arXiv 2307.08691; Rahman et al., FusedMM, arXiv 2011.06391).
//
// A generated kernel passes a struct S:
//
//   static constexpr dm::i32 heads, group;       // that share a key head
//   static constexpr dm::i32 queries, depth, value;
//   static constexpr dm::i64 entries;            // coordinates that there is room for
//   static constexpr dm::i32 rows, columns;      // queries of a segment, keys of a coordinate
//   static constexpr dm::i64 blocks;             // of keys
//   static constexpr double scale, slope;        // slope: of scores below 0
//   static constexpr bool adds;                  // a score is a sum, of depth 1
//   static constexpr dm::i64 bias_head;          // from the bias of a head to the next
//   static constexpr double leak;                // with weights: of elements below 0 of a sum
//   static constexpr dm::i64 weights_head, weights_queries; // and as bias_head; neighbouring queries that have the same
//   static constexpr dm::i32 lanes, warps;       // of a team; of a query
//   static constexpr dm::i32 deep, wide;         // elements of a vector of q and k, and of v and y
//   static constexpr dm::i32 chunk;              // elements of v that a block has
//   static constexpr dm::i32 ahead;              // keys that a team reads together
//   static constexpr dm::i64 q_start, q_head, q_row, k_start, …; // where matrices and rows of q, k, v and y begin
#pragma once

namespace dm {

namespace detail {

// Row is what a lane of a team has of a row of Count elements: vectors of Width, Lanes of them apart.
template <class Acc, int Count, int Width, int Lanes> struct Row {
  static constexpr int vectors = (Count + Width * Lanes - 1) / (Width * Lanes);
  static constexpr bool whole = Count % (Width * Lanes) == 0;
  Acc x[vectors * Width];

  DM_FN static i32 at(int i, i32 lane) { return (i * Lanes + lane) * Width; }
  // Whether registers hold a row.
  static constexpr bool held = vectors * Width * int(sizeof(Acc)) <= 128;

  // The vectors of a row that begins at element `from` and has `count` elements; zeros behind them.
  template <class T> DM_FN void load(const In<T>& data, i64 from, i32 lane, i32 count) {
    Vec<T, Width> v[vectors];
DM_UNROLL
    for (int i = 0; i < vectors; i++) v[i] = data.template load<Width>(from + inside(i, lane, count));
DM_UNROLL
    for (int i = 0; i < vectors; i++) {
      const bool is = has(i, lane, count);
DM_UNROLL
      for (int e = 0; e < Width; e++) x[i * Width + e] = is ? Acc(wide(v[i][e])) : Acc(0);
    }
  }
  DM_FN static bool has(int i, i32 lane, i32 count) { return whole && Count == count || at(i, lane) < count; }
  // Where a vector is, or the first one where it is behind the end.
  DM_FN static i32 inside(int i, i32 lane, i32 count) { return has(i, lane, count) ? at(i, lane) : 0; }
  // An element of a weighted sum of x and y.
  template <class Leak> DM_FN static Acc leaky(Acc x, Acc y) {
    const Acc u = x + y;
    return u < Acc(0) ? u * Acc(Leak::leak) : u;
  }
  // The lane's part of the weighted sum of the row and y.
  template <class Leak> DM_FN Acc weighted(const Row& y, const Row& w) const {
    Acc sum = 0;
DM_UNROLL
    for (int i = 0; i < vectors * Width; i++) sum = fma(leaky<Leak>(x[i], y.x[i]), w.x[i], sum);
    return sum;
  }
  // weighted, of rows that are too long to be held.
  template <class Leak, class T> DM_FN static Acc streamed(const In<T>& x, i64 of_x, const In<T>& y, i64 of_y, const In<T>& w, i64 of_w, i32 lane) {
    Acc sum = 0;
DM_UNROLL_BY(2)
    for (int i = 0; i < vectors; i++) {
      const i32 at = inside(i, lane, Count);
      const Vec<T, Width> a = x.template load<Width>(of_x + at), b = y.template load<Width>(of_y + at), c = w.template load<Width>(of_w + at);
      Acc part = 0;
DM_UNROLL
      for (int e = 0; e < Width; e++) part = fma(leaky<Leak>(Acc(wide(a[e])), Acc(wide(b[e]))), Acc(wide(c[e])), part);
      sum += has(i, lane, Count) ? part : Acc(0);
    }
    return sum;
  }
  // The lane's part of the product of two rows that are too long to be held.
  template <class T> DM_FN static Acc streamed(const In<T>& x, i64 of_x, const In<T>& y, i64 of_y, i32 lane) {
    Acc sum = 0;
DM_UNROLL_BY(2)
    for (int i = 0; i < vectors; i++) {
      const Vec<T, Width> a = x.template load<Width>(of_x + inside(i, lane, Count)), b = y.template load<Width>(of_y + inside(i, lane, Count));
      Acc part = 0;
DM_UNROLL
      for (int e = 0; e < Width; e++) part = fma(Acc(wide(a[e])), Acc(wide(b[e])), part);
      sum += has(i, lane, Count) ? part : Acc(0);
    }
    return sum;
  }
  DM_FN Acc dot(const Row& y) const {
    Acc sum = 0;
DM_UNROLL
    for (int i = 0; i < vectors * Width; i++) sum = fma(x[i], y.x[i], sum);
    return sum;
  }
  // The lane's part of the sum of both.
  DM_FN Acc plus(const Row& y) const {
    Acc sum = 0;
DM_UNROLL
    for (int i = 0; i < vectors * Width; i++) sum += x[i] + y.x[i];
    return sum;
  }
  DM_FN void zero() {
DM_UNROLL
    for (int i = 0; i < vectors * Width; i++) x[i] = 0;
  }
  // x = x · by + y · p
  DM_FN void add(Acc by, Acc p, const Row& y) {
DM_UNROLL
    for (int i = 0; i < vectors * Width; i++) x[i] = fma(p, y.x[i], x[i] * by);
  }
};

// Online is a softmax of some of a row's keys, and the sum of values that it weighs.
template <class Acc, class Values> struct Online {
  Acc most, sum;
  Values y;

  DM_FN static Acc least() { return Acc(bits_as<float>(0xff800000u)); } // minus infinity
  DM_FN void begin() {
    most = least();
    sum = 0;
    y.zero();
  }
  // What scores are relative to: as long as all are minus infinity, 0.
  DM_FN static Acc base(Acc most) { return most == least() ? Acc(0) : most; }
  DM_FN static Acc exponential(Acc x) { return power_of_2(x * Acc(log2_e)); }
  // Adds another softmax, of which the lane has its own part of values.
  DM_FN void join(Acc other, Acc total, const Values& values) {
    const Acc now = max(most, other), to = base(now);
    const Acc mine = exponential(most - to), theirs = exponential(other - to);
    most = now;
    sum = fma(total, theirs, sum * mine);
    y.add(mine, theirs, values);
  }
};

// A score, which is multiplied by the slope where it is below 0.
template <class S, class Acc> DM_FN Acc sloped(Acc s) { return S::slope != 1 && s < Acc(0) ? s * Acc(S::slope) : s; }

// The entry of a segment that a position is, moved into the range of entries.
template <class S, class P> DM_FN i64 entry_of(const In<P>& positions, i64 i) {
  const i64 at = i64(positions[i]);
  return at < 0 ? 0 : at > S::entries ? S::entries : at;
}
// The block of keys that a coordinate names, moved into their range.
template <class S, class C> DM_FN i64 block_of(C coordinate) {
  if (C(-1) > C(0)) return u64(coordinate) < u64(S::blocks) ? i64(coordinate) : S::blocks - 1;
  return i64(coordinate) < 0 ? 0 : i64(coordinate) < S::blocks ? i64(coordinate) : S::blocks - 1;
}

}  // namespace detail

// segment_attention computes the queries of a block of 256 threads, 8 / S::warps of them, for the elements of v from
// block_y() · S::chunk on.
template <class S, class Acc, class T, class P, class C, class Bias, class Y, class Lse, class Weights>
DM_FN void segment_attention(Arena arena, const In<T>& q, const In<T>& k, const In<T>& v, const In<P>& positions, const In<C>& coordinates, const Bias& bias, const Y& y, const Lse& lse, const Weights& weights) {
  using Keys = detail::Row<Acc, S::depth, S::deep, S::lanes>;
  using Values = detail::Row<Acc, S::chunk, S::wide, S::lanes>;
  using Online = detail::Online<Acc, Values>;
  constexpr i32 teams = 32 / S::lanes, all = teams * S::warps, per_block = 8 / S::warps;
  constexpr i64 total = i64(S::heads) * S::queries;
  const i32 ln = lane() % S::lanes, team = warp() % S::warps * teams + lane() / S::lanes;
  const i64 number = i64(block()) * per_block + warp() / S::warps;
  const bool live = number < total;
  const i64 own = live ? number : total - 1;
  const i32 head = i32(own / S::queries), query = i32(own % S::queries), kv = head / S::group;
  const i32 first = block_y() * S::chunk, count = S::value - first < S::chunk ? S::value - first : S::chunk;
  const i64 begin = detail::entry_of<S>(positions, query / S::rows);
  i64 end = detail::entry_of<S>(positions, query / S::rows + 1);
  if (end < begin || !live) end = begin;
  const i32 keys = i32((end - begin) * S::columns);

  const i64 own_row = S::q_start + head * S::q_head + query * S::q_row, their_rows = S::k_start + kv * S::k_head;
  Keys mine;
  if constexpr (Keys::held) mine.load(q, own_row, ln, S::depth);
  [[maybe_unused]] Keys weighing;
  [[maybe_unused]] i64 own_weights = 0;
  if constexpr (given<Weights>) {
    own_weights = head * S::weights_head + query / S::weights_queries * S::depth;
    if constexpr (Keys::held) weighing.load(weights, own_weights, ln, S::depth);
  }
  Online o;
  o.begin();
DM_NO_UNROLL
  for (i32 from = 0; from < keys; from += all * S::ahead) {
    i64 at[S::ahead];
    Acc s[S::ahead];
DM_UNROLL
    for (int u = 0; u < S::ahead; u++) {
      const i32 key = from + u * all + team, one = key < keys ? key : 0;
      const i64 entry = begin + one / S::columns;
      at[u] = detail::block_of<S>(coordinates[entry]) * S::columns + one % S::columns;
    }
    if constexpr (Keys::held) {
      Keys theirs[S::ahead];
DM_UNROLL
      for (int u = 0; u < S::ahead; u++) theirs[u].load(k, their_rows + at[u] * S::k_row, ln, S::depth);
DM_UNROLL
      for (int u = 0; u < S::ahead; u++) {
        if constexpr (given<Weights>) s[u] = mine.template weighted<S>(theirs[u], weighing);
        else s[u] = S::adds ? mine.plus(theirs[u]) : mine.dot(theirs[u]);
      }
    } else {
DM_UNROLL
      for (int u = 0; u < S::ahead; u++) {
        if constexpr (given<Weights>) s[u] = Keys::template streamed<S>(q, own_row, k, their_rows + at[u] * S::k_row, weights, own_weights, ln);
        else s[u] = Keys::streamed(q, own_row, k, their_rows + at[u] * S::k_row, ln);
      }
    }
DM_UNROLL
    for (int m = S::lanes / 2; m > 0; m /= 2)
DM_UNROLL
      for (int u = 0; u < S::ahead; u++) s[u] += shuffle_xor(s[u], m);
    Acc now = o.most;
DM_UNROLL
    for (int u = 0; u < S::ahead; u++) {
      const i32 key = from + u * all + team;
      s[u] *= Acc(S::scale);
      if constexpr (given<Bias>) {
        if (key < keys) s[u] += Acc(wide(bias[head * S::bias_head + ((begin + key / S::columns) * S::rows + query % S::rows) * S::columns + key % S::columns]));
      }
      s[u] = detail::sloped<S>(s[u]);
      if (key < keys) now = max(now, s[u]);
    }
    const Acc to = Online::base(now);
    Acc by = Online::exponential(o.most - to);
    o.most = now;
    o.sum *= by;
    Values row[S::ahead];
DM_UNROLL
    for (int u = 0; u < S::ahead; u++) row[u].load(v, S::v_start + kv * S::v_head + at[u] * S::v_row + first, ln, count);
DM_UNROLL
    for (int u = 0; u < S::ahead; u++) {
      const Acc p = from + u * all + team < keys ? Online::exponential(s[u] - to) : Acc(0);
      o.sum += p;
      o.y.add(by, p, row[u]);
      by = 1;
    }
  }

  // The teams of a warp, then the warps of a query.
DM_UNROLL
  for (int m = S::lanes; m < 32; m *= 2) {
    Values other;
DM_UNROLL
    for (int i = 0; i < Values::vectors * S::wide; i++) other.x[i] = shuffle_xor(o.y.x[i], m);
    o.join(shuffle_xor(o.most, m), shuffle_xor(o.sum, m), other);
  }
  if constexpr (S::warps > 1) {
    constexpr i32 each = Values::vectors * S::wide * S::lanes;
    const Shared<Acc> sums = arena.take<Acc>(16), rows = arena.take<Acc>(8 * each);
    if (lane() < S::lanes) {
DM_UNROLL
      for (int i = 0; i < Values::vectors * S::wide; i++) rows[warp() * each + i * S::lanes + ln] = o.y.x[i];
    }
    if (lane() == 0) {
      sums[2 * warp()] = o.most;
      sums[2 * warp() + 1] = o.sum;
    }
    sync();
    if (warp() % S::warps == 0) {
DM_NO_UNROLL
      for (i32 w = warp() + 1; w < warp() + S::warps; w++) {
        Values other;
DM_UNROLL
        for (int i = 0; i < Values::vectors * S::wide; i++) other.x[i] = rows[w * each + i * S::lanes + ln];
        const Acc most = sums[2 * w], sum = sums[2 * w + 1];
        o.join(most, sum, other);
      }
    }
  }
  if (!live || warp() % S::warps != 0) return;
  if constexpr (given<Y>) {
    const Acc by = keys > 0 ? Acc(1) / o.sum : Acc(0);
    const i64 to = S::y_start + head * S::y_head + query * S::y_row + first;
    if (lane() < S::lanes) {
DM_UNROLL
      for (int i = 0; i < Values::vectors; i++) {
        if (Values::at(i, ln) >= count) continue;
        Vec<T, S::wide> out;
DM_UNROLL
        for (int e = 0; e < S::wide; e++) out[e] = narrow<T>(o.y.x[i * S::wide + e] * by);
        y.template store<S::wide>(to + Values::at(i, ln), out);
      }
    }
  }
  if constexpr (given<Lse>) {
    // Scores that are all minus infinity make NaN of what they touch.
    if (lane() == 0 && block_y() == 0) lse.store(own, keys > 0 ? log(o.sum) + o.most + (o.most - o.most) : Online::least());
  }
}

}  // namespace dm
