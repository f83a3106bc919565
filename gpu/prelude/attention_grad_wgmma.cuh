// The gradient of attention on Hopper (sm_90a), as attention_grad_mma computes it: a
// kernel for the keys' side and one for the queries'. One warpgroup loads the tiles of
// the other side, two multiply 64 rows of their own each. The scores have the block's own
// rows, so that probabilities and their gradients go into the second products as
// registers; these run beside the next step's scores.
#pragma once

namespace dm {

// A block owns 128 rows, and loops over the rows of the other side, BN at a time, of
// which it holds so many stages.
template <int BN_, int Stages_> struct AttentionGradWgmma {
  static constexpr int consumers = 2, BN = BN_, stages = Stages_;
  static constexpr int BM = 64 * consumers, threads = 128 * (consumers + 1);
  static constexpr int few = 24, many = 240; // registers of a thread that loads, and of one that multiplies
  static_assert(BN % 16 == 0 && BN <= 128, "whole products");
};

// attention_grad_wgmma computes the gradient for the rows that a block owns: those
// of a tile of keys (dk and dv), or of queries (dq, as dk). x and xv are the owned
// rows of the products' left sides, y and yv the others': with ByKeys k, v, q, dy,
// else q, dy, k, v; all are copied by tensor maps. Launch with Tile::threads threads.
template <class Tile, class S, bool ByKeys, class X, class XV, class Y, class YV, class Mask, class DX, class DV, class Step = Nothing>
DM_FN void attention_grad_wgmma(Arena arena, const X& x, const XV& xv, const Y& y, const YV& yv, In<float> lse, In<float> delta, const Mask& mask, const DX& dx, const DV& dv, const Step& drop_step = {}) {
  using T = typename X::Elem;
  using Score = Scores<S, float, Mask, Step>;
  constexpr int BM = Tile::BM, BN = Tile::BN, stages = Tile::stages, consumers = Tile::consumers;
  using Own = Panels<S::depth, BM>;
  using OwnV = Panels<S::value, BM>;
  using Other = Panels<S::depth, BN>;
  using OtherV = Panels<S::value, BN>;
  using Where = Span<S, ByKeys, BM, BN, Score::skips>;
  using Stage = detail::Stage<stages>;
  const Where span(block());

  const Shared<T> xs = arena.take_aligned<T>(Own::size, 1024), xvs = arena.take_aligned<T>(OwnV::size, 1024);
  const Shared<T> ys = arena.take_aligned<T>(stages * Other::size, 1024), yvs = arena.take_aligned<T>(stages * OtherV::size, 1024);
  const Shared<float> rows = arena.take<float>(2 * stages * BN); // ByKeys: lse and delta of the queries
  const Shared<u64> own = arena.take<u64>(1 + 2 * stages), full = own + 1, empty = full + stages;
  if (thread() == 0) {
    barrier_make(own, 0, 1);
    for (i32 i = 0; i < stages; i++) {
      barrier_make(full, i, ByKeys ? 2 : 1); // the copies, and the warp that loads rows
      barrier_make(empty, i, 4 * consumers);
    }
    barriers_ready();
  }
  sync();

  if (warp() < 4) {
    registers_drop<Tile::few>();
    if (thread() == 0) {
      barrier_expect(own, 0, (Own::size + OwnV::size) * 2);
      Own::boxes(x, xs, own, 0, span.first, span.matrix);
      OwnV::boxes(xv, xvs, own, 0, span.first, span.matrix);
DM_NO_UNROLL
      for (i32 step = 0; step < span.n; step++) {
        const Stage at{u32(step)};
        const i32 matrix = ByKeys ? span.head(step) : span.matrix / S::group, other = span.other(step);
        barrier_wait(empty, at.slot, at.phase ^ 1);
        barrier_expect(full, at.slot, (Other::size + OtherV::size) * 2);
        Other::boxes(y, ys + at.slot * Other::size, full, at.slot, other, matrix);
        OtherV::boxes(yv, yvs + at.slot * OtherV::size, full, at.slot, other, matrix);
      }
    }
    if (ByKeys && warp() == 1) {
DM_NO_UNROLL
      for (i32 step = 0; step < span.n; step++) {
        const Stage at{u32(step)};
        barrier_wait(empty, at.slot, at.phase ^ 1);
        detail::load_sums<S, Score, BN>(rows, at.slot * 2 * BN, lse, delta, span.head(step), span.other(step));
        sync_warp();
        if (lane() == 0) barrier_arrive(full, at.slot);
      }
    }
  } else {
    registers_take<Tile::many>();
    const i32 group = warp() / 4 - 1, l = lane(), mine = span.first + group * 64, first = mine + warp() % 4 * 16;
    float my_lse[2], my_delta[2];
    if constexpr (!ByKeys) {
DM_UNROLL
      for (int h = 0; h < 2; h++) {
        const i32 query = first + h * 8 + l / 4;
        const bool is = query < S::queries;
        my_lse[h] = is ? Score::below_lse(lse[i64(span.matrix) * S::queries + query]) : 0.0f;
        my_delta[h] = is ? delta[i64(span.matrix) * S::queries + query] : 0.0f;
      }
    }
    constexpr int NX = given<DX> ? Own::padded / 2 : 8, NV = given<DV> ? OwnV::padded / 2 : 8;
    float p[BN / 2], ds[given<DX> ? BN / 2 : 8], sums[NX], sums_v[NV];
    u32 left[BN / 16][4], left_v[BN / 16][4];
DM_UNROLL
    for (int e = 0; e < NX; e++) sums[e] = 0;
DM_UNROLL
    for (int e = 0; e < NV; e++) sums_v[e] = 0;
    products_settle(sums);
    products_settle(sums_v);
    barrier_wait(own, 0, 0);

    i32 before = -1; // the slot of the step whose second products may be pending
DM_NO_UNROLL
    for (i32 step = 0; step < span.n; step++) {
      const Stage at{u32(step)};
      const i32 other = span.other(step);
      // The queries and keys of the warp's part, and of the warpgroup's.
      const i32 queries = ByKeys ? other : first, keys = ByKeys ? first : other;
      constexpr i32 nq = ByKeys ? BN : 16, nk = ByKeys ? 16 : BN;
      barrier_wait(full, at.slot, at.phase);
      if (Score::skips && (ByKeys ? mine > other + BN - 1 + Score::shift : other > mine + 63 + Score::shift)) {
        // Hidden from all queries. Slots are handed back in their order.
        products_wait<0>();
        if (before >= 0) detail::release(empty, before);
        before = -1;
        detail::release(empty, at.slot);
        continue;
      }
      const Scores<S, float, Mask, Step> scores(mask, drop_step, span.head(step));
      const auto query = [&](int e) { return queries + (ByKeys ? e / 4 * 8 + l % 4 * 2 + e % 2 : e / 2 % 2 * 8 + l / 4); };
      const auto key = [&](int e) { return keys + (ByKeys ? e / 2 % 2 * 8 + l / 4 : e / 4 * 8 + l % 4 * 2 + e % 2); };

      const u64 b = Other::rows_at(ys + at.slot * Other::size, 0), bv = OtherV::rows_at(yvs + at.slot * OtherV::size, 0);
      {
        const u64 a = Own::rows_at(xs, group * 64);
        products_begin();
        product<T, BN, false, false, false>(p, a, b);
DM_UNROLL
        for (int d = 16; d < Own::padded; d += 16) product<T, BN, false, false>(p, Own::along(a, d), Other::along(b, d));
        products_commit();
      }
      if constexpr (given<DX>) {
        const u64 a = OwnV::rows_at(xvs, group * 64);
        products_begin();
        product<T, BN, false, false, false>(ds, a, bv);
DM_UNROLL
        for (int d = 16; d < OwnV::padded; d += 16) product<T, BN, false, false>(ds, OwnV::along(a, d), OtherV::along(bv, d));
        products_commit();
      }
      products_wait<given<DX>>();
      products_settle(p);
      if (before >= 0) detail::release(empty, before);
      before = at.slot;

DM_UNROLL
      for (int e = 0; e < BN / 2; e++) p[e] = scores.score(p[e], query(e), key(e));
      if (queries + nq > S::queries || keys + nk > S::keys || (S::causal && keys + nk - 1 > queries + Score::shift)) {
DM_UNROLL
        for (int e = 0; e < BN / 2; e++)
          if (!Score::sees(query(e), key(e))) p[e] = Score::least();
      }
      const Shared<float> row = rows + at.slot * 2 * BN + l % 4 * 2;
DM_UNROLL
      for (int e = 0; e < BN / 2; e += 2) {
        Vec<float, 2> sum;
        if constexpr (ByKeys) sum = row.template load<2>(e / 4 * 8);
DM_UNROLL
        for (int c = 0; c < 2; c++) p[e + c] = Score::exponential(p[e + c], ByKeys ? sum[c] : my_lse[e / 2 % 2]);
      }
      u64 kept = 0; // a bit for each element
      if constexpr (Score::drops) {
DM_UNROLL
        for (int e = 0; e < BN / 2; e++) kept |= u64(ByKeys ? scores.keeps(query(e), key(e)) : scores.keeps(query(e), key(e - e % 2), e % 2)) << e;
      }
      const auto keep = [&](int e) { return !Score::drops ? 1.0f : kept >> e & 1 ? float(S::keep) : 0.0f; };
      if constexpr (given<DV>) {
DM_UNROLL
        for (int i = 0; i < BN / 4; i++) left_v[i / 4][i % 4] = pack2<T>(p[2 * i] * keep(2 * i), p[2 * i + 1] * keep(2 * i + 1));
        const u64 columns = OtherV::columns_at(yvs + at.slot * OtherV::size);
        products_begin();
DM_UNROLL
        for (int i = 0; i < BN / 16; i++) product_held<T, OwnV::padded, true>(sums_v, left_v[i], OtherV::down(columns, i * 16));
        products_commit();
      }
      if constexpr (given<DX>) {
        products_wait<given<DV>>();
        products_settle(ds);
DM_UNROLL
        for (int e = 0; e < BN / 2; e += 2) {
          Vec<float, 2> sum;
          if constexpr (ByKeys) sum = row.template load<2>(BN + e / 4 * 8);
DM_UNROLL
          for (int c = 0; c < 2; c++) ds[e + c] = p[e + c] * (ds[e + c] * keep(e + c) - (ByKeys ? sum[c] : my_delta[e / 2 % 2]));
          left[e / 8][e / 2 % 4] = pack2<T>(ds[e], ds[e + 1]);
        }
        const u64 columns = Other::columns_at(ys + at.slot * Other::size);
        products_begin();
DM_UNROLL
        for (int i = 0; i < BN / 16; i++) product_held<T, Own::padded, true>(sums, left[i], Other::down(columns, i * 16));
        products_commit();
      }
    }
    products_wait<0>();
    products_settle(sums);
    products_settle(sums_v);
    if constexpr (given<DX>) {
      const float factor[2] = {float(S::scale), float(S::scale)};
      detail::store_rows<S::depth>(sums, factor, dx, span.matrix, first, Where::own);
    }
    if constexpr (given<DV>) {
      const float factor[2] = {1, 1};
      detail::store_rows<S::value>(sums_v, factor, dv, span.matrix, first, Where::own);
    }
  }
}

}  // namespace dm
