// Attention to the blocks of keys that segments list, on tensor cores by mma.sync (sm_80 up): f16 or bf16, sums and
// the softmax in f32. A block of threads owns queries of one segment, 16 for each warp, and copies the next keys of the
// segment while it computes. The struct S is that of segment_attention.cuh; queries of a segment and keys of a coordinate are whole fragments.
#pragma once

namespace dm {

namespace detail {

// The matrices of an operand or the result, as S says.
template <class S> struct SegmentQueries {
  static constexpr i64 row = S::q_row;
  DM_FN static i64 at(i32 head) { return S::q_start + head * S::q_head; }
};
template <class S> struct SegmentKeys {
  static constexpr i64 row = S::k_row;
  DM_FN static i64 at(i32 head) { return S::k_start + head * S::k_head; }
};
template <class S> struct SegmentValues {
  static constexpr i64 row = S::v_row;
  DM_FN static i64 at(i32 head) { return S::v_start + head * S::v_head; }
};
template <class S> struct SegmentResults {
  static constexpr i64 row = S::y_row;
  DM_FN static i64 at(i32 head) { return S::y_start + head * S::y_head; }
};

}  // namespace detail

// segment_attention_mma computes Warps · 16 queries of a head, BN keys at a time. Launch a block of Warps warps for each.
template <int Warps, int BN, class S, class T, class P, class C, class Bias, class Y, class Lse>
DM_FN void segment_attention_mma(Arena arena, const In<T>& q, const In<T>& k, const In<T>& v, const In<P>& positions, const In<C>& coordinates, const Bias& bias, const Y& y, const Lse& lse) {
  using D = DepthLines<S::depth, T>;
  using V = DepthLines<S::value, T>;
  constexpr int FN = BN / 8, BM = Warps * 16, threads = Warps * 32;
  constexpr i32 tiles = S::queries / BM, parts = S::columns / BN;
  static_assert(S::rows % BM == 0 && S::columns % BN == 0 && BN % 16 == 0, "whole fragments of one segment");
  const i32 head = block() / tiles, first = block() % tiles * BM, kv = head / S::group, row = warp() * 16, l = lane();
  const i64 begin = detail::entry_of<S>(positions, first / S::rows), end = detail::entry_of<S>(positions, first / S::rows + 1);
  const i32 steps = end > begin ? i32(end - begin) * parts : 0;

  Arena after = arena; // the result reuses the memory of the queries
  const Shared<T> qs = arena.take<T>(BM * D::pitch), ks = arena.take<T>(2 * BN * D::pitch), vs = arena.take<T>(2 * BN * V::pitch);
  D::template load<BM, threads>(qs, View<T, detail::SegmentQueries<S>>{q}, head, first, S::queries);
  cp_async_commit(); // also where there are no keys
  const auto load = [&](i32 step) {
    const i32 key = i32(detail::block_of<S>(coordinates[begin + step / parts])) * S::columns + step % parts * BN;
    D::template load<BN, threads>(ks + step % 2 * BN * D::pitch, View<T, detail::SegmentKeys<S>>{k}, kv, key, i32(S::blocks) * S::columns);
    V::template load<BN, threads>(vs + step % 2 * BN * V::pitch, View<T, detail::SegmentValues<S>>{v}, kv, key, i32(S::blocks) * S::columns);
    cp_async_commit();
  };
  if (steps > 0) load(0);

  using Softmax = detail::Online<float, detail::Row<float, 1, 1, 1>>;
  float sums[1][V::fragments][4], most[2], total[2];
  detail::clear(sums);
DM_UNROLL
  for (int h = 0; h < 2; h++) most[h] = Softmax::least(), total[h] = 0;

DM_NO_UNROLL
  for (i32 step = 0; step < steps; step++) {
    cp_async_wait<0>();
    sync();
    if (step + 1 < steps) load(step + 1);
    float s[1][FN][4];
    detail::rows_by_rows<D>(s, qs, row, ks + step % 2 * BN * D::pitch);
DM_UNROLL
    for (int j = 0; j < FN; j++)
DM_UNROLL
      for (int e = 0; e < 4; e++) {
        s[0][j][e] *= float(S::scale);
        if constexpr (given<Bias>) {
          const i32 query = first % S::rows + row + e / 2 * 8 + l / 4, key = step % parts * BN + j * 8 + l % 4 * 2 + e % 2;
          s[0][j][e] += float(wide(bias[head * S::bias_head + ((begin + step / parts) * S::rows + query) * S::columns + key]));
        }
        s[0][j][e] = detail::sloped<S>(s[0][j][e]);
      }
DM_UNROLL
    for (int h = 0; h < 2; h++) {
      float m = most[h];
DM_UNROLL
      for (int j = 0; j < FN; j++) m = max(m, max(s[0][j][2 * h], s[0][j][2 * h + 1]));
      m = detail::quad_reduce<detail::Max>(m);
      const float base = Softmax::base(m), factor = Softmax::exponential(most[h] - base);
      most[h] = m;
      float sum = 0;
DM_UNROLL
      for (int j = 0; j < FN; j++)
DM_UNROLL
        for (int e = 2 * h; e < 2 * h + 2; e++) {
          s[0][j][e] = Softmax::exponential(s[0][j][e] - base);
          sum += s[0][j][e];
        }
      total[h] = total[h] * factor + sum;
DM_UNROLL
      for (int j = 0; j < V::fragments; j++) sums[0][j][2 * h] *= factor, sums[0][j][2 * h + 1] *= factor;
    }
    detail::add_columns<V>(sums, s, vs + step % 2 * BN * V::pitch);
  }

  cp_async_wait<0>();
  float factor[1][2];
DM_UNROLL
  for (int h = 0; h < 2; h++) {
    const float sum = detail::quad_reduce<detail::Sum>(total[h]);
    factor[0][h] = steps > 0 ? 1.0f / sum : 0.0f;
    if constexpr (given<Lse>) {
      // Scores that are all minus infinity make NaN of what they touch.
      if (l % 4 == 0) lse.store(i64(head) * S::queries + first + row + h * 8 + l / 4, steps > 0 ? log(sum) + most[h] + (most[h] - most[h]) : Softmax::least());
    }
  }
  if constexpr (given<Y>) {
    sync();
    const Shared<T> to = after.take<T>(BM * V::pitch);
    V::store(to, sums, factor, row, Placed<T, detail::SegmentResults<S>>{y}, head, first, S::queries);
  }
}

}  // namespace dm
