// scale, compiled by dmir from scale.dmir.
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
#pragma once
#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DMIR_SCALE_WORKSPACE 16896 // bytes

// Fills the constants in the workspace and prepares the kernels, once.
int dmir_scale_init(void *workspace, cudaStream_t stream);

// Enqueues the function on the stream and returns at once.
int dmir_scale(void *workspace, const void *const *inputs, void *const *outputs, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
