// The updates of a scatter in groups by row.
#pragma once

namespace dm {

namespace detail {
// The sum of v over the threads of the block before this one; total is that over
// all. The scratch, an element for each warp, is free again afterwards.
DM_FN i32 block_before(i32 v, i32& total, Shared<i32> scratch DM_LINE) {
  i32 sum = v;
  for (i32 n = 1; n < 32; n *= 2) {
    const i32 other = shuffle(sum, lane() - n DM_HERE);
    if (lane() >= n) sum += other;
  }
  if (lane() == 31) scratch[DM_IDX(warp())] = sum;
  sync(DM_HERE_ONLY);
  i32 before = sum - v;
  total = 0;
  for (i32 w = 0; w < threads() / 32; w++) {
    const i32 n = scratch[DM_IDX(w)];
    if (w < warp()) before += n;
    total += n;
  }
  sync(DM_HERE_ONLY);
  return before;
}
}  // namespace detail

// Groups the UPDATES updates of a batch by row(batch, update), the row that they
// name if it is one of ROWS, in their order: order has the numbers of the updates
// of row 0, of row 1 and so on, and starts, from number batch * (ROWS + 1) on, where
// those of each row begin and where those of the last one end. The block has the
// rows from strip * STRIP on.
//
// It counts the updates of each of its rows and of all rows before, which gives the
// starts, and then reads the updates again in order. The first warp places those
// of its rows, 32 at a time: of several in one row each lane counts those before it.
// A thread reads EACH updates at a time. counts has STRIP elements, found EACH for
// each thread, scratch 32.
template <i32 ROWS, i32 UPDATES, i32 STRIP, i32 EACH, class Row, class To>
DM_FN void group_updates(i32 batch, i32 strip, const Row& row, To starts, To order, Shared<i32> counts, Shared<u32> found, Shared<i32> scratch DM_LINE) {
  const i32 low = strip * STRIP, rows = min(STRIP, ROWS - low), tile = threads() * EACH;
  for (i32 r = thread(); r < rows; r += threads()) counts[DM_IDX(r)] = 0;
  sync(DM_HERE_ONLY);
  i32 below = 0;
  for (i32 k0 = 0; k0 < UPDATES; k0 += tile) {
    DM_UNROLL
    for (i32 n = 0; n < EACH; n++) {
      const i32 k = k0 + n * threads() + thread();
      const i64 r = k < UPDATES ? row(batch, k) : -1;
      if (r >= 0 && r < low) below++;
      if (r >= low && r < low + rows) counts.add(DM_IDX(i32(r) - low), 1);
    }
  }
  i32 next = batch * UPDATES + block_sum(below, scratch DM_HERE);
  sync(DM_HERE_ONLY);
  for (i32 r0 = 0; r0 < rows; r0 += threads()) {
    const i32 r = r0 + thread();
    i32 n = 0, total;
    if (r < rows) n = counts[DM_IDX(r)];
    const i32 from = next + detail::block_before(n, total, scratch DM_HERE);
    if (r < rows) {
      counts[DM_IDX(r)] = from;
      starts.store(DM_IDX(i64(batch) * (ROWS + 1) + low + r), from);
    }
    next += total;
  }
  if (low + rows == ROWS && thread() == 0) starts.store(DM_IDX(i64(batch) * (ROWS + 1) + ROWS), next);

  for (i32 k0 = 0; k0 < UPDATES; k0 += tile) {
    i32 in[EACH], n = 0, total;
    DM_UNROLL
    for (i32 j = 0; j < EACH; j++) {
      const i32 k = k0 + thread() * EACH + j;
      const i64 r = k < UPDATES ? row(batch, k) : -1;
      in[j] = r >= low && r < low + rows ? i32(r) - low : -1;
      n += in[j] >= 0;
    }
    i32 slot = detail::block_before(n, total, scratch DM_HERE);
    if (total == 0) continue;
    DM_UNROLL
    for (i32 j = 0; j < EACH; j++) {
      if (in[j] >= 0) found[DM_IDX(slot++)] = u32(in[j]) * tile + thread() * EACH + j;
    }
    sync(DM_HERE_ONLY);
    for (i32 q = 0; q < total && warp() == 0; q += 32) {
      const bool has = q + lane() < total;
      u32 f = 0;
      if (has) f = found[DM_IDX(q + lane())];
      const i32 r = has ? i32(f / tile) : -1;
      const u32 same = match(r DM_HERE);
      const i32 before = popcount(same & ((1u << lane()) - 1));
      i32 to = 0;
      if (has) to = counts[DM_IDX(r)];
      sync_warp(DM_HERE_ONLY);
      if (has) order.store(DM_IDX(to + before), k0 + i32(f % tile));
      if (has && before == 0) counts[DM_IDX(r)] = to + popcount(same);
      sync_warp(DM_HERE_ONLY);
    }
    sync(DM_HERE_ONLY);
  }
}

}  // namespace dm
