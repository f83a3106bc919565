// Lines that many blocks sort together, or select from (see sort.cuh for G).
#pragma once

namespace dm {

// Lines are sorted by digits of 8 bits, the least significant one first, in three launches for each digit: CHUNKS blocks of a line
// count the digits of their parts, the counts become the places at which the digits of each part begin, and the blocks move their
// elements there. Blocks wait for each other at the ends of launches alone: none needs another one to run beside it.
//
// Digit number `pass` is read from the line itself where pass is 0, then from lines of n elements that follow each other.

namespace detail {

// The part of a line of chunk number `chunk` of CHUNKS: whole tiles.
template <i32 N, i32 CHUNKS, i32 TILE> DM_FN i32 chunk_begin(i32 chunk) {
  constexpr i32 tiles = (N + TILE - 1) / TILE;
  return min(N, i32(i64(tiles) * chunk / CHUNKS) * TILE);
}

template <class G, bool LINE> DM_FN i64 place_of(i32 line, i32 i, i32 n) {
  if constexpr (LINE) return line_place<G>(line, i, n);
  else return i64(line) * n + i;
}

}  // namespace detail

// Counts the digits of a chunk: counts has 256 for each chunk of each line. found has 256 elements.
template <class G, int PASS, int CHUNKS, int THREADS, int ITEMS, class T>
DM_FN void count_digits(In<T> x, Out<i32> counts, Shared<i32> found DM_LINE) {
  constexpr i32 tile = THREADS * ITEMS;
  const i32 line = block() / CHUNKS, chunk = block() % CHUNKS;
  const i32 begin = detail::chunk_begin<G::n, CHUNKS, tile>(chunk), end = detail::chunk_begin<G::n, CHUNKS, tile>(chunk + 1);
  for (i32 d = thread(); d < detail::digit_values; d += THREADS) found[DM_IDX(d)] = 0;
  sync(DM_HERE_ONLY);
  for (i32 from = begin; from < end; from += tile) {
    T v[ITEMS] = {};
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) {
      const i32 p = from + i * THREADS + thread();
      if (p < end) v[i] = x[DM_IDX((detail::place_of<G, PASS == 0>(line, p, G::n)))];
    }
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) {
      if (from + i * THREADS + thread() < end) found.add(DM_IDX(i32(sort_key<G>(v[i]) >> PASS * 8 & 255)), 1);
    }
  }
  sync(DM_HERE_ONLY);
  for (i32 d = thread(); d < detail::digit_values; d += THREADS) counts.store(DM_IDX((i64(line) * CHUNKS + chunk) * detail::digit_values + d), found[DM_IDX(d)]);
}

// Makes of each count the sum of those of the chunks before, and totals of all: a block has 32 digits of a line, one for each lane,
// and its warps share the chunks. sums has THREADS elements.
template <int CHUNKS, int THREADS> DM_FN void scan_counts(InOut<i32> counts, Out<i32> totals, Shared<i32> sums DM_LINE) {
  constexpr i32 warps = THREADS / 32, each = (CHUNKS + warps - 1) / warps, groups = detail::digit_values / 32;
  const i32 line = block() / groups, digit = block() % groups * 32 + lane();
  const i32 from = warp() * each, to = min(from + each, CHUNKS);
  const i64 base = i64(line) * CHUNKS * detail::digit_values + digit;
  i32 sum = 0;
  DM_UNROLL_BY(8)
  for (i32 c = from; c < to; c++) sum += counts[DM_IDX(base + i64(c) * detail::digit_values)];
  sums[DM_IDX(thread())] = sum;
  sync(DM_HERE_ONLY);
  i32 before = 0, all = 0;
  DM_UNROLL
  for (i32 w = 0; w < warps; w++) {
    const i32 n = sums[DM_IDX(w * 32 + lane())];
    if (w < warp()) before += n;
    all += n;
  }
  DM_UNROLL_BY(8)
  for (i32 c = from; c < to; c++) {
    const i32 n = counts[DM_IDX(base + i64(c) * detail::digit_values)];
    counts.store(DM_IDX(base + i64(c) * detail::digit_values), before);
    before += n;
  }
  if (warp() == 0) totals.store(DM_IDX(line * detail::digit_values + digit), all);
}

// Moves the elements of a chunk, and their places where they are kept, to the places that their digits have: tile by tile, in order
// within the block first, so that elements with the same digit are written beside each other. counts are those of
// count_digits, or, with totals, of scan_counts.
template <class G, int PASS, int CHUNKS, int THREADS, int ITEMS, class T, class A, class N, class Y, class P>
DM_FN void scatter_digits(In<T> x, A from_places, In<i32> counts, N totals, Y y, P places, Arena& arena DM_LINE) {
  static_assert(THREADS == detail::digit_values, "a thread for each digit");
  constexpr i32 tile = THREADS * ITEMS;
  constexpr bool with = given<P>, last = PASS == i32(sizeof(T)) - 1;
  const auto s = Sorter<T, i32, THREADS, ITEMS>::template in<with>(arena DM_HERE);
  const auto shift = arena.template take<i32>(detail::digit_values DM_HERE);
  const i32 line = block() / CHUNKS, chunk = block() % CHUNKS;
  const i32 begin = detail::chunk_begin<G::n, CHUNKS, tile>(chunk), end = detail::chunk_begin<G::n, CHUNKS, tile>(chunk + 1);
  i32 start = 0, all = 0;
  if constexpr (given<N>) {
    start = counts[DM_IDX((i64(line) * CHUNKS + chunk) * detail::digit_values + thread())];
    all = totals[DM_IDX(line * detail::digit_values + thread())];
  } else {
    DM_UNROLL_BY(8)
    for (i32 c = 0; c < CHUNKS; c++) {
      const i32 n = counts[DM_IDX((i64(line) * CHUNKS + c) * detail::digit_values + thread())];
      if (c < chunk) start += n;
      all += n;
    }
  }
  i32 sum;
  start += detail::block_before(all, sum, s.scratch DM_HERE);
  DM_NO_UNROLL
  for (i32 from = begin; from < end; from += tile) {
    const i32 first = from + warp() * 32 * ITEMS + lane();
    T v[ITEMS] = {};
    i32 own[ITEMS];
    u32 digit[ITEMS];
    i32 to[ITEMS], before[1], found[1];
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) {
      const i32 p = first + i * 32;
      if (p < end) v[i] = x[DM_IDX((detail::place_of<G, PASS == 0>(line, p, G::n)))];
      if constexpr (with) own[i] = p;
      if constexpr (given<A>) {
        if (p < end) own[i] = from_places[DM_IDX(i64(line) * G::n + p)];
      }
    }
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) digit[i] = first + i * 32 < end ? u32(sort_key<G>(v[i]) >> PASS * 8) & 255 : 255;
    s.rank(digit, to, before, found DM_HERE);
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) {
      s.x[DM_IDX(to[i])] = v[i];
      if constexpr (with) s.place[DM_IDX(to[i])] = own[i];
    }
    shift[DM_IDX(thread())] = start - before[0];
    start += found[0];
    sync(DM_HERE_ONLY);
    DM_UNROLL
    for (int i = 0; i < ITEMS; i++) {
      const i32 q = i * THREADS + thread();
      if (from + q >= end) continue;
      const T e = s.x[DM_IDX(q)];
      const i32 p = shift[DM_IDX(i32(sort_key<G>(e) >> PASS * 8 & 255))] + q;
      if (last && G::most < G::n && p >= G::most) continue;
      const i64 there = detail::place_of<G, last>(line, p, last ? G::most : G::n);
      if constexpr (given<Y>) y.store(DM_IDX(there), e);
      if constexpr (with) places.store(DM_IDX(there), s.place[DM_IDX(q)]);
    }
  }
}

// Stores the first `most` of each part of a line in order: a block of 256 threads reads a part once, in order, and keeps the
// elements that come before the last one of the first `most` so far. It sorts what it has kept when its room is full, so that
// of elements in no order a few tiles are sorted, and at worst all once. Of several parts of a line the first ones are sorted by
// another launch, which has their places (`from_places`).
//
// FIRST: x are the lines, else lines of n elements that follow each other. LAST: y and places are the results' lines, else parts follow each other.
template <class G, int PARTS, bool FIRST, bool LAST, class T, class A, class Y, class P>
DM_FN void select_first(In<T> x, A from_places, Y y, P places, Arena& arena DM_LINE) {
  constexpr i32 threads = 256, items = 8, room = threads * items, each = 4, tile = threads * each, warps = threads / 32;
  static_assert(G::most + tile <= room, "a tile behind the first ones");
  typedef typename detail::KeyOf<sizeof(T)>::type K;
  constexpr bool with = given<P>;
  const auto s = Sorter<T, i32, threads, items>::template in<with>(arena DM_HERE);
  const auto sums = arena.template take<i32>(2 * warps DM_HERE);
  const i32 line = block() / PARTS, part = block() % PARTS;
  const i32 begin = i32(i64(G::n) * part / PARTS), end = i32(i64(G::n) * (part + 1) / PARTS);
  const i32 own = warp() * 32 * each + lane(), first = warp() * 32 * items + lane();
  T ahead[each] = {};
  i32 places_ahead[each] = {};
  const auto load = [&](i32 from) {
    DM_UNROLL
    for (int i = 0; i < each; i++) {
      const i32 p = from + own + i * 32;
      if (p >= end) continue;
      ahead[i] = x[DM_IDX((detail::place_of<G, FIRST>(line, p, G::n)))];
      if constexpr (given<A>) places_ahead[i] = from_places[DM_IDX(i64(line) * G::n + p)];
    }
  };
  i32 held = 0, turn = 0;
  K last = ~K(0);  // what is behind comes behind all that is held
  load(begin);
  DM_NO_UNROLL
  for (i32 from = begin;; from += tile, turn ^= warps) {
    T e[each];
    i32 e_place[each];
    u32 taken[each];
    i32 slot = 0, total = 0;
    DM_UNROLL
    for (int i = 0; i < each; i++) {
      const i32 p = from + own + i * 32;
      e[i] = ahead[i];
      e_place[i] = p;
      if constexpr (given<A>) e_place[i] = places_ahead[i];
      taken[i] = ballot(bool((p < end) & (sort_key<G>(e[i]) <= last)) DM_HERE);
      slot += popcount(taken[i]);
    }
    load(from + tile);
    if (lane() == 0) sums[DM_IDX(turn + warp())] = slot;
    sync(DM_HERE_ONLY);
    slot = held;
    DM_UNROLL
    for (int w = 0; w < warps; w++) {
      const i32 n = sums[DM_IDX(turn + w)];
      if (w < warp()) slot += n;
      total += n;
    }
    if (total == 0 && from < end) continue;
    if (from >= end || held + total > room) {
      T v[items] = {};
      i32 place[items] = {};
      DM_UNROLL
      for (int i = 0; i < items; i++) {
        if (first + i * 32 >= held) continue;
        v[i] = s.x[DM_IDX(first + i * 32)];
        if constexpr (with) place[i] = s.place[DM_IDX(first + i * 32)];
      }
      s.template sort<G, with>(v, place, held DM_HERE);
      if (from >= end) {
        DM_UNROLL
        for (int i = 0; i < items; i++) {
          const i32 p = first + i * 32;
          if (p >= G::most) continue;
          i64 to = i64(block()) * G::most + p;
          if constexpr (LAST) to = detail::line_place<G>(line, p, G::most);
          if constexpr (given<Y>) y.store(DM_IDX(to), v[i]);
          if constexpr (with) places.store(DM_IDX(to), place[i]);
        }
        return;
      }
      DM_UNROLL
      for (int i = 0; i < items; i++) {
        if (first + i * 32 >= G::most) continue;
        s.x[DM_IDX(first + i * 32)] = v[i];
        if constexpr (with) s.place[DM_IDX(first + i * 32)] = place[i];
      }
      sync(DM_HERE_ONLY);
      slot += G::most - held;
      held = G::most;
      last = sort_key<G>(T(s.x[DM_IDX(held - 1)])) - 1;  // those that are equal come later; where none is less all are taken
    }
    DM_UNROLL
    for (int i = 0; i < each; i++) {
      if (taken[i] >> lane() & 1) {
        const i32 to = slot + popcount(taken[i] & ((1u << lane()) - 1));
        s.x[DM_IDX(to)] = e[i];
        if constexpr (with) s.place[DM_IDX(to)] = e_place[i];
      }
      slot += popcount(taken[i]);
    }
    held += total;
  }
}

}  // namespace dm
