// The kernels of a program as a shared library: steps are launched one by one from
// outside, by a fake driver. This half of it is compiled once for all programs.
#define DM_EMU_MAIN
#include "emu_main.cuh"

// The other half: the program's kernels and its plan.
extern const dm::emu::Kernel* const dm_kernels;
extern const char dm_plan[];
extern const size_t dm_plan_bytes;

namespace {

const dm::emu::Plan& the_plan() {
  static const dm::emu::Plan plan = [] {
    char path[] = "/tmp/dmir-plan-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, dm_plan, dm_plan_bytes) != ssize_t(dm_plan_bytes)) dm::emu::fault("plan", {}, -1, -1, "cannot write the plan");
    close(fd);
    dm::emu::Plan p = dm::emu::read_plan(path);
    unlink(path);
    return p;
  }();
  return plan;
}

}  // namespace

// dm_launch runs the kernel of that name over that grid. Each argument is the
// address of an address in the memory, which is the program's one allocation; for
// a tensor map that of the buffer is its first word. It returns 0, or 1 if
// the plan has no such step.
extern "C" __attribute__((visibility("default"))) int dm_launch(const char* name, const int* grid, unsigned char* memory, unsigned long long bytes, void** args) {
  using namespace dm::emu;
  const Plan& plan = the_plan();
  if (u64(plan.workspace) > bytes) return 1;
  if (m.memory != memory) {
    m.bytes = plan.workspace;
    m.memory = memory;
    m.owners = pages<u16>(m.bytes);
    m.writers = pages<u32>(m.bytes);
    m.readers = pages<u32>(m.bytes);
    m.write_stamps = pages<u32>(m.bytes);
    m.read_stamps = pages<u32>(m.bytes);
  }
  for (size_t i = 0; i < plan.steps.size(); i++) {
    const Step& s = plan.steps[i];
    if (s.kernel < 0 || strcmp(dm_kernels[s.kernel].name, name)) continue;
    bool same = true;
    for (int d = 0; d < 3; d++) same = same && s.grid[d] == grid[d];
    for (size_t k = 0; same && k < s.args.size(); k++) {
      u64 at = u64(memory) + u64(plan.buffers[size_t(s.args[k].buffer)].offset);
      same = args[k] && *static_cast<u64*>(args[k]) == at;
    }
    if (!same || args[s.args.size()]) continue;
    m.step = int(i);
    m.at[0] = m.at[1] = m.at[2] = m.thread = 0;
    m.line = {};
    for (const StepArg& a : s.args) { // only the emulator checks that all of it was written
      const Buffer& b = plan.buffers[size_t(a.buffer)];
      for (i64 j = 0; j < b.bytes; j++) m.owners[b.offset + j] = u16(a.buffer + 1);
    }
    run_step(plan, s, dm_kernels);
    return 0;
  }
  return 1;
}
