// The product of two matrices in rows as a dense matrix: a warp has a row, as wide as shared memory has room for, and the elements of a row of the
// second matrix are added by its lanes, each to a column of its own (Gustavson, ACM TOMS 4(3), 1978).
//
// A generated kernel passes a struct S:
//
//   static constexpr dm::i64 rows, others;       // of the matrices
//   static constexpr dm::i64 elements, entries;  // that they have room for
//   static constexpr dm::i64 columns;
//   static constexpr dm::i32 warps, chunk;       // of a block; columns of a warp
#pragma once

namespace dm {

// segment_dense_product joins products, Combine of two elements, by Kind, of which none is the neutral element.
template <class S, class Kind, class Combine, class T, class P, class C, class Q, class D>
DM_FN void segment_dense_product(Arena arena, const In<P>& positions, const In<C>& coordinates, const In<T>& a, const In<Q>& b_positions, const In<D>& b_coordinates, const In<T>& b, const Out<T>& y, T none) {
  const Shared<T> all = arena.take<T>(S::warps * S::chunk);
  const i64 row = i64(block()) * S::warps + warp(), first = i64(block_y()) * S::chunk;
  if (row >= S::rows) return;
  const Shared<T> sums = all + warp() * S::chunk;
  const i32 count = i32(S::columns - first < S::chunk ? S::columns - first : S::chunk), own = lane();
  for (i32 i = own; i < count; i += 32) sums[i] = none;
  const auto inside = [](i64 x, i64 most) { return x < 0 ? i64(0) : x > most ? most : x; };
  const i64 end = inside(i64(positions[row + 1]), S::elements);
DM_NO_UNROLL
  for (i64 x = inside(i64(positions[row]), S::elements); x < end; x++) {
    const i64 k = i64(coordinates[x]);
    if (k < 0 || k >= S::others) continue;
    const T v = a[x];
    const i64 from = inside(i64(b_positions[k]), S::entries), to = inside(i64(b_positions[k + 1]), S::entries);
    sync_warp();  // one row after the other: within it no column is twice
DM_NO_UNROLL
    for (i64 z = from + own; z < to; z += 32) {
      const i64 c = inside(i64(b_coordinates[z]), S::columns - 1) - first;
      if (c >= 0 && c < count) sums[i32(c)] = Kind::of(T(sums[i32(c)]), Combine::of(v, T(b[z])));
    }
  }
  sync_warp();
  for (i32 i = own; i < count; i += 32) y.store(row * S::columns + first + i, sums[i]);
}

}  // namespace dm
