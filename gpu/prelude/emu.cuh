// The emulation of the prelude on a host: the machine. A launch runs its blocks
// one after the other; the threads of a block are fibers of one system thread, each
// running until it waits for others. emu_memory.cuh has the checked accesses,
// emu_race.cuh the detection of races.
//
// A fault ends the process: a line of JSON on standard output has its kind,
// place and thread (see Fault).
#pragma once

#include <cmath>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <unistd.h>
#include <sys/mman.h>

#define DM_FN inline
#define DM_SPOT ::dm::Spot::here()
#define DM_LINE , ::dm::Spot at = DM_SPOT
#define DM_LINE_ONLY ::dm::Spot at = DM_SPOT
#define DM_HERE , at
#define DM_HERE_ONLY at
#define DM_IDX(i) ::dm::At((i), at)
#define DM_KERNEL(name, threads) static void name
#define DM_KERNEL_OCCUPANCY(name, threads, blocks) static void name
#define DM_KERNEL_CLUSTER(name, threads, blocks, cluster) static void name
#define DM_UNROLL
#define DM_NO_UNROLL
#define DM_UNROLL_BY(n)
#define DM_COLD __attribute__((noinline, cold))

namespace dm {
// The place of a call.
struct Spot {
  const char* file;
  int line;
  static constexpr Spot here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return Spot{file, line}; }
  bool operator==(const Spot& p) const { return line == p.line && (file == p.file || !strcmp(file, p.file)); }
};
}  // namespace dm

namespace dm::emu {

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t i32;
typedef long long i64;

constexpr int max_threads = 1024;
inline void (*at_block_end)() = nullptr; // what a part of the prelude checks then

constexpr int max_warps = 32;
constexpr int async_warp = 32;    // the bulk copy engine, as a warp of its own
constexpr int clocks = 33;        // warps that have one
constexpr int max_params = 64;
constexpr u32 shared_limit = 227 << 10;  // bytes of a block, sm_90

// One tensor map, as the artifact has it.
struct TensorMap {
  int rank, swizzle, elem_bytes;
  i64 dims[5], strides[5], box[5];
};

// One argument of a launch: a buffer in the workspace.
struct Param {
  int index;       // of the parameter
  u16 owner;       // shadow state of the bytes that the buffer has written
  u8* data;
  u16* owners;     // shadow of its first byte
  i64 offset, bytes;
  bool mixed;      // the launch may both read and write its bytes
  TensorMap map;
  // Counted: distinct bytes read that the launch had not written itself, distinct
  // bytes written, and bytes of all accesses.
  i64 read, written, requested;
};

// The state of a warp and of its pending operation.
struct Warp {
  u32 full;        // its lanes, as bits
  u32 runnable, exited, arrived;
  int kind;        // of the operation that its lanes arrive at
  Spot line;
  u32 clock;       // counts the points at which its lanes wait for each other
  u32 floor;       // accesses of all warps up to this time happened before
  u32 seen[clocks];
  void* args[32];
};

// The state of a named barrier; 0 is that of all threads.
struct Barrier {
  i32 arrived;
  Spot line;
  u32 warps;
  u32 lanes[max_warps];
};

enum Status : u8 { Ready, InWarp, InBarrier, Polling, Done };

struct Thread {
  void* stack;  // where it stopped
  Status status;
  Spot line;     // where it waits
};

// The current launch, block and thread, for the checks of accesses.
struct Machine {
  // The workspace and its shadow: for each byte the buffer that wrote it last,
  // for each granule the block that wrote and read it last.
  u8* memory;
  u16* owners;
  u32 *writers, *readers;
  u32 *write_stamps, *read_stamps;  // of the last accesses by threads of that block
  i64 bytes;
  u32 first, many, atomic;  // ids of this launch's first block, of several blocks, of atomics
  u32 me;                   // id of the block
  bool last, acquired;      // result of last_block; the block sees what others wrote
  int granule;              // log2 of the bytes
  // The launch.
  int step;
  const char* kernel;
  Param params[max_params];
  int param_count;
  void (*body)(Param*);
  i32 grid[3], at[3];
  i32 thread_count, warp_count;
  u32 dynamic_shared;
  // The block.
  i32 thread, lane, warp;
  u32 stamp;                // of the thread's accesses to shared memory now
  Spot line;                 // of the last access
  i64 accesses[max_threads];  // of global memory, by the threads of the block
  i64 longest;                // of a thread of the launch, the most
  Warp warps[max_warps];
  Barrier barriers[16];
  u32 ready_warps;
  i32 done;
  Thread threads[max_threads];
  void* main_stack;
};
inline Machine m;

// Ends the process with a report. kind is one of the words that the reader of the
// report handles; param is an index or -1; what is the message.
[[noreturn]] DM_COLD inline void fault(const char* kind, Spot line, int param, i64 index, const char* format, ...) {
  char text[600], out[1400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  char quoted[1000];
  size_t n = 0;
  for (const char* c = text; *c && n < sizeof quoted - 3; c++) {
    if (*c == '"' || *c == '\\') quoted[n++] = '\\';
    quoted[n++] = *c == '\n' ? ' ' : *c;
  }
  quoted[n] = 0;
  int length = snprintf(out, sizeof out,
    "{\"fault\":{\"kind\":\"%s\",\"step\":%d,\"param\":%d,\"file\":\"%s\",\"line\":%d,\"block\":[%d,%d,%d],\"thread\":%d,\"index\":%lld,\"msg\":\"%s\"}}\n",
    kind, m.step, param, line.file ? line.file : "", line.line, m.at[0], m.at[1], m.at[2], m.thread, index, quoted);
  fflush(stdout);
  for (int done = 0; done < length;) {
    ssize_t k = write(1, out + done, size_t(length - done));
    if (k <= 0) break;
    done += int(k);
  }
  _exit(3);
}

// ---- fibers

#if defined(__x86_64__)
extern "C" void dm_emu_switch(void** from, void* to) asm("dm_emu_switch");
#ifdef DM_EMU_MAIN
asm(".text\n.globl dm_emu_switch\n.p2align 4\ndm_emu_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  popq %rcx\n  jmp *%rcx\n");  // not ret, whose target would always be mispredicted
#endif
inline void* fresh_stack(u8* top, void (*entry)()) {
  void** sp = reinterpret_cast<void**>(top);
  *--sp = nullptr;  // the entry finds the stack as after a call
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  return sp;
}
#elif defined(__aarch64__)
extern "C" void dm_emu_switch(void** from, void* to) asm("dm_emu_switch");
#ifdef DM_EMU_MAIN
asm(".text\n.globl dm_emu_switch\n.p2align 4\ndm_emu_switch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n");
#endif
inline void* fresh_stack(u8* top, void (*entry)()) {
  void** sp = reinterpret_cast<void**>(top) - 20;
  memset(sp, 0, 160);
  sp[11] = reinterpret_cast<void*>(entry);  // x30
  return sp;
}
#else
#include <ucontext.h>
inline void dm_emu_switch(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}
inline void* fresh_stack(u8* top, void (*entry)()) {
  ucontext_t* c = new ucontext_t;
  getcontext(c);
  c->uc_stack.ss_size = 240 << 10;
  c->uc_stack.ss_sp = top - c->uc_stack.ss_size;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
  return c;
}
#endif

constexpr size_t stack_bytes = 256 << 10;  // of a fiber, its guard page included

inline u32 stamp_of(u32 clock, u32 who) { return clock << 11 | who; }

// Switches to thread t.
inline void enter(i32 t) {
  m.thread = t;
  m.lane = t & 31;
  m.warp = t >> 5;
  m.stamp = stamp_of(m.warps[m.warp].clock, u32(t));
}

void stuck();

// The thread that runs next: a lane of the same warp if one can, else of the next warp.
inline i32 next_thread() {
  i32 w = m.warp;
  if (!m.warps[w].runnable) {
    u32 later = m.ready_warps & ~((2u << w) - 1);
    u32 from = later ? later : m.ready_warps;
    if (!from) return -1;
    w = __builtin_ctz(from);
  }
  return w * 32 + __builtin_ctz(m.warps[w].runnable);
}

inline void stop_running(Status why, Spot line) {
  Warp& w = m.warps[m.warp];
  w.runnable &= ~(1u << m.lane);
  if (!w.runnable) m.ready_warps &= ~(1u << m.warp);
  m.threads[m.thread].status = why;
  m.threads[m.thread].line = line;
}

inline void run_again(i32 warp, u32 lanes) {
  m.warps[warp].runnable |= lanes;
  m.ready_warps |= 1u << warp;
}

// Switches from the running thread, which has stopped, to another.
inline void leave() {
  Thread& self = m.threads[m.thread];
  i32 me = m.thread, next = next_thread();
  if (next == me) {
    enter(me);
    return;
  }
  if (next < 0) {
    if (m.done < m.thread_count) stuck();
    dm_emu_switch(&self.stack, m.main_stack);
    return;
  }
  enter(next);
  dm_emu_switch(&self.stack, m.threads[next].stack);
}

inline void fiber_main() {
  while (true) {
    m.body(m.params);
    Warp& w = m.warps[m.warp];
    if (w.arrived) fault("divergence", w.line, -1, -1, "thread %d has returned while other lanes of its warp wait for it", m.thread);
    if (m.barriers[0].arrived) fault("divergence", m.barriers[0].line, -1, -1, "thread %d has returned while %d others wait for it at the barrier", m.thread, m.barriers[0].arrived);
    w.exited |= 1u << m.lane;
    m.done++;
    stop_running(Done, {});
    leave();
  }
}

// Nothing can run, and not all are done.
inline void stuck() {
  int waiting[5] = {}, who[5];
  Spot line[5] = {};
  for (int t = 0; t < m.thread_count; t++) {
    Thread& th = m.threads[t];
    if (!waiting[th.status]++) line[th.status] = th.line, who[th.status] = t;
  }
  Status s = waiting[InBarrier] ? InBarrier : waiting[InWarp] ? InWarp : Polling;
  m.thread = who[s];
  if (s == InBarrier && waiting[InWarp]) {
    fault("divergence", line[s], -1, -1, "%d threads wait at this barrier, %d at an operation of their warp on line %d that not all its lanes reach", waiting[s], waiting[InWarp], line[InWarp].line);
  }
  if (s == InBarrier) fault("divergence", line[s], -1, -1, "%d threads wait at this barrier, which not enough threads reach", waiting[s]);
  if (s == InWarp) fault("divergence", line[s], -1, -1, "%d threads wait at this operation of their warp, which not all its lanes reach", waiting[s]);
  fault("deadlock", line[s], -1, -1, "%d threads wait for something that no thread will do", waiting[s]);
}

// ---- waiting

enum Kind { SyncWarp = 1, Shuffle, Vote, Match, Reduce, LoadMatrix, Multiply, WarpGroup };
inline const char* kind_name(int k) {
  static const char* const names[] = {"", "sync_warp", "shuffle", "ballot", "match", "warp reduction", "ldmatrix", "mma", "warp-group operation"};
  return names[k];
}

// All lanes of the warp call this with an argument each; the last one runs
// finish(warp), then all continue.
template <class F> inline void collective(Kind kind, Spot line, void* arg, F finish) {
  Warp& w = m.warps[m.warp];
  u32 bit = 1u << m.lane;
  m.line = line;
  if (w.exited) fault("divergence", line, -1, -1, "lane %d has returned and cannot take part in this %s", __builtin_ctz(w.exited), kind_name(kind));
  if (!w.arrived) {
    w.kind = kind;
    w.line = line;
  } else if (w.kind != kind || w.line != line) {
    fault("divergence", line, -1, -1, "lane %d is at this %s while other lanes of its warp are at a %s on line %d", m.lane, kind_name(kind), kind_name(w.kind), w.line.line);
  }
  w.args[m.lane] = arg;
  w.arrived |= bit;
  if (w.arrived == w.full) {
    w.arrived = 0;
    finish(w);
    run_again(m.warp, w.full);
    m.stamp = stamp_of(w.clock, u32(m.thread));
    return;
  }
  stop_running(InWarp, line);
  leave();
}

// `count` threads arrive at barrier id.
inline void barrier(int id, i32 count, Spot line) {
  Barrier& b = m.barriers[id];
  Warp& w = m.warps[m.warp];
  m.line = line;
  if (id == 0) {
    if (m.done) fault("divergence", line, -1, -1, "%d threads have returned and cannot reach this barrier", m.done);
    if (b.arrived && b.line != line) fault("divergence", line, -1, -1, "thread %d is at this barrier while %d others are at the one on line %d", m.thread, b.arrived, b.line.line);
  }
  if (!b.arrived) b.line = line;
  b.arrived++;
  b.warps |= 1u << m.warp;
  b.lanes[m.warp] |= 1u << m.lane;
  if (b.arrived < count) {
    stop_running(InBarrier, line);
    leave();
    return;
  }
  // All accesses before are ordered before all accesses after.
  u32 known[clocks] = {};
  u32 latest = 0;
  for (u32 left = b.warps; left; left &= left - 1) {
    int k = __builtin_ctz(left);
    Warp& x = m.warps[k];
    for (int j = 0; j < clocks; j++) known[j] = x.seen[j] > known[j] ? x.seen[j] : known[j];
    known[k] = x.clock;
    latest = x.clock > latest ? x.clock : latest;
  }
  bool all = id == 0;
  for (u32 left = b.warps; left; left &= left - 1) {
    int k = __builtin_ctz(left);
    Warp& x = m.warps[k];
    memcpy(x.seen, known, sizeof known);
    x.clock = latest + 1;
    if (all) x.floor = latest;
    run_again(k, b.lanes[k]);
    b.lanes[k] = 0;
  }
  b.arrived = 0;
  b.warps = 0;
  (void)w;
  enter(m.thread);
}

// The thread waits until another thread calls wake; then it checks its condition.
inline void pause(Spot line) {
  m.line = line;
  stop_running(Polling, line);
  leave();
}
inline void wake() {
  for (int t = 0; t < m.thread_count; t++) {
    if (m.threads[t].status == Polling) {
      m.threads[t].status = Ready;
      run_again(t >> 5, 1u << (t & 31));
    }
  }
}

}  // namespace dm::emu

#include "emu_race.cuh"
