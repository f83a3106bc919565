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

// Range is `count` numbers from `from` on, of which those from low on lie behind a gap.
struct Range {
  i32 from, count, low, gap;
  DM_FN i32 operator[](i32 n) const { return from + n < low ? from + n : from + n + gap; }
};

// cut is [from, to) without the whole pieces of EACH in it, whose numbers [from, to)
// becomes.
template <i32 EACH> DM_FN Range cut(i32& from, i32& to) {
  Range r{from, to - from, to, 0};
  from = (from + EACH - 1) / EACH;
  to = to / EACH;
  if (from >= to) from = to;
  else r.low = from * EACH, r.gap = (to - from) * EACH;
  r.count -= r.gap;
  return r;
}

// Groups the UPDATES updates of a batch by row(batch, update), the row that they
// name if it is one of ROWS, in their order: order has the numbers of the updates
// of row 0, of row 1 and so on, and starts, from number batch * (ROWS + 1) on, where
// those of each row begin and where those of the last one end. The block has the
// rows from strip * STRIP on.
//
// It counts the updates of each of its rows and of all rows before, which gives the
// starts, and then reads the updates again in order. The first warp places those
// of its rows, 32 at a time: of several in one row each lane counts those before it.
// Where there are many, PLACERS warps share them: each counts those of every row in
// its part first. A thread reads EACH updates at a time. counts has STRIP elements,
// parts PLACERS * STRIP, found EACH for each thread, scratch 32.
template <i32 ROWS, i32 UPDATES, i32 STRIP, i32 EACH, i32 PLACERS, class Row, class To>
DM_FN void group_updates(i32 batch, i32 strip, const Row& row, To starts, To order, Shared<i32> counts, Shared<u16> parts, Shared<u32> found, Shared<i32> scratch DM_LINE) {
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
    const bool many = PLACERS > 1 && total > 2 * 32;
    for (i32 i = thread(); many && i < PLACERS * STRIP; i += threads()) parts[DM_IDX(i)] = u16(0);
    sync(DM_HERE_ONLY);
    // Calls visit for the updates of [from, to) in found: with the row of each lane, its
    // number, the lanes of that row and how many of them are before this one.
    const auto each = [&](i32 from, i32 to, const auto& visit) {
      for (i32 q = from; q < to; q += 32) {
        u32 f = 0;
        if (q + lane() < to) f = found[DM_IDX(q + lane())];
        const i32 r = q + lane() < to ? i32(f / tile) : -1;
        const u32 same = match(r DM_HERE);
        visit(r, k0 + i32(f % tile), popcount(same), popcount(same & ((1u << lane()) - 1)));
      }
    };
    if (!many) {
      if (warp() == 0) {
        each(0, total, [&](i32 r, i32 k, i32 same, i32 before) {
          i32 to = 0;
          if (r >= 0) to = counts[DM_IDX(r)];
          sync_warp(DM_HERE_ONLY);
          if (r >= 0) order.store(DM_IDX(to + before), k);
          if (r >= 0 && before == 0) counts[DM_IDX(r)] = to + same;
          sync_warp(DM_HERE_ONLY);
        });
      }
    } else {
      const i32 size = (total + PLACERS * 32 - 1) / (PLACERS * 32) * 32, own = warp() * STRIP;
      const i32 from = min(warp() * size, total), to = warp() < PLACERS ? min(from + size, total) : from;
      each(from, to, [&](i32 r, i32, i32 same, i32 before) {
        if (r >= 0 && before == 0) parts[DM_IDX(own + r)] += same;
        sync_warp(DM_HERE_ONLY);
      });
      sync(DM_HERE_ONLY);
      // parts becomes the number of updates of a row in a warp's part and those behind it.
      for (i32 r = thread(); r < rows; r += threads()) {
        i32 sum = 0;
        for (i32 w = PLACERS - 1; w >= 0; w--) {
          const u16 n = parts[DM_IDX(w * STRIP + r)];
          sum += n;
          parts[DM_IDX(w * STRIP + r)] = u16(sum);
        }
        counts.add(DM_IDX(r), sum);
      }
      sync(DM_HERE_ONLY);
      each(from, to, [&](i32 r, i32 k, i32 same, i32 before) {
        i32 end = 0;
        u16 behind = 0;
        if (r >= 0) end = counts[DM_IDX(r)];
        if (r >= 0) behind = parts[DM_IDX(own + r)];
        sync_warp(DM_HERE_ONLY);
        if (r >= 0) order.store(DM_IDX(end - behind + before), k);
        if (r >= 0 && before == 0) parts[DM_IDX(own + r)] = u16(behind - same);
        sync_warp(DM_HERE_ONLY);
      });
    }
    sync(DM_HERE_ONLY);
  }
}

}  // namespace dm
