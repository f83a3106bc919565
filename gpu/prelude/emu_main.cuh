// The emulation: it runs a plan. It is compiled once, with DM_EMU_MAIN defined,
// and linked to each program.
#pragma once

#include "emu_kernel.cuh"
#include "emu_hopper.cuh"
#include <cerrno>
#include <ctime>
#include <string>
#include <vector>

namespace dm::emu {

enum BufferKind { InputBuffer, OutputBuffer, ConstantBuffer, TempBuffer };

struct Buffer {
  i64 offset, bytes;
  int kind, result;  // result: whether it is an output of the program
};

struct StepArg {
  int buffer;
  TensorMap map;
};

enum { FillStep = -1, CopyStep = -2, LoopStep = -3, BranchStep = -4, RepeatStep = -5, ExchangeStep = -6, SendStep = -7, ReceiveStep = -8 };  // a step's kernel below 0

struct Step {
  double work;  // nanoseconds of one run, estimated
  int kernel;
  i32 grid[3];  // of a decision: the steps of its first and its second part; of a repetition: and how often
  std::vector<StepArg> args;
  std::vector<int> elem_bytes;
};

struct Plan {
  i64 workspace;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<int> outputs;
};

inline i64 number(FILE* f) {
  long long v;
  if (fscanf(f, "%lld", &v) != 1) fault("plan", {}, -1, -1, "the plan ends early");
  return v;
}

// workspace; number of buffers, of each offset, bytes, kind; number of steps, of
// each work, kernel, grid, number of arguments, of each buffer, bytes of an element and
// rank of the tensor map, if not 0 its swizzle, whether it rounds to TF32, dims, strides and box; number of
// outputs, of each the buffer.
inline Plan read_plan(const char* path) {
  FILE* f = fopen(path, "r");
  if (!f) fault("plan", {}, -1, -1, "cannot open %s", path);
  Plan p;
  p.workspace = number(f);
  for (i64 n = number(f); n > 0; n--) {
    Buffer b{};
    b.offset = number(f);
    b.bytes = number(f);
    b.kind = int(number(f));
    p.buffers.push_back(b);
  }
  for (i64 n = number(f); n > 0; n--) {
    Step s{};
    s.work = double(number(f));
    s.kernel = int(number(f));
    for (i32& g : s.grid) g = i32(number(f));
    for (i64 k = number(f); k > 0; k--) {
      StepArg a{};
      a.buffer = int(number(f));
      s.elem_bytes.push_back(int(number(f)));
      a.map.elem_bytes = s.elem_bytes.back();
      a.map.rank = int(number(f));
      if (a.map.rank) {
        a.map.swizzle = int(number(f));
        a.map.rounds = int(number(f));
        for (int d = 0; d < a.map.rank; d++) a.map.dims[d] = number(f);
        for (int d = 0; d < a.map.rank; d++) a.map.strides[d] = number(f);
        for (int d = 0; d < a.map.rank; d++) a.map.box[d] = number(f);
      }
      s.args.push_back(a);
    }
    p.steps.push_back(s);
  }
  for (i64 n = number(f); n > 0; n--) {
    int b = int(number(f));
    p.outputs.push_back(b);
    p.buffers[size_t(b)].result = 1;
  }
  fclose(f);
  return p;
}

template <class T> inline T* pages(i64 count) {
  void* p = mmap(nullptr, size_t(count) * sizeof(T) + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fault("memory", {}, -1, -1, "no memory: %lld bytes", count * i64(sizeof(T)));
  return static_cast<T*>(p);
}

inline u8* stacks;

inline void make_threads(int n) {
  static int made = 0;
  if (!stacks) stacks = pages<u8>(i64(stack_bytes) * all_threads);
  for (; made < n; made++) {
    u8* base = stacks + size_t(made) * stack_bytes;
    mprotect(base, 4096, PROT_NONE);  // an overflowing stack faults
    m.threads[made].stack = fresh_stack(base + stack_bytes, fiber_main);
  }
}

// How far the run is, for lines "@STEP WORK" on standard output.
struct Progress {
  bool on;
  double done;  // work of the steps that were run
  i64 last;     // time of the last line, in milliseconds
};

inline Progress progress;

// Prints the step and the work done, twice a second.
inline void report_progress(const Step& s, double part) {
  timespec t;
  if (!progress.on || clock_gettime(CLOCK_MONOTONIC, &t)) return;
  i64 now = i64(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
  if (progress.last && now - progress.last < 500) return;
  progress.last = now;
  char text[64];
  int n = snprintf(text, sizeof text, "@%d %.0f\n", m.step, progress.done + part * s.work);
  if (write(1, text, size_t(n)) < 0) _exit(1);  // the parent has died
}

// Notes what the running launch has used of shared memory.
inline void note_shared() {
  if (m.cluster > smem.used_blocks) smem.used_blocks = m.cluster;
  if (smem.fixed > smem.used_fixed) smem.used_fixed = smem.fixed;
  if (u32 dynamic = shared_bytes - smem.dynamic; dynamic > smem.used_dynamic) smem.used_dynamic = dynamic;
}

// Forgets all accesses to shared memory of the launches that have noted what they use of it.
inline void forget_launches() {
  forget_shared(smem.writers, smem.used_blocks, smem.used_fixed, smem.used_dynamic);
  forget_shared(smem.readers, smem.used_blocks, smem.used_fixed, smem.used_dynamic);
}

// Runs the block at m.at, or the cluster of blocks that begins there; `first` is its id.
inline void run_blocks(u32 first) {
  if (m.latest > 1u << (31 - m.who_bits)) {  // long before the bits of the clock overflow
    note_shared();
    forget_launches();
    m.latest = 0;
  }
  m.began = ++m.latest;
  posts.waits = 0;
  smem.start = m.began << m.who_bits;
  if (smem.sets_used) {  // entries with a set have no time that identifies their block
    forget_shared(smem.readers, m.cluster, smem.fixed, shared_bytes - smem.dynamic);
    smem.sets_used = 0;
    smem.sets_free = ~0u;
  }
  m.left = m.cluster * m.thread_count;
  if (m.cluster > 1) gather = Gather{};
  for (int rank = 0; rank < m.cluster; rank++) {
    Block& b = m.blocks[rank];
    b.id = first + u32(rank);
    b.done = 0;
    b.ready_warps = 0;
    b.last = b.acquired = false;
    b.barriers[0].arrived = 0;
    if (m.cluster > 1) memset(b.touched, 0, sizeof b.touched);
    for (int w = 0; w < m.warp_count; w++) {
      Warp& x = m.warps[rank * m.warp_count + w];
      int lanes = m.thread_count - 32 * w;
      x.full = lanes >= 32 ? ~0u : (1u << lanes) - 1;
      x.exited = x.arrived = 0;
      x.clock = m.began;
      x.floor = m.began - 1;
      x.turn = 0;
      x.between = false;
      for (int k = 0; k < m.agents; k++) x.seen[k] = x.shown[k] = m.began - 1;
      run_again(rank * m.warp_count + w, x.full);
    }
  }
  m.rank = m.first_warp = 0;
  m.me = first;
  enter(0);
  dm_emu_switch(&m.main_stack, m.threads[0].stack);
  if (m.rank) enter_block(0);
  for (int w = 0; w < m.cluster * m.warp_count; w++) m.latest = m.warps[w].clock > m.latest ? m.warps[w].clock : m.latest;
  forget_copies();
  if (at_block_end) at_block_end();
}

// Sets up the numbers of a launch of k's threads and agents.
inline void number(const Kernel& k) {
  const int blocks = k.cluster > 1 ? k.cluster : 1, warps = (k.threads + 31) / 32;
  u32 bits = 11;
  while ((1 << bits) < blocks * (33 * warps + 1) + 3) bits++;  // those who access: threads, agents and three more
  if (bits != m.who_bits) {  // stamps of other launches mean something else
    forget_launches();
    m.latest = 0;
  }
  m.thread_count = k.threads;
  m.warp_count = warps;
  m.cluster = blocks;
  m.who_bits = bits;
  m.who_mask = (1u << bits) - 1;
  m.first_agent = u32(m.cluster * m.warp_count * 32);
  if (i32 n = m.cluster * (m.warp_count + 1); n != m.agents) {
    m.agents = n;
    free(smem.reader_sets);
    smem.reader_sets = nullptr;
    smem.sets_capacity = 0;
  }
}

inline void launch(const Kernel& k, const Step& s) {
  i64 blocks = i64(s.grid[0]) * s.grid[1] * s.grid[2];
  if (k.threads < 1 || k.threads > max_threads) fault("launch", {}, -1, -1, "%d threads in a block; it has 1 to 1024", k.threads);
  if (k.cluster > max_cluster) fault("launch", {}, -1, -1, "clusters of %d blocks; %d are the most", k.cluster, max_cluster);
  if (k.cluster > 1 && s.grid[0] % k.cluster) fault("launch", {}, -1, -1, "%d blocks are not whole clusters of %d", s.grid[0], k.cluster);
  if (blocks < 1 || blocks > 1ll << 31) fault("launch", {}, -1, -1, "%lld blocks", blocks);
  if (i64(m.atomic) + blocks + 3 > 0xffff0000ll) {
    memset(m.writers, 0, size_t(m.bytes) * sizeof(u32));
    memset(m.readers, 0, size_t(m.bytes) * sizeof(u32));
    m.atomic = 0;
  }
  m.first = m.atomic + 1;
  m.many = m.first + u32(blocks);
  m.atomic = m.many + 1;
  m.kernel = k.name;
  m.body = k.body;
  number(k);
  m.dynamic_shared = u32(k.shared);
  if (m.dynamic_shared > shared_limit) fault("launch", {}, -1, -1, "%u bytes of dynamic shared memory; a block has at most %u", m.dynamic_shared, shared_limit);
  if (smem.sets_used) forget_shared(smem.readers, smem.used_blocks, smem.used_fixed, smem.used_dynamic);
  smem.sets_used = 0;
  smem.sets_free = ~0u;
  posts.count = 0;
  smem.fixed = 0;
  smem.array_count = 0;
  smem.dynamic = (shared_bytes - m.dynamic_shared) & ~1023u;
  make_threads(m.cluster * m.warp_count * 32);
  for (int i = 0; i < 3; i++) m.grid[i] = s.grid[i];
  u32 id = m.first;
  for (m.at[2] = 0; m.at[2] < m.grid[2]; m.at[2]++) {
    for (m.at[1] = 0; m.at[1] < m.grid[1]; m.at[1]++) {
      for (m.at[0] = 0; m.at[0] < m.grid[0]; m.at[0] += m.cluster) {
        report_progress(s, double(id - m.first) / double(blocks));
        run_blocks(id);
        for (int t = 0; t < m.cluster * m.warp_count * 32; t++) {
          if (m.accesses[t] > m.longest) m.longest = m.accesses[t];
          m.accesses[t] = 0;
        }
        id += u32(m.cluster);
      }
    }
  }
  note_shared();
  if (smem.fixed > 48 << 10) fault("launch", {}, -1, -1, "%u bytes of static shared memory; a kernel has at most 48 KiB", smem.fixed);
}

// The bytes that a step moved in all of its runs.
struct Moved {
  i64 runs = 0, longest = 0;
  std::vector<i64> read, written, requested;  // by argument
};

// Requires that a buffer, which the host reads, was written completely.
inline void require(const Plan& plan, int k) {
  const Buffer& b = plan.buffers[size_t(k)];
  for (i64 i = 0; i < b.bytes; i++) {
    u16 owner = m.owners[b.offset + i];
    if (owner == u16(k + 1)) continue;
    if (owner) fault("overlap", {}, -1, i, "byte %lld of buffer %d now belongs to buffer %d", i, k, owner - 1);
    fault("uninitialised", {}, -1, i, "byte %lld of buffer %d was never written", i, k);
  }
}

inline void copy_bytes(const Plan& plan, Param& to, Param& from) {
  if (to.bytes != from.bytes) fault("plan", {}, -1, -1, "a copy of %lld bytes to %lld", from.bytes, to.bytes);
  require(plan, from.owner - 1);
  memcpy(to.data, from.data, size_t(to.bytes));
  for (i64 b = 0; b < to.bytes; b++) to.owners[b] = to.owner;
  from.read = from.requested = to.written = to.requested = to.bytes;
}

// Gives the elements of buffers to the process that started this one, which runs the
// collective, and takes those of the results: "!STEP" and the bytes on standard output, and
// the bytes on standard input. Either may be null; of several values one is two behind the other.
inline void exchange(const Plan& plan, Param* to, Param* from, int values = 1) {
  for (int k = 0; from && k < values; k++) require(plan, from[2 * k].owner - 1);
  fflush(stdout);
  char head[32];
  int n = snprintf(head, sizeof head, "!%d\n", m.step);
  auto all = [](auto call, int file, u8* data, i64 bytes) {
    for (i64 done = 0; done < bytes;) {
      auto k = call(file, data + done, size_t(bytes - done));
      if (k < 0 && errno == EINTR) continue;
      if (k <= 0) _exit(1);  // the parent has ended the run
      done += k;
    }
  };
  all(write, 1, reinterpret_cast<u8*>(head), n);
  for (int k = 0; from && k < values; k++) all(write, 1, from[2 * k].data, from[2 * k].bytes);
  for (int k = 0; to && k < values; k++) all(read, 0, to[2 * k].data, to[2 * k].bytes);
  for (int k = 0; k < values; k++) {
    if (to) {
      Param& t = to[2 * k];
      for (i64 b = 0; b < t.bytes; b++) t.owners[b] = t.owner;
      t.written += t.bytes;
      t.requested += t.bytes;
    }
    if (from) from[2 * k].read = from[2 * k].requested = from[2 * k].bytes;
  }
}

inline void fill_zero(Param& p) {
  memset(p.data, 0, size_t(p.bytes));
  for (i64 b = 0; b < p.bytes; b++) p.owners[b] = p.owner;
  p.written = p.requested = p.bytes;
}

// Whether the step may read and write the bytes of parameter k, under this or
// another name.
inline bool mixed(const Step& s, int k, const Kernel* kernels) {
  if (s.kernel < 0) return false;
  bool reads = false, writes = false;
  for (int j = 0; j < m.param_count; j++) {
    const Param &p = m.params[k], &q = m.params[j];
    if (q.offset >= p.offset + p.bytes || p.offset >= q.offset + q.bytes) continue;
    const char* mode;
    kernels[s.kernel].describe(j, &mode);
    reads = reads || strcmp(mode, "out");
    writes = writes || !strcmp(mode, "out") || !strcmp(mode, "inout");
  }
  return reads && writes;
}

inline void run_step(const Plan& plan, const Step& s, const Kernel* kernels) {
  m.param_count = int(s.args.size());
  int smallest = 8;
  for (size_t k = 0; k < s.args.size(); k++) {
    const Buffer& b = plan.buffers[size_t(s.args[k].buffer)];
    Param& p = m.params[k];
    p = Param{};
    p.index = int(k);
    p.owner = u16(s.args[k].buffer + 1);
    p.data = m.memory + b.offset;
    p.owners = m.owners + b.offset;
    p.offset = b.offset;
    p.bytes = b.bytes;
    p.map = s.args[k].map;
    if (s.elem_bytes[k] < smallest) smallest = s.elem_bytes[k];
  }
  for (int k = 0; k < m.param_count; k++) m.params[k].mixed = mixed(s, k, kernels);
  m.granule = smallest == 8 ? 3 : smallest == 4 ? 2 : smallest == 2 ? 1 : 0;
  if (s.kernel == FillStep) fill_zero(m.params[0]);
  else if (s.kernel == ExchangeStep) exchange(plan, &m.params[0], &m.params[1], m.param_count / 2);
  else if (s.kernel == SendStep) exchange(plan, nullptr, &m.params[0]);
  else if (s.kernel == ReceiveStep) exchange(plan, &m.params[0], nullptr);
  else if (s.kernel == CopyStep) copy_bytes(plan, m.params[0], m.params[1]);
  else launch(kernels[s.kernel], s);
}

// Whether the predicate of step i holds.
inline bool decide(const Plan& plan, size_t i, std::vector<Moved>& moved) {
  m.step = int(i);
  m.line = {};
  m.kernel = "";
  int k = plan.steps[i].args[0].buffer;
  require(plan, k);
  moved[i].runs++;
  return m.memory[plan.buffers[size_t(k)].offset] != 0;
}

// Runs the steps [from, to).
inline void run_steps(const Plan& plan, const Kernel* kernels, size_t from, size_t to, std::vector<Moved>& moved) {
  for (size_t i = from; i < to; i++) {
    const Step& s = plan.steps[i];
    if (s.kernel == LoopStep || s.kernel == BranchStep || s.kernel == RepeatStep) {
      size_t first = i + 1, second = first + size_t(s.grid[0]), end = second + size_t(s.grid[1]);
      if (s.kernel == RepeatStep) {
        moved[i].runs += s.grid[2];
        for (i32 n = 0; n < s.grid[2]; n++) run_steps(plan, kernels, second, end, moved);
      } else if (s.kernel == LoopStep) {
        for (;;) {
          run_steps(plan, kernels, first, second, moved);
          if (!decide(plan, i, moved)) break;
          run_steps(plan, kernels, second, end, moved);
        }
      } else if (decide(plan, i, moved)) {
        run_steps(plan, kernels, first, second, moved);
      } else {
        run_steps(plan, kernels, second, end, moved);
      }
      i = end - 1;
      continue;
    }
    m.step = int(i);
    m.at[0] = m.at[1] = m.at[2] = m.thread = 0;
    m.line = {};
    m.longest = 0;
    run_step(plan, s, kernels);
    if (m.longest > moved[i].longest) moved[i].longest = m.longest;
    progress.done += s.work;
    moved[i].runs++;
    for (size_t k = 0; k < s.args.size(); k++) {
      moved[i].read[k] += m.params[k].read;
      moved[i].written[k] += m.params[k].written;
      moved[i].requested[k] += m.params[k].requested;
    }
  }
}

// What is known after a signal: the kernel, the block and the line of the last
// access before it.
inline void on_signal(int signal) {
  const char* kind = signal == SIGTERM || signal == SIGALRM ? "timeout" : "crash";
  const char* what = signal == SIGSEGV ? "segmentation fault, after the access on this line"
      : signal == SIGFPE ? "arithmetic fault, after the access on this line"
      : signal == SIGTERM ? "stopped from outside; the last access was on this line"
      : "it died, after the access on this line";
  fault(kind, m.line, -1, -1, "%s", what);
}

inline void catch_signals() {
  static u8 alternate[64 << 10];
  stack_t s{};
  s.ss_sp = alternate;
  s.ss_size = sizeof alternate;
  sigaltstack(&s, nullptr);
  struct sigaction a{};
  a.sa_handler = on_signal;
  a.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int n : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) sigaction(n, &a, nullptr);
}

inline void check_kernels(const Plan& plan, const Kernel* kernels, int count) {
  for (size_t i = 0; i < plan.steps.size(); i++) {
    const Step& s = plan.steps[i];
    m.step = int(i);
    if (s.kernel >= count) fault("plan", {}, -1, -1, "the program has no kernel %d", s.kernel);
    if (s.args.size() > size_t(max_params)) fault("plan", {}, -1, -1, "%d arguments", int(s.args.size()));
    if (s.kernel < 0) continue;
    const Kernel& k = kernels[s.kernel];
    if (int(s.args.size()) != k.params) fault("plan", {}, -1, -1, "%s has %d parameters, the step gives it %d", k.name, k.params, int(s.args.size()));
    std::string have;
    for (int j = 0; j < k.params; j++) {
      const char* mode;
      const char* elem = k.describe(j, &mode);
      have += (j ? " " : "") + std::string(mode) + ":" + elem;
    }
    if (have != k.wanted) fault("plan", {}, -1, -1, "%s takes %s, the artifact has %s", k.name, have.c_str(), k.wanted);
  }
}

int run(int argc, char** argv, const Kernel* kernels, int count) {
  if (argc != 4) return 2;
  catch_signals();
  m.step = -1;
  Plan plan = read_plan(argv[1]);
  m.bytes = plan.workspace;
  m.memory = pages<u8>(m.bytes);
  m.owners = pages<u16>(m.bytes);
  m.writers = pages<u32>(m.bytes);
  m.readers = pages<u32>(m.bytes);
  m.write_stamps = pages<u32>(m.bytes);
  m.read_stamps = pages<u32>(m.bytes);
  FILE* data = fopen(argv[2], "rb");
  if (!data) fault("plan", {}, -1, -1, "cannot open %s", argv[2]);
  for (size_t k = 0; k < plan.buffers.size(); k++) {
    Buffer& b = plan.buffers[k];
    if (b.kind != InputBuffer && b.kind != ConstantBuffer) continue;
    if (fread(m.memory + b.offset, 1, size_t(b.bytes), data) != size_t(b.bytes)) fault("plan", {}, -1, -1, "the data ends early");
    for (i64 i = 0; i < b.bytes; i++) m.owners[b.offset + i] = u16(k + 1);
  }
  fclose(data);
  check_kernels(plan, kernels, count);
  progress.on = true;
  std::vector<Moved> moved(plan.steps.size());
  for (size_t i = 0; i < moved.size(); i++) {
    size_t n = plan.steps[i].args.size();
    moved[i].read.resize(n);
    moved[i].written.resize(n);
    moved[i].requested.resize(n);
  }
  run_steps(plan, kernels, 0, plan.steps.size(), moved);
  std::string report = "{\"steps\":[", runs, longest;
  for (size_t i = 0; i < moved.size(); i++) {
    report += i ? ",[" : "[";
    for (size_t k = 0; k < moved[i].read.size(); k++) {
      char text[96];
      snprintf(text, sizeof text, "%s[%lld,%lld,%lld]", k ? "," : "", moved[i].read[k], moved[i].written[k], moved[i].requested[k]);
      report += text;
    }
    report += "]";
    runs += (i ? "," : "") + std::to_string(moved[i].runs);
    longest += (i ? "," : "") + std::to_string(moved[i].longest);
  }
  report += "],\"runs\":[" + runs + "],\"longest\":[" + longest;
  report += "]}\n";
  m.step = int(plan.steps.size());
  FILE* out = fopen(argv[3], "wb");
  if (!out) fault("plan", {}, -1, -1, "cannot open %s", argv[3]);
  for (int k : plan.outputs) {
    const Buffer& b = plan.buffers[size_t(k)];
    for (i64 i = 0; i < b.bytes; i++) {
      u16 owner = m.owners[b.offset + i];
      if (owner == u16(k + 1)) continue;
      if (owner) fault("overlap", {}, -1, i, "byte %lld of output buffer %d now belongs to buffer %d", i, k, owner - 1);
      fault("uninitialised", {}, -1, i, "byte %lld of output buffer %d was never written", i, k);
    }
    if (fwrite(m.memory + b.offset, 1, size_t(b.bytes), out) != size_t(b.bytes)) fault("plan", {}, -1, -1, "cannot write %s", argv[3]);
  }
  if (fclose(out)) fault("plan", {}, -1, -1, "cannot write %s", argv[3]);
  fputs(report.c_str(), stdout);
  return 0;
}

}  // namespace dm::emu
