// The emulation of warp.cuh.
#pragma once

namespace dm {

DM_FN i32 thread() { return emu::local_thread(); }
DM_FN i32 threads() { return emu::m.thread_count; }
DM_FN i32 block() { return emu::m.at[0]; }
DM_FN i32 block_y() { return emu::m.at[1]; }
DM_FN i32 block_z() { return emu::m.at[2]; }
DM_FN i32 blocks() { return emu::m.grid[0]; }
DM_FN i32 blocks_y() { return emu::m.grid[1]; }
DM_FN i32 blocks_z() { return emu::m.grid[2]; }
DM_FN i32 lane() { return emu::m.lane; }
DM_FN i32 warp() { return emu::m.warp - emu::m.first_warp; }

DM_FN void sync(DM_LINE_ONLY) { emu::barrier(0, emu::m.thread_count, at); }
DM_FN void sync_warp(DM_LINE_ONLY) {
  emu::collective(emu::SyncWarp, at, nullptr, [](emu::Warp& w) { w.clock++; });
}
DM_FN void sync_named(i32 id, i32 count DM_LINE) {
  if (id < 1 || id > 15 || count < 32 || count % 32 || count > emu::m.thread_count) {
    emu::fault("divergence", at, -1, id, "barrier %d of %d threads: it must be 1 to 15, of whole warps of the block", id, count);
  }
  emu::barrier(id, count, at);
}

namespace emu {

template <class T> struct Exchange {
  T value;
  i32 from;
};

template <class T> T exchange(T v, i32 from, Spot line) {
  Exchange<T> mine{v, from};
  collective(Shuffle, line, &mine, [](Warp& w) {
    T all[32];
    for (int k = 0; k < 32; k++) {
      if (w.full >> k & 1) all[k] = static_cast<Exchange<T>*>(w.args[k])->value;
    }
    for (int k = 0; k < 32; k++) {
      if (!(w.full >> k & 1)) continue;
      auto* e = static_cast<Exchange<T>*>(w.args[k]);
      e->value = all[e->from];
    }
  });
  return mine.value;
}

DM_ONCE_OF(float exchange(float, i32, Spot))
DM_ONCE_OF(double exchange(double, i32, Spot))
DM_ONCE_OF(i32 exchange(i32, i32, Spot))
DM_ONCE_OF(u32 exchange(u32, i32, Spot))
DM_ONCE_OF(i64 exchange(i64, i32, Spot))

template <class F, class T> inline T warp_reduce(T v, Spot line) {
  collective(Reduce, line, &v, [](Warp& w) {
    if (w.full != ~0u) fault("divergence", m.line, -1, -1, "a reduction over a warp of fewer than 32 threads");
    T now[32], next[32];
    for (int k = 0; k < 32; k++) now[k] = *static_cast<T*>(w.args[k]);
    for (int mask = 16; mask > 0; mask >>= 1) {
      for (int k = 0; k < 32; k++) next[k] = F::of(now[k], now[k ^ mask]);
      memcpy(now, next, sizeof now);
    }
    for (int k = 0; k < 32; k++) *static_cast<T*>(w.args[k]) = now[k];
  });
  return v;
}

}  // namespace emu

template <class T> DM_FN T shuffle(T v, i32 lane DM_LINE) { return emu::exchange(v, lane & 31, at); }
template <class T> DM_FN T shuffle_xor(T v, i32 mask DM_LINE) { return emu::exchange(v, (emu::m.lane ^ mask) & 31, at); }
template <class T> DM_FN T shuffle_down(T v, i32 n DM_LINE) {
  i32 from = emu::m.lane + n;
  return emu::exchange(v, from > 31 ? emu::m.lane : from, at);
}
DM_FN bool last_block(InOut<u32> counter, i64 i, u32 blocks DM_LINE) {
  sync(at);
  if (thread() == 0) {
    u32 before = counter.add(At(i, at), 1);
    if (before >= blocks) emu::fault("bounds", at, counter.param->index, i, "the counter of %u blocks stands at %u", blocks, before);
    emu::own().last = before == blocks - 1;
    if (emu::own().last) memset(counter.param->data + i * 4, 0, 4);
  }
  sync(at);
  if (emu::own().last) emu::own().acquired = true;
  return emu::own().last;
}
DM_FN void post(InOut<u32> flags, i64 i DM_LINE) {
  sync_warp(at);
  if (lane() != 0) return;
  emu::cleared(*flags.param, emu::checked<u32, 1>(*flags.param, At(i, at)), at);
  flags.store(At(i, at), 1);
  emu::post(flags.param->offset + 4 * i);
}
DM_FN void await(InOut<u32> flags, i64 i DM_LINE) {
  if (lane() == 0 && !emu::await(flags.param->offset + emu::checked<u32, 1>(*flags.param, At(i, at)))) {
    emu::fault("deadlock", at, flags.param->index, i, "no block with a lower number sets the flag");
  }
  sync_warp(at);
}
DM_FN u32 ballot(bool p DM_LINE) {
  u32 mine = p;
  emu::collective(emu::Vote, at, &mine, [](emu::Warp& w) {
    u32 all = 0;
    for (int k = 0; k < 32; k++) {
      if (w.full >> k & 1) all |= *static_cast<u32*>(w.args[k]) << k;
    }
    for (int k = 0; k < 32; k++) {
      if (w.full >> k & 1) *static_cast<u32*>(w.args[k]) = all;
    }
  });
  return mine;
}
DM_FN u32 match(i32 v DM_LINE) {
  u32 mine = u32(v);
  emu::collective(emu::Match, at, &mine, [](emu::Warp& w) {
    u32 all[32], same[32] = {};
    for (int k = 0; k < 32; k++) {
      if (w.full >> k & 1) all[k] = *static_cast<u32*>(w.args[k]);
    }
    for (int k = 0; k < 32; k++) {
      for (int j = 0; j < 32; j++) {
        if (w.full >> k & w.full >> j & 1 && all[k] == all[j]) same[k] |= 1u << j;
      }
      if (w.full >> k & 1) *static_cast<u32*>(w.args[k]) = same[k];
    }
  });
  return mine;
}
DM_FN i32 popcount(u32 bits) { return __builtin_popcount(bits); }

}  // namespace dm
