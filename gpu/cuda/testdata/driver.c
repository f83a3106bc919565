// A driver that records the arguments of calls with a difficult signature: many
// arguments, small ones, structs. The others do nothing.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char text[4096];

static void report(const char *format, ...) {
  va_list list;
  va_start(list, format);
  size_t n = strlen(text);
  vsnprintf(text + n, sizeof text - n, format, list);
  va_end(list);
}

const char *reported(void) { return text; }

int cuGetErrorName(int e, const char **p) { return *p = e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0; }
int cuGetErrorString(int e, const char **p) { return *p = "it is told", 0; }
int cuDeviceGetName(char *name, int n, int device) { return snprintf(name, n, "card %d", device), 0; }
int cuDeviceTotalMem_v2(size_t *n, int device) { return *n = (size_t)5 << 40, 0; }
int cuModuleGetFunction(void **f, void *module, const char *name) {
  report("function %s of %p\n", name, module);
  return *f = (void *)0x77, 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream) {
  report("fill %llx with %d, %zu bytes, on %p\n", (unsigned long long)to, value, n, stream);
  return 0;
}
int cuEventElapsedTime(float *ms, void *from, void *to) { return *ms = 1.5f, 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **args, void **extra) {
  report("launch %p grid %u %u %u block %u %u %u shared %u on %p args %llx %llx, %d more\n", f, gx, gy, gz, bx, by, bz, shared, stream,
      *(unsigned long long *)args[0], *(unsigned long long *)args[1], extra != NULL);
  return 700;
}
struct attribute {
  int id;
  char pad[4];
  union {
    char size[64];
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
struct config {
  unsigned gx, gy, gz, bx, by, bz, shared;
  void *stream;
  struct attribute *attributes;
  unsigned count;
};
int cuLaunchKernelEx(const struct config *c, void *f, void **args, void **extra) {
  report("launch %p grid %u %u %u block %u %u %u shared %u on %p, %u attributes: %d %u %u %u, args %llx\n", f, c->gx, c->gy, c->gz, c->bx, c->by,
      c->bz, c->shared, c->stream, c->count, c->attributes->id, c->attributes->value.cluster.x, c->attributes->value.cluster.y,
      c->attributes->value.cluster.z, *(unsigned long long *)args[0]);
  return 0;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *dims, const uint64_t *strides, const unsigned *box,
                           const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  report("map at %d of 128, type %d rank %u base %p dims %llu %llu stride %llu box %u %u steps %u %u: %d %d %d %d\n", (int)((uintptr_t)map % 128),
      type, rank, base, (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)strides[0], box[0], box[1], steps[0],
      steps[1], interleave, swizzle, promotion, fill);
  memset(map, 7, 128);
  return 0;
}

#define NOTHING(name) \
  int name(void) { return 0; }
NOTHING(cuInit)
NOTHING(cuDriverGetVersion)
NOTHING(cuDeviceGetCount)
NOTHING(cuDeviceGet)
NOTHING(cuDeviceGetAttribute)
NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuDevicePrimaryCtxRelease) // the older name
NOTHING(cuCtxSetCurrent)
NOTHING(cuModuleLoadData)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuMemAlloc_v2)
NOTHING(cuMemFree_v2)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuStreamCreate)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamQuery)
NOTHING(cuStreamWaitEvent)
NOTHING(cuEventCreate)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventRecordWithFlags)
NOTHING(cuStreamBeginCapture_v2)
NOTHING(cuStreamEndCapture)
NOTHING(cuGraphInstantiateWithFlags)
NOTHING(cuGraphDestroy)
NOTHING(cuGraphLaunch)
NOTHING(cuGraphExecDestroy)
