// The part of CUDA's runtime that exported files call, for a host compiler: it
// prints its calls. Device memory is host memory.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

typedef int cudaError_t;
typedef struct stream *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributeNonPortableClusterSizeAllowed = 14 };
enum { cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributeProgrammaticStreamSerialization = 6 };

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct cudaLaunchAttribute {
  int id;
  union {
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

const char *place(const void *p); // by the test
const char *kernel_name(const void *kernel);

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t) {
  std::printf("copy %zu bytes to %s", n, place(to));
  std::printf(" from %s\n", kind == cudaMemcpyHostToDevice ? "the host" : place(from));
  std::memcpy(to, from, n);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  std::printf("wait\n");
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t) {
  std::printf("fill %zu bytes at %s with %d\n", n, place(to), value);
  return cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void *kernel, int attribute, int value) {
  std::printf("attribute %d of %s is %d\n", attribute, kernel_name(kernel), value);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *kernel, void **args) {
  std::printf("launch %s grid %u,%u,%u threads %u shared %zu clusters of %u:", kernel_name(kernel), c->gridDim.x, c->gridDim.y,
              c->gridDim.z, c->blockDim.x, c->dynamicSmemBytes, c->numAttrs && c->attrs[0].id == cudaLaunchAttributeClusterDimension ? c->attrs[0].val.clusterDim.x : 0);
  for (unsigned i = 0; i < c->numAttrs; i++) {
    const cudaLaunchAttribute &a = c->attrs[i];
    if (a.id == cudaLaunchAttributeProgrammaticStreamSerialization && a.val.programmaticStreamSerializationAllowed) std::printf(" dependent on the last:");
  }
  for (; *args; args++) std::printf(" %s", place(*(void **)*args));
  std::printf("\n");
  return cudaSuccess;
}
