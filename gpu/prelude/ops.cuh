// Ops of the dialect that are not a single intrinsic.
#pragma once

namespace dm {

template <class T> DM_FN T infinity();
template <> DM_FN float infinity<float>() { return bits_as<float>(0x7f800000u); }
template <> DM_FN double infinity<double>() { return bits_as<double>(0x7ff0000000000000ull); }
template <class T> DM_FN T nan();
template <> DM_FN float nan<float>() { return bits_as<float>(0x7fc00000u); }
template <> DM_FN double nan<double>() { return bits_as<double>(0x7ff8000000000000ull); }

template <class T> DM_FN T silu(T x) { return x * logistic(x); }
template <class T> DM_FN T gelu(T x) { return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440))); }
template <class T> DM_FN T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}

// Element i of dm.iota: start + step · i, each rounded.
template <class T, class I> DM_FN auto spaced(double start, double step, I i) {
  if constexpr (!detail::Kind<T>::is_float) {
    return T(i64(u64(i64(start)) + u64(i64(step)) * u64(i64(i))));
  } else if constexpr (sizeof(T) == 8) {
    return (detail::Exact(start) + detail::Exact(step) * double(i64(i))).v;
  } else {
    return wide(narrow<T>(detail::add_rounded(float(start), detail::mul_rounded(float(step), float(i64(i))))));
  }
}

// Element i of dm.rng: at least low, below high.
template <class T, class I> DM_FN auto uniform_between(double low, double high, u64 seed, I i) {
  if constexpr (!detail::Kind<T>::is_float) {
    return T(floor(low + (high - low) * uniform(seed, 2, u64(i))));
  } else if constexpr (sizeof(T) == 8) {
    const double x = low + (high - low) * uniform(seed, 2, u64(i));
    return x >= high ? low : x;
  } else {
    const float x = wide(narrow<T>(detail::add_rounded(float(low), detail::mul_rounded(float(high - low), stream(seed, 2).uniform32(i)))));
    return x >= float(high) ? wide(narrow<T>(float(low))) : x;
  }
}

}  // namespace dm
