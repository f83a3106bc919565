// The gradient of attention on Hopper (sm_90a) by one kernel, with five products: the
// scores and the gradients of the probabilities are computed once, for the sums of the
// keys, which stay in registers, and for those of the queries, which are added up in
// memory. As in attention_grad_wgmma one warpgroup loads, and two have 64 keys each.
//
// The sums of the queries do not depend on how blocks run. A cluster has a head of the
// keys alone: its blocks take a round of tiles of keys each, and in a round all tiles of
// queries, each block from another one on, so that in a step no two of them add to the
// same sums. A block adds when all have added of the step before. The order of additions
// is that of rounds and steps, and no block waits for one that may not run yet, since the
// blocks of a cluster run together, nor in a circle, since all wait for earlier steps alone.
#pragma once

namespace dm {

// A block owns 128 keys, and loops over the queries, BN at a time, of which it holds so
// many stages; so many blocks share a head.
template <int BN_, int Stages_, int Cluster_> struct AttentionGradFused {
  static constexpr int consumers = 2, BN = BN_, stages = Stages_, cluster = Cluster_;
  static constexpr int BM = 64 * consumers, threads = 128 * (consumers + 1);
  static constexpr int few = 24, many = 240; // registers of a thread that loads, and of one that multiplies
  static_assert(BN == 64 || BN == 128, "a warpgroup has 64 of the queries, or a half of their columns");
};

namespace detail {

// The steps of a block: rounds of tiles of keys, in each the heads that share them, and
// for each head the tiles of queries that some block of the cluster sees.
template <class S, class Tile, bool Skips> struct Rounds {
  static constexpr i32 BM = Tile::BM, BN = Tile::BN, cluster = Tile::cluster;
  static constexpr i32 shift = S::keys - S::queries;
  static constexpr i32 parts = tiles(S::queries, BN), owners = tiles(S::keys, BM); // tiles of queries, and of keys
  static constexpr i32 count = tiles(owners, cluster);
  // Tiles of queries that only the first tile of keys adds to need no sums in memory.
  static constexpr i32 alone = owners == 1 ? parts : !Skips || shift >= BM ? 0 : (BM - shift) / BN < parts ? (BM - shift) / BN : parts;

  i32 rank, number, head; // of the block, the round, and of the head in its group
  i32 from, part;         // the round's first tile of queries, and that of the step

  DM_FN explicit Rounds(i32 rank) : rank(rank), number(0), head(0) { begin(); }
  // The next step; false behind the last one of the round.
  DM_FN bool next() {
    if (++part == parts) part = from;
    if (part != start()) return true;
    return S::group > 1 && ++head < S::group;
  }
  DM_FN bool next_round() {
    head = 0, number++;
    if (number == count) return false;
    begin();
    return true;
  }
  DM_FN i32 owner() const { return number * cluster + rank; }
  DM_FN bool owns() const { return owner() < owners; }
  // Whether some query of the tile sees some key of the block.
  DM_FN bool sees() const { return owner() <= last_owner(); }
  // In the first round the blocks add to a tile in the order of their distance in front of it.
  DM_FN bool is_first() const {
    const i32 last = last_owner() < cluster - 1 ? last_owner() : cluster - 1;
    return number == 0 && rank == (part < last ? part : last);
  }
  DM_FN bool is_last() const {
    const i32 last = last_owner() - number * cluster, behind = part - from + 1;
    return last < cluster && rank == (last >= behind ? behind : 0);
  }

 private:
  DM_FN void begin() {
    from = 0;
    if constexpr (Skips) {
      const i32 first = number * cluster * BM - shift;
      if (first > 0) from = first / BN;
    }
    part = start();
  }
  // Blocks with keys are no more than the tiles of the round.
  DM_FN i32 start() const { return from + rank < parts ? from + rank : parts - 1; }
  DM_FN i32 last_owner() const {
    const i32 last = owners - 1;
    if constexpr (!Skips) return last;
    const i32 seen = (part * BN + BN - 1 + shift) / BM;
    return seen < last ? seen : last;
  }
};

}  // namespace detail

// attention_grad_fused computes dq, dk and dv. k, v, q and dy are copied by tensor maps;
// sums has room for the tiles of dq that several tiles of keys add to, in the order of the
// products' registers. Launch with Tile::threads threads, a cluster for each head of the keys.
template <class Tile, class S, class K, class V, class Q, class DY, class Mask, class Sums, class DQ, class DK, class DV, class Step = Nothing>
DM_FN void attention_grad_fused(Arena arena, const K& k, const V& v, const Q& q, const DY& dy, In<float> lse, In<float> delta, const Mask& mask, const Sums& sums, const DQ& dq, const DK& dk, const DV& dv, const Step& drop_step = {}) {
  using T = typename K::Elem;
  using Score = Scores<S, float, Mask, Step>;
  constexpr int BM = Tile::BM, BN = Tile::BN, stages = Tile::stages, consumers = Tile::consumers, cluster = Tile::cluster;
  using Keys = Panels<S::depth, BM>;
  using Values = Panels<S::value, BM>;
  using Queries = Panels<S::depth, BN>;
  using Grads = Panels<S::value, BN>;
  using Scored = Panels<BN, BM>; // gradients of scores: rows are keys
  using Walk = detail::Rounds<S, Tile, Score::skips>;
  using Stage = detail::Stage<stages>;
  static_assert(cluster <= Walk::parts && cluster <= Walk::owners, "in a step each block has queries of its own");
  // What a warpgroup computes of a tile of dq: the columns of 64 queries, or a half of them.
  constexpr bool halves = BN == 64;
  constexpr int columns = !halves ? Keys::padded : Keys::count == 2 ? 64 : 32;
  static_assert(columns * (halves ? 2 : 1) >= S::depth && Keys::count <= 2, "dq has up to 128 columns");
  const i32 matrix = block() / cluster, rank = block() % cluster;

  const Shared<T> ks = arena.take_aligned<T>(Keys::size, 1024), vs = arena.take_aligned<T>(Values::size, 1024);
  const Shared<T> qs = arena.take_aligned<T>(stages * Queries::size, 1024), dys = arena.take_aligned<T>(stages * Grads::size, 1024);
  const Shared<T> scored = arena.take_aligned<T>(2 * Scored::size, 1024); // of this step, and of the one before
  const Shared<float> rows = arena.take<float>(2 * stages * BN);         // lse and delta of the queries
  const Shared<u64> own = arena.take<u64>(3 + 2 * stages), own_empty = own + 1, turn = own + 2, full = own + 3, empty = full + stages;
  if (thread() == 0) {
    barrier_make(own, 0, 1);
    barrier_make(own_empty, 0, 4 * consumers);
    barrier_make(turn, 0, 4 * consumers * cluster);
    for (i32 i = 0; i < stages; i++) {
      barrier_make(full, i, 2); // the copies, and the warp that loads rows
      barrier_make(empty, i, 4 * consumers);
    }
    barriers_ready();
  }
  sync();
  if constexpr (cluster > 1) cluster_sync(); // others arrive at `turn`, the last time before a block's last turn

  if (warp() < 4) {
    registers_drop<Tile::few>();
    if (warp() < 2) {
      Walk walk(rank);
      u32 n = 0;
      do {
        if (!walk.owns()) continue;
        if (thread() == 0) {
          barrier_wait(own_empty, 0, walk.number & 1 ^ 1);
          barrier_expect(own, 0, (Keys::size + Values::size) * 2);
          Keys::boxes(k, ks, own, 0, walk.owner() * BM, matrix);
          Values::boxes(v, vs, own, 0, walk.owner() * BM, matrix);
        }
DM_NO_UNROLL
        do {
          if (!walk.sees()) continue;
          const Stage at(n++);
          const i32 head = matrix * S::group + walk.head, first = walk.part * BN;
          if (thread() == 0) {
            barrier_wait(empty, at.slot, at.phase ^ 1);
            barrier_expect(full, at.slot, (Queries::size + Grads::size) * 2);
            Queries::boxes(q, qs + at.slot * Queries::size, full, at.slot, first, head);
            Grads::boxes(dy, dys + at.slot * Grads::size, full, at.slot, first, head);
          }
          if (warp() == 1) {
            barrier_wait(empty, at.slot, at.phase ^ 1);
            detail::load_sums<S, Score, BN>(rows, at.slot * 2 * BN, lse, delta, head, first);
            sync_warp();
            if (lane() == 0) barrier_arrive(full, at.slot);
          }
        } while (walk.next());
      } while (walk.next_round());
    }
  } else {
    registers_take<Tile::many>();
    const i32 group = warp() / 4 - 1, l = lane();
    Walk walk(rank);
    u32 n = 0, steps = 0; // those that see queries, and all
    // The warp's additions of earlier steps are done, and so are those of all blocks. The first waits for memory, and so comes
    // while products run.
    const auto pass_turn = [&] {
      if constexpr (cluster > 1) {
        sync_warp();
        if (l < cluster) barrier_arrive(turn, 0, l);
      }
    };
    const auto take_turn = [&] {
      if constexpr (cluster > 1) barrier_wait_peers(turn, 0, steps++ & 1);
    };
    do {
      const i32 mine = walk.owner() * BM + group * 64, first = mine + warp() % 4 * 16;
      float sums_k[Keys::padded / 2], sums_v[Values::padded / 2];
DM_UNROLL
      for (int e = 0; e < Keys::padded / 2; e++) sums_k[e] = 0;
DM_UNROLL
      for (int e = 0; e < Values::padded / 2; e++) sums_v[e] = 0;
      products_settle(sums_k);
      products_settle(sums_v);
      if (walk.owns()) barrier_wait(own, 0, walk.number & 1);
DM_NO_UNROLL
      do {
        if (!walk.owns() || !walk.sees()) {
          pass_turn();
          take_turn();
          continue;
        }
        const Stage at(n);
        const i32 queries = walk.part * BN, head = matrix * S::group + walk.head;
        float p[BN / 2], ds[BN / 2], part[columns / 2];
        u32 left[BN / 16][4], left_v[BN / 16][4];
        barrier_wait(full, at.slot, at.phase);
        {
          const u64 a = Keys::rows_at(ks, group * 64), b = Queries::rows_at(qs + at.slot * Queries::size, 0);
          products_begin();
          product<T, BN, false, false, false>(p, a, b);
DM_UNROLL
          for (int d = 16; d < Keys::padded; d += 16) product<T, BN, false, false>(p, Keys::along(a, d), Queries::along(b, d));
          products_commit();
        }
        {
          const u64 a = Values::rows_at(vs, group * 64), b = Grads::rows_at(dys + at.slot * Grads::size, 0);
          products_begin();
          product<T, BN, false, false, false>(ds, a, b);
DM_UNROLL
          for (int d = 16; d < Values::padded; d += 16) product<T, BN, false, false>(ds, Values::along(a, d), Grads::along(b, d));
          products_commit();
        }
        pass_turn();
        products_wait<1>();
        products_settle(p);

        const Scores<S, float, Mask, Step> scores(mask, drop_step, head);
        const auto query = [&](int e) { return queries + e / 4 * 8 + l % 4 * 2 + e % 2; };
        const auto key = [&](int e) { return first + e / 2 % 2 * 8 + l / 4; };
DM_UNROLL
        for (int e = 0; e < BN / 2; e++) p[e] = scores.score(p[e], query(e), key(e));
        if (queries + BN > S::queries || first + 16 > S::keys || (S::causal && first + 15 > queries + Score::shift)) {
DM_UNROLL
          for (int e = 0; e < BN / 2; e++)
            if (!Score::sees(query(e), key(e))) p[e] = Score::least();
        }
        const Shared<float> row = rows + at.slot * 2 * BN + l % 4 * 2;
DM_UNROLL
        for (int e = 0; e < BN / 2; e += 4) {
          const Vec<float, 2> sum = row.template load<2>(e / 4 * 8);
DM_UNROLL
          for (int c = 0; c < 4; c++) p[e + c] = Score::exponential(p[e + c], sum[c % 2]);
        }
        u32 kept = 0; // a bit for each element
        if constexpr (Score::drops) {
          static_assert(halves, "32 elements");
          if constexpr (S::keys % 2 == 0) {
            // Two neighbouring keys have one draw, which one of their lanes makes.
            u32 others = 0;
            const i32 odd = l / 4 % 2;
DM_UNROLL_BY(2)
            for (int i = 0; i < BN / 2; i += 2) {
              const int e = i + odd;
              const u32 two[2] = {scores.keeps(query(e), key(e) - odd, 0), scores.keeps(query(e), key(e) - odd, 1)};
              kept |= (odd ? two[1] : two[0]) << e, others |= (odd ? two[0] : two[1]) << e;
            }
            kept |= shuffle_xor(others, 4);
          } else {
DM_UNROLL_BY(4)
            for (int e = 0; e < BN / 2; e++) kept |= u32(scores.keeps(query(e), key(e))) << e;
          }
        }
        const auto keep = [&](float v, int e) { return !Score::drops || kept >> e & 1 ? v : 0.0f; };
        // Both of p and left_v are held beside ds where there are registers for them; then this product runs beside ds.
        const auto pack_v = [&](int i) { left_v[i / 4][i % 4] = pack2<T>(keep(p[2 * i], 2 * i), keep(p[2 * i + 1], 2 * i + 1)); };
        const auto multiply_v = [&] {
          const u64 b = Grads::columns_at(dys + at.slot * Grads::size);
          products_begin();
DM_UNROLL
          for (int i = 0; i < BN / 16; i++) product_held<T, Values::padded, true>(sums_v, left_v[i], Grads::down(b, i * 16));
          products_commit();
        };
        if constexpr (halves) {
DM_UNROLL
          for (int i = 0; i < BN / 4; i++) pack_v(i);
          multiply_v();
        }
        products_wait<halves>();
        products_settle(ds);
        if constexpr (Score::drops) kept = u32(detail::again(i32(kept))); // 32 registers would hold its bits
DM_UNROLL
        for (int e = 0; e < BN / 2; e += 4) {
          const Vec<float, 2> sum = row.template load<2>(BN + e / 4 * 8);
DM_UNROLL
          for (int c = 0; c < 4; c++) ds[e + c] = p[e + c] * fma(keep(ds[e + c], e + c), Score::drops ? float(S::keep) : 1.0f, -sum[c % 2]);
DM_UNROLL
          for (int c = 0; c < 4; c += 2) {
            if constexpr (!halves) pack_v(e / 2 + c / 2);
            left[e / 8][e / 2 % 4 + c / 2] = pack2<T>(ds[e + c], ds[e + c + 1]);
          }
        }
        if constexpr (!halves) multiply_v();
        // The gradients of the scores, in the order in which a tensor map would lay them.
        const Shared<T> to = scored + i32(n & 1) * Scored::size;
        const i32 corner = detail::again((thread() - 128) / 32 * 1024 + l / 4 * 72 + l % 4 * 2); // no register holds the others' places
DM_UNROLL
        for (int i = 0; i < BN / 4; i++)
          to.template store<2>(i / 16 * BM * 64 + i % 2 * 512 + (corner ^ i / 2 % 8 * 8), bits_as<Vec<T, 2>>(left[i / 4][i % 4]));
        writes_publish();
        sync_named(1, 128 * consumers);
        {
          const u64 a = Scored::along(Scored::columns_at(to), halves ? 0 : group * 64);
          const u64 b = Keys::along(Keys::columns_at(ks), halves ? group * columns : 0);
          products_begin();
          product<T, columns, true, true, false>(part, a, b);
DM_UNROLL
          for (int i = 16; i < BM; i += 16) product<T, columns, true, true>(part, Scored::down(a, i), Keys::down(b, i));
          products_commit();
        }
        {
          const u64 b = Queries::columns_at(qs + at.slot * Queries::size);
          products_begin();
DM_UNROLL
          for (int i = 0; i < BN / 16; i++) product_held<T, Keys::padded, true>(sums_k, left[i], Queries::down(b, i * 16));
          products_commit();
        }
        products_wait<1>();
        products_settle(part);

        take_turn();
        const bool is_first = walk.is_first(), is_last = walk.is_last();
        if constexpr (given<Sums>) {
          const i64 tile = i64(head) * (Walk::parts - Walk::alone) + (walk.part - Walk::alone);
          const i64 place = (tile * consumers + group) * (columns * 64) + detail::again(thread() % 128) * 4;
          if (is_first && is_last) {
          } else if (is_first) {
DM_UNROLL
            for (int e = 0; e < columns / 2; e += 4) sums.template store<4>(place + e * 128, Vec<float, 4>{{part[e], part[e + 1], part[e + 2], part[e + 3]}});
          } else if (!is_last) {
DM_UNROLL
            for (int e = 0; e < columns / 2; e += 4) add_in_turn(sums, place + e * 128, Vec<float, 4>{{part[e], part[e + 1], part[e + 2], part[e + 3]}});
          } else {
DM_UNROLL
            for (int e = 0; e < columns / 2; e += 4) {
              const Vec<float, 4> before = sums.template load<4>(place + e * 128);
DM_UNROLL
              for (int c = 0; c < 4; c++) part[e + c] += before[c];
            }
          }
        }
        if (is_last) {
          const float factor[2] = {float(S::scale), float(S::scale)};
          detail::store_rows<S::depth>(part, factor, dq, head, walk.part * BN + (halves ? 0 : group * 64) + warp() % 4 * 16, S::queries, halves ? group * columns : 0);
        }
        products_wait<0>();
        products_settle(sums_k);
        products_settle(sums_v);
        detail::release(empty, at.slot);
        n++;
      } while (walk.next());
      if (walk.owns()) {
        detail::release(own_empty, 0);
        const float scale[2] = {float(S::scale), float(S::scale)}, keep[2] = {float(S::keep), float(S::keep)};
        detail::store_rows<S::depth>(sums_k, scale, dk, matrix, first, S::keys);
        detail::store_rows<S::value>(sums_v, keep, dv, matrix, first, S::keys);
      }
    } while (walk.next_round());
  }
}

}  // namespace dm
