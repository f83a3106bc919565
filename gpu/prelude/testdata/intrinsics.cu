// Every intrinsic of the prelude once, for a compiler to look at.
#include "dm.cuh"

DM_KERNEL(points, 256)(dm::In<dm::f16> x, dm::In<dm::bf16> b, dm::Out<dm::f8e4> y, dm::Out<dm::f8e5> z, dm::InOut<float> acc,
                       dm::In<double> d, dm::In<bool> m, dm::Out<dm::i64> out) {
  dm::i64 i = dm::i64(dm::block()) * dm::threads() + dm::thread();
  float v = dm::wide(x[i]) + dm::wide(b[i]);
  auto vec = x.load<8>(i * 8), once = x.load_once<8>(i * 8 + 8);
  for (int k = 0; k < 8; k++) v += dm::wide(vec[k]) * dm::wide(once[k]);
  v += dm::exp(v) + dm::log(v) + dm::log1p(v) + dm::expm1(v) + dm::sqrt(v) + dm::rsqrt(v) + dm::cbrt(v) + dm::tanh(v) + dm::erf(v) + dm::erfc(v) + dm::sinh(v) + dm::cosh(v) + dm::asinh(v) + dm::acosh(v) + dm::atanh(v) + dm::erfinv(v) + dm::tan(v) + dm::round_half_away(v);
  v += dm::logistic(v) + dm::pow(v, 2.5f) + dm::rem(v, 3.0f) + dm::atan2(v, 1.0f) + dm::cos(v) + dm::sin(v) + dm::floor(v);
  v += dm::ceil(v) + dm::round(v) + dm::abs(v) + dm::sign(v) + dm::max(v, 1.0f) + dm::min(v, 2.0f) + dm::fma(v, v, 1.0f);
  y.store(i, dm::narrow<dm::f8e4>(v));
  z.store(i, dm::narrow<dm::f8e5>(d[i]));
  DM_SHARED(float, scratch, 32);
  float s = dm::block_sum(v, scratch) + dm::block_product(v, scratch) + dm::warp_product(v) + dm::block_max(v, scratch) + dm::block_min(v, scratch);
  if (dm::thread() == 0) acc.add(dm::block(), m[i] ? s : 0.0f);
  dm::i64 n = dm::convert<dm::i64>(s) + dm::convert<bool>(v) + dm::convert<dm::u8>(v) + dm::div(dm::i64(4), i) + dm::rem(7, 3) + dm::pow(2, 5);
  n += dm::i64(dm::bits(1, 2, i)) + dm::i64(dm::uniform(1, 2, i) * dm::normal(1, 2, i));
  n += dm::ballot(v > 0) + dm::popcount(dm::match(dm::i32(n))) + dm::shuffle(3, 1) + dm::shuffle_xor(n, 1) + dm::shuffle_down(i, 1);
  n += dm::popcnt(n) + dm::count_leading_zeros(dm::i8(n)) + dm::shift_left(n, i) + dm::shift_right_logical(n, i) + dm::shift_right_arithmetic(n, i);
  out.store(i, n + dm::block_y() + dm::block_z() + dm::blocks() + dm::blocks_y() + dm::blocks_z());
}

DM_KERNEL_OCCUPANCY(doubles, 128, 2)(dm::In<double> x, dm::InOut<double> y, dm::InOut<dm::f16> h, dm::InOut<dm::bf16> b, dm::InOut<dm::i64> n) {
  dm::i64 i = dm::thread();
  double v = x[i];
  v += dm::exp(v) + dm::log(v) + dm::log1p(v) + dm::expm1(v) + dm::sqrt(v) + dm::rsqrt(v) + dm::cbrt(v) + dm::tanh(v) + dm::erf(v) + dm::erfc(v) + dm::sinh(v) + dm::cosh(v) + dm::asinh(v) + dm::acosh(v) + dm::atanh(v) + dm::erfinv(v) + dm::tan(v) + dm::round_half_away(v);
  v += dm::logistic(v) + dm::pow(v, 2.5) + dm::rem(v, 3.0) + dm::atan2(v, 1.0) + dm::cos(v) + dm::sin(v) + dm::floor(v);
  v += dm::ceil(v) + dm::round(v) + dm::abs(v) + dm::sign(v) + dm::max(v, 1.0) + dm::min(v, 2.0) + dm::warp_sum(v);
  auto pair = y.load<2>(2 * i);
  pair[0] += v;
  y.store(2 * i, pair);
  h.add(i, dm::narrow<dm::f16>(v));
  b.add(i, dm::narrow<dm::bf16>(v));
  n.add(i, 1);
}

DM_KERNEL(tensor, 128)(dm::In<dm::f16> a, dm::In<dm::bf16> b, dm::Out<float> c) {
  DM_ARENA(arena);
  auto ta = arena.take<dm::f16>(1024);
  auto tb = arena.take_aligned<dm::bf16>(1024, 128);
  int t = dm::thread();
  dm::cp_async<4>(ta, t * 2, a, t * 2);
  dm::cp_async<8>(ta, 256 + t * 4, a, t * 4);
  dm::cp_async<16>(tb, t * 8, b, t * 8, t < 32);
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  dm::sync();
  dm::u32 fa[4], fb[4], f2[2], ft[2];
  int row = (t % 16) * 16 + t / 16 % 2 * 8;
  dm::ldmatrix_x4(fa, ta, row);
  dm::ldmatrix_x4_trans(fb, tb + 8, row);
  dm::ldmatrix_x2(f2, ta, row);
  dm::ldmatrix_x2_trans(ft, tb, row);
  float d[4] = {0, 0, 0, 0};
  dm::mma_m16n8k16<dm::f16>(d, fa, f2);
  dm::mma_m16n8k16<dm::bf16>(d, fb, ft);
  dm::mma_m16n8k8_tf32(d, fa, f2);
  dm::mma_sp_m16n8k32<dm::f16, 0>(d, fa, fb, 0xeeeeeeee);
  dm::mma_sp_m16n8k32<dm::bf16, 1>(d, fa, fb, 0x44444444);
  for (int k = 0; k < 4; k++) c.store(t * 4 + k, d[k]);
  dm::sync_warp();
  auto words = tb.as<dm::u32>();
  words[t] = dm::pack2<dm::bf16>(d[0], d[1]) ^ dm::pack2<dm::f16>(d[2], d[3]);
  if (t < 64) dm::sync_named(1, 64);
  dm::sync();
  words.add(0, 1);
  auto v = words.load<4>(4 * (t % 32));
  words.store(4 * (t % 32), v);
  arena.reset(128);
  c.store(512 + t, float(words[(t + 1) % 128]));
}

DM_KERNEL(tail, 64)(dm::InOut<dm::u32> counter, dm::Out<float> y) {
  if (dm::last_block(counter, 0, 4)) y.store(dm::thread(), 1.0f);
}
