// Lines of elements in order: equal ones in the order of their places, zeros of both signs equal, NaN behind all numbers or before
// them. A generated kernel passes a struct G:
//
//   static constexpr dm::i32 lines, n, most;   // of n elements, of which the first `most` in order are stored
//   static constexpr dm::i64 inner;            // from an element of a line to the next
//   static constexpr bool falling, nan_first;
//
// Elements are compared by keys (sort_key), which are computed from them wherever they are needed, so that what moves is the
// elements themselves: no wider than in memory, with the signs of zeros and the bits of NaN. y and places are where elements
// and their places in the line are stored, or Nothing.
#pragma once

namespace dm {

namespace detail {

template <int BYTES> struct KeyOf { typedef u32 type; };
template <> struct KeyOf<8> { typedef u64 type; };

template <class T> DM_FN typename KeyOf<sizeof(T)>::type bits_of(T x) {
  if constexpr (sizeof(T) == 1) return bits_as<u8>(x);
  else if constexpr (sizeof(T) == 2) return bits_as<u16>(x);
  else if constexpr (sizeof(T) == 4) return bits_as<u32>(x);
  else return bits_as<u64>(x);
}

// The bits of infinity: those of a NaN are greater, but for its sign.
template <class T> constexpr u64 infinity_bits = 0;
template <> inline constexpr u64 infinity_bits<f16> = 0x7c00;
template <> inline constexpr u64 infinity_bits<bf16> = 0x7f80;
template <> inline constexpr u64 infinity_bits<float> = 0x7f800000;
template <> inline constexpr u64 infinity_bits<double> = 0x7ff0000000000000;

}  // namespace detail

// An integer without sign, of the bits of x, that rises in the order of elements; that of NaN is the greatest or the least one,
// and no number's.
template <class G, class T> DM_FN typename detail::KeyOf<sizeof(T)>::type sort_key(T x) {
  typedef typename detail::KeyOf<sizeof(T)>::type K;
  constexpr K top = K(1) << (sizeof(T) * 8 - 1), all = top | (top - 1);
  K k = detail::bits_of(x);
  if constexpr (detail::Kind<T>::is_float) {
    const K size = k & (top - 1);
    k = size != 0 && (k & top) ? all ^ k : size | top;
    if (G::falling) k ^= all;
    if (size > K(detail::infinity_bits<T>)) k = G::nan_first ? K(0) : all;
    return k;
  } else {
    if constexpr (T(-1) < T(0)) k ^= top;
    return G::falling ? k ^ all : k;
  }
}

// The lanes of the warp with the same digit, of 8 bits, as bits.
DM_FN u32 match_digit(u32 digit DM_LINE) {
#ifdef DM_HOST
  return match(i32(digit) DM_HERE);
#else
  u32 same = 0xffffffffu;
  DM_UNROLL
  for (int b = 0; b < 8; b++) {
    u32 with;
    asm volatile("{\n .reg .pred set;\n .reg .b32 bit;\n and.b32 bit, %1, %2;\n setp.ne.u32 set, bit, 0;\n vote.sync.ballot.b32 %0, set, 0xffffffff;\n}" : "=r"(with) : "r"(digit), "r"(1u << b));
    same &= ~(with ^ u32(i32(digit << (31 - b)) >> 31));
  }
  return same;
#endif
}

namespace detail {

constexpr i32 digit_values = 256;

// Where element i of a line lies among lines of N.
template <class G> DM_FN i64 line_place(i32 line, i32 i, i32 n) {
  if constexpr (G::inner == 1) return i64(line) * n + i;
  else return i64(line / i32(G::inner)) * (n * G::inner) + line % i32(G::inner) + i64(i) * G::inner;
}

// A key and the place of its element, by which no two are equal.
template <int BYTES> struct Ranked {
  u32 v;
  DM_FN static Ranked of(u32 key, i32 at) { return Ranked{key << 16 | u32(at)}; }
  DM_FN i32 at() const { return i32(v & 0xffff); }
  DM_FN bool before(const Ranked& r) const { return v < r.v; }
  DM_FN Ranked across(i32 mask DM_LINE) const { return Ranked{shuffle_xor(v, mask DM_HERE)}; }
};
template <> struct Ranked<4> {
  u64 v;
  DM_FN static Ranked of(u32 key, i32 at) { return Ranked{u64(key) << 32 | u32(at)}; }
  DM_FN i32 at() const { return i32(v); }
  DM_FN bool before(const Ranked& r) const { return v < r.v; }
  DM_FN Ranked across(i32 mask DM_LINE) const { return Ranked{shuffle_xor(v, mask DM_HERE)}; }
};
template <> struct Ranked<8> {
  u64 v;
  i32 place;
  DM_FN static Ranked of(u64 key, i32 at) { return Ranked{key, at}; }
  DM_FN i32 at() const { return place; }
  DM_FN bool before(const Ranked& r) const { return v < r.v || (v == r.v && place < r.place); }
  DM_FN Ranked across(i32 mask DM_LINE) const { return Ranked{shuffle_xor(v, mask DM_HERE), shuffle_xor(place, mask DM_HERE)}; }
};

// Sorts teams of TEAM lanes with ITEMS elements each, element e of a team in item e / TEAM of lane e % TEAM: the bitonic network
// (Batcher, Sorting Networks and Their Applications, 1968).
template <int TEAM, int ITEMS, class R> DM_FN void bitonic(R (&c)[ITEMS] DM_LINE) {
  constexpr int all = TEAM * ITEMS, steps = all > 64 ? 7 : all > 32 ? 6 : all > 16 ? 5 : all > 8 ? 4 : all > 4 ? 3 : all > 2 ? 2 : all > 1 ? 1 : 0;
  static_assert(1 << steps == all, "as many elements as a power of two up to 128");
  const i32 sub = lane() % TEAM;
  DM_UNROLL
  for (int a = 1; a <= steps; a++) {
    DM_UNROLL
    for (int b = a - 1; b >= 0; b--) {
      const int run = 1 << a, apart = 1 << b;
      if (apart >= TEAM) {
        DM_UNROLL
        for (int i = 0; i < ITEMS; i++) {
          const int j = i ^ apart / TEAM;
          const bool rising = ((i * TEAM + sub) & run) == 0;
          if (j > i && c[j].before(c[i]) == rising) {
            const R r = c[i];
            c[i] = c[j], c[j] = r;
          }
        }
      } else {
        DM_UNROLL
        for (int i = 0; i < ITEMS; i++) {
          const R r = c[i].across(apart DM_HERE);
          const bool rising = ((i * TEAM + sub) & run) == 0, lower = (sub & apart) == 0;
          if (r.before(c[i]) == (rising == lower)) c[i] = r;
        }
      }
    }
  }
}

}  // namespace detail

// Sorts LINES lines in a block of LINES * TEAM threads, each by a team of TEAM lanes with ITEMS elements each. Lines that lie beside
// each other are read and written together. tile and order have LINES * n elements.
template <class G, int TEAM, int ITEMS, int LINES, class T, class Y, class P>
DM_FN void sort_short_lines(In<T> x, Y y, P places, Shared<T> tile, Shared<u8> order DM_LINE) {
  typedef detail::Ranked<sizeof(T) < 4 ? 2 : sizeof(T)> R;
  constexpr i32 n = G::n, most = G::most;
  const i32 first = block() * LINES, own = min(LINES, G::lines - first), team = thread() / TEAM, sub = thread() % TEAM;
  DM_UNROLL_BY(4)
  for (i32 e = thread(); e < LINES * n; e += LINES * TEAM) {
    const i32 line = G::inner == 1 ? e / n : e % LINES, i = G::inner == 1 ? e % n : e / LINES;
    if (line < own) tile[DM_IDX(line * n + i)] = x[DM_IDX(detail::line_place<G>(first + line, i, n))];
  }
  sync(DM_HERE_ONLY);
  R c[ITEMS];
  DM_UNROLL
  for (int k = 0; k < ITEMS; k++) {
    const i32 i = k * TEAM + sub;
    typename detail::KeyOf<sizeof(T)>::type key = ~typename detail::KeyOf<sizeof(T)>::type(0); // behind all
    if (i < n && team < own) key = sort_key<G>(T(tile[DM_IDX(team * n + i)]));
    c[k] = R::of(key, i);
  }
  detail::bitonic<TEAM, ITEMS>(c DM_HERE);
  DM_UNROLL
  for (int k = 0; k < ITEMS; k++) {
    const i32 i = k * TEAM + sub;
    if (i < most && team < own) order[DM_IDX(team * most + i)] = u8(c[k].at());
  }
  sync(DM_HERE_ONLY);
  DM_UNROLL_BY(4)
  for (i32 e = thread(); e < LINES * most; e += LINES * TEAM) {
    const i32 line = G::inner == 1 ? e / most : e % LINES, i = G::inner == 1 ? e % most : e / LINES;
    if (line >= own) continue;
    const i32 place = u8(order[DM_IDX(line * most + i)]);
    const i64 to = detail::line_place<G>(first + line, i, most);
    if constexpr (given<Y>) y.store(DM_IDX(to), tile[DM_IDX(line * n + place)]);
    if constexpr (given<P>) places.store(DM_IDX(to), place);
  }
}

namespace detail {

struct Either {
  static constexpr bool fills = true;
  static constexpr int empty = 0;
  template <class T> DM_FN static T of(T x, T y) { return x | y; }
};

}  // namespace detail

// The shared memory in which a block of THREADS threads with ITEMS elements each sorts these.
template <class T, class A, int THREADS, int ITEMS> struct Sorter {
  Shared<T> x;
  Shared<A> place;
  Shared<i32> counts, begin;  // of digits: of each warp, and of the block
  Shared<i32> scratch;
  Shared<u64> bits;

  // With PLACES, place has those of the elements.
  template <bool PLACES> DM_FN static Sorter in(Arena& arena DM_LINE) {
    constexpr i32 all = THREADS * ITEMS;
    return Sorter{arena.template take<T>(all DM_HERE), arena.template take<A>(PLACES ? all : 0 DM_HERE), arena.template take<i32>(THREADS / 32 * detail::digit_values DM_HERE),
                  arena.template take<i32>(detail::digit_values DM_HERE), arena.template take<i32>(32 DM_HERE), arena.template take<u64>(32 DM_HERE)};
  }

  // The digits of a thread in the sums over warps: those from thread() * each on.
  static constexpr i32 each = THREADS < detail::digit_values ? detail::digit_values / THREADS : 1;

  // The places of the elements when they are in the order of their digits, those with equal digits in the order in which they lie:
  // those of a warp follow each other, item after item. before and found are where the thread's digits begin, and how many
  // elements have them.
  //
  // A warp counts its elements one item at a time, without atomic additions: lanes with the same digit find each other, the
  // first one adds their number, and each takes what was there and the lanes before it. So equal digits take no longer.
  DM_FN void rank(const u32 (&digit)[ITEMS], i32 (&to)[ITEMS], i32 (&before)[each], i32 (&found)[each] DM_LINE) const {
    const i32 own = warp() * detail::digit_values;
    DM_UNROLL
    for (i32 d = 0; d < detail::digit_values; d += 32) counts[DM_IDX(own + d + lane())] = 0;
    sync_warp(DM_HERE_ONLY);
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) {
      const u32 same = match_digit(digit[i] DM_HERE);
      const i32 earlier = popcount(same & ((1u << lane()) - 1)), count = counts[DM_IDX(own + i32(digit[i]))];
      sync_warp(DM_HERE_ONLY);
      if (earlier == 0) counts[DM_IDX(own + i32(digit[i]))] = count + popcount(same);
      sync_warp(DM_HERE_ONLY);
      to[i] = count + earlier;
    }
    sync(DM_HERE_ONLY);
    const i32 from = thread() * each;
    i32 sum = 0, all;
    DM_UNROLL
    for (int k = 0; k < each; k++) {
      found[k] = 0;
      if (from < detail::digit_values) {
        DM_UNROLL
        for (int w = 0; w < THREADS / 32; w++) {
          const i32 count = counts[DM_IDX(w * detail::digit_values + from + k)];
          counts[DM_IDX(w * detail::digit_values + from + k)] = found[k];
          found[k] += count;
        }
      }
      sum += found[k];
    }
    sum = detail::block_before(sum, all, scratch DM_HERE);
    DM_UNROLL
    for (int k = 0; k < each; k++) {
      before[k] = sum;
      if (from < detail::digit_values) begin[DM_IDX(from + k)] = sum;
      sum += found[k];
    }
    sync(DM_HERE_ONLY);
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) to[i] += counts[DM_IDX(own + i32(digit[i]))] + begin[DM_IDX(i32(digit[i]))];
  }

  // Sorts the first n of the elements that lie in v: element e in item e % (32 * ITEMS) / 32 of lane e % 32 of warp
  // e / (32 * ITEMS). What is behind them stays there: its digits are the greatest, and it comes last. Digits that all keys have
  // alike are skipped.
  template <class G, bool PLACES> DM_FN void sort(T (&v)[ITEMS], A (&places)[ITEMS], i32 n DM_LINE) const {
    typedef typename detail::KeyOf<sizeof(T)>::type K;
    const i32 first = warp() * 32 * ITEMS + lane();
    K differ = ~K(0);
    if constexpr (sizeof(T) > 2) {
      K ones = 0, zeros = 0;
      DM_UNROLL
      for (int i = 0; i < ITEMS; i++) {
        const K k = sort_key<G>(v[i]);
        if (first + i * 32 < n) ones |= k, zeros |= ~k;
      }
      if constexpr (sizeof(T) == 4) {
        const u64 both = detail::block_reduce<detail::Either>(u64(ones) << 32 | zeros, bits DM_HERE);
        differ = u32(both >> 32) & u32(both);
      } else {
        ones = detail::block_reduce<detail::Either>(ones, bits DM_HERE);
        differ = ones & detail::block_reduce<detail::Either>(zeros, bits DM_HERE);
      }
    }
    DM_NO_UNROLL
    for (i32 shift = 0; shift < i32(sizeof(T)) * 8; shift += 8) {
      if ((u32(differ >> shift) & 255) == 0) continue;
      u32 digit[ITEMS];
      i32 to[ITEMS], before[each], found[each];
      DM_UNROLL
      for (int i = 0; i < ITEMS; i++) digit[i] = first + i * 32 < n ? u32(sort_key<G>(v[i]) >> shift) & 255 : 255;
      rank(digit, to, before, found DM_HERE);
      DM_UNROLL
      for (int i = 0; i < ITEMS; i++) {
        x[DM_IDX(to[i])] = v[i];
        if constexpr (PLACES) place[DM_IDX(to[i])] = places[i];
      }
      sync(DM_HERE_ONLY);
      DM_UNROLL
      for (int i = 0; i < ITEMS; i++) {
        v[i] = x[DM_IDX(first + i * 32)];
        if constexpr (PLACES) places[i] = place[DM_IDX(first + i * 32)];
      }
    }
  }
};

// Sorts a line in a block of THREADS threads with ITEMS elements each, by digits of 8 bits, the least significant one first.
template <class G, int THREADS, int ITEMS, class T, class Y, class P> DM_FN void sort_line(In<T> x, Y y, P places, Arena& arena DM_LINE) {
  constexpr bool with = given<P>;
  const auto s = Sorter<T, u16, THREADS, ITEMS>::template in<with>(arena DM_HERE);
  const i32 line = block(), first = warp() * 32 * ITEMS + lane();
  T v[ITEMS] = {};
  u16 own[ITEMS];
  DM_UNROLL
  for (int i = 0; i < ITEMS; i++) {
    const i32 p = first + i * 32;
    own[i] = u16(p);
    if (p < G::n) v[i] = x[DM_IDX(detail::line_place<G>(line, p, G::n))];
  }
  s.template sort<G, with>(v, own, G::n DM_HERE);
  DM_UNROLL
  for (int i = 0; i < ITEMS; i++) {
    const i32 p = first + i * 32;
    if (p >= G::most) continue;
    const i64 to = detail::line_place<G>(line, p, G::most);
    if constexpr (given<Y>) y.store(DM_IDX(to), v[i]);
    if constexpr (with) places.store(DM_IDX(to), own[i]);
  }
}

}  // namespace dm
