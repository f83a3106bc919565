// Contractions as tiled matrix products: what the main loops have in common.
//
//   C[z, m, n] = sum over k of A[z, m, k] * B[z, n, k]
//
// A generated kernel passes a Shape and three functors. An operand is a struct
//
//   using Elem = dm::f16;                     // element type in shared memory; on tensor cores float is rounded to TF32
//   static constexpr bool along_k = true;     // neighbours in memory follow k; else they follow the row
//   static constexpr int vector = 8;          // neighbours that one load takes, a power of two up to 8
//   static constexpr bool direct = true;      // bytes are copied to shared memory unchanged
//   DM_FN bool has(i32 r) const;              // whether there is a row r
//   DM_FN auto source(i32 r) const;           // direct: the tensor with row r, and
//   using Offset = i64;                       // direct: of the index in it, the sum of
//   DM_FN Offset outer(i32 z) const, row(i32 r) const, col(i32 k) const;
//   static constexpr int coordinates = 0;     // direct: from 1 on, it has elements in a window alone
//   DM_FN void load(Elem (&to)[vector], i32 z, i32 r, i32 k) const;   // else: the neighbours from (r, k) on
//
// where a row is m of A and n of B. The coordinates of an element in a window are sums of
// those of its row and of its k; outside of the window there are zeros:
//
//   DM_FN void place(i32 (&c)[coordinates], i32 r) const, tap(i32 (&c)[coordinates], i32 k) const;
//   DM_FN static bool inside(const i32 (&c)[coordinates]);            // not where has(r) is false
//   DM_FN static Offset far(const i32 (&c)[coordinates]);             // a part of the index
//
// An epilogue is a struct
//
//   static constexpr int vector = 8;          // neighbours along n that one call takes; they divide n
//   static constexpr int products = 1;        // 2: results combine the sums of two products with one A
//   static constexpr int reductions = 0;      // results that reduce values over rows or columns
//   DM_FN void operator()(i32 z, i32 m, i32 n, const Acc (&acc)[products][vector]) const;
//
// With reductions, the call has one more argument,
// `float (&value)[reductions][vector]`, for the values to reduce, and the struct has
//
//   DM_FN static constexpr bool over_rows(int f);     // else over columns
//   DM_FN static float first(int f), join(int f, float a, float b);
//   DM_FN void part(int f, i64 i, float v) const;     // stores a partial result
//
// On Hopper an epilogue may give its result back, for the copy engine to store it (bulk); without reductions and with two neighbours:
//
//   static constexpr bool bulk = true;        // else the call stores
//   static constexpr bool reads = true;       // memory, at m or n, which are not beyond the result then
//   using Result = dm::f16;
//   DM_FN Vec<Result, 2> operator()(i32 z, i32 m, i32 n, const float (&acc)[products][2]) const;
//   DM_FN void store(Shared<Result> from, i32 at, i32 z, i32 m, i32 n) const;   // a box of 16 rows and 32 columns
//
// A later kernel adds the partial results up in order. Partial result p of the
// reduction over rows for (z, n) is number (z * parts + p) * N + n, one for each
// warp and tile; that over columns for (z, m) is number p * batch * M + z * M + m,
// one for each window of columns that a warp passes on at once.
//
// Of two products B's rows come in groups: those of the first one's next `group`
// columns, then those of the second one's.
#pragma once

namespace dm {

// Groups is what the matrices of a batch divide, instead of having one each: the rows of A and C, or k. A says which part is theirs:
//
//   DM_FN i32 begin(i32 z) const, end(i32 z) const;   // no less than 0, no more than m, or k
//
// The phases of a convolution's outputs, matrices of the batch, divide k: each has the taps of the window with which its outputs meet
// elements, of channels numbers each. That is known at compile time, so that a block waits for nothing.
enum class Groups { none, rows, depth, taps };

// groups_read is whether memory says where groups begin.
template <class S> constexpr bool groups_read = S::groups == Groups::rows || S::groups == Groups::depth;

// Shape is the size of a contraction and its partition into blocks.
template <i32 Batch, i32 M, i32 N, i32 K, i32 Splits = 1, i32 Products = 1, bool Cluster = false, Groups By = Groups::none, i32 Workers = 0>
struct Shape {
  static constexpr i32 batch = Batch, m = M, n = N, k = K, products = Products;
  static constexpr Groups groups = By;
  // splits is how many blocks share a sum: block s sums over its part of k and
  // passes z + s * batch to the epilogue, which stores partial sums. In a cluster they add
  // these up on the chip instead (gemm_cluster.cuh).
  static constexpr i32 splits = Splits;
  static constexpr bool cluster = Cluster;
  // workers share the steps of the last tiles (gemm_stream_k.cuh); 0: no block shares a tile's.
  static constexpr i32 workers = Workers;
};

template <class S, i32 BM, i32 BN, i32 BK, i32 Across, i32 Blocks, i32 Warps> struct StreamK;
struct Unshared {};

// Place is what one block computes: a tile of one matrix of the batch, whose rows end below `below`, over
// the steps [first, last) of the loop along k.
struct Place {
  i32 z, split, m, n, first, last, below;
};

// down_of is how many tiles lie one below the other, and matrices_of how many have tiles of their own. Groups of rows have whole tiles.
template <class S, i32 BM> constexpr i32 down_of = (S::m + BM - 1) / BM + (S::groups == Groups::rows ? S::batch : 0);
template <class S> constexpr i32 matrices_of = S::groups == Groups::rows ? 1 : S::batch;

template <class S, i32 BM, i32 BN>
constexpr i32 tiles_of = down_of<S, BM> * ((S::n * S::products + BN - 1) / BN) * matrices_of<S> * S::splits;

// place numbers tiles so that blocks that run together share rows and columns
// in the cache: eight tiles down, then one to the right. n counts B's rows. Tiles 2i and 2i + 1 lie one below the other where their
// rows are even in number, or side by side with Across = 2, of an even number of columns. The blocks of a cluster that share sums are
// neighbours, too: their split is their rank.
template <class S, i32 BM, i32 BN, i32 BK, i32 Across = 1>
DM_FN Place place(i32 number) {
  constexpr i32 rows = down_of<S, BM>, cols = (S::n * S::products + BN - 1) / BN / Across, steps = (S::k + BK - 1) / BK;
  constexpr i32 parts = S::cluster ? S::splits : 1;
  static_assert(parts == 1 || Across == 1, "a cluster shares an operand or sums");
  const i32 index = number / parts / Across;
  constexpr i32 deep = rows < 8 ? rows : 8;
  Place p;
  const i32 tile = index % (rows * cols), rest = index / (rows * cols);
  p.z = rest % matrices_of<S>;
  p.split = S::cluster ? number % parts : rest / matrices_of<S>;
  const i32 band = tile / (deep * cols), in = tile % (deep * cols);
  const i32 height = rows - band * deep < deep ? rows - band * deep : deep;
  p.m = (band * deep + in % height) * BM;
  p.n = (in / height * Across + number / parts % Across) * BN;
  p.first = i32(i64(steps) * p.split / S::splits);
  p.last = i32(i64(steps) * (p.split + 1) / S::splits);
  p.below = S::m;
  return p;
}

// GroupPart is what of k belongs to a tile's group: k from `from` on, below `depth`.
struct GroupPart {
  i32 from, depth;
};

// group_part is that of a block at p, which it moves to its group, or, where there is none, gives no rows and no steps.
// A lane looks at a group, a warp at 32 of them; rows in front of the first group are
// that one's, rows behind the last one that one's, and all of them C has.
template <class S, i32 BM, i32 BK, class A>
DM_FN GroupPart group_part(Place& p, const A& a) {
  if constexpr (S::groups == Groups::rows) {
    i32 tile = p.m / BM; // among those of the groups from z on
    DM_NO_UNROLL
    for (i32 z = 0; z < S::batch; z += 32) {
      const i32 own = z + lane();
      i32 begin = 0, end = 0;
      if (own < S::batch) {
        begin = own == 0 ? 0 : a.begin(own);
        end = own == S::batch - 1 ? S::m : a.end(own);
      }
      const i32 tiles = end > begin ? (end - begin + BM - 1) / BM : 0;
      i32 sum = tiles; // of the groups up to this lane's
      DM_UNROLL
      for (int d = 1; d < 32; d *= 2) {
        const i32 before = shuffle(sum, lane() - d & 31);
        if (lane() >= d) sum += before;
      }
      const u32 found = ballot(tile < sum);
      if (found != 0) {
        const i32 at = popcount((found & (0u - found)) - 1);
        p.z = z + at;
        p.m = shuffle(begin, at) + (tile - shuffle(sum - tiles, at)) * BM;
        p.below = shuffle(end, at);
        return {0, S::k};
      }
      tile -= shuffle(sum, 31);
    }
    p.below = 0;
    p.last = p.first;
    return {0, S::k};
  } else if constexpr (S::groups == Groups::depth) {
    const i32 begin = a.begin(p.z), end = a.end(p.z);
    p.first = 0;
    p.last = end > begin ? (end - begin + BK - 1) / BK : 0;
    return {begin, end};
  } else if constexpr (S::groups == Groups::taps) {
    const i32 begin = a.begin(p.z), end = a.end(p.z), steps = (end - begin + BK - 1) / BK;
    p.first = i32(i64(steps) * p.split / S::splits);
    p.last = i32(i64(steps) * (p.split + 1) / S::splits);
    return {begin, end};
  } else {
    return {0, S::k};
  }
}

// place_in is place of the main loops on Hopper, of which every warp asks that needs it. The steps of a phase are those of k, which has whole steps
// for each tap where tensor maps copy operands; those of a group's part of k are counted from its begin.
template <class S, i32 BM, i32 BN, i32 BK, i32 Across, class A>
DM_FN Place place_in(i32 number, const A& a) {
  Place p = place<S, BM, BN, BK, Across>(number);
  if constexpr (S::groups == Groups::taps) {
    const GroupPart own = group_part<S, BM, BK>(p, a);
    p.first += own.from / BK;
    p.last += own.from / BK;
  } else if constexpr (groups_read<S>) {
    group_part<S, BM, BK>(p, a);
  }
  return p;
}

// chunk_of is the elements of a chunk of 16 bytes.
template <class X> constexpr int chunk_of = 16 / int(sizeof(typename X::Elem));

// chunk reads 16 bytes of neighbours of an operand, from (r, k) on along k or along the
// row; elements outside the matrix are zero.
template <class X>
DM_FN Vec<typename X::Elem, chunk_of<X>> chunk(const X& x, i32 z, i32 r, i32 k, i32 depth) {
  using T = typename X::Elem;
  constexpr int W = X::vector;
  Vec<T, chunk_of<X>> v;
  DM_UNROLL
  for (int i = 0; i < chunk_of<X>; i += W) {
    const i32 ri = X::along_k ? r : r + i, ki = X::along_k ? k + i : k;
    T part[W];
    if (x.has(ri) && ki < depth) {
      x.load(part, z, ri, ki);
    } else {
      DM_UNROLL
      for (int j = 0; j < W; j++) part[j] = T{};
    }
    DM_UNROLL
    for (int j = 0; j < W; j++) v[i + j] = part[j];
  }
  return v;
}

// Offsets are what a direct operand says of its offsets.
template <class X, bool Direct = X::direct> struct Offsets {
  using Type = i64;
  static constexpr int coordinates = 0;
};
template <class X> struct Offsets<X, true> {
  using Type = typename X::Offset;
  static constexpr int coordinates = X::coordinates;
};

// Stage is the part of an operand that one step of a tensor-core loop needs:
// Rows x BK elements of shared memory, in chunks of 16 bytes, swizzled so that the
// eight rows that one ldmatrix reads lie in different banks. Numbers of 32 bits along rows, which
// ldmatrix cannot transpose, are read one by one: by a warp eight neighbours of four lines. Those lie in different banks, and at fixed
// distances, where lines are padded by eight numbers.
template <class X, int Rows, int BK, int Threads>
struct Stage {
  using T = typename X::Elem;
  static constexpr int piece = chunk_of<X>; // elements of a chunk
  static constexpr int line = (X::along_k ? BK : Rows) / piece; // chunks side by side
  static constexpr int lines = X::along_k ? Rows : BK;
  static constexpr bool padded = sizeof(T) == 4 && !X::along_k;
  static constexpr int pitch = line * piece + (padded ? 8 : 0), size = lines * pitch; // in elements
  static constexpr int each = lines * line / Threads; // chunks of a thread
  static constexpr int apart = Threads / line;        // lines between two of them
  static_assert(Threads % line == 0 && lines * line % Threads == 0, "threads share the chunks evenly");

  // at is the index of chunk c of a line.
  DM_FN static i32 at(i32 l, i32 c) {
    constexpr int period = line >= 8 ? 1 : 8 / line; // lines in 128 bytes
    constexpr int mask = line >= 8 ? 7 : line - 1;
    if constexpr (padded) return l * pitch + c * piece;
    return (l * line + (c ^ ((l / period) & mask))) * piece;
  }

  // number is the index of element r of a padded line.
  DM_FN static i32 number(i32 l, i32 r) { return l * pitch + r; }

  const X& x;
  const i32 z, row, depth; // the matrix, the tile's first row; the length of k
  using Offset = typename Offsets<X>::Type;
  static constexpr int coordinates = Offsets<X>::coordinates;
  static constexpr int own = X::along_k ? each : 1; // rows of a thread
  Offset base[own];
  i32 places[own][coordinates > 0 ? coordinates : 1];
  Vec<T, piece> held[X::direct ? 1 : each];

  DM_FN Stage(const X& x, i32 z, i32 row, i32 depth) : x(x), z(z), row(row), depth(depth) {
    if constexpr (X::direct) {
      const Offset o = x.outer(z);
      DM_UNROLL
      for (int i = 0; i < own; i++) {
        const i32 r = row + (X::along_k ? thread() / line + i * apart : thread() % line * piece);
        base[i] = x.has(r) ? o + x.row(r) : 0;
        if constexpr (coordinates > 0) x.place(places[i], r);
      }
    }
  }

  // begin starts loading the step at k, to shared memory or to registers; finish
  // completes it.
  DM_FN void begin(Shared<T> to, i32 k) {
    const i32 l0 = thread() / line, c = thread() % line;
    if constexpr (coordinates > 0) { // chunks along k have the same k, so that its part is computed once
      Offset col;
      i32 tap[coordinates];
      DM_UNROLL
      for (int i = 0; i < each; i++) {
        const i32 l = l0 + i * apart, ki = X::along_k ? k + c * piece : k + l;
        if (i == 0 || !X::along_k) {
          col = x.col(ki);
          x.tap(tap, ki);
        }
        i32 sum[coordinates];
        DM_UNROLL
        for (int j = 0; j < coordinates; j++) sum[j] = places[X::along_k ? i : 0][j] + tap[j];
        cp_async<16>(to, at(l, c), x.source(0), base[X::along_k ? i : 0] + col + x.far(sum), ki < depth && x.inside(sum));
      }
    } else {
      DM_UNROLL
      for (int i = 0; i < each; i++) {
        const i32 l = l0 + i * apart;
        const i32 r = X::along_k ? row + l : row + c * piece, ki = X::along_k ? k + c * piece : k + l;
        if constexpr (X::direct) {
          const bool valid = x.has(r) && ki < depth;
          const i64 from = valid ? base[X::along_k ? i : 0] + x.col(ki) : 0;
          cp_async<16>(to, at(l, c), x.source(r), from, valid);
        } else {
          held[i] = chunk(x, z, r, ki, depth);
        }
      }
    }
  }
  DM_FN void finish(Shared<T> to) {
    if constexpr (!X::direct) {
      const i32 l0 = thread() / line, c = thread() % line;
      DM_UNROLL
      for (int i = 0; i < each; i++) to.template store<piece>(at(l0 + i * apart, c), held[i]);
    }
  }
};

// call calls the epilogue on a run of sums and stores the values to reduce in value.
template <class Epilogue, class Acc, int P, int V, int F>
DM_FN void call(const Epilogue& epilogue, i32 z, i32 m, i32 n, const Acc (&acc)[P][V], float (&value)[F][V]) {
  if constexpr (Epilogue::reductions > 0)
    epilogue(z, m, n, acc, value);
  else
    epilogue(z, m, n, acc);
}

// Rows is what a lane reduces over the rows of its columns, while its warp passes
// on the slabs of a window of W columns one after the other.
template <int W, class Epilogue>
struct Rows {
  static constexpr int F = Epilogue::reductions, V = Epilogue::vector, runs = W / Epilogue::products / V;
  static constexpr int slots = runs > 32 ? runs / 32 : 1; // runs of a lane in a row
  float v[F > 0 ? F : 1][slots][V];

  DM_FN Rows() {
    if constexpr (F > 0) {
      DM_UNROLL
      for (int f = 0; f < F; f++)
        DM_UNROLL
        for (int s = 0; s < slots; s++)
          DM_UNROLL
          for (int e = 0; e < V; e++) v[f][s][e] = Epilogue::first(f);
    }
  }
  // finish stores the warp's part of the columns from n on.
  template <class S>
  DM_FN void finish(const Epilogue& epilogue, i32 z, i32 part, i32 parts, i32 n) {
    if constexpr (F > 0) {
      DM_UNROLL
      for (int f = 0; f < F; f++) {
        if (!Epilogue::over_rows(f)) continue;
        DM_UNROLL
        for (int s = 0; s < slots; s++) {
          DM_UNROLL
          for (int e = 0; e < V; e++) {
            float x = v[f][s][e];
            DM_UNROLL
            for (int d = runs < 32 ? runs : 32; d < 32; d *= 2) x = Epilogue::join(f, x, shuffle_xor(x, d));
            const i32 c = n + (s * 32 + lane() % runs) * V + e;
            if (lane() < runs && c < S::n) epilogue.part(f, (i64(z) * parts + part) * S::n + c, x);
          }
        }
      }
    }
  }
};

// slab_at is the place of column c of row r in a slab, whose rows lie Pitch apart, a multiple of 8 but not of 32: fours of neighbours of
// every other row change places in pairs, so that neither the lanes that write pairs of neighbours of four rows nor those that
// read eight fours of two rows meet in a bank.
template <int Pitch>
DM_FN i32 slab_at(i32 r, i32 c) {
  return r * Pitch + (c ^ (r & 1) * 4);
}

// TileSums is a block's sums of a tile in its shared memory, for the blocks of a cluster that share the sums: BM rows of BN, of which Group
// columns are the first product's, then Group the second one's, and so on.
template <class Tile, class Acc, int Group_>
struct TileSums {
  static constexpr int pitch = Tile::BN + 8, size = Tile::BM * pitch, group = Group_;
  const Shared<Acc> sums;
  template <int N> DM_FN void put(i32 r, i32 c, Vec<Acc, N> v) const { sums.template store<N>(slab_at<pitch>(r, c), v); }
};

// add_parts adds the parts of the blocks up and passes the sums to the epilogue (gemm_cluster.cuh); warps number 0 to Warps - 1 of each
// block call it.
template <class Tile, class S, int Warps, class Acc, int Group, class Epilogue>
DM_FN void add_parts(const TileSums<Tile, Acc, Group>& part, const Epilogue& epilogue, const Place& p, i32 number);

// flush passes a slab of 16 rows x W columns of accumulators, which the warp has
// written to shared memory, to the epilogue in runs along n, so that a warp stores
// whole lines of memory. Rows lie Pitch apart. Of two products the slab
// has Group columns of the first, then Group of the second, and so on; n is
// the first one's column. Rows end below `below`.
template <int W, int Pitch, int Group, class S, class Epilogue>
DM_FN void flush(Shared<float> slab, const Epilogue& epilogue, Rows<W, Epilogue>& rows, i32 z, i32 m, i32 n, i32 below = S::m) {
  constexpr int V = Epilogue::vector, P = Epilogue::products, F = Epilogue::reductions, runs = W / P / V, Q = V < 4 ? V : 4;
  constexpr int slots = Rows<W, Epilogue>::slots;
  static_assert(16 * runs % 32 == 0 && (P == 1 || Group % V == 0), "runs fill the slab, and the warp shares them evenly");
  sync_warp();
  float across[F > 0 ? F : 1]; // reductions over the columns of a row
  DM_UNROLL
  for (int i = 0; i < runs / 2; i++) {
    const i32 run = i * 32 + lane(), r = run / runs, c = run % runs * V;
    const bool inside = m + r < below && n + c < S::n;
    float value[F > 0 ? F : 1][V];
    if (inside) {
      float acc[P][V];
      DM_UNROLL
      for (int p = 0; p < P; p++) {
        const i32 from = P == 1 ? c : c / Group * Group * P + c % Group + p * Group;
        DM_UNROLL
        for (int e = 0; e < V; e += Q) {
          const Vec<float, Q> v = slab.template load<Q>(slab_at<Pitch>(r, from + e));
          DM_UNROLL
          for (int j = 0; j < Q; j++) acc[p][e + j] = v[j];
        }
      }
      call(epilogue, z, m + r, n + c, acc, value);
    }
    if constexpr (F > 0) {
      DM_UNROLL
      for (int f = 0; f < F; f++) {
        if (Epilogue::over_rows(f)) {
          if (inside) {
            DM_UNROLL
            for (int e = 0; e < V; e++) rows.v[f][i % slots][e] = Epilogue::join(f, rows.v[f][i % slots][e], value[f][e]);
          }
          continue;
        }
        float x = i % slots == 0 ? Epilogue::first(f) : across[f];
        if (inside) {
          DM_UNROLL
          for (int e = 0; e < V; e++) x = Epilogue::join(f, x, value[f][e]);
        }
        across[f] = x;
        if (i % slots < slots - 1) continue;
        DM_UNROLL
        for (int d = (runs < 32 ? runs : 32) / 2; d > 0; d /= 2) x = Epilogue::join(f, x, shuffle_xor(x, d));
        if (lane() % runs == 0 && m + r < below && n < S::n)
          epilogue.part(f, i64(n / (W / P)) * S::batch * S::m + i64(z) * S::m + m + r, x);
      }
    }
  }
  sync_warp();
}

// Partial stores the sums of a part of k, V neighbours at a time.
template <class S, class Acc, int V>
struct Partial {
  static constexpr int vector = V, products = S::products, reductions = 0;
  static constexpr bool bulk = false;
  Out<Acc> sums;
  DM_FN void operator()(i32 z, i32 m, i32 n, const Acc (&acc)[products][V]) const {
    DM_UNROLL
    for (int p = 0; p < products; p++) {
      constexpr int W = V * int(sizeof(Acc)) <= 16 ? V : 16 / int(sizeof(Acc));
      const i64 at = ((i64(z) * products + p) * S::m + m) * S::n + n;
      DM_UNROLL
      for (int e = 0; e < V; e += W) {
        Vec<Acc, W> v;
        DM_UNROLL
        for (int j = 0; j < W; j++) v[j] = acc[p][e + j];
        sums.template store<W>(at + e, v);
      }
    }
  }
};

// finish adds the partial sums up, in order, and passes the sums to the epilogue; a
// thread for each of its runs.
template <class S, class Acc, class Epilogue>
DM_FN void finish(In<Acc> sums, const Epilogue& epilogue) {
  constexpr int V = Epilogue::vector, P = Epilogue::products, W = V * int(sizeof(Acc)) <= 16 ? V : 16 / int(sizeof(Acc));
  const i64 run = i64(block()) * threads() + thread();
  if (run >= i64(S::batch) * S::m * (S::n / V)) return;
  const i32 n = i32(run % (S::n / V)) * V, m = i32(run / (S::n / V) % S::m), z = i32(run / (S::n / V) / S::m);
  Acc acc[P][V];
  DM_UNROLL
  for (int p = 0; p < P; p++)
    DM_UNROLL
    for (int e = 0; e < V; e++) acc[p][e] = 0;
  DM_NO_UNROLL
  for (i32 s = 0; s < S::splits; s++) {
    DM_UNROLL
    for (int p = 0; p < P; p++) {
      const i64 at = (((i64(s) * S::batch + z) * P + p) * S::m + m) * S::n + n;
      DM_UNROLL
      for (int e = 0; e < V; e += W) {
        const Vec<Acc, W> v = sums.template load<W>(at + e);
        DM_UNROLL
        for (int j = 0; j < W; j++) acc[p][e + j] += v[j];
      }
    }
  }
  epilogue(z, m, n, acc);
}

}  // namespace dm
