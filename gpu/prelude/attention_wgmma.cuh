// Attention on Hopper (sm_90a): f16 or bf16, sums and the softmax in f32. One warpgroup
// loads tiles by tensor maps, the others multiply 64 queries each. While the tensor cores
// add a tile's values up, a warpgroup computes the softmax of the next tile, and
// warpgroups start their products in turns, so that one's softmax runs beside another's
// products (Shah et al., FlashAttention-3, arXiv 2407.08608).
//
// Queries, Keys and Values are operands copied by tensor maps:
//
//   using Elem;
//   // Starts copying a box of 64 columns to to[at] on; its bytes count at full[i].
//   DM_FN void load(Shared<Elem> to, i32 at, Shared<u64> full, i32 i, i32 col, i32 row, i32 matrix) const;
#pragma once

namespace dm {

// A block owns 64 queries for each of its consumers, and loops over the keys, BN at a
// time, of which it holds so many stages.
template <int Consumers_, int BN_, int Stages_> struct AttentionWgmma {
  static constexpr int consumers = Consumers_, BN = BN_, stages = Stages_;
  static constexpr int BM = 64 * consumers, threads = 128 * (consumers + 1);
  // Registers of a thread that loads, and of one that multiplies.
  static constexpr int few = consumers == 3 ? 32 : 24, many = consumers == 3 ? 160 : 240;
  static_assert(consumers == 2 || consumers == 3, "65,536 registers are divided among 3 or 4 warpgroups");
  static_assert(BN % 16 == 0 && BM <= 256 && BN <= 256, "whole products and boxes");
};

// Panels are Rows rows of Depth elements in shared memory, 64 columns behind each other,
// as tensor maps lay them; columns beyond Depth are zeros.
template <int Depth, int Rows> struct Panels {
  static constexpr int count = (Depth + 63) / 64, size = count * Rows * 64, padded = (Depth + 15) / 16 * 16;

  // Starts copying rows from `row` on; their bytes are expected, or are by load.
  template <class X, class T> DM_FN static void boxes(const X& x, Shared<T> to, Shared<u64> full, i32 i, i32 row, i32 matrix) {
    DM_UNROLL
    for (int p = 0; p < count; p++) x.load(to, p * Rows * 64, full, i, p * 64, row, matrix);
  }
  template <class X, class T> DM_FN static void load(const X& x, Shared<T> to, Shared<u64> full, i32 i, i32 row, i32 matrix) {
    barrier_expect(full, i, size * 2);
    boxes(x, to, full, i, row, matrix);
  }
  // The descriptor of an operand whose rows are these, from `row` on, and where it lies from `col` on.
  template <class T> DM_FN static u64 rows_at(Shared<T> s, i32 row) { return operand_at(s, row * 64, 16, 1024); }
  DM_FN static u64 along(u64 rows, i32 col) { return operand_behind(rows, u32(col / 64 * Rows * 128 + col % 64 * 2)); }
  // The descriptor of an operand whose k are these rows, and where it lies from `row` on.
  template <class T> DM_FN static u64 columns_at(Shared<T> s) { return operand_at(s, 0, Rows * 128, 1024); }
  DM_FN static u64 down(u64 columns, i32 row) { return operand_behind(columns, u32(row * 128)); }
};

namespace detail {

// Stage is the stage of a pipeline that a block's step number n is in.
template <int Stages> struct Stage {
  i32 slot;
  u32 phase;
  DM_FN explicit Stage(u32 n) : slot(i32(n % Stages)), phase(n / Stages & 1) {}
};

// A number of which the compiler forgets where it is from.
DM_FN i32 again(i32 v) {
#ifndef DM_HOST
  asm volatile("" : "+r"(v));
#endif
  return v;
}

// Hands a stage back; one lane of each warp counts.
DM_FN void release(Shared<u64> empty, i32 slot) {
  if (lane() == 0) barrier_arrive(empty, slot);
}

// Stores a warp's rows from column `from` on, its sums times a factor of each of their rows. The four lanes of a row
// exchange words of four fragments, so that each stores 16 bytes of the row's 64; of two fragments they store 8 each.
template <int Depth, int N, class Y>
DM_FN void store_rows(const float (&x)[N], const float (&factor)[2], const Y& to, i64 matrix, i32 first, i32 rows, i32 from = 0) {
  using M = Matrices<Y, Depth>;
  using T = typename M::elem;
  constexpr int vector = aligned_elements(Depth, sizeof(T));
  const i64 base = M::at(matrix, rows);
  const i32 c = lane() % 4;
  const bool odd = c % 2 != 0, upper = c >= 2;
DM_UNROLL
  for (int h = 0; h < 2; h++) {
    const i32 row = first + h * 8 + lane() / 4;
    const i64 at = base + i64(row) * M::row;
    const auto word = [&](int j) { return pack2<T>(x[j + 2 * h] * factor[h], x[j + 2 * h + 1] * factor[h]); };
    // Of the fragments at j and j + 4 an even lane has four columns of the first, an odd one of the second.
    const auto pair = [&](int j) {
      const u32 left = word(j), right = word(j + 4), other = shuffle_xor(odd ? left : right, 1);
      return odd ? u64(other) | u64(right) << 32 : u64(left) | u64(other) << 32;
    };
    constexpr int eights = vector == 8 ? N / 16 * 16 : 0, fours = vector >= 4 ? N : 0;
DM_UNROLL
    for (int j = 0; j < eights; j += 16) {
      const u64 low = pair(j), high = pair(j + 8), sent = upper ? low : high;
      const u64 other = u64(shuffle_xor(u32(sent), 2)) | u64(shuffle_xor(u32(sent >> 32), 2)) << 32;
      const Vec<u64, 2> eight{{upper ? other : low, upper ? high : other}};
      const i32 col = from + j * 2 + c * 8;
      if (row < rows && col < Depth) M::data(to).template store<8>(at + col, bits_as<Vec<T, 8>>(eight));
    }
DM_UNROLL
    for (int j = eights; j < fours; j += 8) {
      const u64 four = pair(j);
      const i32 col = from + j * 2 + (odd ? 8 + (c - 1) * 2 : c * 2);
      if (row < rows && col < Depth) M::data(to).template store<4>(at + col, bits_as<Vec<T, 4>>(four));
    }
DM_UNROLL
    for (int j = fours; j < N; j += 4) {
      const i32 col = from + j * 2 + c * 2;
      if (row < rows && col < Depth) M::data(to).template store<2>(at + col, bits_as<Vec<T, 2>>(word(j)));
    }
  }
}

// Loads the logarithms of the sums and the deltas of N queries from `first` on, by the lanes of a warp: below_lse of
// the former to rows[at] on, and behind them the latter. The warp has few registers: of vectors the latter are loaded behind the former.
template <class S, class Score, int N>
DM_FN void load_sums(Shared<float> rows, i32 at, In<float> lse, In<float> delta, i32 head, i32 first) {
  if constexpr (S::queries % 4 != 0) { // the last vector may end behind the last query
    const i64 base = i64(head) * S::queries;
    for (i32 i = lane(); i < N; i += 32) {
      const i32 query = first + i;
      rows[at + i] = query < S::queries ? Score::below_lse(lse[base + query]) : 0.0f;
      rows[at + N + i] = query < S::queries ? delta[base + query] : 0.0f;
    }
  } else {
    constexpr int vector = 4;
    const auto load = [&](const In<float>& from, i32 to, auto ready) {
DM_UNROLL_BY(2)
      for (i32 i = lane() * vector; i < N; i += 32 * vector) {
        Vec<float, vector> v{};
        if (first + i < S::queries) {
          v = from.template load<vector>(i64(head) * S::queries + first + i);
DM_UNROLL
          for (int e = 0; e < vector; e++) v[e] = ready(v[e]);
        }
        rows.template store<vector>(to + i, v);
      }
    };
    load(lse, at, [](float v) { return Score::below_lse(v); });
    load(delta, at + N, [](float v) { return v; });
  }
}

}  // namespace detail

// attention_wgmma computes tiles of queries, those whose numbers are block(), block() +
// blocks(), … of all splits, heads and tiles of queries. Launch with Tile::threads
// threads. With more than one split y and lse are partial results for attention_join.
template <class Tile, class S, int Splits, class Queries, class Keys, class Values, class Mask, class Y, class Lse, class Step = Nothing>
DM_FN void attention_wgmma(Arena arena, const Queries& q, const Keys& k, const Values& v, const Mask& mask, const Y& y, const Lse& lse, const Step& drop_step = {}) {
  using T = typename Queries::Elem;
  using Score = Scores<S, float, Mask, Step>;
  constexpr int BM = Tile::BM, BN = Tile::BN, stages = Tile::stages, consumers = Tile::consumers;
  using Q = Panels<S::depth, BM>;
  using K = Panels<S::depth, BN>;
  using V = Panels<S::value, BN>;
  using Where = Span<S, false, BM, BN, Score::skips>;
  constexpr i32 parts = Where::blocks * S::heads, tiles = parts * Splits;

  const Shared<T> qs = arena.take_aligned<T>(Q::size, 1024);
  const Shared<T> ks = arena.take_aligned<T>(stages * K::size, 1024), vs = arena.take_aligned<T>(stages * V::size, 1024);
  const Shared<u64> q_full = arena.take<u64>(2 + consumers + 4 * stages), q_empty = q_full + 1, turns = q_full + 2;
  const Shared<u64> k_full = turns + consumers, k_empty = k_full + stages, v_full = k_empty + stages, v_empty = v_full + stages;
  if (thread() == 0) {
    barrier_make(q_full, 0, 1);
    barrier_make(q_empty, 0, 4 * consumers); // warps
    for (i32 i = 0; i < stages; i++) {
      barrier_make(k_full, i, 1);
      barrier_make(k_empty, i, 4 * consumers);
      barrier_make(v_full, i, 1);
      barrier_make(v_empty, i, 4 * consumers);
    }
    for (i32 i = 0; i < consumers; i++) barrier_make(turns, i, 4);
    barriers_ready();
  }
  sync();
  grid_dependency_wait(); // of all roles: none has accessed global memory

  using Stage = detail::Stage<stages>;
  u32 n = 0, round = 0; // steps, of keys; tiles, of queries
  if (warp() < 4) {
    registers_drop<Tile::few>();
    if (thread() == 0) {
      for (i32 tile; (tile = block() + i32(round) * blocks()) < tiles; round++) {
        const Where span(tile % parts);
        const Part part(tile / parts, Splits, span.n);
        const i32 kv = span.matrix / S::group;
        barrier_wait(q_empty, 0, round & 1 ^ 1);
        Q::load(q, qs, q_full, 0, span.first, span.matrix);
        // Values come behind the keys of the next step, as they are used.
        const auto values = [&](i32 step) {
          const Stage at(n - 1);
          barrier_wait(v_empty, at.slot, at.phase ^ 1);
          V::load(v, vs + at.slot * V::size, v_full, at.slot, step * BN, kv);
        };
DM_NO_UNROLL
        for (i32 step = part.from; step < part.to; step++) {
          const Stage at(n);
          barrier_wait(k_empty, at.slot, at.phase ^ 1);
          K::load(k, ks + at.slot * K::size, k_full, at.slot, step * BN, kv);
          if (step > part.from) values(step - 1);
          n++;
        }
        if (part.from < part.to) values(part.to - 1);
      }
    }
  } else {
    registers_take<Tile::many>();
    const i32 group = warp() / 4 - 1, row = group * 64 + warp() % 4 * 16, l = lane();
    for (i32 tile; (tile = block() + i32(round) * blocks()) < tiles; round++) {
      const Where span(tile % parts);
      const Part part(tile / parts, Splits, span.n);
      const i32 first = span.first + row;
      const Score scores(mask, drop_step, span.matrix);
      // The steps whose keys some query of this warpgroup sees.
      i32 to = part.to;
      if (span.first + group * 64 >= S::queries) to = part.from;
      if constexpr (Score::skips) to = max(part.from, min(to, detail::tiles(span.first + group * 64 + 64 + Score::shift, BN)));

      float s[BN / 2], sums[V::padded / 2], most[2] = {Score::least(), Score::least()}, total[2] = {0, 0}, factor[2];
      u32 p[BN / 16][4];
DM_UNROLL
      for (int e = 0; e < V::padded / 2; e++) sums[e] = 0;
      products_settle(sums);

      // s = Q · Kᵀ, of step n.
      const auto multiply = [&] {
        const Stage at(n);
        barrier_wait(k_full, at.slot, at.phase);
        // The warpgroup before has started its products; the first one waits for those that the last one has in the step before.
        barrier_wait(turns, group, (group ? n : n + 1) & 1);
        const u64 a = Q::rows_at(qs, group * 64), b = K::rows_at(ks + at.slot * K::size, 0);
        products_begin();
        product<T, BN, false, false, false>(s, a, b);
DM_UNROLL
        for (int d = 16; d < K::padded; d += 16) product<T, BN, false, false>(s, Q::along(a, d), K::along(b, d));
        products_commit();
      };
      // sums += P · V, of the step before.
      const auto add = [&] {
        const Stage at(n - 1);
        barrier_wait(v_full, at.slot, at.phase);
        const u64 b = V::columns_at(vs + at.slot * V::size);
        products_begin();
DM_UNROLL
        for (int i = 0; i < BN / 16; i++) product_held<T, V::padded, true>(sums, p[i], V::down(b, i * 16));
        products_commit();
      };
      // The exponentials of s, and the factor that sums of earlier steps get.
      const auto softmax = [&](i32 step) {
        const i32 key = step * BN + l % 4 * 2, query = first + l / 4;
DM_UNROLL
        for (int e = 0; e < BN / 2; e++) s[e] = scores.score(s[e], query + e / 2 % 2 * 8, key + e / 4 * 8 + e % 2);
        if (step * BN + BN > S::keys || (S::causal && step * BN + BN - 1 > first + Score::shift)) {
DM_UNROLL
          for (int e = 0; e < BN / 2; e++)
            if (!Score::sees(query + e / 2 % 2 * 8, key + e / 4 * 8 + e % 2)) s[e] = Score::least();
        }
DM_UNROLL
        for (int h = 0; h < 2; h++) {
          float m = most[h];
DM_UNROLL
          for (int e = 2 * h; e < BN / 2; e += 4) m = max(m, max(s[e], s[e + 1]));
          m = detail::quad_reduce<detail::Max>(m);
          const float base = m == Score::least() ? 0.0f : Score::below(m); // no key seen so far
          factor[h] = Score::exponential(most[h], base);
          most[h] = m;
          float sum = 0;
DM_UNROLL
          for (int e = 2 * h; e < BN / 2; e += 4)
DM_UNROLL
            for (int c = 0; c < 2; c++) {
              s[e + c] = Score::exponential(s[e + c], base);
              sum += s[e + c];
            }
          total[h] = total[h] * factor[h] + sum;
        }
        if constexpr (Score::drops) {
DM_UNROLL
          for (int e = 0; e < BN / 2; e++)
            if (!scores.keeps(query + e / 2 % 2 * 8, key + e / 4 * 8, e % 2)) s[e] = 0;
        }
      };
      // p = s, rounded to T.
      const auto pack = [&] {
DM_UNROLL
        for (int i = 0; i < BN / 4; i++) p[i / 4][i % 4] = pack2<T>(s[2 * i], s[2 * i + 1]);
      };
      const auto pass = [&] { detail::release(turns, group + 1 == consumers ? 0 : group + 1); };

      barrier_wait(q_full, 0, round & 1);
      if (part.from < to) {
        multiply();
        pass();
        products_wait<0>();
        products_settle(s);
        detail::release(k_empty, Stage(n).slot);
        softmax(part.from);
        pack();
        n++;
DM_NO_UNROLL
        for (i32 step = part.from + 1; step < to; step++, n++) {
          multiply();
          add();
          pass();
          products_wait<1>();
          products_settle(s);
          detail::release(k_empty, Stage(n).slot);
          softmax(step);
          products_wait<0>();
          products_settle(sums);
          detail::release(v_empty, Stage(n - 1).slot);
DM_UNROLL
          for (int e = 0; e < V::padded / 2; e++) sums[e] *= factor[e / 2 % 2];
          pack();
        }
      }
      detail::release(q_empty, 0);
      if (part.from < to) {
        add();
        products_wait<0>();
        products_settle(sums);
        detail::release(v_empty, Stage(n - 1).slot);
      }
      // What the loop does not need is computed again, so that no register holds it there.
      tile = detail::again(tile);
      const Where where(tile % parts);
      const i32 head = where.matrix, last = Part(tile / parts, Splits, where.n).to;
      // The other warpgroups' steps.
DM_NO_UNROLL
      for (i32 step = to; step < last; step++, n++) {
        const Stage at(n);
        barrier_wait(turns, group, (group ? n : n + 1) & 1);
        pass();
        barrier_wait(k_full, at.slot, at.phase);
        detail::release(k_empty, at.slot);
        barrier_wait(v_full, at.slot, at.phase);
        detail::release(v_empty, at.slot);
      }

      const i64 base = (i64(tile / parts) * S::heads + head) * S::queries;
DM_UNROLL
      for (int h = 0; h < 2; h++) {
        const float sum = detail::quad_reduce<detail::Sum>(total[h]);
        // A query that sees no key has the mean NaN, but not for one of its splits.
        const bool none = most[h] == Score::least();
        factor[h] = Splits == 1 ? float(S::keep) / sum : none ? 0.0f : 1.0f / sum;
        const i32 query = first + h * 8 + l / 4;
        if constexpr (given<Lse>) {
          const float none_seen = Splits == 1 ? most[h] - most[h] : most[h];
          if (l % 4 == 0 && query < S::queries) lse.store(base + query, none ? none_seen : Score::lse(most[h], sum));
        }
      }
      if constexpr (given<Y> && Splits == 1) {
        detail::store_rows<S::value>(sums, factor, y, head, first, S::queries);
      } else if constexpr (given<Y>) {
DM_UNROLL
        for (int e = 0; e < V::padded / 2; e += 2) {
          const i32 query = first + e / 2 % 2 * 8 + l / 4, col = e / 4 * 8 + l % 4 * 2;
          if (query >= S::queries || col >= S::value) continue;
          Vec<float, 2> two;
          two[0] = sums[e] * factor[e / 2 % 2], two[1] = sums[e + 1] * factor[e / 2 % 2];
          y.template store<2>((base + query) * S::value + col, two);
        }
      }
    }
  }
}

}  // namespace dm
