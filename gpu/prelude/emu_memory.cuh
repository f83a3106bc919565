// The emulation of memory.cuh: every access is checked and counted.
#pragma once

namespace dm {

template <class T> class Ref;

// An index and the line of the access.
struct At {
  i64 i;
  Spot line;
  At(i64 i, Spot line = DM_SPOT) : i(i), line(line) {}
  template <class R, class = typename std::enable_if<std::is_class<R>::value>::type>
  At(R&& r, Spot line = DM_SPOT) : i(i64(static_cast<R&&>(r))), line(line) {}
};

namespace emu {

template <class T> inline const char* elem_name();
template <> inline const char* elem_name<f16>() { return "f16"; }
template <> inline const char* elem_name<bf16>() { return "bf16"; }
template <> inline const char* elem_name<f8e4>() { return "f8E4M3FN"; }
template <> inline const char* elem_name<f8e5>() { return "f8E5M2"; }
template <> inline const char* elem_name<float>() { return "f32"; }
template <> inline const char* elem_name<double>() { return "f64"; }
template <> inline const char* elem_name<i8>() { return "i8"; }
template <> inline const char* elem_name<i4>() { return "i4"; }
template <> inline const char* elem_name<u4>() { return "ui4"; }
template <> inline const char* elem_name<i16>() { return "i16"; }
template <> inline const char* elem_name<i32>() { return "i32"; }
template <> inline const char* elem_name<i64>() { return "i64"; }
template <> inline const char* elem_name<u8>() { return "ui8"; }
template <> inline const char* elem_name<u16>() { return "ui16"; }
template <> inline const char* elem_name<u32>() { return "ui32"; }
template <> inline const char* elem_name<u64>() { return "ui64"; }
template <> inline const char* elem_name<bool>() { return "i1"; }

// Elements i to i+N of the buffer, or a fault.
template <class T, int N> inline i64 checked(const Param& p, At i) {
  if constexpr (detail::is_packed<T>) { // in half bytes, of which the last one may be unused
    if (i.i < 0 || (i.i + N + 1) / 2 > p.bytes) fault("bounds", i.line, p.index, i.i, "%d elements from %lld on of %lld", N, i.i, p.bytes * 2);
    if (N > 1 && i.i % N) bad_alignment(p, i.i, N, i.line);
    return i.i / 2;
  }
  constexpr i64 size = sizeof(T);
  if (u64(i.i) * u64(size) + u64(N * size) > u64(p.bytes) || u64(i.i) > u64(p.bytes)) bad_index(p, i.i, N, size, i.line);
  if (N > 1 && i.i % N) bad_alignment(p, i.i, N, i.line);
  return i.i * size;
}

template <class T> struct Global {
  Param* param;
  explicit Global(Param* p) : param(p) {}
  template <class V, int N> V get(At i) const {
    i64 at = checked<T, N>(*param, i);
    if constexpr (detail::is_packed<T>) {
      global_read<detail::bytes_of<T, N>, 1, N == 1>(*param, at, i.line);
      if constexpr (N == 1) {
        return T{u8(param->data[at] >> (i.i & 1) * 4 & 15)};
      } else {
        Vec<u8, N / 2> bytes;
        memcpy(&bytes, param->data + at, sizeof bytes);
        return detail::unpacked<T, N>(bytes);
      }
    } else {
    global_read<sizeof(T) * N, sizeof(T)>(*param, at, i.line);
    V v;
    memcpy(&v, param->data + at, sizeof v);
    return v;
    }
  }
  template <class V, int N> void put(At i, V v) const {
    i64 at = checked<T, N>(*param, i);
    if constexpr (!detail::is_packed<T>) {
      global_write<sizeof(T) * N, sizeof(T)>(*param, at, i.line);
      memcpy(param->data + at, &v, sizeof v);
    } else if constexpr (N == 1) {
      global_half(*param, at, i.line);
      const int shift = int(i.i & 1) * 4;
      param->data[at] = u8((param->data[at] & ~(15 << shift)) | (v.bits & 15) << shift);
    } else {
      global_write<N / 2, 1>(*param, at, i.line);
      const auto bytes = detail::packed<T, N>(v);
      memcpy(param->data + at, &bytes, sizeof bytes);
    }
  }
};

}  // namespace emu

template <class T> struct In : emu::Global<T> {
  typedef T elem;
  static constexpr const char* mode = "in";
  using emu::Global<T>::Global;
  T operator[](At i) const { return this->template get<T, 1>(i); }
  template <int N> Vec<T, N> load(At i) const { return this->template get<Vec<T, N>, N>(i); }
  template <int N> Vec<T, N> load_once(At i) const { return this->template get<Vec<T, N>, N>(i); }
};

template <class T> struct Out : emu::Global<T> {
  typedef T elem;
  static constexpr const char* mode = "out";
  using emu::Global<T>::Global;
  void store(At i, T v) const { this->template put<T, 1>(i, v); }
  template <int N> void store(At i, Vec<T, N> v) const { this->template put<Vec<T, N>, N>(i, v); }
};

template <class T> struct InOut : emu::Global<T> {
  typedef T elem;
  static constexpr const char* mode = "inout";
  using emu::Global<T>::Global;
  T operator[](At i) const { return this->template get<T, 1>(i); }
  template <int N> Vec<T, N> load(At i) const { return this->template get<Vec<T, N>, N>(i); }
  void store(At i, T v) const { this->template put<T, 1>(i, v); }
  template <int N> void store(At i, Vec<T, N> v) const { this->template put<Vec<T, N>, N>(i, v); }
  T add(At i, T v) const {
    i64 at = emu::checked<T, 1>(*this->param, i);
    static_assert(!detail::is_packed<T>, "no atomic addition of this type");
    emu::global_atomic<sizeof(T)>(*this->param, at, i.line);
    T old;
    memcpy(&old, this->param->data + at, sizeof old);
    T sum = narrow<T>(wide(old) + wide(v));
    memcpy(this->param->data + at, &sum, sizeof sum);
    return old;
  }
};

// A tensor map; the bulk copies that take it are elsewhere.
struct Map {
  typedef void elem;
  static constexpr const char* mode = "map";
  emu::Param* param;
  explicit Map(emu::Param* p) : param(p) {}
};
#define DM_MAP(name) const dm::Map name

template <class T> class Shared {
 public:
  Shared(u32 at, i64 count) : at_(at), count_(count) {}
  Ref<T> operator[](At i) const { return Ref<T>(check(i, 1), i.line); }
  template <int N> Vec<T, N> load(At i) const {
    u32 at = check(i, N);
    emu::shared_read_all<sizeof(T)>(at, N, i.line);
    Vec<T, N> v;
    memcpy(&v, emu::smem.data + at, sizeof v);
    return v;
  }
  template <int N> void store(At i, Vec<T, N> v) const {
    u32 at = check(i, N);
    emu::shared_write_all<sizeof(T)>(at, N, i.line);
    memcpy(emu::smem.data + at, &v, sizeof v);
  }
  T add(At i, T v) const {
    u32 at = check(i, 1);
    emu::shared_atomic(at, int(sizeof(T)), i.line);
    T old;
    memcpy(&old, emu::smem.data + at, sizeof old);
    T sum = narrow<T>(wide(old) + wide(v));
    memcpy(emu::smem.data + at, &sum, sizeof sum);
    return old;
  }
  Shared operator+(At i) const {
    if (i.i < 0 || i.i > count_) bad(i, 0);
    return Shared(at_ + u32(i.i) * u32(sizeof(T)), count_ - i.i);
  }
  template <class U> Shared<U> as(At i = 0) const {
    Shared part = *this + i;
    if (part.at_ % sizeof(U)) emu::fault("misaligned", i.line, -1, i.i, "shared memory seen as elements of %d bytes from byte %u on", int(sizeof(U)), part.at_);
    return Shared<U>(part.at_, part.count_ * i64(sizeof(T)) / i64(sizeof(U)));
  }
  // The address of N elements from i on, or a fault.
  u32 check(At i, int n) const {
    if (i.i < 0 || i.i + n > count_) bad(i, n);
    u32 at = at_ + u32(i.i) * u32(sizeof(T));
    if (n > 1 && at % (sizeof(T) * u32(n))) emu::fault("misaligned", i.line, -1, i.i, "%d elements of shared memory at once from byte %u on", n, at);
    return at;
  }

 private:
  DM_COLD void bad(At i, int n) const {
    i64 byte;
    const char* name = emu::shared_name(at_, &byte);
    emu::fault("bounds", i.line, -1, i.i, "%d elements from %lld on of %lld in %s", n, i.i, count_, name);
  }
  u32 at_;
  i64 count_;
};

// An element of shared memory, for one read or one assignment. It cannot be stored:
// `auto x = s[i]` is an error where x is used.
template <class T> class Ref {
 public:
  Ref(u32 at, Spot line) : at_(at), line_(line) {}
  Ref(const Ref&) = delete;
  operator T() && { return get(); }
  T operator=(T v) && { return put(v); }
  T operator=(Ref&& r) && { return put(r.get()); }
  template <class U> T operator+=(U v) && { return put(T(get() + v)); }
  template <class U> T operator-=(U v) && { return put(T(get() - v)); }
  template <class U> T operator*=(U v) && { return put(T(get() * v)); }
  template <class U> T operator/=(U v) && { return put(T(get() / v)); }
  template <class U> T operator|=(U v) && { return put(T(get() | v)); }
  template <class U> T operator&=(U v) && { return put(T(get() & v)); }
  template <class U> T operator^=(U v) && { return put(T(get() ^ v)); }

 private:
  T get() const {
    emu::shared_read(at_, int(sizeof(T)), line_);
    T v;
    memcpy(&v, emu::smem.data + at_, sizeof v);
    return v;
  }
  T put(T v) const {
    emu::shared_write(at_, int(sizeof(T)), line_);
    memcpy(emu::smem.data + at_, &v, sizeof v);
    return v;
  }
  u32 at_;
  Spot line_;
};
template <class T, class U> DM_FN T narrow(Ref<U>&& r) { return narrow<T>(U(static_cast<Ref<U>&&>(r))); }
template <class T, class U> DM_FN T convert(Ref<U>&& r) { return convert<T>(U(static_cast<Ref<U>&&>(r))); }

namespace emu {

// The static array called name, which all threads declare.
DM_ONCE u32 static_array(const char* name, Spot line, u32 bytes) {
  for (int k = 0; k < smem.array_count; k++) {
    if (smem.arrays[k].line == line && !strcmp(smem.arrays[k].name, name)) return shared_base() + smem.arrays[k].at;
  }
  u32 at = (smem.fixed + 127) & ~127u;
  if (smem.array_count == 32 || at + bytes > smem.dynamic) fault("bounds", line, -1, -1, "%s: more than 32 static arrays or %u bytes of them", name, smem.dynamic);
  smem.arrays[smem.array_count++] = {name, line, at, bytes};
  smem.fixed = at + bytes;
  return shared_base() + at;
}

}  // namespace emu

class Arena {
 public:
  template <class T> Shared<T> take(i32 count DM_LINE) { return take_aligned<T>(count, 16 DM_HERE); }
  template <class T> Shared<T> take_aligned(i32 count, u32 align DM_LINE) {
    used_ = (used_ + align - 1) & ~(align - 1);
    u32 begin = emu::shared_base() + emu::smem.dynamic + used_;
    used_ += u32(sizeof(T)) * u32(count);
    if (used_ > emu::m.dynamic_shared) emu::fault("bounds", at, -1, used_, "the kernel takes %u bytes of dynamic shared memory, the launch gives it %u", used_, emu::m.dynamic_shared);
    return Shared<T>(begin, count);
  }
  void reset(u32 n = 0) { used_ = n; }

 private:
  u32 used_ = 0;
};

#define DM_SHARED(T, name, COUNT) \
  const dm::Shared<T> name(dm::emu::static_array(#name, DM_SPOT, dm::u32(sizeof(T) * (COUNT))), (COUNT))
#define DM_ARENA(name) dm::Arena name

}  // namespace dm
