// The main loops on Hopper (sm_90a): f16, bf16, f8, or f32 that tensor maps round to TF32, sums in f32. One warpgroup
// loads tiles by tensor maps, two multiply. Blocks are persistent, so that the next
// tile's loads overlap with the epilogue.
#pragma once

namespace dm {

// Pair is how the two blocks of a cluster lie, if there are clusters: one below the other they share B's tile, side by side A's. Each
// loads half of it, and multicasts that to both.
enum class Pair { none, rows, cols };

// WgmmaTile is a block's tile: BM x BN, BK deep, which are 128 bytes, BM in two halves, which the consumers
// multiply together (CUTLASS's cooperative schedule).
template <int BM_, int BN_, int Stages_, Pair Pair_ = Pair::none, int BK_ = 64>
struct WgmmaTile {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, stages = Stages_;
  static constexpr Pair pair = Pair_;
  static constexpr int across = pair == Pair::cols ? 2 : 1;
  static constexpr bool turns = false;
  static constexpr int threads = 384, warps = 8, rows = BM / 2; // warps that share a tile; rows of a consumer
  static constexpr int width = 32, pitch = width + 8; // of a slab of accumulators, in floats
  static constexpr int shared = stages * (BM + BN) * 128 + 8 * 16 * pitch * 4 + (2 * stages + 2) * 8; // bytes of dynamic shared memory
  static_assert(rows % 64 == 0 && BN % 64 == 0, "whole products");
};

// PingpongTile is a consumer's tile: the consumers multiply tiles of their own in turns, so that one's epilogue
// runs beside the other's products (CUTLASS's ping-pong schedule).
template <int BM_, int BN_, int Stages_, Pair Pair_ = Pair::none, int BK_ = 64>
struct PingpongTile : WgmmaTile<2 * BM_, BN_, Stages_, Pair_, BK_> {
  static constexpr int BM = BM_, stages = Stages_;
  static constexpr bool turns = true;
  static constexpr int warps = 4, rows = BM;
  static constexpr int shared = stages * (BM + BN_) * 128 + 8 * 16 * PingpongTile::pitch * 4 + (2 * stages + 2) * 8;
};

// Bulk is the layout in shared memory of an operand whose stage holds Rows lines of 128 bytes
// of k, or panels of 64 rows of two bytes with 64 lines of k each.
template <class X>
struct Bulk {
  using T = typename X::Elem;
  static constexpr int line = 128 / int(sizeof(T)); // elements
  static_assert(X::along_k || sizeof(T) == 2, "wgmma takes bytes and TF32 along k alone");
  // at is the descriptor of row r, a multiple of 64, from k on, a multiple of 32 bytes.
  DM_FN static u64 at(Shared<T> stage, i32 r, i32 k) {
    if constexpr (X::along_k)
      return operand_at(stage, r * line + k, 16, 1024);
    else
      return operand_at(stage, r * 64 + k * 64, 8192, 1024);
  }
  // load loads a stage, in boxes of X::box rows; load_tile loads one box. Of an operand that a pair shares it loads the block's half,
  // and load_tile multicasts.
  template <int Rows, bool Half = false>
  DM_FN static void load(const X& x, Shared<T> stage, Shared<u64> full, i32 slot, i32 z, i32 r, i32 k) {
    const i32 first = Half ? cluster_rank() * (Rows / 2) : 0;
    DM_UNROLL
    for (int i = 0; i < (Half ? Rows / 2 : Rows); i += X::box) x.load_tile(stage, (first + i) * line, full, slot, z, r + first + i, k);
  }
};

// by_maps is whether tensor maps copy an operand. Else the producing warpgroup gathers it (gemm_gather.cuh), which takes more registers,
// and each of its warps publishes a stage; one more arrival announces the bytes of the other operand's bulk copies.
template <class X> DM_FN constexpr auto by_maps(int) -> decltype(X::box, true) { return true; }
template <class X> DM_FN constexpr bool by_maps(...) { return false; }
template <class A, class B>
struct Feed {
  static constexpr bool gathers = !by_maps<A>(0) || !by_maps<B>(0);
  static constexpr int arrivals = gathers ? 4 + (by_maps<A>(0) || by_maps<B>(0)) : 1;
  static constexpr int producer = gathers ? 104 : 40, consumer = gathers ? 200 : 232; // registers
};
template <class Tile, class S, class T, class A, class B>
DM_FN void gather_tiles(const A& a, const B& b, Shared<T> as, Shared<T> bs, Shared<u64> full, Shared<u64> empty);
template <class A> constexpr bool of_bytes = sizeof(typename A::Elem) == 1;

// Ring is the stages of both operands in shared memory, where the producer and the consumers are in it, and the barriers
// of the stages that are full and empty.
template <class Tile, class A, class B>
struct Ring {
  using T = typename A::Elem;
  using U = typename B::Elem;
  static constexpr int size_a = Tile::BM * Tile::BK, size_b = Tile::BN * Tile::BK;
  static_assert(Tile::BK == Bulk<A>::line && Tile::BK == Bulk<B>::line, "a step is a line of both operands");
  const Shared<T> as;
  const Shared<U> bs;
  const Shared<u64> full, empty;
  i32 slot = 0;
  u32 phase = 0;

  DM_FN void next() {
    if (++slot == Tile::stages) slot = 0, phase ^= 1;
  }
  // skip passes over the steps of a tile that another consumer multiplies.
  DM_FN void skip(i32 steps) {
    const i32 to = slot + steps;
    phase ^= u32(to / Tile::stages) & 1;
    slot = to % Tile::stages;
  }
  // load loads the steps of a tile; one thread calls it. A slot is empty when the consumers of both blocks of a pair have left it: each
  // block writes to both. What the other one sends may arrive before the block expects it, and is counted then.
  DM_FN void load(const A& a, const B& b, const Place& p) {
    DM_NO_UNROLL
    for (i32 step = p.first; step < p.last; step++) {
      barrier_wait(empty, slot, phase ^ 1);
      barrier_expect(full, slot, (size_a + size_b) * int(sizeof(T)));
      Bulk<A>::template load<Tile::BM, Tile::pair == Pair::cols>(a, as + slot * size_a, full, slot, p.z, p.m, step * Tile::BK);
      Bulk<B>::template load<Tile::BN, Tile::pair == Pair::rows>(b, bs + slot * size_b, full, slot, p.z, p.n, step * Tile::BK);
      next();
    }
  }
  // drain waits until all slots are empty: then no block writes to this one's memory any more, nor arrives at its barriers.
  DM_FN void drain() {
    for (i32 i = 0; i < Tile::stages; i++) {
      barrier_wait(empty, slot, phase ^ 1);
      next();
    }
  }
  // multiply adds the products of a tile's rows from `row` on to acc. The products of the last step are pending, and its slot, which
  // it returns, is not released.
  template <int FM>
  DM_FN i32 multiply(float (&acc)[FM][Tile::BN / 2], const Place& p, i32 row) {
    i32 before = -1; // the slot of the step whose products may be pending
    DM_NO_UNROLL
    for (i32 step = p.first; step < p.last; step++) {
      barrier_wait(full, slot, phase);
      products_begin();
      DM_UNROLL
      for (int k = 0; k < Tile::BK; k += 32 / int(sizeof(T))) {
        DM_UNROLL
        for (int i = 0; i < FM; i++)
          product<T, Tile::BN, !A::along_k, !B::along_k>(acc[i], Bulk<A>::at(as + slot * size_a, row + i * 64, k),
                                                         Bulk<B>::at(bs + slot * size_b, 0, k));
      }
      products_commit();
      products_wait<1>();
      release(before);
      before = slot;
      next();
    }
    return before;
  }
  // multiply_bytes is multiply of numbers of 8 bits. The tensor cores add the products of a step up, of which they keep few bits; the sums of
  // the steps are added to acc by the vector units (CUTLASS's promotion, DeepGEMM's two-level accumulation), while the other consumer multiplies.
  template <int FM>
  DM_FN void multiply_bytes(float (&acc)[FM][Tile::BN / 2], const Place& p, i32 row) {
    DM_NO_UNROLL
    for (i32 step = p.first; step < p.last; step++) {
      barrier_wait(full, slot, phase);
      DM_UNROLL
      for (int i = 0; i < FM; i++) {
        float part[Tile::BN / 2];
        const Shared<T> left = as + slot * size_a;
        const Shared<U> right = bs + slot * size_b;
        products_begin();
        product_of_bytes<T, U, Tile::BN, false>(part, Bulk<A>::at(left, row + i * 64, 0), Bulk<B>::at(right, 0, 0));
        DM_UNROLL
        for (int k = 32; k < Tile::BK; k += 32)
          product_of_bytes<T, U, Tile::BN>(part, Bulk<A>::at(left, row + i * 64, k), Bulk<B>::at(right, 0, k));
        products_commit();
        products_wait<0>();
        products_settle(part);
        if (i == FM - 1) release(slot);
        DM_UNROLL
        for (int e = 0; e < Tile::BN / 2; e++) acc[i][e] += part[e];
      }
      next();
    }
  }
  // release hands a slot back; one lane of each warp counts, in a pair one for each block.
  DM_FN void release(i32 at) {
    if constexpr (Tile::pair == Pair::none) {
      if (at >= 0 && lane() == 0) barrier_arrive(empty, at);
    } else {
      if (at >= 0 && lane() < 2) barrier_leave(empty, at, lane());
    }
  }
};

// store_slabs passes a consumer's sums to the epilogue by slabs of shared memory, so that a warp stores whole lines.
template <class Tile, class S, class Epilogue, int FM>
DM_FN void store_slabs(Shared<float> slab, const Epilogue& epilogue, const float (&acc)[FM][Tile::BN / 2], const Place& p, i32 row) {
  const i32 r = lane() / 4, c = lane() % 4 * 2, z = p.z + p.split * S::batch;
  // The epilogue stands once in the machine code, however many windows of columns there are. Only the stores of the sums, whose
  // registers are fixed, are written for each.
  constexpr int window = Tile::width / S::products, windows = Tile::BN / Tile::width;
  DM_NO_UNROLL
  for (i32 j = 0; j < windows; j++) {
    const i32 n = p.n / S::products + j * window;
    Rows<Tile::width, Epilogue> rows;
    DM_UNROLL
    for (int i = 0; i < FM; i++) {
      DM_UNROLL
      for (int x = 0; x < windows; x++) {
        if (x != j) continue;
        DM_UNROLL
        for (int e = 0; e < Tile::width / 8; e++) {
          constexpr int per = Tile::width / 8 / S::products; // columns of eight of one product
          const int from = (e / per * (Tile::BN / S::products) + x * window) / 8 + e % per;
          DM_UNROLL
          for (int h = 0; h < 2; h++) {
            Vec<float, 2> v;
            v[0] = acc[i][from * 4 + h * 2], v[1] = acc[i][from * 4 + h * 2 + 1];
            slab.template store<2>(slab_at<Tile::pitch>(r + h * 8, c + e * 8), v);
          }
        }
      }
      flush<Tile::width, Tile::pitch, Tile::width / S::products, S>(slab, epilogue, rows, z,
                                                                    p.m + row + i * 64 + warp() % 4 * 16, n, p.below);
    }
    rows.template finish<S>(epilogue, z, p.m / Tile::BM * Tile::warps + warp() % Tile::warps,
                             (S::m + Tile::BM - 1) / Tile::BM * Tile::warps, n);
  }
}

// store_bulk rounds a consumer's sums where they are, and has the copy engine store them, by boxes of 16 rows x 32 columns: a warp has
// two, of which the engine reads one while it writes the other. All of it is unrolled, for epilogues of few instructions.
template <class Tile, class S, class Epilogue, int FM>
DM_FN void store_bulk(Shared<typename Epilogue::Result> boxes, const Epilogue& epilogue, const float (&acc)[FM][Tile::BN / 2], const Place& p, i32 row) {
  using T = typename Epilogue::Result;
  constexpr int P = S::products, W = Tile::width, windows = Tile::BN / P / W;
  constexpr bool guards = Epilogue::reads && (S::m % Tile::BM != 0 || S::n % (Tile::BN / P) != 0);
  static_assert(windows % 2 == 0, "a tile begins with the first box");
  const i32 r = lane() / 4, c = lane() % 4 * 2;
  DM_UNROLL
  for (int i = 0; i < FM; i++) {
    const i32 m = p.m + row + i * 64 + warp() % 4 * 16;
    DM_UNROLL
    for (int j = 0; j < windows; j++) {
      const i32 n = p.n / P + j * W, at = j % 2 * 16 * W;
      if (lane() == 0) stores_wait<1>();
      sync_warp();
      DM_UNROLL
      for (int e = 0; e < W / 8; e++)
        DM_UNROLL
        for (int h = 0; h < 2; h++) {
          float two[P][2];
          DM_UNROLL
          for (int q = 0; q < P; q++) {
            const int from = (q * (Tile::BN / P) + j * W) / 2 + e * 4 + h * 2;
            two[q][0] = acc[i][from], two[q][1] = acc[i][from + 1];
          }
          Vec<T, 2> v{};
          if (!guards || (m + r + h * 8 < S::m && n + e * 8 + c < S::n)) v = epilogue(p.z, m + r + h * 8, n + e * 8 + c, two);
          // Rows are 64 bytes; the map exchanges chunks of 16 by the number of two rows, modulo four.
          boxes.template store<2>(at + (r + h * 8) * W + (e ^ (r / 2 & 3)) * 8 + c, v);
        }
      writes_publish();
      sync_warp();
      if (lane() == 0) {
        if (m < S::m && n < S::n) epilogue.store(boxes, at, p.z, m, n);
        stores_commit();
      }
    }
  }
}

// SumsOf is a block's sums of a tile, for the blocks of a cluster that share them.
template <class Tile, class S> using SumsOf = TileSums<Tile, float, Tile::BN / S::products>;

// keep_part leaves a consumer's sums in the memory of the stages, which all consumers of the tile have read then.
template <class Tile, class S, int FM>
DM_FN void keep_part(const SumsOf<Tile, S>& part, const float (&acc)[FM][Tile::BN / 2], i32 row) {
  static_assert(SumsOf<Tile, S>::size * 4 <= Tile::stages * (Tile::BM + Tile::BN) * 128, "the stages hold a part");
  const i32 r = row + warp() % 4 * 16 + lane() / 4, c = lane() % 4 * 2;
  sync_named(1, Tile::warps * 32);
  DM_UNROLL
  for (int i = 0; i < FM; i++)
    DM_UNROLL
    for (int e = 0; e < Tile::BN / 8; e++)
      DM_UNROLL
      for (int h = 0; h < 2; h++) {
        Vec<float, 2> v;
        v[0] = acc[i][e * 4 + h * 2], v[1] = acc[i][e * 4 + h * 2 + 1];
        part.put(r + i * 64 + h * 8, c + e * 8, v);
      }
}

// gemm_wgmma computes the tiles whose numbers are block(), block() + blocks(), …; consumers that take turns compute every
// other one of them. Launch with Tile::threads threads and Tile::shared bytes; pairs in clusters of two, of which all tiles and all
// blocks are a multiple; a cluster that shares sums with a block for each tile, matrix and split; workers that share steps with all of their blocks.
template <class Tile, class S, class A, class B, class Epilogue, class Left = Unshared>
DM_FN void gemm_wgmma(Arena arena, const A& a, const B& b, const Epilogue& epilogue, const Left& shares = {}) {
  using T = typename A::Elem;
  using U = typename B::Elem;
  constexpr int FM = Tile::rows / 64;
  constexpr i32 tiles = tiles_of<S, Tile::BM, Tile::BN>;
  constexpr bool streams = S::workers > 0;
  using Walk = StreamK<S, Tile::BM, Tile::BN, Tile::BK, Tile::across, Tile::pair == Pair::none ? 1 : 2, Tile::warps>;
  constexpr i32 slab_size = Epilogue::bulk ? 2 * 16 * Tile::width : 16 * Tile::pitch;
  static_assert(!S::cluster || Tile::pair == Pair::none && !Epilogue::bulk, "a block of a cluster that shares sums has one tile");
  const auto part = [&] { // a cluster's, in the memory of the stages
    if constexpr (S::cluster) return SumsOf<Tile, S>{Arena(arena).take<float>(SumsOf<Tile, S>::size)};
    else return 0;
  }();
  const Shared<T> as = arena.take_aligned<T>(Tile::stages * Tile::BM * Tile::BK, 1024);
  const Shared<U> bs = arena.take_aligned<U>(Tile::stages * Tile::BN * Tile::BK, 1024);
  const auto staged = [&] { // what the epilogue takes, a slab for each warp
    if constexpr (Epilogue::bulk) return arena.take_aligned<typename Epilogue::Result>(8 * slab_size, 1024);
    else return arena.take<float>(8 * slab_size);
  }();
  const Shared<u64> full = arena.take<u64>(2 * Tile::stages + 2), empty = full + Tile::stages, turns = empty + Tile::stages;
  if (thread() == 0) {
    for (i32 i = 0; i < Tile::stages; i++) {
      barrier_make(full, i, Feed<A, B>::arrivals);
      barrier_make(empty, i, Tile::pair == Pair::none ? Tile::warps : 2 * Tile::warps);
    }
    if constexpr (Tile::turns) {
      for (i32 i = 0; i < 2; i++) barrier_make(turns, i, 4); // the warps of the consumer before
    }
    barriers_ready();
  }
  if constexpr (Tile::pair == Pair::none) sync();
  else cluster_sync(); // the other block's barriers and memory are there

  Ring<Tile, A, B> ring{as, bs, full, empty};
  const auto place_of = [&](i32 tile) { return place_in<S, Tile::BM, Tile::BN, Tile::BK, Tile::across>(tile, a); };
  grid_dependency_wait(); // of all roles: none has accessed global memory
  if (warp() < 4) {
    registers_drop<Feed<A, B>::producer>();
    if constexpr (Feed<A, B>::gathers) {
      gather_tiles<Tile, S>(a, b, as, bs, full, empty);
    } else if constexpr (S::groups == Groups::rows) { // a warp finds a tile's group
      for (i32 tile = block(); warp() == 0 && tile < tiles; tile += blocks()) {
        const Place p = place_of(tile);
        if (lane() == 0) ring.load(a, b, p);
      }
    } else if (thread() == 0) {
      if constexpr (streams) {
        Walk walk;
        for (Place p; walk.next(p);) ring.load(a, b, p);
      } else {
        for (i32 tile = block(); tile < tiles; tile += blocks()) ring.load(a, b, place_of(tile));
      }
      if constexpr (Tile::pair != Pair::none) ring.drain();
    }
    if constexpr (S::cluster) { // the barriers of add_parts are of all threads
      sync_warp();
      cluster_sync();
      cluster_sync();
    }
  } else {
    registers_take<Feed<A, B>::consumer>();
    const i32 group = warp() / 4 - 1, row = Tile::turns ? 0 : group * Tile::rows;
    const auto slab = staged + (warp() - 4) * slab_size;
    // skip passes over the tile of the other consumer.
    const auto skip = [&](i32 tile) {
      const Place p = place_of(tile);
      ring.skip(p.last - p.first);
    };
    if (Tile::turns && group > 0) skip(block());
    u32 round = 0;
    auto walk = [] {
      if constexpr (streams) return Walk{};
      else return Unshared{};
    }();
    for (i32 tile = Tile::turns ? block() + group * blocks() : block(); streams || tile < tiles; tile += Tile::turns ? 2 * blocks() : blocks()) {
      Place p;
      if constexpr (streams) {
        if (!walk.next(p)) break;
      } else {
        p = place_of(tile);
      }
      float acc[FM][Tile::BN / 2];
      DM_UNROLL
      for (int i = 0; i < FM; i++)
        DM_UNROLL
        for (int e = 0; e < Tile::BN / 2; e++) acc[i][e] = 0;
      // The zeros are in registers before products_begin: where there is one step, the compiler would write them behind it.
      DM_UNROLL
      for (int i = 0; i < FM; i++) products_settle(acc[i]);

      // The other consumer has started its products; the first one waits for those of the tile before.
      if constexpr (Tile::turns) barrier_wait(turns, group, (group ? round : round + 1) & 1);
      i32 last = -1;
      if constexpr (of_bytes<A>) ring.multiply_bytes(acc, p, row);
      else last = ring.multiply(acc, p, row);
      if constexpr (Tile::turns) {
        if (lane() == 0) barrier_arrive(turns, group ^ 1);
        skip(tile + blocks());
        round++;
      }
      products_wait<0>();
      DM_UNROLL
      for (int i = 0; i < FM; i++) products_settle(acc[i]);
      ring.release(last);

      if constexpr (streams) {
        const auto sum = [&](int i) -> float& { return acc[i / (Tile::BN / 2)][i % (Tile::BN / 2)]; };
        if (p.first > 0) {
          Walk::leave(shares, warp() - 4, sum);
          continue;
        }
        Walk::finish(shares, p, warp() - 4, sum);
      }
      if constexpr (S::cluster)
        keep_part<Tile, S>(part, acc, row);
      else if constexpr (Epilogue::bulk)
        store_bulk<Tile, S>(slab, epilogue, acc, p, row);
      else
        store_slabs<Tile, S>(slab, epilogue, acc, p, row);
    }
    if constexpr (S::cluster) add_parts<Tile, S, 8>(part, epilogue, place_of(block()), warp() - 4);
    if constexpr (Epilogue::bulk) {
      if (lane() == 0) stores_wait<0>();
    }
  }
}

}  // namespace dm
