// Attention without the matrix of scores in memory: what the kernels on tensor
// cores (attention_wgmma.cuh, attention_mma.cuh) and on the vector units
// (attention_fma.cuh) have in common. The softmax is computed online, tile by tile of the keys, and the gradient
// recomputes the probabilities from the logarithm of their sum (Dao,
// FlashAttention-2, arXiv 2307.08691). Results do not depend on the order in
// which blocks run.
//
// A generated kernel passes a struct S:
//
//   static constexpr dm::i32 heads, group;    // over the whole batch; that share a key head
//   static constexpr dm::i32 queries, keys, depth, value;
//   static constexpr bool causal;
//   static constexpr double scale;
//   static constexpr dm::u64 seed, threshold; // dropout: as keeps() takes them, before the step; 0: none
//   static constexpr double keep;             // what kept probabilities are multiplied by
//   static constexpr dm::i64 mask_row, mask_col;      // steps of the mask
//   DM_FN static dm::i64 mask_at(dm::i32 head);       // where a head's mask begins
//
// and, for the gradient of the mask, how heads share it:
//
//   static constexpr dm::i32 mask_repeats;    // heads that share a matrix of the mask
//   DM_FN static dm::i32 mask_head(dm::i32 matrix, dm::i32 repeat);
#pragma once

namespace dm {

// View is a tensor that lies in the memory of another one, a part or a permutation
// of it, as Where describes:
//
//   static constexpr dm::i64 row;             // from a row to the next; rows are contiguous
//   DM_FN static dm::i64 at(dm::i32 matrix);  // where a head's rows begin
template <class T, class Where> struct View {
  In<T> data;
};
// Placed is a View that is stored.
template <class T, class Where> struct Placed {
  Out<T> data;
};

// PartOfWhole is the Step of a dropout in a part of a whole, whose numbers are those that the whole draws: first is the number of its
// first row of scores there, and Where describes the others:
//
//   DM_FN static dm::i64 row_at(dm::i32 head); // behind first, the number of a head's first row
template <class Where, class First, class Step> struct PartOfWhole {
  First first;
  Step step;
};
template <class Where, class First, class Step> DM_FN PartOfWhole<Where, First, Step> part_of_whole(const First& first, const Step& step) {
  return {first, step};
}

namespace detail {
// Drawn is by what dropout draws the numbers of a head: the number of its first row, and its seed.
template <class S, class Step> struct Drawn {
  DM_FN static u64 row(const Step&, i32 head) { return u64(head) * u64(S::queries); }
  DM_FN static u64 seed(const Step& step) {
    if constexpr (given<Step>) return seed_of(S::seed, u64(wide(step[0])));
    return S::seed;
  }
};
template <class S, class Where, class First, class Step> struct Drawn<S, PartOfWhole<Where, First, Step>> {
  DM_FN static u64 row(const PartOfWhole<Where, First, Step>& part, i32 head) { return u64(wide(part.first[0])) + u64(Where::row_at(head)); }
  DM_FN static u64 seed(const PartOfWhole<Where, First, Step>& part) { return Drawn<S, Step>::seed(part.step); }
};
// Matrices is how the heads of an operand with rows of Depth elements lie.
template <class X, int Depth> struct Matrices;
template <class T, int Depth> struct Matrices<In<T>, Depth> {
  typedef T elem;
  static constexpr i64 row = Depth;
  DM_FN static i64 at(i64 matrix, i32 rows) { return matrix * rows * Depth; }
  DM_FN static const In<T>& data(const In<T>& x) { return x; }
};
template <class T, class Where, int Depth> struct Matrices<View<T, Where>, Depth> {
  typedef T elem;
  static constexpr i64 row = Where::row;
  DM_FN static i64 at(i64 matrix, i32) { return Where::at(i32(matrix)); }
  DM_FN static const In<T>& data(const View<T, Where>& x) { return x.data; }
};
template <class T, int Depth> struct Matrices<Out<T>, Depth> {
  typedef T elem;
  static constexpr i64 row = Depth;
  DM_FN static i64 at(i64 matrix, i32 rows) { return matrix * rows * Depth; }
  DM_FN static const Out<T>& data(const Out<T>& x) { return x; }
};
template <class T, class Where, int Depth> struct Matrices<Placed<T, Where>, Depth> {
  typedef T elem;
  static constexpr i64 row = Where::row;
  DM_FN static i64 at(i64 matrix, i32) { return Where::at(i32(matrix)); }
  DM_FN static const Out<T>& data(const Placed<T, Where>& x) { return x.data; }
};
template <class X> using Elem = typename Matrices<X, 1>::elem;

constexpr double log2_e = 1.4426950408889634074;
constexpr double ln_2 = 0.69314718055994530942;

// 2^x, within 2^-22 for float.
DM_FN float power_of_2(float x) {
#ifdef DM_HOST
  return std::exp2(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
DM_FN double power_of_2(double x) {
#ifdef DM_HOST
  return std::exp2(x);
#else
  return ::exp2(x);
#endif
}
// Of the four lanes that hold a row of a fragment.
template <class F> DM_FN float quad_reduce(float v) {
  v = F::of(v, shuffle_xor(v, 1));
  return F::of(v, shuffle_xor(v, 2));
}
DM_FN constexpr i32 tiles(i32 n, i32 size) { return (n + size - 1) / size; }
// The elements that an access of a row moves at most, of so many bytes each, 16 together: rows of a multiple of so many begin at one.
DM_FN constexpr i32 aligned_elements(i32 depth, i32 bytes) { return bytes == 2 && depth % 8 == 0 ? 8 : depth % 4 == 0 ? 4 : 2; }
}  // namespace detail

// Scores are the scores of one head, the input of the softmax. Without a mask they
// are the bare products, and the scale is applied in the exponent by one multiply-add.
// With a mask they are scaled and masked, and the difference is computed first, since
// a mask may hold the least finite number, which must not be multiplied. The
// exponential is computed as a power of two in both cases.
template <class S, class Acc, class Mask, class Step> struct Scores {
  static constexpr bool masked = given<Mask>;
  static constexpr i32 shift = S::keys - S::queries;
  // Whether tiles behind all their queries may be skipped. A query that sees no
  // key at all makes NaN of everything it touches.
  static constexpr bool skips = S::causal && shift >= 0;
  static constexpr bool drops = S::threshold > 0;
  // Whether scores are the bare products. Under a negative scale the greatest
  // product is not the greatest score; one that f32 rounds to 0 is of no use in
  // the exponent.
  static constexpr bool plain = !masked && S::scale > 1e-30;
  static constexpr double unit = plain ? S::scale * detail::log2_e : detail::log2_e; // of a score, in the exponent

  Mask mask;
  i64 at;
  u64 numbers, seed;

  DM_FN Scores(const Mask& m, const Step& step, i32 head) : mask(m), at(S::mask_at(head)), numbers(detail::Drawn<S, Step>::row(step, head) * u64(S::keys)), seed(S::seed) {
    if constexpr (drops && given<Step>) seed = detail::Drawn<S, Step>::seed(step);
  }

  DM_FN static bool sees(i32 query, i32 key) { return query < S::queries && key < S::keys && (!S::causal || key <= query + shift); }
  DM_FN static Acc least() { return Acc(bits_as<float>(0xff800000u)); } // minus infinity

  DM_FN Acc score(Acc product, i32 query, i32 key) const {
    if constexpr (!plain) product *= Acc(S::scale);
    if constexpr (masked) {
      if (sees(query, key)) product += Acc(wide(mask[at + query * S::mask_row + key * S::mask_col]));
    }
    return product;
  }
  // e^(score - other), where other is a score or the logarithm of a sum of
  // exponentials, converted by below or below_lse.
  DM_FN static Acc exponential(Acc score, Acc ready) {
    if constexpr (masked) {
      return detail::power_of_2((score - ready) * Acc(unit));
    } else {
      return detail::power_of_2(fma(score, Acc(unit), -ready));
    }
  }
  DM_FN static Acc below(Acc score) { return masked ? score : score * Acc(unit); }
  DM_FN static Acc below_lse(Acc lse) { return masked ? lse : lse * Acc(detail::log2_e); }
  // The logarithm of a sum of exponentials relative to the greatest score.
  DM_FN static Acc lse(Acc most, Acc sum) { return most * Acc(unit * detail::ln_2) + log(sum); }
  // Whether dropout keeps a probability.
  DM_FN bool keeps(i32 query, i32 key) const {
    return dm::keeps(seed, numbers + u64(query) * u64(S::keys) + u64(key), S::threshold);
  }
  // The same of key + j, where key is even, and j 0 or 1 and known to the compiler: of two keys one draw is made if their number is even.
  DM_FN bool keeps(i32 query, i32 key, i32 j) const {
    if constexpr (S::keys % 2 != 0) return keeps(query, key + j);
    return dm::keeps(seed, numbers + u64(query) * u64(S::keys) + u64(key), j, S::threshold);
  }
};

// Span is the rows that a block owns, and the tiles of the other side that it
// visits: of the keys, for each of a tile of queries, or (ByKeys) of the
// queries of all heads that share a key head, for each of a tile of keys.
template <class S, bool ByKeys, i32 BM, i32 BN, bool Skips>
struct Span {
  static constexpr i32 own = ByKeys ? S::keys : S::queries, others = ByKeys ? S::queries : S::keys;
  static constexpr i32 shift = S::keys - S::queries;
  static constexpr i32 blocks = detail::tiles(own, BM); // of a head
  i32 matrix, first;   // head or key head; the first row of the block
  i32 from, steps, n;  // the first tile, tiles of a head, tiles of all heads

  DM_FN explicit Span(i32 index) {
    matrix = index / blocks;
    // Under a causal mask late queries have the most keys, and early keys the
    // most queries: those begin first.
    first = (ByKeys ? index % blocks : blocks - 1 - index % blocks) * BM;
    from = 0;
    steps = detail::tiles(others, BN);
    if constexpr (Skips && ByKeys) {
      from = first > shift ? (first - shift) / BN : 0;
      steps -= from;
    } else if constexpr (Skips) {
      const i32 end = first + BM + shift;
      steps = detail::tiles(end < others ? end : others, BN);
    }
    n = ByKeys ? steps * S::group : steps;
  }
  // The head and the first row of the other side in a step.
  DM_FN i32 head(i32 step) const { return ByKeys ? matrix * S::group + step / steps : matrix; }
  DM_FN i32 other(i32 step) const { return (from + (ByKeys ? step % steps : step)) * BN; }
};

// Part is the range of steps [from, to) of n for one of Splits blocks that share a
// tile's keys.
struct Part {
  i32 number, from, to;
  DM_FN Part(i32 number, i32 splits, i32 n) : number(number), from(i32(i64(n) * number / splits)), to(i32(i64(n) * (number + 1) / splits)) {}
};

// attention_join combines the results of blocks that share a tile's keys: for each
// a mean of values, and the logarithm of its weight. So many lanes have a query, and access
// so many elements at a time; launch with 256 threads.
template <class S, int Splits, int Lanes, int Each, class T, class Acc, class Y, class Lse>
DM_FN void attention_join(In<Acc> means, In<Acc> weights, const Y& y, const Lse& lse) {
  constexpr i64 rows = i64(S::heads) * S::queries;
  const i64 row = (i64(block()) * 8 + warp()) * (32 / Lanes) + lane() / Lanes;
  if (row >= rows) return;
  Acc most = weights[row], sum = 0, weight[Splits];
DM_UNROLL
  for (int i = 0; i < Splits; i++) {
    weight[i] = weights[i * rows + row];
    most = max(most, weight[i]);
  }
DM_UNROLL
  for (int i = 0; i < Splits; i++) {
    // Where no block has seen a key this is NaN.
    weight[i] = detail::power_of_2((weight[i] - most) * Acc(detail::log2_e));
    sum += weight[i];
  }
  if constexpr (given<Lse>) {
    if (lane() % Lanes == 0) lse.store(row, most + log(sum));
  }
  if constexpr (given<Y>) {
    for (i32 col = lane() % Lanes * Each; col < S::value; col += Lanes * Each) {
      Vec<Acc, Each> v{};
DM_UNROLL
      for (int i = 0; i < Splits; i++) {
        const Vec<Acc, Each> mean = means.template load<Each>((i * rows + row) * S::value + col);
DM_UNROLL
        for (int e = 0; e < Each; e++) v[e] = fma(weight[i], mean[e], v[e]);
      }
      Vec<T, Each> out;
DM_UNROLL
      for (int e = 0; e < Each; e++) out[e] = narrow<T>(v[e] * Acc(S::keep) / sum);
      y.template store<Each>(row * S::value + col, out);
    }
  }
}

// attention_delta stores the sum over dy · y of each query, which so many lanes have; they
// load so many elements at a time. Launch with 256 threads.
template <class S, int Lanes, int Each, class T, class Acc>
DM_FN void attention_delta(In<T> y, In<T> dy, Out<Acc> delta) {
  const i64 row = (i64(block()) * 8 + warp()) * (32 / Lanes) + lane() / Lanes;
  const bool is = row < i64(S::heads) * S::queries;
  Acc sum = 0;
  for (i32 col = lane() % Lanes * Each; is && col < S::value; col += Lanes * Each) {
    const Vec<T, Each> a = y.template load<Each>(row * S::value + col), b = dy.template load<Each>(row * S::value + col);
DM_UNROLL
    for (int e = 0; e < Each; e++) sum += Acc(wide(a[e])) * Acc(wide(b[e]));
  }
DM_UNROLL
  for (int m = Lanes / 2; m > 0; m /= 2) sum += shuffle_xor(sum, m);
  if (is && lane() % Lanes == 0) delta.store(row, sum);
}

}  // namespace dm
