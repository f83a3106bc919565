// The emulation of async.cuh. A copy reads its source at once and writes its
// target only in the wait; until then the target is poisoned.
#pragma once

namespace dm {

namespace emu {

struct Copy {
  u32 at;
  int bytes, group;
  u8 data[16];
};

// The pending copies of one thread, oldest first.
struct Copies {
  Copy* list;
  int count, capacity, group;
};
inline Copies copies[all_threads];

DM_ONCE Copy& add_copy(u32 at, int bytes) {
  Copies& c = copies[m.thread];
  if (c.count == c.capacity) {
    c.capacity = c.capacity ? 2 * c.capacity : 16;
    c.list = static_cast<Copy*>(realloc(c.list, sizeof(Copy) * size_t(c.capacity)));
    if (!c.list) fault("memory", m.line, -1, -1, "no memory for asynchronous copies");
  }
  Copy& copy = c.list[c.count++];
  copy.at = at;
  copy.bytes = bytes;
  copy.group = c.group;
  return copy;
}

DM_ONCE void finish_copies(int under_way) {
  Copies& c = copies[m.thread];
  int n = 0;
  while (n < c.count && c.list[n].group < c.group - under_way) {
    shared_end_async(c.list[n].at, c.list[n].data, c.list[n].bytes, m.stamp);
    n++;
  }
  if (!n) return;
  memmove(c.list, c.list + n, sizeof(Copy) * size_t(c.count - n));
  c.count -= n;
}

DM_ONCE void forget_copies() {
  for (int t = 0; t < m.cluster * m.warp_count * 32; t++) copies[t].count = copies[t].group = 0;
}

template <int BYTES, class T> inline void start_copy(const Shared<T>& dst, At i, const Global<T>& src, i64 j, bool valid) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4, 8 or 16 bytes");
  static_assert(BYTES % sizeof(T) == 0, "whole elements");
  constexpr int n = BYTES / int(sizeof(T));
  u32 at = dst.check(i, n);
  shared_begin_async(at, BYTES, i.line);
  Copy& copy = add_copy(at, BYTES);
  if (valid) {
    Vec<T, n> v = src.template get<Vec<T, n>, n>(At(j, i.line));
    memcpy(copy.data, &v, BYTES);
  } else {
    memset(copy.data, 0, BYTES);
  }
}

}  // namespace emu

template <int BYTES, class T> DM_FN void cp_async(Shared<T> dst, i64 i, In<T> src, i64 j, bool valid = true DM_LINE) {
  emu::start_copy<BYTES>(dst, At(i, at), src, j, valid);
}
template <int BYTES, class T> DM_FN void cp_async(Shared<T> dst, i64 i, InOut<T> src, i64 j, bool valid = true DM_LINE) {
  emu::start_copy<BYTES>(dst, At(i, at), src, j, valid);
}
template <class T> struct Source {
  emu::Param* param;
  i64 base;
  Source() {}
  Source(emu::Global<T> x, i64 i) : param(x.param), base(i) {}
};
template <int BYTES, bool Near, class T> DM_FN void cp_async(Shared<T> dst, i64 i, Source<T> src, i64 j, bool valid DM_LINE) {
  emu::start_copy<BYTES>(dst, At(i, at), emu::Global<T>(src.param), src.base + j, valid);
}
DM_FN void cp_async_commit() { emu::copies[emu::m.thread].group++; }
template <int N> DM_FN void cp_async_wait() { emu::finish_copies(N); }

// The emulator runs one kernel behind the other.
DM_FN void grid_dependency_wait() {}
DM_FN void launch_dependents() {}

}  // namespace dm
