// scale, compiled by dmir from scale.dmir. Build it into a program of your own:
//
//   nvcc -std=c++17 -gencode arch=compute_80,code=sm_80 -c scale.cu      (link with -lcudart)
//
//   void *workspace;                                // 16896 bytes of device memory
//   dmir_scale_init(workspace, stream);             // once
//   dmir_scale(workspace, inputs, outputs, stream); // as often as you like; one call at a time per workspace
//
// Both return 0, or the cudaError_t of what failed. All pointers are to device memory, aligned to 16 bytes. Nothing is
// allocated and nothing is waited for, so a call can be captured into a CUDA graph. Row-major unless stated otherwise.
//
//   inputs[0]  x: tensor<1000xf32>, 4000 bytes
//   outputs[0]  out: tensor<1000xf32>, 4000 bytes
//   outputs[1]  s: tensor<f32>, 4 bytes
//
// Names of kernels are global in CUDA: each gets the function's name before its own.
#define scaled dmir_scale_scaled
#define total dmir_scale_total
#define negated dmir_scale_negated
#define joined dmir_scale_joined

#define DM_KERNEL(name) extern "C" void name
DM_KERNEL(scaled)() {}
DM_KERNEL(total)() {}
DM_KERNEL(negated)() {}
DM_KERNEL(joined)() {}

#line 29 "scale.cu"
#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>
#include <cstddef>
#include <cstdint>

namespace {

// c: tensor<f32>
const std::uint64_t constant1[] = {
    0x40400000u,
};

// launch enqueues one kernel; args are the addresses of its parameters. A dependent one waits for the kernel before it by
// itself and may start while that runs.
cudaError_t launch(const void *kernel, dim3 grid, int threads, int shared, int cluster, bool dependent, void **args, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute attribute[2];
  config.attrs = attribute;
  if (cluster > 1) {
    cudaLaunchAttribute &a = attribute[config.numAttrs++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = cluster;
    a.val.clusterDim.y = 1;
    a.val.clusterDim.z = 1;
  }
  if (dependent) {
    cudaLaunchAttribute &a = attribute[config.numAttrs++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  return cudaLaunchKernelExC(&config, kernel, args);
}

} // namespace

extern "C" int dmir_scale_init(void *workspace, cudaStream_t stream) {
  cudaError_t e = cudaSuccess;
  (void)workspace, (void)stream;
  if ((e = cudaMemcpyAsync((char *)workspace + 16384, constant1, 4, cudaMemcpyHostToDevice, stream)) != cudaSuccess) return e;
  return e;
}

extern "C" int dmir_scale(void *workspace, const void *const *inputs, void *const *outputs, cudaStream_t stream) {
  cudaError_t e = cudaSuccess;
  (void)workspace, (void)inputs, (void)outputs, (void)stream;
  { // zero s
    if ((e = cudaMemsetAsync((char *)outputs[1], 0, 4, stream)) != cudaSuccess) return e;
  }
  { // scaled
    void *a0 = (char *)inputs[0];
    void *a1 = (char *)workspace + 16384;
    void *a2 = (char *)workspace + 4096;
    void *args[] = {&a0, &a1, &a2, nullptr};
    if ((e = launch((const void *)scaled, dim3(4, 1, 1), 256, 0, 1, false, args, stream)) != cudaSuccess) return e;
  }
  { // negated
    void *a0 = (char *)inputs[0];
    void *a1 = (char *)workspace + 8192;
    void *args[] = {&a0, &a1, nullptr};
    if ((e = launch((const void *)negated, dim3(4, 1, 1), 256, 0, 1, false, args, stream)) != cudaSuccess) return e;
  }
  { // total
    void *a0 = (char *)workspace + 4096;
    void *a1 = (char *)outputs[1];
    void *args[] = {&a0, &a1, nullptr};
    if ((e = launch((const void *)total, dim3(1, 1, 1), 128, 128, 1, false, args, stream)) != cudaSuccess) return e;
  }
  { // joined
    void *a0 = (char *)workspace + 4096;
    void *a1 = (char *)workspace + 8192;
    void *a2 = (char *)outputs[1];
    void *a3 = (char *)outputs[0];
    void *args[] = {&a0, &a1, &a2, &a3, nullptr};
    if ((e = launch((const void *)joined, dim3(4, 1, 1), 256, 0, 1, false, args, stream)) != cudaSuccess) return e;
  }
  return e;
}
#endif // __CUDACC_RTC__
