// The producer of the main loop on Hopper where a tensor map cannot copy an operand: the image of a
// convolution, whose elements shift with each tap of the window and are zeros beyond its edges (implicit
// GEMM). A warpgroup copies it in chunks of 16 bytes, each to where a bulk copy would have placed it; the
// other operand may come by a tensor map. The consumers are those of gemm_wgmma.
#pragma once

namespace dm {

// Gather is what a thread of the producing warpgroup copies of a stage of Rows x 64 elements: chunks of eight
// neighbours, from lines of 128 bytes that eight lanes share. Along k these are rows, and all chunks of a thread have the same k;
// else they are lines of k, and all have the same rows of each panel. What depends on the rows alone is
// computed once for a tile.
template <class X, int Rows>
struct Gather {
  using T = typename X::Elem;
  using Offset = typename X::Offset;
  static constexpr int coordinates = X::coordinates;
  static constexpr int own = X::along_k ? Rows / 16 : Rows / 64; // rows of a thread, or first ones of eight
  static constexpr u32 bytes = 0;                                // that bulk copies bring
  static constexpr i32 run = X::again ? X::run : 0;              // of k that has one tap, of a window of several
  static constexpr u64 order = X::order;                         // of taps
  i32 row;
  Source<T> source[own];
  i32 places[own][coordinates > 0 ? coordinates : 1];

  DM_FN static i32 line() { return thread() / 8; } // the first of a thread; the others lie 16 apart
  DM_FN i32 row_of(int i) const { return row + (X::along_k ? line() + i * 16 : thread() % 8 * 8 + i * 64); }

  // begin goes to the tile from row r on.
  DM_FN void begin(const X& x, i32 z, i32 r) {
    row = r;
    const Offset o = x.outer(z);
    DM_UNROLL
    for (int i = 0; i < own; i++) {
      source[i] = Source<T>(x.source(row_of(i)), o + x.row(row_of(i)));
      if constexpr (coordinates > 0) x.place(places[i], row_of(i));
    }
  }

  // load starts copying the step from k on, which ends below `end`; Whole: with it, or behind it.
  template <bool Whole>
  DM_FN void load(const X& x, Shared<T> stage, Shared<u64>, i32, i32, i32 k, i32 end) const {
    const i32 c = thread() % 8;
    if constexpr (X::along_k) {
      constexpr bool uniform = X::run % 64 == 0; // all chunks of the step are of one tap
      const At<Whole> from(x, uniform ? k : k + c * 8, uniform ? c * 8 : 0, end);
      DM_UNROLL
      for (int i = 0; i < own; i++) copy(x, stage, (line() + i * 16) * 64 + (c ^ (line() & 7)) * 8, i, from);
    } else {
      DM_UNROLL
      for (int j = 0; j < 64; j += 16) {
        const At<Whole> from(x, k + line() + j, 0, end);
        DM_UNROLL
        for (int i = 0; i < own; i++) copy(x, stage, i * 4096 + (line() + j) * 64 + (c ^ (line() & 7)) * 8, i, from);
      }
    }
  }

 private:
  // At is what of a chunk's place depends on k.
  template <bool Whole>
  struct At {
    Offset col;
    i32 tap[coordinates > 0 ? coordinates : 1];
    bool valid;
    DM_FN At(const X& x, i32 k, i32 behind, i32 end) : col(x.col(k) + behind), valid(Whole || k + behind < end) {
      if constexpr (coordinates > 0) x.tap(tap, k);
    }
  };
  template <bool Whole>
  DM_FN void copy(const X& x, Shared<T> stage, i32 to, int i, const At<Whole>& from) const {
    if constexpr (coordinates > 0) {
      i32 sum[coordinates];
      DM_UNROLL
      for (int j = 0; j < coordinates; j++) sum[j] = places[i][j] + from.tap[j];
      cp_async<16, X::again>(stage, to, source[i], from.col + x.far(sum), from.valid && x.inside(sum));
    } else {
      cp_async<16, false>(stage, to, source[i], from.col, from.valid && x.has(row_of(i)));
    }
  }
};

// Boxes is an operand beside a gathered one that a tensor map copies: one thread starts it.
template <class X, int Rows>
struct Boxes {
  static constexpr u32 bytes = Rows * 64 * 2;
  static constexpr i32 run = 0;
  static constexpr u64 order = 0;
  i32 row;
  DM_FN void begin(const X&, i32, i32 r) { row = r; }
  template <bool Whole>
  DM_FN void load(const X& x, Shared<typename X::Elem> stage, Shared<u64> full, i32 slot, i32 z, i32 k, i32) const {
    if (thread() == 0) Bulk<X>::template load<Rows>(x, stage, full, slot, z, row, k);
  }
};
template <class X, int Rows, bool ByMaps = by_maps<X>(0)> struct Fed { using Type = Boxes<X, Rows>; };
template <class X, int Rows> struct Fed<X, Rows, false> { using Type = Gather<X, Rows>; };

// k_of is where step number `step` begins. Steps of one channel after the other go through all taps of a window, whose
// elements come from the level-1 cache then: runs of k that have one tap are Run long. Order is that of the taps, four bits each;
// 0: that of k.
template <i32 K, i32 Run, u64 Order>
DM_FN i32 k_of(i32 step) {
  if constexpr (Run % 64 == 0 && (Run > 64 || Order > 0) && K % Run == 0) {
    i32 tap = step % (K / Run);
    if constexpr (Order > 0) tap = i32(Order >> tap * 4) & 15;
    return tap * Run + step / (K / Run) * 64;
  } else {
    return step * 64;
  }
}

// Walk goes through the steps of a tile, as k_of says. Those of a phase go through its taps for 64 channels, then for others, where Run
// says that taps meet elements again.
template <class S, i32 Run, u64 Order, class A>
struct Walk {
  i32 step;
  const i32 from; // 0, or where the group's part begins
  DM_FN Walk(const A&, const GroupPart& own, i32 first) : step(first), from(own.from) {}
  DM_FN i32 next() { return from + k_of<S::k, Run, Order>(step++); }
};
template <i32 Batch, i32 M, i32 N, i32 K, i32 Splits, i32 Products, bool Cluster, i32 Run, u64 Order, class A>
struct Walk<Shape<Batch, M, N, K, Splits, Products, Cluster, Groups::taps>, Run, Order, A> {
  static constexpr bool by_channels = Run > 0 && A::channels % 64 == 0;
  i32 from, taps = 1, tap, channel;
  DM_FN Walk(const A&, const GroupPart& own, i32 first) : from(own.from) {
    if (by_channels && own.depth > own.from) taps = (own.depth - own.from) / A::channels;
    tap = first % taps;
    channel = first / taps * 64;
  }
  DM_FN i32 next() {
    const i32 k = from + tap * (by_channels ? A::channels : 0) + channel;
    if (++tap == taps) tap = 0, channel += 64;
    return k;
  }
};

// whole_steps is whether no step of a tile ends behind k.
template <class S, class A>
DM_FN constexpr bool whole_steps() {
  if constexpr (S::groups == Groups::taps) return A::channels % 64 == 0;
  return S::k % 64 == 0 && S::groups != Groups::depth;
}

// gather_tiles is the producing warpgroup. Copies of `behind` steps are in flight; when those of an earlier one have ended, a warp
// publishes them: its lanes make their writes visible to wgmma, which reads through the asynchronous proxy, and one of them arrives.
template <class Tile, class S, class T, class A, class B>
DM_FN void gather_tiles(const A& a, const B& b, Shared<T> as, Shared<T> bs, Shared<u64> full, Shared<u64> empty) {
  using FedA = typename Fed<A, Tile::BM>::Type;
  using FedB = typename Fed<B, Tile::BN>::Type;
  constexpr i32 tiles = tiles_of<S, Tile::BM, Tile::BN>, behind = Tile::stages - 2;
  constexpr u32 bytes = FedA::bytes + FedB::bytes;
  constexpr bool whole = whole_steps<S, A>();
  static_assert(behind > 0, "the consumers free a slot when they have the step behind it");
  FedA from_a;
  FedB from_b;
  i32 slot = 0, ready = 0, under_way = 0; // the slot to fill, that to publish next, and the steps between
  u32 phase = 0;
  for (i32 tile = block(); tile < tiles; tile += blocks()) {
    Place p = place<S, Tile::BM, Tile::BN, Tile::BK>(tile);
    const GroupPart own = group_part<S, Tile::BM, Tile::BK>(p, a);
    Walk<S, FedA::run + FedB::run, FedA::order | FedB::order, A> walk(a, own, p.first);
    from_a.begin(a, p.z, p.m);
    from_b.begin(b, p.z, p.n);
    DM_NO_UNROLL
    for (i32 step = p.first; step < p.last; step++) {
      barrier_wait(empty, slot, phase ^ 1);
      if (bytes > 0 && thread() == 0) barrier_expect(full, slot, bytes);
      const i32 k = walk.next();
      from_a.template load<whole>(a, as + slot * (Tile::BM * 64), full, slot, p.z, k, own.depth);
      from_b.template load<whole>(b, bs + slot * (Tile::BN * 64), full, slot, p.z, k, own.depth);
      cp_async_commit();
      if (++slot == Tile::stages) slot = 0, phase ^= 1;
      if (under_way < behind) {
        under_way++;
        continue;
      }
      cp_async_wait<behind>();
      writes_publish();
      sync_warp();
      if (lane() == 0) barrier_arrive(full, ready);
      if (++ready == Tile::stages) ready = 0;
    }
  }
  cp_async_wait<0>();
  writes_publish();
  sync_warp();
  for (i32 i = 0; i < under_way; i++) {
    if (lane() == 0) barrier_arrive(full, ready);
    if (++ready == Tile::stages) ready = 0;
  }
}

}  // namespace dm
