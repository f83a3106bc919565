// A fake of the driver's library, libcuda.so.1: one GPU whose memory is the host's.
// The machine code of a program is a shared library built by emulator.Library, whose
// kernels run when they are launched. It rejects what a driver rejects, and fails on
// demand, by environment variables:
//
//   STANDIN_INIT=N      cuInit returns status N
//   STANDIN_FAULT=LIST  kernels of these names break the context; NAME/N are those of N blocks
//   STANDIN_HANG=LIST   they never end; most later calls do not return
//   STANDIN_WRONG=LIST  they write nothing
//   STANDIN_TIMING=N    cuEventElapsedTime returns status N
//   STANDIN_NAME=TEXT   the GPU's name
//   STANDIN_MEMORY=N    its memory in bytes
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { success, bad = 1, no_memory = 2, not_started = 3, bad_image = 200, bad_handle = 400, not_found = 500, not_ready = 600, illegal = 700 };
enum { KERNEL, COPY_IN, COPY_OUT, COPY_ON, FILL, RECORD };

typedef uint64_t u64;
typedef struct Op {
  int kind;
  void *function, *args[65];
  u64 to, from, n;
  int grid[3];
  unsigned char value;
  double *event;
  unsigned char maps[64][128];
} Op;
typedef struct { Op *ops; int n, capacity; } Graph;
typedef struct { void *library; int (*launch)(const char *, const int *, unsigned char *, u64, void **); } Module;
typedef struct { Module *module; char name[200]; } Function;

static int started = not_started, broken, hung, capturing;
static void *current;
static Graph *graph;
static double now;
static struct { u64 at, n; } blocks[64];

static int wish(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }

// Whether the comma-separated list in the variable contains the kernel.
static int named(const char *variable, const char *name, int blocks) {
  char list[1000], with[300];
  snprintf(list, sizeof list, "%s", getenv(variable) ? getenv(variable) : "");
  snprintf(with, sizeof with, "%s/%d", name, blocks);
  for (char *at = strtok(list, ","); at; at = strtok(NULL, ","))
    if (!strcmp(at, name) || !strcmp(at, with)) return 1;
  return 0;
}

// The checks at the beginning of every call in a context.
static int ready(void) {
  if (started != success) return not_started;
  if (!current) return 201;
  while (hung) pause();
  return broken;
}
#define READY \
  do { \
    int s = ready(); \
    if (s) return s; \
  } while (0)

static u64 room(u64 at, u64 n) { // the bytes from at on that are allocated, if n are
  for (int i = 0; i < 64; i++)
    if (blocks[i].n && at >= blocks[i].at && at + n <= blocks[i].at + blocks[i].n) return blocks[i].at;
  return 0;
}

static int perform(Op *op) {
  if (broken) return broken;
  now += 0.002;
  switch (op->kind) {
  case KERNEL: {
    Function *f = op->function;
    u64 base = room(*(u64 *)op->args[0], 1), size = 0;
    for (int i = 0; i < 64; i++)
      if (blocks[i].n && blocks[i].at == base) size = blocks[i].n;
    if (named("STANDIN_FAULT", f->name, op->grid[0])) return broken = illegal, success; // later calls return it
    if (named("STANDIN_HANG", f->name, op->grid[0])) return hung = 1, success;
    if (named("STANDIN_WRONG", f->name, op->grid[0])) return success;
    if (!base || f->module->launch(f->name, op->grid, (unsigned char *)base, size, op->args)) return broken = illegal;
    return success;
  }
  case COPY_IN:
  case COPY_OUT:
  case COPY_ON:
    if ((op->kind != COPY_IN && !room(op->from, op->n)) || (op->kind != COPY_OUT && !room(op->to, op->n))) return bad;
    return memmove((void *)op->to, (void *)op->from, op->n), success;
  case FILL:
    if (!room(op->to, op->n)) return bad;
    if (op->value == 0 && op->n >= 1 << 24 && op->to % 4096 == 0) // the pages are freed, and read as zeros again
      return madvise((void *)op->to, op->n, MADV_DONTNEED), success;
    return memset((void *)op->to, op->value, op->n), success;
  case RECORD:
    return *op->event = now, success;
  }
  return bad;
}

static int enqueue(Op *op) {
  if (!capturing) return perform(op);
  if (graph->n == graph->capacity) graph->ops = realloc(graph->ops, sizeof(Op) * (graph->capacity = 2 * graph->capacity + 8));
  Op *kept = &graph->ops[graph->n++];
  *kept = *op;
  return success;
}

int cuInit(unsigned flags) { return started = wish("STANDIN_INIT"); }
int cuDriverGetVersion(int *v) { return *v = 13000, success; }
int cuGetErrorName(int e, const char **p) {
  static char text[40];
  snprintf(text, sizeof text, "CUDA_ERROR_%d", e);
  return *p = e == illegal ? "CUDA_ERROR_ILLEGAL_ADDRESS" : text, success;
}
int cuGetErrorString(int e, const char **p) { return *p = e == illegal ? "an illegal memory access was encountered" : "an error of the stand-in", success; }
int cuDeviceGetCount(int *n) { return *n = 1, started; }
int cuDeviceGet(int *d, int i) { return *d = i, started; }
int cuDeviceGetName(char *name, int n, int d) { return snprintf(name, n, "%s", getenv("STANDIN_NAME") ? getenv("STANDIN_NAME") : "NVIDIA Stand-in"), started; }
int cuDeviceTotalMem_v2(size_t *n, int d) { return *n = getenv("STANDIN_MEMORY") ? strtoull(getenv("STANDIN_MEMORY"), NULL, 10) : (size_t)1 << 33, started; }
int cuDeviceGetAttribute(int *v, int a, int d) { return *v = a == 16 ? 132 : a == 75 ? 9 : a == 76 ? 0 : a == 97 ? 232448 : 0, started; }
int cuDevicePrimaryCtxRetain(void **c, int d) {
  if (started) return not_started;
  if (broken) return broken;
  return *c = &current, success;
}
int cuDevicePrimaryCtxRelease_v2(int d) {
  while (hung) pause();
  return success;
}
int cuCtxSetCurrent(void *c) { return current = c, started; }

int cuModuleLoadData(void **m, const void *image) {
  READY;
  const Elf64_Ehdr *e = image;
  if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_type != ET_DYN) return bad_image;
  size_t n = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
  int fd = memfd_create("image", 0);
  if (fd < 0 || write(fd, image, n) != (ssize_t)n) return no_memory;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  Module *made = calloc(1, sizeof *made);
  if (!(made->library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return fprintf(stderr, "%s\n", dlerror()), bad_image;
  *(void **)&made->launch = dlsym(made->library, "dm_launch");
  return *m = made, made->launch ? success : bad_image;
}
int cuModuleUnload(void *m) {
  READY;
  return success; // functions may be in use
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
  READY;
  Function *made = calloc(1, sizeof *made);
  made->module = m;
  snprintf(made->name, sizeof made->name, "%s", name);
  return *f = made, success;
}
int cuFuncSetAttribute(void *f, int a, int v) {
  READY;
  return success;
}
int cuMemAlloc_v2(u64 *p, size_t n) {
  READY;
  for (int i = 0; i < 64; i++) {
    if (blocks[i].n) continue;
    void *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return no_memory;
    *p = blocks[i].at = (u64)at;
    blocks[i].n = n;
    return success;
  }
  return no_memory;
}
int cuMemFree_v2(u64 p) {
  READY;
  for (int i = 0; i < 64; i++)
    if (blocks[i].n && blocks[i].at == p) return munmap((void *)p, blocks[i].n), blocks[i].n = 0, success;
  return bad;
}
static int copy(int kind, u64 to, u64 from, u64 n) {
  READY;
  Op op = {.kind = kind, .to = to, .from = from, .n = n};
  return enqueue(&op);
}
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t n, void *s) { return copy(COPY_IN, to, (u64)from, n); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t n, void *s) { return copy(COPY_OUT, (u64)to, from, n); }
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t n, void *s) { return copy(COPY_ON, to, from, n); }
int cuMemsetD8Async(u64 to, unsigned char v, size_t n, void *s) {
  READY;
  Op op = {.kind = FILL, .to = to, .n = n, .value = v};
  return enqueue(&op);
}
static int make(void **p) {
  READY;
  return *p = calloc(1, 64), success;
}
int cuStreamCreate(void **s, unsigned flags) { return make(s); }
int cuStreamDestroy_v2(void *s) {
  READY;
  return success;
}
int cuStreamQuery(void *s) {
  if (hung) return not_ready;
  READY;
  return success;
}
int cuStreamWaitEvent(void *s, void *e, unsigned flags) { // what is captured runs in the order of its capture
  READY;
  return success;
}
int cuEventCreate(void **e, unsigned flags) { return make(e); }
int cuEventDestroy_v2(void *e) {
  READY;
  return free(e), success;
}
static int record(void *e) {
  READY;
  Op op = {.kind = RECORD, .event = e};
  return enqueue(&op);
}
int cuEventRecord(void *e, void *s) { return record(e); }
int cuEventRecordWithFlags(void *e, void *s, unsigned flags) { return record(e); }
int cuEventElapsedTime(float *ms, void *from, void *to) {
  READY;
  *ms = (float)(*(double *)to - *(double *)from);
  return wish("STANDIN_TIMING");
}
int cuStreamBeginCapture_v2(void *s, int mode) {
  READY;
  if (capturing) return bad;
  return capturing = 1, graph = calloc(1, sizeof *graph), success;
}
int cuStreamEndCapture(void *s, void **g) {
  READY;
  if (!capturing) return bad;
  return capturing = 0, *g = graph, success;
}
int cuGraphInstantiateWithFlags(void **exec, void *g, unsigned long long flags) {
  READY;
  return *exec = g, success;
}
int cuGraphDestroy(void *g) {
  READY;
  return success; // the executable one is the same
}
int cuGraphExecDestroy(void *g) {
  READY;
  return free(((Graph *)g)->ops), free(g), success;
}
int cuGraphLaunch(void *g, void *s) {
  READY;
  Graph *graph = g;
  for (int i = 0; i < graph->n; i++) {
    Op *op = &graph->ops[i];
    for (int k = 0; op->kind == KERNEL && op->args[k]; k++) op->args[k] = op->maps[k];
    int st = perform(op);
    if (st || hung) return st;
  }
  return success;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const u64 *dims, const u64 *strides, const unsigned *box,
                           const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  READY;
  if ((uintptr_t)map % 128 || (u64)base % 16 || rank < 1 || rank > 5) return bad;
  for (unsigned i = 0; i + 1 < rank; i++)
    if (strides[i] % 16) return bad;
  return *(u64 *)map = (u64)base, success; // the library has the rest from the plan
}
static int launch(Function *f, unsigned gx, unsigned gy, unsigned gz, void **args) {
  READY;
  if (!gx || !gy || !gz || gy > 65535 || gz > 65535) return bad;
  Op op = {.kind = KERNEL, .function = f, .grid = {gx, gy, gz}};
  for (int i = 0; args[i]; i++) { // which the caller may reuse
    memcpy(op.maps[i], args[i], 8);
    op.args[i] = op.maps[i];
  }
  return enqueue(&op);
}
// The attributes of a launch: the blocks of a cluster (4), and that it may start before the kernel before it in the graph
// has ended (6), which another kernel must be.
typedef struct { unsigned id, unused, value[16]; } Attribute;
typedef struct { unsigned gx, gy, gz, bx, by, bz, shared; void *stream; Attribute *attributes; unsigned n; } Config;
int cuLaunchKernelEx(const Config *c, void *f, void **args, void **extra) {
  if (c->bx * c->by * c->bz > 1024) return bad;
  for (unsigned i = 0; i < c->n; i++) {
    Attribute *a = &c->attributes[i];
    if (a->id == 4 && a->value[0] && c->gx % a->value[0] == 0) continue;
    if (a->id == 6 && a->value[0] == 1 && capturing && graph->n && graph->ops[graph->n - 1].kind == KERNEL) continue;
    return bad;
  }
  return launch(f, c->gx, c->gy, c->gz, args);
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *s, void **args,
                   void **extra) {
  if (bx * by * bz > 1024) return bad;
  return launch(f, gx, gy, gz, args);
}
