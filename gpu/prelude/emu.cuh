// The emulation of the prelude on a host: the machine. A launch runs its blocks
// one after the other, those of a cluster together; their threads are fibers of one
// system thread, each running until it waits for others. emu_memory.cuh has the
// checked accesses, emu_race.cuh the detection of races.
//
// A fault ends the process: a line of JSON on standard output has its kind,
// place and thread (see Fault).
#pragma once

#include <csignal>
#include <cstdarg>
#include <cstdint>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // libstdc++'s Bessel functions and their like: a quarter of the time in which a small program compiles
#include <cmath>
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
#define DM_HOT inline __attribute__((always_inline))
// What depends on no program is compiled once, with the emulation's main part, and optimised; programs have its text for a
// compiler that inlines it. DM_ONCE_OF is the same for a template with these arguments.
#ifdef DM_EMU_MAIN
#define DM_ONCE
#define DM_COLD_ONCE DM_COLD
#define DM_ONCE_OF(...) template __VA_ARGS__;
#else
#define DM_ONCE extern inline __attribute__((gnu_inline))
#define DM_COLD_ONCE extern inline __attribute__((gnu_inline, cold))  // GCC emits what is not to be inlined
#define DM_ONCE_OF(...) extern template __VA_ARGS__;
#endif

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

constexpr int max_cluster = 16;   // blocks that run together
constexpr int max_threads = 1024;  // of a block
inline void (*at_block_end)() = nullptr;  // what a part of the prelude checks then
constexpr int max_warps = 32;
constexpr int all_threads = max_cluster * max_threads;
constexpr int all_warps = max_cluster * max_warps;
constexpr int max_clocks = all_warps + max_cluster;
constexpr int max_params = 512;  // of 8 bytes each, what a launch takes
constexpr u32 shared_limit = 227 << 10;  // bytes of a block, sm_90

// One tensor map, as the artifact has it.
struct TensorMap {
  int rank, swizzle, elem_bytes, rounds;
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
  u32 floor;       // accesses of all warps of its block up to this time happened before
  u32 seen[max_clocks];
  u32 shown[max_clocks];  // writes of other blocks' warps to global memory that it sees
  u32 turn;        // phases of the cluster's barrier that it has arrived for
  bool between;    // it has arrived, and not waited yet
  void* args[32];
};

// The state of a named barrier; 0 is that of all threads.
struct Barrier {
  i32 arrived;
  Spot line;
  u32 warps;
  u32 lanes[max_warps];
};

// The state of one of the blocks that run together.
struct Block {
  u32 id;
  i32 done;        // threads that have returned
  u32 ready_warps;
  bool last, acquired;  // result of last_block; the block sees what others wrote
  Barrier barriers[16];
  // The last access to the block's shared memory by each warp of another block.
  u32 touched[all_warps];
  Spot touched_at[all_warps];
};

enum Status : u8 { Ready, InWarp, InBarrier, InCluster, Polling, Done };

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
  int granule;              // log2 of the bytes
  // The launch.
  int step;
  const char* kernel;
  Param params[max_params];
  int param_count;
  void (*body)(Param*);
  i32 grid[3], at[3];
  i32 thread_count, warp_count;  // of a block
  i32 cluster;                   // blocks that run together
  u32 dynamic_shared;
  // Threads and warps of a cluster are numbered through, those of each block from a
  // whole warp on. Agents, which have clocks, are the warps and, for each block, its bulk
  // copy engine. An access is stamped with its time and, in the lower bits, who did it.
  i32 agents;
  u32 who_bits, who_mask, first_agent;
  // The blocks that run.
  i32 thread, lane, warp;   // that runs
  i32 rank, first_warp;     // its block's, in the cluster
  u32 stamp;                // of the thread's accesses to shared memory now
  Spot line;                 // of the last access
  i64 accesses[all_threads];  // of global memory, by thread
  i64 longest;                // of a thread of the launch, the most
  u32 latest;                 // time of the blocks before
  u32 began;                  // time at which these began
  i32 left;                   // threads that have not returned
  Warp warps[all_warps];
  Block blocks[max_cluster];
  Thread threads[all_threads];
  void* main_stack;
};
inline Machine m;

inline Block& own() { return m.blocks[m.rank]; }
inline i32 local_thread() { return m.thread - 32 * m.first_warp; }
inline i32 rank_of(i32 warp) { return m.cluster > 1 ? warp / m.warp_count : 0; }
inline i32 engine(i32 rank) { return m.cluster * m.warp_count + rank; }  // the block's bulk copy engine, as an agent

// Ends the process with a report. kind is one of the words that the reader of the
// report handles; param is an index or -1; what is the message.
[[noreturn]] DM_COLD_ONCE void fault(const char* kind, Spot line, int param, i64 index, const char* format, ...) {
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
    kind, m.step, param, line.file ? line.file : "", line.line, m.at[0], m.at[1], m.at[2], local_thread(), index, quoted);
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

inline u32 stamp_of(u32 clock, u32 who) { return clock << m.who_bits | who; }

// Switches to a block of the cluster.
inline void enter_block(i32 rank) {
  m.at[0] += rank - m.rank;
  m.rank = rank;
  m.first_warp = rank * m.warp_count;
  m.me = m.blocks[rank].id;
}

// Switches to thread t.
DM_ONCE void enter(i32 t) {
  m.thread = t;
  m.lane = t & 31;
  m.warp = t >> 5;
  if (i32 rank = rank_of(m.warp); rank != m.rank) enter_block(rank);
  m.stamp = stamp_of(m.warps[m.warp].clock, u32(t));
}

DM_ONCE void stuck();

// The thread that runs next: a lane of the same warp if one can, else of the next warp
// of the block, else of the next block.
inline i32 next_thread() {
  i32 w = m.warp;
  if (!m.warps[w].runnable) {
    u32 ready = own().ready_warps;
    u32 later = ready & ~((2u << (w - m.first_warp)) - 1);
    u32 from = later ? later : ready;
    i32 rank = m.rank;
    for (i32 k = 1; !from && k < m.cluster; k++) {
      rank = (m.rank + k) % m.cluster;
      from = m.blocks[rank].ready_warps;
    }
    if (!from) return -1;
    w = rank * m.warp_count + __builtin_ctz(from);
  }
  return w * 32 + __builtin_ctz(m.warps[w].runnable);
}

inline void stop_running(Status why, Spot line) {
  Warp& w = m.warps[m.warp];
  w.runnable &= ~(1u << m.lane);
  if (!w.runnable) own().ready_warps &= ~(1u << (m.warp - m.first_warp));
  m.threads[m.thread].status = why;
  m.threads[m.thread].line = line;
}

inline void run_again(i32 warp, u32 lanes) {
  m.warps[warp].runnable |= lanes;
  i32 rank = rank_of(warp);
  m.blocks[rank].ready_warps |= 1u << (warp - rank * m.warp_count);
}

// Switches from the running thread, which has stopped, to another.
DM_ONCE void leave() {
  Thread& self = m.threads[m.thread];
  i32 me = m.thread, next = next_thread();
  if (next == me) {
    enter(me);
    return;
  }
  if (next < 0) {
    if (m.left > 0) stuck();
    dm_emu_switch(&self.stack, m.main_stack);
    return;
  }
  enter(next);
  dm_emu_switch(&self.stack, m.threads[next].stack);
}

// The block of the running thread, which was its last one, has ended: warps of other blocks
// may have accessed its shared memory only before, in the order of what waits for what.
DM_ONCE void end_block() {
  for (i32 k = 0; k < m.cluster * m.warp_count; k++) {
    if (!own().touched[k]) continue;
    bool before = false;
    for (i32 w = 0; w < m.warp_count; w++) before = before || m.warps[m.first_warp + w].seen[k] >= own().touched[k];
    if (!before) fault("race", own().touched_at[k], -1, -1, "shared memory of another block of the cluster is accessed here, and that block may have ended: it waits for nothing behind the access");
  }
}

DM_ONCE void fiber_main() {
  while (true) {
    m.body(m.params);
    Warp& w = m.warps[m.warp];
    if (w.arrived) fault("divergence", w.line, -1, -1, "thread %d has returned while other lanes of its warp wait for it", local_thread());
    if (Barrier& b = own().barriers[0]; b.arrived) fault("divergence", b.line, -1, -1, "thread %d has returned while %d others wait for it at the barrier", local_thread(), b.arrived);
    w.exited |= 1u << m.lane;
    m.left--;
    if (++own().done == m.thread_count && m.cluster > 1) end_block();
    stop_running(Done, {});
    leave();
  }
}

// Nothing can run, and not all are done.
DM_ONCE void stuck() {
  int waiting[6] = {}, who[6];
  Spot line[6] = {};
  for (int w = 0; w < m.cluster * m.warp_count; w++) {
    for (u32 left = m.warps[w].full; left; left &= left - 1) {
      int t = w * 32 + __builtin_ctz(left);
      Thread& th = m.threads[t];
      if (!waiting[th.status]++) line[th.status] = th.line, who[th.status] = t;
    }
  }
  Status s = waiting[InBarrier] ? InBarrier : waiting[InWarp] ? InWarp : waiting[InCluster] ? InCluster : Polling;
  enter(who[s]);
  if (s == InBarrier && waiting[InWarp]) {
    fault("divergence", line[s], -1, -1, "%d threads wait at this barrier, %d at an operation of their warp on line %d that not all its lanes reach", waiting[s], waiting[InWarp], line[InWarp].line);
  }
  if (s == InBarrier) fault("divergence", line[s], -1, -1, "%d threads wait at this barrier, which not enough threads reach", waiting[s]);
  if (s == InWarp) fault("divergence", line[s], -1, -1, "%d threads wait at this operation of their warp, which not all its lanes reach", waiting[s]);
  if (s == InCluster) fault("divergence", line[s], -1, -1, "%d threads wait at this barrier of the cluster, which not all of its threads reach", waiting[s]);
  fault("deadlock", line[s], -1, -1, "%d threads wait for something that no thread will do", waiting[s]);
}

// ---- waiting

enum Kind { SyncWarp = 1, Shuffle, Vote, Match, Reduce, LoadMatrix, Multiply, WarpGroup, ClusterArrive, ClusterWait };
DM_ONCE const char* kind_name(int k) {
  static const char* const names[] = {"", "sync_warp", "shuffle", "ballot", "match", "warp reduction", "ldmatrix", "mma", "warp-group operation", "arrival at the cluster's barrier", "wait at the cluster's barrier"};
  return names[k];
}

// All lanes of the warp call this with an argument each: true for the last one, the others wait until it calls continue_warp.
DM_ONCE bool arrives_last(Kind kind, Spot line, void* arg) {
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
    return true;
  }
  stop_running(InWarp, line);
  leave();
  return false;
}
DM_ONCE void continue_warp() {
  Warp& w = m.warps[m.warp];
  run_again(m.warp, w.full);
  m.stamp = stamp_of(w.clock, u32(m.thread));
}

// All lanes of the warp call this with an argument each; the last one runs
// finish(warp), then all continue.
template <class F> inline void collective(Kind kind, Spot line, void* arg, F finish) {
  if (!arrives_last(kind, line, arg)) return;
  finish(m.warps[m.warp]);
  continue_warp();
}

// `count` threads arrive at barrier id.
DM_ONCE void barrier(int id, i32 count, Spot line) {
  Barrier& b = own().barriers[id];
  const i32 mine = m.warp - m.first_warp;
  m.line = line;
  if (id == 0) {
    if (own().done) fault("divergence", line, -1, -1, "%d threads have returned and cannot reach this barrier", own().done);
    if (b.arrived && b.line != line) fault("divergence", line, -1, -1, "thread %d is at this barrier while %d others are at the one on line %d", local_thread(), b.arrived, b.line.line);
  }
  if (!b.arrived) b.line = line;
  b.arrived++;
  b.warps |= 1u << mine;
  b.lanes[mine] |= 1u << m.lane;
  if (b.arrived < count) {
    stop_running(InBarrier, line);
    leave();
    return;
  }
  // All accesses before are ordered before all accesses after.
  u32 known[max_clocks];
  memset(known, 0, size_t(m.agents) * sizeof(u32));
  u32 latest = 0;
  for (u32 left = b.warps; left; left &= left - 1) {
    int k = m.first_warp + __builtin_ctz(left);
    Warp& x = m.warps[k];
    for (int j = 0; j < m.agents; j++) known[j] = x.seen[j] > known[j] ? x.seen[j] : known[j];
    known[k] = x.clock;
    latest = x.clock > latest ? x.clock : latest;
  }
  bool all = id == 0;
  for (u32 left = b.warps; left; left &= left - 1) {
    int k = __builtin_ctz(left);
    Warp& x = m.warps[m.first_warp + k];
    memcpy(x.seen, known, size_t(m.agents) * sizeof(u32));
    x.clock = latest + 1;
    if (all) x.floor = latest;
    run_again(m.first_warp + k, b.lanes[k]);
    b.lanes[k] = 0;
  }
  if (latest + 2 >= 1u << (32 - m.who_bits)) fault("memory", line, -1, -1, "more than %u barriers in a block", latest);
  b.arrived = 0;
  b.warps = 0;
  enter(m.thread);
}

// The thread waits until another thread calls wake; then it checks its condition.
DM_ONCE void pause(Spot line, Status why = Polling) {
  m.line = line;
  stop_running(why, line);
  leave();
}
DM_ONCE void wake(Status from = Polling) {
  for (int t = 0; t < m.cluster * m.warp_count * 32; t++) {
    if (m.threads[t].status == from) {
      m.threads[t].status = Ready;
      run_again(t >> 5, 1u << (t & 31));
    }
  }
}

}  // namespace dm::emu

#include "emu_race.cuh"
