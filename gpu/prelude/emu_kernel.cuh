// The emulation: the table of a program's kernels, which is generated with its
// source:
//
//   static const dm::emu::Kernel kernels[] = {dm::emu::kernel_of<&k0>("k0", 256, 0, 1, "in:f32 out:f32"), …};
//   int main(int n, char** a) { return dm::emu::run(n, a, kernels, 1); }
//
// run is in emu_main.cuh, which is compiled once for all programs.
#pragma once

#include "dm.cuh"
#include <utility>

namespace dm::emu {

struct Kernel {
  const char* name;
  int threads, shared, cluster, params;
  const char* wanted;  // mode and element type of each parameter in the plan
  void (*body)(Param*);
  const char* (*describe)(int k, const char** mode);
};

namespace detail {

template <auto F> struct Call;
template <class... P, void (*F)(P...)> struct Call<F> {
  template <int... K> static void run(Param* p, std::integer_sequence<int, K...>) { F(typename std::remove_cv<P>::type(&p[K])...); }
  static void body(Param* p) { run(p, std::make_integer_sequence<int, int(sizeof...(P))>()); }
  static const char* describe(int k, const char** mode) {
    static const char* const modes[] = {std::remove_cv<P>::type::mode..., ""};
    static const char* const elems[] = {name_of<typename std::remove_cv<P>::type::elem>()..., ""};
    *mode = modes[k];
    return elems[k];
  }
  template <class T> static const char* name_of() {
    if constexpr (std::is_void<T>::value) return "";
    else return elem_name<T>();
  }
  static constexpr int count = sizeof...(P);
};

}  // namespace detail

template <auto F> Kernel kernel_of(const char* name, int threads, int shared, int cluster, const char* wanted) {
  typedef detail::Call<F> call;
  return Kernel{name, threads, shared, cluster, call::count, wanted, call::body, call::describe};
}

// Arguments: the plan, a text of numbers (read_plan), the data that inputs and
// constants start with, and the file for the outputs. It prints lines with its progress
// to standard output, and then one JSON object: a fault, or the bytes that each step moved.
int run(int argc, char** argv, const Kernel* kernels, int count);

}  // namespace dm::emu
