// The emulation of the products of warpgroups in hopper.cuh, which multiply when their group is waited for.
#pragma once

namespace dm {

namespace emu {

// What the numbers of an operand are.
enum Format : u8 { isTF32, isF16, isBF16, isE4M3, isE5M2 };
constexpr int bytes_of(Format f) { return f == isTF32 ? 4 : f < isE4M3 ? 2 : 1; }
inline float number(Format f, const u8* from) {
  u16 two;
  u32 four;
  if (f == isTF32) return memcpy(&four, from, 4), bits_as<float>(four & ~0x1fffu); // the low bits are ignored
  if (f >= isE4M3) return f == isE4M3 ? wide(f8e4{*from}) : wide(f8e5{*from});
  memcpy(&two, from, 2);
  return f == isF16 ? wide(f16{two}) : wide(bf16{two});
}

// A product that a warp has started.
struct Started {
  int group, n;
  bool add, ta, tb;
  Format left, right;
  u64 a, b;
  const u32* held[32];  // A in registers; null: it is in shared memory
  float* d[32];
  Spot line;
  u32 seen[max_clocks], floor;  // what the warp had waited for: a product may read its operands at once
};

// The pending products of one warp.
struct Products {
  u32 block;
  int count, capacity, group;
  bool fenced;
  Started* list;
};
inline Products products_of[all_warps];

inline Products& this_warp() {
  Products& p = products_of[m.warp];
  if (p.block != m.me) {
    p.block = m.me;
    p.count = p.group = 0;
    p.fenced = false;
  }
  return p;
}

// Reads 16 bytes of an operand as the products do: only bytes that bulk copies wrote, or that were published.
DM_ONCE void operand_read(u32 at, u8* to, Spot line) {
  if (at + 16 > shared_base() + shared_bytes) fault("bounds", line, -1, at, "an operand's descriptor reaches byte %u of shared memory", at - shared_base());
  for (u32 k = at >> 1; k < (at + 16) >> 1; k++) {
    u32 who = smem.writers[k] & m.who_mask;
    if (smem.writers[k] >= smem.start && who < m.first_agent && !published(smem.writers[k])) fault("async", line, -1, at, "an operand was written by thread %u without a fence for the asynchronous proxy", who % u32(32 * m.warp_count));
  }
  shared_read(at, 16, line);
  memcpy(to, smem.data + at, 16);
}

// Element (r, k) for 16 bytes of neighbours along k, or along r if the operand is
// contiguous along its rows (t): the address by the descriptor.
DM_ONCE u32 operand_address(u64 descriptor, int r, int k, bool t, int bytes = 2) {
  u32 start = u32(descriptor & 0x3fff) << 4, lead = u32(descriptor >> 16 & 0x3fff) << 4, stride = u32(descriptor >> 32 & 0x3fff) << 4;
  if (!t) return shared_base() + swizzled(start + u32(r / 8) * stride + u32(r % 8) * 128 + u32(k * bytes));
  return shared_base() + swizzled(start + u32(r / 64) * lead + u32(k / 8) * stride + u32(k % 8) * 128 + u32(r % 64) * 2);
}

// Reads the rows of an operand, 32 bytes of k each.
DM_ONCE void read_operand(float* to, u64 descriptor, int first, int rows, bool t, Format f, Spot line) {
  if (descriptor >> 62 != 1 || descriptor >> 49 & 7) fault("async", line, -1, -1, "an operand's descriptor without 128-byte swizzle or with a base offset is not emulated");
  const int bytes = bytes_of(f), depth = 32 / bytes, run = 16 / bytes;
  u8 part[16];
  auto value = [&](int e) { return number(f, part + e * bytes); };
  if (!t) {
    for (int r = 0; r < rows; r++) {
      for (int k = 0; k < depth; k += run) {
        operand_read(operand_address(descriptor, first + r, k, t, bytes), part, line);
        for (int e = 0; e < run; e++) to[r * depth + k + e] = value(e);
      }
    }
    return;
  }
  for (int k = 0; k < 16; k++) {
    for (int r = 0; r < rows; r += 8) {
      operand_read(operand_address(descriptor, first + r, k, t), part, line);
      for (int e = 0; e < 8; e++) to[(r + e) * 16 + k] = value(e);
    }
  }
}

// The 16 rows of A that a warp's lanes hold.
DM_ONCE void read_held(float* to, const Started& s) {
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < 8; i++) {
      const u16 bits = u16(s.held[lane][i / 2] >> i % 2 * 16);
      to[(lane / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2] = s.left == isF16 ? wide(f16{bits}) : wide(bf16{bits});
    }
  }
}

// A warp's 16 rows of a product.
DM_ONCE void multiply_rows(const Started& s) {
  static float a[16 * 32], b[256 * 32];
  const int depth = 32 / bytes_of(s.left);
  if (s.held[0]) read_held(a, s);
  else read_operand(a, s.a, (m.warp - m.first_warp) % 4 * 16, 16, s.ta, s.left, s.line);
  read_operand(b, s.b, 0, s.n, s.tb, s.right, s.line);
  for (int lane = 0; lane < 32; lane++) {
    for (int j = 0; j < s.n / 2; j++) {
      const float* x = a + (lane / 4 + (j >> 1 & 1) * 8) * depth;
      const float* y = b + (j / 4 * 8 + lane % 4 * 2 + (j & 1)) * depth;
      float sum = s.add ? s.d[lane][j] : 0;
      for (int k = 0; k < depth; k++) sum += x[k] * y[k];
      s.d[lane][j] = sum;
    }
  }
}

// A product as its lanes start it.
struct Product {
  int n;
  bool add, ta, tb;
  Format left, right;
  u64 a, b;
  const u32* held;
};

DM_ONCE void start_product(float* d, const Product& of, Spot line) {
  struct Lane { float* d; const Product* of; } mine{d, &of};
  collective(WarpGroup, line, &mine, [&](Warp& w) {
    Products& p = this_warp();
    if (!p.fenced) fault("async", line, -1, -1, "a product without products_begin before it");
    if (p.count == p.capacity) {
      p.capacity = p.capacity ? 2 * p.capacity : 16;
      p.list = static_cast<Started*>(realloc(p.list, sizeof(Started) * size_t(p.capacity)));
      if (!p.list) fault("memory", line, -1, -1, "no memory for products");
    }
    Started& s = p.list[p.count++];
    s.group = p.group;
    s.n = of.n;
    s.add = of.add;
    s.ta = of.ta;
    s.tb = of.tb;
    s.left = of.left;
    s.right = of.right;
    s.a = of.a;
    s.b = of.b;
    s.line = line;
    s.floor = w.floor;
    memcpy(s.seen, w.seen, size_t(m.agents) * sizeof(u32));
    for (int lane = 0; lane < 32; lane++) {
      Lane* l = static_cast<Lane*>(w.args[lane]);
      if (l->of->a != of.a || l->of->b != of.b) fault("divergence", line, -1, -1, "lanes of a warp give a product different operands");
      s.d[lane] = l->d;
      s.held[lane] = l->of->held;
    }
  });
}

DM_ONCE void end_products(int under_way, Spot line) {
  collective(WarpGroup, line, nullptr, [&](Warp& w) {
    Products& p = this_warp();
    int n = 0;
    Started now;
    now.floor = w.floor;
    memcpy(now.seen, w.seen, size_t(m.agents) * sizeof(u32));
    const auto seen = [&w](const Started& at) {
      w.floor = at.floor;
      memcpy(w.seen, at.seen, size_t(m.agents) * sizeof(u32));
    };
    while (n < p.count && p.list[n].group < p.group - under_way) {
      seen(p.list[n]);
      multiply_rows(p.list[n++]);
    }
    seen(now);
    if (n) memmove(p.list, p.list + n, sizeof(Started) * size_t(p.count - n));
    p.count -= n;
  });
}

template <class T> struct ProductElem;
template <> struct ProductElem<float> { static constexpr Format format = isTF32; };
template <> struct ProductElem<f16> { static constexpr Format format = isF16; };
template <> struct ProductElem<bf16> { static constexpr Format format = isBF16; };
template <> struct ProductElem<f8e4> { static constexpr Format format = isE4M3; };
template <> struct ProductElem<f8e5> { static constexpr Format format = isE5M2; };

}  // namespace emu

template <int N> DM_FN void registers_drop() { static_assert(N % 8 == 0 && N >= 24 && N <= 256, "24 to 256 registers, a multiple of 8"); }
template <int N> DM_FN void registers_take() { static_assert(N % 8 == 0 && N >= 24 && N <= 256, "24 to 256 registers, a multiple of 8"); }

template <class T> DM_FN u64 operand_at(Shared<T> s, i64 i, u32 lead, u32 stride DM_LINE) {
  u32 address = s.check(At(i, at), 1) % emu::shared_bytes;
  if (address % 16 || lead % 16 || stride % 16) emu::fault("misaligned", at, -1, i, "an operand at byte %u of shared memory", address);
  return u64((address & 0x3ffff) >> 4) | u64((lead & 0x3ffff) >> 4) << 16 | u64((stride & 0x3ffff) >> 4) << 32 | u64(1) << 62;
}

DM_FN u64 operand_behind(u64 descriptor, u32 bytes DM_LINE) {
  if (bytes % 16) emu::fault("misaligned", at, -1, -1, "an operand %u bytes behind another one", bytes);
  return descriptor + (bytes >> 4);
}

DM_FN void products_begin(DM_LINE_ONLY) {
  emu::collective(emu::WarpGroup, at, nullptr, [](emu::Warp&) { emu::this_warp().fenced = true; });
}
DM_FN void products_commit(DM_LINE_ONLY) {
  emu::collective(emu::WarpGroup, at, nullptr, [](emu::Warp&) {
    emu::Products& p = emu::this_warp();
    p.group++;
    p.fenced = false;
  });
}
template <int N> DM_FN void products_wait(DM_LINE_ONLY) { emu::end_products(N, at); }
template <int R> DM_FN void products_settle(float (&)[R]) {}

template <class T, int N, bool TA, bool TB, bool Add = true> DM_FN void product(float (&d)[N / 2], u64 a, u64 b DM_LINE) {
  static_assert(sizeof(T) == 2 || (!TA && !TB), "TF32 is contiguous along k");
  emu::start_product(d, {N, Add, TA, TB, emu::ProductElem<T>::format, emu::ProductElem<T>::format, a, b, nullptr}, at);
}
template <class T, int N, bool TB, bool Add = true> DM_FN void product_held(float (&d)[N / 2], const u32 (&a)[4], u64 b DM_LINE) {
  emu::start_product(d, {N, Add, false, TB, emu::ProductElem<T>::format, emu::ProductElem<T>::format, 0, b, a}, at);
}
template <class T, class U, int N, bool Add = true> DM_FN void product_of_bytes(float (&d)[N / 2], u64 a, u64 b DM_LINE) {
  emu::start_product(d, {N, Add, false, false, emu::ProductElem<T>::format, emu::ProductElem<U>::format, a, b, nullptr}, at);
}

}  // namespace dm
