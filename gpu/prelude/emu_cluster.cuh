// The emulation of cluster.cuh. The blocks of a cluster are fibers of one machine, whose
// shared memories lie behind each other, so that one detection of races serves all.
#pragma once

namespace dm {

namespace emu {

// A block whose shared memory the running warp accesses, or has copied to: it has begun before, and has not ended.
DM_ONCE void reach(i32 rank, Spot line) {
  if (rank < 0 || rank >= m.cluster) fault("bounds", line, -1, rank, "block %d of a cluster of %d", rank, m.cluster);
  if (rank == m.rank) return;
  const Block& b = m.blocks[rank];
  if (b.done == m.thread_count) fault("race", line, -1, -1, "block %d of the cluster has ended", rank);
  const Warp& w = m.warps[m.warp];
  bool begun = w.turn > w.between;  // it has passed a barrier of the cluster
  for (i32 k = 0; k < m.warp_count; k++) begun = begun || w.seen[rank * m.warp_count + k] >= m.began;
  if (!begun) fault("race", line, -1, -1, "block %d of the cluster may not have begun: no barrier of the cluster comes before", rank);
}

// The running warp accesses shared memory of a block; whether that may end before is checked where it does.
DM_ONCE void touch(i32 rank, Spot line) {
  reach(rank, line);
  if (rank == m.rank) return;
  Block& b = m.blocks[rank];
  const Warp& w = m.warps[m.warp];
  b.touched[m.warp] = w.clock;
  b.touched_at[m.warp] = line;
}

// A place of the own shared memory in that of another block.
inline u32 peer_place(u32 at, i32 rank) { return at % shared_bytes + u32(rank) * shared_bytes; }

}  // namespace emu

template <class T> DM_FN void keep_packed(T&) {}

DM_FN i32 cluster_rank() { return emu::m.rank; }

namespace emu {

DM_ONCE void arrive_at_cluster(bool releases, Spot line) {
  collective(ClusterArrive, line, nullptr, [=](Warp& w) {
    if (w.between) fault("divergence", line, -1, -1, "warp %d arrives at the barrier of the cluster twice without a wait", warp());
    w.between = true;
    w.turn++;
    if (releases) release(gather.coming);
    if (++gather.warps < m.cluster * m.warp_count) return;
    gather.warps = 0;
    gather.turn++;
    gather.done = gather.coming;
    wake(InCluster);
  });
}

}  // namespace emu

DM_FN void cluster_begin(DM_LINE_ONLY) { emu::arrive_at_cluster(false, at); }
DM_FN void cluster_arrive(DM_LINE_ONLY) { emu::arrive_at_cluster(true, at); }
DM_FN void cluster_wait(DM_LINE_ONLY) {
  emu::collective(emu::ClusterWait, at, nullptr, [at](emu::Warp& w) {
    if (!w.between) emu::fault("divergence", at, -1, -1, "warp %d waits at the barrier of the cluster without having arrived", warp());
    w.between = false;
    w.clock++;
  });
  while (emu::gather.turn < emu::m.warps[emu::m.warp].turn) emu::pause(at, emu::InCluster);
  emu::acquire(emu::gather.done, true);
  emu::enter(emu::m.thread);
}
DM_FN void cluster_sync(DM_LINE_ONLY) {
  cluster_arrive(at);
  cluster_wait(at);
}

template <class T> class Remote {
 public:
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "elements of four or eight bytes");
  Remote(Shared<T> s, i32 rank) : s_(s), rank_(rank) {}
  T load(At i) const {
    u32 at = place(i, 1);
    emu::shared_read(at, int(sizeof(T)), i.line);
    T v;
    memcpy(&v, emu::smem.data + at, sizeof v);
    return v;
  }
  template <int N> Vec<T, N> load(At i) const {
    u32 at = place(i, N);
    emu::shared_read(at, int(sizeof(T)) * N, i.line);
    Vec<T, N> v;
    memcpy(&v, emu::smem.data + at, sizeof v);
    return v;
  }
  void store(At i, T v) const {
    u32 at = place(i, 1);
    emu::shared_write(at, int(sizeof(T)), i.line);
    memcpy(emu::smem.data + at, &v, sizeof v);
  }

 private:
  u32 place(At i, int n) const {
    u32 at = s_.check(i, n);
    emu::touch(rank_, i.line);
    return emu::peer_place(at, rank_);
  }
  Shared<T> s_;
  i32 rank_;
};

template <class T> DM_FN Remote<T> peer(Shared<T> s, i32 rank) { return Remote<T>(s, rank); }

}  // namespace dm
