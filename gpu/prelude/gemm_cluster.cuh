// Sums that the blocks of a cluster share (sm_90 up): each block adds up its part of k, and leaves the sums of
// its tile in shared memory. Then each passes a part of the tile's runs to the epilogue, whose sums it reads from
// all blocks, in the order of their ranks. So the parts do not pass through memory, one kernel does it all,
// and the results have the bits that partial sums in memory give.
#pragma once

namespace dm {

// Warps with consecutive numbers, of one block after the other, have neighbouring runs, so that all blocks have as many, wherever the
// tile's rows end.
template <class Tile, class S, int Warps, class Acc, int Group, class Epilogue>
DM_FN void add_parts(const TileSums<Tile, Acc, Group>& part, const Epilogue& epilogue, const Place& p, i32 number) {
  constexpr int V = Epilogue::vector, P = S::products, W = V * int(sizeof(Acc)) <= 16 ? V : 16 / int(sizeof(Acc));
  constexpr i32 runs = Tile::BN / P / V, pitch = TileSums<Tile, Acc, Group>::pitch;
  static_assert(S::cluster && Epilogue::reductions == 0 && (P == 1 || Group % V == 0), "runs of sums of a cluster");
  cluster_sync(); // the parts are whole
  const i32 rows = S::m - p.m < Tile::BM ? S::m - p.m : Tile::BM;
  DM_NO_UNROLL
  for (i32 run = (number * S::splits + p.split) * 32 + lane(); run < rows * runs; run += Warps * S::splits * 32) {
    const i32 r = run / runs, c = run % runs * V;
    if (p.n / P + c >= S::n) continue;
    Vec<Acc, W> v[S::splits][P][V / W];
    DM_UNROLL
    for (int s = 0; s < S::splits; s++) {
      const auto from = peer(part.sums, s);
      DM_UNROLL
      for (int q = 0; q < P; q++) {
        const i32 col = P == 1 ? c : c / Group * Group * P + c % Group + q * Group;
        DM_UNROLL
        for (int e = 0; e < V; e += W) v[s][q][e / W] = from.template load<W>(slab_at<pitch>(r, col + e));
      }
    }
    Acc acc[P][V];
    DM_UNROLL
    for (int q = 0; q < P; q++)
      DM_UNROLL
      for (int e = 0; e < V; e++) {
        acc[q][e] = 0;
        DM_UNROLL
        for (int s = 0; s < S::splits; s++) acc[q][e] += v[s][q][e / W][e % W];
      }
    epilogue(p.z, p.m + r, p.n / P + c, acc);
  }
  cluster_sync(); // no block ends while another one reads its part
}

}  // namespace dm
