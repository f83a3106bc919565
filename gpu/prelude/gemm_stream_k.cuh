// Tiles that blocks share by their steps (Osama et al., Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU, PPoPP 2023): where the tiles are no whole waves, each worker, a block or a pair of them, first computes whole ones, as many as
// the others, and then an equal part of the steps of the rest. A tile in which a part ends is finished by the worker that has its first step: it adds
// the sums that the workers behind have left in memory, in the order of the steps, so that results have the same bits in every
// launch. The parts are dealt out from the last worker to the first, so that a block waits for blocks with lower numbers alone, which start before it, however
// many run at a time; and those have stored their sums before it needs them, as these are the first that they compute of their parts.
#pragma once

namespace dm {

// Shares is what blocks leave for each other: a tile of sums for each, in the order of its threads' registers, and a flag for each of its warps. A launch before has
// cleared the flags.
struct Shares {
  InOut<float> sums;
  InOut<u32> flags;
};

// clear clears n flags.
DM_FN void clear(Out<u32> flags, i32 n) {
  const i32 i = block() * threads() + thread();
  if (i < n) flags.store(i, 0);
}

// StreamK is the tiles and parts of tiles of a block, of so many in a worker, one after the other; Warps share a block's tile.
template <class S, i32 BM, i32 BN, i32 BK, i32 Across, i32 Blocks, i32 Warps>
struct StreamK {
  static_assert(S::splits == 1 && S::groups == Groups::none, "all sums are as long");
  static constexpr i32 tiles = tiles_of<S, BM, BN> / Blocks, steps = (S::k + BK - 1) / BK, workers = S::workers;
  static constexpr i32 whole = tiles < 2 * workers ? 0 : tiles / workers - 1, rest = tiles - whole * workers;
  static constexpr int own = BM * BN / (Warps * 32); // sums of a thread
  static_assert(own % 4 == 0 && i64(rest) * steps < i64(1) << 31, "vectors of sums, and numbers of steps");

  i32 turn = -whole; // below 0 a whole tile is next, else a step so many behind the first one of the block's part

  DM_FN static i32 worker() { return block() / Blocks; }
  DM_FN static i32 part() { return workers - 1 - worker(); }
  DM_FN static i32 from(i32 n) { return i32(i64(rest) * steps * n / workers); }

  // next finds the next place, if there is one. A tile is finished by the worker whose place has its first step.
  DM_FN bool next(Place& p) {
    i32 tile, first = 0, last = steps;
    if (turn < 0) {
      tile = (turn + whole) * workers + worker();
      turn++;
    } else {
      const i32 at = from(part()) + turn, left = from(part() + 1) - at;
      if (left <= 0) return false;
      tile = whole * workers + at / steps;
      first = at % steps;
      if (left < steps - first) last = first + left;
      turn += last - first;
    }
    p = place<S, BM, BN, BK, Across>(tile * Blocks + block() % Blocks);
    p.first = first;
    p.last = last;
    return true;
  }

  // leave leaves a warp's sums, of which sum(i) is a thread's i-th, for the worker that finishes the tile.
  template <class Sum>
  DM_FN static void leave(const Shares& shares, i32 warp, const Sum& sum) {
    DM_UNROLL
    for (int i = 0; i < own; i += 4) {
      Vec<float, 4> v;
      DM_UNROLL
      for (int j = 0; j < 4; j++) v[j] = sum(i + j);
      shares.sums.store<4>(place_of(block(), warp, i), v);
    }
    post(shares.flags, block() * Warps + warp);
  }

  // finish adds what others have left of the tile at p, whose first step it has.
  template <class Sum>
  DM_FN static void finish(const Shares& shares, const Place& p, i32 warp, const Sum& sum) {
    if (p.last == steps) return;
    const i32 after = from(part() + 1) + steps - p.last;
    DM_NO_UNROLL
    for (i32 n = part() + 1; from(n) < after; n++) {
      const i32 other = (workers - 1 - n) * Blocks + block() % Blocks;
      await(shares.flags, other * Warps + warp);
      DM_UNROLL
      for (int i = 0; i < own; i += 4) {
        const Vec<float, 4> v = shares.sums.load<4>(place_of(other, warp, i));
        DM_UNROLL
        for (int j = 0; j < 4; j++) sum(i + j) += v[j];
      }
    }
  }

  DM_FN static i64 place_of(i32 block, i32 warp, i32 i) { return i64(block) * (BM * BN) + (i / 4 * Warps + warp) * 128 + lane() * 4; }
};

}  // namespace dm
