// The emulation of hopper.cuh. Asynchronous operations happen as late as
// possible: a bulk copy when a thread waits at its barrier, a product when its
// group is waited for. So a thread that continues too early reads poison, or has a
// race.
#pragma once

#include "emu_cluster.cuh"

namespace dm {

namespace emu {

// A barrier in shared memory that counts arrivals and bytes.
struct Phases {
  u32 at;           // its offset
  i32 count, left;  // threads of a phase, and those that have not arrived
  i64 bytes;        // expected and not arrived yet
  u32 phase;        // the current one
  Spot line;        // where it was initialised
  u32 made;         // the stamp of its initialisation
  bool ready;       // barriers_ready was called since
  Clock coming, done;
};

// A pending bulk copy.
struct Bulk {
  u32 to, barrier;
  int bytes;
  u8* data;
  Spot line;
};

// A pending bulk store, by the thread that started it and its group.
struct BulkStore {
  int thread, group, rank;
  u32 from;
  Param* param;
  i32 at[5];
  Spot line;
};

constexpr int max_phases = 128;
constexpr int max_bulk = 512;

struct Hopper {
  u32 block;  // that the rest is of
  int phases, bulks, stores;
  Phases phase[max_phases];
  Bulk bulk[max_bulk];
  BulkStore store[max_bulk];
  int groups[max_threads];  // of stores that a thread has closed
  u32 time;  // of the last bulk copy that has ended
};
inline Hopper hopper[max_cluster];

// The state of a block of the cluster; that of an earlier one is reset.
DM_ONCE Hopper& block_of(i32 rank) {
  Hopper& h = hopper[rank];
  if (h.block != m.blocks[rank].id) {
    for (int i = 0; i < h.bulks; i++) free(h.bulk[i].data);
    h.block = m.blocks[rank].id;
    h.phases = h.bulks = h.stores = 0;
    h.time = 0;
    for (int t = 0; t < max_threads; t++) h.groups[t] = 0;
  }
  return h;
}
inline Hopper& this_block() { return block_of(m.rank); }
DM_ONCE Phases& phases_at(u32 at, Spot line) {
  Hopper& h = block_of(i32(at / shared_bytes));
  m.line = line;
  for (int i = 0; i < h.phases; i++) {
    Phases& p = h.phase[i];
    if (p.at != at) continue;
    if (!p.ready) fault("async", line, -1, -1, "a barrier is used that barriers_ready has not made known since line %d", p.line.line);
    if (!ordered(p.made)) fault("race", line, -1, -1, "a barrier is used without a barrier of the block after line %d, where it was made", p.line.line);
    return p;
  }
  fault("uninitialised", line, -1, -1, "no barrier was made at byte %u of shared memory", at % shared_bytes);
}

DM_ONCE void make_phases(u32 at, u32 count, Spot line) {
  Hopper& h = this_block();
  if (h.phases == max_phases) fault("memory", line, -1, -1, "more than %d barriers", max_phases);
  if (count < 1 || count > 1u << 20) fault("async", line, -1, -1, "a barrier for %u threads", count);
  Phases& p = h.phase[h.phases++];
  p = Phases{};
  p.at = at;
  p.count = p.left = i32(count);
  p.line = line;
  p.made = m.stamp;
}

// The next phase begins if this one is complete.
DM_ONCE void turn(Phases& p) {
  if (p.left || p.bytes) return;
  p.phase++;
  p.left = p.count;
  p.done = p.coming;
  wake();
}

DM_ONCE void arrive(Phases& p, i64 bytes, Spot line) {
  if (!p.left) fault("async", line, -1, -1, "more than %d threads arrive at a barrier in one phase", p.count);
  release(p.coming);
  p.bytes += bytes;
  p.left--;
  turn(p);
}

// Completes the copies that signal p.
DM_ONCE void end_copies(Phases& p) {
  Hopper& h = this_block();
  int kept = 0;
  for (int i = 0; i < h.bulks; i++) {
    Bulk b = h.bulk[i];
    if (b.barrier != p.at) {
      h.bulk[kept++] = b;
      continue;
    }
    Warp& w = m.warps[m.warp];
    h.time = h.time >= w.clock ? h.time + 1 : w.clock;
    w.clock = h.time + 1;  // a later block starts after all clocks
    m.stamp = stamp_of(w.clock, u32(m.thread));
    shared_end_async(b.to, b.data, b.bytes, stamp_of(h.time, m.first_agent + u32(engine(m.rank))));
    if (p.coming.seen[engine(m.rank)] < h.time) p.coming.seen[engine(m.rank)] = h.time;
    p.bytes -= b.bytes;
    free(b.data);
  }
  h.bulks = kept;
  turn(p);
}

DM_ONCE void wait_phase(u32 at, u32 parity, bool peers, Spot line) {
  while (true) {
    Phases& p = phases_at(at, line);
    if ((p.phase & 1) == (parity & 1)) {
      end_copies(p);
      if ((p.phase & 1) == (parity & 1)) {
        pause(line);
        continue;
      }
    }
    acquire(p.done, peers);
    m.stamp = stamp_of(m.warps[m.warp].clock, u32(m.thread));
    return;
  }
}

// Where byte `at` lies in a pattern of 128-byte lines whose 16-byte chunks are
// exchanged: the chunk's number xor that of the line, modulo eight; in a pattern of 64 bytes modulo four.
inline u32 swizzled(u32 at, int pattern = 128) { return at ^ (at >> 7 & u32(pattern / 16 - 1)) << 4; }

// The bytes of a box of p's tensor map, which `rank` coordinates place.
DM_ONCE i64 box_bytes(Param& p, int rank, Spot line) {
  const TensorMap& t = p.map;
  if (!t.rank) fault("async", line, p.index, -1, "no tensor map was given");
  if (t.rank != rank) fault("async", line, p.index, -1, "%d coordinates for a tensor map of %d dimensions", rank, t.rank);
  const i64 row = t.box[0] * t.elem_bytes;
  if (p.offset % 16 || row % 16) fault("misaligned", line, p.index, -1, "a tensor map of rows of %lld bytes from byte %lld on", row, p.offset);
  for (int d = 1; d < rank; d++) {
    if (t.strides[d] % 16) fault("misaligned", line, p.index, -1, "a tensor map with a stride of %lld bytes", t.strides[d]);
  }
  i64 bytes = t.elem_bytes;
  for (int d = 0; d < rank; d++) bytes *= t.box[d];
  return bytes;
}

// Calls f for each element of the box at `from` that is inside of the tensor: its byte in a box without swizzle, and in the tensor.
template <class F>
inline void each_inside(Param& p, const i32* from, Spot line, F f) {
  const TensorMap& t = p.map;
  i64 bytes = t.elem_bytes, at[5] = {};
  for (int d = 0; d < t.rank; d++) bytes *= t.box[d];
  for (i64 k = 0; k < bytes; k += t.elem_bytes) {
    i64 offset = 0;
    bool inside = true;
    for (int d = 0; d < t.rank; d++) {
      i64 c = from[d] + at[d];
      inside = inside && c >= 0 && c < t.dims[d];
      offset += c * (d ? t.strides[d] : t.elem_bytes);
    }
    if (inside) {
      if (offset < 0 || offset + t.elem_bytes > p.bytes) fault("bounds", line, p.index, offset / t.elem_bytes, "the tensor map reaches beyond its buffer");
      f(k, offset);
    }
    for (int d = 0; d < t.rank && ++at[d] == t.box[d]; d++) at[d] = 0;
  }
}

// At the end of a block, or of a cluster, no store may be under way, and no copy to its memory.
DM_ONCE void check_transfers() {
  for (int rank = 0; rank < m.cluster; rank++) {
    const Hopper& h = hopper[rank];
    if (h.block != m.blocks[rank].id) continue;
    if (h.bulks) fault("async", h.bulk[0].line, -1, -1, "the block ends before a wait for a bulk copy to its shared memory");
    if (!h.stores) continue;
    const BulkStore& s = h.store[0];
    fault("async", s.line, s.param->index, -1, "the block ends before a wait for a bulk store of its shared memory");
  }
}

// Starts a copy to the block's memory, or to that of each block that mask has.
DM_ONCE void start_bulk(u32 to, Param& p, u32 barrier, int rank, const i32* from, Spot line, u32 mask = 0) {
  const i64 bytes = box_bytes(p, rank, line), row = p.map.box[0] * p.map.elem_bytes;
  const TensorMap& t = p.map;
  if (t.swizzle != 0 && (t.swizzle != 128 || row > 128)) fault("async", line, p.index, -1, "a swizzle of %d bytes for rows of %lld is not emulated", t.swizzle, row);
  if (to % (t.swizzle ? 1024 : 128)) fault("misaligned", line, p.index, -1, "a bulk copy to byte %u of shared memory", to);
  u8* data = static_cast<u8*>(calloc(size_t(bytes), 1));
  each_inside(p, from, line, [&](i64 k, i64 offset) {
    const u32 where = t.swizzle ? swizzled(to + u32(k)) - to : u32(k);
    if (t.elem_bytes == 2) global_read<2, 2>(p, offset, line);
    else if (t.elem_bytes == 4) global_read<4, 4>(p, offset, line);
    else if (t.elem_bytes == 1) global_read<1, 1>(p, offset, line);
    else global_read<8, 8>(p, offset, line);
    memcpy(data + where, p.data + offset, size_t(t.elem_bytes));
    if (t.rounds) {
      u32 x;
      memcpy(&x, data + where, sizeof x);
      x = tf32_of(x);
      memcpy(data + where, &x, sizeof x);
    }
  });
  at_block_end = check_transfers;
  const u32 ranks = mask ? mask : 1u << m.rank;
  for (i32 r = 0; r < max_cluster; r++) {
    if (!(ranks >> r & 1)) continue;
    reach(r, line);
    Hopper& h = block_of(r);
    if (h.bulks == max_bulk) fault("memory", line, p.index, -1, "more than %d bulk copies under way", max_bulk);
    Bulk& b = h.bulk[h.bulks++];
    b = Bulk{peer_place(to, r), peer_place(barrier, r), int(bytes), static_cast<u8*>(malloc(size_t(bytes))), line};
    memcpy(b.data, data, size_t(bytes));
    shared_begin_async(b.to, int(bytes), line);
  }
  free(data);
  wake();  // a thread that already waits at the barrier completes the copy
}

DM_ONCE void start_multicast(u32 to, Param& p, u32 barrier, int rank, const i32* from, u32 mask, Spot line) {
  if (!mask) fault("async", line, p.index, -1, "a multicast to no block");
  start_bulk(to, p, barrier, rank, from, line, mask);
}

// The times of a thread's last fences for the asynchronous proxy; a fence ends a time of its warp, so that
// it is known what stands before it.
constexpr int max_fences = 16;
struct Fences {
  u32 block, count;
  u32 times[max_fences];
};
inline Fences fences_of[all_threads];

DM_ONCE void publish() {
  Fences& f = fences_of[m.thread];
  if (f.block != m.me) f.block = m.me, f.count = 0;
  Warp& w = m.warps[m.warp];
  f.times[f.count++ % max_fences] = w.clock++;
  m.stamp = stamp_of(w.clock, u32(m.thread));
}

// Whether a thread's write was followed by its fence, and that by a wait of the running warp.
DM_ONCE bool published(u32 write) {
  const u32 who = write & m.who_mask, time = write >> m.who_bits;
  const Fences& f = fences_of[who];
  if (f.block != m.blocks[who / u32(32 * m.warp_count)].id) return false;
  const Warp& w = m.warps[m.warp];
  const u32 seen = agent_of(who) == u32(m.warp) ? w.clock - 1 : w.seen[agent_of(who)];
  for (u32 i = 0; i < f.count && i < max_fences; i++) {
    if (f.times[i] >= time && f.times[i] <= seen) return true;
  }
  return false;
}

// Starts a store. Its bytes were written, and their writers called writes_publish since.
DM_ONCE void start_store(u32 from, Param& p, int rank, const i32* at, Spot line) {
  Hopper& h = this_block();
  const i64 bytes = box_bytes(p, rank, line), row = p.map.box[0] * p.map.elem_bytes;
  const TensorMap& t = p.map;
  if (h.stores == max_bulk) fault("memory", line, p.index, -1, "more than %d bulk stores under way", max_bulk);
  if (t.swizzle % 64 || row > (t.swizzle ? t.swizzle : 1024)) fault("async", line, p.index, -1, "a swizzle of %d bytes for rows of %lld is not emulated", t.swizzle, row);
  if (from % u32(t.swizzle ? 8 * t.swizzle : 128)) fault("misaligned", line, p.index, -1, "a bulk store from byte %u of shared memory", from);
  shared_read(from, int(bytes), line);
  for (u32 k = from >> 1; k < (from + u32(bytes)) >> 1; k++) {
    u32 who = smem.writers[k] & m.who_mask;
    if (smem.writers[k] >= smem.start && who < m.first_agent && !published(smem.writers[k]))
      fault("async", line, p.index, -1, "a bulk store of what thread %u has written without writes_publish", who % u32(32 * m.warp_count));
  }
  at_block_end = check_transfers;
  BulkStore& s = h.store[h.stores++];
  s = BulkStore{m.thread, h.groups[m.thread % max_threads], rank, from, &p, {}, line};
  for (int d = 0; d < rank; d++) s.at[d] = at[d];
}

DM_ONCE void end_store(const BulkStore& s) {
  Param& p = *s.param;
  const TensorMap& t = p.map;
  shared_read(s.from, int(box_bytes(p, s.rank, s.line)), s.line);
  each_inside(p, s.at, s.line, [&](i64 k, i64 offset) {
    const u32 from = t.swizzle ? swizzled(s.from + u32(k), t.swizzle) : s.from + u32(k);
    if (t.elem_bytes == 2) global_write<2, 2>(p, offset, s.line);
    else if (t.elem_bytes == 4) global_write<4, 4>(p, offset, s.line);
    else if (t.elem_bytes == 1) global_write<1, 1>(p, offset, s.line);
    else global_write<8, 8>(p, offset, s.line);
    memcpy(p.data + offset, smem.data + from, size_t(t.elem_bytes));
  });
}

// Ends the calling thread's stores but for the last groups: as late as possible, so that what is written to their boxes
// before is stored, or is a race.
DM_ONCE void end_stores(int under_way) {
  Hopper& h = this_block();
  int kept = 0;
  for (int i = 0; i < h.stores; i++) {
    const BulkStore s = h.store[i];
    if (s.thread == m.thread && s.group < h.groups[m.thread % max_threads] - under_way) end_store(s);
    else h.store[kept++] = s;
  }
  h.stores = kept;
}

// A number as additions in memory take and give it: a subnormal one is zero.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

}  // namespace emu

DM_FN void barrier_make(Shared<u64> b, i64 i, u32 count DM_LINE) { emu::make_phases(b.check(At(i, at), 1), count, at); }
DM_FN void barriers_ready() {
  emu::Hopper& h = emu::this_block();
  for (int i = 0; i < h.phases; i++) h.phase[i].ready = true;
}
DM_FN void writes_publish() { emu::publish(); }
DM_FN void barrier_expect(Shared<u64> b, i64 i, u32 bytes DM_LINE) { emu::arrive(emu::phases_at(b.check(At(i, at), 1), at), bytes, at); }
DM_FN void barrier_arrive(Shared<u64> b, i64 i DM_LINE) { emu::arrive(emu::phases_at(b.check(At(i, at), 1), at), 0, at); }
DM_FN void barrier_arrive(Shared<u64> b, i64 i, i32 rank DM_LINE) {
  u32 own = b.check(At(i, at), 1);
  emu::touch(rank, at);
  emu::arrive(emu::phases_at(emu::peer_place(own, rank), at), 0, at);
}
DM_FN void barrier_wait(Shared<u64> b, i64 i, u32 phase DM_LINE) { emu::wait_phase(b.check(At(i, at), 1), phase, false, at); }
DM_FN void barrier_wait_peers(Shared<u64> b, i64 i, u32 phase DM_LINE) { emu::wait_phase(b.check(At(i, at), 1), phase, true, at); }
DM_FN void add_in_turn(const InOut<float>& to, i64 i, Vec<float, 4> v DM_LINE) {
  const i64 from = emu::checked<float, 4>(*to.param, At(i, at));
  emu::global_add<16, 4>(*to.param, from, at);
  float sum[4];
  memcpy(sum, to.param->data + from, sizeof sum);
  for (int e = 0; e < 4; e++) sum[e] = emu::flushed(emu::flushed(sum[e]) + emu::flushed(v[e]));
  memcpy(to.param->data + from, sum, sizeof sum);
}
DM_FN void barrier_leave(Shared<u64> b, i64 i, i32 rank DM_LINE) { barrier_arrive(b, i, rank, at); }

DM_FN void map_prefetch(const Map& map DM_LINE) {
  if (!map.param->map.rank) emu::fault("async", at, map.param->index, -1, "no tensor map was given");
}
template <class T> DM_FN void tile_load(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, i32 c0, i32 c1 DM_LINE) {
  i32 c[] = {c0, c1};
  emu::start_bulk(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 2, c, at);
}
template <class T> DM_FN void tile_load(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, i32 c0, i32 c1, i32 c2 DM_LINE) {
  i32 c[] = {c0, c1, c2};
  emu::start_bulk(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 3, c, at);
}
template <class T> DM_FN void tile_load(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, i32 c0, i32 c1, i32 c2, i32 c3 DM_LINE) {
  i32 c[] = {c0, c1, c2, c3};
  emu::start_bulk(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 4, c, at);
}
template <class T> DM_FN void tile_load(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4 DM_LINE) {
  i32 c[] = {c0, c1, c2, c3, c4};
  emu::start_bulk(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 5, c, at);
}

template <class T> DM_FN void tile_multicast(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, u16 mask, i32 c0, i32 c1 DM_LINE) {
  i32 c[] = {c0, c1};
  emu::start_multicast(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 2, c, mask, at);
}
template <class T> DM_FN void tile_multicast(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, u16 mask, i32 c0, i32 c1, i32 c2 DM_LINE) {
  i32 c[] = {c0, c1, c2};
  emu::start_multicast(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 3, c, mask, at);
}
template <class T> DM_FN void tile_multicast(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, u16 mask, i32 c0, i32 c1, i32 c2, i32 c3 DM_LINE) {
  i32 c[] = {c0, c1, c2, c3};
  emu::start_multicast(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 4, c, mask, at);
}
template <class T> DM_FN void tile_multicast(Shared<T> to, i64 n, const Map& map, Shared<u64> b, i64 i, u16 mask, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4 DM_LINE) {
  i32 c[] = {c0, c1, c2, c3, c4};
  emu::start_multicast(to.check(At(n, at), 1), *map.param, b.check(At(i, at), 1), 5, c, mask, at);
}

template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i64 n, i32 c0, i32 c1 DM_LINE) {
  i32 c[] = {c0, c1};
  emu::start_store(from.check(At(n, at), 1), *map.param, 2, c, at);
}
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i64 n, i32 c0, i32 c1, i32 c2 DM_LINE) {
  i32 c[] = {c0, c1, c2};
  emu::start_store(from.check(At(n, at), 1), *map.param, 3, c, at);
}
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i64 n, i32 c0, i32 c1, i32 c2, i32 c3 DM_LINE) {
  i32 c[] = {c0, c1, c2, c3};
  emu::start_store(from.check(At(n, at), 1), *map.param, 4, c, at);
}
template <class T> DM_FN void tile_store(const Map& map, Shared<T> from, i64 n, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4 DM_LINE) {
  i32 c[] = {c0, c1, c2, c3, c4};
  emu::start_store(from.check(At(n, at), 1), *map.param, 5, c, at);
}
DM_FN void stores_commit() { emu::this_block().groups[emu::m.thread % emu::max_threads]++; }
template <int N> DM_FN void stores_wait() { emu::end_stores(N); }

}  // namespace dm

#include "emu_product.cuh"
