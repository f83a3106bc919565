// Contractions as tiled matrix products: what the main loops have in common.
//
//   C[z, m, n] = sum over k of A[z, m, k] * B[z, n, k]
//
// A generated kernel gives three functors and a Shape. An operand is a struct
//
//   using Elem = dm::f16;                  // what lies in shared memory
//   static constexpr bool along_k = true;  // neighbours in memory follow k; else they follow the row
//   static constexpr int vector = 8;       // elements that one load takes, a power of two
//   static constexpr bool direct = true;   // shared memory gets the bytes as they lie in memory
//   auto source(i32 row) const;            // In<Elem>, of a direct operand
//   i64 outer(i32 z) const; i64 row(i32 r) const; i64 col(i32 k) const;  // the address is their sum
//   template <int V> void load(Elem (&to)[V], i32 z, i32 r, i32 k) const; // of any operand: V neighbours, prologue applied
//
// where a row is m for A and n for B. An epilogue is a struct
//
//   static constexpr int vector = 8;       // neighbours along n that one call takes; divides n
//   template <int V, class Acc> void operator()(i32 z, i32 m, i32 n, Acc (&acc)[V]) const;
//
// called once for each run of V accumulators of a row, whole runs only.
#pragma once

namespace dm {

// Shape is the size of a contraction and how it is cut into blocks.
template <i32 Batch, i32 M, i32 N, i32 K, i32 Splits = 1>
struct Shape {
  static constexpr i32 batch = Batch, m = M, n = N, k = K;
  // splits is how many blocks share a sum: block s adds up the k of its part
  // and hands z + s * batch to the epilogue, which stores partial sums.
  static constexpr i32 splits = Splits;
};

// Place is what one block computes: a tile of one matrix of the batch, over
// the steps [first, last) of the loop along k.
struct Place {
  i32 z, split, m, n, first, last;
};

// place numbers tiles so that blocks that run together share rows and columns
// in the cache: eight tiles down, then one to the right.
template <class S, i32 BM, i32 BN, i32 BK>
DM_FN Place place(i32 index) {
  constexpr i32 rows = (S::m + BM - 1) / BM, cols = (S::n + BN - 1) / BN, steps = (S::k + BK - 1) / BK;
  constexpr i32 deep = rows < 8 ? rows : 8;
  Place p;
  const i32 tile = index % (rows * cols), rest = index / (rows * cols);
  p.z = rest % S::batch;
  p.split = rest / S::batch;
  const i32 band = tile / (deep * cols), in = tile % (deep * cols);
  const i32 height = rows - band * deep < deep ? rows - band * deep : deep;
  p.m = (band * deep + in % height) * BM;
  p.n = in / height * BN;
  p.first = (i32)((i64)steps * p.split / S::splits);
  p.last = (i32)((i64)steps * (p.split + 1) / S::splits);
  return p;
}

// fetch reads V neighbours from global memory in the widest loads.
template <int V, class T>
DM_FN void fetch(T (&to)[V], In<T> x, i64 at) {
  constexpr int W = V * (int)sizeof(T) <= 16 ? V : 16 / (int)sizeof(T);
DM_UNROLL
  for (int i = 0; i < V; i += W) {
    const Vec<T, W> v = x.template load<W>(at + i);
DM_UNROLL
    for (int j = 0; j < W; j++) to[i + j] = v[j];
  }
}

// put writes V neighbours to global memory in the widest stores.
template <int V, class T, class To>
DM_FN void put(To y, i64 at, const T (&from)[V]) {
  constexpr int W = V * (int)sizeof(T) <= 16 ? V : 16 / (int)sizeof(T);
DM_UNROLL
  for (int i = 0; i < V; i += W) {
    Vec<T, W> v;
DM_UNROLL
    for (int j = 0; j < W; j++) v[j] = from[i + j];
    y.template store<W>(at + i, v);
  }
}

// chunk reads eight neighbours of an operand, from (r, k) on along k or along
// the row; what lies outside the matrix is zero.
template <class X>
DM_FN Vec<typename X::Elem, 8> chunk(const X& x, i32 z, i32 r, i32 k, i32 rows, i32 depth) {
  using T = typename X::Elem;
  constexpr int W = X::vector < 8 ? X::vector : 8;
  Vec<T, 8> v;
DM_UNROLL
  for (int i = 0; i < 8; i += W) {
    const i32 ri = X::along_k ? r : r + i, ki = X::along_k ? k + i : k;
    T part[W];
    if (ri < rows && ki < depth) {
      x.template load<W>(part, z, ri, ki);
    } else {
DM_UNROLL
      for (int j = 0; j < W; j++) part[j] = narrow<T>(0.0f);
    }
DM_UNROLL
    for (int j = 0; j < W; j++) v[i + j] = part[j];
  }
  return v;
}

// Stage is the part of an operand that one step of a tensor-core loop needs:
// Rows x BK elements of shared memory, in chunks of eight, moved so that the
// eight rows that one ldmatrix reads lie in different banks.
template <class X, int Rows, int BK, int Threads>
struct Stage {
  using T = typename X::Elem;
  static constexpr int size = Rows * BK;
  static constexpr int line = (X::along_k ? BK : Rows) / 8; // chunks side by side
  static constexpr int lines = X::along_k ? Rows : BK;
  static constexpr int each = lines * line / Threads; // chunks of a thread
  static constexpr int apart = Threads / line;        // lines between two of them
  static constexpr bool async = X::direct && X::vector >= 8;
  static_assert(Threads % line == 0 && lines * line % Threads == 0, "threads share the chunks evenly");

  // at is where chunk c of a line lies.
  DM_FN static i32 at(i32 l, i32 c) {
    constexpr int period = line >= 8 ? 1 : 8 / line; // lines in 128 bytes
    constexpr int mask = line >= 8 ? 7 : line - 1;
    return (l * line + (c ^ ((l / period) & mask))) * 8;
  }

  const X& x;
  const i32 z, row, rows, depth; // the tile's first row; the matrix's size
  i64 base[X::along_k ? each : 1];
  Vec<T, 8> held[async ? 1 : each];

  DM_FN Stage(const X& x, i32 z, i32 row, i32 rows, i32 depth) : x(x), z(z), row(row), rows(rows), depth(depth) {
    if constexpr (async) {
      const i64 o = x.outer(z);
      if constexpr (X::along_k) {
DM_UNROLL
        for (int i = 0; i < each; i++) {
          const i32 r = row + thread() / line + i * apart;
          base[i] = r < rows ? o + x.row(r) : 0;
        }
      } else {
        const i32 r = row + thread() % line * 8;
        base[0] = r < rows ? o + x.row(r) : 0;
      }
    }
  }

  // begin starts to bring the step that begins at k; finish ends it. In
  // between the values are on their way, to shared memory or to registers.
  DM_FN void begin(Shared<T> to, i32 k) {
    const i32 l0 = thread() / line, c = thread() % line;
DM_UNROLL
    for (int i = 0; i < each; i++) {
      const i32 l = l0 + i * apart;
      const i32 r = X::along_k ? row + l : row + c * 8, ki = X::along_k ? k + c * 8 : k + l;
      if constexpr (async) {
        const bool valid = r < rows && ki < depth;
        const i64 from = valid ? base[X::along_k ? i : 0] + x.col(ki) : 0;
        cp_async<16>(to, at(l, c), x.source(r), from, valid);
      } else {
        held[i] = chunk(x, z, r, ki, rows, depth);
      }
    }
  }
  DM_FN void finish(Shared<T> to) {
    if constexpr (!async) {
      const i32 l0 = thread() / line, c = thread() % line;
DM_UNROLL
      for (int i = 0; i < each; i++) to.template store<8>(at(l0 + i * apart, c), held[i]);
    }
  }
};

// flush hands a slab of 16 rows x W columns of accumulators, which the warp has
// written to shared memory, to the epilogue in runs along n, so that a warp
// stores whole lines of memory. Rows lie `pitch` apart.
template <int W, int Pitch, class S, class Epilogue>
DM_FN void flush(Shared<float> slab, const Epilogue& epilogue, i32 z, i32 m, i32 n) {
  constexpr int V = Epilogue::vector, runs = W / V;
  static_assert(W % V == 0 && 16 * runs % 32 == 0, "runs fill the slab, and the warp shares them evenly");
  sync_warp();
DM_UNROLL
  for (int i = 0; i < runs / 2; i++) {
    const i32 run = i * 32 + lane(), r = run / runs, c = run % runs * V;
    if (m + r < S::m && n + c < S::n) {
      float acc[V];
      constexpr int Q = V < 4 ? V : 4;
DM_UNROLL
      for (int e = 0; e < V; e += Q) {
        const Vec<float, Q> v = slab.template load<Q>(r * Pitch + c + e);
DM_UNROLL
        for (int j = 0; j < Q; j++) acc[e + j] = v[j];
      }
      epilogue(z, m + r, n + c, acc);
    }
  }
  sync_warp();
}

} // namespace dm
