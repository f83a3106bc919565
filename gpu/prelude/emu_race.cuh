// The emulation: detection of data races.
//
// Global memory: blocks of a launch have no order, so only one block may
// access an element that it writes, unless all accesses are atomic or a block has
// waited for the others (last_block), or a warp for a flag (await). Within a block the rules of shared memory hold.
//
// Shared memory: every warp has a clock that ticks whenever its lanes wait for
// each other, and stores the time of every other warp up to which it has waited
// (vector clocks, Fidge and Mattern; kept per access as in FastTrack, Flanagan
// and Freund, PLDI 2009). Two accesses are ordered if they are one thread's, or
// the later one's warp has waited for the earlier one's time. The blocks of a cluster
// have the clocks of all their warps, and one range of addresses for each block's memory.
#pragma once

namespace dm::emu {

// ---- shared memory

// An access is a stamp: time << who_bits | who, where who is a thread, or first_agent + an
// agent (several lanes of a warp, or bulk copies), or one of these.
inline u32 atomics() { return m.who_mask - 2; }  // threads that add atomically, or several readers of global memory
inline u32 pending() { return m.who_mask - 1; }  // a pending copy
inline u32 several() { return m.who_mask; }      // readers of several warps; the time is an index of reader_sets

constexpr u32 shared_bytes = 256 << 10;  // of a block
constexpr u32 all_shared = max_cluster * shared_bytes;
struct SharedMemory {
  alignas(1024) u8 data[all_shared];
  // One entry for two bytes, and, in the upper half, one for each odd byte, which
  // only accesses of one byte have.
  u32 writers[all_shared], readers[all_shared];
  u32 fixed;      // bytes of the static arrays
  u32 dynamic;    // where the dynamic part begins
  u32 used_fixed, used_dynamic;  // bytes of both that any launch has used
  i32 used_blocks;               // and in how many blocks
  u32 start;      // stamps below are of earlier blocks
  struct Array { const char* name; Spot line; u32 at, bytes; } arrays[32];
  int array_count;
  u32* reader_sets;  // of one time for each agent
  u32 sets_used, sets_free, sets_capacity;
};
inline SharedMemory smem;

constexpr u32 entry_of(u32 at) { return (at >> 1) + (at & 1) * (all_shared / 2); }

inline u32 shared_base() { return u32(m.rank) * shared_bytes; }  // of the block's own memory
inline u32 agent_of(u32 who) { return who < m.first_agent ? who >> 5 : who - m.first_agent; }
inline bool of_own_warps(u32 agent) { return agent - u32(m.first_warp) < u32(m.warp_count); }

// Forgets the accesses to the shared memory of `blocks` blocks: bytes [0, fixed) and the last `dynamic`
// ones, since no others have been used. The rest is never touched, which costs a page fault for each 2 KiB.
DM_ONCE void forget_shared(u32 (&entries)[all_shared], i32 blocks, u32 fixed, u32 dynamic) {
  auto forget = [&](u32 from, u32 to) {
    u32* even = entries + from / 2;
    memset(even, 0, (to - from + 1) / 2 * sizeof(u32));
    memset(even + all_shared / 2, 0, (to - from + 1) / 2 * sizeof(u32));
  };
  for (i32 rank = 0; rank < blocks; rank++) {
    u32 base = u32(rank) * shared_bytes;
    forget(base, base + fixed);
    forget(base + shared_bytes - dynamic, base + shared_bytes);
  }
}

// Whether atomic additions up to a time, which are of any warps, come before.
inline bool atomics_ordered(u32 time) {
  const Warp& w = m.warps[m.warp];
  if (m.cluster == 1) return time <= w.floor;
  for (i32 k = 0; k < m.cluster * m.warp_count; k++) {
    if (k == m.warp ? time >= w.clock : time > w.seen[k]) return false;
  }
  return true;
}

// Whether the access e is ordered before the current access of the running thread.
DM_HOT bool ordered(u32 e) {
  u32 time = e >> m.who_bits, who = e & m.who_mask;
  const Warp& w = m.warps[m.warp];
  if (who == u32(m.thread)) return true;
  if (who == atomics()) return atomics_ordered(time);
  u32 other = agent_of(who);
  if (time <= w.floor && of_own_warps(other)) return true;
  return other == u32(m.warp) ? time < w.clock : time <= w.seen[other];
}

inline u32* reader_set(u32 k) { return smem.reader_sets + size_t(k) * size_t(m.agents); }

DM_ONCE u32 new_set() {
  if (smem.sets_free != ~0u) {
    u32 k = smem.sets_free;
    smem.sets_free = *reader_set(k);
    return k;
  }
  if (smem.sets_used == smem.sets_capacity) {
    smem.sets_capacity = smem.sets_capacity ? smem.sets_capacity * 2 : 4096;
    if (smem.sets_capacity > 1u << (32 - m.who_bits)) fault("memory", m.line, -1, -1, "the shadow of shared memory is full");
    void* p = realloc(smem.reader_sets, sizeof(u32) * size_t(m.agents) * smem.sets_capacity);
    if (!p) fault("memory", m.line, -1, -1, "no memory for the shadow of shared memory");
    smem.reader_sets = static_cast<u32*>(p);
  }
  return smem.sets_used++;
}

inline void free_set(u32 k) {
  *reader_set(k) = smem.sets_free;
  smem.sets_free = k;
}

// The name of the array that byte `at` of shared memory lies in.
DM_ONCE const char* shared_name(u32 at, i64* index) {
  at %= shared_bytes;
  for (int k = 0; k < smem.array_count; k++) {
    auto& a = smem.arrays[k];
    if (at >= a.at && at < a.at + a.bytes) {
      *index = at - a.at;
      return a.name;
    }
  }
  *index = i64(at) - smem.dynamic;
  return "dynamic shared memory";
}

// The thread of access e as text, for reports.
DM_COLD_ONCE void name_of(u32 e, char (&to)[96]) {
  u32 who = e & m.who_mask, warps = u32(m.warp_count);
  char block[32] = "";
  if (u32 k = agent_of(who); k < warps * u32(m.cluster) && !of_own_warps(k)) snprintf(block, sizeof block, " of block %u of the cluster", k / warps);
  if (who < m.first_agent) snprintf(to, sizeof to, "thread %u%s", who % (32 * warps), block);
  else if (who < m.first_agent + warps * u32(m.cluster)) snprintf(to, sizeof to, "several lanes of warp %u%s", (who - m.first_agent) % warps, block);
  else if (who == several()) snprintf(to, sizeof to, "threads of several warps");
  else if (who == atomics()) snprintf(to, sizeof to, "several threads");
  else snprintf(to, sizeof to, "a bulk copy");
}

[[noreturn]] DM_COLD_ONCE void shared_fault(u32 at, Spot line, const char* kind, u32 e, const char* what) {
  i64 byte;
  const char* name = shared_name(at, &byte);
  char who[96];
  name_of(e, who);
  fault(kind, line, -1, byte, "thread %d, byte %lld of %s: %s%s%s", local_thread(), byte, name, what, e ? " by " : "", e ? who : "");
}

DM_COLD_ONCE void bad_shared_read(u32 at, u32 w, Spot line) {
  if (w < smem.start) shared_fault(at, line, "uninitialised", 0, "read before anything was written there; if another thread does that, no barrier comes between");
  if ((w & m.who_mask) == pending()) shared_fault(at, line, "async", 0, "read while an asynchronous copy to it is under way; no wait came between");
  shared_fault(at, line, "race", w, "read without a barrier after it was written");
}

DM_HOT void shared_read_entry(u32 k, u32 at, Spot line) {
  u32 w = smem.writers[k];
  if (w < smem.start || (w & m.who_mask) == pending() || !ordered(w)) bad_shared_read(at, w, line);
  u32 r = smem.readers[k];
  if (r == m.stamp) return;
  u32 who = r & m.who_mask;
  if (r < smem.start) {
    smem.readers[k] = m.stamp;
  } else if (who == several()) {
    reader_set(r >> m.who_bits)[m.warp] = m.warps[m.warp].clock;
  } else if (ordered(r)) {
    smem.readers[k] = m.stamp;
  } else if (agent_of(who) == u32(m.warp)) {
    smem.readers[k] = stamp_of(m.warps[m.warp].clock, m.first_agent + u32(m.warp));
  } else {
    u32 set = new_set(), *times = reader_set(set);
    memset(times, 0, size_t(m.agents) * sizeof(u32));
    times[agent_of(who)] = r >> m.who_bits;
    times[m.warp] = m.warps[m.warp].clock;
    smem.readers[k] = stamp_of(set, several());
  }
}

inline bool readers_done(u32 set) {
  const Warp& w = m.warps[m.warp];
  for (int k = 0; k < m.agents; k++) {
    u32 time = reader_set(set)[k];
    if (k == m.warp ? time >= w.clock : time > w.seen[k]) return false;
  }
  return true;
}

DM_HOT void shared_write_entry(u32 k, u32 at, Spot line, u32 stamp) {
  u32 w = smem.writers[k], r = smem.readers[k];
  if (w >= smem.start) {
    if ((w & m.who_mask) == pending()) shared_fault(at, line, "async", 0, "written while an asynchronous copy to it is under way; no wait came between");
    if (!ordered(w)) shared_fault(at, line, "race", w, "written without a barrier after it was written");
  }
  if (r >= smem.start) {
    if ((r & m.who_mask) == several()) {
      if (!readers_done(r >> m.who_bits)) shared_fault(at, line, "race", r, "written without a barrier after it was read");
      free_set(r >> m.who_bits);
    } else if (!ordered(r)) {
      shared_fault(at, line, "race", r, "written without a barrier after it was read");
    }
    smem.readers[k] = 0;
  }
  smem.writers[k] = stamp;
}

// The running thread reads or writes bytes [at, at+BYTES) of shared memory.
DM_ONCE void shared_read(u32 at, int bytes, Spot line) {
  m.line = line;
  if (bytes == 1) return shared_read_entry(entry_of(at), at, line);
  for (int b = 0; b < bytes; b += 2) shared_read_entry((at + u32(b)) >> 1, at + u32(b), line);
}
DM_ONCE void shared_write(u32 at, int bytes, Spot line) {
  m.line = line;
  if (bytes == 1) return shared_write_entry(entry_of(at), at, line, m.stamp);
  for (int b = 0; b < bytes; b += 2) shared_write_entry((at + u32(b)) >> 1, at + u32(b), line, m.stamp);
}

// The same for n elements of SIZE bytes each, which may also be accessed one by one.
template <int SIZE> void shared_read_all(u32 at, int n, Spot line) {
  if constexpr (SIZE > 1) return shared_read(at, SIZE * n, line);
  for (int k = 0; k < n; k++) shared_read(at + u32(k), 1, line);
}
template <int SIZE> void shared_write_all(u32 at, int n, Spot line) {
  if constexpr (SIZE > 1) return shared_write(at, SIZE * n, line);
  for (int k = 0; k < n; k++) shared_write(at + u32(k), 1, line);
}

// Atomic additions do not conflict with each other.
DM_ONCE void shared_atomic(u32 at, int bytes, Spot line) {
  m.line = line;
  for (int b = 0; b < bytes; b += 2) {
    u32 k = (at + u32(b)) >> 1, w = smem.writers[k];
    if (w < smem.start) shared_fault(at, line, "uninitialised", 0, "added to before anything was written there");
    if ((w & m.who_mask) != atomics()) shared_write_entry(k, at + u32(b), line, 0);
    smem.writers[k] = stamp_of(m.warps[m.warp].clock, atomics());
  }
}

// An asynchronous copy: its target is poisoned from its start, and written at its
// end by `who` at time `time` (for a copy of a thread: itself,
// now; for a bulk copy: the block's engine, at a time that a wait for it acquires).
DM_ONCE void shared_begin_async(u32 at, int bytes, Spot line) {
  m.line = line;
  for (int b = 0; b < bytes; b += 2) shared_write_entry((at + u32(b)) >> 1, at + u32(b), line, stamp_of(smem.start >> m.who_bits, pending()));
  memset(smem.data + at, 0xff, size_t(bytes));
}
DM_ONCE void shared_end_async(u32 at, const void* from, int bytes, u32 stamp) {
  memcpy(smem.data + at, from, size_t(bytes));
  for (int b = 0; b < bytes; b += 2) smem.writers[(at + u32(b)) >> 1] = stamp;
}

// The clock of a synchronisation object such as an mbarrier: release adds the clock
// of the running warp to it, acquire adds it to the running warp's clock; with `peers` the
// running warp then sees what other blocks of the cluster have written to global memory.
struct Clock {
  u32 seen[max_clocks];
};
DM_ONCE void release(Clock& c) {
  Warp& w = m.warps[m.warp];
  for (int k = 0; k < m.agents; k++) c.seen[k] = w.seen[k] > c.seen[k] ? w.seen[k] : c.seen[k];
  if (c.seen[m.warp] < w.clock) c.seen[m.warp] = w.clock;
  w.clock++;
  m.stamp = stamp_of(w.clock, u32(m.thread));
}
DM_ONCE void acquire(const Clock& c, bool peers) {
  Warp& w = m.warps[m.warp];
  u32 floor = ~0u;
  for (int k = 0; k < m.agents; k++) {
    if (k != m.warp && c.seen[k] > w.seen[k]) w.seen[k] = c.seen[k];
    if (peers && c.seen[k] > w.shown[k]) w.shown[k] = c.seen[k];
    if (of_own_warps(u32(k)) && k != m.warp && w.seen[k] < floor) floor = w.seen[k];
  }
  if (floor != ~0u && floor > w.floor && floor < w.clock) w.floor = floor;
}

// The barrier of a cluster: its phases that have ended, the warps that have arrived for the
// current one, and the clocks of the current one and of the last one.
struct Gather {
  u32 turn;
  i32 warps;
  Clock coming, done;
};
inline Gather gather;

// Flags that warps of blocks have posted: the place, the number of the block (of a cluster's first one), and what those see who await it.
struct Post {
  i64 at;
  u32 block;
  Clock known;
};
struct Posts {
  Post* list;
  i32 count, capacity;
  struct { i32 warp, post; } awaited[4096];  // by the warps that run
  i32 waits;
};
inline Posts posts;

DM_ONCE void post(i64 at) {
  if (posts.count == posts.capacity) {
    posts.capacity = posts.capacity ? 2 * posts.capacity : 64;
    posts.list = static_cast<Post*>(realloc(posts.list, sizeof(Post) * size_t(posts.capacity)));
    if (!posts.list) fault("memory", m.line, -1, -1, "no memory for flags");
  }
  Post& p = posts.list[posts.count++];
  p.at = at;
  p.block = m.blocks[0].id;
  memset(&p.known, 0, sizeof p.known);
  release(p.known);
}
DM_ONCE bool await(i64 at) {
  for (i32 k = 0; k < posts.count; k++) {
    if (posts.list[k].at != at) continue;
    if (posts.waits == 4096) fault("memory", m.line, -1, -1, "a block waits for too many flags");
    posts.awaited[posts.waits++] = {m.warp, k};
    return true;
  }
  return false;
}

// Whether the running warp has awaited a flag of a block; `seen` is then whether it sees this access of that block.
DM_ONCE bool awaited(u32 block, u32 stamp, bool& seen) {
  bool found = false;
  seen = false;
  for (i32 k = posts.waits - 1; k >= 0 && !seen; k--) {
    const Post& p = posts.list[posts.awaited[k].post];
    if (posts.awaited[k].warp != m.warp || block - p.block >= u32(m.cluster)) continue;
    found = true;
    const u32 who = stamp & m.who_mask;
    seen = who < atomics() && stamp >> m.who_bits <= p.known.seen[agent_of(who)];
  }
  return found;
}

// ---- global memory

[[noreturn]] DM_COLD_ONCE void bad_index(const Param& p, i64 i, i64 n, i64 elem, Spot line) {
  if (n > 1) fault("bounds", line, p.index, i, "elements %lld to %lld of %lld", i, i + n - 1, p.bytes / elem);
  fault("bounds", line, p.index, i, "element %lld of %lld", i, p.bytes / elem);
}

[[noreturn]] DM_COLD_ONCE void bad_alignment(const Param& p, i64 i, i64 n, Spot line) {
  fault("misaligned", line, p.index, i, "%lld elements at once from index %lld, which is not a multiple of %lld", n, i, n);
}

[[noreturn]] DM_COLD_ONCE void bad_owner(const Param& p, i64 at, i64 elem, Spot line) {
  i64 i = at / elem * elem;
  for (i64 b = i; b < i + elem; b++) {
    if (p.owners[b] != p.owner && p.owners[b]) fault("overlap", line, p.index, i / elem, "its bytes now belong to buffer %d", p.owners[b] - 1);
  }
  fault("uninitialised", line, p.index, i / elem, "read before anything was written there");
}

template <int BYTES> i64 not_owned(const u16* owners, u16 owner) {
  if constexpr (BYTES == 1) {
    return owners[0] == owner ? -1 : 0;
  } else if constexpr (BYTES == 2) {
    u32 x;
    memcpy(&x, owners, 4);
    return x == owner * 0x10001u ? -1 : 0;
  } else {
    u64 want = owner * 0x0001000100010001ull;
    for (int k = 0; k < BYTES / 4; k++) {
      u64 x;
      memcpy(&x, owners + 4 * k, 8);
      if (x != want) {
        for (int j = 0; j < 4; j++) if (owners[4 * k + j] != owner) return 4 * k + j;
      }
    }
    return -1;
  }
}

// A conflict of this block with another one over an element.
DM_COLD_ONCE void conflict(const Param& p, i64 at, i64 elem, u32 other, const char* what, Spot line) {
  if (own().acquired) return;
  char who[48];
  if (other == m.atomic) snprintf(who, sizeof who, "atomically added to");
  else if (other == m.many) snprintf(who, sizeof who, "read by several blocks");
  else snprintf(who, sizeof who, "touched by block %u", other - m.first);
  fault("race", line, p.index, at / elem, "%s here, and %s in the same launch", what, who);
}

// A conflict of this thread with another one of its block.
[[noreturn]] DM_COLD_ONCE void thread_conflict(const Param& p, i64 at, i64 elem, u32 stamp, const char* what, Spot line) {
  char who[96];
  name_of(stamp, who);
  fault("race", line, p.index, at / elem, "%s by %s without a barrier between", what, who);
}

// Whether the current access of global memory is ordered behind one of the launch by block `other`: of the same block, of
// another one of the cluster, or of one whose flag the running warp has awaited, whose writes it sees.
DM_ONCE bool behind(const Param& p, i64 at, i64 elem, u32 other, u32 stamp, const char* what, Spot line) {
  if (other == m.me) return ordered(stamp);
  if (m.cluster > 1 && other - m.blocks[0].id < u32(m.cluster)) return stamp >> m.who_bits <= m.warps[m.warp].shown[agent_of(stamp & m.who_mask)];
  if (bool seen; awaited(other, stamp, seen)) return seen;
  conflict(p, at, elem, other, what, line);
  return true;
}

// Reads of BYTES bytes at `at` of the buffer. ELEM is what an index counts. A HALF
// of a byte does not conflict with atomic stores, which may be of the other one.
template <int BYTES, int ELEM, bool HALF = false> void global_read(Param& p, i64 at, Spot line) {
  m.line = line;
  m.accesses[m.thread]++;
  if (i64 bad = not_owned<BYTES>(p.owners + at, p.owner); bad >= 0) bad_owner(p, at + bad, ELEM, line);
  u64 k = u64(p.offset + at) >> m.granule, end = k + (BYTES >> m.granule);
  u32 me = m.me, first = m.first;
  p.requested += BYTES;
  if (!p.mixed) {  // no writes
    for (; k < end; k++) {
      if (m.readers[k] < first) {
        p.read += i64(1) << m.granule;
        m.readers[k] = me;
      }
    }
    return;
  }
  for (; k < end; k++) {
    u32 w = m.writers[k], r = m.readers[k];
    if (w >= first) {
      if (HALF && w == m.atomic) continue;
      if (!behind(p, at, ELEM, w, m.write_stamps[k], "read", line)) thread_conflict(p, at, ELEM, m.write_stamps[k], "written", line);
    }
    if (r < first) {
      if (w < first) p.read += i64(1) << m.granule;
      m.readers[k] = me;
    } else if (r != me) {
      m.readers[k] = m.many;
    }
    u32 before = m.read_stamps[k];
    if (r != me || ordered(before)) m.read_stamps[k] = m.stamp;
    else if (agent_of(before & m.who_mask) == u32(m.warp)) m.read_stamps[k] = stamp_of(m.warps[m.warp].clock, m.first_agent + u32(m.warp));
    else m.read_stamps[k] = stamp_of(m.warps[m.warp].clock, atomics());
  }
}

template <int BYTES, int ELEM> void global_write(Param& p, i64 at, Spot line) {
  m.line = line;
  m.accesses[m.thread]++;
  for (int b = 0; b < BYTES; b++) p.owners[at + b] = p.owner;
  u64 k = u64(p.offset + at) >> m.granule, end = k + (BYTES >> m.granule);
  u32 me = m.me, first = m.first;
  p.requested += BYTES;
  for (; k < end; k++) {
    u32 w = m.writers[k];
    if (w >= first) {
      if (!behind(p, at, ELEM, w, m.write_stamps[k], "written", line)) thread_conflict(p, at, ELEM, m.write_stamps[k], "also written", line);
    } else {
      p.written += i64(1) << m.granule;
    }
    if (p.mixed) {
      u32 r = m.readers[k];
      if (r == me) {
        if (!ordered(m.read_stamps[k])) thread_conflict(p, at, ELEM, m.read_stamps[k], "read", line);
      } else if (r >= first) {
        conflict(p, at, ELEM, r, "written", line);
      }
    }
    m.writers[k] = me;
    m.write_stamps[k] = m.stamp;
  }
}

// An addition whose place among others is given by waits, as that of a write.
template <int BYTES, int ELEM> void global_add(Param& p, i64 at, Spot line) {
  if (i64 bad = not_owned<BYTES>(p.owners + at, p.owner); bad >= 0) bad_owner(p, at + bad, ELEM, line);
  global_write<BYTES, ELEM>(p, at, line);
  p.requested += BYTES;
}

// An atomic store of one half of the byte at `at`, whose other half may be anyone's.
DM_ONCE void global_half(Param& p, i64 at, Spot line) {
  m.line = line;
  p.owners[at] = p.owner;
  u64 k = u64(p.offset + at) >> m.granule;
  u32 w = m.writers[k];
  if (w >= m.first && w != m.me && w != m.atomic) conflict(p, at, 1, w, "stored in part", line);
  if (w < m.first) p.written += i64(1) << m.granule;
  m.writers[k] = m.atomic;
  p.requested++;
}

template <int BYTES> void global_atomic(Param& p, i64 at, Spot line) {
  m.line = line;
  if (i64 bad = not_owned<BYTES>(p.owners + at, p.owner); bad >= 0) bad_owner(p, at + bad, BYTES, line);
  u64 k = u64(p.offset + at) >> m.granule, end = k + (BYTES >> m.granule);
  for (; k < end; k++) {
    u32 w = m.writers[k], r = m.readers[k];
    if (w >= m.first && w != m.me && w != m.atomic) conflict(p, at, BYTES, w, "atomically added to", line);
    if (r >= m.first && r != m.me) conflict(p, at, BYTES, r, "atomically added to", line);
    if (w < m.first) {
      if (r < m.first) p.read += i64(1) << m.granule;
      p.written += i64(1) << m.granule;
    }
    m.writers[k] = m.atomic;
  }
  p.requested += 2 * BYTES;
}

// The accesses of elements of these bytes, one or several at once.
#define DM_ACCESS(BYTES, ELEM) \
  DM_ONCE_OF(void global_read<BYTES, ELEM, false>(Param&, i64, Spot)) \
  DM_ONCE_OF(void global_write<BYTES, ELEM>(Param&, i64, Spot))
DM_ACCESS(2, 1) DM_ACCESS(4, 1) DM_ACCESS(8, 1) DM_ACCESS(16, 1)
DM_ACCESS(4, 2) DM_ACCESS(8, 2) DM_ACCESS(16, 2) DM_ACCESS(8, 4) DM_ACCESS(16, 4) DM_ACCESS(16, 8)
#define DM_ACCESS_ALONE(BYTES) \
  DM_ACCESS(BYTES, BYTES) \
  DM_ONCE_OF(void global_read<BYTES, BYTES, true>(Param&, i64, Spot)) \
  DM_ONCE_OF(void shared_read_all<BYTES>(u32, int, Spot)) \
  DM_ONCE_OF(void shared_write_all<BYTES>(u32, int, Spot))
DM_ACCESS_ALONE(1) DM_ACCESS_ALONE(2) DM_ACCESS_ALONE(4) DM_ACCESS_ALONE(8)
DM_ONCE_OF(void global_add<4, 4>(Param&, i64, Spot))
DM_ONCE_OF(void global_add<16, 4>(Param&, i64, Spot))
DM_ONCE_OF(void global_atomic<2>(Param&, i64, Spot))
DM_ONCE_OF(void global_atomic<4>(Param&, i64, Spot))
DM_ONCE_OF(void global_atomic<8>(Param&, i64, Spot))
#undef DM_ACCESS
#undef DM_ACCESS_ALONE

// A flag at `at` that is about to be set: it is 0, since a launch before has cleared it.
DM_ONCE void cleared(const Param& p, i64 at, Spot line) {
  if (i64 bad = not_owned<4>(p.owners + at, p.owner); bad >= 0) bad_owner(p, at + bad, 4, line);
  u32 set;
  memcpy(&set, p.data + at, 4);
  if (set) fault("race", line, p.index, at / 4, "the flag is set before a block sets it");
}

}  // namespace dm::emu
