// Tensor cores by mma.sync (sm_80 up). All lanes of a warp call these together.
//
// With g = lane / 4 and t = lane % 4, a lane's registers hold, two elements each:
// of A (16×16) rows g, g+8, g, g+8 and columns 2t, 2t, 2t+8, 2t+8; of B (16×8)
// rows 2t, 2t+8 of column g; of D (16×8), one each, row g columns 2t, 2t+1 and
// row g+8 columns 2t, 2t+1.
#pragma once

namespace dm {

// Four 8×8 matrices of 16-bit elements, or 8×4 of 32-bit ones: lanes 8k to 8k+7 pass, by i, the row
// addresses of matrix k, 16-byte aligned; r[k] is the lane's pair of it.
template <class T> DM_FN void ldmatrix_x4(u32 (&r)[4], Shared<T> s, i32 i) {
  static_assert(sizeof(T) <= 4, "16-bit elements, or 32-bit ones, of which a register has one");
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(detail::shared_address(s.p + i)) : "memory");
}
// The same with each matrix transposed.
template <class T> DM_FN void ldmatrix_x4_trans(u32 (&r)[4], Shared<T> s, i32 i) {
  static_assert(sizeof(T) == 2, "16-bit elements");
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(detail::shared_address(s.p + i)) : "memory");
}
// Two matrices: lanes 0 to 15 pass the addresses.
template <class T> DM_FN void ldmatrix_x2(u32 (&r)[2], Shared<T> s, i32 i) {
  static_assert(sizeof(T) == 2, "16-bit elements");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(detail::shared_address(s.p + i)) : "memory");
}
template <class T> DM_FN void ldmatrix_x2_trans(u32 (&r)[2], Shared<T> s, i32 i) {
  static_assert(sizeof(T) == 2, "16-bit elements");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(detail::shared_address(s.p + i)) : "memory");
}

template <class T> DM_FN void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]);

// D += A·B, products of f16, sums in f32.
template <> DM_FN void mma_m16n8k16<f16>(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The same for bf16.
template <> DM_FN void mma_m16n8k16<bf16>(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// D += A·B, where A is 16×32 with two numbers in each group of four columns (2:4) and B 32×8: a is the 16×16 of the numbers that A
// has, as of mma_m16n8k16, b rows 2t, 2t+8, 2t+16, 2t+24 of column g. The metadata e has two bits for each number, the lowest those of
// the first one: its column in its group, the first number's below the second one's. Of the four lanes with one g, numbers
// 2·Half and 2·Half + 1 pass it, of columns 0 to 15 and of 16 to 31: row g in the low half, row g+8 in the high one. (PTX ISA, "Matrix
// fragments for sparse mma.m16n8k32 with .f16 and .bf16 types"; the same order as reorder_meta of CUTLASS gives.)
template <class T, int Half> DM_FN void mma_sp_m16n8k32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[4], u32 e);

#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
#define DM_MMA_SP "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32." // the form that newer cards are fast with
#else
#define DM_MMA_SP "mma.sp.sync.aligned.m16n8k32.row.col.f32."
#endif
#define DM_SPARSE_PRODUCT(T, TYPE, HALF) \
  template <> DM_FN void mma_sp_m16n8k32<T, HALF>(float (&d)[4], const u32 (&a)[4], const u32 (&b)[4], u32 e) { \
    asm volatile(DM_MMA_SP TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, " #HALF ";" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e)); \
  }
DM_SPARSE_PRODUCT(f16, "f16", 0)
DM_SPARSE_PRODUCT(f16, "f16", 1)
DM_SPARSE_PRODUCT(bf16, "bf16", 0)
DM_SPARSE_PRODUCT(bf16, "bf16", 1)
#undef DM_SPARSE_PRODUCT
#undef DM_MMA_SP

// The number, an f32, rounded to TF32: to nearest, ties away from zero, the low 13 bits zero.
DM_FN u32 round_tf32(u32 bits) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(bits)));
  return r;
}

// D += A·B with A 16×8 and B 8×8 of f32 whose low 13 bits are ignored: a[0] to
// a[3] are rows g, g+8, g, g+8 and columns t, t, t+4, t+4; b rows t, t+4.
DM_FN void mma_m16n8k8_tf32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers rounded to T in a fragment's register, lo in the low half.
template <class T> DM_FN u32 pack2(float lo, float hi);
template <> DM_FN u32 pack2<f16>(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
template <> DM_FN u32 pack2<bf16>(float lo, float hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}

}  // namespace dm
